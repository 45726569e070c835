/* Annealing of a few stages in a row: what it finds are splits, never worse ones, the same for any
 * number of threads, and it does find some. And a chain is cold in the end, whatever it takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "annealing.h"
#include "boundary_annealing.h"
#include "sweep.h"

enum { STEPS = 2000 };

static psplit_code anneal(bed *b, uint32_t n_threads, bool high) {
  psplit_diag diag = {0};
  psplit_i_budget budget = psplit_i_budget_unlimited();
  psplit_partition_options options = b->options;
  options.n_threads = n_threads;
  const psplit_i_solver_request request = {.problem = &b->r.problem,
                                           .options = &options,
                                           .budget = &budget,
                                           .arena = &b->arena,
                                           .diag = &diag};
  return psplit_i_anneal_windows(&b->instance, &b->automaton, &request,
                                 (psplit_i_boundary_run){1, STEPS, high}, &b->assignment);
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
    const bool high = n_asked % 2 == 1; /* powers of the loads */
    if (before >= PSPLIT_I_INF) continue;
    memcpy(stage[0], b.assignment.stage, b.instance.n * sizeof **stage);
    assert_int_equal(anneal(&b, 1, high), PSPLIT_OK);
    if (b.assignment.value > before || b.assignment.value != checked_value(&b))
      fail_msg("%s: %lld after %lld takes %lld", s.what, (long long)b.assignment.value,
               (long long)before, (long long)checked_value(&b));
    n_asked++;
    n_better += b.assignment.value < before;
    memcpy(stage[1], b.assignment.stage, b.instance.n * sizeof **stage);
    memcpy(b.assignment.stage, stage[0], b.instance.n * sizeof **stage);
    b.assignment.value = before;
    assert_int_equal(anneal(&b, 3, high), PSPLIT_OK);
    assert_memory_equal(stage[1], b.assignment.stage, b.instance.n * sizeof **stage);
  }
  assert_true(n_asked > percent(100));
  assert_true(n_better > percent(30));
}

typedef struct counted_steps {
  psplit_i_annealing chance;
  psplit_i_budget budget;
  uint64_t n, each;
} counted_steps;

static bool count_step(void *with, uint64_t i) {
  counted_steps *c = with;
  assert_true(i == c->n);
  if (!psplit_i_spend(&c->budget, c->each)) return false;
  c->n++;
  return true;
}

static void chains_cool_within_their_budget(void **state) {
  (void)state;
  enum { ASKED = 100000, EACH = 10 };
  const double hot = 3, cold = 1e-4;
  for (uint32_t parts = 1; parts <= 20; parts++) {
    counted_steps c = {.budget = psplit_i_budget_unlimited(), .each = EACH};
    c.budget.most = (uint64_t)ASKED * EACH / parts + EACH;
    psplit_i_anneal(&c.chance, hot, cold, ASKED, &c.budget, count_step, &c);
    assert_true(c.n > ASKED / parts - 2000 && c.n <= ASKED);
    assert_true(c.chance.temperature < 2 * cold && c.chance.temperature > cold / 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(windows_are_annealed),
                                     cmocka_unit_test(chains_cool_within_their_budget)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
