/* Random operators as nodes that read what was drawn.
 *
 * A runtime's generator cannot be told to draw the same again, so that a micro-batch that is
 * computed again, or by another replica, would be another. Here what is drawn is an input of the
 * graph, and the operator becomes ordinary nodes:
 *   Dropout in training    y = Where(mask, x * (1 / (1 - ratio)), 0); its mask output is the mask
 *   Bernoulli              y = Cast(u < x)
 *   RandomUniform, -Like   y = Cast(u * (high - low) + low)
 *   RandomNormal, -Like    y = Cast(n * scale + mean)
 * with the mask true with probability 1 - ratio, u uniform in [0, 1), n standard normal. An input's
 * shape is that of the result, whose sizes have to be sums of products of symbols that the model's
 * inputs name: who fills it knows them then. Where they are no lone symbols the input, of which a
 * graph cannot say such a size, is reshaped to Shape(x). */
#ifndef PSPLIT_GRADIENT_DRAWS_H
#define PSPLIT_GRADIENT_DRAWS_H

#include <psplit/gradient.h>

#include "node_edits.h"
#include "shape.h"

typedef struct psplit_i_draw {
  psplit_draw_kind kind;
  uint32_t place;    /* of the operator in the model's graph */
  const char *input; /* of the graph that the model becomes */
  const char *node;  /* the operator, as messages call it */
  const char *like;  /* a value of the same shape */
  double ratio;      /* KEEP */
} psplit_i_draw;

typedef PSPLIT_VEC(psplit_i_draw) psplit_i_draws;

/* What the random operators of the model's graph become, by node; their inputs appended to
 * *inputs, and to *out in the order of nodes. Strings are in `arena`. Errors: UNSUPPORTED (an
 * opset that has no such nodes; a ratio, a type or sizes that are not known), NOMEM, IO. */
PSPLIT_MUST_USE psplit_code psplit_i_draw_edits(const psplit_i_shapes *shapes, psplit_dropout how,
                                                psplit_i_arena *arena, psplit_diag *diag,
                                                psplit_i_text *inputs, psplit_i_node_edits *edits,
                                                psplit_i_draws *out);

/* Whether the result of a Dropout node is its input, as far as the graph tells. Errors: NOMEM, IO.
 */
PSPLIT_MUST_USE psplit_code psplit_i_dropout_keeps(const psplit_i_shapes *shapes,
                                                   const psplit_i_node *node, psplit_diag *diag,
                                                   bool *out);

/* Refuses what the loss is made of and that still draws by itself. Errors: UNSUPPORTED, NOMEM, IO.
 */
PSPLIT_MUST_USE psplit_code psplit_i_refuse_draws(const psplit_i_shapes *shapes, uint32_t loss,
                                                  psplit_diag *diag);

/* Says how many Dropouts do nothing. */
PSPLIT_MUST_USE psplit_code psplit_i_say_idle_dropouts(const psplit_i_shapes *shapes,
                                                       const psplit_logger *logger,
                                                       psplit_diag *diag);

#endif
