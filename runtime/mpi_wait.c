#include "mpi_wait.h"

#include <time.h>

#include "queue.h"

psplit_code psplit_i_mpi_check_interrupt(const psplit_i_run_options *options, psplit_diag *diag) {
  if (!options->interrupted || !atomic_load(options->interrupted)) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_IO, "interrupted");
}

psplit_code psplit_i_mpi_wait(MPI_Request *request, const psplit_i_run_options *options,
                              const char *what, psplit_diag *diag) {
  static const int64_t LONGEST_NS = 1000000;
  psplit_code code = PSPLIT_OK;
  const int64_t since = psplit_i_now_ns();
  for (uint32_t n_idle = 0; code == PSPLIT_OK; n_idle++) {
    int complete = 0;
    MPI_Test(request, &complete, MPI_STATUS_IGNORE);
    if (complete) return PSPLIT_OK;
    code = psplit_i_mpi_check_interrupt(options, diag);
    if (code == PSPLIT_OK && 1e-9 * (double)(psplit_i_now_ns() - since) > options->timeout_s)
      code = psplit_i_fail_about(diag, PSPLIT_IO, PSPLIT_I_HELPS(TIMEOUT),
                                 "%s: nothing was heard of the other ranks for %g s", what,
                                 options->timeout_s);
    nanosleep(&(struct timespec){0, psplit_i_backoff_ns(n_idle, LONGEST_NS)}, NULL);
  }
  return code;
}
