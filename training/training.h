/* training/: a plan and the backward pass of its model to files that train in stages.
 *
 *   training.c  the backward pass as a model of its own, opened like any other
 *   layout.c    which stage has which backward node, and where each of its inputs comes from
 *   rim.c       what a stage's forward file gives and takes besides
 *   files.c     stageI.backward.onnx, stageI.update.onnx, stageI.weights.onnx
 *   manifest.c  the object "training" of pipeline.json
 * The backward pass is split like a model: its plan is the forward plan mirrored, and emit/ checks
 * and writes its stages. Sees gradient/ and emit/. */
#ifndef PSPLIT_TRAINING_TRAINING_H
#define PSPLIT_TRAINING_TRAINING_H

#include <psplit/training.h>

#include "emit.h"
#include "gradient.h"

/* What an input of the backward model is. */
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

struct psplit_training {
  psplit_i_arena arena;
  psplit_gradient *gradient;
  psplit_model *backward;
  psplit_i_feeding *feeds;    /* [values of backward] of its inputs */
  uint32_t *output_trainable; /* [values of backward] of its outputs: the trainable */
  psplit_weight_form weights;
  const char *optimizer; /* or NULL */
  bool *left_out;        /* [values of the model] initializers that no stage holds; or NULL */
};

/* --- layout --- */

/* A value that the backward pass of a stage reads and its forward file gives. */
typedef struct psplit_i_stash {
  uint32_t index;   /* of the gradient's stash */
  const char *name; /* input or output of stageI.onnx */
  bool added;       /* the output is there for this alone */
} psplit_i_stash;

typedef struct psplit_i_training_stage {
  uint32_t backward; /* stage of the backward split, or PSPLIT_NONE */
  const psplit_i_stash *stash;
  uint32_t n_stash;
  const uint32_t *weights; /* trainables that stageI.onnx takes, ascending */
  uint32_t n_weights;
  const uint32_t *owned; /* trainables whose first values it holds, ascending */
  uint32_t n_owned;
  const uint32_t *updated; /* trainables whose gradients arise here, ascending */
  uint32_t n_updated;
  psplit_i_text update; /* stageI.update.onnx */
  psplit_i_update_ports update_ports;
} psplit_i_training_stage;

typedef struct psplit_i_layout {
  const psplit_training *training;
  const psplit_i_split *forward;
  psplit_i_arena arena;
  psplit_plan plan; /* of the backward model, stages in the order in which they run */
  bool has_split;
  psplit_i_split backward;
  uint32_t *stage_of; /* [plan.n_stages] of the backward split: its stage in the forward one */
  psplit_i_training_stage *stages; /* [forward->plan->n_stages] */
  uint32_t *owner;                 /* [n_trainables] stage, or PSPLIT_NONE: no stage reads it */
} psplit_i_layout;

/* Errors: UNSUPPORTED, NOMEM, INTERNAL (a backward node without a value that it reads). */
PSPLIT_MUST_USE psplit_code psplit_i_layout_init(psplit_i_layout *layout,
                                                 const psplit_training *training,
                                                 const psplit_i_split *forward, psplit_diag *diag);
void psplit_i_layout_fini(psplit_i_layout *layout);

/* The forward file's rim: fills layout->stages[..].stash, weights. */
PSPLIT_MUST_USE psplit_code psplit_i_layout_rims(psplit_i_layout *layout, psplit_diag *diag);
/* What stageI.onnx has besides the model's. */
PSPLIT_MUST_USE psplit_code psplit_i_stage_rim(const psplit_i_layout *layout, uint32_t stage,
                                               psplit_i_arena *arena, psplit_diag *diag,
                                               psplit_i_stage_extra *out);

PSPLIT_MUST_USE psplit_code psplit_i_training_files(const psplit_i_layout *layout,
                                                    psplit_i_emission *emission);
void psplit_i_training_json(const psplit_i_layout *layout, psplit_i_json *json);

#endif
