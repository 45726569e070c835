/* Contracts nodes to clusters: nodes that must share a stage, nodes that are merged, and nodes on a
 * common cycle. Orders the clusters. */
#ifndef PSPLIT_PARTITION_CLASSES_H
#define PSPLIT_PARTITION_CLASSES_H

#include "problem.h"

static inline bool psplit_i_is_backward(const psplit_problem *p, uint32_t v) {
  return p->node_flags && (p->node_flags[v] & PSPLIT_NODE_BACKWARD);
}

typedef struct psplit_i_classes {
  uint32_t n;
  uint32_t *class_of;        /* [n_nodes] dense ids, in a topological order */
  uint32_t *succ_off, *succ; /* [n + 1] and edges between classes, distinct and ascending */
} psplit_i_classes;

/* succ_off and succ live in `arena`, class_of in `scratch`. merge[n_nodes] (may be NULL) names
 * another node of the same class for each node. Unordered: edges impose no order. O(E log E).
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_classes_make(const psplit_problem *problem,
                                                  const uint32_t *merge, bool unordered,
                                                  psplit_i_arena *arena, psplit_i_arena *scratch,
                                                  psplit_i_classes *out);

#endif
