/* The weight axis and the annealing of stages, which wide and large graphs live by: bounds against
 * enumeration and against the exact program without windows, with ancestors counted exactly and
 * estimated, with few buckets and many; stages in order and valued right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "boundary_annealing.h"
#include "exact_runs.h"
#include "sweep.h"
#include "weight_axis_inside.h"

static const unsigned kFeatures[] = {
  0,          WITH_CLASSES, WITH_CLASSES | WITH_FREE_COMM, WITH_PINS | WITH_TOGETHER, WITH_OVERLAP,
  WITH_TWINS,
};
enum { N_FEATURES = sizeof kFeatures / sizeof *kFeatures };

/* The bound of an axis with at most n_cells buckets, ancestors exact in blocks of most_exact. */
static int64_t bound_of_axis(const bed *b, int64_t limit, uint32_t n_cells, uint32_t most_exact) {
  psplit_i_weight_axis axis = {0};
  psplit_i_weight_axis_build x = {
    .instance = &b->instance, .automaton = &b->automaton, .out = &axis, .limit = limit};
  int64_t bound = 0;
  x.reach = limit;
  x.most_exact = most_exact;
  psplit_i_arena_init(&axis.arena, 0);
  psplit_i_arena_init(&x.arena, 0);
  if (b->automaton.total_min_time > 0) {
    assert_int_equal(psplit_i_weight_axis_rank(&x), PSPLIT_OK);
    assert_int_equal(psplit_i_weight_axis_divide(&x, n_cells), PSPLIT_OK);
    assert_int_equal(psplit_i_weight_axis_cut(&x, 1), PSPLIT_OK);
    assert_int_equal(psplit_i_weight_axis_reach(&x, &bound), PSPLIT_OK);
  }
  psplit_i_arena_fini(&x.arena);
  psplit_i_arena_fini(&axis.arena);
  return bound;
}

static int64_t bound_of_program(const bed *b, int64_t limit) {
  psplit_i_weight_axis axis;
  assert_int_equal(psplit_i_weight_axis_make(&b->instance, &b->automaton, limit, 1, NULL, &axis),
                   PSPLIT_OK);
  const int64_t bound = axis.bound;
  psplit_i_weight_axis_fini(&axis);
  return bound;
}

/* The largest of the bounds, each of which must hold for every limit >= the optimum. */
static int64_t largest_bound(const bed *b, int64_t limit) {
  static const uint32_t cells[] = {1, 3, 16, 256}, blocks[] = {0, 3, 1 << 14};
  int64_t bound = bound_of_program(b, limit);
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {
      const int64_t other = bound_of_axis(b, limit, cells[i], blocks[k]);
      if (other > bound) bound = other;
    }
  return bound;
}

static void bounds_hold_for_the_optimum(void **state) {
  (void)state;
  static bed b;
  uint32_t n_met = 0, n_all = 0;
  sweep s = {.n_seeds = 60,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {1, 8},
             .twins = {1, 4},
             .stages = {2, 3}};
  while (next_problem(&s, &b)) {
    int64_t comm;
    const int64_t best = best_by_enumeration(&b.r.problem, &b.options, &comm, NULL);
    for (int64_t more = 0; best < INT64_MAX && more < 3; more++) {
      const int64_t limit = best + best * more / 2, bound = largest_bound(&b, limit);
      expect_bound_holds(&s, limit, bound, best);
      n_met += bound == best;
      n_all++;
    }
  }
  /* A bound of nothing would hold as well. */
  assert_true(n_all == 0 || n_met > n_all / 4);
}

static void bounds_hold_for_the_exact_program(void **state) {
  (void)state;
  static bed b;
  static const unsigned features[] = {WITH_OVERLAP, 0};
  uint32_t n_decided = 0;
  sweep s = {.n_seeds = 140,
             .order = EVERY_SHAPE,
             .features = features,
             .n_features = 2,
             .nodes = {12, 30},
             .stages = {2, 3}};
  while (next_problem(&s, &b)) {
    const int64_t limit = largest_bound(&b, some_split(&b, 2)) - 1;
    if (limit < 0) continue;
    const psplit_i_verdict verdict = decide(&b, limit, false, false, NULL);
    if (verdict == PSPLIT_I_YES && b.assignment.value <= limit)
      fail_msg("%s: a split of %lld below the bound %lld", s.what, (long long)b.assignment.value,
               (long long)limit + 1);
    n_decided += verdict == PSPLIT_I_NO;
  }
  assert_true(n_decided > percent(200));
}

/* What each cluster weighs with its ancestors, and with its descendants. */
static void weigh(const bed *b, int64_t *above, int64_t *below) {
  const psplit_i_instance *in = &b->instance;
  uint64_t up[MAX_NODES], down[MAX_NODES]; /* sets of clusters */
  for (uint32_t i = 0; i < in->n; i++) {
    up[i] = UINT64_C(1) << i;
    for (uint32_t l = in->pred_off[i]; l < in->pred_off[i + 1]; l++) up[i] |= up[in->pred[l]];
  }
  for (uint32_t i = in->n; i-- > 0;) {
    down[i] = UINT64_C(1) << i;
    for (uint32_t l = in->succ_off[i]; l < in->succ_off[i + 1]; l++) down[i] |= down[in->succ[l]];
  }
  for (uint32_t i = 0; i < in->n; i++) {
    above[i] = below[i] = 0;
    for (uint32_t j = 0; j < in->n; j++) {
      above[i] += up[i] >> j & 1 ? b->automaton.min_time[j] : 0;
      below[i] += down[i] >> j & 1 ? b->automaton.min_time[j] : 0;
    }
  }
}

/* by_out: at least no more than the weight of the ancestors, and just that where blocks are exact;
 * by_in likewise from the other side. */
static void ranks_are_weights_of_ancestors(void **state) {
  (void)state;
  static bed b;
  int64_t above[MAX_NODES], below[MAX_NODES];
  sweep s = {.n_seeds = 200, .nodes = {1, 40}, .stages = {2, 1}};
  while (next_problem(&s, &b)) {
    weigh(&b, above, below);
    for (uint32_t most_exact = 0; most_exact < 64; most_exact = most_exact * 4 + 4) {
      psplit_i_weight_axis axis = {0};
      psplit_i_weight_axis_build x = {
        .instance = &b.instance, .automaton = &b.automaton, .out = &axis};
      x.most_exact = most_exact;
      psplit_i_arena_init(&x.arena, 0);
      assert_int_equal(psplit_i_weight_axis_rank(&x), PSPLIT_OK);
      for (uint32_t k = 0; k < b.instance.n; k++) {
        const uint32_t i = x.by_out[k].cluster, j = x.by_in[k].cluster;
        const int64_t rest = b.automaton.total_min_time - below[j];
        assert_true(x.by_out[k].key <= above[i] && x.by_in[k].key >= rest);
        if (most_exact >= b.instance.n)
          assert_true(x.by_out[k].key == above[i] && x.by_in[k].key == rest);
      }
      psplit_i_arena_fini(&x.arena);
    }
  }
}

/* Pins are where they have to be, and no stage reads from one behind it. */
static void expect_in_order(const bed *b, const psplit_i_assignment *split) {
  const psplit_i_instance *in = &b->instance;
  for (uint32_t i = 0; i < in->n; i++) {
    if (in->pin[i] != PSPLIT_NONE) assert_int_equal(split->stage[i], in->pin[i]);
    for (uint32_t l = in->succ_off[i]; l < in->succ_off[i + 1]; l++)
      assert_true(split->stage[i] <= split->stage[in->succ[l]]);
  }
}

static void annealed_stages_are_in_order_and_valued_right(void **state) {
  (void)state;
  static bed b;
  int64_t scratch[MAX_DEVICES * 5];
  uint32_t n_better = 0;
  sweep s = {.n_seeds = 60,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {2, 30},
             .stages = {2, 3}};
  while (next_problem(&s, &b)) {
    b.options.require_nonempty = b.automaton.all_used = false;
    const psplit_i_solver_request request = {
      .problem = &b.r.problem, .options = &b.options, .arena = &b.arena};
    const int64_t before = some_split(&b, 2);
    const bool high = s.seed % 2 == 1; /* powers of the loads */
    bool low_won;
    psplit_i_assignment other;
    assert_int_equal(psplit_i_assignment_init(&other, &b.instance, &b.arena), PSPLIT_OK);
    if (before >= PSPLIT_I_INF) continue;
    psplit_i_assignment_copy(&other, &b.assignment, &b.instance);
    assert_int_equal(psplit_i_anneal_boundaries(&b.instance, &b.automaton, &request,
                                                (psplit_i_boundary_run){s.seed, 3000, high},
                                                &low_won, &b.assignment),
                     PSPLIT_OK);
    assert_false(high && low_won);
    b.options.n_threads = 4; /* the same whatever their number */
    assert_int_equal(
      psplit_i_anneal_boundaries(&b.instance, &b.automaton, &request,
                                 (psplit_i_boundary_run){s.seed, 3000, high}, &low_won, &other),
      PSPLIT_OK);
    assert_false(high && low_won);
    assert_memory_equal(other.stage, b.assignment.stage, b.instance.n * sizeof *other.stage);
    n_better += b.assignment.value < before;
    psplit_i_assignment_evaluate(&other, &b.instance, &b.automaton, scratch);
    assert_true(other.value == b.assignment.value && b.assignment.value <= before);
    expect_in_order(&b, &other);
    if (s.seed % 10) continue; /* which takes many steps */
    assert_int_equal(psplit_i_anneal_melted(&b.instance, &b.automaton, &request, &other),
                     PSPLIT_OK);
    const int64_t melted = other.value;
    psplit_i_assignment_evaluate(&other, &b.instance, &b.automaton, scratch);
    assert_true(other.value == melted && melted <= b.assignment.value);
    expect_in_order(&b, &other);
  }
  assert_true(n_better > percent(60));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_are_weights_of_ancestors),
    cmocka_unit_test(bounds_hold_for_the_optimum),
    cmocka_unit_test(bounds_hold_for_the_exact_program),
    cmocka_unit_test(annealed_stages_are_in_order_and_valued_right),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
