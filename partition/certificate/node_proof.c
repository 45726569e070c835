/* Proofs by one minimum cut. The network is that of bounds/node_cut.c, and its maximum flow is the
 * proof. */
#include "node_proof.h"

#include "flow.h"
#include "node_cut.h"

void psplit_i_node_proof_fini(psplit_i_node_proof *proof) { psplit_i_vec_fini(&proof->flows); }

/* Reads the flow from the network. Arcs of nets are in the order in which nets were added, which is
 * that of their producers, and lead through a node of the net. */
static bool read_flow(const psplit_i_flow *flow, const psplit_i_instance *instance,
                      const int64_t *send, const int64_t *recv, psplit_i_node_proof *out) {
  size_t arc = 2 * (size_t)instance->n; /* after the arcs to the sink */
  for (uint32_t i = 0; i < instance->n; i++)
    for (uint32_t l = instance->inc_off[i]; l < instance->inc_off[i + 1]; l++) {
      const uint32_t e = instance->inc[l] >> 1;
      if (!(instance->inc[l] & 1)) continue;
      /* skip the arcs from and to the producer */
      arc += 2 * ((send[e] > 0) + (size_t)(recv[e] > 0));
      for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++)
        for (int receiving = 0; receiving < 2; receiving++) {
          if ((receiving ? recv : send)[e] <= 0) continue;
          const int64_t amount = flow->arcs.items[arc + 1].cap;
          arc += 2;
          if (amount == 0) continue;
          const psplit_i_net_flow f = {e, instance->net_pin[k], receiving, amount};
          if (!psplit_i_vec_push(&out->flows, f)) return false;
        }
    }
  return true;
}

/* The least time of a message on any type that pays for transfers. */
static int64_t least_message(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                             const int64_t *message) {
  int64_t least = PSPLIT_I_INF;
  for (uint32_t t = 0; t < instance->n_types; t++)
    if (automaton->count[t] && !instance->problem->devices[t].free_comm && message[t] < least)
      least = message[t];
  return least == PSPLIT_I_INF ? 0 : least;
}

/* Subtracts the times of messages from the weights of roots and leaves. over[n]: by how much they
 * exceed the weight. */
static void count_messages(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                           int64_t *weight, int64_t *over, psplit_i_node_proof *out) {
  const int64_t *message = instance->least_message;
  const bool any = instance->makes_message && instance->n_roots > 0;
  out->sent = any ? least_message(instance, automaton, message) : 0;
  out->received = any ? least_message(instance, automaton, message + instance->n_types) : 0;
  for (uint32_t i = 0; i < instance->n; i++) {
    const int64_t off = (any && instance->is_leaf[i] ? out->sent : 0) +
                        (any && instance->is_root[i] ? out->received : 0);
    weight[i] = automaton->min_time[i] > off ? automaton->min_time[i] - off : 0;
    over[i] = automaton->min_time[i] > off ? 0 : off - automaton->min_time[i];
  }
}

/* Adds a source that every set contains, with arcs to cluster i and to the clusters where messages
 * exceed the weight. */
static bool add_source(psplit_i_flow *flow, const int64_t *over, uint32_t n, uint32_t i,
                       uint32_t *out_source) {
  *out_source = psplit_i_flow_node(flow);
  bool ok = *out_source != PSPLIT_NONE && psplit_i_flow_arc_add(flow, *out_source, i, PSPLIT_I_INF);
  for (uint32_t k = 0; k < n && ok; k++)
    if (over[k] > 0) ok = psplit_i_flow_arc_add(flow, *out_source, k, over[k]);
  return ok;
}

psplit_code psplit_i_node_proof_find(const psplit_i_instance *instance,
                                     const psplit_i_automaton *automaton, int64_t target,
                                     uint32_t most, psplit_i_budget *budget,
                                     psplit_i_node_proof *out) {
  *out = (psplit_i_node_proof){.cluster = PSPLIT_NONE};
  if (instance->overlap || automaton->replicated) return PSPLIT_OK;
  psplit_i_flow flow = {0}, whole = {0};
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_code code = PSPLIT_NOMEM;
  psplit_i_cut_start s;
  bool any;
  int64_t *weight = PSPLIT_NEW(&arena, int64_t, instance->n);
  int64_t *over = PSPLIT_NEW(&arena, int64_t, instance->n);
  if (!weight || !over) goto out;
  count_messages(instance, automaton, weight, over, out);
  int64_t messages = out->sent + out->received; /* less what exceeds the weights */
  for (uint32_t i = 0; i < instance->n; i++) messages -= over[i];
  code = psplit_i_cut_start_init(instance, automaton, out->sent + out->received, &arena, &s, &any);
  if (code != PSPLIT_OK || !any || instance->n == 0 || s.lone[0].most < target) goto out;
  code = PSPLIT_NOMEM;
  const psplit_i_cut_costs costs = {.cluster = s.all,
                                    .local = s.all,
                                    .n = instance->n,
                                    .weight = weight,
                                    .send = s.send,
                                    .recv = s.recv};
  if (!psplit_i_set_network(&whole, instance, &costs)) goto out;
  for (uint32_t k = 0; k < instance->n && k < most && s.lone[k].most >= target; k++) {
    const uint32_t i = s.lone[k].cluster;
    uint32_t source;
    int64_t value = 0;
    if (psplit_i_expired(budget)) break;
    if (!psplit_i_flow_copy(&flow, &whole)) goto out;
    if (!add_source(&flow, over, instance->n, i, &source)) goto out;
    const int64_t enough = target > messages ? target - messages : 0;
    if (!psplit_i_flow_run(&flow, source, instance->n, enough, budget, &value)) goto out;
    if (value < enough) continue;
    if (!read_flow(&flow, instance, s.send, s.recv, out)) goto out;
    out->cluster = i;
    break;
  }
  code = PSPLIT_OK;
out:
  if (code != PSPLIT_OK) psplit_i_node_proof_fini(out);
  psplit_i_flow_fini(&flow);
  psplit_i_flow_fini(&whole);
  psplit_i_arena_fini(&arena);
  return code;
}
