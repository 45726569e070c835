/* One order of the clusters, divided at best: against all of its divisions, each valued by the
 * checker. Orders other than the instance's number clusters and nets anew for the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "branch_order.h"
#include "draws.h"
#include "local_search.h"
#include "made_problem.h"
#include "order_dp.h"
#include "sweep.h"

static const unsigned kFeatures[] = {0,
                                     WITH_FREE_COMM,
                                     WITH_MEMORY,
                                     WITH_MEMORY | WITH_STASH,
                                     WITH_OVERLAP,
                                     WITH_PINS | WITH_TOGETHER,
                                     WITH_TWINS,
                                     WITH_MESSAGES};
enum { N_FEATURES = sizeof kFeatures / sizeof *kFeatures, MOST_CLUSTERS = 9 };

/* Any topological order of the clusters. */
static void draw_order(const psplit_i_instance *instance, uint32_t *order) {
  uint32_t ready[MAX_NODES], n_before[MAX_NODES], n_ready = 0;
  for (uint32_t v = 0; v < instance->n; v++) {
    n_before[v] = instance->pred_off[v + 1] - instance->pred_off[v];
    if (n_before[v] == 0) ready[n_ready++] = v;
  }
  for (uint32_t i = 0; i < instance->n; i++) {
    const uint32_t k = draw(n_ready), v = ready[k];
    ready[k] = ready[--n_ready];
    order[i] = v;
    for (uint32_t l = instance->succ_off[v]; l < instance->succ_off[v + 1]; l++)
      if (--n_before[instance->succ[l]] == 0) ready[n_ready++] = instance->succ[l];
  }
}

/* What the split that stages of clusters are takes by the definition; INF: it is not valid. */
static int64_t checked(const bed *b, const uint32_t *stage_of) {
  uint32_t stage[MAX_NODES];
  psplit_solution *solution;
  psplit_diag diag = {0};
  for (uint32_t v = 0; v < b->r.problem.n_nodes; v++)
    stage[v] = stage_of[b->instance.cluster_of_node[v]];
  if (psplit_partition_check(&b->r.problem, &b->options, stage, NULL, NULL, NULL, &diag,
                             &solution) != PSPLIT_OK)
    return PSPLIT_I_INF;
  const int64_t value = solution->objective_ns;
  psplit_solution_destroy(solution);
  return value;
}

/* The best division of order[at ..] into stages from `from` on. */
static int64_t best_division(const bed *b, const uint32_t *order, uint32_t at, uint32_t from,
                             uint32_t *stage_of) {
  if (at == b->instance.n) return checked(b, stage_of);
  int64_t best = PSPLIT_I_INF;
  for (uint32_t s = from; s < b->instance.n_stages; s++) {
    stage_of[order[at]] = s;
    const int64_t value = best_division(b, order, at + 1, s, stage_of);
    if (value < best) best = value;
  }
  return best;
}

/* Tensors are paid for once, as without point-to-point links: else values depend on the split. */
static void orders_are_divided_at_best(void **state) {
  (void)state;
  static bed b;
  uint32_t n_orders = 0, n_split = 0, order[MAX_NODES], stage_of[MAX_NODES];
  sweep s = {.n_seeds = 200,
             .features = kFeatures,
             .n_features = N_FEATURES,
             .nodes = {3, 7},
             .twins = {4, 1},
             .stages = {2, 2},
             .shared_every = 1};
  while (next_problem(&s, &b)) {
    psplit_i_order_dp dp;
    draw_state = s.seed;
    assert_int_equal(psplit_i_order_dp_init(&dp, &b.instance, &b.automaton), PSPLIT_OK);
    for (int drawn = 0; drawn < 3 && b.instance.n <= MOST_CLUSTERS; drawn++) {
      draw_order(&b.instance, order);
      assert_true(psplit_i_order_dp_run(&dp, order, NULL, PSPLIT_I_INF, NULL, &b.assignment));
      const int64_t best = best_division(&b, order, 0, 0, stage_of);
      if (b.assignment.value != best)
        fail_msg("%s: %lld, and %lld is there", s.what, (long long)b.assignment.value,
                 (long long)best);
      n_orders++;
      n_split += best < PSPLIT_I_INF;
    }
    psplit_i_order_dp_fini(&dp);
  }
  assert_true(n_split > n_orders / 2 && n_orders > percent(5000));
}

static void branches_come_in_an_order(void **state) {
  (void)state;
  static bed b;
  uint32_t order[MAX_NODES], at[MAX_NODES], n_any = 0;
  static const unsigned features[] = {0, WITH_CLASSES};
  sweep s = {.n_seeds = 400,
             .order = EVERY_SHAPE,
             .features = features,
             .n_features = 2,
             .nodes = {4, 40},
             .stages = {3, 1}};
  while (next_problem(&s, &b)) {
    bool any;
    const uint32_t part = s.seed % 3 * (PSPLIT_I_ROW_PARTS / 2);
    assert_int_equal(psplit_i_branch_order(&b.instance, &b.automaton, part, order, &any),
                     PSPLIT_OK);
    memset(at, 0xff, sizeof at);
    for (uint32_t i = 0; i < b.instance.n; i++) {
      assert_int_equal(at[order[i]], PSPLIT_NONE);
      at[order[i]] = i;
      assert_true(any || part > 0 || order[i] == i);
    }
    for (uint32_t v = 0; v < b.instance.n; v++)
      for (uint32_t l = b.instance.succ_off[v]; l < b.instance.succ_off[v + 1]; l++)
        assert_true(at[v] < at[b.instance.succ[l]]);
    n_any += any;
  }
  assert_true(n_any > percent(100));
}

/* Branches of a fan, of one node but for the second: time and what is sent for it; the fifth reads
 * a tensor of its own, which it would else receive. */
static void cheap_branches_come_first(void **state) {
  (void)state;
  static bed b;
  uint32_t order[MAX_NODES];
  bool any;
  psplit_problem *p = parsed_problem(
    "{\"format\": \"psplit-problem\", \"version\": 1, \"devices\": [{\"count\": 2}], \"nodes\": ["
    "{\"id\": 0, \"time_ns\": 5}, {\"id\": 1, \"time_ns\": 10}, {\"id\": 2, \"time_ns\": 5},"
    "{\"id\": 3, \"time_ns\": 25}, {\"id\": 4, \"time_ns\": 20}, {\"id\": 5, \"time_ns\": 10},"
    "{\"id\": 6, \"time_ns\": 8}, {\"id\": 7, \"time_ns\": 5}], \"tensors\": ["
    "{\"producer\": 0, \"consumers\": [1, 2, 4, 5, 6], \"send_ns\": 9, \"recv_ns\": 9},"
    "{\"producer\": 0, \"consumers\": [6], \"send_ns\": 2, \"recv_ns\": 3},"
    "{\"producer\": 1, \"consumers\": [7], \"send_ns\": 4, \"recv_ns\": 4},"
    "{\"producer\": 2, \"consumers\": [3], \"send_ns\": 50, \"recv_ns\": 50},"
    "{\"producer\": 3, \"consumers\": [7], \"send_ns\": 4, \"recv_ns\": 4},"
    "{\"producer\": 4, \"consumers\": [7], \"send_ns\": 4, \"recv_ns\": 4},"
    "{\"producer\": 5, \"consumers\": [7], \"send_ns\": 3, \"recv_ns\": 4},"
    "{\"producer\": 6, \"consumers\": [7], \"send_ns\": 4, \"recv_ns\": 4}]}");
  b.r.problem = *p;
  assert_true(bed_take(&b));
  assert_int_equal(psplit_i_branch_order(&b.instance, &b.automaton, 0, order, &any), PSPLIT_OK);
  assert_true(any);
  /* Costs for time: 8/10, 8/30, 8/20, 7/10, 3/8. */
  static const uint32_t expected[] = {0, 2, 3, 6, 4, 5, 1, 7};
  for (uint32_t i = 0; i < 8; i++)
    assert_int_equal(b.instance.cluster_of_node[expected[i]], order[i]);
  bed_fini(&b);
  psplit_problem_destroy(p);
}

/* A fan of branches of an `up` and a `down`, of which the first receives a tensor of the source. */
static void make_fan(random_problem *r, uint32_t n_branches, uint32_t n_devices) {
  const uint32_t end = 2 * n_branches + 1;
  uint32_t up[MAX_NODES], n_up = 0;
  begin_problem(r, n_devices);
  add_node(r, 10);
  while (r->problem.n_nodes < end) add_node(r, 12);
  add_node(r, 1);
  for (uint32_t v = 1; v < end; v++) {
    const uint32_t to = v % 2 ? v + 1 : end;
    if (v % 2) up[n_up++] = v;
    add_net(r, v, 9, &to, 1);
  }
  add_net(r, 0, 60, up, n_up);
}

/* The source can send to three stages within 190, and these hold at most 15 whole branches even at
 * 225, but within 190 they hold the fronts of all. */
static void branches_fill_two_rows(void **state) {
  (void)state;
  enum { BRANCHES = 16 };
  static bed b;
  uint32_t order[MAX_NODES];
  bool any;
  make_fan(&b.r, BRANCHES, 7);
  assert_true(bed_take(&b));
  assert_int_equal(
    psplit_i_branch_order(&b.instance, &b.automaton, PSPLIT_I_ROW_PARTS, order, &any), PSPLIT_OK);
  assert_true(any);
  for (uint32_t k = 0; k < BRANCHES; k++) {
    assert_int_equal(b.instance.cluster_of_node[2 * k + 1], order[k + 1]);
    assert_int_equal(b.instance.cluster_of_node[2 * k + 2], order[2 * BRANCHES - k]);
  }
  const psplit_i_local_search_options once = {.seed = 1, .n_threads = 1, .n_rounds = 1};
  assert_int_equal(psplit_i_local_search(&b.instance, &b.automaton, &once, &b.assignment),
                   PSPLIT_OK);
  if (b.assignment.value > 190) fail_msg("%lld", (long long)b.assignment.value);
  bed_fini(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(orders_are_divided_at_best), cmocka_unit_test(branches_come_in_an_order),
    cmocka_unit_test(cheap_branches_come_first), cmocka_unit_test(branches_fill_two_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
