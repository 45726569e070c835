/* Gathers the measurements of all ranks, on one clock. */
#ifndef PSPLIT_RUNTIME_MPI_GATHER_H
#define PSPLIT_RUNTIME_MPI_GATHER_H

#include "runtime.h"

/* Brings the timelines of all ranks, each of one stage, to rank 0: *out, which is empty elsewhere;
 * and what was passed over. Turns the times of `mine` to rank 0's clock.
 * Called by all ranks. Errors: NOMEM, IO. */
PSPLIT_MUST_USE psplit_code psplit_i_mpi_gather(psplit_i_timeline *mine,
                                                const psplit_i_run_options *options, uint32_t rank,
                                                uint32_t n_ranks, psplit_diag *diag,
                                                psplit_i_timeline *out);
/* By all ranks at once: tells rank 0 what was delivered, where another gives outputs. Errors: as
 * above. */
PSPLIT_MUST_USE psplit_code psplit_i_mpi_gather_delivered(const psplit_i_pipe *pipe,
                                                          const psplit_i_run_options *options,
                                                          uint32_t rank, psplit_diag *diag);

#endif
