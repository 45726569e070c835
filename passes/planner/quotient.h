/* The quotient graph of a grouping as plain arrays: groups, the tensors between them summed,
 * levels. Contracting one gives the next, so that coarsening is a series of linear steps. */
#ifndef PSPLIT_PASSES_QUOTIENT_H
#define PSPLIT_PASSES_QUOTIENT_H

#include "planner.h"

typedef struct psplit_i_quotient {
  uint32_t n;           /* groups */
  int64_t *ns;          /* [n] time on the first class of devices */
  uint32_t *pin;        /* [n] mark of nodes that are kept apart, or PSPLIT_NONE */
  uint32_t *succ_off;   /* [n + 1] */
  uint32_t *succ;       /* distinct successors */
  uint64_t *succ_bytes; /* of the tensors between the two, summed */
  uint32_t *pred_off;   /* [n + 1] */
  uint32_t *pred;
  uint64_t *pred_bytes;
  uint32_t *order; /* [n] a topological order */
  uint32_t *level; /* [n] edges on the longest path from a group without predecessors */
} psplit_i_quotient;

/* The quotient of the planner's grouping; group ids as psplit_i_grouping_number gives them in
 * group[n_nodes]. False when out of memory; what was made then goes with the arena. O(graph). */
bool psplit_i_quotient_make(const psplit_planner *planner, const uint32_t *group,
                            psplit_i_arena *arena, psplit_i_quotient *out);

/* Contracts by label[fine->n], labels 0..n_labels-1, every label used. The result must be acyclic;
 * false when it is not, or out of memory. O(edges). */
bool psplit_i_quotient_contract(const psplit_i_quotient *fine, const uint32_t *label,
                                uint32_t n_labels, psplit_i_arena *arena, psplit_i_quotient *out);

#endif
