/* gradient/: reverse-mode differentiation of an ONNX graph into an ONNX graph.
 *
 * The backward pass is an ordinary model of opset 18, of standard operators alone. Its inputs are
 * values of the forward pass (stashed activations, weights), and loss.grad; its outputs are
 * gradients. Every node of it has a twin in the forward graph: the stage of a backward node is that
 * of its twin, mirrored.
 *
 *   backward.h        the graph under construction
 *   differentiate.h   need analysis, the walk over nodes, sums of contributions
 *   rule.h            what a rule sees and calls; rules.def and rules_*.c: one rule an operator
 *   loss.h            the nodes of a loss, put to the model's end
 *   weights.h         which initializers are trained
 *   write.h           graphs to files
 *
 * Knows neither stages nor costs. Sees shapes/, onnx/, base/. */
#ifndef PSPLIT_GRADIENT_GRADIENT_H
#define PSPLIT_GRADIENT_GRADIENT_H

#include <psplit/gradient.h>

#include "backward.h"
#include "shape.h"

typedef struct psplit_i_trainable {
  uint32_t value;
  psplit_i_ref gradient; /* PSPLIT_NONE: the loss does not depend on it */
  const char *gradient_name;
  bool is_input;
} psplit_i_trainable;

struct psplit_gradient {
  psplit_i_arena arena;
  psplit_model *model; /* with the loss at its end */
  psplit_i_shapes *shapes;
  psplit_i_backward b;
  uint32_t loss;
  psplit_i_ref loss_gradient;
  psplit_i_trainable *trainables;
  uint32_t n_trainables;
  bool *is_trainable; /* [n_values] */
  PSPLIT_VEC(psplit_i_ref) stashed;
  uint32_t n_backward_nodes;
  uint32_t *twins; /* [n_backward_nodes] */
};

/* Where the backward model has a forward value from. */
typedef enum psplit_i_source {
  PSPLIT_FROM_INPUT, /* it is an input of the forward model too: data or a weight */
  PSPLIT_FROM_STASH, /* an output of the forward model */
  PSPLIT_FROM_COPY   /* a constant, which both models hold */
} psplit_i_source;

psplit_i_source psplit_i_gradient_source(const psplit_gradient *gradient, uint32_t value);

#endif
