/* Inputs of a checked pass: the model's initial weights, and data. */
#ifndef PSPLIT_RUNTIME_FILL_PASS_H
#define PSPLIT_RUNTIME_FILL_PASS_H

#include <psplit/run_gradients.h>

#include "train_pass.h"

/* The model whose initializers are the weights of a split that trains. */
typedef struct psplit_i_checked_model {
  const psplit_model *model; /* the caller's, or the last of: */
  psplit_model *inlined;     /* where the stages are of a model with Ifs inlined: that */
  psplit_model *moved;       /* where weights are Constant nodes: with initializers for them */
} psplit_i_checked_model;

/* `manifest` has the object "training". To be closed also where this fails. Errors: USAGE (Ifs are
 * inlined, and options->model_path is NULL), those of psplit_model_open, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_checked_model_open(
  const psplit_model *model, const psplit_i_manifest *manifest,
  const psplit_gradient_check_options *options, psplit_diag *diag, psplit_i_checked_model *out);
void psplit_i_checked_model_close(psplit_i_checked_model *checked); /* a zeroed one is fine */

/* Puts a tensor, which is taken over, in the slot of that name. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pass_fill(psplit_i_train_pass *pass, psplit_i_pass_kind kind,
                                               const char *name, psplit_i_tensor *tensor,
                                               psplit_diag *diag);
/* All weights, and zeros that their gradients are added to. Errors: those of reading initializers.
 */
PSPLIT_MUST_USE psplit_code psplit_i_pass_fill_weights(psplit_i_train_pass *pass,
                                                       const psplit_model *model,
                                                       psplit_diag *diag);
/* All inputs that a stage reads: the first of what `given` says of each. Errors: those of
 * psplit_i_feed_open. */
PSPLIT_MUST_USE psplit_code psplit_i_pass_fill_data(psplit_i_train_pass *pass,
                                                    const psplit_feed_options *given,
                                                    psplit_diag *diag);
/* The first stage that reads an input of the model, and how its file has it; NULL and PSPLIT_NONE:
 * none does. */
const psplit_i_session_port *psplit_i_pass_find_input(const psplit_i_train_pass *pass,
                                                      const char *name, uint32_t *out_stage);

#endif
