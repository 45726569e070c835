/* Whichever call of ONNX Runtime fails, and whichever allocation, what runs stages says why, or
 * does without, ends, and leaves nothing behind: TAP.
 *
 *   each_failure LIBRARY DIRECTORY
 *
 * LIBRARY is failing_onnxruntime.c; splits and results are made in DIRECTORY, which is empty. */
#include <dlfcn.h>
#include <psplit/generate.h>
#include <psplit/profile.h>
#include <psplit/run_gradients.h>
#include <psplit/run_service.h>
#include <psplit/train.h>
#include <psplit/training.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing.h"
#include "failing_chains.h"
#include "text_model.h"

static psplit_onnxruntime *ort;
static void (*fail_call_after)(long nth);
static int (*stop_failing_calls)(void);
static int n_checks, n_bad;

static void check(bool good, const char *title, long nth, const psplit_diag *diag) {
  printf("%sok %d - %s\n", good ? "" : "not ", ++n_checks, title);
  if (!good) printf("# %ld: %s: %s\n", nth, psplit_code_name(diag->code), diag->message);
  n_bad += !good;
  fflush(stdout);
}

static void must(psplit_code code, const psplit_diag *diag) {
  if (code == PSPLIT_OK) return;
  printf("Bail out! %s\n", diag->message);
  exit(1);
}

/* --- splits --- */

/* Numbers, whole numbers, strings and sequences; an input that has a default. */
static const char PLAIN[] =
  "main (float[n,8] x, float[8] k) => (float[n,8] y, seq(float[?,8]) s, string[n,8] t, int64[2] z)"
  " <float[8,8] w = random(1), float[8] k = random(2), float[8,8] v = random(3)> {\n"
  "  [a] a = MatMul (x, w)\n"
  "  [b] b = Add (a, k)\n"
  "  [i] i = Shape (b)\n"
  "  [s] s = SplitToSequence <axis = 0> (b)\n"
  "  [c] c = MatMul (b, v)\n"
  "  [t] t = Cast <to = 8> (c)\n"
  "  [z] z = Neg (i)\n"
  "  [y] y = Tanh (c)\n"
  "}\n";

static const char TRAINED[] =
  "<ir_version: 8, opset_import: [\"\": 17]>\n"
  "main (float[n,8] x) => (float loss) <float[8,8] w = random(1), float[8,8] v = random(2)> {\n"
  "  [a] a = MatMul (x, w)\n"
  "  [b] b = Tanh (a)\n"
  "  [c] c = MatMul (b, v)\n"
  "  [d] d = MatMul (c, w)\n"
  "  [l] loss = ReduceMean <keepdims = 0> (d)\n"
  "}\n";

/* Sums of the tokens so far, as scores of eight tokens. */
static const char DECODER[] =
  "<ir_version: 8, opset_import: [\"\": 17]>\n"
  "main (int64[batch,length] input_ids, float[batch,past,8] \"past_key_values.0.key\")"
  " => (float[batch,length,8] logits, float[batch,total,8] \"present.0.key\")"
  " <float[8,8] w = random(1), float[8,8] v = random(2)> {\n"
  "  [a] a = Gather (w, input_ids)\n"
  "  [b] \"present.0.key\" = Concat <axis = 1> (\"past_key_values.0.key\", a)\n"
  "  [c] c = MatMul (a, v)\n"
  "  [d] d = ReduceMean <axes = [1]> (\"present.0.key\")\n"
  "  [e] logits = Add (c, d)\n"
  "}\n";

static psplit_model *open_model(const char *path, const char *text) {
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  write_model_text(path, text);
  must(psplit_model_open(path, NULL, &diag, &model), &diag);
  return model;
}

static void split(const char *path, const char *text, const char *directory,
                  const char *const *pins, bool trains) {
  psplit_diag diag = {0};
  psplit_planner *planner = NULL;
  psplit_training *training = NULL;
  psplit_planner_options planning;
  psplit_emit_options emitting;
  psplit_planner_options_init(&planning);
  psplit_emit_options_init(&emitting);
  planning.n_stages = 2;
  planning.pins = pins;
  planning.n_pins = 2;
  planning.n_threads = 1;
  emitting.no_sync = true;
  psplit_model *model = open_model(path, text);
  if (trains) {
    const psplit_training_options options = {.loss_output = "loss"};
    psplit_training_form form;
    psplit_training_form_init(&form);
    form.weights = PSPLIT_WEIGHTS_INPUT;
    form.optimizer = "momentum";
    form.recompute = PSPLIT_RECOMPUTE_HEAVY;
    must(psplit_training_create(model, &options, &form, NULL, &diag, &training), &diag);
    must(psplit_training_plan(training, &planning, NULL, &diag, &planner), &diag);
    must(psplit_training_emit(training, psplit_planner_plan(planner), directory, &emitting, &diag),
         &diag);
  } else {
    must(psplit_planner_create(model, &planning, &diag, &planner), &diag);
    must(psplit_planner_run(planner, NULL, &diag), &diag);
    must(psplit_emit(model, psplit_planner_plan(planner), directory, &emitting, &diag), &diag);
  }
  psplit_planner_destroy(planner);
  psplit_training_destroy(training);
  psplit_model_close(model);
}

static void put_array(const char *path) {
  enum { HEADER = 118 };
  char text[HEADER + 1];
  float numbers[64];
  snprintf(text, sizeof text, "%-*s", HEADER - 1,
           "{'descr': '<f4', 'fortran_order': False, 'shape': (8, 8), }");
  text[HEADER - 1] = '\n';
  for (int i = 0; i < 64; i++) numbers[i] = (float)(i % 7) / 7;
  FILE *file = fopen(path, "wb");
  const bool good = file && fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file) == 10 &&
                    fwrite(text, 1, HEADER, file) == HEADER &&
                    fwrite(numbers, sizeof numbers, 1, file) == 1;
  if (!good || fclose(file)) abort();
}

/* --- what is done --- */

static psplit_pipeline *plain, *trained, *decoder; /* opened once: reading has tests of its own */
static psplit_feed_options feed;

static psplit_pipeline *open_pipeline(const char *directory, bool trains) {
  psplit_diag diag = {0};
  psplit_pipeline *pipeline = NULL;
  psplit_pipeline_options options;
  psplit_pipeline_options_init(&options);
  options.for_training = trains;
  must(psplit_pipeline_open(directory, &options, &diag, &pipeline), &diag);
  return pipeline;
}

static psplit_run_options run_options(void) {
  psplit_run_options run;
  psplit_run_options_init(&run);
  run.feed = &feed;
  run.n_micro_batches = 2;
  run.stall_timeout_s = 30;
  return run;
}

static psplit_code finish(psplit_run *run, psplit_code code, psplit_diag *diag) {
  char *text = NULL;
  if (code == PSPLIT_OK) code = psplit_run_report_json(run, diag, &text);
  free(text);
  text = NULL;
  if (code == PSPLIT_OK) code = psplit_run_trace_json(run, diag, &text);
  free(text);
  psplit_run_destroy(run);
  return code;
}

static psplit_code run_it(psplit_diag *diag) {
  psplit_run *done = NULL;
  psplit_run_options run = run_options();
  run.output = "results";
  const psplit_code code = psplit_pipeline_run(ort, plain, &run, diag, &done);
  return finish(done, code, diag);
}

static psplit_code run_replicas(psplit_diag *diag) {
  static const uint32_t n_replicas[] = {2, 1};
  static const psplit_feed_file file = {"x", "x.npy"};
  psplit_run *done = NULL;
  psplit_feed_options files = feed;
  psplit_run_options run = run_options();
  files.files = &file;
  files.n_files = 1;
  run.feed = &files;
  run.n_replicas = n_replicas;
  run.on_error = PSPLIT_ON_ERROR_SKIP;
  const psplit_code code = psplit_pipeline_run(ort, plain, &run, diag, &done);
  return finish(done, code, diag);
}

/* Micro-batches as they come, of what the program gives. */
static psplit_code give_rows(void *user, uint32_t micro_batch, const char *input, psplit_diag *diag,
                             psplit_tensor_view *out) {
  static const int64_t dims[] = {2, 8};
  static const float numbers[16] = {1, 2, 3};
  (void)user, (void)micro_batch, (void)input, (void)diag;
  *out = (psplit_tensor_view){1, 2, dims, numbers, sizeof numbers};
  return PSPLIT_OK;
}

static psplit_code run_stream(psplit_diag *diag) {
  psplit_run *done = NULL;
  psplit_feed_options given = feed;
  psplit_run_options run = run_options();
  psplit_delivered *delivered = NULL;
  psplit_code code = psplit_delivered_create(diag, &delivered);
  if (code != PSPLIT_OK) return code;
  given.random = false;
  given.give = give_rows;
  run.feed = &given;
  run.stream = true;
  run.deadline_s = 30;
  run.delivered = delivered;
  run.output = "results";
  code = psplit_pipeline_run(ort, plain, &run, diag, &done);
  code = finish(done, code, diag);
  psplit_delivered_destroy(delivered);
  return code;
}

static psplit_code compare_it(psplit_diag *diag) {
  static const psplit_dim_value dims[] = {{"batch", 1}, {"length", 3}, {"past", 2}};
  static const psplit_feed_range range = {"input_ids", 0, 7};
  psplit_output_difference found[2];
  psplit_feed_options sizes = feed;
  psplit_run_options run = run_options();
  sizes.dims = dims;
  sizes.n_dims = 3;
  sizes.ranges = &range;
  sizes.n_ranges = 1;
  run.feed = &sizes;
  return psplit_compare_run(ort, "decoder.onnx", decoder, &run, diag, found);
}

static psplit_code open_it(psplit_diag *diag) {
  psplit_pipeline *pipeline = NULL;
  psplit_pipeline_options options;
  psplit_pipeline_options_init(&options);
  options.for_training = true;
  const psplit_code code = psplit_pipeline_open("trained", &options, diag, &pipeline);
  psplit_pipeline_close(pipeline);
  return code;
}

static psplit_code profile_it(psplit_diag *diag) {
  char *text = NULL;
  const psplit_run_options run = run_options();
  const psplit_code code = psplit_profile_model(ort, "plain.onnx", NULL, &run, diag, &text);
  free(text);
  return code;
}

static psplit_code profile_stages(psplit_diag *diag) {
  char *text = NULL;
  const psplit_run_options run = run_options();
  const psplit_code code = psplit_profile_stages(ort, plain, &run, diag, &text);
  free(text);
  return code;
}

static psplit_code probe_it(psplit_diag *diag) {
  psplit_probe probe = {0};
  psplit_model *model = NULL;
  const psplit_session session = {.provider = "CPU"};
  psplit_planner_options planning;
  psplit_planner_options_init(&planning);
  psplit_code code = psplit_model_open("plain.onnx", NULL, diag, &model);
  if (code == PSPLIT_OK)
    code = psplit_probe_provider(ort, "plain.onnx", model, &session, &planning, diag, &probe);
  psplit_probe_fini(&probe);
  psplit_model_close(model);
  return code;
}

static psplit_code submit(psplit_service *service, psplit_diag *diag, uint64_t *out_id) {
  static const int64_t dims[] = {1, 2}, tokens[] = {1, 2}, past_dims[] = {1, 1, 8};
  static const float past[8] = {1, 2, 3};
  const psplit_named_tensor inputs[] = {
    {"input_ids", {7, 2, dims, tokens, sizeof tokens}},
    {"past_key_values.0.key", {1, 3, past_dims, past, sizeof past}}};
  psplit_request request;
  psplit_request_init(&request);
  request.inputs = inputs;
  request.n_inputs = 2;
  return psplit_service_submit(service, &request, diag, out_id);
}

static psplit_code await(psplit_service *service, uint64_t id, psplit_diag *diag) {
  const psplit_response *answer = NULL;
  psplit_code code = psplit_service_wait(service, id, 30, diag, &answer);
  if (answer && answer->code != PSPLIT_OK) {
    code = diag->code = answer->code;
    snprintf(diag->message, sizeof diag->message, "%s", answer->message);
  }
  psplit_response_release(answer);
  return code;
}

/* Answers n requests that are handed in at once. */
static psplit_code serve(const psplit_service_options *own, uint32_t n, psplit_diag *diag) {
  psplit_service *service = NULL;
  psplit_run_options run = run_options();
  uint64_t ids[2] = {0};
  run.feed = NULL;
  psplit_code code = psplit_service_start(ort, decoder, &run, own, diag, &service);
  if (code != PSPLIT_OK) return code;
  for (uint32_t i = 0; i < n && code == PSPLIT_OK; i++) code = submit(service, diag, &ids[i]);
  for (uint32_t i = 0; i < n && code == PSPLIT_OK; i++) code = await(service, ids[i], diag);
  psplit_diag late = {0};
  const psplit_code ended = psplit_service_stop(service, 10, &late);
  if (code == PSPLIT_OK && ended != PSPLIT_OK) *diag = late;
  psplit_service_destroy(service);
  return code == PSPLIT_OK ? ended : code;
}

static psplit_code serve_it(psplit_diag *diag) { return serve(NULL, 1, diag); }

/* Joined, unless the first is refused. */
static psplit_code serve_two(psplit_diag *diag) {
  psplit_service_options own;
  psplit_service_options_init(&own);
  own.max_batch = 2;
  own.batch_delay_s = 0.05;
  return serve(&own, 2, diag);
}

static void end_of(void *user, const psplit_generation *generation) {
  psplit_diag *diag = user;
  diag->code = generation->code;
  if (generation->code != PSPLIT_OK)
    snprintf(diag->message, sizeof diag->message, "%s", generation->message);
}

static psplit_code generate_it(psplit_diag *diag) {
  static const int64_t tokens[] = {1, 2, 3};
  psplit_generator *generator = NULL;
  psplit_run_options run = run_options();
  psplit_prompt prompt;
  psplit_diag told = {0};
  run.feed = NULL;
  psplit_prompt_init(&prompt);
  prompt.tokens = tokens;
  prompt.n_tokens = 3;
  prompt.max_new_tokens = 2;
  prompt.end = end_of;
  prompt.user = &told;
  psplit_code code = psplit_generator_start(ort, decoder, &run, NULL, diag, &generator);
  if (code != PSPLIT_OK) return code;
  code = psplit_generator_submit(generator, &prompt, diag, NULL);
  psplit_diag late = {0};
  const psplit_code ended = psplit_generator_finish(generator, &late);
  psplit_generator_destroy(generator);
  if (code == PSPLIT_OK && told.code != PSPLIT_OK) *diag = told, code = told.code;
  if (code == PSPLIT_OK && ended != PSPLIT_OK) *diag = late, code = ended;
  return code;
}

static psplit_code train(const psplit_train_options *options, psplit_diag *diag) {
  psplit_training_run *done = NULL;
  char *text = NULL;
  psplit_code code = psplit_train(ort, trained, options, diag, &done);
  if (code == PSPLIT_OK) code = psplit_training_run_json(done, diag, &text);
  free(text);
  text = NULL;
  if (code == PSPLIT_OK) code = psplit_training_run_trace(done, diag, &text);
  free(text);
  psplit_training_run_destroy(done);
  return code;
}

static psplit_train_options train_options(void) {
  static const psplit_feed_file data = {"x", "x.npy"};
  psplit_train_options options;
  psplit_train_options_init(&options);
  options.data = options.eval_data = &data;
  options.n_data = options.n_eval_data = 1;
  options.batch = 4;
  options.n_micro_batches = 2;
  options.n_steps = 2;
  options.eval_every = 2;
  options.clip_norm = 1;
  options.stall_timeout_s = 30;
  return options;
}

static psplit_code train_it(psplit_diag *diag) {
  psplit_train_options options = train_options();
  options.checkpoint = "checkpoint";
  return train(&options, diag);
}

/* Two replicas go on from what one has left, with weights that are perturbed. */
static psplit_code train_on(psplit_diag *diag) {
  psplit_train_options options = train_options();
  options.resume = "checkpoint";
  options.n_steps = 4;
  options.n_replicas = 2;
  options.smooth_gamma = 0.01;
  options.smooth_samples = 2;
  return train(&options, diag);
}

static psplit_code check_gradients(psplit_diag *diag) {
  psplit_gradient_check_options options;
  psplit_gradient_check *found = NULL;
  psplit_model *model = NULL;
  psplit_gradient_check_options_init(&options);
  options.feed = &feed;
  options.n_directions = 1;
  psplit_code code = psplit_model_open("trained.onnx", NULL, diag, &model);
  if (code == PSPLIT_OK)
    code = psplit_check_gradients(ort, "trained", model, &options, diag, &found);
  psplit_gradient_check_destroy(found);
  psplit_model_close(model);
  return code;
}

/* --- each failure --- */

typedef psplit_code (*action)(psplit_diag *diag);

static atomic_bool calls_fail;

static bool call_fails(void) { return calls_fail && next_chain_fails(); }

static void fail_new_call(void) {
  calls_fail = true;
  fail_new_chain();
}

static bool stop_calls(void) {
  calls_fail = false;
  return stop_failing_chains();
}

/* With one failing that no run before had: of each chain of callers one. Nothing is left behind. */
static void each(const char *what, const char *title, action act, void (*begin)(void),
                 bool (*stop)(void)) {
  const char *only = getenv("EACH_FAILURE_ONLY"); /* "run allocation" */
  char text[128];
  long n_told = 0, n_survived = 0;
  snprintf(text, sizeof text, "%s %s", title, what);
  if (only && strcmp(only, text) != 0) return;
  bool reached = true, good = true;
  psplit_diag diag;
  forget_chains();
  for (long nth = 0; reached && good; nth++) {
    diag = (psplit_diag){0};
    const long n_blocks = live_blocks();
    begin();
    const psplit_code code = act(&diag);
    reached = stop();
    n_told += code != PSPLIT_OK;
    n_survived += reached && code == PSPLIT_OK;
    good = code == PSPLIT_OK ||
           (reached && *diag.message && diag.message[strlen(diag.message) - 1] != ' ');
    good &= live_blocks() == n_blocks;
    diag.code = code;
    snprintf(text, sizeof text, "%s with a failing %s: %ld told, %ld done without", title, what,
             n_told, n_survived);
    if (!good || !reached) check(good && n_told > 2, text, nth, &diag);
  }
}

/* More runs than 32 bits count are all begun: the 500th call is reached. */
static void many_runs(void) {
  psplit_diag diag = {0};
  char *text = NULL;
  psplit_run_options run = run_options();
  run.n_warmup = UINT32_MAX;
  fail_call_after(500);
  const psplit_code code = psplit_profile_model(ort, "plain.onnx", NULL, &run, &diag, &text);
  check(stop_failing_calls() && code != PSPLIT_OK, "a profile of 2^32 + 1 runs", 500, &diag);
  free(text);
}

/* What counts its micro-batches refuses to go on without end, also as a stream. */
static void endless(void) {
  psplit_diag diag = {0};
  char *text = NULL;
  psplit_output_difference found[2];
  psplit_run_options run = run_options();
  run.stream = true;
  run.n_micro_batches = PSPLIT_RUN_ENDLESS;
  check(psplit_compare_run(ort, "plain.onnx", plain, &run, &diag, found) == PSPLIT_USAGE,
        "an endless comparison", 0, &diag);
  check(psplit_profile_model(ort, "plain.onnx", NULL, &run, &diag, &text) == PSPLIT_USAGE,
        "an endless profile", 0, &diag);
  check(psplit_profile_stages(ort, plain, &run, &diag, &text) == PSPLIT_USAGE,
        "an endless profile of stages", 0, &diag);
}

int main(int argc, char **argv) {
  static const char *const plain_pins[] = {"[abis]=0", "[ctyz]=1"};
  static const char *const trained_pins[] = {"[ab]=0", "[cdl]=1"};
  static const char *const decoder_pins[] = {"[ab]=0", "[cde]=1"};
  static const struct {
    const char *title;
    action act;
    bool calls_nothing; /* of ONNX Runtime */
  } actions[] = {
    {"run", run_it, false},
    {"run replicas", run_replicas, false},
    {"run stream", run_stream, false},
    {"open", open_it, true},
    {"compare", compare_it, false},
    {"profile", profile_it, false},
    {"profile stages", profile_stages, false},
    {"probe", probe_it, false},
    {"serve", serve_it, false},
    {"serve two", serve_two, false},
    {"generate", generate_it, false},
    {"train", train_it, false},
    {"train on", train_on, false},
    {"check gradients", check_gradients, false},
  };
  psplit_diag diag = {0};
  void *library = argc == 3 && chdir(argv[2]) == 0 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  void *found[] = {library ? dlsym(library, "failing_onnxruntime_after") : NULL,
                   library ? dlsym(library, "failing_onnxruntime_stop") : NULL,
                   library ? dlsym(library, "failing_onnxruntime_asks") : NULL};
  void (*call_asks)(bool (*whether)(void)) = NULL;
  if (!found[0] || !found[1] || !found[2]) return 2;
  memcpy(&fail_call_after, &found[0], sizeof found[0]);
  memcpy(&stop_failing_calls, &found[1], sizeof found[1]);
  memcpy(&call_asks, &found[2], sizeof found[2]);
  call_asks(call_fails);
  must(psplit_onnxruntime_open(argv[1], &diag, &ort), &diag);
  split("plain.onnx", PLAIN, "plain", plain_pins, false);
  split("trained.onnx", TRAINED, "trained", trained_pins, true);
  split("decoder.onnx", DECODER, "decoder", decoder_pins, false);
  put_array("x.npy");
  plain = open_pipeline("plain", false);
  trained = open_pipeline("trained", true);
  decoder = open_pipeline("decoder", false);
  static const psplit_dim_value rows = {"n", 8};
  psplit_feed_options_init(&feed);
  feed.dims = &rows;
  feed.n_dims = 1;
  feed.random = true;
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
    if (!actions[i].calls_nothing)
      each("call", actions[i].title, actions[i].act, fail_new_call, stop_calls);
    each("allocation", actions[i].title, actions[i].act, fail_new_allocation, stop_failing);
  }
  if (!getenv("EACH_FAILURE_ONLY")) {
    many_runs();
    endless();
  }
  psplit_pipeline_close(plain);
  psplit_pipeline_close(trained);
  psplit_pipeline_close(decoder);
  psplit_onnxruntime_close(ort);
  printf("1..%d\n", n_checks);
  return n_bad != 0;
}
