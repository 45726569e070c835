/* Polling waits of a rank, which notice interrupts and silent ranks. */
#ifndef PSPLIT_RUNTIME_MPI_WAIT_H
#define PSPLIT_RUNTIME_MPI_WAIT_H

#include <mpi.h>

#include "runtime.h"

/* How long to sleep between looks after so long a wait: a part of it, so that what is waited for is
 * noticed late by a part of what it took. */
int64_t psplit_i_mpi_nap_ns(int64_t waited_ns, int64_t least_ns, int64_t most_ns);

/* Errors: IO (options->interrupted is set). */
PSPLIT_MUST_USE psplit_code psplit_i_mpi_check_interrupt(const psplit_i_run_options *options,
                                                         psplit_diag *diag);

/* Until *request is complete. Errors: IO (interrupted; nothing for options->timeout_s; `what` says
 * what was waited for). */
PSPLIT_MUST_USE psplit_code psplit_i_mpi_wait(MPI_Request *request,
                                              const psplit_i_run_options *options, const char *what,
                                              psplit_diag *diag);

#endif
