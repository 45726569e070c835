#include "cut_network.h"

#include "problem.h"

enum { SOURCE = PSPLIT_I_SOURCE, SINK = PSPLIT_I_SINK };

void psplit_i_cut_network_fini(psplit_i_cut_network *network) {
  psplit_i_flow_fini(&network->flow);
  psplit_i_tree_flow_fini(&network->trees);
  psplit_i_vec_fini(&network->reached);
}

void psplit_i_cut_network_begin(psplit_i_cut_network *network) {
  psplit_i_flow_reset(&network->flow);
  if (psplit_i_cut_network_node(network) != SOURCE || psplit_i_cut_network_node(network) != SINK)
    network->failed = true;
}

uint32_t psplit_i_cut_network_node(psplit_i_cut_network *network) {
  const uint32_t id = psplit_i_flow_node(&network->flow);
  if (id == PSPLIT_NONE) network->failed = true;
  return network->failed ? SOURCE : id;
}

void psplit_i_cut_network_arc(psplit_i_cut_network *network, uint32_t from, uint32_t to,
                              int64_t cap) {
  if (to == SOURCE || from == SINK || from == to || cap <= 0 || network->failed) return;
  if (!psplit_i_flow_arc_add(&network->flow, from, to, cap)) network->failed = true;
}

bool psplit_i_cut_network_raise(psplit_i_cut_network *network, int64_t enough,
                                psplit_i_budget *budget, int64_t *inout_value) {
  if (network->failed) return false;
  if (!psplit_i_flow_run(&network->flow, SOURCE, SINK, enough, budget, inout_value))
    network->failed = true;
  return !network->failed;
}

bool psplit_i_cut_network_sides(psplit_i_cut_network *network) {
  if (network->failed) return false;
  network->reached.n = 0;
  if (!psplit_i_vec_reserve(&network->reached, network->flow.head.n) ||
      !psplit_i_flow_side(&network->flow, SOURCE, network->reached.items))
    network->failed = true;
  return !network->failed;
}

bool psplit_i_cut_network_run(psplit_i_cut_network *network, psplit_i_budget *budget,
                              int64_t *out_value) {
  *out_value = 0;
  return psplit_i_cut_network_raise(network, PSPLIT_I_INF, budget, out_value) &&
         !psplit_i_expired(budget) && psplit_i_cut_network_sides(network);
}

bool psplit_i_cut_network_run_trees(psplit_i_cut_network *network, psplit_i_budget *budget,
                                    int64_t *out_value) {
  psplit_i_tree_cut cut = {0};
  network->reached.n = 0;
  if (psplit_i_vec_reserve(&network->reached, network->flow.head.n)) {
    cut.side = network->reached.items;
    network->failed |=
      !psplit_i_tree_flow_run(&network->trees, &network->flow, SOURCE, SINK, budget, &cut);
  } else {
    network->failed = true;
  }
  *out_value = cut.value;
  return cut.whole && !network->failed && !psplit_i_expired(budget);
}
