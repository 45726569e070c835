/* Annealing of a few stages in a row: what it finds are splits, never worse ones, the same for any
 * number of threads, and it does find some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "boundary_annealing.h"
#include "sweep.h"

enum { STEPS = 2000 };

static psplit_code anneal(bed *b, uint32_t n_threads) {
  psplit_diag diag = {0};
  psplit_i_budget budget = psplit_i_budget_unlimited();
  psplit_partition_options options = b->options;
  options.n_threads = n_threads;
  const psplit_i_solver_request request = {.problem = &b->r.problem,
                                           .options = &options,
                                           .budget = &budget,
                                           .arena = &b->arena,
                                           .diag = &diag};
  return psplit_i_anneal_windows(&b->instance, &b->automaton, &request, 1, STEPS, &b->assignment);
}

static void windows_are_annealed(void **state) {
  (void)state;
  static const unsigned features[] = {
    0, WITH_CLASSES, WITH_FREE_COMM, WITH_OVERLAP, WITH_TWINS, WITH_PINS | WITH_TOGETHER};
  static bed b;
  static uint32_t stage[2][MAX_NODES];
  uint32_t n_asked = 0, n_better = 0;
  sweep s = {.n_seeds = 12,
             .features = features,
             .n_features = sizeof features / sizeof *features,
             .nodes = {12, 28},
             .stages = {6, 2},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    const int64_t before = some_split(&b, 0);
    if (before >= PSPLIT_I_INF) continue;
    memcpy(stage[0], b.assignment.stage, b.instance.n * sizeof **stage);
    assert_int_equal(anneal(&b, 1), PSPLIT_OK);
    if (b.assignment.value > before || b.assignment.value != checked_value(&b))
      fail_msg("%s: %lld after %lld takes %lld", s.what, (long long)b.assignment.value,
               (long long)before, (long long)checked_value(&b));
    n_asked++;
    n_better += b.assignment.value < before;
    memcpy(stage[1], b.assignment.stage, b.instance.n * sizeof **stage);
    memcpy(b.assignment.stage, stage[0], b.instance.n * sizeof **stage);
    b.assignment.value = before;
    assert_int_equal(anneal(&b, 3), PSPLIT_OK);
    assert_memory_equal(stage[1], b.assignment.stage, b.instance.n * sizeof **stage);
  }
  assert_true(n_asked > percent(100));
  assert_true(n_better > percent(30));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(windows_are_annealed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
