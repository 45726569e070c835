/* Splits valued over the links between their stages, and improved by small moves. */
#include "pairs.h"

#include <stdlib.h>
#include <string.h>

psplit_code psplit_i_pairs_init(const psplit_planner *planner, const psplit_problem *problem,
                                psplit_i_arena *arena, psplit_diag *diag, psplit_i_pairs *out) {
  const size_t n = planner->options.n_stages;
  const bool latency = planner->options.objective == PSPLIT_LATENCY;
  *out = (psplit_i_pairs){.planner = planner,
                          .problem = problem,
                          .load_ns = PSPLIT_NEW(arena, int64_t, n),
                          .ready_ns = PSPLIT_NEW(arena, int64_t, n),
                          .wants = PSPLIT_NEW(arena, uint32_t, n),
                          .held = PSPLIT_NEW(arena, uint32_t, n),
                          .hops = PSPLIT_NEW(arena, psplit_i_hop, n),
                          .arcs = latency ? PSPLIT_NEW(arena, uint8_t, n * n) : NULL};
  return out->load_ns && out->ready_ns && out->wants && out->held && out->hops &&
             (!latency || out->arcs)
           ? PSPLIT_OK
           : psplit_i_nomem(diag);
}

static void send(psplit_i_pairs *p, uint32_t from, uint32_t to, uint64_t bytes) {
  const int64_t ns = psplit_devices_transfer_ns(p->planner->devices, from, to, bytes);
  p->load_ns[from] = psplit_i_sat_add_i64(p->load_ns[from], ns);
  p->load_ns[to] = psplit_i_sat_add_i64(p->load_ns[to], ns);
  if (p->arcs) p->arcs[(size_t)from * p->planner->options.n_stages + to] = 1;
}

/* Brings net e to its readers, in the order of stages. False: there is no way. */
static bool send_net(psplit_i_pairs *p, uint32_t e, const uint32_t *stage) {
  const psplit_problem *q = p->problem;
  const uint32_t n = p->planner->options.n_stages, home = stage[q->net_producer[e]];
  uint32_t last = home;
  for (uint32_t k = q->net_off[e]; k < q->net_off[e + 1]; k++) {
    const uint32_t to = stage[q->net_consumer[k]];
    if (to == home || p->wants[to] == e) continue;
    p->wants[to] = e;
    if (to > last) last = to;
    if (!p->planner->next_hop) send(p, home, to, q->net_bytes[e]);
  }
  p->held[home] = e;
  for (uint32_t to = home + 1; p->planner->next_hop && to <= last; to++) {
    if (p->wants[to] != e || p->held[to] == e) continue;
    const uint32_t n_hops = psplit_i_route(n, p->planner->next_hop, home, to, p->held, e, p->hops);
    if (!n_hops) return false;
    for (uint32_t h = 0; h < n_hops; h++) send(p, p->hops[h].from, p->hops[h].to, q->net_bytes[e]);
  }
  return true;
}

/* A stage starts when all that send to it have ended. */
static int64_t latency_ns(psplit_i_pairs *p) {
  const uint32_t n = p->planner->options.n_stages;
  int64_t last_ns = 0;
  memset(p->ready_ns, 0, n * sizeof *p->ready_ns);
  for (uint32_t s = 0; s < n; s++) {
    const int64_t end_ns = psplit_i_sat_add_i64(p->ready_ns[s], p->load_ns[s]);
    for (uint32_t to = s + 1; to < n; to++)
      if (p->arcs[(size_t)s * n + to] && end_ns > p->ready_ns[to]) p->ready_ns[to] = end_ns;
    if (end_ns > last_ns) last_ns = end_ns;
  }
  return last_ns;
}

int64_t psplit_i_pairs_value_ns(psplit_i_pairs *p, const uint32_t *stage) {
  const psplit_problem *q = p->problem;
  const size_t n = p->planner->options.n_stages;
  memset(p->load_ns, 0, n * sizeof *p->load_ns);
  memset(p->wants, 0xff, n * sizeof *p->wants);
  memset(p->held, 0xff, n * sizeof *p->held);
  if (p->arcs) memset(p->arcs, 0, n * n);
  for (uint32_t v = 0; v < q->n_nodes; v++) {
    const uint32_t class_id = q->devices[stage[v]].class_id;
    p->load_ns[stage[v]] =
      psplit_i_sat_add_i64(p->load_ns[stage[v]], q->time_ns[(size_t)v * q->n_classes + class_id]);
  }
  for (uint32_t e = 0; e < q->n_nets; e++)
    if (!send_net(p, e, stage)) return INT64_MAX;
  int64_t most_ns = 0;
  p->sum_ns = 0;
  for (size_t s = 0; s < n; s++) {
    p->sum_ns = psplit_i_sat_add_i64(p->sum_ns, p->load_ns[s]);
    if (p->load_ns[s] > most_ns) most_ns = p->load_ns[s];
  }
  return p->arcs ? latency_ns(p) : most_ns;
}

/* --- small moves --- */

typedef struct climb {
  psplit_i_pairs *pairs;
  const psplit_partition_options *options;
  uint32_t *stage, *trial; /* [n_nodes] */
  uint32_t *low, *high;    /* [n_nodes] stages that a node's neighbours leave to it */
  int64_t value_ns, sum_ns;
  uint64_t steps_left, steps_each;
  psplit_code code;
} climb;

static bool in_order(const psplit_problem *q, const uint32_t *stage) {
  for (uint32_t e = 0; e < q->n_nets; e++)
    for (uint32_t k = q->net_off[e]; k < q->net_off[e + 1]; k++)
      if (stage[q->net_producer[e]] > stage[q->net_consumer[k]]) return false;
  return true;
}

/* Takes c->trial over if it is better and meets all demands: memory, pins, what stays together,
 * work in every stage. Else makes it what it was. */
static bool take(climb *c) {
  const psplit_problem *q = c->pairs->problem;
  c->steps_left -= c->steps_left < c->steps_each ? c->steps_left : c->steps_each;
  int64_t value_ns = INT64_MAX;
  if (in_order(q, c->trial)) value_ns = psplit_i_pairs_value_ns(c->pairs, c->trial);
  const int64_t sum_ns = c->pairs->sum_ns;
  bool better = value_ns < c->value_ns || (value_ns == c->value_ns && sum_ns < c->sum_ns);
  if (better) {
    psplit_solution *checked = NULL;
    psplit_diag ignored = {0};
    const psplit_code code =
      psplit_partition_check(q, c->options, c->trial, NULL, NULL, NULL, &ignored, &checked);
    psplit_solution_destroy(checked);
    if (code == PSPLIT_NOMEM) c->code = code;
    better = code == PSPLIT_OK;
  }
  if (better) {
    c->value_ns = value_ns;
    c->sum_ns = sum_ns;
  }
  memcpy(better ? c->stage : c->trial, better ? c->trial : c->stage, q->n_nodes * sizeof *c->stage);
  return better;
}

static bool may_go_on(const climb *c, int64_t enough_ns) {
  return c->steps_left > 0 && c->code == PSPLIT_OK && c->value_ns > enough_ns;
}

/* All that is in stage `from` goes to stage `to`, those in between close ranks. */
static bool move_stages(climb *c, int64_t enough_ns) {
  const uint32_t n = c->pairs->planner->options.n_stages, n_nodes = c->pairs->problem->n_nodes;
  bool any = false;
  for (uint32_t from = 0; from < n; from++)
    for (uint32_t to = 0; to < n && may_go_on(c, enough_ns); to++) {
      if (to == from || to + 1 == from) continue; /* a step back is another's step ahead */
      for (uint32_t v = 0; v < n_nodes; v++) {
        const uint32_t s = c->stage[v];
        if (s == from)
          c->trial[v] = to;
        else if (from < to && s > from && s <= to)
          c->trial[v] = s - 1;
        else if (to < from && s >= to && s < from)
          c->trial[v] = s + 1;
      }
      any |= take(c);
    }
  return any;
}

static void find_ranges(climb *c) {
  const psplit_problem *q = c->pairs->problem;
  for (uint32_t v = 0; v < q->n_nodes; v++) {
    c->low[v] = 0;
    c->high[v] = c->pairs->planner->options.n_stages - 1;
  }
  for (uint32_t e = 0; e < q->n_nets; e++)
    for (uint32_t k = q->net_off[e]; k < q->net_off[e + 1]; k++) {
      const uint32_t u = q->net_producer[e], v = q->net_consumer[k];
      if (c->stage[u] > c->low[v]) c->low[v] = c->stage[u];
      if (c->stage[v] < c->high[u]) c->high[u] = c->stage[v];
    }
}

/* One node to another stage. */
static bool move_nodes(climb *c, int64_t enough_ns) {
  bool any = false;
  find_ranges(c);
  for (uint32_t v = 0; v < c->pairs->problem->n_nodes; v++)
    for (uint32_t s = c->low[v]; s <= c->high[v] && may_go_on(c, enough_ns); s++) {
      if (s == c->stage[v]) continue;
      c->trial[v] = s;
      if (!take(c)) continue;
      any = true;
      find_ranges(c);
    }
  return any;
}

psplit_code psplit_i_pairs_improve(psplit_i_pairs *pairs, const psplit_partition_options *options,
                                   int64_t enough_ns, uint64_t max_steps, psplit_diag *diag,
                                   uint32_t *inout_stage) {
  const psplit_problem *q = pairs->problem;
  const uint64_t n_stages = pairs->planner->options.n_stages;
  climb c = {.pairs = pairs, .options = options, .stage = inout_stage, .steps_left = max_steps};
  c.steps_each = q->n_nodes + 2 * (uint64_t)(q->n_nets ? q->net_off[q->n_nets] : 0) +
                 (pairs->arcs || pairs->planner->next_hop ? n_stages * n_stages : n_stages);
  c.trial = malloc(q->n_nodes * (3 * sizeof *c.trial));
  if (!c.trial) return psplit_i_nomem(diag);
  c.low = c.trial + q->n_nodes;
  c.high = c.low + q->n_nodes;
  memcpy(c.trial, inout_stage, q->n_nodes * sizeof *c.trial);
  c.value_ns = psplit_i_pairs_value_ns(pairs, inout_stage);
  c.sum_ns = pairs->sum_ns;
  while (may_go_on(&c, enough_ns)) {
    const bool stages = move_stages(&c, enough_ns), nodes = move_nodes(&c, enough_ns);
    if (!stages && !nodes) break;
  }
  free(c.trial);
  return c.code == PSPLIT_OK ? PSPLIT_OK : psplit_i_nomem(diag);
}
