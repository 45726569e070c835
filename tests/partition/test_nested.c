/* Three and four stages: the best split is what enumeration finds, and what a spent budget leaves
 * is no more than that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>

#include "draws.h"
#include "lattice.h"
#include "nested.h"
#include "sweep.h"

static const unsigned kFeatures[] = {0, WITH_TOGETHER, WITH_ALIKE, 0};
enum { N_FEATURES = sizeof kFeatures / sizeof *kFeatures };

/* Asked of the bed from no split; its value, and what none is below. */
static int64_t least_of(bed *b, double gap_frac, psplit_i_budget *budget, int64_t *out_least) {
  int64_t scratch[5 * PSPLIT_I_NESTED_STAGES];
  b->assignment.value = PSPLIT_I_INF;
  assert_int_equal(psplit_i_nested(&b->instance, &b->automaton, gap_frac, budget, scratch,
                                   &b->assignment, out_least),
                   PSPLIT_OK);
  return b->assignment.value;
}

/* With stages that may be empty, and with such as may not. */
static void the_best_split_is_found_and_proved(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked[2][2] = {{0}}, n_filled = 0, n_less = 0, n_none = 0;
  sweep s = {.n_seeds = 24,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {4, 5},
             .stages = {3, 2},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    draw_state = s.n_before;
    if (!psplit_i_nested_takes(&b.instance, &b.automaton)) continue;
    for (int filled = 0; filled < 2; filled++) {
      psplit_i_budget budget = psplit_i_budget_unlimited();
      int64_t least, comm;
      b.options.require_nonempty = b.automaton.all_used = filled;
      int64_t truth = best_by_enumeration(&b.r.problem, &b.options, &comm, NULL);
      if (truth > PSPLIT_I_INF) truth = PSPLIT_I_INF; /* there is none */
      const int64_t found = least_of(&b, 0, &budget, &least);
      if (found != truth || least != truth)
        fail_msg("%s, filled %d: %lld, %lld proved, and there is %lld", s.what, filled,
                 (long long)found, (long long)least, (long long)truth);
      if (found < PSPLIT_I_INF) assert_true(checked_value(&b) == found);
      n_asked[b.automaton.n_stages - 3][b.instance.p2p]++;
      n_filled += filled != 0;
      n_none += found >= PSPLIT_I_INF;
      budget = psplit_i_budget_unlimited();
      budget.most = draw(60000);
      const int64_t soon = least_of(&b, 0, &budget, &least);
      assert_true(least <= truth && soon >= truth);
      n_less += least < truth;
    }
  }
  for (int k = 0; k < 2; k++)
    assert_true(n_asked[k][0] > percent(90) && n_asked[k][1] > percent(180));
  assert_true(n_filled > percent(280) && n_less > percent(200) && n_none > percent(50));
}

/* Too many splits to try: what a program over all downsets finds; and no more than a share of the
 * value is open where so much may be. */
static void larger_problems_are_decided(void **state) {
  (void)state;
  enum { MOST_DOWNSETS = 1 << 13, MOST_STATES = 1 << 17 };
  static bed b;
  uint32_t n_asked = 0, n_near = 0;
  sweep s = {.n_seeds = 10,
             .order = EVERY_SHAPE,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {12, 7},
             .stages = {3, 2},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    int64_t best, least;
    if (!psplit_i_nested_takes(&b.instance, &b.automaton) ||
        lattice_best(&b.r.problem, false, INT64_MAX / 8, MOST_DOWNSETS, MOST_STATES, &best) !=
          LATTICE_BEST)
      continue;
    psplit_i_budget budget = psplit_i_budget_unlimited();
    const int64_t found = least_of(&b, 0, &budget, &least);
    if (found != best || least != best)
      fail_msg("%s: %lld, %lld proved, not %lld", s.what, (long long)found, (long long)least,
               (long long)best);
    const int64_t near = least_of(&b, 0.1, &budget, &least);
    assert_true(least <= best && near >= best && (double)(near - least) <= 0.1 * (double)near + 1);
    n_asked++;
    n_near += least < near;
  }
  assert_true(n_asked > percent(25) && n_near > percent(20));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_best_split_is_found_and_proved),
                                     cmocka_unit_test(larger_problems_are_decided)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
