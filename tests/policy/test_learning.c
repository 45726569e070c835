/* A policy learns what can be learned, the same each time; what it proposes is valid, and no plan
 * depends on more than its bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/plain_problem.h"

enum { CHAIN = 20 };

typedef struct chain {
  int64_t time[CHAIN], ns[CHAIN];
  uint32_t producer[CHAIN], off[CHAIN + 1], consumer[CHAIN];
  psplit_device device;
  psplit_problem problem;
} chain;

/* Twenty nodes whose times differ up to tenfold; 3 devices. */
static void make_chain(chain *c, uint32_t seed) {
  memset(c, 0, sizeof *c);
  uint64_t x = seed;
  for (uint32_t v = 0; v < CHAIN; v++) {
    x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    c->time[v] = 100 + (int64_t)(x >> 40) % 900;
    c->ns[v] = 20;
    c->producer[v] = v;
    c->consumer[v] = c->off[v + 1] = v + 1;
  }
  c->device = (psplit_device){.count = 3};
  c->problem =
    plain_problem(&c->device, CHAIN, c->time, CHAIN - 1, c->producer, c->off, c->consumer, c->ns);
}

static void ok(psplit_code code, const psplit_diag *diag) {
  if (code != PSPLIT_OK) fail_msg("%s: %s", psplit_code_name(code), diag->message);
}

/* As onnx-pipeline-learn --help tells them. */
static void test_defaults(void **state) {
  psplit_policy_learn_options o;
  (void)state;
  psplit_policy_learn_options_init(&o);
  assert_int_equal(o.seed, 1);
  assert_int_equal(o.warm_steps, 600);
  assert_int_equal(o.steps, 400);
  assert_int_equal(o.schedule_steps, 200);
  assert_int_equal(o.graphs, 8);
  assert_int_equal(o.rollouts, 12);
  assert_int_equal(o.epochs, 3);
  assert_int_equal(o.batch, 64);
  assert_true(o.rate == 0.001 && o.last_rate == 0.0001 && o.fixed_cost == 0.05);
  assert_true(o.solve_seconds == 1 && o.reward == PSPLIT_REWARD_MODEL);
}

static psplit_policy_learn_options from_scratch(uint64_t seed, uint32_t steps) {
  psplit_policy_learn_options o;
  psplit_policy_learn_options_init(&o);
  o.seed = seed;
  o.warm_steps = 0;
  o.steps = steps;
  o.schedule_steps = 0;
  o.graphs = 1;
  o.rollouts = 24;
  o.rate = 1.5e-3;
  o.entropy = 0.02;
  return o;
}

/* Learns the graph for at most `steps`, until the likeliest choices are the optimum. */
static uint32_t steps_to_optimum(const psplit_problem *problem, uint64_t seed, uint32_t steps) {
  psplit_diag diag = {0};
  psplit_policy *policy;
  psplit_policy_learner *learner;
  const psplit_policy_learn_options o = from_scratch(seed, steps);
  ok(psplit_policy_create(seed, &diag, &policy), &diag);
  ok(psplit_policy_learner_create(policy, &o, &diag, &learner), &diag);
  ok(psplit_policy_learner_add(learner, problem, &diag), &diag);
  double ratio = 0, valid;
  bool done = false;
  uint32_t n = 0;
  while (!done && !(ratio > 0 && ratio < 1 + 1e-9)) {
    psplit_policy_step step;
    ok(psplit_policy_learner_step(learner, &diag, &step, &done), &diag);
    n += !done;
    ok(psplit_policy_learner_evaluate(learner, &diag, &ratio, &valid), &diag);
  }
  psplit_policy_learner_destroy(learner);
  psplit_policy_destroy(policy);
  return ratio < 1 + 1e-9 ? n : UINT32_MAX;
}

/* Without any label. PSPLIT_POLICY_SEEDS=10 for all that docs/learned.md speaks of. */
static void test_chain_from_scratch(void **state) {
  (void)state;
  const char *all = getenv("PSPLIT_POLICY_SEEDS");
  const uint32_t n_seeds = all ? (uint32_t)strtoul(all, NULL, 10) : 2;
  for (uint32_t seed = 1; seed <= n_seeds; seed++) {
    static chain c;
    make_chain(&c, seed);
    const uint32_t n = steps_to_optimum(&c.problem, seed, 400);
    print_message("# seed %u: optimum after %d steps\n", seed, (int)n);
    assert_int_not_equal(n, UINT32_MAX);
  }
}

static psplit_policy *learned(const psplit_problem *problem, uint32_t steps, const char *state,
                              bool resume) {
  psplit_diag diag = {0};
  psplit_policy *policy;
  psplit_policy_learner *learner;
  psplit_policy_learn_options o = from_scratch(5, 12);
  o.warm_steps = 6;
  o.schedule_steps = 6;
  o.rollouts = 6;
  ok(psplit_policy_create(resume ? 77 : 5, &diag, &policy), &diag);
  ok(psplit_policy_learner_create(policy, &o, &diag, &learner), &diag);
  ok(psplit_policy_learner_add(learner, problem, &diag), &diag);
  if (resume) ok(psplit_policy_learner_load(learner, state, &diag), &diag);
  bool done = false;
  for (uint32_t k = 0; k < steps && !done; k++) {
    psplit_policy_step step;
    ok(psplit_policy_learner_step(learner, &diag, &step, &done), &diag);
  }
  if (state && !resume) ok(psplit_policy_learner_save(learner, state, &diag), &diag);
  psplit_policy_learner_destroy(learner);
  return policy;
}

static void assert_same(const psplit_policy *a, const psplit_policy *b, bool same) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < psplit_policy_n_parameters(a); k++)
    n += psplit_policy_parameter(a, k) != psplit_policy_parameter(b, k);
  if (same)
    assert_int_equal(n, 0);
  else
    assert_int_not_equal(n, 0);
}

/* Interrupted or not, saved and read or not, the same weights to the bit. */
static void test_same_again(void **state) {
  (void)state;
  static chain c;
  char name[] = "/tmp/psplit-policy-XXXXXX", onnx[sizeof name + 8];
  const int fd = mkstemp(name);
  psplit_diag diag = {0};
  psplit_policy *read;
  assert_true(fd >= 0);
  close(fd);
  snprintf(onnx, sizeof onnx, "%s.onnx", name);
  make_chain(&c, 3);
  psplit_policy *whole = learned(&c.problem, 100, NULL, false);
  psplit_policy *half = learned(&c.problem, 9, name, false);
  psplit_policy *rest = learned(&c.problem, 100, name, true);
  assert_same(whole, half, false);
  assert_same(whole, rest, true);
  ok(psplit_policy_write(whole, onnx, &diag), &diag);
  ok(psplit_policy_read(onnx, &diag, &read), &diag);
  assert_same(whole, read, true);
  /* Neither is the other's kind of file. */
  psplit_policy *none = NULL;
  assert_int_not_equal(psplit_policy_read(name, &diag, &none), PSPLIT_OK);
  assert_null(none);
  unlink(name);
  unlink(onnx);
  psplit_policy_destroy(whole);
  psplit_policy_destroy(half);
  psplit_policy_destroy(rest);
  psplit_policy_destroy(read);
}

/* An untrained policy is bad, but what it says is valid; more attempts are never worse, and orders
 * divided are never worse than stages. */
static void test_proposes(void **state) {
  (void)state;
  static chain c;
  psplit_diag diag = {0};
  psplit_policy *policy;
  ok(psplit_policy_create(1, &diag, &policy), &diag);
  make_chain(&c, 7);
  int64_t value[3];
  for (uint32_t k = 0; k < 3; k++) {
    psplit_proposer *proposer;
    psplit_partition_options o;
    psplit_solution *s = NULL, *again = NULL;
    ok(psplit_policy_proposer_create(policy, k == 0 ? 1 : 16, &diag, &proposer), &diag);
    psplit_partition_options_init(&o);
    o.solver = k == 2 ? "drlpp+slice" : "drlpp";
    o.proposer = proposer;
    ok(psplit_partition_solve(&c.problem, &o, &diag, &s), &diag);
    if (k < 2) assert_string_equal(s->solver, "drlpp");
    value[k] = s->objective_ns;
    o.n_threads = 2;
    ok(psplit_partition_solve(&c.problem, &o, &diag, &again), &diag);
    assert_memory_equal(s->stage, again->stage, CHAIN * sizeof *s->stage);
    psplit_solution_destroy(s);
    psplit_solution_destroy(again);
    psplit_policy_proposer_destroy(proposer);
  }
  assert_true(value[1] <= value[0]);
  assert_true(value[2] <= value[1]);
  psplit_policy_destroy(policy);
}

/* The split that was asked about last, by nodes, and how many were asked about. */
typedef struct asked {
  uint32_t stage[CHAIN], n;
} asked;

static psplit_code note_split(void *user, uint32_t problem, const psplit_items *items,
                              const uint32_t *stage, const uint32_t *type, double *out_ns,
                              psplit_diag *diag) {
  asked *a = user;
  (void)problem, (void)type, (void)diag;
  for (uint32_t v = 0; v < CHAIN; v++) a->stage[v] = stage[items->item_of_node[v]];
  a->n++;
  *out_ns = 1000;
  return PSPLIT_OK;
}

/* What was measured to be best becomes what the policy says, however bad it looks. */
static void test_imitates(void **state) {
  (void)state;
  static chain c;
  psplit_diag diag = {0};
  psplit_policy *policy;
  psplit_policy_learner *learner;
  psplit_policy_learn_options o = from_scratch(1, 1);
  psplit_policy_step step;
  asked a = {0};
  double ratio, valid;
  uint32_t n_steps;
  bool done;
  o.reward = PSPLIT_REWARD_MEASURED;
  o.measure = note_split;
  o.measure_user = &a;
  make_chain(&c, 7);
  ok(psplit_policy_create(1, &diag, &policy), &diag);
  ok(psplit_policy_learner_create(policy, &o, &diag, &learner), &diag);
  ok(psplit_policy_learner_add(learner, &c.problem, &diag), &diag);
  ok(psplit_policy_learner_step(learner, &diag, &step, &done), &diag);
  assert_int_equal(a.n, o.rollouts);
  uint32_t drawn[CHAIN];
  memcpy(drawn, a.stage, sizeof drawn);
  ok(psplit_policy_learner_evaluate(learner, &diag, &ratio, &valid), &diag);
  assert_memory_not_equal(drawn, a.stage, sizeof drawn);
  ok(psplit_policy_learner_imitate(learner, 0, drawn, CHAIN, 300, &diag, &n_steps), &diag);
  print_message("# a split is imitated after %u steps\n", n_steps);
  assert_in_range(n_steps, 1, 299);
  ok(psplit_policy_learner_evaluate(learner, &diag, &ratio, &valid), &diag);
  assert_memory_equal(drawn, a.stage, sizeof drawn);
  ok(psplit_policy_learner_imitate(learner, 0, drawn, CHAIN, 300, &diag, &n_steps), &diag);
  assert_int_equal(n_steps, 0);
  /* Which is what a user gets who asks the policy once. */
  psplit_proposer *proposer;
  psplit_partition_options solve;
  psplit_solution *solution;
  ok(psplit_policy_proposer_create(policy, 1, &diag, &proposer), &diag);
  psplit_partition_options_init(&solve);
  solve.solver = "drlpp";
  solve.proposer = proposer;
  ok(psplit_partition_solve(&c.problem, &solve, &diag, &solution), &diag);
  assert_memory_equal(drawn, solution->stage, sizeof drawn);
  psplit_solution_destroy(solution);
  psplit_policy_proposer_destroy(proposer);
  assert_int_equal(psplit_policy_learner_imitate(learner, 0, drawn, 3, 1, &diag, &n_steps),
                   PSPLIT_USAGE);
  psplit_policy_learner_destroy(learner);
  psplit_policy_destroy(policy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_defaults),           cmocka_unit_test(test_proposes),
    cmocka_unit_test(test_same_again),         cmocka_unit_test(test_imitates),
    cmocka_unit_test(test_chain_from_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
