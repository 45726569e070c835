/* Training in stages: a plan's stages with what their backward passes read, the backward passes
 * themselves and the updates of their weights, as ONNX files that any runtime runs.
 *
 *   psplit_training_create   a model and what is minimised (psplit/gradient.h)
 *   psplit_training_model    what is to be planned: the model with its loss
 *   psplit_training_emit     a plan of it to a directory
 * Files of a stage: stageI.onnx, as psplit_emit writes it, with trained weights as inputs and the
 * stash among its outputs; stageI.backward.onnx; stageI.update.onnx; docs/training.md says how they
 * go together, and pipeline.json, object "training", says it of the files at hand. */
#ifndef PSPLIT_TRAINING_H
#define PSPLIT_TRAINING_H

#include <psplit/emit.h>
#include <psplit/gradient.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_training psplit_training;

typedef struct psplit_training_form {
  size_t struct_size; /* set by psplit_training_form_init() */
  /* DEFAULT: the stages hold the first values of weights. INPUT: they do not, and each
   * stageI.weights.onnx, a model without inputs, gives those of the weights that its stage updates.
   */
  psplit_weight_form weights;
  const char *optimizer; /* as of psplit_gradient_write_update; NULL: no stageI.update.onnx */
} psplit_training_form;

/* The defaults: everything 0 or NULL. */
static inline void psplit_training_form_init(psplit_training_form *form) {
  memset(form, 0, sizeof *form);
  form->struct_size = sizeof *form;
}

/* Differentiates `model`, which may be closed before *out_training, the caller's. `form` may be
 * NULL; `accumulate` of `options` counts as set. Errors: those of psplit_gradient_create and of the
 * optimizer's text; UNSUPPORTED where weights cannot be inputs with a default (before IR 4). */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_training_create(const psplit_model *model, const psplit_training_options *options,
                       const psplit_training_form *form, const psplit_logger *logger,
                       psplit_diag *diag, psplit_training **out_training);
PSPLIT_API void psplit_training_destroy(psplit_training *training);

/* The model with its loss: what a plan has to be of. Lives as long as `training`. */
PSPLIT_API const psplit_model *psplit_training_model(const psplit_training *training);
/* What is trained, and what all gradients are multiplied by. */
PSPLIT_API const psplit_gradient *psplit_training_gradient(const psplit_training *training);

/* psplit_emit and psplit_manifest with the files of training. A node of the backward pass stands in
 * the stage of the node that it was made for, and sums of gradients in the first stage that has a
 * share in them: so any plan will do, and gradients are the bits of the whole model's. Errors:
 * those of psplit_emit; USAGE with PSPLIT_WEIGHTS_REFERENCE. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_training_emit(const psplit_training *training,
                                                            const psplit_plan *plan,
                                                            const char *directory,
                                                            const psplit_emit_options *options,
                                                            psplit_diag *diag);
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_training_manifest(const psplit_training *training,
                                                                const psplit_plan *plan,
                                                                const psplit_emit_options *options,
                                                                psplit_diag *diag, char **out_text);

#ifdef __cplusplus
}
#endif
#endif
