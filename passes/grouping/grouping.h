/* A partition of the graph's nodes into convex groups that can only be merged into larger convex
 * groups: a merge that would make the quotient graph cyclic is refused.
 *
 * Kept as a union-find with member lists and a topological order of the groups. A merge looks at
 * the groups between the first and the last of those it merges, and moves what they reach behind
 * them (Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", JEA
 * 11, 2006, applied to contraction). Free nodes (functions of constants) are
 * outside: they neither order groups nor join them. */
#ifndef PSPLIT_PASSES_GROUPING_H
#define PSPLIT_PASSES_GROUPING_H

#include "base.h"
#include "graph.h"

typedef struct psplit_i_grouping {
  const psplit_i_graph *graph;
  const uint8_t *node_flags; /* PSPLIT_I_NODE_FREE nodes are left out */
  uint32_t n_groups;         /* groups of nodes that are not free */
  uint32_t *leader;          /* [n_nodes] union-find */
  uint32_t *next;            /* [n_nodes] circular list of a group's members */
  uint32_t *size;            /* [n_nodes] members, at the leader */
  uint32_t *position;        /* [n_nodes] place in `order`, at the leader */
  uint32_t *order;           /* [n_nodes] leaders in topological order, with holes (PSPLIT_NONE) */
  uint32_t *pin;  /* [n_nodes] mark that keeps the group apart, or PSPLIT_NONE, at the leader */
  uint32_t *mark; /* [n_nodes] scratch: stamp of the last search that met the group */
  uint32_t stamp;
  uint64_t work; /* places that merges looked at so far */
  bool assigned; /* by labels: with other pins other nodes might have come together */
} psplit_i_grouping;

/* One node a group, in a depth-first topological order (so that chains lie together). pin[n_nodes],
 * a mark by which nodes are kept apart or PSPLIT_NONE, is copied. All arrays in `arena`. False when
 * out of memory. */
bool psplit_i_grouping_init(psplit_i_grouping *grouping, const psplit_i_graph *graph,
                            const uint8_t *node_flags, const uint32_t *pin, psplit_i_arena *arena);

/* Leader of the node's group. */
uint32_t psplit_i_group_of(const psplit_i_grouping *grouping, uint32_t node);

/* Merges the groups of `nodes` into one if that is convex, no two have different pins (marks),
 * and the search stays within a bound on work; *out_merged is false, and nothing changed,
 * otherwise. Errors: NOMEM, nothing changed. */
PSPLIT_MUST_USE psplit_code psplit_i_group_merge(psplit_i_grouping *grouping, const uint32_t *nodes,
                                                 uint32_t n, psplit_diag *diag, bool *out_merged);

/* Replaces the groups by those of label[n_nodes] (PSPLIT_NONE for free nodes): labels 0..n_labels-1
 * in a topological order of the quotient graph, each the union of groups there are. Pins come
 * along. */
void psplit_i_grouping_assign(psplit_i_grouping *grouping, const uint32_t *label,
                              uint32_t n_labels);

/* Dense numbers 0..n_groups-1 in topological order for every node that is not free, PSPLIT_NONE for
 * free ones, in out_group[n_nodes]. */
void psplit_i_grouping_number(const psplit_i_grouping *grouping, uint32_t *out_group);

#endif
