/* The load of a growing set of items. */
#include <string.h>

#include "automaton.h"
#include "instance.h"
#include "load_tracker.h"
#include "problem.h"

psplit_code psplit_i_walk_init(psplit_walk *walk, const psplit_core *core, psplit_arena *arena) {
  memset(walk, 0, sizeof *walk);
  walk->core = core;
  walk->pin = PSPLIT_NONE;
  walk->w = PSPLIT_NEW(arena, int64_t, (size_t)core->n_types * 3);
  walk->n_in = PSPLIT_NEW(arena, uint32_t, core->n_nets);
  walk->has_source = PSPLIT_NEW(arena, bool, core->n_nets);
  walk->n_users = PSPLIT_NEW(arena, uint32_t, core->n_groups);
  walk->paid = PSPLIT_NEW(arena, uint32_t, core->n_types);
  if (!walk->w || !walk->n_in || !walk->has_source || !walk->n_users || !walk->paid)
    return PSPLIT_NOMEM;
  walk->n_forbidden = PSPLIT_NEW(arena, uint32_t, core->n_types);
  if (!walk->n_forbidden) return PSPLIT_NOMEM;
  walk->recv = walk->w + core->n_types;
  walk->send = walk->recv + core->n_types;
  for (uint32_t t = 0; t < core->n_types; t++)
    if (!core->problem->devices[t].free_comm && core->problem->devices[t].count > 0)
      walk->paid[walk->n_paid++] = t;
  return PSPLIT_OK;
}

/* Adds sign * the cost of net e to recv or send of every type that pays. */
static inline void charge(psplit_walk *walk, int64_t *side, const int64_t *cost, uint32_t e,
                          int64_t times) {
  for (uint32_t i = 0; i < walk->n_paid; i++) {
    const uint32_t t = walk->paid[i];
    side[t] += times * cost[(size_t)t * walk->core->n_nets + e];
  }
}

static inline int64_t sends(const psplit_walk *walk, uint32_t e) {
  return walk->times_sent ? walk->times_sent[e] : 1;
}

void psplit_i_walk_add(psplit_walk *walk, uint32_t item) {
  const psplit_core *core = walk->core;
  for (uint32_t t = 0; t < core->n_types; t++) {
    const int64_t w = core->w[(size_t)t * core->n + item];
    if (w >= PSPLIT_I_INF)
      walk->n_forbidden[t]++;
    else
      walk->w[t] += w;
  }
  for (uint32_t k = core->inc_off[item]; k < core->inc_off[item + 1]; k++) {
    const uint32_t e = core->inc[k] >> 1, before = walk->n_in[e]++;
    const uint32_t size = core->net_off[e + 1] - core->net_off[e];
    if (core->inc[k] & 1) {
      walk->has_source[e] = true;
      if (before > 0) charge(walk, walk->recv, core->recv, e, -1);
      if (before + 1 < size) charge(walk, walk->send, core->send, e, sends(walk, e));
    } else if (walk->has_source[e]) {
      if (before + 1 == size) charge(walk, walk->send, core->send, e, -sends(walk, e));
    } else if (before == 0) {
      charge(walk, walk->recv, core->recv, e, 1);
    }
  }
  walk->n_counted += core->n_counted[item];
  if (core->pin[item] != PSPLIT_NONE) {
    walk->pin = core->pin[item];
    walk->n_pinned++;
  }
  walk->weight_bytes += core->weight_bytes[item];
  walk->act_bytes += core->act_bytes[item];
  for (uint32_t k = core->own_off[item]; k < core->own_off[item + 1]; k++)
    if (walk->n_users[core->own[k]]++ == 0) walk->weight_bytes += core->group_bytes[core->own[k]];
}

void psplit_i_walk_remove(psplit_walk *walk, uint32_t item) {
  const psplit_core *core = walk->core;
  for (uint32_t t = 0; t < core->n_types; t++) {
    const int64_t w = core->w[(size_t)t * core->n + item];
    if (w >= PSPLIT_I_INF)
      walk->n_forbidden[t]--;
    else
      walk->w[t] -= w;
  }
  for (uint32_t k = core->inc_off[item]; k < core->inc_off[item + 1]; k++) {
    const uint32_t e = core->inc[k] >> 1, after = --walk->n_in[e];
    const uint32_t size = core->net_off[e + 1] - core->net_off[e];
    if (core->inc[k] & 1) {
      walk->has_source[e] = false;
      if (after > 0) charge(walk, walk->recv, core->recv, e, 1);
      if (after + 1 < size) charge(walk, walk->send, core->send, e, -sends(walk, e));
    } else if (walk->has_source[e]) {
      if (after + 1 == size) charge(walk, walk->send, core->send, e, sends(walk, e));
    } else if (after == 0) {
      charge(walk, walk->recv, core->recv, e, -1);
    }
  }
  walk->n_counted -= core->n_counted[item];
  if (core->pin[item] != PSPLIT_NONE && --walk->n_pinned == 0) walk->pin = PSPLIT_NONE;
  walk->weight_bytes -= core->weight_bytes[item];
  walk->act_bytes -= core->act_bytes[item];
  for (uint32_t k = core->own_off[item]; k < core->own_off[item + 1]; k++)
    if (--walk->n_users[core->own[k]] == 0) walk->weight_bytes -= core->group_bytes[core->own[k]];
}

void psplit_i_walk_clear(psplit_walk *walk, const uint32_t *items, uint32_t n) {
  const psplit_core *core = walk->core;
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t k = core->inc_off[items[i]]; k < core->inc_off[items[i] + 1]; k++) {
      walk->n_in[core->inc[k] >> 1] = 0;
      walk->has_source[core->inc[k] >> 1] = false;
    }
    for (uint32_t k = core->own_off[items[i]]; k < core->own_off[items[i] + 1]; k++)
      walk->n_users[core->own[k]] = 0;
  }
  memset(walk->w, 0, (size_t)core->n_types * 3 * sizeof *walk->w);
  memset(walk->n_forbidden, 0, core->n_types * sizeof *walk->n_forbidden);
  walk->weight_bytes = walk->act_bytes = 0;
  walk->n_counted = walk->n_pinned = 0;
  walk->pin = PSPLIT_NONE;
}

int64_t psplit_i_walk_load(const psplit_walk *walk, const psplit_machine *machine,
                           const psplit_move *move) {
  const uint32_t t = move->type;
  const uint64_t limit = walk->core->problem->devices[t].memory_bytes;
  if (limit) {
    const uint64_t held = walk->core->stash ? machine->n_stages - move->stage : 1;
    if (psplit_i_sat_add_u64(walk->weight_bytes, psplit_i_sat_mul_u64(held, walk->act_bytes)) >
        limit)
      return PSPLIT_I_INF;
  }
  if (walk->n_forbidden[t]) return PSPLIT_I_INF;
  int64_t load = psplit_i_load(walk->core, walk->w[t], walk->recv[t], walk->send[t]);
  if (move->replicas > 1) {
    const double r = move->replicas;
    load = (load + move->replicas - 1) / move->replicas +
           (int64_t)(4 * (r - 1) / r * (double)walk->weight_bytes * machine->sync_ns_per_byte);
  }
  return load;
}
