/* Why: options that make no sense are told before anything is opened, and how a run ends is told by
 * what it has left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "train.h"

/* --- two stages that train, and what stands in for running them --- */

static psplit_i_trained_weight weights[] = {
  {.name = "w", .owner = 0, .n_stages = 1, .stages = (const uint32_t[]){0}}};
static psplit_i_training_parts parts[2];
static psplit_i_training_table table;
static const psplit_i_manifest_stage STAGES[] = {{.file = "s0"}, {.file = "s1"}};
static psplit_pipeline pipeline;
static const psplit_onnxruntime ORT;
static psplit_i_train_result result; /* of a run */
static psplit_i_train_setup seen;    /* what it is asked to do */
static psplit_i_session_options seen_sessions[2];
static unsigned n_runs;

static psplit_code run(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                       const psplit_i_train_setup *setup, uint32_t rank, psplit_diag *diag,
                       psplit_i_timeline *out, psplit_i_train_result *out_result) {
  (void)ort, (void)pipe, (void)rank, (void)diag, (void)out;
  n_runs++;
  seen = *setup;
  memcpy(seen_sessions, setup->sessions, sizeof seen_sessions);
  *out_result = result;
  return PSPLIT_OK;
}

/* Rank 1 makes no report, for which there would have to be a timeline. */
static psplit_code train(const psplit_train_options *options, psplit_diag *diag) {
  static const psplit_i_train_communicator comm = {run, "none", 1};
  psplit_training_run *done = NULL;
  const psplit_code code = psplit_i_train_over(&comm, &ORT, &pipeline, options, diag, &done);
  assert_null(done);
  return code;
}

static int set_up(void **state) {
  (void)state;
  table = (psplit_i_training_table){.loss_tensor = "loss",
                                    .plain_weights = true,
                                    .optimizer = "sgd",
                                    .n_weights = 1,
                                    .weights = weights,
                                    .stages = parts};
  memset(parts, 0, sizeof parts);
  weights[0].next = NULL;
  pipeline.pipe = (psplit_i_pipe){
    .directory = "d", .manifest = {.n_stages = 2, .stages = STAGES, .training = &table}};
  result = (psplit_i_train_result){0};
  n_runs = 0;
  return 0;
}

static void expect(const psplit_train_options *options, psplit_code wanted, const char *says) {
  psplit_diag diag = {0};
  const unsigned before = n_runs;
  const psplit_code code = train(options, &diag);
  if (code != wanted || strcmp(diag.message, says) != 0)
    fail_msg("%s: \"%s\" is not \"%s\"", psplit_code_name(code), diag.message, says);
  assert_int_equal(n_runs - before, wanted == PSPLIT_OK || wanted == PSPLIT_CANCELLED);
}

/* --- options --- */

static void the_defaults_run(void **state) {
  (void)state;
  psplit_train_options options;
  psplit_train_options_init(&options);
  expect(&options, PSPLIT_OK, "");
  assert_int_equal(seen.n_slots, 16);
  assert_int_equal(seen_sessions[1].optimization, 1);
  expect(NULL, PSPLIT_OK, "");
}

#define WITH(code)                  \
  do {                              \
    psplit_train_options o;         \
    psplit_train_options_init(&o);  \
    code;                           \
    expect(&o, PSPLIT_USAGE, says); \
  } while (0)

static void numbers_that_make_no_sense_are_told(void **state) {
  (void)state;
  const char *says = "training takes at least one micro-batch and a step";
  WITH(o.n_micro_batches = 0);
  WITH(o.n_epochs = 0);
  says = "8 micro-batches cannot be divided evenly among 0 replicas";
  WITH(o.n_replicas = 0);
  says = "8 micro-batches cannot be divided evenly among 3 replicas";
  WITH(o.n_replicas = 3);
  says = "smoothing takes a gamma of 0 or more, and from 1 to 1048576 samples of all micro-batches";
  WITH(o.smooth_gamma = -1);
  WITH(o.smooth_gamma = NAN);
  WITH(o.smooth_gamma = INFINITY);
  WITH(o.smooth_samples = 0);
  WITH(o.smooth_samples = (1 << 17) + 1);
  says = "learning rates and norms must be 0 or more";
  WITH(o.learning_rate = -1);
  WITH(o.learning_rate = INFINITY);
  WITH(o.last_learning_rate = NAN);
  WITH(o.last_learning_rate = INFINITY);
  WITH(o.clip_norm = -1);
  says = "a timeout must be above 0 s, and a message between 1 and 2^30 bytes";
  WITH(o.timeout_s = 0);
  WITH(o.stall_timeout_s = -1);
  WITH(o.chunk_bytes = 0);
  WITH(o.chunk_bytes = ((uint64_t)1 << 30) + 1);
}

static void ways_that_there_are_not_are_told(void **state) {
  (void)state;
  static const psplit_session sessions[3];
  const char *says = "no such schedule for training";
  WITH(o.schedule = PSPLIT_SCHEDULE_STREAM);
  WITH(o.schedule = PSPLIT_SCHEDULE_ZERO_BUBBLE + 1);
  says = "the interleaved schedule needs two or more stages per device, the others one";
  WITH(o.schedule = PSPLIT_SCHEDULE_INTERLEAVED);
  WITH(o.n_chunks = 2);
  says = "3 sessions are given for 2 stages";
  WITH((o.sessions = sessions, o.n_sessions = 3));
  says = "no such learning rate, or way with NaN";
  WITH(o.rate = PSPLIT_RATE_COSINE + 1);
  WITH(o.on_nan = PSPLIT_ON_NAN_SKIP + 1);
  says = "2 stages cannot be given to devices 0 to each: their number has to be a multiple of it";
  WITH(o.n_chunks = 0);
  says = "2 stages cannot be given to devices 3 to each: their number has to be a multiple of it";
  WITH((o.schedule = PSPLIT_SCHEDULE_INTERLEAVED, o.n_chunks = 3));
}

static void sessions_are_those_of_their_stages(void **state) {
  (void)state;
  psplit_session sessions[2];
  psplit_train_options options;
  for (uint32_t i = 0; i < 2; i++)
    sessions[i] = (psplit_session){.n_threads = 2 + i, .optimization = -1};
  sessions[1].optimization = 0;
  psplit_train_options_init(&options);
  options.sessions = sessions;
  options.n_sessions = 2;
  expect(&options, PSPLIT_OK, "");
  assert_true(seen_sessions[0].n_threads == 2 && seen_sessions[1].n_threads == 3);
  assert_true(seen_sessions[0].optimization == 1 && seen_sessions[1].optimization == 0);
  options.n_sessions = 1;
  expect(&options, PSPLIT_OK, "");
  assert_true(seen_sessions[1].n_threads == 2 && seen_sessions[1].optimization == 1);
}

/* --- the split --- */

static void splits_that_do_not_train_are_told(void **state) {
  (void)state;
  psplit_train_options options;
  psplit_train_options_init(&options);
  table.plain_weights = false;
  expect(&options, PSPLIT_UNSUPPORTED, "the stages of d hold the initial values of their weights");
  table.plain_weights = true;
  table.optimizer = NULL;
  expect(&options, PSPLIT_UNSUPPORTED,
         "the stages of d have no updates: they were made without an optimizer");
  pipeline.pipe.manifest.training = NULL;
  expect(&options, PSPLIT_UNSUPPORTED, "the stages of d were not made for training");
}

static void states_have_one_order(void **state) {
  (void)state;
  psplit_train_options options;
  psplit_train_options_init(&options);
  weights[0].next = "w_next";
  expect(&options, PSPLIT_OK, "");
  options.smooth_samples = 2;
  expect(&options, PSPLIT_UNSUPPORTED,
         "w passes from one micro-batch to the next, and smoothing would fill it from "
         "perturbed weights");
  options.smooth_samples = 1;
  options.smooth_gamma = 0.1;
  expect(&options, PSPLIT_UNSUPPORTED,
         "w passes from one micro-batch to the next, and smoothing would fill it from "
         "perturbed weights");
  options.n_replicas = 2;
  expect(&options, PSPLIT_UNSUPPORTED,
         "w goes from one micro-batch to the next, which replicas do not have in their order");
}

static void zero_bubble_takes_files_of_its_own(void **state) {
  (void)state;
  psplit_train_options options;
  psplit_train_options_init(&options);
  options.schedule = PSPLIT_SCHEDULE_ZERO_BUBBLE;
  expect(&options, PSPLIT_UNSUPPORTED,
         "the backward files in d compute gradients of inputs and of weights together, which the "
         "zero-bubble schedule runs separately");
  parts[1].weight_gradients.file = "g1";
  expect(&options, PSPLIT_OK, "");
  assert_int_equal(seen.n_slots, 24);
}

/* --- ends --- */

static void an_interrupted_run_says_what_it_has_left(void **state) {
  (void)state;
  psplit_train_options options;
  psplit_train_options_init(&options);
  result = (psplit_i_train_result){.first_step = 5, .interrupted = true};
  expect(&options, PSPLIT_CANCELLED, "interrupted before a step had ended");
  result.n_steps = 2;
  expect(&options, PSPLIT_CANCELLED, "interrupted after step 7");
  options.checkpoint = "c";
  expect(&options, PSPLIT_CANCELLED, "interrupted after step 7, which is in c");
  static const int cancelled = 1;
  psplit_diag diag = {0};
  options.cancel = &cancelled;
  n_runs = 0;
  assert_int_equal(train(&options, &diag), PSPLIT_CANCELLED);
  assert_int_equal(n_runs, 0);
}

static void no_memory_is_told(void **state) {
  (void)state;
  const long before = live_blocks();
  long n_told = 0;
  for (bool failed = true; failed; n_told += failed) {
    psplit_diag diag = {0};
    fail_new_allocation();
    const psplit_code code = train(NULL, &diag);
    failed = stop_failing();
    assert_int_equal(code, failed ? PSPLIT_NOMEM : PSPLIT_OK);
    assert_int_equal(live_blocks(), before);
  }
  assert_true(n_told > 5);
}

#define HERE(test) cmocka_unit_test_setup(test, set_up)

int main(void) {
  const struct CMUnitTest tests[] = {
    HERE(the_defaults_run),
    HERE(numbers_that_make_no_sense_are_told),
    HERE(ways_that_there_are_not_are_told),
    HERE(sessions_are_those_of_their_stages),
    HERE(splits_that_do_not_train_are_told),
    HERE(states_have_one_order),
    HERE(zero_bubble_takes_files_of_its_own),
    HERE(an_interrupted_run_says_what_it_has_left),
    HERE(no_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
