/* A sink that writes the outputs of the model into a directory. */
#ifndef PSPLIT_RUNTIME_OUTPUTS_H
#define PSPLIT_RUNTIME_OUTPUTS_H

#include "runtime.h"

/* DIR/outputs.json maps outputs to files, which are DIR/<micro-batch>-<output>.npy or .pb: names
 * from a model never become file names. */
typedef struct psplit_i_output_directory {
  const char *directory;
} psplit_i_output_directory;

/* Makes the directory where it does not exist, and with `index` writes outputs.json. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_outputs_begin(const char *directory, const psplit_i_pipe *pipe,
                                                   uint32_t n_micro_batches, bool index,
                                                   psplit_diag *diag);

/* A psplit_i_sink; `user` is a psplit_i_output_directory. */
PSPLIT_MUST_USE psplit_code psplit_i_outputs_write(void *user, uint32_t micro_batch,
                                                   uint32_t output, psplit_i_tensor *tensor,
                                                   psplit_diag *diag);

#endif
