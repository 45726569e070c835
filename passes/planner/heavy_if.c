/* Ifs that are in the way, as no cut goes through their branches: one that holds most of the work,
 * or more than fits a device. */
#include "inline_hint.h"
#include "planner.h"

void psplit_i_say_heavy_if(const psplit_planner *planner) {
  const psplit_i_graph *graph = planner->graph;
  int64_t total_ns = 0;
  uint32_t heavy = PSPLIT_NONE;
  if (planner->options.n_stages < 2) return;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    total_ns = psplit_i_sat_add_i64(total_ns, planner->node_ns[n]);
    if (psplit_i_node_is(&graph->nodes[n], "If") &&
        (heavy == PSPLIT_NONE || planner->node_ns[n] > planner->node_ns[heavy]))
      heavy = n;
  }
  if (heavy == PSPLIT_NONE || planner->node_ns[heavy] <= total_ns / 2) return;
  char label[128];
  psplit_i_advice advice = {0};
  if (psplit_i_inline_hint(graph, heavy, &advice))
    psplit_i_advise(planner->options.logger, PSPLIT_NOTE, advice,
                    "%.0f %% of the work is in If %s, and no cut goes through its branches",
                    100 * (double)planner->node_ns[heavy] / (double)total_ns,
                    psplit_i_node_label(graph, heavy, label, sizeof label));
}

const char *psplit_i_why_undivided(const psplit_planner *planner, uint32_t node,
                                   psplit_i_advice *out_advice) {
  *out_advice = (psplit_i_advice){0};
  if (node == PSPLIT_NONE || !psplit_i_node_is(&planner->graph->nodes[node], "If")) return "";
  if (!psplit_i_inline_hint(planner->graph, node, out_advice)) return NULL;
  return ", and no cut goes through the branches of this If";
}
