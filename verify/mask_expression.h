/* Random operators that read masks, as expressions. */
#ifndef PSPLIT_VERIFY_MASK_EXPRESSION_H
#define PSPLIT_VERIFY_MASK_EXPRESSION_H

#include <psplit/gradient.h>

#include "verify.h"

enum { PSPLIT_I_MASK_MOST_NODES = 8 }; /* that one operator becomes */

/* Both models, read side by side. */
typedef struct psplit_i_mask_walk {
  const psplit_i_proof *p;
  const psplit_model *before, *after;
  const psplit_i_graph *whole, *edited; /* their graphs */
  const psplit_i_shapes *shapes;        /* of `edited` */
  const psplit_i_training_table *table;
  uint32_t n, m; /* the next node of each */
  uint32_t mask; /* the next row of the table */
} psplit_i_mask_walk;

/* The nodes of the edited model that stand for one of the whole model. */
typedef struct psplit_i_mask_part {
  const psplit_i_mask_walk *w;
  uint32_t first, n;
  bool used[PSPLIT_I_MASK_MOST_NODES];
} psplit_i_mask_part;

/* An operator as it has to be. */
typedef struct psplit_i_mask_expected {
  psplit_draw_kind kind;
  double ratio;
  int32_t elem;        /* of x, or where there is none of y */
  int32_t y_elem;      /* of the result */
  const char *like;    /* "" where nothing is */
  double factor, term; /* y is factor * what is drawn + term; KEEP takes neither */
} psplit_i_mask_expected;

/* Whether an optional input is there. */
static inline bool psplit_i_is_given(const psplit_i_node *node, uint32_t input) {
  return input < node->n_inputs && node->inputs[input] != PSPLIT_NONE;
}

/* Fills *out but for its ratio. Types of inputs are those that the edited model has, which is
 * inferred from what both have. */
void psplit_i_mask_expect(const psplit_i_mask_walk *w, const psplit_gradient *gradient,
                          const psplit_i_node *node, psplit_i_mask_expected *out);

/* Whether the nodes of the part, all of them, compute what the operator has to be, and its second
 * output is the mask. `is_shaped`: what is drawn is brought to the operator's shape first. False as
 * well when out of memory, which scratch->failed tells. */
bool psplit_i_mask_is_expression(psplit_i_mask_part *at, const psplit_i_mask_expected *e,
                                 const psplit_i_node *node, bool is_shaped, psplit_i_text *scratch);

#endif
