/* Learning, asking and choosing when memory runs out: whichever allocation fails, the call says
 * NOMEM or gives what it gives otherwise, and leaks nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/partition.h>
#include <psplit/policy.h>
#include <psplit/proposer.h>
#include <stdio.h>
#include <string.h>

#include "failing.h"
#include "scratch.h"

enum { NODES = 6, STAGES = 2 };

static const int64_t TIMES[NODES] = {300, 100, 200, 500, 400, 100}, SENT[NODES] = {9, 8, 7, 6, 5};
static const uint32_t PRODUCER[NODES] = {0, 1, 2, 3, 4}, OFF[NODES] = {0, 1, 2, 3, 4, 5},
                      CONSUMER[NODES] = {1, 2, 3, 4, 5};
static const psplit_device DEVICE = {.count = STAGES, .memory_bytes = 1000};
static const uint64_t WEIGHTS[NODES] = {10, 20, 10, 0, 0, 0};
/* Forwards, and back again: a step of training. */
static const uint8_t FLAGS[NODES] = {
  0, 0, 0, PSPLIT_NODE_BACKWARD, PSPLIT_NODE_BACKWARD, PSPLIT_NODE_BACKWARD};
static const psplit_problem PROBLEM = {.n_nodes = NODES,
                                       .n_classes = 1,
                                       .time_ns = TIMES,
                                       .weight_bytes = WEIGHTS,
                                       .n_nets = NODES - 1,
                                       .net_producer = PRODUCER,
                                       .net_off = OFF,
                                       .net_consumer = CONSUMER,
                                       .net_send_ns = SENT,
                                       .net_recv_ns = SENT,
                                       .n_devices = 1,
                                       .devices = &DEVICE,
                                       .ticks_per_unit = 1};

static psplit_problem training(void) {
  psplit_problem problem = PROBLEM;
  problem.node_flags = FLAGS;
  return problem;
}

/* What came of it. */
typedef struct outcome {
  float first, last; /* parameters */
  double ratio;
  int64_t value;
  psplit_policy_choice choice, best;
} outcome;

/* Learns a step of each kind, writes and reads what it learns with. */
static psplit_code learn(psplit_policy *policy, psplit_diag *diag, outcome *out) {
  psplit_policy_learner *learner = NULL;
  psplit_policy_learn_options o;
  psplit_policy_learn_options_init(&o);
  o.warm_steps = o.steps = o.schedule_steps = 1;
  o.graphs = 2;
  o.rollouts = 2;
  o.epochs = 1;
  o.batch = 4;
  o.reward = PSPLIT_REWARD_SCHEDULE;
  o.solve_seconds = 0.001;
  bool done = false;
  double valid;
  psplit_code code = psplit_policy_learner_create(policy, &o, diag, &learner);
  const psplit_problem trains = training();
  if (code == PSPLIT_OK) code = psplit_policy_learner_add(learner, &PROBLEM, diag);
  if (code == PSPLIT_OK) code = psplit_policy_learner_add(learner, &trains, diag);
  while (code == PSPLIT_OK && !done) {
    psplit_policy_step step;
    code = psplit_policy_learner_step(learner, diag, &step, &done);
  }
  if (code == PSPLIT_OK) code = psplit_policy_learner_save(learner, "state", diag);
  if (code == PSPLIT_OK) code = psplit_policy_learner_load(learner, "state", diag);
  if (code == PSPLIT_OK) code = psplit_policy_learner_evaluate(learner, diag, &out->ratio, &valid);
  psplit_policy_learner_destroy(learner);
  return code;
}

/* Solves the problem with what the policy proposes. */
static psplit_code propose(const psplit_policy *policy, psplit_diag *diag, outcome *out) {
  psplit_proposer *proposer = NULL;
  psplit_solution *solution = NULL;
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  options.n_threads = 1;
  psplit_code code = psplit_policy_proposer_create(policy, 2, diag, &proposer);
  options.proposer = proposer;
  options.solver = "drlpp";
  if (code == PSPLIT_OK) code = psplit_partition_solve(&PROBLEM, &options, diag, &solution);
  if (code == PSPLIT_OK) out->value = solution->objective_ns;
  psplit_solution_destroy(solution);
  psplit_policy_proposer_destroy(proposer);
  return code;
}

static psplit_code choose(const psplit_policy *policy, psplit_diag *diag, outcome *out) {
  static const int64_t forward[STAGES] = {5, 7}, backward[STAGES] = {9, 14},
                       weights[STAGES] = {4, 6};
  static const uint64_t bytes[STAGES] = {10, 10}, room[STAGES] = {25, UINT64_MAX};
  const psplit_policy_batch batch = {.n_stages = STAGES,
                                     .n_samples = 4,
                                     .fixed_ns = 1,
                                     .forward_ns = forward,
                                     .backward_ns = backward,
                                     .weights_ns = weights,
                                     .activation_bytes = bytes,
                                     .room_bytes = room};
  return psplit_policy_choose(policy, &batch, diag, &out->choice, &out->best);
}

static psplit_code all(psplit_diag *diag, outcome *out) {
  psplit_policy *policy = NULL;
  memset(out, 0, sizeof *out);
  psplit_code code = psplit_policy_create(3, diag, &policy);
  if (code == PSPLIT_OK) code = learn(policy, diag, out);
  if (code == PSPLIT_OK) code = propose(policy, diag, out);
  if (code == PSPLIT_OK) code = choose(policy, diag, out);
  if (code == PSPLIT_OK) {
    out->first = psplit_policy_parameter(policy, 0);
    out->last = psplit_policy_parameter(policy, psplit_policy_n_parameters(policy) - 1);
  }
  psplit_policy_destroy(policy);
  return code;
}

static void every_allocation(void **state) {
  (void)state;
  static outcome wanted, found;
  psplit_diag diag = {0};
  if (all(&diag, &wanted) != PSPLIT_OK) fail_msg("%s", diag.message);
  bool failed = true;
  for (long nth = 0; failed; nth++) {
    diag = (psplit_diag){0};
    const long live = live_blocks();
    fail_allocation_after(nth);
    const psplit_code code = all(&diag, &found);
    failed = stop_failing();
    if (live_blocks() != live || (code != PSPLIT_OK && (code != PSPLIT_NOMEM || !failed)))
      fail_msg("allocation %ld: %s (%s), %ld blocks stay", nth, psplit_code_name(code),
               diag.message, live_blocks() - live);
    if (code == PSPLIT_OK && memcmp(&found, &wanted, sizeof found) != 0)
      fail_msg("allocation %ld: another outcome", nth);
    assert_true(failed || nth > 20);
  }
}

/* A state of learning in which a byte is another one is not gone on from. */
static void damaged(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_policy *policy;
  psplit_policy_learner *learner;
  psplit_proposer *proposer = NULL;
  static outcome found;
  assert_int_equal(psplit_policy_create(3, &diag, &policy), PSPLIT_OK);
  assert_int_equal(learn(policy, &diag, &found), PSPLIT_OK);
  assert_int_equal(psplit_policy_learner_create(policy, NULL, &diag, &learner), PSPLIT_OK);
  static const long places[] = {0, 8, 40, 4000};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    FILE *file = fopen("state", "r+");
    assert_non_null(file);
    fseek(file, places[i], SEEK_SET);
    const int was = getc(file);
    fseek(file, places[i], SEEK_SET);
    putc(was ^ 64, file);
    fclose(file);
    diag = (psplit_diag){0};
    assert_int_equal(psplit_policy_learner_load(learner, "state", &diag), PSPLIT_MALFORMED);
    assert_non_null(strstr(diag.message, "state: no state of learning, of another release"));
    file = fopen("state", "r+");
    assert_non_null(file);
    fseek(file, places[i], SEEK_SET);
    putc(was, file);
    fclose(file);
  }
  assert_int_equal(psplit_policy_learner_load(learner, "state", &diag), PSPLIT_OK);
  diag = (psplit_diag){0};
  assert_int_equal(psplit_policy_proposer_create(policy, 0, &diag, &proposer), PSPLIT_USAGE);
  assert_string_equal(diag.message, "the number of proposals must be at least 1");
  psplit_policy_learner_destroy(learner);
  psplit_policy_destroy(policy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(damaged, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(every_allocation, enter_scratch, leave_scratch)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
