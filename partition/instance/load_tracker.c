/* The load of a set of clusters, one cluster more or less at a time. */
#include <string.h>

#include "automaton.h"
#include "instance.h"
#include "load_tracker.h"
#include "problem.h"

psplit_code psplit_i_load_tracker_init(psplit_i_load_tracker *tracker,
                                       const psplit_i_instance *instance, psplit_i_arena *arena) {
  memset(tracker, 0, sizeof *tracker);
  tracker->instance = instance;
  tracker->pin = PSPLIT_NONE;
  tracker->w = PSPLIT_NEW(arena, int64_t, (size_t)instance->n_types * 3);
  tracker->n_in = PSPLIT_NEW(arena, uint32_t, instance->n_nets);
  tracker->has_source = PSPLIT_NEW(arena, bool, instance->n_nets);
  tracker->n_users = PSPLIT_NEW(arena, uint32_t, instance->n_groups);
  tracker->paid = PSPLIT_NEW(arena, uint32_t, instance->n_types);
  if (!tracker->w || !tracker->n_in || !tracker->has_source || !tracker->n_users || !tracker->paid)
    return PSPLIT_NOMEM;
  tracker->n_forbidden = PSPLIT_NEW(arena, uint32_t, instance->n_types);
  if (!tracker->n_forbidden) return PSPLIT_NOMEM;
  for (uint32_t side = 0; side < 2 && instance->link; side++) {
    tracker->near[side] = PSPLIT_NEW(arena, int64_t, instance->n_link_classes);
    if (!tracker->near[side]) return PSPLIT_NOMEM;
  }
  tracker->recv = tracker->w + instance->n_types;
  tracker->send = tracker->recv + instance->n_types;
  for (uint32_t t = 0; t < instance->n_types; t++)
    if (!instance->problem->devices[t].free_comm && instance->problem->devices[t].count > 0)
      tracker->paid[tracker->n_paid++] = t;
  return PSPLIT_OK;
}

static void charge_guess(psplit_i_load_tracker *tracker, bool recv, uint32_t e, int64_t sign) {
  const psplit_i_link_guess *g = tracker->guess;
  const psplit_i_instance *instance = tracker->instance;
  tracker->far[recv] += sign * (recv ? g->far_recv : g->far_send)[e];
  if (!(recv ? g->near_recv : g->near_send)[e]) return;
  for (uint32_t i = 0; i < g->n_classes; i++) {
    const uint32_t link = g->classes[i];
    tracker->near[recv][link] += sign * instance->link[(size_t)link * instance->n_nets + e];
  }
}

/* Adds times * the cost of net e to recv or send of every type that pays. */
static inline void charge(psplit_i_load_tracker *tracker, int64_t *side, const int64_t *cost,
                          uint32_t e, int64_t times) {
  if (tracker->guess) {
    charge_guess(tracker, side == tracker->recv, e, times < 0 ? -1 : 1);
    return;
  }
  for (uint32_t i = 0; i < tracker->n_paid; i++) {
    const uint32_t t = tracker->paid[i];
    side[t] += times * cost[(size_t)t * tracker->instance->n_nets + e];
  }
}

/* Nets that the set begins to send or receive, or (sign -1) ceases to, with a cluster that is not
 * in it now. */
static void count_messages(psplit_i_load_tracker *tracker, uint32_t cluster, int sign) {
  const psplit_i_instance *instance = tracker->instance;
  for (uint32_t k = instance->inc_off[cluster]; k < instance->inc_off[cluster + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1, before = tracker->n_in[e];
    const uint32_t size = instance->net_off[e + 1] - instance->net_off[e];
    int sent = 0, received = 0;
    if (!instance->makes_message[e]) continue;
    if (instance->inc[k] & 1) {
      received = before > 0 ? -sign : 0;
      sent = before + 1 < size ? sign : 0;
    } else if (tracker->has_source[e]) {
      sent = before + 1 == size ? -sign : 0;
    } else {
      received = before == 0 ? sign : 0;
    }
    tracker->n_messages[0] += (uint32_t)sent;
    tracker->n_messages[1] += (uint32_t)received;
    tracker->n_on_trunk[0] += instance->on_trunk[e] ? (uint32_t)sent : 0;
    tracker->n_on_trunk[1] += instance->on_trunk[e] ? (uint32_t)received : 0;
  }
}

/* The producer pays for net e, or (sign -1) no more. */
static inline void charge_send(psplit_i_load_tracker *tracker, uint32_t e, int64_t sign) {
  if (!tracker->sent_ns) {
    charge(tracker, tracker->send, tracker->instance->send, e,
           sign * (tracker->times_sent ? tracker->times_sent[e] : 1));
    return;
  }
  for (uint32_t i = 0; i < tracker->n_paid; i++)
    tracker->send[tracker->paid[i]] += sign * tracker->sent_ns[e];
}

void psplit_i_load_tracker_add(psplit_i_load_tracker *tracker, uint32_t cluster) {
  const psplit_i_instance *instance = tracker->instance;
  if (instance->makes_message) count_messages(tracker, cluster, 1);
  for (uint32_t t = 0; t < instance->n_types; t++) {
    const int64_t w = instance->w[(size_t)t * instance->n + cluster];
    if (w >= PSPLIT_I_INF)
      tracker->n_forbidden[t]++;
    else
      tracker->w[t] += w;
  }
  for (uint32_t k = instance->inc_off[cluster]; k < instance->inc_off[cluster + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1, before = tracker->n_in[e]++;
    const uint32_t size = instance->net_off[e + 1] - instance->net_off[e];
    if (instance->inc[k] & 1) {
      tracker->has_source[e] = true;
      if (before > 0) charge(tracker, tracker->recv, instance->recv, e, -1);
      if (before + 1 < size) charge_send(tracker, e, 1);
    } else if (tracker->has_source[e]) {
      if (before + 1 == size) charge_send(tracker, e, -1);
    } else if (before == 0) {
      charge(tracker, tracker->recv, instance->recv, e, 1);
    }
  }
  tracker->n_counted += instance->n_counted[cluster];
  if (instance->pin[cluster] != PSPLIT_NONE) {
    tracker->pin = instance->pin[cluster];
    tracker->n_pinned++;
  }
  tracker->weight_bytes += instance->weight_bytes[cluster];
  tracker->act_bytes += instance->act_bytes[cluster];
  for (uint32_t k = instance->own_off[cluster]; k < instance->own_off[cluster + 1]; k++)
    if (tracker->n_users[instance->own[k]]++ == 0)
      tracker->weight_bytes += instance->group_bytes[instance->own[k]];
}

void psplit_i_load_tracker_remove(psplit_i_load_tracker *tracker, uint32_t cluster) {
  const psplit_i_instance *instance = tracker->instance;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    const int64_t w = instance->w[(size_t)t * instance->n + cluster];
    if (w >= PSPLIT_I_INF)
      tracker->n_forbidden[t]--;
    else
      tracker->w[t] -= w;
  }
  for (uint32_t k = instance->inc_off[cluster]; k < instance->inc_off[cluster + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1, after = --tracker->n_in[e];
    const uint32_t size = instance->net_off[e + 1] - instance->net_off[e];
    if (instance->inc[k] & 1) {
      tracker->has_source[e] = false;
      if (after > 0) charge(tracker, tracker->recv, instance->recv, e, 1);
      if (after + 1 < size) charge_send(tracker, e, -1);
    } else if (tracker->has_source[e]) {
      if (after + 1 == size) charge_send(tracker, e, 1);
    } else if (after == 0) {
      charge(tracker, tracker->recv, instance->recv, e, -1);
    }
  }
  if (instance->makes_message) count_messages(tracker, cluster, -1);
  tracker->n_counted -= instance->n_counted[cluster];
  if (instance->pin[cluster] != PSPLIT_NONE && --tracker->n_pinned == 0) tracker->pin = PSPLIT_NONE;
  tracker->weight_bytes -= instance->weight_bytes[cluster];
  tracker->act_bytes -= instance->act_bytes[cluster];
  for (uint32_t k = instance->own_off[cluster]; k < instance->own_off[cluster + 1]; k++)
    if (--tracker->n_users[instance->own[k]] == 0)
      tracker->weight_bytes -= instance->group_bytes[instance->own[k]];
}

void psplit_i_load_tracker_clear(psplit_i_load_tracker *tracker, const uint32_t *clusters,
                                 uint32_t n) {
  const psplit_i_instance *instance = tracker->instance;
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t k = instance->inc_off[clusters[i]]; k < instance->inc_off[clusters[i] + 1]; k++) {
      tracker->n_in[instance->inc[k] >> 1] = 0;
      tracker->has_source[instance->inc[k] >> 1] = false;
    }
    for (uint32_t k = instance->own_off[clusters[i]]; k < instance->own_off[clusters[i] + 1]; k++)
      tracker->n_users[instance->own[k]] = 0;
  }
  memset(tracker->w, 0, (size_t)instance->n_types * 3 * sizeof *tracker->w);
  for (uint32_t side = 0; side < 2 && tracker->guess; side++) {
    memset(tracker->near[side], 0, instance->n_link_classes * sizeof *tracker->near[side]);
    tracker->far[side] = 0;
  }
  memset(tracker->n_messages, 0, sizeof tracker->n_messages);
  memset(tracker->n_on_trunk, 0, sizeof tracker->n_on_trunk);
  memset(tracker->n_forbidden, 0, instance->n_types * sizeof *tracker->n_forbidden);
  tracker->weight_bytes = tracker->act_bytes = 0;
  tracker->n_counted = tracker->n_pinned = 0;
  tracker->pin = PSPLIT_NONE;
}

int64_t psplit_i_load_tracker_load(const psplit_i_load_tracker *tracker,
                                   const psplit_i_automaton *automaton,
                                   const psplit_i_transition *move) {
  const uint32_t t = move->type;
  const uint64_t limit = tracker->instance->problem->devices[t].memory_bytes;
  if (limit) {
    const uint64_t held = tracker->instance->stash ? automaton->n_stages - move->stage : 1;
    if (psplit_i_sat_add_u64(tracker->weight_bytes,
                             psplit_i_sat_mul_u64(held, tracker->act_bytes)) > limit)
      return PSPLIT_I_INF;
  }
  if (tracker->n_forbidden[t]) return PSPLIT_I_INF;
  int64_t recv = tracker->recv[t], send = tracker->send[t];
  if (tracker->guess && !tracker->instance->problem->devices[t].free_comm) {
    send = tracker->near[0][tracker->guess->send_class[move->stage]] + tracker->far[0];
    recv = tracker->near[1][tracker->guess->recv_class[move->stage]] + tracker->far[1];
  }
  if (tracker->n_messages[0] && !tracker->n_on_trunk[0])
    send += tracker->instance->least_message[t];
  if (tracker->n_messages[1] && !tracker->n_on_trunk[1])
    recv += tracker->instance->least_message[tracker->instance->n_types + t];
  const int64_t load = psplit_i_load(tracker->instance, tracker->w[t], recv, send);
  return move->replicas > 1
           ? psplit_i_automaton_copies_load(automaton, load, move->replicas, tracker->weight_bytes)
           : load;
}
