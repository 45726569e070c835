/* What the exact program leaves out: labels that others dominate, stages that cannot be within the
 * limit, what prices or steps forbid. No best split is missed, and other verdicts never change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "apart.h"
#include "exact_runs.h"
#include "messages.h"
#include "prices.h"
#include "sweep.h"

/* The problem becomes rows in parallel; `masked`: of which some nodes read what the first node
 * makes, sent to each stage that has one. */
static void take_rows(random_problem *r, uint64_t seed, uint32_t n, bool masked) {
  psplit_problem *p = &r->problem;
  const uint32_t width = 2 + (uint32_t)(seed % (masked ? 2 : 4)), rare = masked ? 3 : 12;
  uint32_t n_pins = 0;
  p->n_nets = 0;
  p->comm = PSPLIT_COMM_P2P;
  r->time_ns[0] = 1;
  for (uint32_t v = 1; v < n; v++) {
    r->time_ns[v] = 1 + (int64_t)(psplit_i_splitmix64(seed, v) % 20);
    if (masked && (v == 1 || psplit_i_splitmix64(seed + 3, v) % 3 == 0)) r->consumer[n_pins++] = v;
  }
  for (uint32_t v = 0; v < n; v++) {
    if (v > 0 ? v + width >= n : !masked) continue;
    if (v > 0) r->consumer[n_pins++] = v + width;
    if (v > 0 && v + width + 1 < n && psplit_i_splitmix64(seed + 1, v) % rare == 0)
      r->consumer[n_pins++] = v + width + 1;
    r->producer[p->n_nets] = v;
    r->send_ns[p->n_nets] = r->recv_ns[p->n_nets] =
      (int64_t)(psplit_i_splitmix64(seed + 2, v) % (v ? 6 : 40));
    r->off[++p->n_nets] = n_pins;
  }
}

/* The same by shared memory, where a stage sends one message for all that it sends. */
static void take_one_message(random_problem *r, uint64_t seed) {
  psplit_problem *p = &r->problem;
  p->comm = PSPLIT_COMM_SHARED;
  for (uint32_t c = 0; c < MAX_DEVICES; c++)
    r->message_ns[c] = 1 + (int64_t)(psplit_i_splitmix64(seed + 4, c) % 20);
  for (uint32_t e = 0; e < p->n_nets; e++)
    if (psplit_i_splitmix64(seed + 5, e) % 8 == 0) r->net_flags[e] |= PSPLIT_NET_NO_MESSAGE;
  p->message_ns = r->message_ns;
  p->net_flags = r->net_flags;
}

typedef struct verdict_counts {
  uint32_t n_decided, n_fewer, n_found;
} verdict_counts;

/* With and without labels that others dominate, at limits below what search finds. */
static void compare_verdicts(bed *b, uint32_t seed, verdict_counts *counts) {
  const int64_t value = some_split(b, 2);
  for (uint32_t i = 0; i < 4 && value < PSPLIT_I_INF; i++) {
    const int64_t limit = value - 1 - value * i / 40;
    uint64_t all = 0, fewer = 0;
    const psplit_i_verdict truth = decide(b, limit, seed % 4 == 3, true, &all);
    const psplit_i_verdict verdict = decide(b, limit, seed % 4 == 3, false, &fewer);
    if (truth == PSPLIT_I_UNKNOWN || verdict == PSPLIT_I_UNKNOWN) continue;
    if (verdict != truth)
      fail_msg("seed %u, limit %lld: %s without dominated labels", seed, (long long)limit,
               truth == PSPLIT_I_YES ? "no split" : "a split");
    counts->n_decided++;
    counts->n_found += truth == PSPLIT_I_YES;
    counts->n_fewer += fewer < all;
  }
}

static void no_dominated_label_is_missed(void **state) {
  (void)state;
  static bed b;
  static const unsigned features[] = {0,
                                      WITH_CLASSES,
                                      WITH_OVERLAP,
                                      WITH_FREE_COMM | WITH_CLASSES,
                                      WITH_MEMORY,
                                      WITH_PINS | WITH_TOGETHER};
  enum { N = sizeof features / sizeof *features };
  verdict_counts counts[2] = {{0}}; /* without messages, and with them */
  for (uint32_t seed = 0; seed < percent(2400); seed++) {
    const bool messages = seed % 2;
    const uint32_t at = seed / 2, n = 12 + at * 7 % 16, k = 3 + at % 3;
    make_random_problem(&b.r, at, (shape)(at / N % N_SHAPES), n, k, features[at % N]);
    if (at % 5 < 2) {
      make_random_problem(&b.r, at, LAYERED, n, k, 0);
      take_rows(&b.r, at, n, !messages);
    }
    if (messages) take_one_message(&b.r, at);
    if (!bed_take(&b)) continue;
    compare_verdicts(&b, at, &counts[messages]);
    bed_fini(&b);
  }
  for (int i = 0; i < 2; i++) {
    assert_true(counts[i].n_decided > percent(1200));
    assert_true(counts[i].n_found > percent(1200) / 10);
    assert_true(counts[i].n_fewer > percent(1200) / 10);
  }
}

/* With more steps no fewer stages are tried in full: none with one step, and more than that before
 * it is decided. */
static void more_steps_get_further(void **state) {
  (void)state;
  static bed b;
  uint32_t n_further = 0;
  for (uint32_t seed = 0; seed < percent(100); seed++) {
    make_random_problem(&b.r, seed, LAYERED, 24, 4, 0);
    if (!bed_take(&b)) continue;
    const int64_t value = some_split(&b, 2);
    uint32_t before = 0;
    for (uint64_t most = 1; most <= 1 << 18; most *= 8) {
      uint32_t rounds = PSPLIT_NONE;
      const psplit_i_exact_options options = {
        .limit = value - 1, .max_steps = most, .out_rounds = &rounds};
      const psplit_i_verdict verdict = run_exact(&b, options);
      if (verdict == PSPLIT_I_YES) break;
      assert_true(rounds >= before && rounds < 4 && (most > 1 || rounds == 0));
      n_further += rounds > before;
      before = rounds;
    }
    bed_fini(&b);
  }
  assert_true(n_further > percent(100) / 2);
}

/* Two nodes without time, each read by another one: what they make takes a message. */
static void what_makes_a_message_is_not_weightless(void **state) {
  (void)state;
  static bed b;
  static const int64_t time_ns[] = {0, 0, 10, 10};
  psplit_problem *p = &b.r.problem;
  make_random_problem(&b.r, 1, LAYERED, 4, 2, 0);
  take_one_message(&b.r, 1);
  p->n_nets = 2;
  for (uint32_t e = 0; e < 2; e++) {
    b.r.producer[e] = e;
    b.r.consumer[e] = e + 2;
    b.r.off[e + 1] = e + 1;
    b.r.send_ns[e] = b.r.recv_ns[e] = b.r.net_flags[e] = 0;
  }
  memcpy(b.r.time_ns, time_ns, sizeof time_ns);
  assert_true(bed_take(&b));
  assert_int_equal(decide(&b, 10, false, true, NULL), PSPLIT_I_YES);
  bed_fini(&b);
}

/* Of problems with each set of features in turn the exact program finds the best split. */
static void expect_best_found(const unsigned *features, uint32_t n_features, uint32_t n_seeds,
                              psplit_i_exact_options options) {
  static bed b;
  uint32_t n_all = 0, n_found = 0;
  for (uint32_t seed = 0; seed < percent(n_seeds); seed++) {
    const uint32_t n = 4 + seed % 5, k = 2 + seed / 2 % 3;
    psplit_i_arena arena;
    int64_t comm;
    make_random_problem(&b.r, seed, (shape)(seed / n_features % N_SHAPES), n, k,
                        features[seed % n_features]);
    psplit_partition_options_init(&b.options);
    const int64_t best = best_by_enumeration(&b.r.problem, &b.options, &comm, NULL);
    psplit_i_arena_init(&arena, 0);
    if (b.r.problem.message_ns && b.r.problem.comm == PSPLIT_COMM_P2P)
      assert_int_equal(psplit_i_messages_mark(&arena, NULL, &b.r.problem), PSPLIT_OK);
    const bool made = best < INT64_MAX && bed_take(&b);
    for (int once = 0; once < 2 && made; once++) {
      options.limit = best;
      options.send_once = once;
      options.max_steps = 400000;
      const psplit_i_verdict verdict = run_exact(&b, options);
      if (verdict == PSPLIT_I_NO) fail_msg("seed %u: no split of %lld", seed, (long long)best);
      n_found += verdict == PSPLIT_I_YES;
      n_all++;
    }
    if (made) bed_fini(&b);
    psplit_i_arena_fini(&arena);
  }
  assert_true(n_found > percent(n_seeds) && n_found >= n_all * 9 / 10);
}

/* Nor a split where stages are left out that cannot be within the limit, by what they send and
 * receive for good. */
static void no_best_split_is_missed_with_messages(void **state) {
  (void)state;
  static const unsigned features[] = {WITH_MESSAGES, WITH_MESSAGES | WITH_CLASSES,
                                      WITH_MESSAGES | WITH_OVERLAP, WITH_MESSAGES | WITH_FREE_COMM,
                                      WITH_MESSAGES | WITH_PAIRS};
  expect_best_found(features, sizeof features / sizeof *features, 2000,
                    (psplit_i_exact_options){.keep_dominated = true});
}

/* Nor where it is followed what else stays out of a stage that passed over a cluster. */
static void no_best_split_is_missed_by_following(void **state) {
  (void)state;
  static const unsigned features[] = {0,
                                      WITH_CLASSES,
                                      WITH_OVERLAP,
                                      WITH_FREE_COMM | WITH_CLASSES,
                                      WITH_MEMORY | WITH_STASH,
                                      WITH_TWINS,
                                      WITH_PINS | WITH_TOGETHER,
                                      WITH_PAIRS,
                                      WITH_MESSAGES};
  expect_best_found(features, sizeof features / sizeof *features, 3600,
                    (psplit_i_exact_options){.follow_always = true});
}

/* The same verdicts of larger problems, with windows and without; often in fewer steps. */
static void following_changes_no_verdict(void **state) {
  (void)state;
  static bed b;
  static const unsigned features[] = {0, WITH_CLASSES, WITH_OVERLAP, WITH_FREE_COMM | WITH_CLASSES,
                                      WITH_TWINS};
  uint32_t n_decided = 0, n_found = 0, n_fewer = 0;
  sweep s = {.n_seeds = 400,
             .order = ONE_EACH,
             .features = features,
             .n_features = sizeof features / sizeof *features,
             .nodes = {14, 16},
             .stages = {3, 3}};
  while (next_problem(&s, &b)) {
    const int64_t value = some_split(&b, 2);
    for (uint32_t i = 0; i < 4 && value < PSPLIT_I_INF; i++) {
      psplit_i_weight_axis axis = {0};
      uint64_t all = 0, fewer = 0;
      psplit_i_exact_options options = {
        .limit = value - 1 - value * i / 40, .max_steps = 400000, .out_steps = &all};
      if (i % 2)
        assert_int_equal(
          psplit_i_weight_axis_make(&b.instance, &b.automaton, options.limit, 1, NULL, &axis),
          PSPLIT_OK);
      const psplit_i_verdict truth = run_exact(&b, options);
      options.follow_always = true;
      options.out_steps = &fewer;
      const psplit_i_verdict verdict = run_exact_on(&b, &axis, options);
      psplit_i_weight_axis_fini(&axis);
      if (truth == PSPLIT_I_UNKNOWN || verdict == PSPLIT_I_UNKNOWN) continue;
      if (verdict != truth)
        fail_msg("%s, limit %lld: %s where all is followed", s.what, (long long)options.limit,
                 truth == PSPLIT_I_YES ? "no split" : "a split");
      n_decided++;
      n_found += truth == PSPLIT_I_YES;
      n_fewer += fewer < all;
    }
  }
  assert_true(n_decided > percent(400));
  assert_true(n_found > n_decided / 20);
  assert_true(n_fewer > n_decided / 4);
}

/* Prices at a limit, of the instance or of that in which receivers are apart; NULL: it is too wide,
 * or no split is within the limit for certain. */
static const int32_t *prices_at(bed *b, int64_t limit, bool with_apart) {
  const int32_t *price = NULL;
  psplit_i_pricing *pricing = NULL;
  psplit_i_apart apart = {0};
  psplit_i_prices prices;
  int64_t sum = 0;
  if (with_apart)
    assert_int_equal(psplit_i_apart_make(&b->instance, &b->automaton, &b->closure, &b->options,
                                         limit, NULL, &apart),
                     PSPLIT_OK);
  const psplit_i_instance *instance = apart.changed ? &apart.instance : &b->instance;
  if (!apart.impossible)
    assert_int_equal(psplit_i_pricing_make(instance, NULL, &pricing), PSPLIT_OK);
  if (pricing) {
    assert_int_equal(psplit_i_prices_init(instance, limit, &b->arena, &prices), PSPLIT_OK);
    assert_int_equal(psplit_i_prices_grow(&prices, pricing, limit, 6, true, NULL, &sum), PSPLIT_OK);
    if (sum > 0 && sum <= prices.needed) price = prices.price;
  }
  psplit_i_pricing_free(pricing);
  if (with_apart) psplit_i_apart_fini(&apart);
  return price;
}

static const unsigned kPriced[] = {0, WITH_TOGETHER, WITH_MEMORY, WITH_MEMORY | WITH_STASH,
                                   WITH_PINS | WITH_TOGETHER};
enum { N_PRICED = sizeof kPriced / sizeof *kPriced };

static bool has_prices(const bed *b) {
  return b->instance.n_types == 1 && b->instance.all_forward &&
         psplit_i_takes(PSPLIT_I_RULE_PRICES, b->automaton.features);
}

/* Where receivers are counted prices may be those with receivers apart. */
static void no_best_split_is_missed_by_prices(void **state) {
  (void)state;
  static bed b;
  uint32_t n_all = 0, n_found = 0, n_apart = 0;
  sweep s = {.n_seeds = 40,
             .order = EVERY_SHAPE,
             .features = kPriced,
             .n_features = N_PRICED,
             .nodes = {4, 5},
             .stages = {2, 3},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    int64_t comm;
    if (!has_prices(&b)) continue;
    const int64_t best = best_by_enumeration(&b.r.problem, &b.options, &comm, NULL);
    for (int way = 0; way < 3 && best < INT64_MAX; way++) {
      const psplit_i_exact_options options = {.limit = best,
                                              .price = prices_at(&b, best, way == 2),
                                              .send_once = way == 1,
                                              .max_steps = 400000};
      const psplit_i_verdict verdict = run_exact(&b, options);
      if (verdict == PSPLIT_I_NO) fail_msg("%s: no split of %lld", s.what, (long long)best);
      n_found += verdict == PSPLIT_I_YES;
      n_apart += way == 2 && options.price;
      n_all++;
    }
  }
  assert_true(n_all > percent(200) && n_found == n_all);
  assert_true(n_apart > percent(60));
}

/* The same verdicts of larger problems, and never by more steps. */
static void prices_change_no_verdict(void **state) {
  (void)state;
  static bed b;
  uint32_t n_decided = 0, n_found = 0, n_fewer = 0;
  sweep s = {.n_seeds = 160,
             .order = ONE_EACH,
             .features = kPriced,
             .n_features = N_PRICED,
             .nodes = {14, 8},
             .stages = {3, 3},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    const int64_t value = has_prices(&b) ? some_split(&b, 2) : PSPLIT_I_INF;
    for (uint32_t i = 0; i < 6 && value < PSPLIT_I_INF; i++) {
      uint64_t all = 0, fewer = 0;
      psplit_i_exact_options options = {.limit = value - 1 - value * (i / 2) / 40,
                                        .send_once = i % 2 == 1,
                                        .max_steps = 400000,
                                        .out_steps = &all};
      const psplit_i_verdict truth = run_exact(&b, options);
      options.price = prices_at(&b, options.limit, i % 4 == 2);
      options.out_steps = &fewer;
      const psplit_i_verdict verdict = run_exact(&b, options);
      if (truth == PSPLIT_I_UNKNOWN || verdict == PSPLIT_I_UNKNOWN) continue;
      if (verdict != truth)
        fail_msg("%s, limit %lld: %s with prices", s.what, (long long)options.limit,
                 truth == PSPLIT_I_YES ? "no split" : "a split");
      assert_true(fewer <= all || truth == PSPLIT_I_YES);
      n_decided++;
      n_found += truth == PSPLIT_I_YES;
      n_fewer += fewer < all;
    }
  }
  assert_true(n_decided > percent(160));
  assert_true(n_found > n_decided / 20);
  assert_true(n_fewer > n_decided / 10);
}

/* Steps that are allowed behind the widest round alone decide what is nearly done. */
static void more_steps_end_what_is_nearly_done(void **state) {
  (void)state;
  static bed b;
  uint32_t n_all = 0, n_ended = 0;
  for (uint32_t seed = 0; seed < percent(200); seed++) {
    make_random_problem(&b.r, seed, LAYERED, 24, 5, 0);
    take_rows(&b.r, seed, 24, false);
    if (!bed_take(&b)) continue;
    uint64_t steps = 0;
    psplit_i_exact_options options = {
      .limit = some_split(&b, 2) - 1, .max_steps = UINT64_MAX, .out_steps = &steps};
    const psplit_i_verdict truth = run_exact(&b, options);
    options.out_steps = NULL;
    options.max_steps = steps - 1;
    assert_int_equal(run_exact(&b, options), PSPLIT_I_UNKNOWN);
    options.max_steps_behind = steps;
    const psplit_i_verdict verdict = run_exact(&b, options);
    assert_true(verdict == truth || verdict == PSPLIT_I_UNKNOWN);
    n_all++;
    n_ended += verdict == truth;
    options.max_steps = 1; /* the first rounds are not narrow */
    assert_int_equal(run_exact(&b, options), PSPLIT_I_UNKNOWN);
    bed_fini(&b);
  }
  assert_true(n_all == 0 || (n_ended > n_all / 4 && n_ended < n_all));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_dominated_label_is_missed),
    cmocka_unit_test(more_steps_get_further),
    cmocka_unit_test(what_makes_a_message_is_not_weightless),
    cmocka_unit_test(no_best_split_is_missed_with_messages),
    cmocka_unit_test(no_best_split_is_missed_by_following),
    cmocka_unit_test(following_changes_no_verdict),
    cmocka_unit_test(no_best_split_is_missed_by_prices),
    cmocka_unit_test(prices_change_no_verdict),
    cmocka_unit_test(more_steps_end_what_is_nearly_done),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
