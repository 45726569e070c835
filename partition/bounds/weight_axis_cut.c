/* The cheapest crossing of every bucket of the weight axis, by minimum cuts. A net counts on one
 * side only: behind J when its producer is in J, before I when that is outside every J; so no net
 * is counted twice in a stage. Behind J it counts with those of its consumers that are in every I:
 * where one of them is outside J, the stage holds it and receives the net. A net of the backward
 * pass counts behind J once all its pins are in every I.
 *
 * A cut adds up what is received and what is sent: a net of the backward pass crosses J the other
 * way. With overlap a load is the largest of the two, not their sum, so there only nets that run
 * ahead count: what a stage receives over J, and what it sends over I.
 *
 * Weighed, a cut knows besides what its downset weighs, by Lagrange's multipliers: for a downset D
 * of weight at least low, and m >= 0, cross(D) >= min over all D of cross(D) + m (low - w(D)), and
 * likewise for a weight of at most high. */
#include "compare.h"
#include "instance.h"
#include "problem.h"
#include "team.h"
#include "weight_axis.h"
#include "weight_axis_network.h"

#include <stdlib.h>
#include <string.h>

/* The last crossing that a thread cut in one direction. Buckets outnumber the places where what is
 * free changes, so the next one mostly asks for the same cut again. */
typedef struct last_cut {
  uint32_t run;   /* of its bucket; PSPLIT_NONE: none, or one that the budget cut short */
  uint64_t *pins; /* [n_pins] what it counted, unsorted */
  uint32_t n_pins;
  uint64_t spent;
  psplit_i_crossing_step steps[PSPLIT_I_MAX_STEPS];
  uint8_t n_steps;
} last_cut;

typedef struct cutter {
  psplit_i_bucket_network network;
  last_cut last[2]; /* outgoing, incoming */
  uint64_t *pins;   /* of both */
} cutter;

enum {
  BATCH = 32,    /* buckets that share what is left of the budget */
  ONE = 1 << 10, /* multipliers are parts of it */
  MOST_PER_TIME = 8 * ONE,
  MULTIPLIERS = 5 /* for a bucket and direction */
};

/* The partner bucket from which on what has a rank counts: nearest first, the same in every bucket.
 * Incoming, ranks are partners. */
static uint32_t partner_of(const psplit_i_weight_axis_build *x, uint32_t rank, bool incoming) {
  return incoming ? rank : x->out->n_buckets - rank;
}

/* Raises `best` by the cut with a multiplier of per_time / ONE. */
static void weigh_once(const psplit_i_weight_axis_build *x, cutter *c,
                       const psplit_i_bucket_cut *cut, int64_t per_time, int64_t free_weight,
                       psplit_i_crossing_groups *best) {
  const uint32_t q = cut->q;
  const int64_t all = x->weight_in[q] + free_weight, high = x->out->high[q];
  int64_t paid = per_time > 0 ? all - x->out->low[q] : high - x->weight_in[q];
  if (paid < 0) paid = 0;
  paid *= per_time > 0 ? per_time : -per_time;
  psplit_i_crossing_groups weighed;
  psplit_i_bucket_cut_groups(x, cut, ONE, per_time, (x->limit + 1) * ONE + paid, &c->network,
                             &weighed);
  for (uint32_t g = 0; g < weighed.n && g < best->n; g++) {
    const int64_t left = weighed.value[g] - paid;
    if (left > 0 && (left + ONE - 1) / ONE > best->value[g])
      best->value[g] = (left + ONE - 1) / ONE;
  }
}

/* Multipliers for the cut of all nets: the slope between the cheapest downset known that is too
 * light and the cheapest that is not, until no cut is below that line. */
static void weigh(const psplit_i_weight_axis_build *x, cutter *c, const psplit_i_bucket_cut *cut,
                  psplit_i_crossing_groups *best) {
  const uint32_t q = cut->q;
  const double low = (double)x->out->low[q], high = (double)x->out->high[q];
  if (c->network.cut.failed || best->n == 0 || best->value[best->n - 1] > x->limit) return;
  if (psplit_i_expired(&c->network.budget)) return;
  int64_t free_weight = 0;
  for (uint32_t k = x->free_off[q]; k < x->free_off[q + 1]; k++)
    free_weight += x->automaton->min_time[x->free_cluster[k]];
  const psplit_i_crossing_downset first = psplit_i_bucket_last_downset(x, cut, &c->network);
  const bool light = first.weight < low;
  if (!light && first.weight <= high) return; /* the cheapest of all has the right weight */
  const double target = light ? low : high;
  psplit_i_crossing_downset near = first, far = {0, 0};
  bool known = false; /* far */
  int64_t per_time = light ? ONE / 8 : -ONE / 8;
  for (int k = 0;
       k < MULTIPLIERS && !c->network.cut.failed && !psplit_i_expired(&c->network.budget); k++) {
    weigh_once(x, c, cut, per_time, free_weight, best);
    if (c->network.cut.failed || best->value[best->n - 1] > x->limit ||
        psplit_i_expired(&c->network.budget))
      return;
    const psplit_i_crossing_downset now = psplit_i_bucket_last_downset(x, cut, &c->network);
    const bool is_near = light ? now.weight < target : now.weight > target;
    if (is_near) {
      if (!known) {
        per_time *= 4;
        near = now;
        if (per_time > MOST_PER_TIME || per_time < -MOST_PER_TIME) return;
        continue;
      }
      if (now.weight == near.weight) return;
      near = now;
    } else {
      if (known && now.weight == far.weight) return;
      far = now;
      known = true;
    }
    if (far.weight == near.weight) return;
    const double slope = (far.cost - near.cost) / (far.weight - near.weight) * ONE;
    const int64_t next = (int64_t)slope;
    if (next == per_time || next == 0 || (next > 0) != light) return;
    if (next > MOST_PER_TIME || next < -MOST_PER_TIME) return;
    per_time = next;
  }
}

/* Writes the crossings of a cut, whose pins it sorts, and returns their number. */
static uint8_t cut_network(const psplit_i_weight_axis_build *x, cutter *c,
                           const psplit_i_bucket_cut *cut, psplit_i_crossing_step *steps) {
  psplit_i_crossing_groups best;
  qsort(c->network.pins, cut->n_pins, sizeof *c->network.pins, psplit_i_compare_u64);
  psplit_i_bucket_cut_groups(x, cut, 1, 0, x->limit + 1, &c->network, &best);
  if (x->weighed) weigh(x, c, cut, &best);
  uint8_t n_steps = 0;
  int64_t before = 0;
  for (uint32_t g = 0; g < best.n; g++) {
    if (best.value[g] <= before) continue;
    before = best.value[g] > x->limit ? x->limit + 1 : best.value[g];
    steps[n_steps++] = (psplit_i_crossing_step){partner_of(x, best.rank[g], cut->incoming), before};
    if (before > x->limit) break;
  }
  return n_steps;
}

/* Whether the last cut is that of bucket q too, and would not have run out of this budget. */
static bool is_last(const psplit_i_weight_axis_build *x, const cutter *c, const last_cut *last,
                    uint32_t q, uint32_t n_pins) {
  return !x->weighed && last->run == x->run[q] && last->n_pins == n_pins &&
         memcmp(last->pins, c->network.pins, n_pins * sizeof *c->pins) == 0 &&
         last->spent < psplit_i_budget_left(&c->network.budget);
}

static void cut_bucket(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q, bool incoming) {
  last_cut *last = &c->last[incoming];
  const uint32_t n_pins = psplit_i_bucket_list_pins(x, &c->network, q, incoming);
  if (is_last(x, c, last, q, n_pins)) {
    /* What is charged must not depend on what this thread happened to cut before. */
    psplit_i_spend(&c->network.budget, last->spent);
  } else {
    const uint64_t before = c->network.budget.spent;
    last->n_pins = n_pins;
    memcpy(last->pins, c->network.pins, n_pins * sizeof *c->pins);
    const psplit_i_bucket_cut cut = {.q = q, .incoming = incoming, .n_pins = n_pins};
    last->n_steps = cut_network(x, c, &cut, last->steps);
    if (c->network.cut.failed) return;
    last->run = psplit_i_expired(&c->network.budget) ? PSPLIT_NONE : x->run[q];
    last->spent = c->network.budget.spent - before;
  }
  psplit_i_crossing_step *steps = (incoming ? x->in : x->outgoing) + (size_t)q * PSPLIT_I_MAX_STEPS;
  memcpy(steps, last->steps, last->n_steps * sizeof *steps);
  *(incoming ? &x->n_in[q] : &x->n_outgoing[q]) = last->n_steps;
}

/* Numbers the runs of buckets in which the same is free and the same stands on each side. */
static psplit_code number_runs(psplit_i_weight_axis_build *x) {
  const uint32_t n_buckets = x->out->n_buckets;
  x->run = PSPLIT_NEW(&x->arena, uint32_t, (size_t)n_buckets + 1);
  if (!x->run) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < x->instance->n; i++) x->run[x->tin[i]] = x->run[x->tout[i] + 1] = 1;
  for (uint32_t q = 1; q < n_buckets; q++) x->run[q] += x->run[q - 1];
  return PSPLIT_OK;
}

static bool cutter_init(cutter *c, const psplit_i_instance *instance) {
  const size_t n_pins = (size_t)instance->net_off[instance->n_nets] + 1;
  c->pins = malloc(2 * n_pins * sizeof *c->pins);
  if (!psplit_i_bucket_network_init(&c->network, instance) || !c->pins) return false;
  for (int i = 0; i < 2; i++)
    c->last[i] = (last_cut){.run = PSPLIT_NONE, .pins = c->pins + (size_t)i * n_pins};
  return true;
}

static void cutter_fini(cutter *c) {
  psplit_i_bucket_network_fini(&c->network);
  free(c->pins);
}

static psplit_code cheapest_costs(psplit_i_weight_axis_build *x) {
  const psplit_i_instance *instance = x->instance;
  x->cost_in = PSPLIT_NEW(&x->arena, int64_t, instance->n_nets);
  x->cost_out = PSPLIT_NEW(&x->arena, int64_t, instance->n_nets);
  if (!x->cost_in || !x->cost_out) return PSPLIT_NOMEM;
  bool any = false;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    if (instance->problem->devices[t].free_comm || x->automaton->count[t] == 0) continue;
    for (uint32_t e = 0; e < instance->n_nets; e++) {
      const int64_t recv = instance->recv[(size_t)t * instance->n_nets + e];
      const int64_t send = instance->send[(size_t)t * instance->n_nets + e];
      if (!any || recv < x->cost_in[e]) x->cost_in[e] = recv;
      if (!any || send < x->cost_out[e]) x->cost_out[e] = send;
    }
    any = true;
  }
  return PSPLIT_OK;
}

/* Buckets that share what is left of the budget. */
typedef struct batch {
  psplit_i_weight_axis_build *x;
  cutter *cutters; /* of each thread */
  uint32_t first;
  uint64_t spent[BATCH];
} batch;

static void cut_one(void *with, size_t i, int thread) {
  batch *b = with;
  cutter *c = &b->cutters[thread];
  const uint32_t q = (uint32_t)i;
  /* A bucket without crossings bounds less, but holds. */
  c->network.budget = psplit_i_budget_beside(b->x->budget, BATCH);
  const bool may = !psplit_i_expired(&c->network.budget);
  if (may && !c->network.cut.failed) cut_bucket(b->x, c, q, true);
  if (may && !c->network.cut.failed) cut_bucket(b->x, c, q, false);
  b->spent[q - b->first] = c->network.budget.spent;
}

/* Weights of what every downset of a bucket holds; and whether products with multipliers stay
 * within 64 bits. */
static psplit_code prepare_weights(psplit_i_weight_axis_build *x) {
  const uint32_t n_buckets = x->out->n_buckets;
  const int64_t most = PSPLIT_I_INF / (8 * (int64_t)MOST_PER_TIME);
  int64_t sum = x->automaton->total_min_time;
  for (uint32_t e = 0; e < x->instance->n_nets && sum < most; e++) {
    const int64_t cost = psplit_i_sat_add_i64(x->cost_in[e], x->cost_out[e]);
    sum = psplit_i_sat_add_i64(sum, cost);
  }
  if (sum >= most || x->limit >= most) x->weighed = false;
  x->weight_in = PSPLIT_NEW(&x->arena, int64_t, (size_t)n_buckets + 1);
  if (!x->weight_in) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < x->instance->n; i++)
    x->weight_in[x->tin[i]] += x->automaton->min_time[i];
  for (uint32_t q = 1; q < n_buckets; q++) x->weight_in[q] += x->weight_in[q - 1];
  return PSPLIT_OK;
}

psplit_code psplit_i_weight_axis_cut(psplit_i_weight_axis_build *x, int n_threads) {
  const uint32_t n_buckets = x->out->n_buckets;
  x->in = psplit_i_arena_array(&x->arena, (size_t)n_buckets * PSPLIT_I_MAX_STEPS, sizeof *x->in);
  x->outgoing =
    psplit_i_arena_array(&x->arena, (size_t)n_buckets * PSPLIT_I_MAX_STEPS, sizeof *x->outgoing);
  x->n_in = PSPLIT_NEW(&x->arena, uint8_t, n_buckets);
  x->n_outgoing = PSPLIT_NEW(&x->arena, uint8_t, n_buckets);
  if (!x->in || !x->outgoing || !x->n_in || !x->n_outgoing) return PSPLIT_NOMEM;
  if (cheapest_costs(x) != PSPLIT_OK || number_runs(x) != PSPLIT_OK) return PSPLIT_NOMEM;
  if (x->weighed && prepare_weights(x) != PSPLIT_OK) return PSPLIT_NOMEM;
  batch b = {.x = x, .cutters = calloc((size_t)n_threads, sizeof *b.cutters)};
  if (!b.cutters) return PSPLIT_NOMEM;
  bool failed = false;
  uint64_t n_ops = 0; /* of the batch before */
  for (int t = 0; t < n_threads; t++)
    if (!cutter_init(&b.cutters[t], x->instance)) failed = true;
  for (uint32_t first = 1; !failed && first + 1 < n_buckets; first += BATCH) {
    const uint32_t end = n_buckets - 1 - first < BATCH ? n_buckets - 1 : first + BATCH;
    b.first = first;
    psplit_i_team_for(n_ops < PSPLIT_I_REGION_OPS ? 1 : n_threads, first, end, cut_one, &b);
    n_ops = 0;
    for (uint32_t q = first; q < end; q++) {
      n_ops += b.spent[q - first];
      psplit_i_spend(x->budget, b.spent[q - first]);
    }
  }
  for (int t = 0; t < n_threads; t++) {
    failed |= b.cutters[t].network.cut.failed;
    cutter_fini(&b.cutters[t]);
  }
  free(b.cutters);
  return failed ? PSPLIT_NOMEM : PSPLIT_OK;
}
