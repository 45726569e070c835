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
 *   batch_norm.h      batch normalisation as it is to be trained
 *   draws.h           random operators as nodes that read what was drawn
 *   lower.c           Gradient nodes of a model to the nodes that compute them
 *   training_info.c   all in one file, as ONNX describes training
 *   opsets.h          what is made here in an older operator set
 *   loss.h            the nodes of a loss, put to the model's end
 *   weights.h         which initializers and constants are trained
 *   parts.h           the gradient of a weight that several nodes read
 *   write.h           graphs to files
 *
 * Knows neither stages nor costs. Sees shapes/, onnx/, base/. */
#ifndef PSPLIT_GRADIENT_GRADIENT_H
#define PSPLIT_GRADIENT_GRADIENT_H

#include <psplit/gradient.h>
#include <stdio.h>

#include "backward.h"
#include "draws.h"
#include "shape.h"

/* What some of the nodes that read a trainable give to its gradient. */
typedef struct psplit_i_trainable_part {
  psplit_i_ref gradient;
  psplit_gradient_part names; /* before: NULL: it is added to nothing */
} psplit_i_trainable_part;

typedef struct psplit_i_trainable {
  uint32_t value;
  uint32_t n_parts; /* 0: the loss does not depend on it */
  psplit_i_trainable_part *parts;
  psplit_gradient_part *more; /* [n_parts - 1] names of all but the first */
  bool is_input;
  bool is_state; /* no weight: what `next` takes the place of after each micro-batch */
  uint32_t next; /* a value */
} psplit_i_trainable;

struct psplit_gradient {
  psplit_i_arena arena;
  psplit_model *model; /* with the loss at its end, its trained constants initializers */
  psplit_i_shapes *shapes;
  psplit_i_backward b;
  uint32_t loss;
  psplit_i_ref loss_gradient;
  psplit_i_trainable *trainables;
  uint32_t n_trainables;
  bool *is_trainable; /* [n_values] */
  psplit_i_draws draws;
  uint32_t n_added; /* graph fields at the model's end: of the loss, then the draws' inputs */
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

/* Writes the backward model to a file that is open. Errors: as psplit_gradient_write_backward. */
PSPLIT_MUST_USE psplit_code psplit_i_gradient_put_backward(const psplit_gradient *gradient,
                                                           FILE *file, const char *name,
                                                           psplit_diag *diag);

/* Appends a value of the forward model as graph input or output (PSPLIT_GRAPH_*). Errors:
 * UNSUPPORTED (of unknown element type). */
PSPLIT_MUST_USE psplit_code psplit_i_gradient_put_port(const psplit_gradient *gradient,
                                                       uint32_t field, uint32_t value,
                                                       psplit_diag *diag, psplit_i_text *ports);
/* Appends the node that makes the shape of a value, and the output that it is. */
void psplit_i_gradient_put_shape(const psplit_gradient *gradient, uint32_t value, const char *name,
                                 psplit_i_text *nodes, psplit_i_text *ports);

/* A tensor that an update model keeps from step to step. */
typedef struct psplit_i_kept {
  uint32_t trainable;
  const char *name, *new_name; /* its input and output */
  bool is_state;               /* zero at first; else the weight itself */
} psplit_i_kept;

/* Inputs and outputs of an update model besides gradients. */
typedef struct psplit_i_update_ports {
  const char *lr, *scale, *step; /* step: NULL where the method does not count */
  PSPLIT_VEC(psplit_i_kept) kept;
} psplit_i_update_ports;

void psplit_i_update_ports_fini(psplit_i_update_ports *ports);

/* What an update is of: trainables[n], by the optimizer that a text such as "adamw" names. */
typedef struct psplit_i_update_request {
  const psplit_gradient *gradient;
  const char *optimizer;
  const uint32_t *trainables;
  uint32_t n;
} psplit_i_update_request;

/* The update model, appended to *out. *out_ports (may be NULL; zero before, ended with fini in any
 * case) has names in `arena`. Errors: USAGE (the optimizer's text), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_gradient_update(const psplit_i_update_request *request,
                                                     psplit_i_arena *arena, psplit_diag *diag,
                                                     psplit_i_text *out,
                                                     psplit_i_update_ports *out_ports);

/* The same as nodes and initializers of a graph that holds the backward pass and the model, too;
 * its outputs to *out_outputs. Errors: UNSUPPORTED too (psplit_i_fit_opset). */
PSPLIT_MUST_USE psplit_code psplit_i_gradient_update_nodes(
  const psplit_i_update_request *request, int64_t opset, psplit_i_arena *arena, psplit_diag *diag,
  psplit_i_text *out_fields, psplit_i_text *out_outputs, psplit_i_update_ports *out_ports);

psplit_i_source psplit_i_gradient_source(const psplit_gradient *gradient, uint32_t value);

#endif
