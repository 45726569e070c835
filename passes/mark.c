/* needs: nothing  keeps: everything  breaks: nothing
 *
 * Sorts nodes by what they contribute: dead nodes reach no output, free ones are functions of
 * constants alone, repeatable ones give the same results again. Nothing is removed: a split holds
 * every node of its model, and runtimes drop what is dead by themselves. */
#include <string.h>

#include "operator.h"
#include "pass.h"

static bool graph_is_repeatable(const psplit_i_graph *graph, const psplit_model *model,
                                const bool *function_repeatable);

static bool node_is_repeatable(const psplit_i_node *node, const psplit_model *model,
                               const bool *function_repeatable) {
  if (node->function != PSPLIT_NONE) return function_repeatable[node->function];
  const bool known_domain = !*node->domain || strcmp(node->domain, "ai.onnx.ml") == 0 ||
                            strcmp(node->domain, "com.microsoft") == 0;
  if (!known_domain || psplit_i_node_has(node, PSPLIT_I_OP_RANDOM)) return false;
  for (uint32_t b = 0; b < node->n_bodies; b++)
    if (!graph_is_repeatable(node->bodies[b], model, function_repeatable)) return false;
  return true;
}

static bool graph_is_repeatable(const psplit_i_graph *graph, const psplit_model *model,
                                const bool *function_repeatable) {
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (!node_is_repeatable(&graph->nodes[n], model, function_repeatable)) return false;
  return true;
}

/* Callees settle before callers after as many rounds as calls nest; a round that changes nothing is
 * the last. Starting from "repeatable" and taking away is exact because calls form no cycle. */
static void settle_functions(const psplit_model *model, bool *repeatable) {
  const uint32_t n = psplit_i_model_n_functions(model);
  memset(repeatable, true, n);
  for (bool changed = n > 0; changed;) {
    changed = false;
    for (uint32_t f = 0; f < n; f++)
      if (repeatable[f] &&
          !graph_is_repeatable(psplit_i_model_function(model, f), model, repeatable)) {
        repeatable[f] = false;
        changed = true;
      }
  }
}

static bool has_live_reader(const psplit_planner *planner, uint32_t value) {
  const psplit_i_graph *graph = planner->graph;
  if (graph->values[value].is_output) return true;
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++)
    if (!(planner->node_flags[graph->consumers[c]] & PSPLIT_I_NODE_DEAD)) return true;
  return false;
}

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag) {
  (void)values;
  const psplit_i_graph *graph = planner->graph;
  bool *repeatable =
    PSPLIT_NEW(&planner->scratch, bool, psplit_i_model_n_functions(planner->model));
  if (!repeatable) return psplit_i_nomem(diag);
  settle_functions(planner->model, repeatable);
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    planner->node_flags[n] = 0;
    if (!node_is_repeatable(&graph->nodes[n], planner->model, repeatable)) continue;
    planner->node_flags[n] |= PSPLIT_I_NODE_REPEATABLE;
    if (psplit_i_node_reads_constants(graph, planner->node_flags, &graph->nodes[n]))
      planner->node_flags[n] |= PSPLIT_I_NODE_FREE;
  }
  for (uint32_t i = graph->n_nodes; i-- > 0;) {
    const uint32_t n = graph->topo[i];
    bool live = false;
    for (uint32_t o = 0; o < graph->nodes[n].n_outputs && !live; o++)
      live = graph->nodes[n].outputs[o] != PSPLIT_NONE &&
             has_live_reader(planner, graph->nodes[n].outputs[o]);
    if (!live) planner->node_flags[n] |= PSPLIT_I_NODE_DEAD;
  }
  return PSPLIT_OK;
}

const psplit_i_pass psplit_i_pass_mark = {
  .name = "mark",
  .help = "mark nodes that reach no output and nodes that are functions of constants",
  .keeps = ~0u,
  .makes = PSPLIT_I_FACT_LIVE,
  .run = run,
};
