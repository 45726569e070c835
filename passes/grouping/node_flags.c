#include "node_flags.h"

bool psplit_i_value_is_constant(const psplit_i_graph *graph, const uint8_t *node_flags,
                                uint32_t value) {
  const psplit_i_value *v = &graph->values[value];
  if (v->producer != PSPLIT_NONE) return node_flags[v->producer] & PSPLIT_I_NODE_FREE;
  return v->initializer != PSPLIT_NONE || v->sparse_initializer != PSPLIT_NONE;
}

bool psplit_i_node_reads_constants(const psplit_i_graph *graph, const uint8_t *node_flags,
                                   const psplit_i_node *node) {
  if (node->n_captures || node->n_bodies) return false;
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    if (node->inputs[i] == PSPLIT_NONE) continue;
    if (!psplit_i_value_is_constant(graph, node_flags, node->inputs[i])) return false;
    if (graph->values[node->inputs[i]].input != PSPLIT_NONE &&
        psplit_i_model_ir_version(graph->model) >= 4)
      return false; /* a default */
  }
  return true;
}
