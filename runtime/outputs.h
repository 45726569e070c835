/* Writing the outputs of the model, to a directory or a descriptor. */
#ifndef PSPLIT_RUNTIME_OUTPUTS_H
#define PSPLIT_RUNTIME_OUTPUTS_H

#include "runtime.h"

/* DIR/outputs.json maps outputs to files, which are DIR/<micro-batch>-<output>.npy or .pb: names
 * from a model never become file names. */
typedef struct psplit_i_output_directory {
  const char *directory;
} psplit_i_output_directory;

/* Makes the directory where it does not exist. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_outputs_begin(const char *directory, psplit_diag *diag);

/* Once all are written: brings them to the disk, at once, since syncing each would slow a run down.
 * Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_outputs_end(const char *directory, psplit_diag *diag);

/* Writes outputs.json; PSPLIT_I_ENDLESS: nobody knows yet how many there will be. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_outputs_index(const char *directory,
                                                   const psplit_i_manifest *manifest,
                                                   uint64_t n_micro_batches, psplit_diag *diag);

/* A psplit_i_output_taker; `user` is a psplit_i_output_directory. */
PSPLIT_MUST_USE psplit_code psplit_i_outputs_write(void *user, uint32_t micro_batch,
                                                   uint32_t output, psplit_i_tensor *tensor,
                                                   psplit_diag *diag);

/* A psplit_i_output_taker that writes .npy files one after the other to a descriptor; `user` is a
 * psplit_i_output_stream. Does not wait for its reader any more once it is told to stop.
 * Errors: IO (also where nobody reads any more), UNSUPPORTED (a type that numpy has not). */
typedef struct psplit_i_output_stream {
  const char *name; /* for messages */
  int fd;
  const atomic_bool *stop; /* true: give up */
} psplit_i_output_stream;
/* Opens a pipe or device; waits until somebody reads from it, or *interrupted is not 0; not longer
 * than stall_timeout_s, where that is not 0. The caller closes out->fd. Sets name and fd alone.
 * Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_output_stream_open(const char *path,
                                                        const atomic_int *interrupted,
                                                        double stall_timeout_s, psplit_diag *diag,
                                                        psplit_i_output_stream *out);
PSPLIT_MUST_USE psplit_code psplit_i_outputs_stream(void *user, uint32_t micro_batch,
                                                    uint32_t output, psplit_i_tensor *tensor,
                                                    psplit_diag *diag);

#endif
