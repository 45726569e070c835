/* A lower bound from prices of clusters. If no stage within the limit T has a total price above
 * ONE, then K stages have a total price of at most K * ONE. So T is infeasible where the prices of
 * all clusters add up to more than that.
 *
 * Let p be any prices, and let q(v) be an upper bound on the total price of a stage within T that
 * contains v (pricing.c). Then the prices p(v) / q(v) give every stage a total price of at most 1:
 * for a stage S, sum p(v) / q(v) <= sum p(v) / p(S) = 1. The prices start in proportion to the
 * times and grow in rounds. This is the dual of the linear program that covers the clusters by
 * stages within T, where column generation is exact except for the rounding of loads. */
#include "prices.h"
#include "apart.h"
#include "bounds.h"
#include "checked.h"

enum {
  MOST_CLUSTERS = PSPLIT_I_LARGE,
  MOST_STAGES = PSPLIT_I_PRICED_STAGES,
  WIDE_GAP = 50,   /* the gap must be more than value / WIDE_GAP */
  FINE_GAP = 1000, /* bisection with receiver prices ends at a gap of high / FINE_GAP */
  LIMITS = 6,
  /* limits to try where prices are raised by cutting planes, each from the last prices */
  RAISED_LIMITS = 20,
  ROUNDS = 10,      /* pricing rounds at one limit */
  FIRST_ROUNDS = 2, /* rounds of the first estimate, which decides whether more are worthwhile */
  FIRST_SHARE = 3, /* they may take a FIRST_SHARE-th of the budget: otherwise no limit is decided */
  STEPS = 120,     /* cutting-plane steps at one limit */
  RAISED = 32,     /* a shortfall of up to a RAISED-th may still be made up */
  SHORT_OF = 100,  /* the same for `effort.may_rise` and `effort.first` of few clusters */
  FAR = 200,       /* receiver prices are dropped once a limit falls short by more than a FAR-th */
  STEPS_IN_ROUND = 8, /* a round costs about as much as this many cutting-plane steps */
  LEAST_STEPS = 30,   /* cutting planes are used only if the budget suffices for this many steps */
  FINER = 8192,       /* relative precision of the limit where one trial is cheap */
  CHEAP = 10, /* a trial is cheap if it spends less than a CHEAP-th of the remaining budget */
  RECEIVER_ROUNDS = 8,
  FEW_MORE = 32, /* receiver prices raise the bound by less than a FEW_MORE-th */
  PARTS = PSPLIT_I_PRICING_PARTS,
  LITTLE_MORE = 1024,   /* finer loads are tried from a limit one LITTLE_MORE-th above the bound */
  MANY_CLUSTERS = 1000, /* above this, the settings MANY apply */
  MANY_PARTS = 9,       /* with them, prices have MANY_SHARE of MANY_PARTS parts of the budget */
  MANY_SHARE = 4,
  ONE = PSPLIT_I_PRICING_ONE
};

/* Parameters of the search over limits and of the cutting planes. */
typedef struct effort {
  uint32_t n_parts, most_parts; /* load units per limit: at first, and at most */
  uint32_t n_steps; /* the budget must suffice for this many steps before loads become finer */
  int64_t fine;     /* stop where the next limit is within a `fine`-th of the bound */
  int64_t coarse;   /* within a `coarse`-th, switch to finer loads if the budget allows */
  uint32_t hoped;   /* a `hoped`-th of the gain that the planes predict is expected to come true */
  int64_t may_rise; /* the first estimate may fall short of the bound by a `may_rise`-th */
  int64_t first;    /* the first limit is a `first`-th above the estimate */
} effort;

static const effort FEW = {PARTS, 4 * PARTS, 160, 800, FINER, 2, SHORT_OF, SHORT_OF};
static const effort MANY = {2 * PARTS, 4 * PARTS, 50, 4000, 500, 5, 40, 60};

typedef struct price_search {
  const psplit_i_bound_query *query;
  psplit_i_budget *budget;
  psplit_i_closure closure;
  psplit_i_prices prices;
  psplit_i_planes *planes;
  const effort *effort;
  uint32_t n_parts; /* load units per limit in the cutting planes */
  bool raises;      /* the budget suffices for cutting planes */
  bool receivers;   /* receivers have prices in the cutting planes */
} price_search;

bool psplit_i_prices_suit(const psplit_i_instance *instance) {
  return instance->n > 0 && instance->n <= MOST_CLUSTERS && instance->n_stages <= MOST_STAGES &&
         instance->n_types == 1 && instance->all_forward && instance->total_w[0] < PSPLIT_I_INF;
}

psplit_code psplit_i_prices_init(const psplit_i_instance *instance, int64_t limit,
                                 psplit_i_arena *arena, psplit_i_prices *out) {
  *out = (psplit_i_prices){.n = instance->n,
                           .needed = (int64_t)ONE * instance->n_stages,
                           .many = instance->n > MANY_CLUSTERS};
  out->price = PSPLIT_NEW(arena, int32_t, out->n);
  out->most = PSPLIT_NEW(arena, int32_t, out->n);
  if (!out->price || !out->most) return PSPLIT_NOMEM;
  for (uint32_t v = 0; v < out->n; v++)
    out->price[v] = (int32_t)((double)instance->w[v] / (double)limit * ONE);
  return PSPLIT_OK;
}

/* Divides each price by the largest total price of a stage that contains the cluster. *out_sum is
 * the sum of all prices after that, or 0 if the budget ran out. */
static psplit_code round_of(psplit_i_prices *p, psplit_i_pricing *pricing, int64_t limit,
                            psplit_i_budget *budget, int64_t *out_sum) {
  int64_t most = 0;
  bool done;
  *out_sum = 0;
  const psplit_code code =
    psplit_i_pricing_most(pricing, limit, PARTS, p->price, NULL, budget, &most, p->most, &done);
  if (code != PSPLIT_OK || !done) return code;
  for (uint32_t v = 0; v < p->n; v++) {
    if (p->most[v] < 0) *out_sum = p->needed + 1; /* no stage within the limit contains v */
    if (p->most[v] < 0) return PSPLIT_OK;
    if (p->most[v] > 0) p->price[v] = (int32_t)((int64_t)p->price[v] * ONE / p->most[v]);
    *out_sum += p->price[v];
  }
  psplit_i_prices_keep_small(p, *out_sum);
  return PSPLIT_OK;
}

psplit_code psplit_i_prices_grow(psplit_i_prices *p, psplit_i_pricing *pricing, int64_t limit,
                                 uint32_t n_rounds, bool to_the_end, psplit_i_budget *budget,
                                 int64_t *out_sum) {
  int64_t before = 0;
  *out_sum = 0;
  for (uint32_t k = 0; k < n_rounds && *out_sum <= p->needed; k++) {
    int64_t sum;
    const psplit_code code = round_of(p, pricing, limit, budget, &sum);
    if (code != PSPLIT_OK || sum == 0) return code;
    *out_sum = sum;
    if (!to_the_end && k > 0 && (sum - before) * (n_rounds - k) < p->needed - sum) break;
    before = sum;
  }
  return PSPLIT_OK;
}

/* The problem at one limit: the instance with its receivers divided (apart.h), and the pricing
 * problem of that instance. */
typedef struct at_limit {
  psplit_i_apart apart;
  /* NULL: the tables are too large, or no split is within the limit */
  psplit_i_pricing *pricing;
} at_limit;

static void at_limit_fini(at_limit *at) {
  psplit_i_pricing_free(at->pricing);
  psplit_i_apart_fini(&at->apart);
}

static const psplit_i_instance *instance_at(const price_search *p, const at_limit *at) {
  return at->apart.changed ? &at->apart.instance : p->query->instance;
}

static psplit_code at_limit_init(price_search *p, int64_t limit, at_limit *out) {
  const psplit_i_bound_query *query = p->query;
  out->pricing = NULL;
  psplit_code code = psplit_i_apart_make(query->instance, query->automaton, &p->closure,
                                         query->request->options, limit, p->budget, &out->apart);
  if (code != PSPLIT_OK) return code;
  if (!out->apart.impossible)
    code = (p->raises ? psplit_i_pricing_make_wide : psplit_i_pricing_make)(
      instance_at(p, out), p->budget, &out->pricing);
  if (code != PSPLIT_OK) at_limit_fini(out);
  return code;
}

/* *out_sum is the sum of all prices at the limit, on the instance with divided receivers, or 0 if
 * it is unknown. `receivers`: receivers get prices as well, where those of clusters do not
 * suffice. */
static psplit_code price_at(price_search *p, int64_t limit, bool receivers, int64_t *out_sum) {
  at_limit at;
  *out_sum = 0;
  psplit_code code = at_limit_init(p, limit, &at);
  if (code != PSPLIT_OK) return code;
  if (at.apart.impossible) *out_sum = p->prices.needed + 1;
  if (at.pricing && !p->raises)
    PSPLIT_TRY(
      psplit_i_prices_grow(&p->prices, at.pricing, limit, ROUNDS, false, p->budget, out_sum));
  else if (at.pricing)
    PSPLIT_TRY(psplit_i_prices_raise(p->planes, at.pricing,
                                     p->receivers ? instance_at(p, &at) : NULL, limit, p->n_parts,
                                     STEPS, false, p->budget, out_sum));
  if (at.pricing && receivers && *out_sum > 0)
    PSPLIT_TRY(psplit_i_prices_of_receivers(&p->prices, at.pricing, instance_at(p, &at), limit,
                                            RECEIVER_ROUNDS, p->budget, out_sum));
out:
  at_limit_fini(&at);
  return code;
}

/* Whether the steps ended far below the sum that is needed. With receiver prices they would go on
 * for too long. */
static bool is_far(const price_search *p, int64_t sum) {
  return !p->prices.many && p->prices.hope > 0 && sum < p->prices.needed - p->prices.needed / FAR;
}

/* Tries a limit between *io_bound and *io_high, and moves one of the two to it. *out_sum is as in
 * price_at(). */
static psplit_code ask(price_search *p, int64_t limit, bool receivers, int64_t *io_bound,
                       int64_t *io_high, int64_t *out_sum) {
  const psplit_code code = price_at(p, limit, receivers, out_sum);
  if (code != PSPLIT_OK || *out_sum == 0) return code;
  if (p->raises && is_far(p, *out_sum)) p->receivers = false;
  if (*out_sum > p->prices.needed)
    *io_bound = limit + 1;
  else
    *io_high = limit;
  return PSPLIT_OK;
}

/* Estimates the bound from a few rounds just below the incumbent's value, and then from more.
 * *out_least is the limit at which the prices would add up to what is needed, and *out_near tells
 * whether that is near the bound. Also decides whether the budget suffices for cutting planes. */
static psplit_code look(price_search *p, int64_t limit, int64_t bound, int64_t *out_least,
                        bool *out_near) {
  const double needed = (double)p->prices.needed;
  at_limit at;
  int64_t sum = 0;
  psplit_code code = at_limit_init(p, limit, &at);
  if (code != PSPLIT_OK) return code;
  *out_near = at.apart.impossible;
  *out_least = limit;
  const uint64_t before = p->budget->spent;
  for (uint32_t k = 0; at.pricing && k < 2; k++) {
    const uint32_t n = k ? ROUNDS - FIRST_ROUNDS : FIRST_ROUNDS;
    psplit_i_budget first = psplit_i_budget_share(p->budget, FIRST_SHARE);
    psplit_i_budget *budget = k ? p->budget : &first;
    PSPLIT_TRY(psplit_i_prices_grow(&p->prices, at.pricing, limit, n, k == 0, budget, &sum));
    if (k == 0) psplit_i_spend(p->budget, first.spent);
    if (sum == 0) break;
    if (k == 0) {
      const uint64_t step = (p->budget->spent - before) / (FIRST_ROUNDS * STEPS_IN_ROUND);
      p->raises = step < psplit_i_budget_left(p->budget) / LEAST_STEPS;
    }
    /* Total prices grow at least in inverse proportion to the limit, and cutting planes may raise
     * them further. */
    const double least = (double)limit * (double)sum / needed;
    *out_least = (int64_t)least;
    *out_near = least + (p->raises ? least / (double)p->effort->may_rise : 0) >= (double)bound;
    if ((*out_near && p->raises) || least + least / RAISED < (double)bound) break;
  }
out:
  at_limit_fini(&at);
  return code;
}

/* Whether loads may be rounded to smaller units: the budget must suffice for many steps as
 * expensive as the last one, since finer steps cost little more. */
static bool may_be_finer(const price_search *p) {
  return p->raises && p->n_parts < p->effort->most_parts && p->prices.step > 0 &&
         psplit_i_budget_left(p->budget) / p->effort->n_steps > p->prices.step;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Tries a sequence of limits, beginning with the given one. Where the prices of one limit suffice,
 * the planes predict nothing for the next, so the increment is doubled. *out_cheap: the limits
 * converged, and the last trial was cheap. */
static psplit_code try_from(price_search *p, int64_t limit, int64_t *inout_bound, bool *out_cheap) {
  const int64_t needed = p->prices.needed;
  const int n_limits = p->raises ? RAISED_LIMITS : LIMITS;
  int64_t high = p->query->value, leap = limit / (2 * LITTLE_MORE);
  *out_cheap = false;
  for (int k = 0; k < n_limits && limit >= *inout_bound && limit < high; k++) {
    int64_t sum;
    const uint64_t before = p->budget->spent;
    const psplit_code code = ask(p, limit, false, inout_bound, &high, &sum);
    if (code != PSPLIT_OK || sum == 0) return code;
    const double more = sum > needed ? p->prices.hope * ONE / p->effort->hoped : 0;
    int64_t next = psplit_i_sat_i64((double)limit * ((double)sum + more) / (double)needed);
    if (sum > needed && p->prices.hope <= 0) next = larger(next, limit + 2 * leap);
    leap = larger(next - limit, 0);
    limit = next > *inout_bound && next < high ? next : *inout_bound + (high - *inout_bound) / 2;
    const bool cheap = p->budget->spent - before < psplit_i_budget_left(p->budget) / CHEAP;
    *out_cheap = cheap;
    const int64_t more_by = limit - *inout_bound;
    if (more_by < *inout_bound / (cheap ? FINER : p->effort->fine)) return PSPLIT_OK;
    if (sum > needed && more_by < *inout_bound / p->effort->coarse && may_be_finer(p))
      return PSPLIT_OK;
  }
  *out_cheap = false;
  return PSPLIT_OK;
}

/* The same, starting over with finer load units while that is cheap. */
static psplit_code try_finer(price_search *p, int64_t limit, int64_t *inout_bound) {
  const int64_t before = *inout_bound;
  bool cheap;
  psplit_code code = try_from(p, limit, inout_bound, &cheap);
  while (code == PSPLIT_OK && p->raises && p->n_parts < p->effort->most_parts &&
         (cheap || (*inout_bound > before && may_be_finer(p)))) {
    p->n_parts *= 2;
    code = try_from(p, *inout_bound + *inout_bound / LITTLE_MORE, inout_bound, &cheap);
  }
  return code;
}

/* Searches with prices of clusters, and of receivers where cutting planes are used. *out_near: the
 * first estimate came near the bound. */
static psplit_code try_limits(price_search *p, int64_t *inout_bound, bool *out_near) {
  const int64_t high = p->query->value;
  int64_t least;
  psplit_code code = look(p, high - 1, *inout_bound, &least, out_near);
  if (code != PSPLIT_OK || !*out_near) return code;
  int64_t limit = p->raises ? least + least / p->effort->first : least;
  if (limit < *inout_bound)
    limit = *inout_bound + (p->raises ? *inout_bound / LITTLE_MORE : (high - *inout_bound) / 2);
  if (limit >= high) limit = high - 1;
  p->receivers = p->query->instance->p2p;
  return try_finer(p, limit, inout_bound);
}

/* Searches with prices of receivers, which raise the bound by about 1 %, so bisection is limited to
 * a small interval above it. */
static psplit_code try_receivers(price_search *p, int64_t *inout_bound) {
  const int64_t most = *inout_bound + *inout_bound / FEW_MORE, value = p->query->value;
  int64_t high = most < value ? most : value;
  while (high - *inout_bound > high / FINE_GAP) {
    const int64_t limit = *inout_bound + (high - *inout_bound) / 2;
    int64_t sum;
    const psplit_code code = ask(p, limit, true, inout_bound, &high, &sum);
    if (code != PSPLIT_OK || sum == 0) return code;
  }
  return PSPLIT_OK;
}

static bool suits(const psplit_i_instance *instance, int64_t value, int64_t bound) {
  return psplit_i_prices_suit(instance) && value < PSPLIT_I_INF && value - bound > value / WIDE_GAP;
}

/* Whether the budget suffices for a few rounds. The estimate of a round is generous, so it is
 * enough if it covers one. */
static psplit_code can_afford(price_search *p, bool *out_afford) {
  psplit_i_pricing *pricing;
  const psplit_code code = psplit_i_pricing_make(p->query->instance, p->budget, &pricing);
  const uint64_t round = pricing ? psplit_i_pricing_ops(pricing, PARTS) : UINT64_MAX;
  const uint64_t left = psplit_i_budget_left(p->budget);
  *out_afford = pricing && round < left;
  psplit_i_pricing_free(pricing);
  return code;
}

/* Many clusters take more steps than the share of methods.def has time for. */
static void give_more(price_search *p) {
  const psplit_i_budget more =
    psplit_i_budget_rated(p->query->request->budget, MANY_PARTS, MANY_SHARE);
  p->budget->most = more.most;
  p->budget->end = more.end;
}

psplit_code psplit_i_bound_prices(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                  int64_t *inout_bound) {
  const psplit_i_instance *instance = query->instance;
  const effort *how = instance->n > MANY_CLUSTERS ? &MANY : &FEW;
  price_search p = {.query = query, .budget = budget, .effort = how, .n_parts = how->n_parts};
  psplit_i_arena arena;
  if (!suits(instance, query->value, *inout_bound)) return PSPLIT_OK;
  bool affordable;
  psplit_code code = can_afford(&p, &affordable);
  if (code != PSPLIT_OK || !affordable) return code;
  if (how == &MANY) give_more(&p);
  code = psplit_i_closure_make(instance, budget, &p.closure);
  if (code != PSPLIT_OK) return code;
  psplit_i_arena_init(&arena, 0);
  PSPLIT_TRY(psplit_i_prices_init(instance, query->value, &arena, &p.prices));
  PSPLIT_TRY(psplit_i_planes_make(&p.prices, instance, &arena, &p.planes));
  bool near;
  PSPLIT_TRY(try_limits(&p, inout_bound, &near));
  if (near && instance->p2p && !p.raises) PSPLIT_TRY(try_receivers(&p, inout_bound));
out:
  psplit_i_arena_fini(&arena);
  psplit_i_closure_fini(&p.closure);
  return code;
}
