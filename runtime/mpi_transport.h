/* Transport: one stage per MPI rank. Built where MPI is found. */
#ifndef PSPLIT_RUNTIME_MPI_TRANSPORT_H
#define PSPLIT_RUNTIME_MPI_TRANSPORT_H

#include "runtime.h"

/* Whether a launcher of MPI started this process. */
bool psplit_i_mpi_launched(void);

/* Starts MPI and says which of how many ranks this is. Errors: PLUGIN. */
PSPLIT_MUST_USE psplit_code psplit_i_mpi_begin(psplit_diag *diag, uint32_t *out_rank,
                                               uint32_t *out_n_ranks);

/* Runs stage `rank` of the pipeline, with as many ranks as there are stages. On rank 0, *out holds
 * the events of all ranks, on rank 0's clock; elsewhere it is empty. A rank whose stage fails must
 * call psplit_i_mpi_abort, which stops all of them; so does a rank that hears nothing for
 * options->timeout_s. Tensors go as messages of at most options->chunk_bytes. */
PSPLIT_MUST_USE psplit_code psplit_i_run_mpi(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                             const psplit_i_run_options *options, uint32_t rank,
                                             psplit_diag *diag, psplit_i_timeline *out);

void psplit_i_mpi_end(void);
/* Ends all ranks with this exit status; does not return. */
_Noreturn void psplit_i_mpi_abort(int status);

#endif
