/* Three and four stages: the best split is what enumeration finds, and what a spent budget leaves
 * is no more than that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "draws.h"
#include "lattice.h"
#include "nested.h"
#include "sweep.h"
#include "tree_flow.h"

static const unsigned kFeatures[] = {0, WITH_TOGETHER, WITH_ALIKE, 0};
enum { N_FEATURES = sizeof kFeatures / sizeof *kFeatures };

static psplit_i_nested_solver *solver_of(const bed *b) {
  psplit_i_budget unlimited = psplit_i_budget_unlimited();
  psplit_i_nested_solver *solver;
  assert_int_equal(psplit_i_nested_create(&b->instance, &b->automaton, &unlimited, &solver),
                   PSPLIT_OK);
  return solver;
}

/* Goes on from b->assignment; its value, and what none is below. */
static int64_t go_on(bed *b, psplit_i_nested_solver *solver, double gap_frac, uint64_t most,
                     int64_t *out_least) {
  int64_t scratch[5 * PSPLIT_I_NESTED_STAGES];
  psplit_i_budget budget = psplit_i_budget_unlimited();
  budget.most = most;
  assert_int_equal(psplit_i_nested_run(solver, &b->automaton, gap_frac, &budget, scratch,
                                       &b->assignment, out_least),
                   PSPLIT_OK);
  return b->assignment.value;
}

enum { ALL = UINT32_MAX };

/* Asked of the bed from no split. */
static int64_t least_of(bed *b, double gap_frac, int64_t *out_least) {
  psplit_i_nested_solver *solver = solver_of(b);
  b->assignment.value = PSPLIT_I_INF;
  const int64_t value = go_on(b, solver, gap_frac, ALL, out_least);
  psplit_i_nested_destroy(solver);
  return value;
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
      int64_t least, comm;
      b.options.require_nonempty = b.automaton.all_used = filled;
      int64_t truth = best_by_enumeration(&b.r.problem, &b.options, &comm, NULL);
      if (truth > PSPLIT_I_INF) truth = PSPLIT_I_INF; /* there is none */
      const int64_t found = least_of(&b, 0, &least);
      if (found != truth || least != truth)
        fail_msg("%s, filled %d: %lld, %lld proved, and there is %lld", s.what, filled,
                 (long long)found, (long long)least, (long long)truth);
      if (found < PSPLIT_I_INF) assert_true(checked_value(&b) == found);
      n_asked[b.automaton.n_stages - 3][b.instance.p2p]++;
      n_filled += filled != 0;
      n_none += found >= PSPLIT_I_INF;
      /* Little by little, from better splits in between. */
      psplit_i_nested_solver *solver = solver_of(&b);
      b.assignment.value = PSPLIT_I_INF;
      for (int64_t before = 0, k = 0; k == 0 || least < truth; before = least, k++) {
        const int64_t known = b.assignment.value;
        const int64_t soon = go_on(&b, solver, 0, 1000 + draw(60000), &least);
        assert_true(least <= truth && least >= before && soon >= truth && k < 10000);
        if (soon < known) assert_true(checked_value(&b) == soon);
        n_less += least < truth;
        if (soon > truth && draw(4) == 0) b.assignment.value = truth + 1; /* found elsewhere */
      }
      assert_true(b.assignment.value == truth);
      psplit_i_nested_destroy(solver);
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
    const int64_t found = least_of(&b, 0, &least);
    if (found != best || least != best)
      fail_msg("%s: %lld, %lld proved, not %lld", s.what, (long long)found, (long long)least,
               (long long)best);
    const int64_t near = least_of(&b, 0.1, &least);
    assert_true(least <= best && near >= best && (double)(near - least) <= 0.1 * (double)near + 1);
    n_asked++;
    n_near += least < near;
  }
  assert_true(n_asked > percent(25) && n_near > percent(20));
}

/* --- a cut --- */

enum { WHOLE = 1 << 10, MOST_CLUSTERS = 16 };

typedef struct cut_case {
  const psplit_i_instance *instance;
  uint32_t n_stages;
  uint8_t lo[MOST_CLUSTERS], hi[MOST_CLUSTERS], stage[MOST_CLUSTERS];
  int32_t share[PSPLIT_I_NESTED_STAGES];
  int64_t least; /* of all splits so far, in shares */
} cut_case;

/* All loads of c->stage by their shares. */
static int64_t weighed(const cut_case *c) {
  const psplit_i_instance *in = c->instance;
  int64_t sum = 0;
  for (uint32_t i = 0; i < in->n; i++) sum += c->share[c->stage[i]] * in->w[i];
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const uint32_t home = c->stage[in->net_pin[in->net_off[e]]];
    bool sent = false;
    for (uint32_t k = 0; k < c->n_stages; k++) {
      bool there = false;
      for (uint32_t p = in->net_off[e] + 1; p < in->net_off[e + 1]; p++)
        there |= c->stage[in->net_pin[p]] == k;
      if (!there || k == home) continue;
      sum += c->share[k] * in->recv[e];
      if (in->p2p || !sent) sum += c->share[home] * in->send[e];
      sent = true;
    }
  }
  return sum;
}

static void try_all(cut_case *c, uint32_t i) {
  if (i == c->instance->n) {
    const int64_t sum = weighed(c);
    if (sum < c->least) c->least = sum;
    return;
  }
  uint8_t from = c->lo[i];
  for (uint32_t l = c->instance->pred_off[i]; l < c->instance->pred_off[i + 1]; l++)
    if (c->stage[c->instance->pred[l]] > from) from = c->stage[c->instance->pred[l]];
  for (uint8_t k = from; k <= c->hi[i]; k++) {
    c->stage[i] = k;
    try_all(c, i + 1);
  }
}

/* Draws intervals that the order leaves as they are, around a split. */
static void draw_case(cut_case *c) {
  const psplit_i_instance *in = c->instance;
  int32_t left = WHOLE;
  for (uint32_t i = 0; i < in->n; i++) {
    uint8_t at = 0;
    for (uint32_t l = in->pred_off[i]; l < in->pred_off[i + 1]; l++)
      if (c->stage[in->pred[l]] > at) at = c->stage[in->pred[l]];
    c->stage[i] = (uint8_t)(at + draw(c->n_stages - at));
    c->lo[i] = (uint8_t)draw(c->stage[i] + 1U);
    c->hi[i] = (uint8_t)(c->stage[i] + draw(c->n_stages - c->stage[i]));
    if (draw(3) == 0) c->lo[i] = c->hi[i] = c->stage[i];
  }
  for (uint32_t i = 0; i < in->n; i++)
    for (uint32_t l = in->pred_off[i]; l < in->pred_off[i + 1]; l++)
      if (c->lo[in->pred[l]] > c->lo[i]) c->lo[i] = c->lo[in->pred[l]];
  for (uint32_t i = in->n; i-- > 0;)
    for (uint32_t l = in->pred_off[i]; l < in->pred_off[i + 1]; l++)
      if (c->hi[in->pred[l]] > c->hi[i]) c->hi[in->pred[l]] = c->hi[i];
  for (uint32_t k = 0; k + 1 < c->n_stages; k++) {
    c->share[k] = (int32_t)draw((uint32_t)left + 1);
    left -= c->share[k];
  }
  c->share[c->n_stages - 1] = left;
}

/* Whatever is known of stages, and whatever the shares: no split is below a cut, and often one is
 * as much. */
static void no_split_is_below_a_cut(void **state) {
  (void)state;
  static bed b;
  uint32_t n_asked = 0, n_met = 0;
  sweep s = {.n_seeds = 12,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {4, 4},
             .stages = {3, 2},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    draw_state = s.n_before;
    if (!psplit_i_nested_takes(&b.instance, &b.automaton) || b.instance.n > MOST_CLUSTERS) continue;
    for (int t = 0; t < 100; t++) {
      cut_case c = {
        .instance = &b.instance, .n_stages = b.automaton.n_stages, .least = PSPLIT_I_INF};
      int64_t least;
      draw_case(&c);
      try_all(&c, 0);
      assert_int_equal(psplit_i_nested_cut(&b.instance, &b.automaton, c.lo, c.hi, c.share, &least),
                       PSPLIT_OK);
      const int64_t truth = (c.least + WHOLE - 1) / WHOLE;
      if (least > truth)
        fail_msg("%s, %d: %lld, and there is %lld", s.what, t, (long long)least, (long long)truth);
      n_asked++;
      n_met += least == truth;
    }
  }
  assert_true(n_asked > percent(12000) && n_met > percent(6000));
}

/* --- flows --- */

/* A network of so many nodes, of which the first two are source and sink; many arcs are alike, and
 * some have no end. */
static void draw_network(psplit_i_flow *flow, uint32_t n) {
  psplit_i_flow_reset(flow);
  for (uint32_t v = 0; v < n; v++) assert_int_equal(psplit_i_flow_node(flow), v);
  const uint32_t n_arcs = draw(4 * n), most = 1 + draw(30);
  for (uint32_t k = 0; k < n_arcs; k++) {
    const uint32_t from = draw(3) ? draw(n) : 0, to = draw(3) ? draw(n) : 1;
    const int64_t cap = from > 1 && to > from && draw(4) == 0 ? PSPLIT_I_INF : draw(most);
    assert_true(psplit_i_flow_arc_add(flow, from, to, cap));
  }
}

/* Trees push as much as Dinic's phases do, and leave the same side; a budget that ends, no more. */
static void trees_push_what_phases_do(void **state) {
  (void)state;
  enum { MOST = 40, N = 4000 };
  psplit_i_flow flow = {0}, same = {0};
  psplit_i_tree_flow trees = {0};
  uint32_t n_flows = 0, n_less = 0;
  draw_state = 1;
  for (uint32_t k = 0; k < N; k++) {
    const uint32_t n = 2 + draw(MOST - 1);
    bool side[MOST + 1], other[MOST + 1];
    int64_t value = 0;
    psplit_i_tree_cut cut = {.side = other};
    draw_network(&flow, n);
    assert_true(psplit_i_flow_copy(&same, &flow));
    assert_true(psplit_i_flow_run(&same, 0, 1, PSPLIT_I_INF, NULL, &value));
    assert_true(psplit_i_flow_side(&same, 0, side));
    assert_true(psplit_i_flow_copy(&same, &flow));
    assert_true(psplit_i_tree_flow_run(&trees, &flow, 0, 1, NULL, &cut));
    assert_true(cut.whole && cut.value == value && memcmp(side, other, n) == 0);
    psplit_i_budget budget = psplit_i_budget_unlimited();
    budget.most = draw(8 * n);
    assert_true(psplit_i_tree_flow_run(&trees, &same, 0, 1, &budget, &cut));
    assert_true(cut.value <= value && (!cut.whole || cut.value == value));
    n_flows += value > 0;
    n_less += cut.value < value;
  }
  assert_true(n_flows > N / 2 && n_less > N / 10);
  psplit_i_flow_fini(&flow);
  psplit_i_flow_fini(&same);
  psplit_i_tree_flow_fini(&trees);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(trees_push_what_phases_do),
                                     cmocka_unit_test(no_split_is_below_a_cut),
                                     cmocka_unit_test(the_best_split_is_found_and_proved),
                                     cmocka_unit_test(larger_problems_are_decided)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
