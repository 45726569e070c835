/* The quotient graph of a grouping as arrays: groups, the total tensors between them, and levels.
 * Contracting a quotient graph makes another one, so coarsening is a series of linear steps. */
#ifndef PSPLIT_PASSES_QUOTIENT_H
#define PSPLIT_PASSES_QUOTIENT_H

#include "planner.h"

typedef struct psplit_i_quotient {
  uint32_t n;           /* number of groups */
  int64_t *ns;          /* [n] time on the first class of devices */
  uint32_t *pin;        /* [n] mark of nodes that are kept apart, or PSPLIT_NONE */
  uint32_t *succ_off;   /* [n + 1] */
  uint32_t *succ;       /* distinct successors */
  uint64_t *succ_bytes; /* total bytes of the tensors to the successor */
  uint32_t *pred_off;   /* [n + 1] */
  uint32_t *pred;
  uint64_t *pred_bytes;
  uint32_t *order; /* [n] a topological order */
  uint32_t *level; /* [n] edges on the longest path from a group without predecessors */
} psplit_i_quotient;

/* The quotient of the planner's grouping, whose group ids are those of psplit_i_grouping_number in
 * group[n_nodes]. Returns false if out of memory; the arena owns everything. O(graph). */
bool psplit_i_quotient_make(const psplit_planner *planner, const uint32_t *group,
                            psplit_i_arena *arena, psplit_i_quotient *out);

/* Contracts by label[fine->n] with labels 0..n_labels-1, all of which are used. Returns false if
 * the result has a cycle, or if out of memory. O(edges). */
bool psplit_i_quotient_contract(const psplit_i_quotient *fine, const uint32_t *label,
                                uint32_t n_labels, psplit_i_arena *arena, psplit_i_quotient *out);

#endif
