#include "schedule.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "union_find.h"

/* A device with a core for every node. */
static bool is_pool(const psplit_i_calls *c, const psplit_device *device) {
  return c->has_pool && device->free_comm;
}

static psplit_code list_devices(psplit_i_calls *c, psplit_diag *diag) {
  const psplit_problem *p = c->problem;
  uint32_t cpu = PSPLIT_NONE, at = 0;
  uint64_t n_cpus = 0;
  for (uint32_t d = 0; d < p->n_devices; d++) {
    if (p->devices[d].count == 0) continue;
    if (!is_pool(c, &p->devices[d])) {
      c->n_accelerators += p->devices[d].count;
      continue;
    }
    n_cpus += p->devices[d].count;
    if (cpu == PSPLIT_NONE) cpu = d;
    if (!psplit_i_entries_alike(&p->devices[cpu], &p->devices[d]))
      return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                           "call latency supports one kind of CPU; the problem has several");
  }
  if (n_cpus > 1 && p->devices[cpu].memory_bytes)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "call latency treats all CPUs as one, so a memory limit requires a single "
                         "CPU; the problem has %" PRIu64,
                         n_cpus);
  c->has_cpus = cpu != PSPLIT_NONE;
  c->entry = PSPLIT_NEW(&c->arena, uint32_t, (size_t)c->n_accelerators + 1);
  c->type = PSPLIT_NEW(&c->arena, uint32_t, (size_t)c->n_accelerators + 1);
  if (!c->entry || !c->type) return psplit_i_nomem(diag);
  for (uint32_t d = 0; d < p->n_devices; d++) {
    if (is_pool(c, &p->devices[d]) || p->devices[d].count == 0) continue;
    for (uint32_t k = 0; k < p->devices[d].count; k++, at++) {
      c->entry[at] = d;
      c->type[at] = c->n_types;
    }
    c->n_types++;
  }
  c->entry[at] = cpu;
  c->type[at] = c->n_types;
  c->n_types += c->has_cpus;
  return PSPLIT_OK;
}

static bool price(psplit_i_calls *c) {
  const psplit_problem *p = c->problem;
  c->time = PSPLIT_NEW(&c->arena, int64_t, (size_t)c->n_types * c->n);
  c->send = PSPLIT_NEW(&c->arena, int64_t, (size_t)c->n_types * p->n_nets);
  c->recv = PSPLIT_NEW(&c->arena, int64_t, (size_t)c->n_types * p->n_nets);
  if (!c->time || !c->send || !c->recv) return false;
  for (uint32_t a = 0; a < c->n_accelerators + c->has_cpus; a++) {
    if (a > 0 && c->type[a] == c->type[a - 1]) continue;
    const psplit_device *device = &p->devices[c->entry[a]];
    for (uint32_t v = 0; v < c->n; v++) {
      const int64_t ns = p->time_ns[(size_t)v * p->n_classes + device->class_id];
      c->time[(size_t)c->type[a] * c->n + v] = ns == PSPLIT_TIME_FORBIDDEN ? PSPLIT_I_INF : ns;
    }
    for (uint32_t e = 0; e < p->n_nets && !device->free_comm; e++) {
      const size_t cell = (size_t)c->type[a] * p->n_nets + e;
      c->send[cell] = psplit_i_net_ns(p, e, device->class_id, true);
      c->recv[cell] = psplit_i_net_ns(p, e, device->class_id, false);
    }
  }
  return true;
}

static void add_edge(psplit_i_calls *c, bool place, uint32_t u, uint32_t v) {
  if (place) {
    c->succ[--c->succ_off[u]] = v;
    c->pred[--c->pred_off[v]] = u;
  } else {
    c->succ_off[u]++;
    c->pred_off[v]++;
  }
}

static bool add_edges(psplit_i_calls *c) {
  const psplit_problem *p = c->problem;
  const size_t n_edges = (size_t)p->net_off[p->n_nets] + p->n_order;
  c->succ_off = PSPLIT_NEW(&c->arena, uint32_t, (size_t)c->n + 1);
  c->pred_off = PSPLIT_NEW(&c->arena, uint32_t, (size_t)c->n + 1);
  c->succ = PSPLIT_NEW(&c->arena, uint32_t, n_edges);
  c->pred = PSPLIT_NEW(&c->arena, uint32_t, n_edges);
  if (!c->succ_off || !c->pred_off || !c->succ || !c->pred) return false;
  for (int place = 0; place < 2; place++) {
    for (uint32_t e = 0; e < p->n_nets; e++)
      for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
        if (p->net_consumer[k] != p->net_producer[e])
          add_edge(c, place, p->net_producer[e], p->net_consumer[k]);
    for (uint32_t k = 0; k < p->n_order; k++)
      if (p->order_from[k] != p->order_to[k]) add_edge(c, place, p->order_from[k], p->order_to[k]);
    for (uint32_t v = 0, out = 0, in = 0; v <= c->n && !place; v++) {
      c->succ_off[v] = out += c->succ_off[v];
      c->pred_off[v] = in += c->pred_off[v];
    }
  }
  return true;
}

/* Nodes that the problem keeps together, and ends of tensors that cannot be sent. */
static bool make_groups(psplit_i_calls *c) {
  const psplit_problem *p = c->problem;
  uint32_t *parent = PSPLIT_NEW(&c->arena, uint32_t, c->n), n_named = 0;
  uint64_t *named = PSPLIT_NEW(&c->arena, uint64_t, c->n); /* class, then node */
  c->group = PSPLIT_NEW(&c->arena, uint32_t, c->n);
  c->member_off = PSPLIT_NEW(&c->arena, uint32_t, (size_t)c->n + 1);
  c->member = PSPLIT_NEW(&c->arena, uint32_t, c->n);
  if (!parent || !named || !c->group || !c->member_off || !c->member) return false;
  for (uint32_t v = 0; v < c->n; v++) {
    parent[v] = v;
    if (p->together && p->together[v] != PSPLIT_NONE)
      named[n_named++] = (uint64_t)p->together[v] << 32 | v;
  }
  qsort(named, n_named, sizeof *named, psplit_i_compare_u64);
  for (uint32_t i = 1; i < n_named; i++)
    if (named[i] >> 32 == named[i - 1] >> 32)
      psplit_i_unite(parent, (uint32_t)named[i - 1], (uint32_t)named[i]);
  for (uint32_t e = 0; p->net_flags && e < p->n_nets; e++)
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
      if (p->net_flags[e] & PSPLIT_NET_UNCUTTABLE)
        psplit_i_unite(parent, p->net_producer[e], p->net_consumer[k]);
  for (uint32_t v = 0; v < c->n; v++) {
    const uint32_t first = psplit_i_find(parent, v); /* the least of its group */
    c->group[v] = first == v ? c->n_groups++ : c->group[first];
    c->member_off[c->group[v] + 1]++;
  }
  for (uint32_t g = 0; g < c->n_groups; g++) c->member_off[g + 1] += c->member_off[g];
  memset(parent, 0, c->n * sizeof *parent); /* how many have a place */
  for (uint32_t v = 0; v < c->n; v++)
    c->member[c->member_off[c->group[v]] + parent[c->group[v]]++] = v;
  return true;
}

static bool sort_nodes(psplit_i_calls *c) {
  uint32_t *left = PSPLIT_NEW(&c->arena, uint32_t, c->n), size = 0;
  c->order = PSPLIT_NEW(&c->arena, uint32_t, c->n);
  if (!left || !c->order) return false;
  for (uint32_t v = 0; v < c->n; v++) {
    left[v] = c->pred_off[v + 1] - c->pred_off[v];
    if (left[v] == 0) c->order[size++] = v;
  }
  for (uint32_t at = 0; at < size; at++)
    for (uint32_t k = c->succ_off[c->order[at]]; k < c->succ_off[c->order[at] + 1]; k++)
      if (--left[c->succ[k]] == 0) c->order[size++] = c->succ[k];
  return true;
}

psplit_code psplit_i_calls_init(psplit_i_calls *c, const psplit_problem *problem, bool with_pool,
                                psplit_diag *diag) {
  *c = (psplit_i_calls){.problem = problem, .n = problem->n_nodes, .has_pool = with_pool};
  psplit_i_arena_init(&c->arena, 0);
  const psplit_code code = list_devices(c, diag);
  if (code != PSPLIT_OK) return code;
  const bool room = price(c) && add_edges(c) && sort_nodes(c) && make_groups(c);
  return room ? PSPLIT_OK : psplit_i_nomem(diag);
}

psplit_code psplit_i_calls_scratch_init(psplit_i_calls_scratch *s, const psplit_i_calls *c,
                                        psplit_i_arena *arena) {
  const size_t n_units = (size_t)c->n_accelerators + c->n;
  *s = (psplit_i_calls_scratch){.load = PSPLIT_NEW(arena, int64_t, c->n_accelerators),
                                .ready = PSPLIT_NEW(arena, int64_t, n_units),
                                .bytes = PSPLIT_NEW(arena, uint64_t, (size_t)c->n_accelerators + 1),
                                .left = PSPLIT_NEW(arena, uint32_t, n_units),
                                .queue = PSPLIT_NEW(arena, uint32_t, n_units),
                                .mark = PSPLIT_NEW(arena, uint32_t, (size_t)c->n_accelerators + 1),
                                .first = PSPLIT_NEW(arena, uint32_t, n_units),
                                .next = PSPLIT_NEW(arena, uint32_t, c->n)};
  const bool room =
    s->load && s->ready && s->bytes && s->left && s->queue && s->mark && s->first && s->next;
  return room ? PSPLIT_OK : PSPLIT_NOMEM;
}

void psplit_i_calls_fini(psplit_i_calls *c) { psplit_i_arena_fini(&c->arena); }

static uint32_t unit_of(const psplit_i_calls *c, const uint32_t *device, uint32_t v) {
  return device[v] < c->n_accelerators ? device[v] : c->n_accelerators + v;
}

/* Sums up what accelerators compute, and what all devices hold. */
static bool add_nodes(const psplit_i_calls *c, psplit_i_calls_scratch *s, const uint32_t *device) {
  const psplit_problem *p = c->problem;
  const uint32_t n_devices = c->n_accelerators + c->has_cpus;
  memset(s->load, 0, c->n_accelerators * sizeof *s->load);
  memset(s->bytes, 0, n_devices * sizeof *s->bytes);
  for (uint32_t v = 0; v < c->n; v++) {
    const uint32_t a = device[v];
    const int64_t ns = c->time[(size_t)c->type[a] * c->n + v];
    if (ns >= PSPLIT_I_INF) return false;
    if (a < c->n_accelerators) s->load[a] += ns;
    if (p->weight_bytes) s->bytes[a] += p->weight_bytes[v];
    if (p->activation_bytes) s->bytes[a] += p->activation_bytes[v];
  }
  memset(s->mark, 0xff, ((size_t)c->n_accelerators + 1) * sizeof *s->mark);
  for (uint32_t g = 0; g < p->n_weights; g++)
    for (uint32_t k = p->weight_off[g]; k < p->weight_off[g + 1]; k++) {
      const uint32_t a = device[p->weight_user[k]];
      if (s->mark[a] == g) continue;
      s->mark[a] = g;
      s->bytes[a] += p->weight_group_bytes[g];
    }
  for (uint32_t a = 0; a < n_devices; a++) {
    const uint64_t limit = p->devices[c->entry[a]].memory_bytes;
    if (limit && s->bytes[a] > limit) return false;
  }
  return true;
}

/* Adds what accelerators receive and send. */
static void add_nets(const psplit_i_calls *c, psplit_i_calls_scratch *s, const uint32_t *device) {
  const psplit_problem *p = c->problem;
  const uint32_t cpus = c->n_accelerators;
  memset(s->mark, 0xff, ((size_t)cpus + 1) * sizeof *s->mark);
  for (uint32_t e = 0; e < p->n_nets; e++) {
    const uint32_t home = device[p->net_producer[e]];
    uint32_t n_receivers = 0;
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
      const uint32_t a = device[p->net_consumer[k]];
      if (a == home || s->mark[a] == e) continue;
      s->mark[a] = e;
      n_receivers++;
      if (a < cpus) s->load[a] += c->recv[(size_t)c->type[a] * p->n_nets + e];
    }
    if (home == cpus || n_receivers == 0) continue;
    s->load[home] += c->send[(size_t)c->type[home] * p->n_nets + e] *
                     (p->comm == PSPLIT_COMM_P2P ? n_receivers : 1);
  }
}

uint64_t psplit_i_calls_latency_ops(const psplit_i_calls *c) {
  const psplit_problem *p = c->problem;
  return 2 * ((uint64_t)c->succ_off[c->n] + p->net_off[p->n_nets]) + 6 * (uint64_t)c->n;
}

int64_t psplit_i_calls_latency(const psplit_i_calls *c, psplit_i_calls_scratch *s,
                               const uint32_t *device, int64_t *out_busy) {
  const uint32_t n_units = c->n_accelerators + c->n;
  uint32_t size = 0, n_units_used = 0;
  int64_t last = 0;
  *out_busy = 0;
  if (!add_nodes(c, s, device)) return PSPLIT_I_INF;
  add_nets(c, s, device);
  memset(s->first, 0xff, n_units * sizeof *s->first);
  memset(s->left, 0, n_units * sizeof *s->left);
  memset(s->ready, 0, n_units * sizeof *s->ready);
  for (uint32_t v = c->n; v-- > 0;) {
    const uint32_t unit = unit_of(c, device, v);
    n_units_used += s->first[unit] == PSPLIT_NONE;
    s->next[v] = s->first[unit];
    s->first[unit] = v;
    for (uint32_t k = c->pred_off[v]; k < c->pred_off[v + 1]; k++)
      s->left[unit] += unit_of(c, device, c->pred[k]) != unit;
  }
  for (uint32_t u = 0; u < n_units; u++)
    if (s->first[u] != PSPLIT_NONE && s->left[u] == 0) s->queue[size++] = u;
  for (uint32_t at = 0; at < size; at++) {
    const uint32_t unit = s->queue[at];
    const bool call = unit < c->n_accelerators;
    const int64_t takes =
      call ? s->load[unit]
           : c->time[(size_t)c->type[c->n_accelerators] * c->n + unit - c->n_accelerators];
    const int64_t end = s->ready[unit] + takes;
    if (call) *out_busy += takes;
    if (end > last) last = end;
    for (uint32_t v = s->first[unit]; v != PSPLIT_NONE; v = s->next[v])
      for (uint32_t k = c->succ_off[v]; k < c->succ_off[v + 1]; k++) {
        const uint32_t to = unit_of(c, device, c->succ[k]);
        if (to == unit) continue;
        if (end > s->ready[to]) s->ready[to] = end;
        if (--s->left[to] == 0) s->queue[size++] = to;
      }
  }
  return size == n_units_used ? last : PSPLIT_I_INF;
}
