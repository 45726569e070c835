/* Fewer crossing tensors for a slightly slower bottleneck.
 *
 * Dynamic programming over the positions of a node order. The number of transfers is the sum over
 * stages of the tensors they receive, so the state is just a position and the number of stages
 * before it. The send time of a tensor is counted once, as if there were one receiver. The
 * resulting plan is evaluated, and the limit is lowered if the plan is too slow. */
#include "slack.h"

#include <string.h>

#include "budget.h"
#include "builder.h"
#include "checked.h"
#include "plan_budget.h"

enum { MOST_TRIES = 4, MOST_OPS = 1 << 29 /* if there is no time limit */ };
#define SHARE 0.1    /* of the planner's time limit, for all tries */
#define LEAST_S 0.01 /* granted in any case, so that small models do not depend on the limit */

/* The best division of a prefix of the order. */
typedef struct way {
  uint32_t n_received; /* UINT32_MAX: there is none */
  uint32_t from;       /* position where the last stage begins */
  int64_t slowest_ns;
} way;

typedef struct divider {
  const psplit_planner *planner;
  const psplit_problem *p;
  psplit_i_arena *arena;
  uint32_t n, n_stages;
  uint32_t *order, *place;    /* [n] */
  uint32_t *made_off, *made;  /* nets by producer: [n + 1], [n_nets] */
  uint32_t *read_off, *reads; /* nets by consumer, each once */
  uint32_t *first, *last;     /* [n_nets] position of the producer and of the last reader */
  uint32_t *seen;             /* [n_nets] 1 + the start of the stage in which the net was counted */
  bool *closed;               /* [n + 1] no cut is permitted here */
  way *ways;                  /* [n_stages + 1][n + 1] */
  int64_t limit_ns;
  psplit_i_budget *budget;
} divider;

static psplit_code list_nets(divider *d, psplit_diag *diag) {
  const psplit_problem *p = d->p;
  const size_t n_pins = p->n_nets ? p->net_off[p->n_nets] : 0;
  d->made_off = psplit_i_arena_zeroed(d->arena, (size_t)d->n + 2, sizeof *d->made_off);
  d->read_off = psplit_i_arena_zeroed(d->arena, (size_t)d->n + 2, sizeof *d->read_off);
  d->made = psplit_i_arena_zeroed(d->arena, p->n_nets, sizeof *d->made);
  d->reads = psplit_i_arena_zeroed(d->arena, n_pins, sizeof *d->reads);
  if (!d->made_off || !d->read_off || !d->made || !d->reads) return psplit_i_nomem(diag);
  for (uint32_t e = 0; e < p->n_nets; e++) {
    d->made_off[p->net_producer[e] + 2]++;
    for (uint32_t c = p->net_off[e]; c < p->net_off[e + 1]; c++)
      d->read_off[p->net_consumer[c] + 2]++;
  }
  for (uint32_t g = 0; g < d->n; g++) {
    d->made_off[g + 2] += d->made_off[g + 1];
    d->read_off[g + 2] += d->read_off[g + 1];
  }
  for (uint32_t e = 0; e < p->n_nets; e++) {
    d->made[d->made_off[p->net_producer[e] + 1]++] = e;
    for (uint32_t c = p->net_off[e]; c < p->net_off[e + 1]; c++)
      d->reads[d->read_off[p->net_consumer[c] + 1]++] = e;
  }
  return PSPLIT_OK;
}

static psplit_code begin(divider *d, psplit_diag *diag) {
  const size_t n_ways = ((size_t)d->n_stages + 1) * ((size_t)d->n + 1);
  d->order = psplit_i_arena_zeroed(d->arena, d->n, sizeof *d->order);
  d->place = psplit_i_arena_zeroed(d->arena, d->n, sizeof *d->place);
  d->first = psplit_i_arena_zeroed(d->arena, d->p->n_nets, sizeof *d->first);
  d->last = psplit_i_arena_zeroed(d->arena, d->p->n_nets, sizeof *d->last);
  d->seen = psplit_i_arena_zeroed(d->arena, d->p->n_nets, sizeof *d->seen);
  d->closed = psplit_i_arena_zeroed(d->arena, (size_t)d->n + 1, sizeof *d->closed);
  d->ways = psplit_i_arena_zeroed(d->arena, n_ways, sizeof *d->ways);
  if (d->arena->failed) return psplit_i_nomem(diag);
  return list_nets(d, diag);
}

/* Forbids cuts between two positions. */
static void close_between(divider *d, uint32_t from, uint32_t to) {
  for (uint32_t x = from + 1; x <= to; x++) d->closed[x] = true;
}

/* Computes what depends on the order: positions of nets, and where cuts are forbidden. */
static psplit_code take_order(divider *d, psplit_diag *diag) {
  const psplit_problem *p = d->p;
  for (uint32_t i = 0; i < d->n; i++) d->place[d->order[i]] = i;
  memset(d->closed, 0, ((size_t)d->n + 1) * sizeof *d->closed);
  memset(d->seen, 0, (size_t)p->n_nets * sizeof *d->seen);
  for (uint32_t e = 0; e < p->n_nets; e++) {
    d->first[e] = d->last[e] = d->place[p->net_producer[e]];
    for (uint32_t c = p->net_off[e]; c < p->net_off[e + 1]; c++)
      if (d->place[p->net_consumer[c]] > d->last[e]) d->last[e] = d->place[p->net_consumer[c]];
    if (p->net_flags[e] & PSPLIT_NET_UNCUTTABLE) close_between(d, d->first[e], d->last[e]);
  }
  if (!p->together) return PSPLIT_OK;
  uint32_t n_classes = 0;
  for (uint32_t g = 0; g < d->n; g++)
    if (p->together[g] != PSPLIT_NONE && p->together[g] >= n_classes)
      n_classes = p->together[g] + 1;
  uint32_t *from = psplit_i_arena_zeroed(d->arena, n_classes, sizeof *from);
  if (!from) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < d->n; i++) { /* 1 + the last position of the class */
    const uint32_t c = p->together[d->order[i]];
    if (c == PSPLIT_NONE) continue;
    if (from[c]) close_between(d, from[c] - 1, i);
    from[c] = i + 1;
  }
  return PSPLIT_OK;
}

static way *way_at(const divider *d, uint32_t stages, uint32_t place) {
  return &d->ways[(size_t)stages * ((size_t)d->n + 1) + place];
}

static void offer(divider *d, uint32_t from, uint32_t to, uint32_t n_received, int64_t load_ns) {
  for (uint32_t k = 0; k < d->n_stages; k++) {
    const way *before = way_at(d, k, from);
    way *after = way_at(d, k + 1, to);
    if (before->n_received == UINT32_MAX) continue;
    const uint32_t sum = before->n_received + n_received;
    const int64_t slowest = before->slowest_ns > load_ns ? before->slowest_ns : load_ns;
    if (sum > after->n_received || (sum == after->n_received && slowest >= after->slowest_ns))
      continue;
    *after = (way){sum, from, slowest};
  }
}

/* Tries all stages that begin at a position. Returns false if the budget is spent. */
static bool extend(divider *d, uint32_t from) {
  const psplit_problem *p = d->p;
  int64_t compute = 0, recv = 0, send = 0;
  uint32_t n_received = 0, n_work = 0;
  for (uint32_t i = from; i < d->n; i++) {
    const uint32_t g = d->order[i];
    const uint64_t n_nets =
      d->read_off[g + 1] - d->read_off[g] + (d->made_off[g + 1] - d->made_off[g]);
    if (!psplit_i_spend(d->budget, 1 + n_nets)) return false;
    compute = psplit_i_sat_add_i64(compute, p->time_ns[g]);
    n_work += !(p->node_flags[g] & PSPLIT_NODE_AUXILIARY);
    for (uint32_t r = d->read_off[g]; r < d->read_off[g + 1]; r++) {
      const uint32_t e = d->reads[r];
      if (d->first[e] >= from) {
        if (d->last[e] == i && d->seen[e] == from + 1) send -= p->net_send_ns[e], d->seen[e] = 0;
      } else if (d->seen[e] != from + 1) {
        d->seen[e] = from + 1;
        recv = psplit_i_sat_add_i64(recv, p->net_recv_ns[e]);
        n_received += p->net_bytes[e] > 0;
      }
    }
    for (uint32_t m = d->made_off[g]; m < d->made_off[g + 1]; m++) {
      const uint32_t e = d->made[m];
      if (d->last[e] == i) continue;
      d->seen[e] = from + 1;
      send = psplit_i_sat_add_i64(send, p->net_send_ns[e]);
    }
    const int64_t least = psplit_i_planner_load_ns(d->planner, compute, recv, 0);
    if (least > d->limit_ns) return true;
    const int64_t load = psplit_i_planner_load_ns(d->planner, compute, recv, send);
    if (load <= d->limit_ns && n_work && !d->closed[i + 1]) offer(d, from, i + 1, n_received, load);
  }
  return true;
}

/* Finds the best division of the order, as the stage of each supernode. Returns false if there is
 * none. */
static bool divide(divider *d, uint32_t *out_stage, uint32_t *out_n_received) {
  for (size_t i = 0; i < ((size_t)d->n_stages + 1) * ((size_t)d->n + 1); i++)
    d->ways[i] = (way){UINT32_MAX, 0, 0};
  *way_at(d, 0, 0) = (way){0, 0, 0};
  for (uint32_t from = 0; from < d->n; from++) {
    bool reached = false;
    for (uint32_t k = 0; k < d->n_stages && !reached; k++)
      reached = way_at(d, k, from)->n_received != UINT32_MAX;
    if (reached && !d->closed[from] && !extend(d, from)) return false;
  }
  const way *at = way_at(d, d->n_stages, d->n);
  if (at->n_received == UINT32_MAX) return false;
  *out_n_received = at->n_received;
  for (uint32_t k = d->n_stages, end = d->n; k-- > 0; end = way_at(d, k + 1, end)->from)
    for (uint32_t i = way_at(d, k + 1, end)->from; i < end; i++) out_stage[d->order[i]] = k;
  return true;
}

static bool applies(const psplit_planner *planner) {
  if (!planner->solution || planner->segmented || planner->n_replicas ||
      planner->options.slack_frac <= 0 || planner->options.objective != PSPLIT_THROUGHPUT ||
      planner->options.n_stages < 2 || planner->n_classes != 1 || planner->next_hop ||
      planner->options.training)
    return false;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (planner->pin[n] != PSPLIT_NONE) return false;
  return true;
}

/* Sets one of two orders of the supernodes: by stage, or by number. */
static void fill_order(divider *d, const uint32_t *stage, bool by_stage) {
  uint32_t n = 0;
  for (uint32_t s = 0; s < (by_stage ? d->n_stages : 1); s++)
    for (uint32_t g = 0; g < d->n; g++)
      if (!by_stage || stage[g] == s) d->order[n++] = g;
}

/* The better division of the two orders. If found, it is in *out_node_stage[n_nodes]. */
static psplit_code search(psplit_planner *planner, int64_t limit_ns, psplit_i_budget *budget,
                          uint32_t *out_node_stage, bool *out_found, psplit_diag *diag) {
  psplit_code code;
  psplit_problem problem;
  uint32_t *group, least = UINT32_MAX;
  *out_found = false;
  PSPLIT_TRY(psplit_i_problem_make(planner, diag, &problem, &group));
  if (problem.n_link_classes || !problem.n_nodes) goto out;
  divider d = {.planner = planner,
               .p = &problem,
               .arena = &planner->scratch,
               .n = problem.n_nodes,
               .n_stages = planner->options.n_stages,
               .limit_ns = limit_ns,
               .budget = budget};
  uint32_t *stage = psplit_i_arena_array(&planner->scratch, d.n, sizeof *stage);
  uint32_t *cut = psplit_i_arena_array(&planner->scratch, d.n, sizeof *cut);
  if (!stage || !cut) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(begin(&d, diag));
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (group[n] != PSPLIT_NONE) stage[group[n]] = planner->stage[n];
  for (unsigned by_stage = 0; by_stage < 2; by_stage++) {
    uint32_t n_received;
    fill_order(&d, stage, by_stage);
    PSPLIT_TRY(take_order(&d, diag));
    if (!divide(&d, cut, &n_received) || n_received >= least) continue;
    least = n_received;
    *out_found = true;
    for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
      out_node_stage[n] = group[n] == PSPLIT_NONE ? 0 : cut[group[n]];
  }
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

/* Whether a weight is duplicated that must stay together. */
static bool cuts_ties(const psplit_planner *planner, const psplit_i_tied_weights *ties) {
  bool any = false;
  if (planner->options.tied_weights != PSPLIT_TIED_TOGETHER) return false;
  for (uint32_t t = 0; t < ties->weights.n && !any; t++)
    any = psplit_i_tie_is_cut(planner, ties, t);
  return any;
}

/* Looks for a split within most_ns that fits and has fewer transfers than `best`, and makes it the
 * plan. The plan has no bound until the split is accepted: if it exceeds memory, or duplicates
 * weights that must stay together, it may be below the bound of the others. */
static psplit_code try_limits(psplit_planner *planner, const psplit_i_tied_weights *ties,
                              const psplit_plan *best, int64_t most_ns, uint32_t *cut,
                              bool *out_better, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  int64_t limit_ns = most_ns;
  psplit_partition_options options;
  psplit_i_partition_options(planner, SHARE, &options);
  psplit_i_budget budget = psplit_i_budget_of(&options);
  psplit_i_budget_extend(&budget, LEAST_S);
  if (budget.most > MOST_OPS) budget.most = MOST_OPS;
  *out_better = false;
  for (unsigned t = 0; t < MOST_TRIES; t++) {
    bool found;
    PSPLIT_TRY(search(planner, limit_ns, &budget, cut, &found, diag));
    if (!found) break;
    PSPLIT_TRY(psplit_i_builder_adopt(planner, cut, diag));
    const int64_t over_ns = planner->plan->bottleneck_ns - most_ns;
    *out_better = over_ns <= 0 && psplit_i_plan_fits(planner) && !cuts_ties(planner, ties) &&
                  planner->plan->n_transfers < best->n_transfers;
    if (over_ns <= 0 || over_ns >= limit_ns) break;
    limit_ns -= over_ns;
  }
out:
  psplit_i_plan_spend(planner, budget.spent);
  return code;
}

psplit_code psplit_i_take_slack(psplit_planner *planner, const psplit_i_tied_weights *ties,
                                psplit_diag *diag) {
  psplit_code code;
  const uint32_t n_nodes = planner->graph->n_nodes;
  bool better = false;
  planner->best_ns = 0;
  if (!applies(planner)) return PSPLIT_OK;
  code = planner->plan ? PSPLIT_OK : psplit_i_plan_make(planner, diag);
  if (code != PSPLIT_OK) return code;
  const psplit_plan best = *planner->plan;
  /* With one tensor per cut, fewer cross only if stages are empty. */
  if (best.n_transfers < best.n_stages) return PSPLIT_OK;
  const double most = (double)best.bottleneck_ns * (1 + planner->options.slack_frac);
  uint32_t *old = psplit_i_arena_array(&planner->arena, n_nodes, sizeof *old);
  uint32_t *cut = psplit_i_arena_array(&planner->arena, n_nodes, sizeof *cut);
  if (!old || !cut) return psplit_i_nomem(diag);
  if (n_nodes) memcpy(old, planner->stage, n_nodes * sizeof *old);
  psplit_solution *solution = planner->solution;
  planner->solution = NULL;
  code = try_limits(planner, ties, &best, psplit_i_sat_i64(most), cut, &better, diag);
  planner->solution = solution;
  if (code != PSPLIT_OK) return code;
  if (!better) return psplit_i_builder_adopt(planner, old, diag);
  planner->best_ns = best.bottleneck_ns;
  planner->best_transfers = best.n_transfers;
  planner->best_proved = best.proved_optimal;
  planner->best_proof_scope = best.proof_scope;
  return psplit_i_plan_make(planner, diag);
}
