/* Checks that all ranks run the same split with the same options. */
#ifndef PSPLIT_RUNTIME_MPI_AGREE_H
#define PSPLIT_RUNTIME_MPI_AGREE_H

#include "runtime.h"

/* By all ranks at once, before anything else passes between them. Compares pipeline.json, what of
 * the options decides on messages, and each stage file that several ranks have, with its weights
 * beside it: whole up to 4 MiB, of larger ones 1,024 samples. Errors: INVALID (they differ; all
 * ranks name the same one), IO (a rank is not heard of), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_mpi_agree(const psplit_i_pipe *pipe, uint32_t n_ranks,
                                               const psplit_i_run_options *options,
                                               psplit_diag *diag);

#endif
