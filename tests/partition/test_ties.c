/* Ties: which of the best splits is the answer. Small problems are compared with enumeration in
 * test_property.c; here are larger ones, and the small moves on their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "assignment.h"
#include "instance.h"
#include "order_dp.h"
#include "random_problem.h"
#include "tie_descent.h"

/* NULL: there is no split. */
static psplit_solution *solve(const psplit_problem *p, uint64_t seed, uint32_t n_threads) {
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.seed = seed;
  o.n_threads = n_threads;
  o.time_limit_s = 1;
  psplit_solution *solution;
  psplit_diag diag = {0};
  const psplit_code code = psplit_partition_solve(p, &o, &diag, &solution);
  if (code == PSPLIT_INFEASIBLE) return NULL;
  if (code != PSPLIT_OK) fail_msg("%s", diag.message);
  return solution;
}

/* Nodes that nothing ties together: many splits are as good, one comes first. */
static void the_first_of_many_is_the_answer(void **state) {
  (void)state;
  static const int64_t times[] = {1, 1, 1, 1, 1};
  static const uint32_t pin[] = {PSPLIT_NONE, PSPLIT_NONE, 2, PSPLIT_NONE, PSPLIT_NONE};
  static const struct {
    uint32_t n_stages;
    bool pinned;
    uint32_t stage[5];
  } cases[] = {
    {2, false, {0, 0, 0, 1, 1}}, {3, false, {0, 0, 1, 1, 2}},
    {4, false, {0, 0, 1, 1, 2}}, /* the last stage is of no use */
    {5, false, {0, 1, 2, 3, 4}}, {3, true, {0, 0, 2, 1, 1}},
    {4, true, {0, 0, 2, 1, 1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const psplit_device device = {.count = cases[i].n_stages};
    psplit_problem p = {.n_nodes = 5,
                        .n_classes = 1,
                        .time_ns = times,
                        .pin = cases[i].pinned ? pin : NULL,
                        .n_devices = 1,
                        .devices = &device,
                        .ticks_per_unit = 1};
    psplit_solution *s = solve(&p, 1, 1);
    assert_true(s->ties_proved);
    for (uint32_t v = 0; v < 5; v++) assert_int_equal(s->stage[v], cases[i].stage[v]);
    psplit_solution_destroy(s);
  }
}

/* A node that takes no time goes to the first stage all the same, not to the first that is in use.
 */
static void a_weightless_node_is_numbered_too(void **state) {
  (void)state;
  static const int64_t times[] = {0, 1};
  static const uint32_t pin[] = {PSPLIT_NONE, 1};
  const psplit_device device = {.count = 3};
  const psplit_problem p = {.n_nodes = 2,
                            .n_classes = 1,
                            .time_ns = times,
                            .pin = pin,
                            .n_devices = 1,
                            .devices = &device,
                            .ticks_per_unit = 1};
  psplit_solution *s = solve(&p, 1, 1);
  assert_true(s->ties_proved);
  assert_int_equal(s->stage[0], 0);
  psplit_solution_destroy(s);
}

/* The first and the last node run on one device each. Beside the first, the one between them makes
 * no stage slower, which is why the search joins them; but beside the last, less is sent. */
static void what_costs_no_time_may_send_more(void **state) {
  (void)state;
  static const int64_t times[] = {1, PSPLIT_TIME_FORBIDDEN, 0, 10, PSPLIT_TIME_FORBIDDEN, 20};
  static const uint32_t producer[] = {0, 1}, off[] = {0, 1, 2}, consumer[] = {1, 2};
  static const int64_t send[] = {5, 100, 5, 0}, recv[] = {0, 0, 0, 10};
  static const psplit_device devices[] = {{.count = 1}, {.class_id = 1, .count = 1}};
  const psplit_problem p = {.n_nodes = 3,
                            .n_classes = 2,
                            .time_ns = times,
                            .n_nets = 2,
                            .net_producer = producer,
                            .net_off = off,
                            .net_consumer = consumer,
                            .net_send_ns = send,
                            .net_recv_ns = recv,
                            .n_devices = 2,
                            .devices = devices,
                            .ticks_per_unit = 1};
  psplit_solution *s = solve(&p, 1, 1);
  assert_true(s->ties_proved);
  assert_int_equal(s->objective_ns, 30);
  assert_int_equal(s->comm_ns, 5);
  assert_int_equal(s->stage[1], 1);
  psplit_solution_destroy(s);
}

/* A time limit of 0 proves nothing about ties, and says so. */
static void without_time_nothing_is_claimed(void **state) {
  (void)state;
  static random_problem r;
  make_random_problem(&r, 3, LAYERED, 30, 3, 0);
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.time_limit_s = 0;
  psplit_solution *s;
  assert_int_equal(psplit_partition_solve(&r.problem, &o, NULL, &s), PSPLIT_OK);
  assert_false(s->ties_proved);
  psplit_solution_destroy(s);
}

/* Beyond enumeration: where ties are proved, neither seed nor threads choose the answer. */
static void the_seed_does_not_choose(void **state) {
  (void)state;
  static const unsigned features[] = {0, WITH_CLASSES, WITH_TWINS, WITH_MEMORY, WITH_PINS};
  static random_problem r;
  uint32_t n_proved = 0;
  for (uint64_t seed = 0; seed < 5; seed++)
    for (shape kind = 0; kind < N_SHAPES; kind++) {
      const unsigned what = features[(seed + kind) % 5];
      make_random_problem(&r, seed, kind, what & WITH_TWINS ? 16 : 32, 4, what);
      const psplit_device device = {.count = 4, .memory_bytes = 400};
      if (what & WITH_MEMORY) r.problem.devices = &device;
      psplit_solution *first = solve(&r.problem, 1, 1);
      if (!first) continue;
      n_proved += first->ties_proved;
      for (uint64_t other = 2; other < 4; other++) {
        psplit_solution *s = solve(&r.problem, other, (uint32_t)other);
        if (first->ties_proved && s->ties_proved)
          assert_memory_equal(s->stage, first->stage, s->n_nodes * sizeof *s->stage);
        psplit_solution_destroy(s);
      }
      psplit_solution_destroy(first);
    }
  assert_true(n_proved >= 15); /* of 25, some without a split */
}

/* Sum of communication and largest load of a cut, from the problem alone; fails where a constraint
 * does not hold. */
static void weigh(const psplit_problem *p, const psplit_partition_options *o,
                  const psplit_i_instance *instance, const psplit_i_assignment *assignment,
                  int64_t *out_value, int64_t *out_comm) {
  uint32_t stage[MAX_NODES];
  psplit_solution *s;
  psplit_diag diag = {0};
  for (uint32_t v = 0; v < p->n_nodes; v++)
    stage[v] = assignment->stage[instance->cluster_of_node[v]];
  if (psplit_partition_check(p, o, stage, NULL, assignment->device, assignment->replicas, &diag,
                             &s) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  *out_value = s->objective_ns;
  *out_comm = s->comm_ns;
  psplit_solution_destroy(s);
}

/* Clusters of an instance by their smallest node. */
static void order_of(const psplit_i_instance *instance, uint32_t *order) {
  bool seen[MAX_NODES] = {false};
  uint32_t n = 0;
  for (uint32_t v = 0; v < instance->problem->n_nodes; v++) {
    if (!seen[instance->cluster_of_node[v]]) order[n++] = instance->cluster_of_node[v];
    seen[instance->cluster_of_node[v]] = true;
  }
}

/* From a split as it comes: no load above the bottleneck, no more communication, and where that is
 * the same, lower stages. Returns whether anything moved. */
static bool lower_one(const random_problem *r, uint32_t n_moves_together) {
  const psplit_problem *p = &r->problem;
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_order_dp dp;
  psplit_i_arena arena;
  psplit_i_assignment before, after;
  uint32_t order[MAX_NODES];
  int64_t value[2], comm[2];
  psplit_i_arena_init(&arena, 0);
  if (psplit_i_instance_init(&instance, p, NULL, NULL) != PSPLIT_OK) return false;
  if (psplit_i_automaton_init(&automaton, &instance, &o, NULL) != PSPLIT_OK) {
    psplit_i_instance_fini(&instance);
    return false;
  }
  assert_int_equal(psplit_i_order_dp_init(&dp, &instance, &automaton), PSPLIT_OK);
  assert_int_equal(psplit_i_assignment_init(&before, &instance, &arena), PSPLIT_OK);
  assert_int_equal(psplit_i_assignment_init(&after, &instance, &arena), PSPLIT_OK);
  for (uint32_t i = 0; i < instance.n; i++) order[i] = i; /* topological */
  assert_true(psplit_i_order_dp_run(&dp, order, NULL, PSPLIT_I_INF, NULL, &before));
  bool moved = false;
  if (before.value < PSPLIT_I_INF) {
    order_of(&instance, order);
    psplit_i_assignment_copy(&after, &before, &instance);
    const psplit_i_tie_descent_options options = {order, n_moves_together, false, UINT64_MAX};
    assert_int_equal(psplit_i_descend_ties(&instance, &automaton, &options, &after), PSPLIT_OK);
    weigh(p, &o, &instance, &before, &value[0], &comm[0]);
    weigh(p, &o, &instance, &after, &value[1], &comm[1]);
    assert_int_equal(after.value, value[1]);
    assert_int_equal(after.comm, comm[1]);
    assert_true(value[1] <= value[0] && comm[1] <= comm[0]);
    for (uint32_t i = 0; i < instance.n && comm[1] == comm[0] && !moved; i++) {
      moved = after.stage[order[i]] != before.stage[order[i]];
      if (moved) assert_true(after.stage[order[i]] < before.stage[order[i]]);
    }
    moved |= comm[1] < comm[0];
  }
  psplit_i_order_dp_fini(&dp);
  psplit_i_automaton_fini(&automaton);
  psplit_i_instance_fini(&instance);
  psplit_i_arena_fini(&arena);
  return moved;
}

static void small_moves_only_improve(void **state) {
  (void)state;
  static const unsigned features[] = {0,
                                      WITH_CLASSES | WITH_FREE_COMM,
                                      WITH_TWINS,
                                      WITH_MEMORY | WITH_STASH,
                                      WITH_OVERLAP,
                                      WITH_PINS | WITH_TOGETHER};
  static random_problem r;
  uint32_t n_moved = 0;
  for (uint64_t seed = 0; seed < 60; seed++)
    for (shape kind = 0; kind < N_SHAPES; kind++) {
      const unsigned what = features[(seed + kind) % 6];
      make_random_problem(&r, seed, kind, what & WITH_TWINS ? 12 : 24, 4, what);
      const psplit_device device = {.count = 4, .memory_bytes = 200};
      if (what & WITH_MEMORY) r.problem.devices = &device;
      n_moved += lower_one(&r, seed % 2 ? 1 : 8);
    }
  assert_true(n_moved > 100); /* of 300 */
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_of_many_is_the_answer),
    cmocka_unit_test(a_weightless_node_is_numbered_too),
    cmocka_unit_test(what_costs_no_time_may_send_more),
    cmocka_unit_test(without_time_nothing_is_claimed),
    cmocka_unit_test(the_seed_does_not_choose),
    cmocka_unit_test(small_moves_only_improve),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
