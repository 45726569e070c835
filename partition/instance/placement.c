/* Placements: loads, memory and latency, kept as clusters are added, removed and moved. */
#include <string.h>

#include "instance.h"
#include "placement.h"
#include "problem.h"
#include "relay.h"

static const uint64_t MAX_CELLS = UINT64_C(1) << 28;

psplit_code psplit_i_placement_init(psplit_i_placement *b, const psplit_i_instance *instance,
                                    uint32_t chunks, const psplit_partition_options *options,
                                    psplit_i_arena *arena) {
  memset(b, 0, sizeof *b);
  const uint32_t k = instance->n_stages;
  b->instance = instance;
  b->n_devices = k;
  b->n_labels = k * chunks;
  b->ordered = !options->noncontiguous;
  b->latency = options->objective == PSPLIT_LATENCY;
  b->nonempty = options->require_nonempty;
  const bool pairs = b->latency || instance->makes_message;
  if (((uint64_t)instance->n_nets + instance->n_groups + (pairs ? k : 1)) * k > MAX_CELLS)
    return PSPLIT_LIMIT;
  b->type = PSPLIT_NEW(arena, uint32_t, k);
  b->label = PSPLIT_NEW(arena, uint32_t, instance->n);
  b->w = PSPLIT_NEW(arena, int64_t, (size_t)k * 3);
  b->weight = PSPLIT_NEW(arena, uint64_t, (size_t)k * 2);
  b->n_counted = PSPLIT_NEW(arena, uint32_t, (size_t)k * 3);
  b->home = PSPLIT_NEW(arena, uint32_t, instance->n_nets);
  b->n_receivers = PSPLIT_NEW(arena, uint32_t, instance->n_nets);
  b->n_on = PSPLIT_NEW(arena, uint32_t, (size_t)instance->n_nets * k);
  b->n_users = PSPLIT_NEW(arena, uint32_t, (size_t)instance->n_groups * k);
  b->n_arcs = PSPLIT_NEW(arena, uint32_t, b->latency ? (size_t)k * k : 1);
  b->ready = PSPLIT_NEW(arena, int64_t, k);
  b->touched = PSPLIT_NEW(arena, uint32_t, k);
  b->is_touched = PSPLIT_NEW(arena, bool, k);
  if (!b->type || !b->label || !b->w || !b->weight || !b->n_counted || !b->home ||
      !b->n_receivers || !b->n_on || !b->n_users || !b->n_arcs || !b->ready || !b->touched ||
      !b->is_touched)
    return PSPLIT_NOMEM;
  if (instance->makes_message && !instance->problem->next_hop) {
    b->n_sent = PSPLIT_NEW(arena, uint32_t, (size_t)k * (k > 2 ? k : 2));
    if (!b->n_sent) return PSPLIT_NOMEM;
  }
  b->recv = b->w + k;
  b->send = b->recv + k;
  b->act = b->weight + k;
  b->n_clusters = b->n_counted + k;
  b->n_forbidden = b->n_clusters + k;
  if (instance->problem->next_hop) {
    b->passed = PSPLIT_NEW(arena, int64_t, (size_t)k * 2);
    b->hop_arcs = PSPLIT_NEW(arena, uint8_t, b->latency ? (size_t)k * k : 1);
    b->relay.wants = PSPLIT_NEW(arena, uint32_t, (size_t)k * 2);
    b->relay.hops = PSPLIT_NEW(arena, psplit_i_hop, k);
    b->sent = PSPLIT_NEW(arena, uint8_t, instance->makes_message ? (size_t)k * k : 1);
    if (!b->passed || !b->hop_arcs || !b->sent || !b->relay.wants || !b->relay.hops)
      return PSPLIT_NOMEM;
    b->relay.held = b->relay.wants + k;
  }
  memset(b->label, 0xff, instance->n * sizeof *b->label);
  memset(b->home, 0xff, instance->n_nets * sizeof *b->home);
  uint32_t device = 0;
  for (uint32_t t = 0; t < instance->n_types; t++)
    for (uint32_t i = 0; i < instance->problem->devices[t].count; i++) b->type[device++] = t;
  return PSPLIT_OK;
}

/* Where tensors are passed on, who sends to whom is known in the end (settle): the least counts. */
static int64_t send_cost(const psplit_i_placement *b, uint32_t e, uint32_t from, uint32_t to) {
  if (b->passed) return b->instance->send[(size_t)b->type[from] * b->instance->n_nets + e];
  return psplit_i_send_ns(b->instance, e, b->type[from], b->type[to]);
}

static int64_t recv_cost(const psplit_i_placement *b, uint32_t e, uint32_t from, uint32_t to) {
  if (b->passed) return b->instance->recv[(size_t)b->type[to] * b->instance->n_nets + e];
  return psplit_i_recv_ns(b->instance, e, b->type[from], b->type[to]);
}

/* The same for the message that the net is in, instead of what stands for one in its times. Apart
 * from what is hot where there are none. */
__attribute__((noinline)) static void receive_message(psplit_i_placement *b, uint32_t e, uint32_t k,
                                                      int sign) {
  const uint32_t from = b->home[e];
  const int64_t send = psplit_i_message_ns(b->instance, b->type[from], b->type[k], true),
                recv = psplit_i_message_ns(b->instance, b->type[from], b->type[k], false);
  int64_t times = b->instance->on_trunk[e] ? -sign : 0;
  if (b->instance->makes_message[e]) {
    uint32_t *n = &b->n_sent[(size_t)from * b->n_devices + k];
    *n += (uint32_t)sign;
    if (*n == (sign > 0 ? 1 : 0)) times += sign;
  }
  b->send[from] += times * send;
  b->recv[k] += times * recv;
}

/* The same where one message has all that a device sends, or receives; the first or last receiver
 * of the net begins or ends what its producer sends. */
static void receive_by_memory(psplit_i_placement *b, uint32_t e, uint32_t k, int sign) {
  const uint32_t from = b->home[e];
  uint32_t *n_received = &b->n_sent[k], *n_sent = &b->n_sent[b->n_devices + from];
  const bool sends = b->n_receivers[e] == (sign > 0 ? 1 : 0);
  if (!b->instance->makes_message[e]) return;
  *n_received += (uint32_t)sign;
  if (*n_received == (sign > 0 ? 1 : 0))
    b->recv[k] += sign * psplit_i_message_ns(b->instance, b->type[k], b->type[k], false);
  if (!sends) return;
  *n_sent += (uint32_t)sign;
  if (*n_sent == (sign > 0 ? 1 : 0))
    b->send[from] += sign * psplit_i_message_ns(b->instance, b->type[from], b->type[from], true);
}

/* Device k begins (sign 1) or ceases (-1) to receive net e. */
static void receive(psplit_i_placement *b, uint32_t e, uint32_t k, int sign) {
  const uint32_t home = b->home[e];
  b->recv[k] += sign * recv_cost(b, e, home, k);
  const uint32_t before = b->n_receivers[e];
  b->n_receivers[e] = sign > 0 ? before + 1 : before - 1;
  if (b->instance->p2p || (sign > 0 ? before == 0 : before == 1))
    b->send[home] += sign * send_cost(b, e, home, k);
  if (b->n_sent)
    (psplit_i_one_message(b->instance) ? receive_by_memory : receive_message)(b, e, k, sign);
}

static void charge_producer(psplit_i_placement *b, uint32_t e, uint32_t k, int sign) {
  for (uint32_t other = 0; other < b->n_devices; other++)
    if (other != k && b->n_on[(size_t)e * b->n_devices + other] > 0) receive(b, e, other, sign);
}

static void count_arcs(psplit_i_placement *b, uint32_t cluster, uint32_t k, int sign) {
  const psplit_i_instance *instance = b->instance;
  for (uint32_t l = instance->pred_off[cluster]; l < instance->pred_off[cluster + 1]; l++)
    if (b->label[instance->pred[l]] != PSPLIT_NONE)
      b->n_arcs[(size_t)b->label[instance->pred[l]] * b->n_devices + k] += (uint32_t)sign;
  for (uint32_t l = instance->succ_off[cluster]; l < instance->succ_off[cluster + 1]; l++)
    if (b->label[instance->succ[l]] != PSPLIT_NONE)
      b->n_arcs[(size_t)k * b->n_devices + b->label[instance->succ[l]]] += (uint32_t)sign;
}

/* Times that are forbidden are counted: a few of them have no sum. */
static void add_work(psplit_i_placement *b, uint32_t k, uint32_t cluster, int sign) {
  const int64_t w = b->instance->w[(size_t)b->type[k] * b->instance->n + cluster];
  if (w >= PSPLIT_I_INF)
    b->n_forbidden[k] += (uint32_t)sign;
  else
    b->w[k] += sign * w;
}

void psplit_i_placement_add(psplit_i_placement *b, uint32_t cluster, uint32_t label) {
  const psplit_i_instance *instance = b->instance;
  const uint32_t k = label % b->n_devices;
  add_work(b, k, cluster, 1);
  b->weight[k] += instance->weight_bytes[cluster];
  b->act[k] += instance->act_bytes[cluster];
  b->n_counted[k] += instance->n_counted[cluster];
  b->n_clusters[k]++;
  for (uint32_t l = instance->inc_off[cluster]; l < instance->inc_off[cluster + 1]; l++) {
    const uint32_t e = instance->inc[l] >> 1;
    if (instance->inc[l] & 1) {
      b->home[e] = k;
      charge_producer(b, e, k, 1);
    } else if (b->n_on[(size_t)e * b->n_devices + k]++ == 0 && b->home[e] != PSPLIT_NONE &&
               b->home[e] != k) {
      receive(b, e, k, 1);
    }
  }
  for (uint32_t l = instance->own_off[cluster]; l < instance->own_off[cluster + 1]; l++)
    if (b->n_users[(size_t)instance->own[l] * b->n_devices + k]++ == 0)
      b->weight[k] += instance->group_bytes[instance->own[l]];
  if (b->latency) count_arcs(b, cluster, k, 1);
  b->label[cluster] = label;
}

void psplit_i_placement_remove(psplit_i_placement *b, uint32_t cluster) {
  const psplit_i_instance *instance = b->instance;
  const uint32_t k = b->label[cluster] % b->n_devices;
  b->label[cluster] = PSPLIT_NONE;
  if (b->latency) count_arcs(b, cluster, k, -1);
  for (uint32_t l = instance->own_off[cluster]; l < instance->own_off[cluster + 1]; l++)
    if (--b->n_users[(size_t)instance->own[l] * b->n_devices + k] == 0)
      b->weight[k] -= instance->group_bytes[instance->own[l]];
  for (uint32_t l = instance->inc_off[cluster]; l < instance->inc_off[cluster + 1]; l++) {
    const uint32_t e = instance->inc[l] >> 1;
    if (instance->inc[l] & 1) {
      charge_producer(b, e, k, -1);
      b->home[e] = PSPLIT_NONE;
    } else if (--b->n_on[(size_t)e * b->n_devices + k] == 0 && b->home[e] != PSPLIT_NONE &&
               b->home[e] != k) {
      receive(b, e, k, -1);
    }
  }
  b->n_clusters[k]--;
  b->n_counted[k] -= instance->n_counted[cluster];
  b->act[k] -= instance->act_bytes[cluster];
  b->weight[k] -= instance->weight_bytes[cluster];
  add_work(b, k, cluster, -1);
}

static void touch(psplit_i_placement *b, uint32_t k) {
  if (b->is_touched[k]) return;
  b->is_touched[k] = true;
  b->touched[b->n_touched++] = k;
}

void psplit_i_placement_forget_touched(psplit_i_placement *b) {
  while (b->n_touched > 0) b->is_touched[b->touched[--b->n_touched]] = false;
}

/* The producer of net e goes from one device to another, and all links to its receivers are new. */
static void move_home_over_links(psplit_i_placement *b, uint32_t e, uint32_t from, uint32_t to) {
  const uint32_t *on = b->n_on + (size_t)e * b->n_devices;
  for (uint32_t k = 0; k < b->n_devices; k++)
    if (on[k] > 0 && k != from) receive(b, e, k, -1);
  b->home[e] = to;
  for (uint32_t k = 0; k < b->n_devices; k++) {
    if (on[k] == 0) continue;
    touch(b, k);
    if (k != to) receive(b, e, k, 1);
  }
}

/* The same where it does not matter who sends: for the other receivers nothing changes. */
static void move_home(psplit_i_placement *b, uint32_t e, uint32_t from, uint32_t to) {
  if ((b->instance->link || b->n_sent) && !b->passed) {
    move_home_over_links(b, e, from, to);
    return;
  }
  const uint32_t *on = b->n_on + (size_t)e * b->n_devices;
  const uint32_t before = b->n_receivers[e];
  const uint32_t after = before + (on[from] > 0) - (on[to] > 0);
  const bool p2p = b->instance->p2p;
  b->send[from] -= send_cost(b, e, from, to) * (p2p ? before : before > 0);
  b->send[to] += send_cost(b, e, to, from) * (p2p ? after : after > 0);
  if (on[from] > 0) b->recv[from] += recv_cost(b, e, to, from);
  if (on[to] > 0) b->recv[to] -= recv_cost(b, e, from, to);
  b->n_receivers[e] = after;
  b->home[e] = to;
}

static void move_consumer(psplit_i_placement *b, uint32_t e, uint32_t from, uint32_t to) {
  uint32_t *on = b->n_on + (size_t)e * b->n_devices;
  const bool leaves = --on[from] == 0, arrives = on[to]++ == 0;
  const uint32_t home = b->home[e];
  if (!leaves && !arrives) return;
  touch(b, home);
  if (arrives && to != home) receive(b, e, to, 1);
  if (leaves && from != home) receive(b, e, from, -1);
}

void psplit_i_placement_move(psplit_i_placement *b, uint32_t cluster, uint32_t label) {
  const psplit_i_instance *instance = b->instance;
  const uint32_t from = b->label[cluster] % b->n_devices, to = label % b->n_devices;
  if (from == to) { /* another chunk of the device: no load changes */
    b->label[cluster] = label;
    return;
  }
  touch(b, from);
  touch(b, to);
  add_work(b, from, cluster, -1);
  add_work(b, to, cluster, 1);
  b->weight[from] -= instance->weight_bytes[cluster];
  b->weight[to] += instance->weight_bytes[cluster];
  b->act[from] -= instance->act_bytes[cluster];
  b->act[to] += instance->act_bytes[cluster];
  b->n_counted[from] -= instance->n_counted[cluster];
  b->n_counted[to] += instance->n_counted[cluster];
  b->n_clusters[from]--;
  b->n_clusters[to]++;
  for (uint32_t l = instance->inc_off[cluster]; l < instance->inc_off[cluster + 1]; l++)
    (instance->inc[l] & 1 ? move_home : move_consumer)(b, instance->inc[l] >> 1, from, to);
  for (uint32_t l = instance->own_off[cluster]; l < instance->own_off[cluster + 1]; l++) {
    uint32_t *users = b->n_users + (size_t)instance->own[l] * b->n_devices;
    if (--users[from] == 0) b->weight[from] -= instance->group_bytes[instance->own[l]];
    if (users[to]++ == 0) b->weight[to] += instance->group_bytes[instance->own[l]];
  }
  if (b->latency) {
    count_arcs(b, cluster, from, -1);
    count_arcs(b, cluster, to, 1);
  }
  b->label[cluster] = label;
}

static int64_t load_of(const psplit_i_placement *b, uint32_t k, const int64_t *recv,
                       const int64_t *send) {
  return b->n_forbidden[k] ? PSPLIT_I_INF : psplit_i_load(b->instance, b->w[k], recv[k], send[k]);
}

int64_t psplit_i_placement_load(const psplit_i_placement *b, uint32_t k) {
  return load_of(b, k, b->recv, b->send);
}

/* hop_arcs[n_devices^2]: stages that wait for others besides those of n_arcs; NULL: none. */
static int64_t value_of(psplit_i_placement *b, const int64_t *recv, const int64_t *send,
                        const uint8_t *hop_arcs) {
  int64_t most = 0;
  if (b->latency) memset(b->ready, 0, b->n_devices * sizeof *b->ready);
  for (uint32_t k = 0; k < b->n_devices; k++) {
    const int64_t end =
      psplit_i_sat_add_i64(load_of(b, k, recv, send), b->latency ? b->ready[k] : 0);
    if (end > most) most = end;
    for (uint32_t next = k + 1; b->latency && next < b->n_devices; next++) {
      const size_t arc = (size_t)k * b->n_devices + next;
      if ((b->n_arcs[arc] || (hop_arcs && hop_arcs[arc])) && end > b->ready[next])
        b->ready[next] = end;
    }
  }
  return most;
}

int64_t psplit_i_placement_value(psplit_i_placement *b) {
  return value_of(b, b->recv, b->send, NULL);
}

/* Adds what every hop takes; false where a tensor cannot reach a stage. */
static bool settle_hops(psplit_i_placement *b, int64_t *recv, int64_t *send) {
  const psplit_i_instance *instance = b->instance;
  const size_t k = b->n_devices;
  const bool *makes = instance->makes_message;
  if (b->latency) memset(b->hop_arcs, 0, k * k);
  if (makes) memset(b->sent, 0, k * k);
  b->relay.stage = b->label;
  b->relay.device = b->type;
  b->relay.recv = recv;
  b->relay.send = send;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    uint8_t *arcs = makes && makes[e] ? b->sent : b->latency ? b->hop_arcs : NULL;
    if (!psplit_i_relay_net(instance, e, &b->relay, arcs)) return false;
  }
  for (uint32_t from = 0; makes && from < k; from++)
    for (uint32_t to = from + 1; to < k; to++) {
      if (!b->sent[from * k + to]) continue;
      if (b->latency) b->hop_arcs[from * k + to] = 1;
      send[from] += psplit_i_message_ns(instance, b->type[from], b->type[to], true);
      recv[to] += psplit_i_message_ns(instance, b->type[from], b->type[to], false);
    }
  return true;
}

int64_t psplit_i_placement_settle(psplit_i_placement *b, int64_t *out_load) {
  const psplit_i_instance *instance = b->instance;
  const size_t k = b->n_devices;
  const bool relayed = instance->problem->next_hop != NULL;
  int64_t *recv = relayed ? b->passed : b->recv, *send = relayed ? b->passed + k : b->send;
  if (relayed) {
    memset(b->passed, 0, 2 * k * sizeof *b->passed);
    memset(b->relay.wants, 0xff, 2 * k * sizeof *b->relay.wants);
    if (!settle_hops(b, recv, send)) return PSPLIT_I_INF;
  }
  for (uint32_t d = 0; out_load && d < k; d++) out_load[d] = load_of(b, d, recv, send);
  return value_of(b, recv, send, relayed && b->latency ? b->hop_arcs : NULL);
}

bool psplit_i_placement_fits(const psplit_i_placement *b, uint32_t k) {
  const uint64_t limit = b->instance->problem->devices[b->type[k]].memory_bytes;
  if (!limit) return true;
  const uint64_t held = b->instance->stash ? b->n_devices - k : 1;
  return psplit_i_sat_add_u64(b->weight[k], psplit_i_sat_mul_u64(held, b->act[k])) <= limit;
}

bool psplit_i_placement_range(const psplit_i_placement *b, uint32_t cluster, uint32_t *low,
                              uint32_t *high) {
  const psplit_i_instance *instance = b->instance;
  *low = 0;
  *high = b->n_labels - 1;
  for (uint32_t l = instance->pred_off[cluster]; b->ordered && l < instance->pred_off[cluster + 1];
       l++)
    if (b->label[instance->pred[l]] != PSPLIT_NONE && b->label[instance->pred[l]] > *low)
      *low = b->label[instance->pred[l]];
  for (uint32_t l = instance->succ_off[cluster]; b->ordered && l < instance->succ_off[cluster + 1];
       l++)
    if (b->label[instance->succ[l]] < *high) *high = b->label[instance->succ[l]];
  return *low <= *high;
}
