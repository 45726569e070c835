/* Dynamic batching: concatenates tensors of several requests along a dynamic dimension, and divides
 * the results. */
#ifndef PSPLIT_RUNTIME_BATCHING_H
#define PSPLIT_RUNTIME_BATCHING_H

#include "ort.h"
#include "pipeline.h"

typedef struct psplit_i_batching {
  const psplit_i_ort *ort;
  const psplit_i_manifest *manifest;
  int32_t *input_axes;  /* [n_needed] where the dimension is; -1: it has not got it */
  int32_t *output_axes; /* [n_outputs] */
} psplit_i_batching;

/* For the dimension called `name`. Errors: USAGE (no such dimension; an output has not got it, or
 * is of strings), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_batching_init(const psplit_i_ort *ort,
                                                   const psplit_i_manifest *manifest,
                                                   const char *name, psplit_diag *diag,
                                                   psplit_i_batching *out);
void psplit_i_batching_fini(psplit_i_batching *batching); /* a zeroed one is fine */

/* The size of that dimension in inputs[n_needed]; -1: these cannot be joined with others. */
int64_t psplit_i_batching_rows(const psplit_i_batching *batching, psplit_i_tensor *const *inputs);
/* Whether two such can be: all else is of one size, and what lacks the dimension is equal. */
bool psplit_i_batching_fits(const psplit_i_batching *batching, psplit_i_tensor *const *a,
                            psplit_i_tensor *const *b);
/* inputs[n] lists of n_needed, one behind the other, in out[n_needed], which the caller releases
 * (all NULL before). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_batching_join(const psplit_i_batching *batching,
                                                   psplit_i_tensor *const *const *inputs, size_t n,
                                                   psplit_diag *diag, psplit_i_tensor **out);
/* The rows of one request among those of all that were joined. */
typedef struct psplit_i_batch_rows {
  int64_t first, n, n_all;
} psplit_i_batch_rows;

/* These rows of outputs[n_outputs], in out[n_outputs], likewise. Errors: INVALID (an output has not
 * n_all rows), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_batching_split(const psplit_i_batching *batching,
                                                    psplit_i_tensor *const *outputs,
                                                    psplit_i_batch_rows rows, psplit_diag *diag,
                                                    psplit_i_tensor **out);

#endif
