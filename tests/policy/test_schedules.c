/* The last decision of a policy: what there is to choose among, what is known of it without running
 * it, and that it is learned. Held against the simulator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/policy.h>
#include <stdlib.h>
#include <string.h>

#include "../support/plain_problem.h"
#include "choose.h"
#include "counter_random.h"

enum { MOST = 9 };

typedef struct bench {
  int64_t forward[MOST], backward[MOST], weights[MOST];
  uint64_t bytes[MOST], room[MOST];
  psplit_policy_batch batch;
  psplit_i_schedules list;
} bench;

static void make_batch(bench *b, uint32_t seed) {
  const psplit_i_random_stream stream = {seed, PSPLIT_I_RANDOM_TEST, 0, 0};
  uint32_t at = 0;
#define BELOW(n) psplit_i_random_below(&stream, at++, (n))
  const uint32_t samples = 1 + (uint32_t)BELOW(64), kind = (uint32_t)BELOW(3);
  for (uint32_t s = 0; s < MOST; s++) {
    b->forward[s] = (int64_t)BELOW(100);
    b->backward[s] = (int64_t)BELOW(200);
    b->weights[s] = (int64_t)BELOW(100);
    b->bytes[s] = BELOW(50);
    b->room[s] = BELOW(8) ? BELOW(50 * (uint64_t)samples) : UINT64_MAX;
  }
  const uint32_t n_stages = 1 + (uint32_t)BELOW(MOST);
  const int64_t fixed = (int64_t)BELOW(60);
  const bool limited = BELOW(2) > 0;
#undef BELOW
  b->batch = (psplit_policy_batch){n_stages,
                                   samples,
                                   fixed,
                                   b->forward,
                                   kind ? b->backward : NULL,
                                   kind > 1 ? b->weights : NULL,
                                   b->bytes,
                                   limited ? b->room : NULL};
  psplit_i_schedules_list(&b->batch, &b->list);
}

/* What a schedule holds at once, by the simulator, against the room that there is. */
static bool fits(const bench *b, uint32_t k) {
  int64_t ns[3 * MOST];
  psplit_schedule *schedule;
  psplit_diag diag = {0};
  const uint32_t n = b->batch.n_stages, m = b->list.n_micro_batches[k];
  const bool apart = b->list.kind[k] == PSPLIT_SCHEDULE_ZERO_BUBBLE;
  for (uint32_t s = 0; s < 3 * n; s++) ns[s] = 1;
  const psplit_schedule_input input = {.kind = b->list.kind[k],
                                       .n_stages = n,
                                       .n_chunks = 1,
                                       .n_micro_batches = m,
                                       .forward_ns = ns,
                                       .backward_ns = b->batch.backward_ns ? ns + n : NULL,
                                       .weights_ns = apart ? ns + 2 * n : NULL};
  assert_int_equal(psplit_schedule_simulate(&input, &diag, &schedule), PSPLIT_OK);
  bool good = true;
  for (uint32_t s = 0; s < n; s++) {
    assert_true(schedule->peak_in_flight[s] <=
                psplit_i_schedule_in_flight(b->list.kind[k], n, s, m));
    if (b->batch.room_bytes && b->room[s] != UINT64_MAX)
      good &=
        (uint64_t)schedule->peak_in_flight[s] * b->bytes[s] * b->batch.n_samples / m <= b->room[s];
  }
  psplit_schedule_destroy(schedule);
  return good;
}

/* All that is listed divides the samples and fits, if anything does; no estimate is above what is
 * simulated, and the search finds the least. */
static void test_lists(void **state) {
  (void)state;
  static bench b;
  uint32_t n_limited = 0, n_none = 0;
  for (uint32_t seed = 0; seed < 2000; seed++) {
    psplit_diag diag = {0};
    make_batch(&b, seed);
    assert_true(b.list.n >= 1 && b.list.n <= PSPLIT_I_MOST_SCHEDULES);
    uint32_t best = 0;
    int64_t ns[PSPLIT_I_MOST_SCHEDULES], least = 0;
    assert_int_equal(psplit_i_batch_best(&b.batch, &b.list, &diag, ns, &best, &least), PSPLIT_OK);
    for (uint32_t k = 0; k < b.list.n; k++) {
      assert_int_equal(b.batch.n_samples % b.list.n_micro_batches[k], 0);
      assert_int_equal(b.list.kind[k] == PSPLIT_SCHEDULE_STREAM, b.batch.backward_ns == NULL);
      if (b.list.fits) assert_true(fits(&b, k));
      assert_true(b.list.estimate[k] <= (double)ns[k] * (1 + 1e-9));
      assert_true(ns[k] >= least);
    }
    assert_int_equal(ns[best], least);
    n_none += !b.list.fits;
    n_limited += b.batch.room_bytes != NULL;
  }
  assert_true(n_limited > 500 && n_none > 100 && n_none < n_limited);
}

static void test_refuses(void **state) {
  (void)state;
  static bench b;
  psplit_diag diag = {0};
  psplit_policy *policy;
  psplit_policy_choice choice;
  assert_int_equal(psplit_policy_create(1, &diag, &policy), PSPLIT_OK);
  make_batch(&b, 3);
  psplit_policy_batch bad = b.batch;
  bad.n_samples = 0;
  assert_int_equal(psplit_policy_choose(policy, &bad, &diag, &choice, NULL), PSPLIT_USAGE);
  bad = b.batch;
  bad.backward_ns = NULL;
  bad.weights_ns = b.weights;
  assert_int_equal(psplit_policy_choose(policy, &bad, &diag, &choice, NULL), PSPLIT_USAGE);
  b.forward[0] = -1;
  assert_int_equal(psplit_policy_choose(policy, &b.batch, &diag, &choice, NULL), PSPLIT_USAGE);
  b.forward[0] = INT64_MAX / 2;
  assert_int_equal(psplit_policy_choose(policy, &b.batch, &diag, &choice, NULL), PSPLIT_LIMIT);
  psplit_policy_destroy(policy);
}

/* Geometric mean of what is chosen over the best, on batches that were not learned from. */
static double above_best(const psplit_policy *policy) {
  static bench b;
  double sum = 0;
  uint32_t n = 0;
  for (uint32_t seed = 5000; seed < 5300; seed++) {
    psplit_policy_choice choice, best;
    psplit_diag diag = {0};
    make_batch(&b, seed);
    assert_int_equal(psplit_policy_choose(policy, &b.batch, &diag, &choice, &best), PSPLIT_OK);
    assert_true(choice.step_ns >= best.step_ns);
    if (best.step_ns == 0) continue;
    sum += psplit_i_policy_log((double)choice.step_ns / (double)best.step_ns);
    n++;
  }
  return psplit_i_policy_exp(sum / n);
}

/* A second of learning is enough to be near the best, and no other weight changes. */
static void test_learns(void **state) {
  (void)state;
  enum { NODES = 12 };
  int64_t time[NODES];
  uint32_t producer[NODES], off[NODES + 1] = {0}, consumer[NODES];
  int64_t sent[NODES];
  for (uint32_t v = 0; v < NODES; v++) {
    time[v] = 10000 + 3000 * (v % 4);
    sent[v] = 100;
    producer[v] = v;
    consumer[v] = off[v + 1] = v + 1;
  }
  const psplit_device device = {.count = 4};
  const psplit_problem problem =
    plain_problem(&device, NODES, time, NODES - 1, producer, off, consumer, sent);
  psplit_policy_learn_options o;
  psplit_policy *policy, *before;
  psplit_policy_learner *learner;
  psplit_diag diag = {0};
  psplit_policy_learn_options_init(&o);
  o.warm_steps = o.steps = 0;
  o.schedule_steps = 300;
  assert_int_equal(psplit_policy_create(1, &diag, &policy), PSPLIT_OK);
  assert_int_equal(psplit_policy_create(1, &diag, &before), PSPLIT_OK);
  const double untrained = above_best(policy);
  assert_int_equal(psplit_policy_learner_create(policy, &o, &diag, &learner), PSPLIT_OK);
  assert_int_equal(psplit_policy_learner_add(learner, &problem, &diag), PSPLIT_OK);
  for (bool done = false; !done;) {
    psplit_policy_step step;
    assert_int_equal(psplit_policy_learner_step(learner, &diag, &step, &done), PSPLIT_OK);
  }
  const double trained = above_best(policy);
  print_message("# over the best: untrained %.4f, trained %.4f\n", untrained, trained);
  assert_true(untrained > 1.08 && trained < 1.02);
  const uint32_t n = psplit_policy_n_parameters(policy);
  const uint32_t n_schedule = (PSPLIT_I_SCHEDULE_FEATURES + 2) * PSPLIT_I_SCHEDULE_HIDDEN;
  uint32_t n_changed = 0;
  for (uint32_t k = 0; k < n; k++) {
    const bool same = psplit_policy_parameter(policy, k) == psplit_policy_parameter(before, k);
    if (k < n - n_schedule) assert_true(same);
    n_changed += !same;
  }
  assert_true(n_changed > n_schedule / 2);
  psplit_policy_learner_destroy(learner);
  psplit_policy_destroy(policy);
  psplit_policy_destroy(before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_lists),
    cmocka_unit_test(test_refuses),
    cmocka_unit_test(test_learns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
