/* training/: writes a plan and the backward pass of its model as files that train in stages.
 *
 *   training.c  the backward pass as a model of its own, opened like any other
 *   plan.c      plans that include the cost of the backward pass
 *   layout.c    the stage of each backward node, and the sources of its inputs
 *   recompute.c which values are kept or recomputed
 *   training_ports.c
 *               additional inputs and outputs of forward files: trained weights, stashed values;
 *               and the file that recomputes values
 *   files.c     stageI.backward.onnx and other additional files of a stage
 *   manifest.c, manifest_stages.c, manifest_trained.c
 *               the object "training" of pipeline.json
 * The backward pass is split like a model: its plan mirrors the forward plan, and emit/ checks and
 * writes its stages. Depends on gradient/, emit/ and passes/. */
#ifndef PSPLIT_TRAINING_TRAINING_H
#define PSPLIT_TRAINING_TRAINING_H

#include <psplit/training.h>

#include "emit.h"
#include "gradient.h"

/* Kind of an input of the backward model. */
typedef enum psplit_i_feed {
  PSPLIT_FEED_DATA,   /* an input of the model */
  PSPLIT_FEED_LOSS,   /* loss.grad */
  PSPLIT_FEED_WEIGHT, /* index: a trainable */
  PSPLIT_FEED_BEFORE, /* index: the trainable whose gradient is summed */
  PSPLIT_FEED_STASH   /* index: of the gradient's stash */
} psplit_i_feed;

typedef struct psplit_i_feeding {
  psplit_i_feed kind;
  uint32_t index;
} psplit_i_feeding;

/* Costs of the last plan. */
typedef struct psplit_i_times {
  psplit_i_arena arena;
  uint32_t n_stages, n_forward, n_backward; /* nodes; 0 stages: no plan */
  int64_t *forward_ns;                      /* [n_stages][n_forward] */
  int64_t *backward_ns;                     /* [n_stages][n_backward] */
  uint8_t *again;                           /* [n_forward] 1: recomputed */
  psplit_devices *own_devices, *devices;    /* `devices`: with round-trip links */
  psplit_planner_training load;
} psplit_i_times;

void psplit_i_times_fini(psplit_i_times *times);

struct psplit_training {
  psplit_i_arena arena;
  psplit_gradient *gradient;
  psplit_model *backward;
  psplit_i_feeding *feeds;    /* [values of backward] of its inputs */
  uint32_t *output_trainable; /* [values of backward] of its outputs: the trainable */
  psplit_weight_form weights;
  psplit_weight_gradients weight_gradients;
  const char *optimizer;          /* or NULL */
  const char *loss, *loss_output; /* from the options, exactly one is not NULL */
  psplit_batch_norm batch_norm;
  psplit_dropout dropout;
  psplit_recompute asked, recompute; /* recompute: not AUTO */
  psplit_i_times times;
  bool *trained; /* [values of the model] weights that are trained, and states */
  bool *moved;   /* [values of the model] weights that are trained, without states */
};

/* --- layout --- */

/* A value, or the shape of one, that a stage keeps for its backward pass. */
typedef struct psplit_i_stash {
  uint32_t value;
  bool is_shape;
  const char *tensor; /* name in the following files */
  const char *name;   /* input or output of stageI.onnx */
  bool added;         /* the output exists only for this */
} psplit_i_stash;

/* Parts of a backward pass: what other stages wait for, and gradients of inputs, or everything; the
 * rest, if separate. */
typedef enum psplit_i_half {
  PSPLIT_HALF_BACKWARD,
  PSPLIT_HALF_WEIGHTS,
  PSPLIT_N_HALVES
} psplit_i_half;

/* As in names of files and in the manifest. */
static const char *const psplit_i_half_names[PSPLIT_N_HALVES] = {
  [PSPLIT_HALF_BACKWARD] = "backward", [PSPLIT_HALF_WEIGHTS] = "weight_gradients"};

typedef struct psplit_i_training_stage {
  uint32_t backward[PSPLIT_N_HALVES]; /* stages of the backward split, or PSPLIT_NONE */
  const psplit_i_stash *stash;
  uint32_t n_stash;
  const uint32_t *again;       /* values that stageI.again.onnx recomputes, ascending */
  uint32_t n_again;            /* 0: no such file */
  const uint32_t *again_stash; /* stashed values that it reads, ascending */
  uint32_t n_again_stash;
  const uint32_t *again_weights; /* trainables that it reads, ascending */
  uint32_t n_again_weights;
  const uint32_t *weights; /* trainables that are inputs of stageI.onnx, ascending */
  uint32_t n_weights;
  const uint32_t *states; /* trainables that are states, ascending */
  uint32_t n_states;
  const uint32_t *owned; /* trainables whose initial values it contains, ascending */
  uint32_t n_owned;
  psplit_i_text update; /* stageI.update.onnx */
  psplit_i_update_ports update_ports;
} psplit_i_training_stage;

typedef struct psplit_i_layout {
  const psplit_training *training;
  const psplit_i_split *forward; /* valid only while the split is written */
  uint32_t n_stages;             /* of it */
  psplit_i_arena arena;
  psplit_plan plan; /* of the backward model, stages in order of execution */
  bool has_split;
  psplit_i_split backward;
  psplit_i_split again; /* recomputation; stage I of the forward split is its stage I + 1 */
  psplit_i_emit_extra again_extra;
  uint32_t *stage_of; /* [plan.n_stages] of the backward split: its stage in the forward one, ... */
  uint8_t *half_of;   /* ... and which half of that stage's backward pass it is */
  psplit_i_training_stage *stages; /* [forward->plan->n_stages] */
  bool *takes;       /* [n_stages][n_trainables] the stage reads it, forward or backward */
  uint32_t *owner;   /* [n_trainables] stage, or PSPLIT_NONE: unused */
  const char **next; /* [n_trainables] for states: the output that replaces them */
} psplit_i_layout;

/* First node of the backward model with a twin; constants of the model precede it. */
uint32_t psplit_i_first_twin(const psplit_training *training);
/* Stages of `plan` for the nodes of the backward model, and halves of these; constants go to the
 * last of their readers. [nodes of the backward model] each. O(nodes + edges). */
void psplit_i_place_backward(const psplit_training *training, const psplit_plan *plan,
                             uint32_t *out_stage, uint8_t *out_half);
/* A part of a stage's backward pass as a stage of layout->backward; NULL: none. */
static inline const psplit_i_stage *psplit_i_backward_of(const psplit_i_layout *layout,
                                                         uint32_t stage, int half) {
  const uint32_t at = layout->stages[stage].backward[half];
  return at == PSPLIT_NONE ? NULL : &layout->backward.stages[at];
}

/* Errors: UNSUPPORTED, NOMEM, INTERNAL (a backward node without a value that it reads). */
PSPLIT_MUST_USE psplit_code psplit_i_layout_init(psplit_i_layout *layout,
                                                 const psplit_training *training,
                                                 const psplit_i_split *forward, psplit_diag *diag);
void psplit_i_layout_fini(psplit_i_layout *layout);

/* --- recomputation --- */

typedef enum psplit_i_fate {
  PSPLIT_FATE_NONE,  /* not needed */
  PSPLIT_FATE_GIVEN, /* an input or a constant of the model */
  PSPLIT_FATE_KEPT,
  PSPLIT_FATE_AGAIN
} psplit_i_fate;

/* Decisions about values; arrays are the caller's and zeroed. */
typedef struct psplit_i_fates {
  const psplit_i_graph *graph;
  psplit_recompute how; /* not AUTO */
  const bool *made;     /* [n_values] computed here, not received; NULL: all are */
  uint8_t *value;       /* [n_values] psplit_i_fate */
  uint8_t *again;       /* [n_nodes] 1: recomputed */
} psplit_i_fates;

/* Decides whether wanted[n] are kept or recomputed for the backward pass. O(visited values). */
PSPLIT_MUST_USE psplit_code psplit_i_fates_settle(psplit_i_fates *fates, const uint32_t *wanted,
                                                  size_t n, psplit_diag *diag);

/* Additional inputs and outputs of forward files: fills layout->stages[..].stash, weights. */
PSPLIT_MUST_USE psplit_code psplit_i_layout_training_ports(psplit_i_layout *layout,
                                                           psplit_diag *diag);
/* Additional parts of stageI.onnx. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_training_ports(const psplit_i_layout *layout,
                                                          uint32_t stage, psplit_i_arena *arena,
                                                          psplit_diag *diag,
                                                          psplit_i_stage_extra *out);

/* The same for stage I + 1 of layout->again. */
PSPLIT_MUST_USE psplit_code psplit_i_again_training_ports(const psplit_i_layout *layout,
                                                          uint32_t stage, psplit_i_arena *arena,
                                                          psplit_diag *diag,
                                                          psplit_i_stage_extra *out);

PSPLIT_MUST_USE psplit_code psplit_i_training_files(const psplit_i_layout *layout,
                                                    psplit_i_emission *emission);
void psplit_i_training_json(const psplit_i_layout *layout, psplit_i_json *json);

#endif
