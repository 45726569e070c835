/* MPI of this process: whether it was launched by one, and how it begins and ends. */
#include <mpi.h>
#include <psplit/run_mpi.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base.h"

bool psplit_mpi_launched(void) {
  return getenv("PMI_RANK") || getenv("PMIX_RANK") || getenv("OMPI_COMM_WORLD_RANK");
}

psplit_code psplit_mpi_begin(psplit_diag *diag, uint32_t *out_rank, uint32_t *out_n_ranks) {
  int given, rank, n_ranks;
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS ||
      given < MPI_THREAD_SERIALIZED)
    return psplit_i_fail(diag, PSPLIT_PLUGIN, "MPI cannot be started with threads");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  *out_rank = (uint32_t)rank;
  *out_n_ranks = (uint32_t)n_ranks;
  return PSPLIT_OK;
}

static atomic_int abort_status; /* any thread may get the alarm */
static void leave(int number) {
  (void)number;
  _Exit(abort_status);
}

/* This process ends at the latest so much later, whatever MPI does. */
static void leave_within(unsigned seconds, int status) {
  abort_status = status;
  signal(SIGALRM, leave);
  struct itimerval left; /* of an interrupt: sooner stays sooner */
  const bool sooner = getitimer(ITIMER_REAL, &left) == 0 && timerisset(&left.it_value) &&
                      left.it_value.tv_sec < (time_t)seconds;
  if (!sooner) alarm(seconds);
}

void psplit_mpi_end(void) {
  /* All is done and told. Some MPI hang here now and then: MPICH 4.0 with UCX over TCP. */
  enum { FINALIZE_S = 4 };
  fflush(NULL);
  leave_within(FINALIZE_S, 0);
  MPI_Finalize();
  alarm(0);
}

void psplit_mpi_abort(int status) {
  static const long TELL_NS = 200000000;
  enum { ABORT_S = 2 };
  /* A launcher that is told to end all may drop what it has not yet passed on: our error line. */
  nanosleep(&(struct timespec){0, TELL_NS}, NULL);
  /* Nor does MPI say how long it takes to abort where a host cannot be reached. */
  leave_within(ABORT_S, status);
  MPI_Abort(MPI_COMM_WORLD, status);
  _Exit(status);
}
