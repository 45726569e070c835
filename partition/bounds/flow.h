/* Maximum flow on networks that grow. */
#ifndef PSPLIT_PARTITION_FLOW_H
#define PSPLIT_PARTITION_FLOW_H

#include "base.h"
#include "budget.h"

/* Maximum flow by Dinic's algorithm on a network that may grow between calls. */
typedef struct psplit_i_flow_arc {
  uint32_t to, next; /* next: arc + 1 of the same tail, 0: last */
  int64_t cap;       /* what is left; the reverse arc is at index ^ 1 */
} psplit_i_flow_arc;

typedef struct psplit_i_flow {
  PSPLIT_VEC(uint32_t) head;
  PSPLIT_VEC(psplit_i_flow_arc) arcs;
  PSPLIT_VEC(uint32_t) scratch;
} psplit_i_flow;

void psplit_i_flow_reset(psplit_i_flow *flow); /* to the empty network; keeps memory */
void psplit_i_flow_fini(psplit_i_flow *flow);
bool psplit_i_flow_copy(psplit_i_flow *to,
                        const psplit_i_flow *from); /* false when out of memory */
/* Id of a new node, NONE when out of memory. */
uint32_t psplit_i_flow_node(psplit_i_flow *flow);
bool psplit_i_flow_arc_add(psplit_i_flow *flow, uint32_t from, uint32_t to, int64_t cap);
/* Augments the flow from `source` to `sink` to the maximum and adds the increase to *inout_value.
 * Stops early at `enough`, or when the budget is spent: then the value is still a lower bound on
 * the minimum cut, but psplit_i_flow_side is meaningless. False when out of memory. */
bool psplit_i_flow_run(psplit_i_flow *flow, uint32_t source, uint32_t sink, int64_t enough,
                       psplit_i_budget *budget, int64_t *inout_value);
/* After a run: side[v] = reachable from `source` in the residual network. */
bool psplit_i_flow_side(psplit_i_flow *flow, uint32_t source, bool *side);

#endif
