/* Training in stages: a plan's stages with what their backward passes read, the backward passes
 * themselves and the updates of their weights, as ONNX files that any runtime runs.
 *
 *   psplit_training_create   a model and what is minimised (psplit/gradient.h)
 *   psplit_training_model    what is to be planned: the model with its loss
 *   psplit_training_plan     a plan that counts backward passes, stash and updates; or any other
 *   psplit_training_emit     a plan to a directory
 * Files of a stage: stageI.onnx, as psplit_emit writes it, with trained weights as inputs and the
 * stash among its outputs; stageI.again.onnx, what is computed again; stageI.backward.onnx, and on
 * request stageI.weight_gradients.onnx; stageI.update.onnx; docs/training.md says how they go
 * together, and pipeline.json, object "training", says it of the files at hand. */
#ifndef PSPLIT_TRAINING_H
#define PSPLIT_TRAINING_H

#include <psplit/emit.h>
#include <psplit/gradient.h>
#include <psplit/passes.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_training psplit_training;

/* Which of the values that backward passes read are kept, and which are recomputed. */
typedef enum psplit_recompute {
  PSPLIT_RECOMPUTE_AUTO,  /* the first of the following that fits into memory */
  PSPLIT_RECOMPUTE_NONE,  /* all is kept */
  PSPLIT_RECOMPUTE_HEAVY, /* keep results of products, convolutions and the like */
  PSPLIT_RECOMPUTE_ALL    /* keep inputs of a stage, and what is not a function of them */
} psplit_recompute;

/* Files that compute gradients of weights. */
typedef enum psplit_weight_gradients {
  PSPLIT_WEIGHT_GRADIENTS_TOGETHER, /* all in stageI.backward.onnx */
  /* stageI.backward.onnx has what other stages wait for, and gradients of inputs;
   * stageI.weight_gradients.onnx has the rest: for PSPLIT_SCHEDULE_ZERO_BUBBLE. */
  PSPLIT_WEIGHT_GRADIENTS_APART
} psplit_weight_gradients;

typedef struct psplit_training_form {
  size_t struct_size; /* set by psplit_training_form_init() */
  /* DEFAULT: the stages contain the initial weights. INPUT: they do not; stageI.weights.onnx, a
   * model without inputs, provides those that its stage updates. */
  psplit_weight_form weights;
  const char *optimizer;      /* as of psplit_gradient_write_update; NULL: no stageI.update.onnx */
  psplit_recompute recompute; /* AUTO is NONE for plans that are not psplit_training_plan's */
  psplit_weight_gradients weight_gradients;
} psplit_training_form;

/* The defaults: everything 0 or NULL. */
static inline void psplit_training_form_init(psplit_training_form *form) {
  memset(form, 0, sizeof *form);
  form->struct_size = sizeof *form;
}

/* Differentiates `model`, which may be closed before *out_training, which the caller owns. `form`
 * may be NULL; `accumulate` of `options` is implied. Errors: those of psplit_gradient_create and of
 * the optimizer's text; UNSUPPORTED if weights cannot be inputs with a default (before IR 4). */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_training_create(const psplit_model *model, const psplit_training_options *options,
                       const psplit_training_form *form, const psplit_logger *logger,
                       psplit_diag *diag, psplit_training **out_training);
PSPLIT_API void psplit_training_destroy(psplit_training *training);

/* The model with its loss, to be planned. Lives as long as `training`. */
PSPLIT_API const psplit_model *psplit_training_model(const psplit_training *training);
/* Trained tensors, and the factor of all gradients. */
PSPLIT_API const psplit_gradient *psplit_training_gradient(const psplit_training *training);

/* Creates a planner for psplit_training_model and runs the pipeline (NULL: the default one). It
 * includes the time of the backward pass, by the cost pass on the backward model, transfers in both
 * directions, and memory for stash, gradients and the optimizer's state. If `recompute` is AUTO,
 * the first option that fits is selected. `training` belongs to the last plan made by this
 * function, and must outlive the planner, which the caller owns; so must the options' devices.
 * Errors: those of psplit_planner_create and psplit_planner_run. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_training_plan(psplit_training *training,
                                                            const psplit_planner_options *options,
                                                            const char *pipeline, psplit_diag *diag,
                                                            psplit_planner **out_planner);

/* Times of a stage per micro-batch, ns, and what it keeps between forward and backward. */
typedef struct psplit_training_stage {
  int64_t forward_ns, again_ns, backward_ns;
  uint64_t stash_bytes;
  int64_t weight_gradients_ns; /* part of backward_ns, if APART; otherwise 0 */
} psplit_training_stage;

/* For a plan from psplit_training_plan's planner: out_stages[n_stages]. Errors: USAGE, NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_training_stages(const psplit_training *training,
                                                              const psplit_plan *plan,
                                                              psplit_diag *diag,
                                                              psplit_training_stage *out_stages);
/* The same as pieces of a schedule, including transfers: half with activations, half with their
 * gradients. [n_stages] each; recomputation counts as backward. Errors: the same. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_training_pieces(
  const psplit_training *training, const psplit_plan *plan, psplit_diag *diag,
  int64_t *out_forward_ns, int64_t *out_backward_ns, uint64_t *out_stash_bytes);
/* The schedule of a step of such a plan: FILL_DRAIN, 1F1B, or with PSPLIT_WEIGHT_GRADIENTS_APART
 * ZERO_BUBBLE. Errors: those of psplit_schedule_simulate too; USAGE. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_training_schedule(
  const psplit_training *training, const psplit_plan *plan, psplit_schedule_kind kind,
  uint32_t n_micro_batches, psplit_diag *diag, psplit_schedule **out_schedule);
/* The schedule that a plan was made for, by its objective: FILL_DRAIN, or 1F1B. */
static inline psplit_schedule_kind psplit_training_schedule_of(const psplit_plan *plan) {
  return psplit_plan_is_fill_drain(plan) ? PSPLIT_SCHEDULE_FILL_DRAIN : PSPLIT_SCHEDULE_1F1B;
}
/* The recomputation in use: not AUTO. */
PSPLIT_API psplit_recompute psplit_training_recompute(const psplit_training *training);

/* psplit_emit and psplit_manifest with the files for training. A node of the backward pass is in
 * the stage of its forward node, and sums of gradients are in the first stage that contributes: so
 * any plan can be used, and gradients are bit-identical to the whole model's. Errors: those of
 * psplit_emit; USAGE with PSPLIT_WEIGHTS_REFERENCE. */
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
