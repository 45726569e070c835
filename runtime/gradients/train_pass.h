/* Runs one micro-batch through the files of training stages, forward and backward, in the calling
 * thread.
 *
 * Every tensor has a slot: weights, data, transfers in both directions, the stash, recomputed
 * values, gradients. A file reads its inputs from slots and writes its outputs to slots. */
#ifndef PSPLIT_RUNTIME_TRAIN_PASS_H
#define PSPLIT_RUNTIME_TRAIN_PASS_H

#include "ort.h"
#include "pipeline.h"

typedef struct psplit_i_pass_file {
  psplit_i_session session; /* of no library: there is no such file */
  const char **input_names, **output_names;
  uint32_t *input_slots, *output_slots;
  uint32_t n_inputs, n_outputs;
  uint32_t n_sent; /* of the outputs, the first ones: without the stash */
} psplit_i_pass_file;

typedef struct psplit_i_train_pass {
  const psplit_i_ort *ort;
  const psplit_i_pipe *pipe;
  psplit_i_arena arena;
  psplit_i_intern names; /* of what slots hold, with what it is before it */
  uint32_t *slot_of;     /* [names] a name's; two may share one */
  psplit_i_tensor **slots;
  uint32_t n_slots;
  psplit_i_pass_file *forward, *again, *backward, *weight_gradients; /* [n_stages] */
} psplit_i_train_pass;

/* What a name in a slot is. */
typedef enum psplit_i_pass_kind {
  PSPLIT_I_PASS_WEIGHT,
  PSPLIT_I_PASS_DATA,   /* an input of the model */
  PSPLIT_I_PASS_LOSS,   /* what gradients are multiplied by */
  PSPLIT_I_PASS_BEFORE, /* what gradients of weights are added to */
  PSPLIT_I_PASS_SENT,   /* of a stage, by its tensor */
  PSPLIT_I_PASS_STASH,  /* of a stage, by its tensor */
  PSPLIT_I_PASS_AGAIN,  /* of a stage */
  PSPLIT_I_PASS_BACK    /* of a stage: an output of its backward pass, of either file */
} psplit_i_pass_kind;

/* Opens all files; `pipe`, which outlives the pass, has to have the object "training". Errors:
 * INVALID (the manifest names what nothing gives), those of sessions, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_train_pass_open(const psplit_i_ort *ort,
                                                     const psplit_i_pipe *pipe,
                                                     const psplit_i_session_options *options,
                                                     psplit_diag *diag, psplit_i_train_pass *out);
void psplit_i_train_pass_close(psplit_i_train_pass *pass); /* a zeroed one is fine */

/* *out_slot is PSPLIT_NONE where no file takes or gives it. `stage` counts for kinds of a stage
 * alone. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_train_pass_slot(const psplit_i_train_pass *pass,
                                                     psplit_i_pass_kind kind, uint32_t stage,
                                                     const char *name, psplit_diag *diag,
                                                     uint32_t *out_slot);
/* Puts a tensor, which is taken over, in place of what the slot holds; PSPLIT_NONE releases it. */
void psplit_i_train_pass_put(psplit_i_train_pass *pass, uint32_t slot, psplit_i_tensor *tensor);

/* Runs the stages from `first` on, with the stash or without. Inputs with an empty slot are not
 * fed. Errors: those of psplit_i_session_run. */
PSPLIT_MUST_USE psplit_code psplit_i_train_pass_forward(psplit_i_train_pass *pass, uint32_t first,
                                                        bool stash, psplit_diag *diag);
/* What is computed again, and all backward passes, from the last stage to the first. */
PSPLIT_MUST_USE psplit_code psplit_i_train_pass_backward(psplit_i_train_pass *pass,
                                                         psplit_diag *diag);

#endif
