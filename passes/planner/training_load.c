/* What a plan for training counts besides the forward pass. */
#include "planner.h"

/* A live reader of what the node makes that is not free; PSPLIT_NONE: none reads it. */
static uint32_t first_reader(const psplit_planner *planner, uint32_t node) {
  const psplit_i_graph *graph = planner->graph;
  for (uint32_t o = 0; o < graph->nodes[node].n_outputs; o++) {
    const uint32_t value = graph->nodes[node].outputs[o];
    if (value == PSPLIT_NONE) continue;
    for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++)
      if (!(planner->node_flags[graph->consumers[c]] & PSPLIT_I_NODE_DEAD))
        return graph->consumers[c];
  }
  return PSPLIT_NONE;
}

psplit_code psplit_i_planner_add_training(psplit_planner *planner, psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  const size_t n_nodes = graph->n_nodes;
  if (!planner->options.training) return PSPLIT_OK;
  planner->node_more_ns =
    psplit_i_arena_array(&planner->arena, n_nodes * planner->n_classes, sizeof(int64_t));
  if (!planner->node_more_ns) return psplit_i_nomem(diag);
  for (uint32_t c = 0; c < planner->n_classes; c++) {
    int64_t *ns = &planner->node_ns[c * n_nodes], *more = &planner->node_more_ns[c * n_nodes];
    const int64_t *given = &planner->options.training->node_ns[planner->class_device[c] * n_nodes];
    for (size_t n = 0; n < n_nodes; n++) more[n] = given[n];
    for (uint32_t t = 0; t < graph->n_nodes; t++) {
      const uint32_t n = graph->topo[t];
      if (!(planner->node_flags[n] & PSPLIT_I_NODE_FREE)) continue;
      const uint32_t reader = first_reader(planner, n);
      if (reader != PSPLIT_NONE) more[reader] = psplit_i_sat_add_i64(more[reader], more[n]);
      more[n] = 0;
    }
    for (size_t n = 0; n < n_nodes; n++) {
      ns[n] = psplit_i_sat_add_i64(ns[n], more[n]);
      if (c == 0 && planner->node_plenty_ns)
        planner->node_plenty_ns[n] = psplit_i_sat_add_i64(planner->node_plenty_ns[n], more[n]);
    }
  }
  return PSPLIT_OK;
}
