/* Checking that the gradients of training stages are those of their loss. Part of libpsplit-run.
 *
 * psplit_verify proves that backward files follow the rules. This tests the rules on a given model:
 * it compares gradients from the backward files with finite differences of the loss, which the
 * forward files compute with perturbed weights. */
#ifndef PSPLIT_RUN_GRADIENTS_H
#define PSPLIT_RUN_GRADIENTS_H

#include <psplit/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_gradient_check_options {
  size_t struct_size;
  const psplit_session *session;   /* NULL: no optimisation, one thread, CPU */
  const psplit_feed_options *feed; /* of the one micro-batch; its seed also determines directions */
  uint32_t n_directions;           /* per weight, at least 1 */
  uint64_t max_text_bytes;         /* of pipeline.json; 0: 64 MiB */
  const volatile int *cancel;      /* see base.h */
  /* If the stages are of the model with inlined Ifs, it is read again from this file, with these
   * options (NULL: the defaults). */
  const char *model_path;
  const psplit_read_options *read;
} psplit_gradient_check_options;

/* The defaults: two directions, everything else 0 or NULL. */
PSPLIT_API void psplit_gradient_check_options_defaults(psplit_gradient_check_options *options,
                                                       size_t struct_size);
static inline void psplit_gradient_check_options_init(psplit_gradient_check_options *options) {
  psplit_gradient_check_options_defaults(options, sizeof *options);
}

typedef enum psplit_gradient_verdict {
  PSPLIT_GRADIENT_HOLDS,
  PSPLIT_GRADIENT_DIFFERS,
  PSPLIT_GRADIENT_UNTOLD /* undecided due to rounding: an error of 10 % could be missed */
} psplit_gradient_verdict;

/* Result for a weight, or an input with a gradient: the direction with the strongest evidence of an
 * error. Strings are owned by the check. */
typedef struct psplit_gradient_finding {
  const char *name;
  bool is_input;
  psplit_gradient_verdict verdict;
  uint64_t n_elements;
  /* Typical size of the derivative in such a direction, by the backward files. Directions have root
   * mean square 1. */
  double scale;
  double gap;      /* derivative by finite differences - that of the backward files */
  double bound;    /* bound on the gap from rounding and curvature */
  uint32_t n_runs; /* runs of the forward files, for all directions */
} psplit_gradient_finding;

typedef struct psplit_gradient_check psplit_gradient_check;

/* Runs one micro-batch forward and backward through the stages of `directory`. Then, for each
 * weight and direction, runs the forward files that depend on it, with the weight moved along the
 * direction by steps that are halved, in both senses, until rounding dominates. Initial weights are
 * those of `model`, the original model. The caller owns *out_check. Differences are reported in
 * findings, not as an error. Errors: USAGE (the stages do not train, inputs), IO, INVALID (ONNX
 * Runtime fails; a loss that is not reproducible), UNSUPPORTED (weights that are neither float nor
 * double), CANCELLED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_check_gradients(const psplit_onnxruntime *ort, const char *directory,
                       const psplit_model *model, const psplit_gradient_check_options *options,
                       psplit_diag *diag, psplit_gradient_check **out_check);
PSPLIT_API void psplit_gradient_check_destroy(psplit_gradient_check *check); /* NULL is fine */

/* Findings in the order of the manifest: weights, then inputs. */
PSPLIT_API uint32_t psplit_gradient_check_n_findings(const psplit_gradient_check *check);
PSPLIT_API const psplit_gradient_finding *psplit_gradient_check_finding(
  const psplit_gradient_check *check, uint32_t index);
/* Loss of the stages for the unmodified weights and inputs. */
PSPLIT_API double psplit_gradient_check_loss(const psplit_gradient_check *check);

#ifdef __cplusplus
}
#endif
#endif
