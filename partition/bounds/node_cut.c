/* Bounds that hold for any placement, contiguous or not. */
#include <math.h>
#include <stdlib.h>

#include "automaton.h"
#include "bounds.h"
#include "budget.h"
#include "flow.h"
#include "instance.h"
#include "message_floor.h"
#include "node_cut.h"
#include "problem.h"

/* The share of each device in the work and in the messages that as many stages need at least, where
 * `share`, that in the work alone, leaves it time for a message both ways. */
static int64_t share_with_messages(const psplit_i_instance *instance,
                                   const psplit_i_automaton *automaton, int64_t share,
                                   bool any_route) {
  const psplit_i_message_floor floor = psplit_i_message_floor_of(instance, automaton);
  const bool pairs = floor.by_pairs || any_route;
  const double messages = psplit_i_message_floor_within(
    &floor, automaton->n_stages, pairs ? instance->n_parts : instance->n_roots,
    pairs ? instance->n_parts : instance->n_leaves, 0, share);
  const double sum = (double)automaton->total_min_time + messages;
  return messages > 0 ? (int64_t)ceil(sum / automaton->capacity[0] * (1 - 1e-12)) : share;
}

/* Of all work. */
static int64_t share_of_work(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                             bool any_route) {
  /* Whole devices of one speed divide exactly; otherwise doubles, rounded down. */
  const double devices = automaton->capacity[0];
  int64_t share = (int64_t)((double)automaton->total_min_time / devices * (1 - 1e-12));
  if (devices >= 1 && devices == (double)(int64_t)devices) {
    const int64_t n = (int64_t)devices;
    share = (automaton->total_min_time + n - 1) / n;
  }
  return share_with_messages(instance, automaton, share, any_route);
}

int64_t psplit_i_simple_bound(const psplit_i_instance *instance,
                              const psplit_i_automaton *automaton) {
  const uint32_t copies = psplit_i_automaton_most_replicas(automaton);
  int64_t bound = share_of_work(instance, automaton, false);
  for (uint32_t i = 0; i < instance->n; i++) {
    const int64_t least = (automaton->min_time[i] + copies - 1) / copies;
    if (least > bound) bound = least;
  }
  return bound;
}

int64_t psplit_i_total_any_route(const psplit_i_instance *instance,
                                 const psplit_i_automaton *automaton) {
  return share_of_work(instance, automaton, true);
}

/* Adds net e, whose producer is one of the clusters. Consumers elsewhere are left out. */
static bool add_net(psplit_i_flow *flow, const psplit_i_instance *instance, uint32_t e,
                    const psplit_i_cut_costs *costs) {
  const int64_t send = costs->send[e], recv = costs->recv[e];
  const uint32_t *local = costs->local;
  const uint32_t *pin = instance->net_pin + instance->net_off[e];
  const uint32_t n_pins = instance->net_off[e + 1] - instance->net_off[e];
  const uint32_t out = send > 0 ? psplit_i_flow_node(flow) : PSPLIT_NONE;
  const uint32_t in = recv > 0 ? psplit_i_flow_node(flow) : PSPLIT_NONE;
  if ((send > 0 && out == PSPLIT_NONE) || (recv > 0 && in == PSPLIT_NONE)) return false;
  bool ok = true;
  if (send > 0) ok &= psplit_i_flow_arc_add(flow, local[pin[0]], out, send);
  if (recv > 0) ok &= psplit_i_flow_arc_add(flow, in, local[pin[0]], recv);
  for (uint32_t k = 1; k < n_pins; k++) {
    if (local[pin[k]] == PSPLIT_NONE) continue;
    if (send > 0) ok &= psplit_i_flow_arc_add(flow, out, local[pin[k]], PSPLIT_I_INF);
    if (recv > 0) ok &= psplit_i_flow_arc_add(flow, local[pin[k]], in, PSPLIT_I_INF);
  }
  return ok;
}

bool psplit_i_set_network(psplit_i_flow *flow, const psplit_i_instance *instance,
                          const psplit_i_cut_costs *costs) {
  const uint32_t n = costs->n;
  psplit_i_flow_reset(flow);
  bool ok = true;
  for (uint32_t k = 0; k <= n; k++) ok &= psplit_i_flow_node(flow) != PSPLIT_NONE;
  for (uint32_t k = 0; k < n && ok; k++)
    ok = psplit_i_flow_arc_add(flow, k, n, costs->weight[costs->cluster[k]]);
  for (uint32_t k = 0; k < n && ok; k++) {
    const uint32_t i = costs->cluster[k];
    for (uint32_t l = instance->inc_off[i]; l < instance->inc_off[i + 1] && ok; l++)
      if (instance->inc[l] & 1) ok = add_net(flow, instance, instance->inc[l] >> 1, costs);
  }
  return ok;
}

static int compare_lone_loads(const void *a, const void *b) {
  const psplit_i_lone_load *x = a, *y = b;
  if (x->most != y->most) return x->most > y->most ? -1 : 1;
  return x->cluster < y->cluster ? -1 : x->cluster > y->cluster;
}

bool psplit_i_least_costs(const psplit_i_instance *instance, const psplit_i_automaton *m,
                          int64_t *send, int64_t *recv, int64_t *least) {
  bool any = false;
  for (uint32_t i = 0; i < instance->n; i++) least[i] = PSPLIT_I_INF;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    if (m->count[t] == 0) continue;
    if (instance->problem->devices[t].free_comm) { /* there a cluster costs no more than itself */
      for (uint32_t i = 0; i < instance->n; i++) {
        const int64_t w = instance->w[(size_t)t * instance->n + i];
        if (w < least[i]) least[i] = w;
      }
      continue;
    }
    for (uint32_t e = 0; e < instance->n_nets; e++) {
      const size_t cell = (size_t)t * instance->n_nets + e;
      if (!any || instance->send[cell] < send[e]) send[e] = instance->send[cell];
      if (!any || instance->recv[cell] < recv[e]) recv[e] = instance->recv[cell];
    }
    any = true;
  }
  return any;
}

/* out->lone, with `messages` for each cluster; the other fields of *out are there.
 * O(n log n + pins). */
static void list_lone_loads(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                            int64_t messages, psplit_i_cut_start *out) {
  for (uint32_t i = 0; i < instance->n; i++) {
    int64_t alone = automaton->min_time[i] + messages;
    for (uint32_t l = instance->inc_off[i]; l < instance->inc_off[i + 1]; l++)
      alone += (instance->inc[l] & 1 ? out->send : out->recv)[instance->inc[l] >> 1];
    out->lone[i] = (psplit_i_lone_load){alone < out->least[i] ? alone : out->least[i], i};
  }
  qsort(out->lone, instance->n, sizeof *out->lone, compare_lone_loads);
}

psplit_code psplit_i_cut_start_init(const psplit_i_instance *instance,
                                    const psplit_i_automaton *automaton, int64_t messages,
                                    psplit_i_arena *arena, psplit_i_cut_start *out, bool *out_any) {
  *out = (psplit_i_cut_start){.send = PSPLIT_NEW(arena, int64_t, instance->n_nets),
                              .recv = PSPLIT_NEW(arena, int64_t, instance->n_nets),
                              .least = PSPLIT_NEW(arena, int64_t, instance->n),
                              .lone = PSPLIT_NEW(arena, psplit_i_lone_load, instance->n),
                              .all = PSPLIT_NEW(arena, uint32_t, instance->n)};
  if (!out->send || !out->recv || !out->least || !out->lone || !out->all) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < instance->n; i++) out->all[i] = i;
  *out_any = psplit_i_least_costs(instance, automaton, out->send, out->recv, out->least);
  if (*out_any) list_lone_loads(instance, automaton, messages, out);
  return PSPLIT_OK;
}

psplit_code psplit_i_node_cut_bound(const psplit_i_instance *instance,
                                    const psplit_i_automaton *automaton, int64_t limit,
                                    uint32_t most_clusters, psplit_i_budget *budget,
                                    int64_t *inout_bound) {
  if (!psplit_i_takes(PSPLIT_I_BOUND_NODE_CUT, automaton->features)) return PSPLIT_OK;
  psplit_i_flow flow = {0}, whole = {0};
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_cut_start s;
  bool any, built = false;
  psplit_code code = psplit_i_cut_start_init(instance, automaton, 0, &arena, &s, &any);
  if (code != PSPLIT_OK || !any) goto out;
  const psplit_i_cut_costs costs = {.cluster = s.all,
                                    .local = s.all,
                                    .n = instance->n,
                                    .weight = automaton->min_time,
                                    .send = s.send,
                                    .recv = s.recv};
  code = PSPLIT_NOMEM;
  for (uint32_t k = 0; k < instance->n && k < most_clusters; k++) {
    const uint32_t i = s.lone[k].cluster;
    if (s.lone[k].most <= *inout_bound || *inout_bound >= limit || psplit_i_expired(budget)) break;
    if (!built && !psplit_i_set_network(&whole, instance, &costs)) goto out;
    built = true;
    if (!psplit_i_flow_copy(&flow, &whole)) goto out;
    psplit_i_spend(budget, flow.arcs.n);
    const int64_t enough = s.least[i] < limit ? s.least[i] : limit;
    int64_t value = 0;
    if (!psplit_i_flow_run(&flow, i, instance->n, enough, budget, &value)) goto out;
    if (value > *inout_bound) *inout_bound = value;
  }
  code = PSPLIT_OK;
out:
  psplit_i_flow_fini(&flow);
  psplit_i_flow_fini(&whole);
  psplit_i_arena_fini(&arena);
  return code;
}

psplit_code psplit_i_bound_total(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                 int64_t *inout_bound) {
  (void)budget; /* as cheap as reading the instance */
  const int64_t bound = psplit_i_simple_bound(query->instance, query->automaton);
  if (bound > *inout_bound) *inout_bound = bound;
  return PSPLIT_OK;
}

psplit_code psplit_i_bound_node_cut(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                    int64_t *inout_bound) {
  const uint32_t n = query->instance->n;
  /* Stages have better bounds. */
  const uint32_t most_clusters = query->variant == PSPLIT_I_STAGES ? (n <= PSPLIT_I_LARGE ? 64 : 8)
                                 : n <= 3000                       ? n
                                                                   : 100;
  return psplit_i_node_cut_bound(query->instance, query->automaton, query->value, most_clusters,
                                 budget, inout_bound);
}
