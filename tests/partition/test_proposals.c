/* Proposers can be wrong in every way, and plans stay valid; where right, they are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/partition.h>
#include <stdio.h>
#include <string.h>

#include "../support/plain_problem.h"
#include "random_problem.h"
#include "random_proposer.h"

/* --- proposers --- */

/* The stages that `user`, of nodes, says; only for problems whose items are their nodes. */
static psplit_code told_stages(void *user, const psplit_items *items, uint64_t seed,
                               uint32_t attempt, uint32_t *out_stage, uint32_t *out_type,
                               psplit_diag *diag) {
  (void)seed, (void)attempt, (void)diag;
  for (uint32_t s = 0; s < items->n_stages; s++) out_type[s] = PSPLIT_NONE;
  memcpy(out_stage, user, items->n_items * sizeof *out_stage);
  return PSPLIT_OK;
}

static psplit_code wild_stages(void *user, const psplit_items *items, uint64_t seed,
                               uint32_t attempt, uint32_t *out_stage, uint32_t *out_type,
                               psplit_diag *diag) {
  (void)user, (void)seed, (void)attempt, (void)diag;
  for (uint32_t s = 0; s < items->n_stages; s++) out_type[s] = 77 + s;
  for (uint32_t i = 0; i < items->n_items; i++) out_stage[i] = i % 2 ? UINT32_MAX : 0;
  return PSPLIT_OK;
}

static psplit_code equal_keys(void *user, const psplit_items *items, uint64_t seed,
                              uint32_t attempt, uint32_t *out_key, psplit_diag *diag) {
  (void)user, (void)seed, (void)attempt, (void)diag;
  for (uint32_t i = 0; i < items->n_items; i++) out_key[i] = UINT32_MAX;
  return PSPLIT_OK;
}

static psplit_code no_stages(void *user, const psplit_items *items, uint64_t seed, uint32_t attempt,
                             uint32_t *out_stage, uint32_t *out_type, psplit_diag *diag) {
  (void)user, (void)items, (void)seed, (void)attempt, (void)out_stage, (void)out_type;
  snprintf(diag->message, sizeof diag->message, "this proposer is ill");
  return diag->code = PSPLIT_UNSUPPORTED;
}

/* --- */

/* A chain whose tensors cost next to nothing: no two nodes are united. */
enum { CHAIN_NODES = 9 };
static const int64_t kChainTimes[CHAIN_NODES] = {50, 10, 40, 30, 30, 60, 20, 20, 40};

static psplit_problem chain_problem(const psplit_device *device) {
  static uint32_t producer[CHAIN_NODES], off[CHAIN_NODES], consumer[CHAIN_NODES];
  static int64_t ns[CHAIN_NODES];
  for (uint32_t e = 0; e + 1 < CHAIN_NODES; e++) {
    producer[e] = e;
    consumer[e] = off[e + 1] = e + 1;
    ns[e] = 1;
  }
  return plain_problem(device, CHAIN_NODES, kChainTimes, CHAIN_NODES - 1, producer, off, consumer,
                       ns);
}

static psplit_solution *solved(const psplit_problem *p, const psplit_proposer *proposer,
                               const char *solver) {
  psplit_partition_options o;
  psplit_solution *s = NULL;
  psplit_diag diag = {0};
  psplit_partition_options_init(&o);
  o.solver = solver;
  o.proposer = proposer;
  o.n_threads = 1;
  if (psplit_partition_solve(p, &o, &diag, &s) != PSPLIT_OK) fail_msg("%s", diag.message);
  return s;
}

/* Without a proposer there is nothing to ask: not silently another solver. */
static void test_needs_a_proposer(void **state) {
  (void)state;
  const psplit_device device = {.count = 3};
  const psplit_problem p = chain_problem(&device);
  psplit_partition_options o;
  psplit_solution *s = NULL;
  psplit_diag diag = {0};
  psplit_partition_options_init(&o);
  o.solver = "drlpp";
  assert_int_equal(psplit_partition_solve(&p, &o, &diag, &s), PSPLIT_USAGE);
  assert_non_null(strstr(diag.message, "drlpp"));
  o.solver = "drlpp+slice";
  diag = (psplit_diag){0};
  assert_int_equal(psplit_partition_solve(&p, &o, &diag, &s), PSPLIT_USAGE);
  const psplit_proposer never = random_proposer(0);
  o.proposer = &never;
  assert_int_equal(psplit_partition_solve(&p, &o, &diag, &s), PSPLIT_USAGE);
}

/* The stages of the answer are those that were proposed, and the name is the solver's. */
static void test_takes_what_is_told(void **state) {
  (void)state;
  const psplit_device device = {.count = 3};
  const psplit_problem p = chain_problem(&device);
  uint32_t told[CHAIN_NODES] = {0, 0, 1, 1, 1, 2, 2, 2, 2};
  const psplit_proposer proposer = {told, 1, NULL, told_stages, equal_keys};
  psplit_solution *s = solved(&p, &proposer, "drlpp");
  assert_string_equal(s->solver, "drlpp");
  assert_memory_equal(s->stage, told, sizeof told);
  assert_int_equal(s->objective_ns, 60 + 20 + 20 + 40 + 1);
  psplit_solution_destroy(s);
  /* Its keys leave one order, and that is divided better. */
  s = solved(&p, &proposer, "drlpp+slice");
  assert_string_equal(s->solver, "drlpp+slice");
  assert_int_equal(s->objective_ns, 30 + 30 + 60 + 2); /* the optimum */
  psplit_solution_destroy(s);
}

/* Likewise where links differ between pairs of devices, some of which no split sends between. */
static void test_takes_what_is_told_over_links(void **state) {
  (void)state;
  enum { N_DEVICES = 3 };
  static const uint32_t link[] = {0, 0, 1, 0, 0, 1, 1, 1, 0};
  static int64_t link_ns[2 * (CHAIN_NODES - 1)];
  const psplit_device device[N_DEVICES] = {{.count = 1}, {.count = 1}, {.count = 1}};
  psplit_problem p = chain_problem(device);
  p.n_devices = N_DEVICES;
  p.n_link_classes = 2;
  p.device_link = link;
  p.net_link_ns = link_ns;
  for (uint32_t e = 0; e + 1 < CHAIN_NODES; e++) {
    link_ns[2 * e] = 1;
    link_ns[2 * e + 1] = 5;
  }
  uint32_t told[CHAIN_NODES] = {0, 0, 1, 1, 1, 2, 2, 2, 2};
  const psplit_proposer proposer = {told, 1, NULL, told_stages, equal_keys};
  psplit_solution *s = solved(&p, &proposer, "drlpp");
  assert_string_equal(s->solver, "drlpp");
  assert_memory_equal(s->stage, told, sizeof told);
  assert_int_equal(s->objective_ns, 60 + 20 + 20 + 40 + 5);
  psplit_solution_destroy(s);
}

static void test_wild_proposals_are_not_taken(void **state) {
  (void)state;
  const psplit_device device = {.count = 3};
  const psplit_problem p = chain_problem(&device);
  const psplit_proposer proposer = {NULL, 2, NULL, wild_stages, equal_keys};
  psplit_solution *s = solved(&p, &proposer, "drlpp");
  assert_string_equal(s->solver, "search"); /* an order divided, as with "slice" */
  psplit_solution_destroy(s);
  s = solved(&p, &proposer, "drlpp+slice");
  assert_string_equal(s->solver, "drlpp+slice");
  psplit_solution_destroy(s);
}

static void test_errors_come_through(void **state) {
  (void)state;
  const psplit_device device = {.count = 3};
  const psplit_problem p = chain_problem(&device);
  const psplit_proposer proposer = {NULL, 1, NULL, no_stages, equal_keys};
  psplit_partition_options o;
  psplit_solution *s = NULL;
  psplit_diag diag = {0};
  psplit_partition_options_init(&o);
  o.solver = "drlpp";
  o.proposer = &proposer;
  assert_int_equal(psplit_partition_solve(&p, &o, &diag, &s), PSPLIT_UNSUPPORTED);
  assert_string_equal(diag.message, "this proposer is ill");
}

/* With every feature: a plan that the checker accepts, none below the optimum, and slicing is never
 * worse than the stages alone. */
static void test_any_problem(void **state) {
  (void)state;
  const psplit_proposer proposer = random_proposer(3);
  uint32_t n_taken = 0;
  for (uint32_t seed = 0; seed < 300; seed++) {
    static random_problem r;
    const unsigned features = (unsigned)(seed * 2654435761u >> 16) &
                              ((1u << N_PROBLEM_FEATURES) - 1) & (unsigned)(seed * 40503u >> 3);
    make_random_problem(&r, seed, (shape)(seed % N_SHAPES), 8, 3, features);
    psplit_partition_options o;
    psplit_partition_options_init(&o);
    o.proposer = &proposer;
    o.n_threads = 1;
    int64_t value[2] = {0};
    for (uint32_t sliced = 0; sliced < 2; sliced++) {
      psplit_solution *s = NULL, *checked = NULL;
      psplit_diag diag = {0};
      o.solver = sliced ? "drlpp+slice" : "drlpp";
      const psplit_code code = psplit_partition_solve(&r.problem, &o, &diag, &s);
      if (code == PSPLIT_INFEASIBLE || code == PSPLIT_UNSUPPORTED) break;
      if (code != PSPLIT_OK) fail_msg("seed %u: %s", seed, diag.message);
      n_taken += strncmp(s->solver, "drlpp", 5) == 0;
      /* What was refused is no proposal's value. */
      value[sliced] = sliced || strcmp(s->solver, "drlpp") == 0 ? s->objective_ns : INT64_MAX;
      uint32_t devices[16];
      for (uint32_t k = 0; k < s->n_stages; k++) devices[k] = s->stages[k].device;
      if (psplit_partition_check(&r.problem, &o, s->stage, NULL, devices, NULL, &diag, &checked) !=
          PSPLIT_OK)
        fail_msg("seed %u: %s", seed, diag.message);
      assert_int_equal(checked->objective_ns, s->objective_ns);
      psplit_solution_destroy(checked);
      psplit_solution_destroy(s);
    }
    if (value[1] > value[0]) fail_msg("seed %u: sliced %lld", seed, (long long)value[1]);
  }
  if (n_taken < 150) fail_msg("only %u proposals were taken", n_taken);
}

/* Segments of an order stand for a graph of more than 4,096 clusters. */
static void test_large_graph(void **state) {
  (void)state;
  enum { N = 9000 };
  static uint32_t producer[N], off[N + 1], consumer[N];
  static int64_t ns[N], time[N];
  for (uint32_t v = 0; v < N; v++) {
    time[v] = 100 + v % 7;
    producer[v] = v;
    consumer[v] = off[v + 1] = v + 1;
    ns[v] = 1;
  }
  const psplit_device device = {.count = 5};
  const psplit_problem p = plain_problem(&device, N, time, N - 1, producer, off, consumer, ns);
  const psplit_proposer proposer = random_proposer(2);
  psplit_solution *s = solved(&p, &proposer, "drlpp+slice");
  assert_string_equal(s->solver, "drlpp+slice");
  assert_true(s->gap_frac < 0.01);
  psplit_solution_destroy(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_needs_a_proposer),
    cmocka_unit_test(test_takes_what_is_told),
    cmocka_unit_test(test_takes_what_is_told_over_links),
    cmocka_unit_test(test_wild_proposals_are_not_taken),
    cmocka_unit_test(test_errors_come_through),
    cmocka_unit_test(test_any_problem),
    cmocka_unit_test(test_large_graph),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
