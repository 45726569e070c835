/* needs: costs, live, groups  keeps: everything but stages  breaks: nothing
 *
 * Puts nodes that cost next to nothing where they belong: views with the producer of their bytes,
 * operators that measure (Shape, Size and their like) with the producer of what they measure (their
 * result is a few bytes, their input is not), other shape arithmetic with its consumer. Constants
 * need no attaching: free nodes belong to every stage that uses them. */
#include "operator.h"
#include "pass.h"

/* The one group that reads the node's results; PSPLIT_NONE where there are several or none. */
static uint32_t only_reader(const psplit_planner *planner, uint32_t node) {
  const psplit_i_graph *graph = planner->graph;
  uint32_t reader = PSPLIT_NONE, group = PSPLIT_NONE;
  for (uint32_t o = 0; o < graph->nodes[node].n_outputs; o++) {
    const uint32_t value = graph->nodes[node].outputs[o];
    if (value == PSPLIT_NONE) continue;
    for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
      const uint32_t other = psplit_i_group_of(&planner->grouping, graph->consumers[c]);
      if (group != PSPLIT_NONE && other != group) return PSPLIT_NONE;
      group = other;
      reader = graph->consumers[c];
    }
  }
  return reader;
}

/* Producer of the node's first input that is computed at all. */
static uint32_t data_producer(const psplit_planner *planner, uint32_t node) {
  const psplit_i_node *data = &planner->graph->nodes[node];
  for (uint32_t i = 0; i < data->n_inputs; i++) {
    if (data->inputs[i] == PSPLIT_NONE) continue;
    const uint32_t producer = planner->graph->values[data->inputs[i]].producer;
    if (producer != PSPLIT_NONE && !(planner->node_flags[producer] & PSPLIT_I_NODE_FREE))
      return producer;
  }
  return PSPLIT_NONE;
}

static psplit_code attach(psplit_planner *planner, uint32_t node, uint32_t to, psplit_diag *diag,
                          bool *out_done) {
  *out_done = false;
  if (to == PSPLIT_NONE) return PSPLIT_OK;
  return psplit_i_group_merge(&planner->grouping, (const uint32_t[]){node, to}, 2, diag, out_done);
}

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  (void)values;
  const psplit_i_graph *graph = planner->graph;
  /* Backwards, so that a chain of shape arithmetic follows its end to the consumer. */
  for (uint32_t i = graph->n_nodes; i-- > 0;) {
    const uint32_t n = graph->topo[i];
    bool done;
    if (!psplit_i_node_runs(planner->node_flags[n])) continue;
    const psplit_i_node *node = &graph->nodes[n];
    const bool measures = psplit_i_op_class(node->domain, node->op_type) == PSPLIT_CLASS_SHAPE;
    if (planner->node_class[n] == PSPLIT_CLASS_VIEW || measures) {
      PSPLIT_TRY(attach(planner, n, data_producer(planner, n), diag, &done));
      if (!done) PSPLIT_TRY(attach(planner, n, only_reader(planner, n), diag, &done));
    } else if (planner->node_class[n] == PSPLIT_CLASS_SHAPE) {
      PSPLIT_TRY(attach(planner, n, only_reader(planner, n), diag, &done));
      if (!done) PSPLIT_TRY(attach(planner, n, data_producer(planner, n), diag, &done));
    }
  }
out:
  return code;
}

const psplit_i_pass psplit_i_pass_attach = {
  .name = "attach",
  .help = "group views and shape arithmetic with their users",
  .needs = PSPLIT_I_FACT_COSTS | PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_GROUPS,
  .keeps = ~(unsigned)PSPLIT_I_FACT_STAGES,
  .run = run,
};
