/* Receivers that are apart: what a split pays where they are taken for such is no more than what it
 * pays, and what a tensor to many layers costs at least is seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../support/plain_problem.h"
#include "apart.h"
#include "bounds.h"
#include "sweep.h"
#include "weight_axis.h"

static const unsigned kFeatures[] = {
  0, WITH_CLASSES, WITH_FREE_COMM, WITH_PINS | WITH_TOGETHER, WITH_TWINS, WITH_MEMORY, WITH_PAIRS,
};
enum { N_FEATURES = sizeof kFeatures / sizeof *kFeatures };

/* A split is within its own value: there no load may grow where receivers are apart. */
static void no_load_grows(void **state) {
  (void)state;
  static bed b;
  int64_t scratch[MAX_DEVICES * 5];
  uint32_t n_changed = 0;
  sweep s = {.n_seeds = 200,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {4, 40},
             .twins = {3, 20},
             .stages = {2, 3},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    const int64_t value = some_split(&b, 2);
    for (int more = 0; more < 2 && value < PSPLIT_I_INF; more++) {
      psplit_i_apart apart;
      assert_int_equal(psplit_i_apart_make(&b.instance, &b.automaton, &b.closure, &b.options,
                                           value + more * value / 4, NULL, &apart),
                       PSPLIT_OK);
      assert_false(apart.impossible);
      if (apart.changed) {
        psplit_i_assignment_evaluate(&b.assignment, &apart.instance, &apart.automaton, scratch);
        if (b.assignment.value > value)
          fail_msg("%s: a split of %lld takes %lld", s.what, (long long)value,
                   (long long)b.assignment.value);
        n_changed++;
      }
      psplit_i_apart_fini(&apart);
    }
  }
  assert_true(n_changed > percent(200));
}

/* The bounds of the weight axis and of receivers that are apart, and the optimum. */
static void ask(const psplit_problem *p, int64_t value, int64_t *out_axis, int64_t *out_apart,
                int64_t *out_best) {
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  psplit_i_budget budget = psplit_i_budget_unlimited();
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_weight_axis axis = {0};
  psplit_diag diag = {0};
  psplit_i_result result;
  psplit_solution *s;
  const psplit_i_solver_request request = {
    .problem = p, .options = &options, .budget = &budget, .arena = &arena, .diag = &diag};
  assert_int_equal(psplit_partition_solve(p, &options, &diag, &s), PSPLIT_OK);
  assert_true(s->proved_optimal);
  *out_best = s->objective_ns;
  psplit_solution_destroy(s);
  assert_int_equal(psplit_i_result_init(&result, &request), PSPLIT_OK);
  assert_int_equal(psplit_i_instance_init(&instance, p, NULL, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_automaton_init(&automaton, &instance, &options, &diag), PSPLIT_OK);
  const psplit_i_bound_query query = {&request, &instance, &automaton, PSPLIT_I_STAGES,
                                      value,    0,         &axis};
  assert_int_equal(psplit_i_bound_run(PSPLIT_I_BOUND_WEIGHT_AXIS, &query, &result), PSPLIT_OK);
  *out_axis = result.bound;
  assert_int_equal(psplit_i_bound_run(PSPLIT_I_BOUND_APART, &query, &result), PSPLIT_OK);
  *out_apart = result.bound;
  psplit_i_weight_axis_fini(&axis);
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&instance);
  psplit_i_arena_fini(&arena);
}

/* Layers in a row, each of the same time: every one, or the first and the last, read what one small
 * node makes of a mask. */
static void ask_masked(uint32_t n_layers, int64_t time_of_layer, bool every, uint32_t n_devices,
                       int64_t *out_axis, int64_t *out_apart, int64_t *out_best) {
  enum { MOST = 64, MASK = 30 };
  int64_t time[MOST + 1] = {1}, net[MOST] = {MASK};
  uint32_t producer[MOST] = {0}, off[MOST + 1] = {0}, consumer[2 * MOST], n = 0;
  const psplit_device device = {.count = n_devices};
  assert_true(n_layers <= MOST);
  for (uint32_t l = 1; l <= n_layers; l++) {
    time[l] = time_of_layer;
    if (every || l == 1 || l == n_layers) consumer[n++] = l;
  }
  for (uint32_t l = 1; l < n_layers; l++) {
    off[l] = n;
    net[l] = 1;
    producer[l] = l;
    consumer[n++] = l + 1;
  }
  off[n_layers] = n;
  const psplit_problem p =
    plain_problem(&device, n_layers + 1, time, n_layers, producer, off, consumer, net);
  ask(&p, 1000, out_axis, out_apart, out_best);
}

/* Where no stage holds two of six layers the mask is sent six times. */
static void a_mask_is_sent_to_every_layer(void **state) {
  (void)state;
  int64_t by_axis, by_apart, best;
  ask_masked(6, 100, true, 7, &by_axis, &by_apart, &best);
  /* By itself it sends to six, 1 + 6 * 30; with a layer to five, and computes 100 more. */
  assert_int_equal(best, 181);
  assert_true(by_axis < 140);
  assert_int_equal(by_apart, best);
}

/* A stage in the middle receives the mask for the layers that it holds for certain, whatever reads
 * it further behind. */
static void a_mask_is_received_by_every_stage(void **state) {
  (void)state;
  int64_t by_axis, by_apart, best;
  ask_masked(64, 25, true, 4, &by_axis, &by_apart, &best);
  /* 432 leaves each of three stages, which receive 30 and one tensor more, 16 layers; 431 not. */
  assert_int_equal(by_axis, 432);
  assert_int_equal(by_apart, best);
  /* Stages that hold none of its readers do not. */
  ask_masked(64, 5, false, 4, &by_axis, &by_apart, &best);
  assert_in_range(by_axis, best - 2, best);
}

/* Sixteen experts between a router and a sum: whichever stage has the sum, others send to it. */
static void experts_send_to_the_sum(void **state) {
  (void)state;
  enum { EXPERTS = 16, N = EXPERTS + 2 };
  int64_t time[N] = {1}, net[EXPERTS + 1] = {20}, by_axis, by_apart, best;
  uint32_t producer[EXPERTS + 1] = {0}, off[EXPERTS + 2] = {0, EXPERTS}, consumer[2 * EXPERTS];
  const psplit_device device = {.count = 4};
  for (uint32_t k = 0; k < EXPERTS; k++) {
    time[k + 1] = 100;
    consumer[k] = producer[k + 1] = k + 1;
    consumer[EXPERTS + k] = N - 1;
    net[k + 1] = 20;
    off[k + 2] = EXPERTS + k + 1;
  }
  time[N - 1] = 1;
  const psplit_problem p =
    plain_problem(&device, N, time, EXPERTS + 1, producer, off, consumer, net);
  ask(&p, 1000, &by_axis, &by_apart, &best);
  assert_true(by_apart <= best);
  assert_true(10 * (best - by_apart) < 8 * (best - by_axis));
}

/* The weight axis whose cuts know what their downsets weigh is below the optimum, for limits around
 * it and far above; and says more than that whose cuts do not. */
static void weighed_cuts_hold(void **state) {
  (void)state;
  static bed b;
  static const unsigned features[] = {
    0,           WITH_CLASSES, WITH_FREE_COMM, WITH_PINS | WITH_TOGETHER, WITH_TWINS,
    WITH_MEMORY, WITH_PAIRS,   WITH_OVERLAP,   WITH_OVERLAP | WITH_TWINS, WITH_STASH | WITH_TWINS,
  };
  int64_t best;
  uint32_t n_asked = 0, n_more = 0;
  sweep s = {.n_seeds = 16,
             .features = features,
             .n_features = sizeof features / sizeof *features,
             .nodes = {4, 13},
             .stages = {2, 3},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    if (!proved_best(&b, &best) || best >= PSPLIT_I_INF / 4) continue;
    for (int more = 0; more < 3; more++) {
      const int64_t limit = best + more * best / 4;
      psplit_i_weight_axis axis;
      int64_t bound = 0;
      assert_int_equal(psplit_i_weight_axis_make(&b.instance, &b.automaton, limit, 1, NULL, &axis),
                       PSPLIT_OK);
      assert_int_equal(
        psplit_i_weight_axis_weighed(&b.instance, &b.automaton, limit, 1, NULL, &bound), PSPLIT_OK);
      expect_bound_holds(&s, limit, bound, best);
      n_asked++;
      n_more += bound > axis.bound;
      psplit_i_weight_axis_fini(&axis);
    }
  }
  assert_true(n_asked > 10 * percent(16));
  assert_true(n_more > percent(16) / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(weighed_cuts_hold),
    cmocka_unit_test(no_load_grows),
    cmocka_unit_test(a_mask_is_sent_to_every_layer),
    cmocka_unit_test(a_mask_is_received_by_every_stage),
    cmocka_unit_test(experts_send_to_the_sum),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
