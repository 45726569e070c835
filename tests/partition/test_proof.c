/* Nothing is called proved that is not: small problems whose optimum is known by hand or by
 * enumeration, each of a kind that a bound, a tie or a device once was wrong about. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "random_problem.h"
#include "result.h"

/* Nodes, with the time of each in each class of devices, and devices. */
static psplit_problem nodes_on(uint32_t n_nodes, uint32_t n_classes, const int64_t *time,
                               uint32_t n_devices, const psplit_device *devices) {
  return (psplit_problem){.n_nodes = n_nodes,
                          .n_classes = n_classes,
                          .time_ns = time,
                          .n_devices = n_devices,
                          .devices = devices,
                          .ticks_per_unit = 1};
}

/* The tensors between them. */
typedef struct nets {
  uint32_t n;
  const uint32_t *producer, *off, *consumer;
  const int64_t *send, *recv;
} nets;

static psplit_problem with_nets(psplit_problem p, nets t) {
  p.n_nets = t.n;
  p.net_producer = t.producer;
  p.net_off = t.off;
  p.net_consumer = t.consumer;
  p.net_send_ns = t.send;
  p.net_recv_ns = t.recv;
  return p;
}

static psplit_solution *solve(const psplit_problem *p, const psplit_partition_options *options) {
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  psplit_solution *solution;
  psplit_diag diag = {0};
  if (psplit_partition_solve(p, options ? options : &o, &diag, &solution) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  return solution;
}

/* Proved, with the value that enumeration finds. */
static void is_proved(const psplit_problem *p, int64_t optimum) {
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  int64_t comm;
  assert_int_equal(best_by_enumeration(p, &o, &comm, NULL), optimum);
  psplit_solution *s = solve(p, &o);
  assert_int_equal(s->objective_ns, optimum);
  assert_int_equal(s->lower_bound_ns, optimum);
  assert_true(s->proved_optimal);
  psplit_solution_destroy(s);
}

/* Two layers and their backward twins, a stage each: a stage receives one way and sends the other
 * at once, so it takes as long as its compute, 9, not the 10 that both tensors take together. */
static void a_stage_that_overlaps_receives_while_it_sends(void **state) {
  (void)state;
  static const int64_t time[] = {3, 3, 6, 6};
  static const uint8_t flags[] = {0, 0, PSPLIT_NODE_BACKWARD, PSPLIT_NODE_BACKWARD};
  static const uint32_t layer[] = {0, 1, 1, 0};
  static const uint32_t producer[] = {0, 2}, off[] = {0, 1, 2}, consumer[] = {1, 3};
  static const int64_t ns[] = {5, 5};
  static const psplit_device device = {.count = 2};
  psplit_problem p =
    with_nets(nodes_on(4, 1, time, 1, &device), (nets){2, producer, off, consumer, ns, ns});
  p.node_flags = flags;
  p.together = layer;
  p.overlap = true;
  is_proved(&p, 9);
}

/* A root and two branches below it, the second of which splits again, forward and backward. */
static void training_with_overlap_is_cut_at_its_optimum(void **state) {
  (void)state;
  enum { B = PSPLIT_NODE_BACKWARD };
  static const int64_t time[] = {3, 1, 3, 2, 3, 6, 2, 6, 4, 6};
  static const uint8_t flags[] = {0, 0, 0, 0, 0, B, B, B, B, B};
  static const uint32_t layer[] = {PSPLIT_NONE, 1, 2, 3, 4, PSPLIT_NONE, 1, 2, 3, 4};
  static const uint32_t producer[] = {0, 1, 6, 7, 8, 9}, off[] = {0, 2, 4, 5, 6, 7, 8};
  static const uint32_t consumer[] = {1, 2, 3, 4, 5, 5, 6, 6};
  static const int64_t send[] = {6, 8, 6, 6, 8, 8}, recv[] = {10, 1, 10, 10, 1, 1};
  static const psplit_device device = {.count = 4};
  psplit_problem p =
    with_nets(nodes_on(10, 1, time, 1, &device), (nets){6, producer, off, consumer, send, recv});
  p.node_flags = flags;
  p.together = layer;
  p.overlap = true;
  is_proved(&p, 16);
}

/* A bug in a bound ends in an error whatever the build, not in a bound of 0 or in a proof. */
static void a_bound_above_the_value_is_an_internal_error(void **state) {
  (void)state;
  psplit_i_result result = {
    .bound = 101, .solver = PSPLIT_I_SOLVER_SEARCH, .bound_by = PSPLIT_I_SOLVER_EXACT};
  psplit_solution solution = {.objective_ns = 100, .lower_bound_ns = 7};
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_result_prove(&result, &solution, &diag), PSPLIT_INTERNAL);
  assert_non_null(strstr(diag.message, "101 (exact)"));
  assert_false(solution.proved_optimal);
  assert_int_equal(solution.lower_bound_ns, 7); /* untouched */
  result.bound = 100;
  assert_int_equal(psplit_i_result_prove(&result, &solution, NULL), PSPLIT_OK);
  assert_true(solution.proved_optimal);
  result.bound = 75;
  assert_int_equal(psplit_i_result_prove(&result, &solution, NULL), PSPLIT_OK);
  assert_false(solution.proved_optimal);
  assert_int_equal(solution.lower_bound_ns, 75);
  assert_true(solution.gap_frac == 0.25);
}

/* Stages 0 and 2 have work and no link; what stage 1, which has none, passes on takes its time: the
 * checker and the solvers count it alike. */
static void an_empty_stage_takes_time_to_pass_a_tensor_on(void **state) {
  (void)state;
  static const int64_t time[] = {10, 10}, send[] = {2}, recv[] = {3};
  static const uint32_t producer[] = {0}, off[] = {0, 1}, consumer[] = {1}, pin[] = {0, 2};
  static const uint32_t next_hop[] = {
    PSPLIT_NONE, 1, 1, PSPLIT_NONE, PSPLIT_NONE, 2, PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE};
  static const psplit_device device = {.count = 3};
  psplit_problem p =
    with_nets(nodes_on(2, 1, time, 1, &device), (nets){1, producer, off, consumer, send, recv});
  p.pin = pin;
  p.next_hop = next_hop;
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.objective = PSPLIT_LATENCY;
  psplit_solution *s = solve(&p, &o);
  assert_int_equal(s->objective_ns, (10 + 2) + (3 + 2) + (3 + 10));
  assert_int_equal(s->stages[1].load_ns, 5);
  assert_true(s->proved_optimal);
  psplit_solution_destroy(s);
}

/* The second device is 10^11 times slower at the second node, and nothing else may hold that: what
 * it can take of the weight is far below what doubles tell of the sum of both devices. */
static void a_device_that_is_very_slow_still_counts(void **state) {
  (void)state;
  static const int64_t time[] = {0, 8, 9, INT64_C(1000000000000)};
  static const int64_t send[] = {40, 32}, recv[] = {30, 32};
  static const uint32_t producer[] = {0}, off[] = {0, 1}, consumer[] = {1};
  static const uint32_t pin[] = {0, PSPLIT_NONE};
  static const psplit_device devices[] = {{.count = 1}, {.class_id = 1, .count = 1}};
  psplit_problem p =
    with_nets(nodes_on(2, 2, time, 2, devices), (nets){1, producer, off, consumer, send, recv});
  p.pin = pin;
  p.comm = PSPLIT_COMM_SHARED;
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.require_nonempty = true;
  psplit_solution *s = solve(&p, &o);
  assert_int_equal(s->objective_ns, INT64_C(1000000000032));
  assert_true(s->proved_optimal);
  assert_true(s->ties_proved);
  psplit_solution_destroy(s);
}

/* The devices are alike, but they are two, in an order: what is pinned to stage 1 runs on the
 * second, though the first stays empty. */
static void a_pinned_stage_keeps_its_device(void **state) {
  (void)state;
  static const int64_t time[] = {22};
  static const uint32_t pin[] = {1};
  static const psplit_device devices[] = {{.count = 1, .name = "one"}, {.count = 1, .name = "two"}};
  psplit_problem p = nodes_on(1, 1, time, 2, devices);
  p.pin = pin;
  psplit_solution *s = solve(&p, NULL);
  assert_int_equal(s->stage[0], 1);
  assert_int_equal(s->stages[0].device, 0);
  assert_int_equal(s->stages[1].device, 1);
  psplit_solution_destroy(s);
}

/* Both kinds of device can take either stage. Listed are one of the first kind, one of the second
 * and another of the first: by entry, 0 and 1 come before 0 and 2, which are of one kind. */
static void of_equal_orders_the_first_listed_is_the_answer(void **state) {
  (void)state;
  static const int64_t time[] = {10, 10, 10, 10, 10, 10};
  static const psplit_device devices[] = {{.count = 1}, {.class_id = 1, .count = 1}, {.count = 1}};
  psplit_problem p = nodes_on(3, 2, time, 3, devices);
  p.any_device_order = true;
  psplit_solution *s = solve(&p, NULL);
  assert_int_equal(s->objective_ns, 10);
  assert_true(s->ties_proved);
  for (uint32_t k = 0; k < 3; k++) assert_int_equal(s->stages[k].device, k);
  psplit_solution_destroy(s);
}

/* Copies of a stage that is pinned, or that holds activations by its number: it uses up devices,
 * but one number. Where devices are of several kinds in an order, these are not counted apart, and
 * what the exact program does not find is no proof. */
static void a_numbered_stage_may_have_copies(void **state) {
  (void)state;
  static const int64_t time[] = {68};
  static const uint32_t pin[] = {1};
  static const uint64_t bytes[] = {4};
  psplit_device devices[] = {{.count = 3}, {.count = 1, .memory_bytes = 1}};
  psplit_problem p = {.n_nodes = 1,
                      .n_classes = 1,
                      .time_ns = time,
                      .pin = pin,
                      .n_devices = 1,
                      .devices = devices,
                      .ticks_per_unit = 1};
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.max_replicas = 3;
  for (uint32_t k = 0; k < 4; k++) {
    const bool stash = k % 2;
    p.n_devices = 1 + k / 2;
    p.pin = stash ? NULL : pin;
    p.stash_1f1b = stash;
    p.activation_bytes = stash ? bytes : NULL;
    devices[0].memory_bytes = stash ? 4 * p.n_devices : 0;
    int64_t comm;
    assert_int_equal(best_by_enumeration(&p, &o, &comm, NULL), 23);
    psplit_solution *s = solve(&p, &o);
    assert_true(s->lower_bound_ns <= 23);
    assert_true(s->objective_ns == 23 || !s->proved_optimal);
    assert_true(s->proved_optimal || p.n_devices > 1);
    psplit_solution_destroy(s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_stage_that_overlaps_receives_while_it_sends),
    cmocka_unit_test(training_with_overlap_is_cut_at_its_optimum),
    cmocka_unit_test(a_bound_above_the_value_is_an_internal_error),
    cmocka_unit_test(a_numbered_stage_may_have_copies),
    cmocka_unit_test(a_pinned_stage_keeps_its_device),
    cmocka_unit_test(of_equal_orders_the_first_listed_is_the_answer),
    cmocka_unit_test(a_device_that_is_very_slow_still_counts),
    cmocka_unit_test(an_empty_stage_takes_time_to_pass_a_tensor_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
