/* Branched cuts: what crosses a downset of some weight at least is what enumeration finds, however
 * few branches there are no more than that, and no split is below what follows from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "branched_cut.h"
#include "draws.h"
#include "sweep.h"

static const unsigned kFeatures[] = {
  0,          WITH_CLASSES, WITH_FREE_COMM,          WITH_PINS | WITH_TOGETHER,
  WITH_TWINS, WITH_MEMORY,  WITH_STASH | WITH_TWINS, WITH_PAIRS,
};
enum { N_FEATURES = sizeof kFeatures / sizeof *kFeatures, FEW = 14 };

static int64_t weight_of(const bed *b, const bool *in) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < b->instance.n; i++) sum += in[i] ? b->automaton.min_time[i] : 0;
  return sum;
}

static int64_t cost_of(const bed *b, const int64_t *cost, const bool *in) {
  const psplit_i_instance *instance = &b->instance;
  int64_t sum = 0;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t first = instance->net_off[e];
    bool apart = false;
    for (uint32_t k = first + 1; k < instance->net_off[e + 1]; k++)
      apart |= in[instance->net_pin[k]] != in[instance->net_pin[first]];
    sum += apart ? cost[e] : 0;
  }
  return sum;
}

static bool is_downset(const bed *b, const bool *in) {
  for (uint32_t i = 0; i < b->instance.n; i++)
    for (uint32_t l = b->instance.pred_off[i]; in[i] && l < b->instance.pred_off[i + 1]; l++)
      if (!in[b->instance.pred[l]]) return false;
  return true;
}

/* The cheapest downset of a weight from low to high, by trying all. */
static int64_t least_by_enumeration(const bed *b, const psplit_i_branched_query *q) {
  int64_t least = PSPLIT_I_INF;
  for (uint32_t set = 0; set < UINT32_C(1) << b->instance.n; set++) {
    bool in[FEW];
    for (uint32_t i = 0; i < b->instance.n; i++) in[i] = set >> i & 1;
    if (!is_downset(b, in)) continue;
    const int64_t weight = weight_of(b, in), cost = cost_of(b, q->cost, in);
    if (weight >= q->low && weight <= q->high && cost < least) least = cost;
  }
  return least;
}

/* Costs of the bed's nets at both ends, some of them not counted, and limits of the weight. */
static psplit_i_branched_query draw_query(const bed *b, int64_t *cost) {
  const int64_t total = b->automaton.total_min_time;
  for (uint32_t e = 0; e < b->instance.n_nets; e++)
    cost[e] = draw(4) ? b->instance.send[e] + b->instance.recv[e] : 0;
  const int64_t low = (int64_t)draw((uint64_t)(total + 1));
  return (psplit_i_branched_query){.instance = &b->instance,
                                   .closure = &b->closure,
                                   .weight = b->automaton.min_time,
                                   .cost = cost,
                                   .low = low,
                                   .high = low + (int64_t)draw((uint64_t)(total / 4 + 1)),
                                   .n_branches = UINT32_MAX};
}

static int64_t least_of(const psplit_i_branched_query *query, psplit_i_budget *budget) {
  int64_t least;
  assert_int_equal(psplit_i_branched_cut(query, budget, &least), PSPLIT_OK);
  return least;
}

/* All branches find the least; a few, or a budget that ends, no more than that. */
static void cuts_are_what_enumeration_finds(void **state) {
  (void)state;
  static bed b;
  static int64_t cost[MAX_NODES * 2];
  uint32_t n_asked = 0, n_none = 0, n_less = 0;
  sweep s = {.n_seeds = 120,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {4, FEW - 4},
             .stages = {2, 1},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    draw_state = s.n_before;
    if (b.instance.n > FEW) continue; /* too many downsets to try */
    psplit_i_branched_query query = draw_query(&b, cost);
    const int64_t truth = least_by_enumeration(&b, &query), found = least_of(&query, NULL);
    if (found != truth)
      fail_msg("%s: %lld, and there is %lld", s.what, (long long)found, (long long)truth);
    query.n_branches = draw(3);
    const int64_t few = least_of(&query, NULL);
    psplit_i_budget budget = psplit_i_budget_unlimited();
    budget.most = draw(3000);
    query.n_branches = UINT32_MAX;
    assert_true(few <= truth && least_of(&query, &budget) <= truth);
    n_asked++;
    n_none += truth >= PSPLIT_I_INF;
    n_less += few < truth;
  }
  assert_true(n_asked > percent(2000) && n_none > percent(10) && n_less > percent(50));
}

/* Any downset: a few clusters drawn, and all in front of them. */
static void draw_downset(const bed *b, bool *in) {
  const uint32_t n = b->instance.n;
  memset(in, 0, n * sizeof *in);
  for (uint64_t k = 1 + draw(12); k > 0; k--) {
    const uint64_t *row = b->closure.before + (size_t)draw(n) * b->closure.words;
    for (uint32_t i = 0; i < n; i++) in[i] |= psplit_i_holds(row, i);
  }
}

/* Too many downsets to try: none of those drawn is crossed for less. */
static void no_downset_drawn_costs_less(void **state) {
  (void)state;
  static bed b;
  static int64_t cost[MAX_NODES * 2];
  uint32_t n_held = 0, n_positive = 0;
  sweep s = {.n_seeds = 40,
             .order = EVERY_SHAPE,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {30, 30},
             .twins = {15, 10},
             .stages = {2, 1},
             .shared_every = 3};
  while (next_problem(&s, &b)) {
    draw_state = s.seed;
    psplit_i_branched_query query = draw_query(&b, cost);
    query.n_branches = 1 + s.seed % 40;
    const int64_t least = least_of(&query, NULL);
    for (uint32_t k = 0; k < 200; k++) {
      bool in[MAX_NODES];
      draw_downset(&b, in);
      const int64_t weight = weight_of(&b, in);
      if (weight < query.low || weight > query.high) continue;
      assert_true(cost_of(&b, cost, in) >= least);
      n_held++;
      n_positive += least > 0;
    }
  }
  assert_true(n_held > percent(1000) && n_positive > percent(200));
}

static int64_t bound_of(const bed *b, int64_t value, int64_t bound) {
  return bound_by(b, psplit_i_bound_branched_cuts, value, bound);
}

/* What follows for splits, for limits at the optimum and far above. */
static void no_split_is_below(void **state) {
  (void)state;
  sweep s = {.n_seeds = 24,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {4, 15},
             .stages = {2, 3},
             .shared_every = 3};
  const bound_tally t =
    hold_bound(&s, PSPLIT_I_BOUND_BRANCHED_CUTS, psplit_i_bound_branched_cuts, 0, 3, false);
  assert_true(t.n_left_out == 0 && t.n_asked > percent(1000) && t.n_raised > percent(200) &&
              t.n_met > percent(20));
}

/* A row of four nodes whose first sends the last a dear tensor: it crosses three boundaries, and is
 * paid for once. */
static void what_crosses_three_boundaries_counts_once(void **state) {
  (void)state;
  static bed b;
  psplit_problem *p = parsed_problem(
    "{\"format\": \"psplit-problem\", \"version\": 1, \"comm\": \"p2p\","
    " \"devices\": [{\"name\": \"d\", \"class\": 0, \"count\": 4}],"
    " \"nodes\": [{\"id\": 0, \"time_ns\": 100}, {\"id\": 1, \"time_ns\": 100},"
    " {\"id\": 2, \"time_ns\": 100}, {\"id\": 3, \"time_ns\": 100}],"
    " \"tensors\": [{\"producer\": 0, \"consumers\": [3], \"send_ns\": 12, \"recv_ns\": 12},"
    " {\"producer\": 0, \"consumers\": [1], \"send_ns\": 1, \"recv_ns\": 1},"
    " {\"producer\": 1, \"consumers\": [2], \"send_ns\": 1, \"recv_ns\": 1},"
    " {\"producer\": 2, \"consumers\": [3], \"send_ns\": 1, \"recv_ns\": 1}]}");
  b.r.problem = *p;
  assert_true(bed_take(&b));
  /* The best split takes 113. All four loads are 400 + 2 * 15; counted in full at each boundary
   * they would be 400 + 2 * 39. */
  assert_int_equal(bound_of(&b, 125, 100), 108);
  bed_fini(&b);
  psplit_problem_destroy(p);
}

/* Two stages, each of which sends the other a tensor, the one behind in the backward pass;
 * receiving takes nothing. Both loads are 110, though 20 cross: each sends half of it. */
static void what_the_backward_pass_sends_is_received_in_front(void **state) {
  (void)state;
  static bed b;
  psplit_problem *p = parsed_problem(
    "{\"format\": \"psplit-problem\", \"version\": 1, \"comm\": \"p2p\","
    " \"devices\": [{\"name\": \"d\", \"class\": 0, \"count\": 2}],"
    " \"nodes\": [{\"id\": 0, \"time_ns\": 50, \"together\": 0},"
    " {\"id\": 1, \"time_ns\": 50, \"together\": 1},"
    " {\"id\": 2, \"time_ns\": 50, \"together\": 1, \"backward\": true},"
    " {\"id\": 3, \"time_ns\": 50, \"together\": 0, \"backward\": true}],"
    " \"tensors\": [{\"producer\": 0, \"consumers\": [1], \"send_ns\": 10, \"recv_ns\": 0},"
    " {\"producer\": 2, \"consumers\": [3], \"send_ns\": 10, \"recv_ns\": 0}]}");
  b.r.problem = *p;
  assert_true(bed_take(&b));
  assert_int_equal(bound_of(&b, 112, 100), 110);
  bed_fini(&b);
  psplit_problem_destroy(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(cuts_are_what_enumeration_finds),
    cmocka_unit_test(no_downset_drawn_costs_less),
    cmocka_unit_test(no_split_is_below),
    cmocka_unit_test(what_crosses_three_boundaries_counts_once),
    cmocka_unit_test(what_the_backward_pass_sends_is_received_in_front),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
