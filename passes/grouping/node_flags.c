#include "node_flags.h"

bool psplit_i_value_is_constant(const psplit_i_graph *graph, const uint8_t *node_flags,
                                uint32_t value) {
  const psplit_i_value *v = &graph->values[value];
  if (v->producer != PSPLIT_NONE) return node_flags[v->producer] & PSPLIT_I_NODE_FREE;
  return v->initializer != PSPLIT_NONE || v->sparse_initializer != PSPLIT_NONE;
}
