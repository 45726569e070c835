/* Are the gradients of stages that train those of the loss that they compute? Part of
 * libpsplit-run.
 *
 * psplit_verify proves that backward files are what the rules give. Here the rules are tested, on a
 * model as it is: gradients from the backward files against differences of the loss, which the
 * forward files compute with moved weights. */
#ifndef PSPLIT_RUN_GRADIENTS_H
#define PSPLIT_RUN_GRADIENTS_H

#include <psplit/run.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_gradient_check_options {
  size_t struct_size;
  const psplit_session *session;   /* NULL: no optimisation, one thread, CPU */
  const psplit_feed_options *feed; /* of the one micro-batch; its seed also draws directions */
  uint32_t n_directions;           /* for each weight, at least 1 */
  uint64_t max_text_bytes;         /* of pipeline.json; 0: 64 MiB */
  const volatile int *cancel;      /* see base.h */
  /* Where stages are of the model with Ifs inlined, it is read again to inline them: from this
   * file, with these options (NULL: plainly). */
  const char *model_path;
  const psplit_read_options *read;
} psplit_gradient_check_options;

/* Two directions, else 0 or NULL. */
PSPLIT_API void psplit_gradient_check_options_defaults(psplit_gradient_check_options *options,
                                                       size_t struct_size);
static inline void psplit_gradient_check_options_init(psplit_gradient_check_options *options) {
  psplit_gradient_check_options_defaults(options, sizeof *options);
}

typedef enum psplit_gradient_verdict {
  PSPLIT_GRADIENT_HOLDS,
  PSPLIT_GRADIENT_DIFFERS,
  PSPLIT_GRADIENT_UNTOLD /* rounding hides whether: an error of a tenth could go unseen */
} psplit_gradient_verdict;

/* What was found of a weight, or of an input whose gradient was asked for: of the direction that
 * speaks most against it. Strings are the check's. */
typedef struct psplit_gradient_finding {
  const char *name;
  bool is_input;
  psplit_gradient_verdict verdict;
  uint64_t n_elements;
  /* The scale: how large the derivative in such a direction is by the backward files. Directions
   * are in elements of the root mean square 1. */
  double scale;
  double gap;      /* derivative by differences of the loss less that by the backward files */
  double bound;    /* the most that the gap can be, rounding and curvature included */
  uint32_t n_runs; /* of the forward files, all directions */
} psplit_gradient_finding;

typedef struct psplit_gradient_check psplit_gradient_check;

/* Runs one micro-batch forward and back through the stages of `directory`, then for each weight
 * and direction the forward files that depend on it, with the weight moved along the direction by
 * steps that halve, to and fro, until rounding says no more. First weights are those of `model`,
 * the model that was split. The caller owns *out_check. What differs is told by the findings, not
 * by the code. Errors: USAGE (the stages do not train, inputs), IO, INVALID (ONNX Runtime fails; a
 * loss that is another one when it is computed again), UNSUPPORTED (weights that are neither float
 * nor double), CANCELLED, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_check_gradients(const psplit_onnxruntime *ort, const char *directory,
                       const psplit_model *model, const psplit_gradient_check_options *options,
                       psplit_diag *diag, psplit_gradient_check **out_check);
PSPLIT_API void psplit_gradient_check_destroy(psplit_gradient_check *check); /* NULL is fine */

/* In the order of the manifest: weights, then inputs. */
PSPLIT_API uint32_t psplit_gradient_check_n_findings(const psplit_gradient_check *check);
PSPLIT_API const psplit_gradient_finding *psplit_gradient_check_finding(
  const psplit_gradient_check *check, uint32_t index);
/* Of the stages, with weights and inputs as they are given. */
PSPLIT_API double psplit_gradient_check_loss(const psplit_gradient_check *check);

#ifdef __cplusplus
}
#endif
#endif
