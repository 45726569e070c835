/* Evaluates a loss in float64, from the prediction of the stages: in float32, a mean of squares is
 * insensitive to a prediction that is small relative to its target, so that finite differences
 * would be meaningless. */
#ifndef PSPLIT_RUNTIME_EXACT_LOSS_H
#define PSPLIT_RUNTIME_EXACT_LOSS_H

#include "train_pass.h"

typedef enum psplit_i_loss_kind {
  PSPLIT_I_LOSS_OTHER, /* it is not known how it is computed */
  PSPLIT_I_LOSS_SQUARES,
  PSPLIT_I_LOSS_BINARY,
  PSPLIT_I_LOSS_CLASSES
} psplit_i_loss_kind;

typedef struct psplit_i_exact_loss {
  psplit_i_loss_kind kind;
  int64_t axis, ignored;
  bool ignores;
  uint32_t prediction, target; /* slots */
} psplit_i_exact_loss;

/* What the manifest's text says of the loss, where its prediction and target have slots. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_exact_loss_find(const psplit_i_train_pass *pass,
                                                     psplit_diag *diag, psplit_i_exact_loss *out);

/* Its value for what the slots hold, and how far off it may be as a prediction of 24 bits is
 * rounded. False: of these types and shapes it cannot be told. */
bool psplit_i_exact_loss_value(const psplit_i_train_pass *pass, const psplit_i_exact_loss *loss,
                               double *out_value, double *out_grain);

/* Element `i` of a tensor of type FLOAT or DOUBLE. */
double psplit_i_real_at(const psplit_i_tensor_view *view, uint64_t i);

#endif
