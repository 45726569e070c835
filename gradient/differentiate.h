/* One run of reverse-mode differentiation: from a scalar of a graph back to some of its values.
 *
 * A value *depends* if a gradient wanted by the caller is its own or one that it is made of, and
 * *reaches* if the loss is made of it, both along edges that carry gradients. Nodes between are
 * visited in reverse topological order, each by its operator's rule. Contributions to one value are
 * added in the order in which they come, from the last consumer to the first, so that the order of
 * sums is a function of the graph alone; each Add belongs to the newest contributor. */
#ifndef PSPLIT_GRADIENT_DIFFERENTIATE_H
#define PSPLIT_GRADIENT_DIFFERENTIATE_H

#include "backward.h"
#include "shape.h"

typedef struct psplit_i_pass {
  const psplit_i_graph *graph;
  const psplit_i_shapes *shapes;
  psplit_i_backward *b;
  const uint32_t *wanted; /* [n_wanted] values, distinct */
  uint32_t n_wanted;
  uint32_t *origin;       /* [n_values] a wanted value that it depends on, or PSPLIT_NONE */
  bool *reaches;          /* [n_values] */
  psplit_i_ref *gradient; /* [n_values] sum so far, or PSPLIT_NONE */
  /* The rule of a node, or NULL. */
  const struct psplit_i_gradient_rule *(*rule_of)(const psplit_i_node *node);
  psplit_diag *diag;
  psplit_code code; /* of the first rule that refused */
} psplit_i_pass;

/* A value to differentiate. */
typedef struct psplit_i_differentiated {
  uint32_t value;        /* a scalar of the graph */
  psplit_i_ref gradient; /* that reaches it, of its shape: all gradients are multiplied by it */
} psplit_i_differentiated;

/* Differentiates the scalar loss.value of the graph with respect to wanted[n].
 * b  initialised for this graph; nodes are added to it.
 * out_gradients[n]  a value of `b`, or PSPLIT_NONE where the loss does not depend on it.
 * Errors: UNSUPPORTED (a node on a path between has no rule, or one that refuses: the message names
 * node, operator and a value of `wanted`), NOMEM. O(nodes + edges). */
PSPLIT_MUST_USE psplit_code psplit_i_differentiate(const psplit_i_shapes *shapes,
                                                   psplit_i_differentiated loss,
                                                   const uint32_t *wanted, uint32_t n,
                                                   psplit_i_backward *b, psplit_diag *diag,
                                                   psplit_i_ref *out_gradients);

#endif
