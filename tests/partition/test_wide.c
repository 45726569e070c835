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

#include "assignment.h"
#include "boundary_annealing.h"
#include "exact.h"
#include "local_search.h"
#include "random_problem.h"
#include "weight_axis_inside.h"

static const unsigned kFeatures[] = {
  0,          WITH_CLASSES, WITH_CLASSES | WITH_FREE_COMM, WITH_PINS | WITH_TOGETHER, WITH_OVERLAP,
  WITH_TWINS,
};
enum { N_FEATURES = sizeof kFeatures / sizeof *kFeatures };

/* A problem with its core and machine, on which the parts of the solver can be called. */
typedef struct bed {
  random_problem r;
  psplit_partition_options options;
  psplit_core core;
  psplit_machine machine;
  psplit_arena arena;
  psplit_cut cut;
} bed;

static bool bed_init(bed *b, uint64_t seed, shape kind, uint32_t n, uint32_t k, unsigned features) {
  make_random_problem(&b->r, seed, kind, n, k, features);
  psplit_partition_options_init(&b->options);
  b->options.n_threads = 1;
  psplit_i_arena_init(&b->arena, 0);
  if (psplit_i_core_init(&b->core, &b->r.problem, NULL, NULL) != PSPLIT_OK) return false;
  if (psplit_i_machine_init(&b->machine, &b->core, &b->options, NULL) != PSPLIT_OK) {
    psplit_i_core_fini(&b->core);
    return false;
  }
  assert_int_equal(psplit_i_cut_init(&b->cut, &b->core, &b->arena), PSPLIT_OK);
  return true;
}

static void bed_fini(bed *b) {
  psplit_i_machine_fini(&b->machine);
  psplit_i_core_fini(&b->core);
  psplit_i_arena_fini(&b->arena);
}

static uint32_t percent(uint32_t n) {
  const char *text = getenv("PSPLIT_PROPERTY_PERCENT");
  return n * (text ? (uint32_t)strtoul(text, NULL, 10) : 50) / 100;
}

/* The bound of an axis with at most n_cells buckets, ancestors exact in blocks of most_exact. */
static int64_t bound_of_axis(const bed *b, int64_t limit, uint32_t n_cells, uint32_t most_exact) {
  psplit_wamc wamc = {0};
  psplit_axis x = {.core = &b->core, .machine = &b->machine, .out = &wamc, .limit = limit};
  int64_t bound = 0;
  x.reach = limit;
  x.most_exact = most_exact;
  psplit_i_arena_init(&wamc.arena, 0);
  psplit_i_arena_init(&x.arena, 0);
  if (b->machine.total_omega > 0) {
    assert_int_equal(psplit_i_axis_rank(&x), PSPLIT_OK);
    assert_int_equal(psplit_i_axis_divide(&x, n_cells), PSPLIT_OK);
    assert_int_equal(psplit_i_axis_cut(&x, 1), PSPLIT_OK);
    assert_int_equal(psplit_i_axis_reach(&x, &bound), PSPLIT_OK);
  }
  psplit_i_arena_fini(&x.arena);
  psplit_i_arena_fini(&wamc.arena);
  return bound;
}

static int64_t bound_of_program(const bed *b, int64_t limit) {
  psplit_wamc wamc;
  assert_int_equal(psplit_i_wamc(&b->core, &b->machine, limit, 1, &wamc), PSPLIT_OK);
  const int64_t bound = wamc.bound;
  psplit_i_wamc_fini(&wamc);
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
  for (uint32_t seed = 0; seed < percent(60); seed++)
    for (shape kind = 0; kind < N_SHAPES; kind++)
      for (uint32_t f = 0; f < N_FEATURES; f++) {
        const uint32_t most = kFeatures[f] & WITH_TWINS ? 4 : 8;
        const uint32_t n = 1 + (seed * 7 + kind) % most, k = 2 + (seed * 5 + kind) % 3;
        if (!bed_init(&b, seed, kind, n, k, kFeatures[f])) continue;
        int64_t comm;
        const int64_t best = best_by_enumeration(&b.r.problem, &b.options, &comm, NULL);
        for (int64_t more = 0; best < INT64_MAX && more < 3; more++) {
          const int64_t bound = largest_bound(&b, best + best * more / 2);
          if (bound > best)
            fail_msg("seed %u, shape %d, features %u: bound %lld above the optimum %lld", seed,
                     (int)kind, kFeatures[f], (long long)bound, (long long)best);
          n_met += bound == best;
          n_all++;
        }
        bed_fini(&b);
      }
  /* A bound of nothing would hold as well. */
  assert_true(n_all == 0 || n_met > n_all / 4);
}

static void search_quickly(bed *b) {
  const psplit_search_options options = {
    .seed = 1, .n_threads = 1, .n_rounds = 1, .n_steps = 2, .deadline = {-1}};
  assert_int_equal(psplit_i_search(&b->core, &b->machine, &options, &b->cut), PSPLIT_OK);
}

static void bounds_hold_for_the_exact_program(void **state) {
  (void)state;
  static bed b;
  static const shape kinds[] = {LAYERED, ANY_ORDER, SERIES_PARALLEL, TREE};
  const psplit_wamc none = {0};
  uint32_t n_decided = 0;
  for (uint32_t seed = 0; seed < percent(200); seed++)
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
      const uint32_t n = 12 + (seed * 7 + i) % 30, k = 2 + (seed * 5 + i) % 3;
      if (!bed_init(&b, seed, kinds[i], n, k, seed % 2 ? 0 : WITH_OVERLAP)) continue;
      search_quickly(&b);
      psplit_verdict verdict;
      psplit_exact_options options = {.limit = largest_bound(&b, b.cut.value) - 1,
                                      .max_steps = 300000,
                                      .memory_bytes = 1 << 28,
                                      .n_threads = 1,
                                      .deadline = {-1}};
      if (options.limit >= 0) {
        assert_int_equal(psplit_i_exact(&b.core, &b.machine, &none, &options, &b.cut, &verdict),
                         PSPLIT_OK);
        if (verdict == PSPLIT_I_YES && b.cut.value <= options.limit)
          fail_msg("seed %u, shape %d: a split of %lld below the bound %lld", seed, (int)kinds[i],
                   (long long)b.cut.value, (long long)options.limit + 1);
        n_decided += verdict == PSPLIT_I_NO;
      }
      bed_fini(&b);
    }
  assert_true(n_decided > percent(200));
}

/* by_out: at least no more than the weight of the ancestors, and just that where blocks are exact;
 * by_in likewise from the other side. */
static void ranks_are_weights_of_ancestors(void **state) {
  (void)state;
  static bed b;
  for (uint32_t seed = 0; seed < percent(200); seed++)
    for (shape kind = 0; kind < N_SHAPES; kind++)
      for (uint32_t most_exact = 0; most_exact < 64; most_exact = most_exact * 4 + 4) {
        if (!bed_init(&b, seed, kind, 1 + seed % 40, 2, 0)) continue;
        psplit_wamc wamc = {0};
        psplit_axis x = {.core = &b.core, .machine = &b.machine, .out = &wamc};
        x.most_exact = most_exact;
        psplit_i_arena_init(&x.arena, 0);
        assert_int_equal(psplit_i_axis_rank(&x), PSPLIT_OK);
        const uint32_t n = b.core.n;
        uint64_t up[MAX_NODES], down[MAX_NODES]; /* sets of items */
        int64_t above[MAX_NODES] = {0}, below[MAX_NODES] = {0};
        for (uint32_t i = 0; i < n; i++) {
          up[i] = UINT64_C(1) << i;
          for (uint32_t l = b.core.pred_off[i]; l < b.core.pred_off[i + 1]; l++)
            up[i] |= up[b.core.pred[l]];
        }
        for (uint32_t i = n; i-- > 0;) {
          down[i] = UINT64_C(1) << i;
          for (uint32_t l = b.core.succ_off[i]; l < b.core.succ_off[i + 1]; l++)
            down[i] |= down[b.core.succ[l]];
        }
        for (uint32_t i = 0; i < n; i++)
          for (uint32_t j = 0; j < n; j++) {
            above[i] += up[i] >> j & 1 ? b.machine.omega[j] : 0;
            below[i] += down[i] >> j & 1 ? b.machine.omega[j] : 0;
          }
        for (uint32_t k = 0; k < n; k++) {
          const uint32_t i = x.by_out[k].item, j = x.by_in[k].item;
          const int64_t rest = b.machine.total_omega - below[j];
          assert_true(x.by_out[k].key <= above[i] && x.by_in[k].key >= rest);
          if (most_exact >= n) assert_true(x.by_out[k].key == above[i] && x.by_in[k].key == rest);
        }
        psplit_i_arena_fini(&x.arena);
        bed_fini(&b);
      }
}

static void annealed_stages_are_in_order_and_valued_right(void **state) {
  (void)state;
  static bed b;
  uint32_t n_better = 0;
  for (uint32_t seed = 0; seed < percent(60); seed++)
    for (shape kind = 0; kind < N_SHAPES; kind++)
      for (uint32_t f = 0; f < N_FEATURES; f++) {
        const uint32_t n = 2 + (seed * 11 + kind) % 30;
        if (!bed_init(&b, seed, kind, n, 2 + seed % 3, kFeatures[f])) continue;
        b.options.require_nonempty = b.machine.all_used = false;
        const psplit_job job = {&b.r.problem, &b.options, {-1}, &b.arena, NULL};
        search_quickly(&b);
        psplit_cut other;
        assert_int_equal(psplit_i_cut_init(&other, &b.core, &b.arena), PSPLIT_OK);
        if (b.cut.value < PSPLIT_I_INF) {
          const int64_t before = b.cut.value;
          psplit_i_cut_copy(&other, &b.cut, &b.core);
          assert_int_equal(psplit_i_shift(&b.core, &b.machine, &job, seed, 3000, &b.cut),
                           PSPLIT_OK);
          b.options.n_threads = 4; /* the same whatever their number */
          assert_int_equal(psplit_i_shift(&b.core, &b.machine, &job, seed, 3000, &other),
                           PSPLIT_OK);
          assert_memory_equal(other.stage, b.cut.stage, b.core.n * sizeof *other.stage);
          n_better += b.cut.value < before;
          int64_t scratch[MAX_DEVICES * 5];
          psplit_i_cut_evaluate(&other, &b.core, &b.machine, scratch);
          assert_true(other.value == b.cut.value && b.cut.value <= before);
          for (uint32_t i = 0; i < b.core.n; i++) {
            if (b.core.pin[i] != PSPLIT_NONE) assert_int_equal(other.stage[i], b.core.pin[i]);
            for (uint32_t l = b.core.succ_off[i]; l < b.core.succ_off[i + 1]; l++)
              assert_true(other.stage[i] <= other.stage[b.core.succ[l]]);
          }
        }
        bed_fini(&b);
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
