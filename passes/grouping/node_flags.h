/* What is known of nodes besides their costs. */
#ifndef PSPLIT_PASSES_NODE_FLAGS_H
#define PSPLIT_PASSES_NODE_FLAGS_H

#include "base.h"
#include "graph.h"

enum {
  PSPLIT_I_NODE_DEAD = 1, /* reaches no output: kept, costs nothing, runtimes drop it */
  /* A function of constants alone: runtimes fold it, and every stage that needs its result may hold
   * a copy. */
  PSPLIT_I_NODE_FREE = 2,
  PSPLIT_I_NODE_REPEATABLE = 4 /* same inputs, same outputs: a copy may stand in for a transfer */
};

/* Whether a node of these flags runs: constants are folded, dead nodes dropped, wherever they
 * stand. */
static inline bool psplit_i_node_runs(uint8_t flags) {
  return !(flags & (PSPLIT_I_NODE_DEAD | PSPLIT_I_NODE_FREE));
}

/* Whether a value is there before the model runs: an initializer, dense or sparse, or what a node
 * makes that node_flags[n_nodes] call free. */
bool psplit_i_value_is_constant(const psplit_i_graph *graph, const uint8_t *node_flags,
                                uint32_t value);
/* Whether all that a node reads is such a value, which no caller can override. */
bool psplit_i_node_reads_constants(const psplit_i_graph *graph, const uint8_t *node_flags,
                                   const psplit_i_node *node);

#endif
