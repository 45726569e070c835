/* Gradients of every tensor against central differences, in double: what was written by hand is
 * what the network computes. And loads that decisions follow against their definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decisions.h"
#include "make_items.h"
#include "schedules.h"

enum { M = PSPLIT_I_MEMORY, S = PSPLIT_I_SCORE, MOST_ITEMS = 32, MOST_STAGES = 8 };

typedef struct bench {
  psplit_i_arena arena;
  psplit_items items;
  psplit_i_view view;
  psplit_i_decider decider;
  psplit_i_rollout rollout;
  psplit_i_learner learner;
  psplit_i_policy_network network, gradient;
  psplit_i_objective objective;
  psplit_i_schedules schedules;
} bench;

/* A step of training through four stages, for the last decision. */
static void list_schedules(psplit_i_schedules *out) {
  static const int64_t forward[] = {100, 130, 90, 120}, backward[] = {220, 200, 210, 260},
                       weights[] = {90, 80, 110, 70};
  static const uint64_t bytes[] = {5, 4, 3, 6}, room[] = {300, 200, UINT64_MAX, 400};
  const psplit_policy_batch batch = {4, 48, 17, forward, backward, weights, bytes, room};
  psplit_i_schedules_list(&batch, out);
  assert_true(out->n > 8 && out->fits);
}

static void set_up(bench *b, uint32_t seed, unsigned features) {
  memset(b, 0, sizeof *b);
  psplit_i_arena_init(&b->arena, 0);
  b->items = make_items(seed, 14, 4, features, &b->arena);
  psplit_i_policy_randomize(&b->network, seed);
  /* Biases and scores away from 0, so that every gradient is there to be seen. */
  psplit_i_real *w = (psplit_i_real *)&b->network;
  const psplit_i_random_stream stream = {seed, PSPLIT_I_RANDOM_TEST, 0, 0};
  for (uint32_t k = 0; k < PSPLIT_I_N_PARAMETERS; k++)
    w[k] += 0.2 * (psplit_i_random_uniform(&stream, k) - 0.5);
  assert_int_equal(psplit_i_view_init(&b->view, &b->items, seed % 3, &b->arena), PSPLIT_OK);
  assert_int_equal(psplit_i_decider_init(&b->decider, &b->view, &b->arena), PSPLIT_OK);
  const psplit_i_random_stream choices = {seed, PSPLIT_I_RANDOM_TEST, 1, 0};
  list_schedules(&b->schedules);
  psplit_i_encode(&b->network, &b->view.graph, &b->decider.encoding);
  assert_int_equal(psplit_i_decide(&b->decider, &b->network, &choices, NULL, &b->rollout),
                   PSPLIT_OK);
}

static void tear_down(bench *b) {
  psplit_i_rollout_fini(&b->rollout);
  psplit_i_learner_fini(&b->learner);
  psplit_i_arena_fini(&b->arena);
}

static double loss_of(bench *b) {
  static psplit_i_real d_score[MOST_ITEMS * S], d_gru[MOST_ITEMS * 3 * M], d_start[M],
    scratch[2 * MOST_ITEMS * PSPLIT_I_WIDTH];
  psplit_i_learned learned = {0};
  memset(d_score, 0, sizeof d_score);
  memset(d_gru, 0, sizeof d_gru);
  memset(d_start, 0, sizeof d_start);
  memset(&b->gradient, 0, sizeof b->gradient);
  psplit_i_encode(&b->network, &b->view.graph, &b->decider.encoding);
  psplit_i_gradients gradients = {{d_score, d_gru, d_start}, &b->gradient};
  assert_int_equal(psplit_i_learn(&b->network, &b->decider, &b->rollout, &b->objective, &b->learner,
                                  &gradients, &learned),
                   PSPLIT_OK);
  psplit_i_encode_back(&b->network, &b->view.graph, &b->decider.encoding, &gradients.encoding,
                       scratch, &b->gradient);
  /* The schedule, with as much weight as all items. */
  psplit_i_real p[PSPLIT_I_MOST_SCHEDULES];
  psplit_i_schedules_score(&b->network, &b->schedules, p);
  psplit_i_softmax(p, b->schedules.n);
  learned.loss += psplit_i_objective_back(&b->objective, 5, 0.07, p, b->schedules.n, 1, &learned);
  psplit_i_schedules_score_back(&b->network, &b->schedules, p, &b->gradient);
  return learned.loss;
}

/* Relative to the largest of a tensor, since some of its entries are 0. */
static void compare(bench *b, const char *what) {
  static psplit_i_policy_network analytic;
  psplit_i_real *w = (psplit_i_real *)&b->network;
  const double h = 1e-6;
  loss_of(b);
  analytic = b->gradient;
  const psplit_i_real *g = (const psplit_i_real *)&analytic;
  for (uint32_t t = 0; t < psplit_i_policy_n_tensors; t++) {
    const psplit_i_tensor_row *tensor = &psplit_i_policy_tensors[t];
    const uint32_t n = tensor->rows * tensor->columns;
    double largest = 0, worst = 0;
    for (uint32_t k = 0; k < n; k++) largest = fmax(largest, fabs(g[tensor->offset + k]));
    if (largest < 1e-7) fail_msg("%s: no gradient of %s", what, tensor->name);
    for (uint32_t k = 0; k < n; k += 1 + n / 23) {
      psplit_i_real *x = &w[tensor->offset + k];
      const psplit_i_real old = *x;
      *x = old + h;
      const double above = loss_of(b);
      *x = old - h;
      const double below = loss_of(b);
      *x = old;
      worst = fmax(worst, fabs((above - below) / (2 * h) - g[tensor->offset + k]));
    }
    if (worst > 1e-4 * largest)
      fail_msg("%s: %s is wrong by %g of %g", what, tensor->name, worst, largest);
  }
}

static void test_cross_entropy(void **state) {
  (void)state;
  static bench b;
  for (uint32_t seed = 1; seed < 3; seed++) {
    set_up(&b, seed, seed * 11);
    b.objective = (psplit_i_objective){.weight = 1, .entropy_weight = 0};
    compare(&b, "cross-entropy");
    tear_down(&b);
  }
}

/* Chances of the rollout are those of other weights, so that ratios are not 1, and some are
 * clipped. */
static void test_ppo(void **state) {
  (void)state;
  static bench b;
  for (uint32_t seed = 4; seed < 6; seed++) {
    set_up(&b, seed, seed * 7);
    for (uint32_t k = 0; k < b.rollout.n; k++) b.rollout.chance[k] *= 0.7 + 0.6 * (k % 5) / 4;
    b.objective =
      (psplit_i_objective){.weight = seed % 2 ? 0.8 : -0.6, .entropy_weight = 0.3, .clip = 0.2};
    compare(&b, "PPO");
    tear_down(&b);
  }
}

/* Wrong gradients are found: else the tests above prove nothing. */
static void test_comparison_sees_errors(void **state) {
  (void)state;
  static bench b;
  set_up(&b, 9, 0);
  b.objective = (psplit_i_objective){.weight = 1};
  const double before = loss_of(&b);
  psplit_i_real *w = (psplit_i_real *)&b.network;
  const psplit_i_real *g = (const psplit_i_real *)&b.gradient;
  double square = 0;
  for (uint32_t k = 0; k < PSPLIT_I_N_PARAMETERS; k++) square += g[k] * g[k];
  static psplit_i_policy_network step;
  step = b.gradient;
  for (uint32_t k = 0; k < PSPLIT_I_N_PARAMETERS; k++) w[k] -= 1e-5 * ((psplit_i_real *)&step)[k];
  const double after = loss_of(&b);
  assert_true(fabs((before - after) / (1e-5 * square) - 1) < 0.01);
  tear_down(&b);
}

/* Loads and memory as they are followed, against their definition, for every feature. */
static void test_loads(void **state) {
  (void)state;
  static bench b;
  uint32_t n_valid = 0;
  for (uint32_t seed = 0; seed < 4 * ITEMS_FEATURES; seed++) {
    uint64_t bytes[MOST_STAGES];
    set_up(&b, seed, seed % ITEMS_FEATURES);
    const psplit_i_stages *s = &b.decider.stages;
    /* Only memory may leave nothing: orders, and what devices can run, are looked ahead for. */
    if (!b.rollout.valid && !(seed & ITEMS_MEMORY)) fail_msg("seed %u: no way on", seed);
    if (!b.rollout.valid && b.items.n_types > 1) { /* perhaps on a device that cannot run it */
      tear_down(&b);
      continue;
    }
    n_valid++;
    const int64_t most = bottleneck_of(&b.items, s->stage, s->type, bytes);
    if (most != b.rollout.value)
      fail_msg("seed %u: %lld, by definition %lld", seed, (long long)b.rollout.value,
               (long long)most);
    for (uint32_t k = 0; k < b.items.n_stages; k++) {
      assert_int_equal(bytes[k], s->weights[k] + s->activations[k]);
      if (s->type[k] == PSPLIT_NONE || b.items.type_memory[s->type[k]] == 0 || !b.rollout.valid)
        continue;
      assert_true(bytes[k] <= b.items.type_memory[s->type[k]]);
    }
    for (uint32_t i = 0; i < b.items.n_items; i++)
      for (uint32_t k = b.items.pred_off[i]; k < b.items.pred_off[i + 1]; k++)
        assert_true(s->stage[b.items.pred[k]] <= s->stage[i]);
    tear_down(&b);
  }
  assert_true(n_valid > 3 * ITEMS_FEATURES);
}

/* Functions of our own against libm's. */
static void test_functions(void **state) {
  (void)state;
  for (double x = -30; x < 30; x += 0.0137) {
    assert_true(fabs(psplit_i_policy_exp(x) / exp(x) - 1) < 1e-15 * 8);
    const double y = exp(x);
    assert_true(fabs(psplit_i_policy_log(y) - log(y)) < 1e-13);
  }
  /* Many at once: the same bits. */
  double many[83], each[83];
  for (int k = 0; k < 83; k++) many[k] = each[k] = k == 0 ? -1e9 : k == 1 ? 1e9 : (k - 40) * 1.37;
  psplit_i_policy_exp_all(many, 83);
  for (int k = 0; k < 83; k++) each[k] = psplit_i_policy_exp(each[k]);
  assert_memory_equal(many, each, sizeof many);
  assert_true(psplit_i_policy_exp(-1e9) > 0 && psplit_i_policy_exp(1e9) < INFINITY);
  assert_true(psplit_i_tanh(40) == 1 && psplit_i_tanh(-40) == -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_functions),
    cmocka_unit_test(test_loads),
    cmocka_unit_test(test_cross_entropy),
    cmocka_unit_test(test_ppo),
    cmocka_unit_test(test_comparison_sees_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
