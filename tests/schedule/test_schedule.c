/* Schedules of micro-batches: the simulator by formulas, and what no schedule beats against it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <psplit/limits.h>
#include <psplit/schedule.h>

#include "pipelines.h"

static psplit_schedule *simulate(psplit_schedule_kind kind, uint32_t k, uint32_t c, uint32_t m,
                                 int64_t f, int64_t b) {
  int64_t forward[64], backward[64];
  for (uint32_t v = 0; v < k * c; v++) forward[v] = f, backward[v] = b;
  const psplit_schedule_input in = {.kind = kind,
                                    .n_stages = k,
                                    .n_chunks = c,
                                    .n_micro_batches = m,
                                    .forward_ns = forward,
                                    .backward_ns = b ? backward : NULL};
  psplit_diag diag = {0};
  psplit_schedule *s = NULL;
  if (psplit_schedule_simulate(&in, &diag, &s) != PSPLIT_OK) fail_msg("%s", diag.message);
  return s;
}

static void schedules_match_their_formulas(void **state) {
  (void)state;
  for (uint32_t k = 1; k <= 6; k++)
    for (uint32_t m = 1; m <= 12; m++) {
      psplit_schedule *s = simulate(PSPLIT_SCHEDULE_FILL_DRAIN, k, 1, m, 10, 20);
      assert_int_equal(s->makespan_ns, (m + k - 1) * 30);
      assert_int_equal(s->peak_in_flight[0], m);
      psplit_schedule_destroy(s);
      s = simulate(PSPLIT_SCHEDULE_1F1B, k, 1, m, 10, 20);
      assert_int_equal(s->makespan_ns, (m + k - 1) * 30);
      for (uint32_t d = 0; d < k; d++)
        assert_int_equal(s->peak_in_flight[d], k - d < m ? k - d : m);
      psplit_schedule_destroy(s);
      s = simulate(PSPLIT_SCHEDULE_STREAM, k, 1, m, 10, 0);
      assert_int_equal(s->makespan_ns, (m + k - 1) * 10);
      assert_int_equal(s->peak_in_flight[0], 1);
      psplit_schedule_destroy(s);
      for (uint32_t c = 2; c <= 4; c++) {
        s = simulate(PSPLIT_SCHEDULE_INTERLEAVED, k, c, m, 10, 20);
        /* Whole groups: the bubble shrinks by the number of chunks. */
        if (m % k == 0) assert_int_equal(s->makespan_ns, (m * c + k - 1) * 30);
        assert_true(s->makespan_ns >= (int64_t)(m * c) * 30);
        psplit_schedule_destroy(s);
      }
    }
}

static void uneven_schedules_keep_their_promises(void **state) {
  (void)state;
  static const int64_t forward[] = {5, 9, 2}, backward[] = {7, 1, 8}, link[] = {3, 4};
  static const uint64_t bytes[] = {100, 200, 300};
  const psplit_schedule_input in = {
    PSPLIT_SCHEDULE_1F1B, 3, 1, 4, forward, backward, link, bytes, NULL, NULL};
  psplit_diag diag = {0};
  psplit_schedule *s = NULL;
  assert_int_equal(psplit_schedule_simulate(&in, &diag, &s), PSPLIT_OK);
  assert_int_equal(s->n_slots, 24);
  for (uint32_t d = 0; d < 3; d++) {
    assert_int_equal(s->busy_ns[d], 4 * (forward[d] + backward[d]));
    for (size_t i = d * 8 + 1; i < d * 8 + 8; i++)
      assert_true(s->slots[i].start_ns >= s->slots[i - 1].end_ns);
  }
  assert_int_equal(s->peak_bytes[0], 300);
  assert_int_equal(s->peak_bytes[2], 300);
  /* The first micro-batch has to go all the way and come back. */
  assert_true(s->makespan_ns >= 5 + 3 + 9 + 4 + 2 + 8 + 4 + 1 + 3 + 7);
  psplit_schedule_destroy(s);
  psplit_schedule_input bad = in;
  bad.n_micro_batches = 0;
  assert_int_equal(psplit_schedule_simulate(&bad, NULL, &s), PSPLIT_USAGE);
  bad = in;
  bad.n_micro_batches = UINT32_MAX;
  assert_int_equal(psplit_schedule_simulate(&bad, NULL, &s), PSPLIT_LIMIT);
}

static void no_schedule_beats_the_limit(void **state) {
  (void)state;
  uint64_t random = 1;
  for (int i = 0; i < 10000; i++) {
    const psplit_schedule_kind kind = (psplit_schedule_kind)(i % 5);
    const uint32_t k = 1 + below(&random, 8), m = 1 + below(&random, 24);
    const uint32_t c = kind == PSPLIT_SCHEDULE_INTERLEAVED ? 1 + below(&random, 4) : 1;
    pipeline p;
    uint32_t peak[MOST];
    psplit_step_limit limit;
    psplit_diag diag = {0};
    make_pipeline(&p, &random, kind, k, c, m, i % 3 == 0);
    const int64_t ns = makespan(&p.in, peak);
    assert_int_equal(psplit_limits_step(&p.in, NULL, &diag, &limit), PSPLIT_OK);
    if (limit.step_ns > ns)
      fail_msg("pipeline %d: %lld ns, limit %lld", i, (long long)ns, (long long)limit.step_ns);
    /* Those that hold all micro-batches, or one way only, wait for the slowest device alone. */
    if (kind == PSPLIT_SCHEDULE_STREAM && !p.in.link_ns) assert_int_equal(limit.step_ns, ns);
    if (kind == PSPLIT_SCHEDULE_INTERLEAVED || kind == PSPLIT_SCHEDULE_STREAM) continue;
    assert_int_equal(psplit_limits_step(&p.in, peak, &diag, &limit), PSPLIT_OK);
    if (limit.step_ns > ns)
      fail_msg("pipeline %d: %lld ns, limit with memory %lld", i, (long long)ns,
               (long long)limit.step_ns);
  }
}

/* Even stages with backward pieces no shorter than those of weights take what Qi et al. say, a
 * bubble of (k - 1) (f + b - w), and hold no more micro-batches than the first stage with 1F1B. */
static void zero_bubble_is_its_formula(void **state) {
  (void)state;
  uint64_t random = 5;
  for (int i = 0; i < 2000; i++) {
    const uint32_t k = 1 + below(&random, 8), m = k + below(&random, 24);
    const int64_t w = 1 + below(&random, 20), b = w + below(&random, 10),
                  f = w + below(&random, 10);
    pipeline p;
    uint32_t peak[MOST];
    psplit_step_limit limit;
    psplit_diag diag = {0};
    make_pipeline(&p, &random, PSPLIT_SCHEDULE_ZERO_BUBBLE, k, 1, m, false);
    for (uint32_t v = 0; v < k; v++) p.forward[v] = f, p.backward[v] = b, p.weights[v] = w;
    const int64_t ns = makespan(&p.in, peak);
    assert_int_equal(ns, m * (f + b + w) + (k - 1) * (f + b - w));
    for (uint32_t v = 0; v < k; v++) assert_int_equal(peak[v], k);
    assert_int_equal(psplit_limits_step(&p.in, NULL, &diag, &limit), PSPLIT_OK);
    assert_int_equal(limit.work_ns, m * k * (f + b + w));
  }
}

/* Each piece once, forward, backward and weights of a micro-batch in this order, and those of a
 * kind in the order of micro-batches, however many there are. */
static void zero_bubble_runs_each_piece_once(void **state) {
  (void)state;
  uint64_t random = 6;
  for (int i = 0; i < 500; i++) {
    const uint32_t k = 1 + below(&random, 8), m = 1 + below(&random, 20);
    pipeline p;
    psplit_diag diag = {0};
    psplit_schedule *s = NULL;
    make_pipeline(&p, &random, PSPLIT_SCHEDULE_ZERO_BUBBLE, k, 1, m, i % 2);
    assert_int_equal(psplit_schedule_simulate(&p.in, &diag, &s), PSPLIT_OK);
    assert_int_equal(s->n_slots, 3 * k * m);
    for (uint32_t d = 0; d < k; d++) {
      uint32_t n[3] = {0};
      for (size_t j = d * 3 * m; j < (d + 1) * 3 * m; j++) {
        const psplit_schedule_slot *slot = &s->slots[j];
        const int way = slot->weights ? 2 : slot->backward;
        assert_true(slot->backward || !slot->weights);
        assert_int_equal(slot->micro_batch, n[way]++);
        assert_true(n[0] >= n[1] && n[1] >= n[2]);
      }
      assert_true(n[0] == m && n[1] == m && n[2] == m);
    }
    psplit_schedule_destroy(s);
  }
  pipeline p;
  int64_t ns, bound;
  psplit_schedule *s = NULL;
  make_pipeline(&p, &random, PSPLIT_SCHEDULE_ZERO_BUBBLE, 2, 1, 4, false);
  assert_int_equal(psplit_schedule_optimum(&p.in, NULL, 1000, NULL, &ns, &bound), PSPLIT_USAGE);
  p.in.weights_ns = NULL;
  assert_int_equal(psplit_schedule_simulate(&p.in, NULL, &s), PSPLIT_USAGE);
  make_pipeline(&p, &random, PSPLIT_SCHEDULE_1F1B, 2, 1, 4, false);
  p.in.weights_ns = p.weights;
  assert_int_equal(psplit_schedule_simulate(&p.in, NULL, &s), PSPLIT_USAGE);
}

/* Times of pieces that are those of their stages change nothing; one that is longer delays what
 * comes after it, and no more than by that. */
static void pieces_may_have_times_of_their_own(void **state) {
  (void)state;
  uint64_t random = 7;
  for (int i = 0; i < 500; i++) {
    static const psplit_schedule_kind KINDS[] = {
      PSPLIT_SCHEDULE_FILL_DRAIN, PSPLIT_SCHEDULE_1F1B, PSPLIT_SCHEDULE_INTERLEAVED,
      PSPLIT_SCHEDULE_STREAM, PSPLIT_SCHEDULE_ZERO_BUBBLE};
    const psplit_schedule_kind kind = KINDS[i % 5];
    const uint32_t k = 1 + below(&random, 5), m = 1 + below(&random, 9);
    const uint32_t c = kind == PSPLIT_SCHEDULE_INTERLEAVED ? 2 : 1;
    pipeline p;
    psplit_diag diag = {0};
    psplit_schedule *s = NULL, *same = NULL, *longer = NULL;
    make_pipeline(&p, &random, kind, k, c, m, i % 2);
    assert_int_equal(psplit_schedule_simulate(&p.in, &diag, &s), PSPLIT_OK);
    int64_t *ns = calloc(s->n_slots, sizeof *ns);
    assert_non_null(ns);
    for (size_t j = 0; j < s->n_slots; j++) ns[j] = s->slots[j].end_ns - s->slots[j].start_ns;
    p.in.slot_ns = ns;
    assert_int_equal(psplit_schedule_simulate(&p.in, &diag, &same), PSPLIT_OK);
    assert_int_equal(same->makespan_ns, s->makespan_ns);
    assert_memory_equal(same->slots, s->slots, s->n_slots * sizeof *s->slots);
    const size_t at = below(&random, (uint32_t)s->n_slots);
    ns[at] += 100;
    assert_int_equal(psplit_schedule_simulate(&p.in, &diag, &longer), PSPLIT_OK);
    assert_true(longer->makespan_ns >= s->makespan_ns);
    assert_true(longer->makespan_ns <= s->makespan_ns + 100);
    assert_int_equal(longer->busy_ns[s->slots[at].stage], s->busy_ns[s->slots[at].stage] + 100);
    ns[at] = -1;
    psplit_schedule *none = NULL;
    assert_int_equal(psplit_schedule_simulate(&p.in, NULL, &none), PSPLIT_USAGE);
    psplit_schedule_destroy(longer);
    psplit_schedule_destroy(same);
    psplit_schedule_destroy(s);
    free(ns);
  }
}

/* What fill-drain takes, by its formula: every stage waits for the slowest, once each way. */
static void fill_drain_is_its_formula(void **state) {
  (void)state;
  uint64_t random = 2;
  for (int i = 0; i < 2000; i++) {
    const uint32_t k = 1 + below(&random, 8), m = 1 + below(&random, 24);
    pipeline p;
    int64_t sum = 0, f = 0, b = 0;
    make_pipeline(&p, &random, PSPLIT_SCHEDULE_FILL_DRAIN, k, 1, m, false);
    for (uint32_t v = 0; v < k; v++) {
      sum += p.forward[v] + p.backward[v];
      if (p.forward[v] > f) f = p.forward[v];
      if (p.backward[v] > b) b = p.backward[v];
    }
    assert_int_equal(makespan(&p.in, NULL), sum + (m - 1) * (f + b));
  }
}

/* --- numbers of micro-batches --- */

static void fewer_micro_batches_are_not_enough(void **state) {
  (void)state;
  uint64_t random = 5;
  for (int i = 0; i < 300; i++) {
    pipeline p;
    psplit_diag diag = {0};
    psplit_step_limit limit, other;
    uint32_t n;
    const uint32_t k = 1 + below(&random, 6);
    make_pipeline(&p, &random, i % 2 ? PSPLIT_SCHEDULE_1F1B : PSPLIT_SCHEDULE_FILL_DRAIN, k, 1, 4,
                  i % 3);
    assert_int_equal(psplit_limits_step(&p.in, NULL, &diag, &limit), PSPLIT_OK);
    const uint32_t least = limit.micro_batches_90;
    assert_true(least >= 1);
    for (uint32_t m = least > 3 ? least - 3 : 1; m < least + 3; m++) {
      p.in.n_micro_batches = m;
      assert_int_equal(psplit_limits_step(&p.in, NULL, &diag, &other), PSPLIT_OK);
      assert_true(fabs(other.speed_up_limit - limit.speed_up_limit) < 1e-9);
      if (m < least)
        assert_true(other.speed_up < 0.9 * limit.speed_up_limit * (1 + 1e-9));
      else
        assert_true(other.speed_up > 0.9 * limit.speed_up_limit * (1 - 1e-9));
    }
    assert_int_equal(psplit_limits_micro_batches(&p.in, 0.9, 512, &diag, &n), PSPLIT_OK);
    assert_true(n == 0 || n >= least);
    if (n <= 1) continue;
    for (uint32_t m = n - 1; m <= n; m++) {
      p.in.n_micro_batches = m;
      assert_int_equal(psplit_limits_step(&p.in, NULL, &diag, &other), PSPLIT_OK);
      const double speed_up = (double)other.work_ns / (double)makespan(&p.in, NULL);
      assert_int_equal(speed_up >= 0.9 * limit.speed_up_limit, m == n);
    }
  }
  /* Even stages: n / (n + k - 1) of k, so nine tenths from 9 (k - 1) on. */
  pipeline p;
  psplit_diag diag = {0};
  psplit_step_limit limit;
  uint32_t n;
  make_pipeline(&p, &random, PSPLIT_SCHEDULE_1F1B, 8, 1, 32, false);
  for (int v = 0; v < 8; v++) p.forward[v] = 10, p.backward[v] = 20;
  assert_int_equal(psplit_limits_step(&p.in, NULL, &diag, &limit), PSPLIT_OK);
  assert_int_equal(limit.step_ns, (32 + 7) * 30);
  assert_int_equal(limit.micro_batches_90, 63);
  assert_true(fabs(limit.speed_up - 32.0 * 8 / 39) < 1e-12);
  assert_true(fabs(limit.bubble_frac - 7.0 / 39) < 1e-12);
  assert_int_equal(psplit_limits_micro_batches(&p.in, 0.9, 512, &diag, &n), PSPLIT_OK);
  assert_int_equal(n, 63);
  /* With one micro-batch held at a time there is nothing to overlap. */
  static const uint32_t one[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  assert_int_equal(psplit_limits_step(&p.in, one, &diag, &limit), PSPLIT_OK);
  assert_int_equal(limit.step_ns, 32 * 8 * 30);
  assert_true(fabs(limit.speed_up_limit - 1) < 1e-12);
}

/* --- training --- */

static psplit_training_limit training(psplit_training_input in) {
  psplit_diag diag = {0};
  psplit_training_limit limit;
  if (psplit_limits_training(&in, &diag, &limit) != PSPLIT_OK) fail_msg("%s", diag.message);
  return limit;
}

static void training_needs_what_the_theorems_say(void **state) {
  (void)state;
  for (int class = 0; class < 4; class ++)
    for (double accuracy = 1; accuracy > 1e-6; accuracy /= 3) {
      const psplit_training_limit l =
        training((psplit_training_input){.loss = (psplit_loss_class) class,
                                         .depth = 8,
                                         .n_samples = 4,
                                         .dimension = 1e6,
                                         .accuracy = accuracy,
                                         .condition = 100});
      assert_true(l.least_gradients <= l.enough_gradients);
      assert_true(l.gradient_time == 2 * (4 + 8 - 1));
      assert_true(l.least_time <= l.enough_time);
      assert_non_null(l.method);
    }
  psplit_training_limit l = training((psplit_training_input){.loss = PSPLIT_LOSS_NONSMOOTH,
                                                             .depth = 16,
                                                             .n_samples = 2,
                                                             .dimension = 256,
                                                             .accuracy = 0.01});
  assert_true(l.least_gradients == 256); /* (50 - 1)^2, but the theorem ends at the dimension */
  assert_true(l.enough_gradients == 10000);
  assert_true(l.smoothed_gradients == 8000 && l.perturbations == 125);
  assert_true(l.smoothed_time == 8000 * 2 * (2 * 125 + 15));
  /* It pays from the first depth at which it takes less time. */
  for (uint32_t m = 1; m < 40; m += 7) {
    psplit_training_input in = {.loss = PSPLIT_LOSS_NONSMOOTH,
                                .depth = 1,
                                .n_samples = m,
                                .dimension = 256,
                                .accuracy = 0.001};
    l = training(in);
    assert_true(l.smoothing_pays_from > 1);
    in.depth = (uint32_t)l.smoothing_pays_from;
    l = training(in);
    assert_true(l.smoothed_time < l.enough_time);
    in.depth--;
    l = training(in);
    assert_true(l.smoothed_time >= l.enough_time);
  }
  /* At a depth at which both take the same it does not pay yet. */
  psplit_training_input even = {
    .loss = PSPLIT_LOSS_NONSMOOTH, .depth = 496, .n_samples = 4, .dimension = 1, .accuracy = 0.01};
  l = training(even);
  assert_true(l.smoothed_time == l.enough_time && l.smoothing_pays_from == 497);
  /* What is needed at least is rounded down, what is enough up. */
  even.accuracy = 0.03;
  even.dimension = 1e6;
  assert_true(training(even).least_gradients == 245);   /* (16.67 - 1)^2 = 245.4 */
  assert_true(training(even).enough_gradients == 1112); /* 1111.1 */
  even.dimension = 16;
  assert_true(training(even).smoothed_gradients == 1334); /* 1333.3 */
  assert_true(training(even).perturbations == 84);        /* 83.3 */
  l = training((psplit_training_input){.loss = PSPLIT_LOSS_NONSMOOTH,
                                       .depth = 1000,
                                       .n_samples = 1,
                                       .dimension = 1e8,
                                       .accuracy = 0.01});
  assert_true(l.smoothing_pays_from == 0);
}

static void numbers_out_of_range_are_refused(void **state) {
  (void)state;
  psplit_training_limit l;
  psplit_diag diag = {0};
  const psplit_training_input good = {
    .loss = PSPLIT_LOSS_SMOOTH, .depth = 1, .n_samples = 1, .dimension = 1, .accuracy = 0.5};
  psplit_training_input bad[6];
  for (int i = 0; i < 6; i++) bad[i] = good;
  bad[0].depth = 0;
  bad[1].n_samples = 0;
  bad[2].dimension = NAN;
  bad[3].accuracy = 0;
  bad[4].loss = PSPLIT_LOSS_STRONGLY_CONVEX; /* no condition number */
  bad[5].loss = (psplit_loss_class)9;
  for (int i = 0; i < 6; i++)
    assert_int_equal(psplit_limits_training(&bad[i], &diag, &l), PSPLIT_USAGE);
  static const int64_t times[] = {1, 2, 3, 4};
  psplit_schedule_input in = {.kind = PSPLIT_SCHEDULE_1F1B,
                              .n_stages = 2,
                              .n_chunks = 1,
                              .n_micro_batches = 2,
                              .forward_ns = times,
                              .backward_ns = times};
  static const uint32_t none[] = {1, 0};
  psplit_step_limit limit;
  int64_t best, bound;
  uint32_t n;
  assert_int_equal(psplit_limits_step(&in, none, &diag, &limit), PSPLIT_USAGE);
  assert_int_equal(psplit_schedule_optimum(&in, none, 10, &diag, &best, &bound), PSPLIT_USAGE);
  assert_int_equal(psplit_limits_micro_batches(&in, 2, 10, &diag, &n), PSPLIT_USAGE);
  in.kind = PSPLIT_SCHEDULE_INTERLEAVED;
  in.n_chunks = 2;
  assert_int_equal(psplit_schedule_optimum(&in, NULL, 10, &diag, &best, &bound), PSPLIT_USAGE);
  in.n_chunks = 1;
  in.kind = PSPLIT_SCHEDULE_1F1B;
  in.n_micro_batches = 256;
  assert_int_equal(psplit_schedule_optimum(&in, NULL, 10, &diag, &best, &bound), PSPLIT_LIMIT);
}

static void what_is_no_schedule_is_refused(void **state) {
  (void)state;
  static const int64_t times[] = {1, 2, 3, 4}, negative[] = {1, -1, 1, 1};
  static const int64_t huge[] = {INT64_MAX / 4, INT64_MAX / 4};
  const psplit_schedule_input good = {.kind = PSPLIT_SCHEDULE_1F1B,
                                      .n_stages = 2,
                                      .n_chunks = 1,
                                      .n_micro_batches = 2,
                                      .forward_ns = times,
                                      .backward_ns = times};
  psplit_schedule_input bad[9];
  for (size_t i = 0; i < 9; i++) bad[i] = good;
  bad[0].n_stages = 0;
  bad[1].n_chunks = 0;
  bad[2].forward_ns = NULL;
  bad[3].n_chunks = 2;
  bad[4].backward_ns = NULL;
  bad[5].kind = PSPLIT_SCHEDULE_STREAM;
  bad[6].link_ns = negative + 1;
  bad[7].forward_ns = huge;
  bad[8].n_stages = UINT32_MAX;
  static const char *const says[] = {"needs stages", "needs stages", "needs stages",
                                     "has chunks",   "need them",    "need them",
                                     "negative",     "overflow",     "more than"};
  for (size_t i = 0; i < 9; i++) {
    psplit_diag diag = {0};
    psplit_schedule *made = NULL;
    const psplit_code code = psplit_schedule_simulate(&bad[i], &diag, &made);
    if (code != (i < 7 ? PSPLIT_USAGE : PSPLIT_LIMIT) || made || !strstr(diag.message, says[i]))
      fail_msg("case %zu: %s: %s", i, psplit_code_name(code), diag.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(schedules_match_their_formulas),
    cmocka_unit_test(uneven_schedules_keep_their_promises),
    cmocka_unit_test(no_schedule_beats_the_limit),
    cmocka_unit_test(fill_drain_is_its_formula),
    cmocka_unit_test(zero_bubble_is_its_formula),
    cmocka_unit_test(pieces_may_have_times_of_their_own),
    cmocka_unit_test(zero_bubble_runs_each_piece_once),
    cmocka_unit_test(fewer_micro_batches_are_not_enough),
    cmocka_unit_test(training_needs_what_the_theorems_say),
    cmocka_unit_test(numbers_out_of_range_are_refused),
    cmocka_unit_test(what_is_no_schedule_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
