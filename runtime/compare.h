/* The whole model against the pipeline, in numbers. */
#ifndef PSPLIT_RUNTIME_COMPARE_H
#define PSPLIT_RUNTIME_COMPARE_H

#include "runtime.h"

/* How an output of the pipeline differs from the model's, over all micro-batches. */
typedef struct psplit_i_difference {
  uint64_t n_elements, n_different; /* by their bits */
  double max_abs, max_rel; /* of these; rel: over the model's; infinite with NaN, strings */
  bool random;             /* differs, and the model gives other bits itself when it runs again */
} psplit_i_difference;

/* Runs `model_path` whole, then the pipeline over threads, on the same inputs and at the same level
 * of optimisation (options->logger is not used). out[pipe->n_outputs] is the caller's.
 * Errors: MISMATCH where types or shapes differ; those of running. */
PSPLIT_MUST_USE psplit_code psplit_i_compare_run(const psplit_i_ort *ort, const char *model_path,
                                                 const psplit_i_pipe *pipe,
                                                 const psplit_i_run_options *options,
                                                 psplit_diag *diag, psplit_i_difference *out);

#endif
