/* Maximum flow for networks with many short augmenting paths. */
#ifndef PSPLIT_PARTITION_TREE_FLOW_H
#define PSPLIT_PARTITION_TREE_FLOW_H

#include "flow.h"

typedef struct psplit_i_tree_node {
  uint32_t up;       /* arc towards the root of its tree */
  uint32_t seen;     /* when its way to the root was last walked, */
  uint32_t far;      /* and how long it was then */
  uint32_t next;     /* in the queue of those whose arcs are to be looked at, or NONE */
  uint8_t tree;      /* the source's, the sink's or none */
  bool queued, lost; /* lost: cut off from its root */
} psplit_i_tree_node;

typedef struct psplit_i_tree_flow {
  PSPLIT_VEC(psplit_i_tree_node) nodes;
  PSPLIT_VEC(uint32_t) lost;
} psplit_i_tree_flow; /* a zeroed one is empty; to be freed by fini */

/* A minimum cut. If the budget ended before it was found, `whole` is false: then the value is still
 * a lower bound on it, but `side` is meaningless. */
typedef struct psplit_i_tree_cut {
  int64_t value;
  bool whole;
  bool *side; /* [nodes] reachable from the source in the residual network; the caller's memory */
} psplit_i_tree_cut;

void psplit_i_tree_flow_fini(psplit_i_tree_flow *trees);
/* Computes a maximum flow from `source` to `sink`, as psplit_i_flow_run does, and the cut that
 * limits it. False when out of memory. */
bool psplit_i_tree_flow_run(psplit_i_tree_flow *trees, psplit_i_flow *flow, uint32_t source,
                            uint32_t sink, psplit_i_budget *budget, psplit_i_tree_cut *out);

#endif
