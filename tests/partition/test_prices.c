/* What stages are worth at most, against all stages of small problems; bounds by prices, against
 * optima and splits. Prices of receivers: test_receiver_prices.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "bounds.h"
#include "draws.h"
#include "labelled.h"
#include "prices.h"
#include "sweep.h"

enum { SMALL = 7, MANY = 40, PARTS = 1 << 12 };

static const unsigned kFeatures[] = {0, WITH_TOGETHER, WITH_MEMORY, WITH_PINS, WITH_MESSAGES};
enum { N_FEATURES = sizeof kFeatures / sizeof *kFeatures };

/* The most that stages within the limit are worth, and those with each cluster, by trying all. */
static int64_t most_of_all(const psplit_i_instance *in, int64_t limit, const int32_t *price,
                           int32_t *most) {
  int label[SMALL] = {0};
  int64_t best = 0;
  for (uint32_t v = 0; v < in->n; v++) most[v] = -1;
  for (bool more = true; more;) {
    const int64_t load = labelled_load(in, label);
    int32_t value = 0;
    for (uint32_t v = 0; v < in->n; v++) value += label[v] == 1 ? price[v] : 0;
    if (load >= 0 && load <= limit) {
      if (value > best) best = value;
      for (uint32_t v = 0; v < in->n; v++)
        if (label[v] == 1 && value > most[v]) most[v] = value;
    }
    more = next_labels(in, label);
  }
  return best;
}

/* Of prices and a limit at random: with loads rounded to so many parts it is no less. Whether it is
 * the same. */
static bool hold_pricing(const bed *b, uint32_t n_parts) {
  int32_t price[SMALL], most[SMALL], by_all[SMALL];
  psplit_i_pricing *pricing;
  int64_t best;
  bool done;
  const int64_t limit = draw((uint64_t)b->instance.total_w[0] + 1);
  for (uint32_t v = 0; v < b->instance.n; v++) price[v] = (int32_t)draw(1000);
  assert_int_equal(psplit_i_pricing_make(&b->instance, NULL, &pricing), PSPLIT_OK);
  assert_non_null(pricing);
  assert_true(psplit_i_pricing_ops(pricing, 8) > 0);
  assert_int_equal(
    psplit_i_pricing_most(pricing, limit, n_parts, price, NULL, NULL, &best, most, &done),
    PSPLIT_OK);
  assert_true(done);
  const int64_t true_best = most_of_all(&b->instance, limit, price, by_all);
  bool same = best == true_best;
  assert_true(best >= true_best);
  for (uint32_t v = 0; v < b->instance.n; v++) {
    assert_true(most[v] >= by_all[v]);
    same = same && most[v] == by_all[v];
  }
  psplit_i_pricing_free(pricing);
  return same;
}

/* The stage that is traced is worth what was said, negative prices too, and takes no more than the
 * limit where loads are not rounded. */
static void hold_trace(const bed *b, uint32_t n_parts) {
  const psplit_i_instance *in = &b->instance;
  int32_t price[SMALL];
  uint8_t side[SMALL];
  int label[SMALL];
  psplit_i_pricing *pricing;
  int64_t best, traced = 0;
  bool done;
  const int64_t limit = draw((uint64_t)in->total_w[0] + 1);
  for (uint32_t v = 0; v < in->n; v++) price[v] = (int32_t)draw(1000) - 100;
  assert_int_equal(psplit_i_pricing_make(in, NULL, &pricing), PSPLIT_OK);
  assert_non_null(pricing);
  assert_int_equal(
    psplit_i_pricing_most(pricing, limit, n_parts, price, NULL, NULL, &best, NULL, &done),
    PSPLIT_OK);
  assert_true(done);
  assert_true(psplit_i_pricing_trace(pricing, 0, side, NULL));
  for (uint32_t v = 0; v < in->n; v++) {
    label[v] = side[v];
    traced += side[v] == PSPLIT_I_INSIDE ? price[v] : 0;
  }
  assert_int_equal(traced, best);
  assert_true(labelled_load(in, label) >= 0);
  assert_true(labelled_load(in, label) <= limit || n_parts < PARTS);
  assert_int_equal(psplit_i_pricing_load(pricing, side), labelled_load(in, label));
  assert_false(psplit_i_pricing_trace(pricing, n_parts, side, NULL));
  psplit_i_pricing_free(pricing);
}

/* Where only what is worth `least` or more is asked for, it is told as by all tables, with negative
 * prices and prices of load that other limits and prices left, and traced. Whether a stage was. */
static bool hold_above(const bed *b, psplit_i_pricing *pricing, uint32_t n_parts) {
  const psplit_i_instance *in = &b->instance;
  int32_t price[SMALL], by_all[SMALL];
  uint8_t side[SMALL];
  int label[SMALL];
  int64_t best, traced = 0;
  bool done;
  const int64_t limit = draw((uint64_t)in->total_w[0] + 1);
  for (uint32_t v = 0; v < in->n; v++) price[v] = (int32_t)draw(1000) - 100;
  const int64_t true_best = most_of_all(in, limit, price, by_all);
  const int64_t least = draw((uint64_t)(true_best + true_best / 8 + 2));
  assert_int_equal(
    psplit_i_pricing_above(pricing, limit, n_parts, price, NULL, least, NULL, &best, &done),
    PSPLIT_OK);
  assert_true(done);
  assert_true(best >= least && best >= true_best);
  if (n_parts >= PARTS && least <= true_best) assert_int_equal(best, true_best);
  if (!psplit_i_pricing_trace(pricing, 0, side, NULL)) {
    assert_int_equal(best, least);
    assert_true(true_best < least);
    return false;
  }
  for (uint32_t v = 0; v < in->n; v++) {
    label[v] = side[v];
    traced += side[v] == PSPLIT_I_INSIDE ? price[v] : 0;
  }
  assert_true(traced <= best && (traced == best || traced < least));
  assert_true(labelled_load(in, label) >= 0);
  return true;
}

static void stages_are_told_above_what_is_asked(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_traced = 0;
  sweep s = {.n_seeds = 30, .nodes = {2, 6}, .stages = {2, 1}, .shared_every = 3};
  draw_state = 29;
  while (next_problem(&s, &b)) {
    psplit_i_pricing *pricing;
    if (!has_prices(&b)) continue;
    assert_int_equal(psplit_i_pricing_make(&b.instance, NULL, &pricing), PSPLIT_OK);
    assert_non_null(pricing);
    for (uint32_t k = 0; k < 4; k++, n_asked++)
      n_traced += hold_above(&b, pricing, k % 2 ? PARTS : 8);
    psplit_i_pricing_free(pricing);
  }
  assert_true(n_asked > percent(400));
  assert_true(n_traced > n_asked / 2 && n_traced < n_asked);
}

static void stages_are_traced(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0;
  sweep s = {.n_seeds = 30, .nodes = {2, 6}, .stages = {2, 1}, .shared_every = 3};
  draw_state = 13;
  while (next_problem(&s, &b)) {
    if (!has_prices(&b)) continue;
    n_asked++;
    hold_trace(&b, 8);
    hold_trace(&b, PARTS);
  }
  assert_true(n_asked > percent(100));
}

/* With as many parts as there are loads it is the same. */
static void no_stage_has_a_larger_value(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_exact = 0;
  sweep s = {.n_seeds = 30, .nodes = {2, 6}, .stages = {2, 1}, .shared_every = 3};
  draw_state = 5;
  while (next_problem(&s, &b)) {
    if (!has_prices(&b)) continue;
    n_asked++;
    hold_pricing(&b, 8);
    n_exact += hold_pricing(&b, PARTS);
  }
  assert_true(n_asked > percent(100));
  assert_int_equal(n_exact, n_asked);
}

/* What stages on given sides are worth at most, by trying all; -1: there is none. */
static int64_t most_on_sides(const psplit_i_instance *in, int64_t limit, const int32_t *price,
                             const uint8_t *sides) {
  int label[SMALL] = {0};
  int64_t best = -1;
  for (bool more = true; more;) {
    const int64_t load = labelled_load(in, label);
    int64_t value = 0;
    bool allowed = load >= 0 && load <= limit;
    for (uint32_t v = 0; v < in->n; v++) {
      value += label[v] == 1 ? price[v] : 0;
      allowed = allowed && (sides[v] >> label[v] & 1) == 1;
    }
    if (allowed && value > best) best = value;
    more = next_labels(in, label);
  }
  return best;
}

/* The stage that is found is on those sides and within the limit. Whether there is any; *out_best:
 * it is worth the most. */
static bool hold_stage(bed *b, bool *out_best) {
  const psplit_i_instance *in = &b->instance;
  int32_t price[SMALL];
  uint8_t sides[SMALL], side[SMALL];
  int label[SMALL];
  psplit_i_pricing *pricing;
  bool found;
  const int64_t limit = draw((uint64_t)in->total_w[0] + 1);
  for (uint32_t v = 0; v < in->n; v++) price[v] = 1 + (int32_t)draw(1000);
  for (uint32_t v = 0; v < in->n; v++) sides[v] = (uint8_t)(draw(3) ? 7 : 1 + draw(7));
  assert_int_equal(psplit_i_pricing_make(in, NULL, &pricing), PSPLIT_OK);
  assert_non_null(pricing);
  assert_int_equal(psplit_i_pricing_stage(pricing, limit, PARTS, price, sides, NULL, side, &found),
                   PSPLIT_OK);
  psplit_i_pricing_free(pricing);
  const int64_t best = most_on_sides(in, limit, price, sides);
  int64_t by_stage = 0;
  assert_true(best >= 0 || !found);
  for (uint32_t v = 0; v < in->n && found; v++) {
    assert_true(sides[v] >> side[v] & 1);
    label[v] = side[v];
    by_stage += side[v] == PSPLIT_I_INSIDE ? price[v] : 0;
  }
  if (found) assert_in_range(labelled_load(in, label), 0, limit);
  *out_best = found && by_stage == best;
  return best >= 0;
}

static void stages_are_found_on_sides(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_best = 0;
  sweep s = {.n_seeds = 60, .nodes = {2, 6}, .stages = {2, 1}, .shared_every = 3};
  draw_state = 7;
  while (next_problem(&s, &b)) {
    bool best;
    if (!has_prices(&b) || !hold_stage(&b, &best)) continue;
    n_asked++;
    n_best += best;
  }
  assert_true(n_asked > percent(100));
  assert_true(n_best > n_asked - n_asked / 50);
}

/* The bound that is asked where the best value known is `value`; -1: it is not for the problem. */
static int64_t ask(bed *b, int64_t value) {
  psplit_i_budget budget = psplit_i_budget_unlimited();
  psplit_i_arena arena;
  psplit_i_weight_axis axis = {0};
  psplit_i_result result;
  psplit_diag diag = {0};
  psplit_i_arena_init(&arena, 0);
  const psplit_i_solver_request request = {.problem = &b->r.problem,
                                           .options = &b->options,
                                           .budget = &budget,
                                           .arena = &arena,
                                           .diag = &diag};
  const psplit_i_bound_query query = {&request, &b->instance, &b->automaton, PSPLIT_I_STAGES, value,
                                      0,        &axis};
  int64_t bound = -1;
  if (psplit_i_bound_is_due(PSPLIT_I_BOUND_PRICES, &query, PSPLIT_I_LATE)) {
    assert_int_equal(psplit_i_result_init(&result, &request), PSPLIT_OK);
    result.bound = 0;
    assert_int_equal(psplit_i_bound_run(PSPLIT_I_BOUND_PRICES, &query, &result), PSPLIT_OK);
    bound = result.bound;
  }
  psplit_i_arena_fini(&arena);
  return bound;
}

static void bounds_are_below_optima(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_met = 0;
  int64_t best;
  sweep s = {.n_seeds = 30,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {3, 12},
             .stages = {2, 3},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    if (!has_prices(&b) || !proved_best(&b, &best)) continue;
    for (int more = 0; more < 3; more++) {
      const int64_t value = best + more * best / 4, bound = ask(&b, value);
      expect_bound_holds(&s, value, bound, best);
      n_asked += bound > 0;
      n_met += bound == best;
    }
  }
  assert_true(n_asked > 4 * percent(30));
  assert_true(n_met > percent(30));
}

static int64_t prices_together(const psplit_i_prices *prices) {
  int64_t sum = 0;
  for (uint32_t v = 0; v < prices->n; v++) sum += prices->price[v];
  return sum;
}

/* Prices that are raised at the limit: no stage is worth more than ONE by them, unless receivers
 * have prices besides, and all clusters no more than the stages of a split within the limit. What
 * all are worth; *out_negative: whether some price is. */
static int64_t raise_at(const bed *b, psplit_i_pricing *pricing, int64_t limit, uint32_t n_parts,
                        int64_t best, bool receivers, psplit_i_planes *planes,
                        const psplit_i_prices *prices, bool *out_negative) {
  int32_t most[SMALL];
  int64_t sum;
  *out_negative = false;
  assert_int_equal(psplit_i_prices_raise(planes, pricing, receivers ? &b->instance : NULL, limit,
                                         n_parts, 20, true, NULL, &sum),
                   PSPLIT_OK);
  assert_true(limit < best || sum <= prices->needed);
  if (sum == prices->needed + 1) return sum; /* no split is within it, whatever prices are */
  for (uint32_t v = 0; v < b->instance.n; v++)
    *out_negative = *out_negative || prices->price[v] < 0;
  assert_int_equal(sum, prices_together(prices));
  if (!receivers)
    assert_true(most_of_all(&b->instance, limit, prices->price, most) <= PSPLIT_I_PRICING_ONE);
  return sum;
}

/* At limits that rise and fall, and with loads rounded less and more, as planes of one are used at
 * the next. */
static void raised_prices_are_valid(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_more = 0, n_negative = 0;
  int64_t best;
  sweep s = {.n_seeds = 30, .nodes = {3, 7}, .stages = {2, 3}, .shared_every = 3};
  while (next_problem(&s, &b)) {
    psplit_i_prices prices;
    psplit_i_planes *planes;
    psplit_i_pricing *pricing;
    int64_t before, after;
    bool done, negative;
    if (!has_prices(&b) || b.instance.n > SMALL || !proved_best(&b, &best) || best == 0) continue;
    assert_int_equal(psplit_i_prices_init(&b.instance, best, &b.arena, &prices), PSPLIT_OK);
    prices.many = n_asked % 2; /* stages stay that do not fit */
    const bool receivers = n_asked % 4 > 1;
    assert_int_equal(psplit_i_planes_make(&prices, &b.instance, &b.arena, &planes), PSPLIT_OK);
    assert_int_equal(psplit_i_pricing_make(&b.instance, NULL, &pricing), PSPLIT_OK);
    assert_non_null(pricing);
    assert_int_equal(
      psplit_i_pricing_most(pricing, best, PARTS, prices.price, NULL, NULL, &before, NULL, &done),
      PSPLIT_OK);
    before = prices_together(&prices) * PSPLIT_I_PRICING_ONE / (before > 0 ? before : 1);
    after = raise_at(&b, pricing, best, PARTS, best, receivers, planes, &prices, &negative);
    n_negative += negative;
    n_asked++;
    n_more += after > before + (int64_t)b.instance.n;
    raise_at(&b, pricing, best + best / 4, 16, best, receivers, planes, &prices, &negative);
    n_negative += negative;
    raise_at(&b, pricing, best - best / 8, 32, best, receivers, planes, &prices, &negative);
    raise_at(&b, pricing, best - best / 16, PARTS, best, receivers, planes, &prices, &negative);
    psplit_i_pricing_free(pricing);
  }
  assert_true(n_asked > percent(80));
  assert_true(n_more > n_asked / 2);
  assert_true(n_negative > n_asked / 20);
}

/* Where loads are rounded less all are worth more: behind stages that do not fit then as much as
 * without those. */
static void finer_loads_say_more(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_more = 0, n_as_much = 0;
  int64_t best;
  sweep s = {.n_seeds = 30, .nodes = {4, 7}, .stages = {2, 3}, .shared_every = 3};
  while (next_problem(&s, &b)) {
    psplit_i_prices prices[2];
    psplit_i_planes *planes[2];
    psplit_i_pricing *pricing;
    bool negative;
    if (!has_prices(&b) || b.instance.n > SMALL || !proved_best(&b, &best) || best == 0) continue;
    assert_int_equal(psplit_i_pricing_make(&b.instance, NULL, &pricing), PSPLIT_OK);
    for (int k = 0; k < 2; k++) {
      assert_int_equal(psplit_i_prices_init(&b.instance, best, &b.arena, &prices[k]), PSPLIT_OK);
      prices[k].many = n_asked % 2;
      assert_int_equal(psplit_i_planes_make(&prices[k], &b.instance, &b.arena, &planes[k]),
                       PSPLIT_OK);
    }
    const int64_t coarse =
      raise_at(&b, pricing, best, 4, best, false, planes[0], &prices[0], &negative);
    const int64_t finer =
      raise_at(&b, pricing, best, PARTS, best, false, planes[0], &prices[0], &negative);
    const int64_t alone =
      raise_at(&b, pricing, best, PARTS, best, false, planes[1], &prices[1], &negative);
    assert_true(finer >= coarse - (int64_t)b.instance.n);
    n_asked++;
    n_more += finer > coarse + (int64_t)b.instance.n;
    n_as_much += finer >= alone - alone / 100;
    psplit_i_pricing_free(pricing);
  }
  assert_true(n_asked > percent(50));
  assert_true(n_more > n_asked / 20);
  assert_true(n_as_much >= n_asked - n_asked / 50);
}

/* A stage at random: what lies between two places of an order by ids, which are topological, and
 * more before its first place that its clusters do not need. */
static void draw_stage(const psplit_i_instance *in, uint8_t *side, int *label) {
  const uint32_t from = (uint32_t)draw(in->n), to = from + (uint32_t)draw(in->n - from);
  for (uint32_t v = in->n; v-- > 0;) {
    bool free = true;
    for (uint32_t l = in->succ_off[v]; l < in->succ_off[v + 1]; l++)
      free = free && label[in->succ[l]] == 2;
    label[v] = v > to || (free && draw(4) == 0) ? 2 : v >= from ? 1 : 0;
    side[v] = (uint8_t)label[v];
  }
}

/* What is said of stages of no more load than one at random, with fewer nets and with more. */
static void hold_wide(const psplit_i_instance *in, psplit_i_pricing *const *pricing,
                      uint32_t *n_less) {
  int32_t price[MANY];
  uint8_t side[MANY], traced[MANY];
  int label[MANY];
  int64_t best[2], least = 0;
  for (uint32_t v = 0; v < in->n; v++) price[v] = (int32_t)draw(1000) - 100;
  draw_stage(in, side, label);
  const int64_t limit = labelled_load(in, label);
  assert_true(limit >= 0);
  assert_int_equal(psplit_i_pricing_load(pricing[1], side), limit);
  for (uint32_t v = 0; v < in->n; v++) least += label[v] == 1 ? price[v] : 0;
  for (int k = 0; k < 2; k++) {
    bool done;
    assert_int_equal(
      psplit_i_pricing_above(pricing[k], limit, PARTS, price, NULL, 0, NULL, &best[k], &done),
      PSPLIT_OK);
    assert_true(done && best[k] >= least);
  }
  *n_less += best[1] < best[0];
  if (best[1] > 0) assert_true(psplit_i_pricing_trace(pricing[1], 0, traced, NULL));
}

/* A net that most clusters receive, in a graph too wide for it: stages that are told with it are
 * worth no less than any that there is, and less than without it. */
static void more_nets_are_counted(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_less = 0;
  sweep s = {.n_seeds = 16, .nodes = {20, MANY}, .stages = {2, 3}};
  while (next_problem(&s, &b)) {
    const psplit_i_instance *in = &b.instance;
    psplit_i_pricing *pricing[2];
    if (!has_prices(&b)) continue;
    assert_int_equal(psplit_i_pricing_make(in, NULL, &pricing[0]), PSPLIT_OK);
    assert_int_equal(psplit_i_pricing_make_wide(in, NULL, &pricing[1]), PSPLIT_OK);
    assert_true(!pricing[0] == !pricing[1]);
    for (int k = 0; k < 20 && pricing[0]; k++) hold_wide(in, pricing, &n_less);
    n_asked += pricing[0] != NULL;
    for (int k = 0; k < 2; k++) psplit_i_pricing_free(pricing[k]);
  }
  assert_true(n_asked > percent(16));
  assert_true(n_less > n_asked / 20);
}

/* On larger graphs no valid split has less. */
static void bounds_are_below_splits(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0;
  sweep s = {.n_seeds = 16, .nodes = {20, 40}, .stages = {2, 3}, .shared_every = 3};
  while (next_problem(&s, &b)) {
    if (!has_prices(&b)) continue;
    const int64_t value = some_split(&b, 4), bound = ask(&b, value + value / 4);
    assert_true(bound <= value);
    n_asked += bound > 0;
  }
  assert_true(n_asked > percent(16));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(finer_loads_say_more),
    cmocka_unit_test(no_stage_has_a_larger_value),
    cmocka_unit_test(stages_are_told_above_what_is_asked),
    cmocka_unit_test(stages_are_traced),
    cmocka_unit_test(raised_prices_are_valid),
    cmocka_unit_test(stages_are_found_on_sides),
    cmocka_unit_test(bounds_are_below_optima),
    cmocka_unit_test(more_nets_are_counted),
    cmocka_unit_test(bounds_are_below_splits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
