/* The nodes of a loss. */
#ifndef PSPLIT_GRADIENT_LOSS_H
#define PSPLIT_GRADIENT_LOSS_H

#include "shape.h"

/* Fields of a GraphProto that compute the loss that `text` describes (psplit_training_options.loss)
 * at the end of the graph: nodes of the model's own opset, the input for labels or targets where no
 * value has that name, and the loss as an output. *out_loss is its name, in `arena`. Warns of
 * classes whose axis is not given and may be another.
 * Errors: USAGE (not a loss, no such value), UNSUPPORTED (no operators of the opset
 * compute it), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_loss_fields(const psplit_i_shapes *shapes, const char *text,
                                                 psplit_i_arena *arena, const psplit_logger *logger,
                                                 psplit_diag *diag, psplit_i_text *out_fields,
                                                 const char **out_loss);

#endif
