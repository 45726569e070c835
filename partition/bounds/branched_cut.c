/* A downset of some weight that few nets cross. Minimum cuts do not know what their downsets weigh,
 * and Lagrange's multiplier tells no more than the lower convex hull of crossing over weight: next
 * to nothing where both the empty set and the whole are free. So one cluster is taken inside, with
 * all that comes before it, or left outside, with all that comes behind it: in both halves one end
 * of the hull is no longer free. The half that may be crossed for least is divided again.
 *
 * In a branch, with m >= 0 and D of weight at least low, cross(D) >= min over all D' of the branch
 * of cross(D') + m (low - w(D')), and likewise with weights of at most high: a minimum cut. What a
 * branch may weigh forces clusters to either side as well. Whatever is still open bounds no less
 * than the least of its branches, so it can stop at any time. */
#include "branched_cut.h"
#include "boundary_network.h"
#include "branches.h"

#include <string.h>

enum {
  MULTIPLIERS = 12, /* for a branch */
  STEEPEST = 8,     /* multiplier */
  MOST_SHIFT = 20
};

typedef struct downset {
  bool *in; /* [n] */
  int64_t weight, cost;
} downset;

typedef struct cutter {
  const psplit_i_branched_query *query;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  psplit_i_boundary_network network;
  psplit_i_branches all;
  downset now, light, heavy;
  int64_t *before, *behind; /* [n] weight of what is free there, with the cluster itself */
  int64_t inside, outside;  /* weight */
  int64_t known;            /* cost of a downset of the right weight; INF: none is known */
  int shift;                /* costs in a network are times 2^shift */
  bool failed;
} cutter;

/* --- what a branch may weigh --- */

static void weigh_sides(cutter *c, const uint8_t *where) {
  const psplit_i_closure *closure = c->query->closure;
  uint64_t n_free = 0;
  c->inside = c->outside = 0;
  for (uint32_t i = 0; i < closure->n; i++) {
    if (where[i] == PSPLIT_I_SIDE_INSIDE) c->inside += c->query->weight[i];
    if (where[i] == PSPLIT_I_SIDE_OUTSIDE) c->outside += c->query->weight[i];
    if (where[i] != PSPLIT_I_SIDE_FREE) continue;
    n_free++;
    c->before[i] = psplit_i_branch_free_weight(
      &c->all, where, closure->before + (size_t)i * closure->words, c->query->weight);
    c->behind[i] = psplit_i_branch_free_weight(
      &c->all, where, closure->behind + (size_t)i * closure->words, c->query->weight);
  }
  psplit_i_spend(c->budget, closure->n + n_free * (closure->words + n_free / 8) / 4);
}

/* Forces what the weight of the downset forces; false where nothing has such a weight. */
static bool force_by_weight(cutter *c, uint8_t *where) {
  const psplit_i_branched_query *q = c->query;
  int64_t total = 0;
  for (uint32_t i = 0; i < q->closure->n; i++) total += q->weight[i];
  for (bool again = true; again;) {
    again = false;
    weigh_sides(c, where);
    if (c->inside > q->high || total - c->outside < q->low) return false;
    for (uint32_t i = 0; i < q->closure->n; i++) {
      if (where[i] != PSPLIT_I_SIDE_FREE) continue;
      const bool too_heavy = c->inside + c->before[i] > q->high;
      const bool needed = total - c->outside - c->behind[i] < q->low;
      if (!too_heavy && !needed) continue;
      if (!psplit_i_branch_force(&c->all, where, i,
                                 needed ? PSPLIT_I_SIDE_INSIDE : PSPLIT_I_SIDE_OUTSIDE) ||
          (too_heavy && needed))
        return false;
      again = true;
    }
  }
  return true;
}

/* --- minimum cuts --- */

/* `price` for each tick of the free clusters outside the downset, or, where that is below 0, of
 * those inside. */
static void build(cutter *c, const uint8_t *where, int64_t price) {
  const psplit_i_instance *instance = c->query->instance;
  psplit_i_boundary_begin(&c->network, where);
  for (uint32_t i = 0; i < instance->n; i++) {
    const int64_t paid = price * c->query->weight[i];
    if (where[i] == PSPLIT_I_SIDE_FREE)
      psplit_i_boundary_cluster(&c->network, i, paid < 0 ? -paid : 0, paid > 0 ? paid : 0);
  }
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const int64_t cost = c->query->cost[e] << c->shift;
    if (cost > 0) psplit_i_boundary_net(&c->network, e, cost, instance->net_forward[e] ? 0 : cost);
  }
}

static bool crosses(const cutter *c, const bool *in, uint32_t e) {
  const psplit_i_instance *instance = c->query->instance;
  const uint32_t first = instance->net_off[e];
  const bool home = in[instance->net_pin[first]];
  for (uint32_t k = first + 1; k < instance->net_off[e + 1]; k++)
    if (in[instance->net_pin[k]] != home) return home || !instance->net_forward[e];
  return false;
}

static void measure(cutter *c, downset *d) {
  const psplit_i_instance *instance = c->query->instance;
  d->weight = d->cost = 0;
  for (uint32_t i = 0; i < instance->n; i++)
    if (d->in[i]) d->weight += c->query->weight[i];
  for (uint32_t e = 0; e < instance->n_nets; e++)
    if (c->query->cost[e] > 0 && crosses(c, d->in, e)) d->cost += c->query->cost[e];
  psplit_i_spend(c->budget, instance->n / 2 + instance->net_off[instance->n_nets] / 2);
  if (d->weight >= c->query->low && d->weight <= c->query->high && d->cost < c->known)
    c->known = d->cost;
}

/* What no downset of the right weight in the branch is below; c->now is the cheapest of any weight
 * with this price, and *out_whole says whether there was time to find it. */
static int64_t cut(cutter *c, const uint8_t *where, int64_t price, bool *out_whole) {
  const psplit_i_branched_query *q = c->query;
  int64_t value, n_free = 0, paid = 0;
  build(c, where, price);
  for (uint32_t i = 0; i < q->closure->n; i++)
    if (where[i] == PSPLIT_I_SIDE_FREE) n_free += q->weight[i];
  if (price > 0) paid = price * (c->inside + n_free - q->low);
  if (price < 0) paid = -price * (q->high - c->inside);
  *out_whole = psplit_i_boundary_cut(&c->network, &value, c->now.in);
  c->failed |= c->network.cut.failed;
  if (*out_whole) measure(c, &c->now);
  return value <= paid ? 0 : (value - paid + (INT64_C(1) << c->shift) - 1) >> c->shift;
}

static void take(const cutter *c, downset *to) {
  memcpy(to->in, c->now.in, c->query->closure->n * sizeof *to->in);
  to->weight = c->now.weight;
  to->cost = c->now.cost;
}

/* Ends of the hull: of a branch that this one is a half of, as far as they fit here, where that is
 * on its side of the weight asked for; else the lightest or heaviest there is. */
static void recall(cutter *c, const psplit_i_branch *b, downset *end, uint8_t which, int64_t low,
                   int64_t high) {
  psplit_i_branch_recall(&c->all, b, which, end->in);
  measure(c, end);
  if (end->weight >= low && end->weight <= high) return;
  psplit_i_branch_extreme(&c->all, b, which, end->in);
  measure(c, end);
}

/* The slope between the ends, where it leads to the weight asked for; else 0. */
static int64_t slope(const cutter *c, bool to_low) {
  const int64_t run = c->heavy.weight - c->light.weight, rise = c->heavy.cost - c->light.cost;
  const int64_t steepest = (int64_t)STEEPEST << c->shift;
  if (run <= 0) return 0;
  const double exact = (double)rise / (double)run * (double)(INT64_C(1) << c->shift);
  if (exact >= (double)steepest || exact <= -(double)steepest) return 0;
  const int64_t price = (int64_t)exact;
  return (price > 0) == to_low ? price : 0;
}

/* Raises b->least to what a downset of the branch costs at least: multipliers along the slope
 * between the cheapest downset known that is too light, and the cheapest that is too heavy, from
 * b->price on. Leaves these in c->light and c->heavy. */
static void bound(cutter *c, psplit_i_branch *b) {
  const psplit_i_branched_query *q = c->query;
  bool whole = true, to_low = b->price >= 0, begun = false, free = false;
  int64_t price = b->price;
  for (int k = 0; k < MULTIPLIERS; k++) {
    const int64_t least = cut(c, b->where, price, &whole);
    if (least > b->least) b->least = least;
    if (!whole || c->failed || b->least >= c->known) return;
    b->price = price;
    const bool light = price > 0 ? c->now.weight < q->low : c->now.weight <= q->high;
    if (price == 0) {
      if (c->now.weight >= q->low && c->now.weight <= q->high) return; /* the best of all */
      free = true;
      begun = begun && to_low == (c->now.weight < q->low);
      to_low = c->now.weight < q->low;
    }
    const bool fresh = !begun;
    if (fresh) {
      recall(c, b, &c->light, PSPLIT_I_END_LIGHT, 0, to_low ? q->low - 1 : q->high);
      recall(c, b, &c->heavy, PSPLIT_I_END_HEAVY, to_low ? q->low : q->high + 1, PSPLIT_I_INF);
      begun = true;
    }
    downset *end = light ? &c->light : &c->heavy;
    if (!fresh && end->weight == c->now.weight && end->cost == c->now.cost) return;
    take(c, end);
    price = slope(c, to_low);
    if (price == 0 && free) return;
  }
}

/* --- branches --- */

/* Opens a branch unless it has nothing that is less than what is known. */
static void open_branch(cutter *c, psplit_i_branch *b) {
  const uint32_t n = c->query->closure->n;
  if (!force_by_weight(c, b->where)) return;
  for (uint32_t i = 0; i < n; i++) c->light.in[i] = c->heavy.in[i] = false;
  bound(c, b);
  if (c->failed || b->least >= c->known) return;
  if (!psplit_i_branch_open(&c->all, b, c->light.in, c->heavy.in, c->before, c->behind))
    c->failed = true;
}

static void divide(cutter *c) {
  psplit_i_branch half[2];
  bool possible[2];
  if (!psplit_i_branch_divide(&c->all, half, possible)) {
    c->failed = true;
    return;
  }
  for (int k = 0; k < 2; k++)
    if (possible[k]) open_branch(c, &half[k]);
}

/* Weights and costs that stay in bounds in every network; false where they are too large. */
static bool scale(cutter *c) {
  const psplit_i_branched_query *q = c->query;
  int64_t sum = 0;
  for (uint32_t i = 0; i < q->closure->n; i++) sum = psplit_i_sat_add_i64(sum, q->weight[i]);
  sum = psplit_i_sat_mul_i64(sum, 2 * STEEPEST);
  for (uint32_t e = 0; e < q->instance->n_nets; e++) sum = psplit_i_sat_add_i64(sum, q->cost[e]);
  if (sum >= PSPLIT_I_INF / 8) return false;
  while (c->shift < MOST_SHIFT && sum << (c->shift + 1) < PSPLIT_I_INF / 8) c->shift++;
  return true;
}

static psplit_code cutter_init(cutter *c) {
  const uint32_t n = c->query->closure->n;
  psplit_i_arena_init(&c->arena, 0);
  psplit_i_branches_init(&c->all, c->query->closure, c->budget);
  c->before = PSPLIT_NEW(&c->arena, int64_t, n);
  c->behind = PSPLIT_NEW(&c->arena, int64_t, n);
  c->now.in = PSPLIT_NEW(&c->arena, bool, n);
  c->light.in = PSPLIT_NEW(&c->arena, bool, n);
  c->heavy.in = PSPLIT_NEW(&c->arena, bool, n);
  if (c->arena.failed) return PSPLIT_NOMEM;
  return psplit_i_boundary_network_init(&c->network, c->query->instance, c->budget, &c->arena);
}

static void cutter_fini(cutter *c) {
  psplit_i_boundary_network_fini(&c->network);
  psplit_i_branches_fini(&c->all);
  psplit_i_arena_fini(&c->arena);
}

psplit_code psplit_i_branched_cut(const psplit_i_branched_query *query, psplit_i_budget *budget,
                                  int64_t *out_least) {
  cutter c = {.query = query, .budget = budget, .known = PSPLIT_I_INF};
  psplit_code code;
  *out_least = 0;
  PSPLIT_TRY(cutter_init(&c));
  if (!scale(&c)) goto out;
  psplit_i_branch whole;
  c.failed = !psplit_i_branch_init(&c.all, &whole);
  if (!c.failed) open_branch(&c, &whole);
  const uint32_t most = psplit_i_branches_most(&c.all);
  for (uint32_t k = 0; k < query->n_branches && k < most && c.all.open.n > 0; k++) {
    const psplit_i_branch *least = &c.all.open.items[0];
    if (c.failed || least->least >= c.known || least->cluster == PSPLIT_NONE ||
        psplit_i_expired(budget))
      break;
    divide(&c);
  }
  PSPLIT_TRY(c.failed ? PSPLIT_NOMEM : PSPLIT_OK);
  *out_least =
    c.all.open.n > 0 && c.all.open.items[0].least < c.known ? c.all.open.items[0].least : c.known;
out:
  cutter_fini(&c);
  return code;
}
