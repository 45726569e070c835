#include "mpi_wait.h"

#include <time.h>

#include "queue.h"

int64_t psplit_i_mpi_nap_ns(int64_t waited_ns, int64_t least_ns, int64_t most_ns) {
  const int64_t ns = waited_ns / 4;
  return ns < least_ns ? least_ns : ns < most_ns ? ns : most_ns;
}

psplit_code psplit_i_mpi_check_interrupt(const psplit_i_run_options *options, psplit_diag *diag) {
  if (!options->interrupted || !atomic_load(options->interrupted)) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_CANCELLED, "interrupted");
}

psplit_code psplit_i_mpi_wait(MPI_Request *request, const psplit_i_run_options *options,
                              const char *what, psplit_diag *diag) {
  static const int64_t SHORTEST_NS = 20000, LONGEST_NS = 1000000;
  psplit_code code = PSPLIT_OK;
  const int64_t since = psplit_i_now_ns();
  while (code == PSPLIT_OK) {
    int complete = 0;
    MPI_Test(request, &complete, MPI_STATUS_IGNORE);
    if (complete) return PSPLIT_OK;
    const int64_t waited_ns = psplit_i_now_ns() - since;
    code = psplit_i_mpi_check_interrupt(options, diag);
    if (code == PSPLIT_OK && 1e-9 * (double)waited_ns > options->timeout_s)
      code = psplit_i_fail_about(diag, PSPLIT_IO, PSPLIT_I_HELPS(TIMEOUT),
                                 "%s: no other rank responded for %g s", what, options->timeout_s);
    nanosleep(&(struct timespec){0, psplit_i_mpi_nap_ns(waited_ns, SHORTEST_NS, LONGEST_NS)}, NULL);
  }
  return code;
}
