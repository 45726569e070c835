/* What crosses the boundaries in front of some stages at least. The j stages in front of a
 * boundary hold a downset; with what they pay for what crosses it, they have no more than j times
 * the bottleneck, and the others, with theirs, no more than that for each of them. So the
 * downset's weight lies between two limits, and a branched cut says what crosses one of such a
 * weight at least. A net that crosses is sent and received at least once: all loads together are
 * the work and what crosses, and their average bounds the largest. Where several boundaries count,
 * each net counts at one of them, or one that crosses two would count twice. What crosses at least
 * brings the limits closer, where more may cross. */
#include "bits.h"
#include "bounds.h"
#include "branched_cut.h"
#include "instance.h"
#include "problem.h"

enum {
  MOST_CLUSTERS = 4096,
  MOST_TOGETHER = 31, /* boundaries */
  MOST_BRANCHES = 1 << 14,
  LEAST_GAIN = 50 /* closer limits are tried while they close one of so many parts of the gap */
};

typedef struct boundary {
  uint32_t n_stages; /* in front of it */
  int64_t low, high; /* weight of what these hold */
} boundary;

typedef struct boundaries {
  uint32_t n;
  boundary of[MOST_TOGETHER];
} boundaries;

typedef struct work {
  const psplit_i_bound_query *query;
  psplit_i_closure closure;
  psplit_i_arena arena;
  int64_t limit;            /* no load is above */
  int64_t *before, *behind; /* [n] weight there, with the cluster itself */
  int64_t *cost;            /* [n_nets] to send and to receive, at least */
  int64_t *counted;         /* [n_nets] the same at one boundary */
  uint32_t *at;             /* [n_nets] the boundary where the net counts */
  double front, back;       /* no net costs stages there less, as a part of both ends */
} work;

/* The least over types of devices, of which one may send and another receive. */
static int64_t least_of(const work *x, const int64_t *costs, uint32_t e) {
  const psplit_i_instance *instance = x->query->instance;
  int64_t least = PSPLIT_I_INF;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    if (x->query->automaton->count[t] == 0) continue;
    const bool pays = !instance->problem->devices[t].free_comm;
    const int64_t cost = pays ? costs[(size_t)t * instance->n_nets + e] : 0;
    if (cost < least) least = cost;
  }
  return least;
}

static void find_costs(work *x) {
  const psplit_i_instance *instance = x->query->instance;
  x->front = x->back = 1;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const int64_t send = least_of(x, instance->send, e), recv = least_of(x, instance->recv, e);
    x->cost[e] = psplit_i_sat_add_i64(send, recv);
    if (x->cost[e] == 0) continue;
    const double sent = (double)send / (double)x->cost[e];
    const double received = (double)recv / (double)x->cost[e];
    const double less = sent < received ? sent : received;
    /* A net of the backward pass crosses either way. */
    const double front = instance->net_forward[e] ? sent : less;
    const double back = instance->net_forward[e] ? received : less;
    if (front < x->front) x->front = front;
    if (back < x->back) x->back = back;
  }
}

static int64_t weight_of(const work *x, const uint64_t *bits) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < x->closure.n; i++)
    if (psplit_i_holds(bits, i)) sum += x->query->automaton->min_time[i];
  return sum;
}

static psplit_code work_init(work *x, psplit_i_budget *budget) {
  const psplit_i_instance *instance = x->query->instance;
  psplit_i_arena_init(&x->arena, 0);
  psplit_code code = psplit_i_closure_make(instance, budget, &x->closure);
  if (code != PSPLIT_OK) return code;
  x->before = PSPLIT_NEW(&x->arena, int64_t, instance->n);
  x->behind = PSPLIT_NEW(&x->arena, int64_t, instance->n);
  x->cost = PSPLIT_NEW(&x->arena, int64_t, instance->n_nets);
  x->counted = PSPLIT_NEW(&x->arena, int64_t, instance->n_nets);
  x->at = PSPLIT_NEW(&x->arena, uint32_t, instance->n_nets);
  if (x->arena.failed) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < instance->n; i++) {
    x->before[i] = weight_of(x, x->closure.before + (size_t)i * x->closure.words);
    x->behind[i] = weight_of(x, x->closure.behind + (size_t)i * x->closure.words);
  }
  find_costs(x);
  psplit_i_spend(budget, 2 * (uint64_t)instance->n * instance->n);
  return PSPLIT_OK;
}

static void work_fini(work *x) {
  psplit_i_closure_fini(&x->closure);
  psplit_i_arena_fini(&x->arena);
}

/* So many boundaries, as far from each other as from the ends. */
static boundaries evenly(const work *x, uint32_t n) {
  const psplit_i_automaton *m = x->query->automaton;
  boundaries b = {.n = n};
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t before = (k + 1) * m->n_stages / (n + 1);
    b.of[k].n_stages = before;
    b.of[k].high = psplit_i_sat_mul_i64(x->limit, before);
    b.of[k].low = m->total_min_time - psplit_i_sat_mul_i64(x->limit, m->n_stages - before);
  }
  return b;
}

/* Whether pins may be on both sides of a boundary. */
static bool may_cross(const work *x, uint32_t e, const boundary *b) {
  const psplit_i_instance *instance = x->query->instance;
  const int64_t total = x->query->automaton->total_min_time;
  bool in = false, out = false;
  for (uint32_t k = instance->net_off[e]; k < instance->net_off[e + 1]; k++) {
    const uint32_t i = instance->net_pin[k];
    in |= x->before[i] <= b->high;
    out |= total - x->behind[i] >= b->low;
  }
  return in && out;
}

/* How much of the work is in front of a net's pins, of what must be on one side of them. */
static double place_of(const work *x, uint32_t e) {
  const psplit_i_instance *instance = x->query->instance;
  const uint32_t first = instance->net_off[e], end = instance->net_off[e + 1];
  const double total = (double)x->query->automaton->total_min_time;
  double sum = 0;
  for (uint32_t k = first; k < end; k++) {
    const uint32_t i = instance->net_pin[k];
    sum += ((double)x->before[i] + total - (double)x->behind[i]) / 2 / total;
  }
  return sum / (end - first);
}

/* Counts each net at the nearest boundary that it may cross. */
static void count_nets(work *x, const boundaries *which, psplit_i_budget *budget) {
  const uint32_t n_nets = x->query->instance->n_nets;
  for (uint32_t e = 0; e < n_nets; e++) {
    const double place = place_of(x, e) * x->query->automaton->n_stages;
    double nearest = 0;
    x->at[e] = PSPLIT_NONE;
    for (uint32_t b = 0; b < which->n; b++) {
      const double off = place - which->of[b].n_stages;
      const double distance = off < 0 ? -off : off;
      if (x->at[e] != PSPLIT_NONE && distance >= nearest) continue;
      if (!may_cross(x, e, &which->of[b])) continue;
      x->at[e] = b;
      nearest = distance;
    }
  }
  psplit_i_spend(budget, (uint64_t)which->n * n_nets);
}

/* What crosses a boundary at least, of the nets that count there. */
static psplit_code cross(work *x, uint32_t which, const boundary *b, psplit_i_budget *budget,
                         int64_t *out_least) {
  const psplit_i_instance *instance = x->query->instance;
  for (uint32_t e = 0; e < instance->n_nets; e++)
    x->counted[e] = x->at[e] == which ? x->cost[e] : 0;
  const psplit_i_branched_query query = {.instance = instance,
                                         .closure = &x->closure,
                                         .weight = x->query->automaton->min_time,
                                         .cost = x->counted,
                                         .low = b->low,
                                         .high = b->high,
                                         .n_branches = MOST_BRANCHES};
  return psplit_i_branched_cut(&query, budget, out_least);
}

/* What crosses, stages on both sides pay for: that much less is left for work. */
static void come_closer(const work *x, boundary *b, int64_t least) {
  const psplit_i_automaton *m = x->query->automaton;
  const double surely = (double)least * (1 - 1e-9);
  const int64_t before = psplit_i_sat_mul_i64(x->limit, b->n_stages);
  const int64_t behind = psplit_i_sat_mul_i64(x->limit, m->n_stages - b->n_stages);
  b->high = before - (int64_t)(surely * x->front);
  b->low = m->total_min_time - behind + (int64_t)(surely * x->back);
}

/* What no split within the limit is below: limit + 1 where there is none. */
static psplit_code average(work *x, boundaries *which, psplit_i_budget *budget,
                           int64_t *out_bound) {
  const psplit_i_automaton *m = x->query->automaton;
  int64_t loads = m->total_min_time;
  count_nets(x, which, budget);
  for (uint32_t b = 0; b < which->n; b++) {
    int64_t least;
    psplit_i_budget part = psplit_i_budget_share(budget, which->n - b);
    const psplit_code code = cross(x, b, &which->of[b], &part, &least);
    psplit_i_spend(budget, part.spent);
    if (code != PSPLIT_OK) return code;
    loads = psplit_i_sat_add_i64(loads, least);
    if (least < PSPLIT_I_INF) come_closer(x, &which->of[b], least);
  }
  const int64_t bound = loads / m->n_stages + (loads % m->n_stages > 0);
  *out_bound = bound > x->limit ? x->limit + 1 : bound;
  return PSPLIT_OK;
}

/* Raises the bound by n boundaries, with half of the budget each time; *out_any: it was. */
static psplit_code raise_by(work *x, uint32_t n, psplit_i_budget *budget, int64_t *inout_bound,
                            bool *out_any) {
  boundaries which = evenly(x, n);
  *out_any = false;
  while (*inout_bound <= x->limit && !psplit_i_expired(budget)) {
    int64_t bound;
    psplit_i_budget half = psplit_i_budget_share(budget, 2);
    const psplit_code code = average(x, &which, &half, &bound);
    psplit_i_spend(budget, half.spent);
    if (code != PSPLIT_OK) return code;
    if (bound <= *inout_bound) break;
    const bool enough = bound - *inout_bound > (x->limit - *inout_bound) / LEAST_GAIN;
    *inout_bound = bound;
    *out_any = true;
    if (!enough) break;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_bound_branched_cuts(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                         int64_t *inout_bound) {
  const psplit_i_automaton *m = query->automaton;
  work x = {.query = query, .limit = query->value - 1};
  psplit_code code;
  bool any = true;
  if (query->instance->n > MOST_CLUSTERS || query->value >= PSPLIT_I_INF || m->adds_up ||
      m->total_min_time == 0)
    return PSPLIT_OK;
  PSPLIT_TRY(work_init(&x, budget));
  /* Twice as many and one more while that says more. */
  for (uint32_t n = 1; any && n < m->n_stages && n <= MOST_TOGETHER; n = 2 * n + 1)
    PSPLIT_TRY(raise_by(&x, n, budget, inout_bound, &any));
out:
  work_fini(&x);
  return code;
}
