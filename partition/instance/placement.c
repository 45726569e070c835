/* Items on labels: loads, memory and latency of any placement, kept up to date. */
#include <string.h>

#include "instance.h"
#include "placement.h"
#include "problem.h"
#include "relay.h"

static const uint64_t kMaxCells = UINT64_C(1) << 28;

psplit_code psplit_i_board_init(psplit_board *b, const psplit_core *core, uint32_t chunks,
                                const psplit_partition_options *options, psplit_arena *arena) {
  memset(b, 0, sizeof *b);
  const uint32_t k = core->n_stages;
  b->core = core;
  b->n_devices = k;
  b->n_labels = k * chunks;
  b->ordered = !options->noncontiguous;
  b->latency = options->objective == PSPLIT_LATENCY;
  b->nonempty = options->require_nonempty;
  if (((uint64_t)core->n_nets + core->n_groups + (b->latency ? k : 1)) * k > kMaxCells)
    return PSPLIT_LIMIT;
  b->type = PSPLIT_NEW(arena, uint32_t, k);
  b->label = PSPLIT_NEW(arena, uint32_t, core->n);
  b->w = PSPLIT_NEW(arena, int64_t, (size_t)k * 3);
  b->weight = PSPLIT_NEW(arena, uint64_t, (size_t)k * 2);
  b->n_counted = PSPLIT_NEW(arena, uint32_t, (size_t)k * 2);
  b->home = PSPLIT_NEW(arena, uint32_t, core->n_nets);
  b->n_receivers = PSPLIT_NEW(arena, uint32_t, core->n_nets);
  b->n_on = PSPLIT_NEW(arena, uint32_t, (size_t)core->n_nets * k);
  b->n_users = PSPLIT_NEW(arena, uint32_t, (size_t)core->n_groups * k);
  b->n_arcs = PSPLIT_NEW(arena, uint32_t, b->latency ? (size_t)k * k : 1);
  b->ready = PSPLIT_NEW(arena, int64_t, k);
  b->touched = PSPLIT_NEW(arena, uint32_t, k);
  b->is_touched = PSPLIT_NEW(arena, bool, k);
  if (!b->type || !b->label || !b->w || !b->weight || !b->n_counted || !b->home ||
      !b->n_receivers || !b->n_on || !b->n_users || !b->n_arcs || !b->ready || !b->touched ||
      !b->is_touched)
    return PSPLIT_NOMEM;
  b->recv = b->w + k;
  b->send = b->recv + k;
  b->act = b->weight + k;
  b->n_items = b->n_counted + k;
  if (core->problem->next_hop) {
    b->passed = PSPLIT_NEW(arena, int64_t, (size_t)k * 2);
    b->hop_arcs = PSPLIT_NEW(arena, uint8_t, b->latency ? (size_t)k * k : 1);
    b->relay.wants = PSPLIT_NEW(arena, uint32_t, (size_t)k * 2);
    b->relay.hops = PSPLIT_NEW(arena, psplit_hop, k);
    if (!b->passed || !b->hop_arcs || !b->relay.wants || !b->relay.hops) return PSPLIT_NOMEM;
    b->relay.held = b->relay.wants + k;
  }
  memset(b->label, 0xff, core->n * sizeof *b->label);
  memset(b->home, 0xff, core->n_nets * sizeof *b->home);
  uint32_t device = 0;
  for (uint32_t t = 0; t < core->n_types; t++)
    for (uint32_t i = 0; i < core->problem->devices[t].count; i++) b->type[device++] = t;
  return PSPLIT_OK;
}

static int64_t send_cost(const psplit_board *b, uint32_t e, uint32_t device) {
  return b->core->send[(size_t)b->type[device] * b->core->n_nets + e];
}

static int64_t recv_cost(const psplit_board *b, uint32_t e, uint32_t device) {
  return b->core->recv[(size_t)b->type[device] * b->core->n_nets + e];
}

/* Device k begins (sign 1) or ceases (-1) to receive net e. */
static void receive(psplit_board *b, uint32_t e, uint32_t k, int sign) {
  b->recv[k] += sign * recv_cost(b, e, k);
  const uint32_t before = b->n_receivers[e];
  b->n_receivers[e] = sign > 0 ? before + 1 : before - 1;
  if (b->core->p2p || (sign > 0 ? before == 0 : before == 1))
    b->send[b->home[e]] += sign * send_cost(b, e, b->home[e]);
}

static void charge_producer(psplit_board *b, uint32_t e, uint32_t k, int sign) {
  for (uint32_t other = 0; other < b->n_devices; other++)
    if (other != k && b->n_on[(size_t)e * b->n_devices + other] > 0) receive(b, e, other, sign);
}

static void count_arcs(psplit_board *b, uint32_t item, uint32_t k, int sign) {
  const psplit_core *core = b->core;
  for (uint32_t l = core->pred_off[item]; l < core->pred_off[item + 1]; l++)
    if (b->label[core->pred[l]] != PSPLIT_NONE)
      b->n_arcs[(size_t)b->label[core->pred[l]] * b->n_devices + k] += (uint32_t)sign;
  for (uint32_t l = core->succ_off[item]; l < core->succ_off[item + 1]; l++)
    if (b->label[core->succ[l]] != PSPLIT_NONE)
      b->n_arcs[(size_t)k * b->n_devices + b->label[core->succ[l]]] += (uint32_t)sign;
}

void psplit_i_board_add(psplit_board *b, uint32_t item, uint32_t label) {
  const psplit_core *core = b->core;
  const uint32_t k = label % b->n_devices;
  b->w[k] += core->w[(size_t)b->type[k] * core->n + item];
  b->weight[k] += core->weight_bytes[item];
  b->act[k] += core->act_bytes[item];
  b->n_counted[k] += core->n_counted[item];
  b->n_items[k]++;
  for (uint32_t l = core->inc_off[item]; l < core->inc_off[item + 1]; l++) {
    const uint32_t e = core->inc[l] >> 1;
    if (core->inc[l] & 1) {
      b->home[e] = k;
      charge_producer(b, e, k, 1);
    } else if (b->n_on[(size_t)e * b->n_devices + k]++ == 0 && b->home[e] != PSPLIT_NONE &&
               b->home[e] != k) {
      receive(b, e, k, 1);
    }
  }
  for (uint32_t l = core->own_off[item]; l < core->own_off[item + 1]; l++)
    if (b->n_users[(size_t)core->own[l] * b->n_devices + k]++ == 0)
      b->weight[k] += core->group_bytes[core->own[l]];
  if (b->latency) count_arcs(b, item, k, 1);
  b->label[item] = label;
}

void psplit_i_board_remove(psplit_board *b, uint32_t item) {
  const psplit_core *core = b->core;
  const uint32_t k = b->label[item] % b->n_devices;
  b->label[item] = PSPLIT_NONE;
  if (b->latency) count_arcs(b, item, k, -1);
  for (uint32_t l = core->own_off[item]; l < core->own_off[item + 1]; l++)
    if (--b->n_users[(size_t)core->own[l] * b->n_devices + k] == 0)
      b->weight[k] -= core->group_bytes[core->own[l]];
  for (uint32_t l = core->inc_off[item]; l < core->inc_off[item + 1]; l++) {
    const uint32_t e = core->inc[l] >> 1;
    if (core->inc[l] & 1) {
      charge_producer(b, e, k, -1);
      b->home[e] = PSPLIT_NONE;
    } else if (--b->n_on[(size_t)e * b->n_devices + k] == 0 && b->home[e] != PSPLIT_NONE &&
               b->home[e] != k) {
      receive(b, e, k, -1);
    }
  }
  b->n_items[k]--;
  b->n_counted[k] -= core->n_counted[item];
  b->act[k] -= core->act_bytes[item];
  b->weight[k] -= core->weight_bytes[item];
  b->w[k] -= core->w[(size_t)b->type[k] * core->n + item];
}

static void touch(psplit_board *b, uint32_t k) {
  if (b->is_touched[k]) return;
  b->is_touched[k] = true;
  b->touched[b->n_touched++] = k;
}

void psplit_i_board_forget_touched(psplit_board *b) {
  while (b->n_touched > 0) b->is_touched[b->touched[--b->n_touched]] = false;
}

/* The producer of net e goes from one device to another; the other receivers notice nothing. */
static void move_home(psplit_board *b, uint32_t e, uint32_t from, uint32_t to) {
  const uint32_t *on = b->n_on + (size_t)e * b->n_devices;
  const uint32_t before = b->n_receivers[e];
  const uint32_t after = before + (on[from] > 0) - (on[to] > 0);
  const bool p2p = b->core->p2p;
  b->send[from] -= send_cost(b, e, from) * (p2p ? before : before > 0);
  b->send[to] += send_cost(b, e, to) * (p2p ? after : after > 0);
  if (on[from] > 0) b->recv[from] += recv_cost(b, e, from);
  if (on[to] > 0) b->recv[to] -= recv_cost(b, e, to);
  b->n_receivers[e] = after;
  b->home[e] = to;
}

static void move_consumer(psplit_board *b, uint32_t e, uint32_t from, uint32_t to) {
  uint32_t *on = b->n_on + (size_t)e * b->n_devices;
  const bool leaves = --on[from] == 0, arrives = on[to]++ == 0;
  const uint32_t home = b->home[e];
  if (!leaves && !arrives) return;
  touch(b, home);
  if (arrives && to != home) receive(b, e, to, 1);
  if (leaves && from != home) receive(b, e, from, -1);
}

void psplit_i_board_move(psplit_board *b, uint32_t item, uint32_t label) {
  const psplit_core *core = b->core;
  const uint32_t from = b->label[item] % b->n_devices, to = label % b->n_devices;
  if (from == to) { /* another chunk: no load knows */
    b->label[item] = label;
    return;
  }
  touch(b, from);
  touch(b, to);
  b->w[from] -= core->w[(size_t)b->type[from] * core->n + item];
  b->w[to] += core->w[(size_t)b->type[to] * core->n + item];
  b->weight[from] -= core->weight_bytes[item];
  b->weight[to] += core->weight_bytes[item];
  b->act[from] -= core->act_bytes[item];
  b->act[to] += core->act_bytes[item];
  b->n_counted[from] -= core->n_counted[item];
  b->n_counted[to] += core->n_counted[item];
  b->n_items[from]--;
  b->n_items[to]++;
  for (uint32_t l = core->inc_off[item]; l < core->inc_off[item + 1]; l++)
    (core->inc[l] & 1 ? move_home : move_consumer)(b, core->inc[l] >> 1, from, to);
  for (uint32_t l = core->own_off[item]; l < core->own_off[item + 1]; l++) {
    uint32_t *users = b->n_users + (size_t)core->own[l] * b->n_devices;
    if (--users[from] == 0) b->weight[from] -= core->group_bytes[core->own[l]];
    if (users[to]++ == 0) b->weight[to] += core->group_bytes[core->own[l]];
  }
  if (b->latency) {
    count_arcs(b, item, from, -1);
    count_arcs(b, item, to, 1);
  }
  b->label[item] = label;
}

static int64_t load_of(const psplit_board *b, uint32_t k, const int64_t *recv,
                       const int64_t *send) {
  return psplit_i_load(b->core, b->w[k], recv[k], send[k]);
}

int64_t psplit_i_board_load(const psplit_board *b, uint32_t k) {
  return load_of(b, k, b->recv, b->send);
}

/* hop_arcs[n_devices^2]: stages that wait for others besides those of n_arcs; NULL: none. */
static int64_t value_of(psplit_board *b, const int64_t *recv, const int64_t *send,
                        const uint8_t *hop_arcs) {
  int64_t most = 0;
  if (b->latency) memset(b->ready, 0, b->n_devices * sizeof *b->ready);
  for (uint32_t k = 0; k < b->n_devices; k++) {
    const int64_t end = load_of(b, k, recv, send) + (b->latency ? b->ready[k] : 0);
    if (end > most) most = end;
    for (uint32_t next = k + 1; b->latency && next < b->n_devices; next++) {
      const size_t arc = (size_t)k * b->n_devices + next;
      if ((b->n_arcs[arc] || (hop_arcs && hop_arcs[arc])) && end > b->ready[next])
        b->ready[next] = end;
    }
  }
  return most;
}

int64_t psplit_i_board_value(psplit_board *b) { return value_of(b, b->recv, b->send, NULL); }

int64_t psplit_i_board_settle(psplit_board *b, int64_t *out_load) {
  const psplit_core *core = b->core;
  const size_t k = b->n_devices;
  const bool relayed = core->problem->next_hop != NULL;
  int64_t *recv = relayed ? b->passed : b->recv, *send = relayed ? b->passed + k : b->send;
  if (relayed) {
    memset(b->passed, 0, 2 * k * sizeof *b->passed);
    memset(b->relay.wants, 0xff, 2 * k * sizeof *b->relay.wants);
    if (b->latency) memset(b->hop_arcs, 0, k * k);
    for (uint32_t e = 0; e < core->n_nets; e++)
      if (!psplit_i_relay_net(core, e, b->label, b->type, &b->relay, e, recv, send,
                              b->latency ? b->hop_arcs : NULL))
        return PSPLIT_I_INF;
  }
  for (uint32_t d = 0; out_load && d < k; d++) out_load[d] = load_of(b, d, recv, send);
  return value_of(b, recv, send, relayed && b->latency ? b->hop_arcs : NULL);
}

bool psplit_i_board_fits(const psplit_board *b, uint32_t k) {
  const uint64_t limit = b->core->problem->devices[b->type[k]].memory_bytes;
  if (!limit) return true;
  const uint64_t held = b->core->stash ? b->n_devices - k : 1;
  return psplit_i_sat_add_u64(b->weight[k], psplit_i_sat_mul_u64(held, b->act[k])) <= limit;
}

bool psplit_i_board_range(const psplit_board *b, uint32_t item, uint32_t *low, uint32_t *high) {
  const psplit_core *core = b->core;
  *low = 0;
  *high = b->n_labels - 1;
  for (uint32_t l = core->pred_off[item]; b->ordered && l < core->pred_off[item + 1]; l++)
    if (b->label[core->pred[l]] != PSPLIT_NONE && b->label[core->pred[l]] > *low)
      *low = b->label[core->pred[l]];
  for (uint32_t l = core->succ_off[item]; b->ordered && l < core->succ_off[item + 1]; l++)
    if (b->label[core->succ[l]] < *high) *high = b->label[core->succ[l]];
  return *low <= *high;
}
