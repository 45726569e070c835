#include "boundary_network.h"

#include "branches.h"

enum { SOURCE = PSPLIT_I_SOURCE, SINK = PSPLIT_I_SINK };

psplit_code psplit_i_boundary_network_init(psplit_i_boundary_network *network,
                                           const psplit_i_instance *instance,
                                           psplit_i_budget *budget, psplit_i_arena *arena) {
  *network = (psplit_i_boundary_network){
    .instance = instance, .budget = budget, .place = PSPLIT_NEW(arena, uint32_t, instance->n)};
  return network->place ? PSPLIT_OK : PSPLIT_NOMEM;
}

void psplit_i_boundary_network_fini(psplit_i_boundary_network *network) {
  psplit_i_cut_network_fini(&network->cut);
}

static void arc(psplit_i_boundary_network *network, uint32_t from, uint32_t to, int64_t cap) {
  psplit_i_cut_network_arc(&network->cut, from, to, cap);
}

void psplit_i_boundary_begin(psplit_i_boundary_network *network, const uint8_t *where) {
  psplit_i_cut_network_begin(&network->cut);
  for (uint32_t i = 0; i < network->instance->n; i++)
    network->place[i] = where[i] == PSPLIT_I_SIDE_FREE ? psplit_i_cut_network_node(&network->cut)
                        : where[i] == PSPLIT_I_SIDE_INSIDE ? SOURCE
                                                           : SINK;
}

int64_t psplit_i_boundary_cluster(psplit_i_boundary_network *network, uint32_t cluster,
                                  int64_t inside, int64_t outside) {
  const psplit_i_instance *instance = network->instance;
  const uint32_t at = network->place[cluster];
  const int64_t either = inside < outside ? inside : outside;
  for (uint32_t l = instance->pred_off[cluster]; l < instance->pred_off[cluster + 1]; l++)
    arc(network, at, network->place[instance->pred[l]], PSPLIT_I_INF);
  arc(network, SOURCE, at, outside - either);
  arc(network, at, SINK, inside - either);
  return either;
}

void psplit_i_boundary_net(psplit_i_boundary_network *network, uint32_t net, int64_t ahead,
                           int64_t back) {
  const psplit_i_instance *instance = network->instance;
  const uint32_t first = instance->net_off[net], end = instance->net_off[net + 1];
  const uint32_t *place = network->place, *pin = instance->net_pin;
  const uint32_t producer = place[pin[first]];
  bool apart = false;
  for (uint32_t k = first + 1; k < end; k++) apart |= place[pin[k]] != producer;
  psplit_i_spend(network->budget, end - first);
  if (!apart || network->cut.failed) return;
  if (producer != SINK && ahead > 0) {
    const uint32_t fan = psplit_i_cut_network_node(&network->cut);
    arc(network, producer, fan, ahead);
    for (uint32_t k = first + 1; k < end; k++) arc(network, fan, place[pin[k]], PSPLIT_I_INF);
  }
  if (producer != SOURCE && back > 0) {
    const uint32_t fan = psplit_i_cut_network_node(&network->cut);
    arc(network, fan, producer, back);
    for (uint32_t k = first + 1; k < end; k++) arc(network, place[pin[k]], fan, PSPLIT_I_INF);
  }
}

bool psplit_i_boundary_cut(psplit_i_boundary_network *network, int64_t *out_value, bool *out_in) {
  const uint32_t n = network->instance->n;
  *out_value = 0;
  psplit_i_spend(network->budget, n + (uint64_t)network->cut.flow.arcs.n);
  if (network->cut.failed || psplit_i_expired(network->budget)) return false;
  if (!psplit_i_cut_network_run(&network->cut, network->budget, out_value)) return false;
  for (uint32_t i = 0; i < n; i++) out_in[i] = network->cut.reached.items[network->place[i]];
  return true;
}
