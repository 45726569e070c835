/* Requests that segments, replicas and devices in any order cannot meet, by the line that says why;
 * and what is written of the problem. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activity.h"
#include "open.h"
#include "slack.h"
#include "small_plans.h"

static const char CHAIN[] =
  "(float[64,64] x) => (float[64,64] d) {"
  " [a] a = MatMul (x, x) [b] b = MatMul (a, a) [c] c = MatMul (b, b) [d] d = MatMul (c, c) }";
static const char DECODER[] =
  "(int64[b,s] input_ids, float[b,2,p,8] \"past_key_values.0.key\") =>"
  " (float[b,s,8] y, float[b,2,t,8] \"present.0.key\") <float[100,8] w = random(1)> {"
  " e = Gather (w, input_ids) y = Relu (e)"
  " \"present.0.key\" = Concat <axis = 2> (\"past_key_values.0.key\", \"past_key_values.0.key\") }";
static const char WEIGHTS[] =
  "(float[64,64] x) => (float[64,64] d) <float[64,64] w = random(1), float[64,64] u = random(2),"
  " float[64,64] v = random(3), float[64,64] s = random(4)> {"
  " [a] a = MatMul (x, w) [b] b = MatMul (a, u) [c] c = MatMul (b, v) [d] d = MatMul (c, s) }";
static const char CONSTANTS[] =
  "() => (float[2] y) { c = Constant <value_floats = [1.0, 2.0]> () y = Neg (c) }";

/* --- what does not go together --- */

static void with_pins(psplit_planner_options *o) {
  static const char *const pins[] = {"*=0"};
  o->pins = pins;
  o->n_pins = 1;
}

static void with_state(psplit_planner_options *o) {
  static const psplit_planner_state state = {"present.0.key", "past_key_values.0.key"};
  o->states = &state;
  o->n_states = 1;
}

static void with_prefill(psplit_planner_options *o) {
  static const psplit_working_point decode = {8, 1, 1}, prefill = {1, 8, 1};
  o->decode = &decode;
  o->prefill = &prefill;
  o->prefill_frac = 0.5;
}

static void with_training(psplit_planner_options *o) {
  static const int64_t node_ns[64];
  static const uint8_t none[64];
  static const psplit_planner_training training = {node_ns, none, none};
  o->training = &training;
}

static void with_ties(psplit_planner_options *o) { o->tied_weights = PSPLIT_TIED_TOGETHER; }

static void with_latency(psplit_planner_options *o) { o->objective = PSPLIT_LATENCY; }

static void with_certificate(psplit_planner_options *o) { o->certify = true; }

static void with_segments(psplit_planner_options *o) { o->max_segments = 2; }

static void with_any_segments(psplit_planner_options *o) { o->max_segments = UINT32_MAX; }

/* Devices and links in full; NULL: two CPUs. */
typedef struct refusal {
  const char *model, *devices;
  bool replicas; /* else segments */
  void (*with)(psplit_planner_options *options);
  const char *word;
} refusal;

static const char NO_LINK[] =
  "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", \"preset\": \"cpu\"},"
  " {\"name\": \"c\", \"preset\": \"cpu\"}],"
  " \"links\": [{\"from\": \"a\", \"to\": \"c\", \"bytes_per_second\": 0}]}";

/* Each has room for the runtime, and little more. */
static const char NARROW[] =
  "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"memory_bytes\": 1060000},"
  " {\"name\": \"b\", \"preset\": \"cpu\", \"memory_bytes\": 1060000}]}";

static void expect_refusal(const refusal *at) {
  psplit_model *model = opened_text(at->model);
  psplit_devices *devices = at->devices ? parsed(at->devices) : NULL;
  psplit_planner_options options;
  psplit_diag diag = {0};
  psplit_planner_options_init(&options);
  options.n_stages = devices && psplit_devices_count(devices) == 3 ? 3 : 2;
  options.devices = devices;
  if (at->replicas)
    options.max_replicas = 2;
  else
    options.max_segments = 2;
  if (at->with) at->with(&options);
  psplit_planner *planner = unit_of(model, &options);
  const psplit_code code =
    psplit_planner_run(planner, "infer-shapes,cost,mark,attach,partition", &diag);
  if ((code != PSPLIT_UNSUPPORTED && code != PSPLIT_INFEASIBLE) || !strstr(diag.message, at->word))
    fail_msg("\"%s\": %s %s", at->word, psplit_code_name(code), diag.message);
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

static void what_does_not_go_together_is_refused(void **state) {
  (void)state;
  static const refusal refusals[] = {
    {CHAIN, NULL, false, with_pins, "pinned to stages"},
    {DECODER, NULL, false, with_state, "stay where it is used"},
    {DECODER, NULL, false, with_prefill, "two kinds of steps"},
    {CHAIN, NULL, false, with_training, "training"},
    {CHAIN, NULL, false, with_ties, "tied weights"},
    {CHAIN, NO_LINK, false, NULL, "a link between every two devices"},
    {CHAIN, NULL, true, with_pins, "pinned to stages"},
    {DECODER, NULL, true, with_state, "one device's"},
    {DECODER, NULL, true, with_prefill, "two kinds of steps"},
    {CHAIN, NULL, true, with_training, "training"},
    {CHAIN, NULL, true, with_ties, "tied weights"},
    {CHAIN, NULL, true, with_latency, "latency"},
    {CHAIN, NULL, true, with_certificate, "certificate"},
    {CHAIN, NULL, true, with_segments, "several segments"},
    {CHAIN, NO_LINK, true, NULL, "require identical devices"},
    {CONSTANTS, NULL, true, NULL, "constants alone"},
    {WEIGHTS, NARROW, true, NULL, "\"a\" and the nodes it must stay with need"},
    {WEIGHTS, NARROW, false, NULL, "so few segments on each device was found to fit; allow more"},
    {WEIGHTS, NARROW, false, with_any_segments, "no placement was found to fit"},
  };
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) expect_refusal(&refusals[i]);
}

/* What the planner's options name, with replicas or segments: a solver, or none that there is. */
static void expect_solver(bool replicas, const char *name) {
  psplit_model *model = opened_text(
    "(float[512,512] x) => (float[512,512] d) {"
    " a = MatMul (x, x) b = MatMul (a, a) c = MatMul (b, b) d = MatMul (c, c) }");
  psplit_planner_options options;
  psplit_diag diag = {0};
  psplit_planner_options_init(&options);
  options.n_stages = 3;
  if (replicas)
    options.max_replicas = 3;
  else
    options.max_segments = 2;
  options.solver = name;
  psplit_planner *planner = unit_of(model, &options);
  const psplit_code code =
    psplit_planner_run(planner, "infer-shapes,cost,mark,attach,partition", &diag);
  const char *by = code == PSPLIT_OK ? psplit_planner_plan(planner)->solver : diag.message;
  if (strcmp(name, "nonsense") == 0)
    assert_true(code == PSPLIT_USAGE && strstr(by, "no solver \"nonsense\""));
  else
    assert_string_equal(by, name);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

static void the_solver_that_is_named_is_asked(void **state) {
  (void)state;
  expect_solver(true, "copies");
  expect_solver(true, "even");
  expect_solver(true, "nonsense");
  expect_solver(false, "even");
  expect_solver(false, "nonsense");
}

/* So many devices of two kinds: any two of them may be the best. */
static char *many_devices(uint32_t n) {
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "{\"devices\": [");
  for (uint32_t d = 0; d < n; d++)
    psplit_i_text_addf(&text, "%s{\"name\": \"d%u\", \"preset\": \"%s\"}", d ? ", " : "", d,
                       d ? "cpu" : "cpu-sse");
  psplit_i_text_puts(&text, "]}");
  return text.bytes;
}

static void segments_have_devices_enough(void **state) {
  (void)state;
  char *devices = many_devices(65);
  const refusal many = {CHAIN, devices, false, NULL, "more than 64 devices"};
  expect_refusal(&many);
  free(devices);
}

/* --- plans at the edges --- */

/* Constants alone are one segment, and nothing is counted. */
static void constants_are_one_segment(void **state) {
  (void)state;
  psplit_model *model = opened_text(CONSTANTS);
  psplit_planner_options options = options_for(1, NULL);
  options.max_segments = 2;
  psplit_planner *planner = unit_of(model, &options);
  assert_true(plan_of(planner));
  const psplit_plan *plan = psplit_planner_plan(planner);
  assert_int_equal(plan->n_stages, 1);
  assert_int_equal(plan->bottleneck_ns, 0);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

/* Nodes that are to share a stage do so, though two devices would take turns at them. */
static void segments_keep_nodes_together(void **state) {
  (void)state;
  static const char text[] =
    "(float[64,64] x) => (float[64,64] d) {"
    " [p] a = MatMul (x, x) [q] b = Softmax (a) [r] c = MatMul (b, b) [s] d = Softmax (c) }";
  psplit_model *model = opened_text(text);
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"unsupported\": {\"operators\": "
    "[\"Softmax\"]}}, {\"name\": \"b\", \"preset\": \"cpu-sse\"}],"
    " \"topology\": {\"same_host\": {\"bytes_per_second\": 1e12, \"latency_ns\": 0}}}");
  static const char *const together[] = {"[pr]"};
  uint32_t n_stages[2];
  for (int keep = 0; keep < 2; keep++) {
    psplit_planner_options options = options_for(2, devices);
    options.max_segments = UINT32_MAX;
    options.objective = PSPLIT_LATENCY;
    options.keep_together = together;
    options.n_keep_together = keep ? 1 : 0;
    psplit_planner *planner = unit_of(model, &options);
    assert_true(plan_of(planner));
    const psplit_plan *plan = psplit_planner_plan(planner);
    n_stages[keep] = plan->n_stages;
    if (keep) assert_int_equal(plan->node_stage[0], plan->node_stage[2]);
    psplit_planner_destroy(planner);
  }
  assert_int_equal(n_stages[0], 4);
  assert_true(n_stages[1] < 4);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

/* --- the problem as text --- */

typedef struct writing {
  const char *model, *devices, *pipeline;
  psplit_device_order order;
  psplit_code code;
  const char *error; /* a part of it; NULL: there is none */
  bool any_order;    /* is what the text says */
} writing;

static void problems_are_written(void **state) {
  (void)state;
  static const char alike[] =
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", \"preset\": "
    "\"cpu-sse\"}]}";
  static const char grouped[] = "infer-shapes,cost,mark,attach";
  static const writing writings[] = {
    {CHAIN, NULL, "infer-shapes", PSPLIT_DEVICE_ORDER_CHOSEN, PSPLIT_USAGE, "computed first",
     false},
    {CONSTANTS, NULL, grouped, PSPLIT_DEVICE_ORDER_CHOSEN, PSPLIT_UNSUPPORTED, "nothing to cut",
     false},
    {CHAIN, NULL, grouped, PSPLIT_DEVICE_ORDER_CHOSEN, PSPLIT_OK, NULL, false},
    {CHAIN, alike, grouped, PSPLIT_DEVICE_ORDER_CHOSEN, PSPLIT_OK, NULL, true},
    {CHAIN, alike, grouped, PSPLIT_DEVICE_ORDER_GIVEN, PSPLIT_OK, NULL, false},
    {CHAIN, NO_LINK, grouped, PSPLIT_DEVICE_ORDER_GIVEN, PSPLIT_OK, NULL, false},
  };
  for (size_t i = 0; i < sizeof writings / sizeof *writings; i++) {
    const writing *at = &writings[i];
    psplit_model *model = opened_text(at->model);
    psplit_devices *devices = at->devices ? parsed(at->devices) : NULL;
    psplit_planner_options options;
    psplit_diag diag = {0};
    char *text = NULL;
    size_t n = 0;
    psplit_planner_options_init(&options);
    options.n_stages = devices ? psplit_devices_count(devices) : 2;
    options.devices = devices;
    options.device_order = at->order;
    psplit_planner *planner = unit_of(model, &options);
    if (psplit_planner_run(planner, at->pipeline, &diag)) fail_msg("%s", diag.message);
    const psplit_code code = psplit_planner_problem(planner, &diag, &text, &n);
    if (code != at->code || (at->error && !strstr(diag.message, at->error)))
      fail_msg("%zu: %s %s", i, psplit_code_name(code), diag.message);
    if (code == PSPLIT_OK)
      assert_int_equal(strstr(text, "\"any_device_order\": true") != NULL, at->any_order);
    free(text);
    psplit_planner_destroy(planner);
    psplit_devices_destroy(devices);
    psplit_model_close(model);
  }
}

/* The plan's value on three devices of so much memory; INT64_MAX: none fits. */
static int64_t planned_ns(const psplit_model *model, uint64_t memory_bytes, uint32_t max_replicas,
                          uint32_t max_segments) {
  psplit_i_text text = {0};
  for (char name = 'a'; name < 'd'; name++)
    psplit_i_text_addf(&text, "%s{\"name\": \"%c\", \"preset\": \"cpu\", \"memory_bytes\": %llu}",
                       name == 'a' ? "{\"devices\": [" : ", ", name,
                       (unsigned long long)memory_bytes);
  psplit_i_text_puts(&text, "]}");
  psplit_devices *devices = parsed(text.bytes);
  psplit_i_text_fini(&text);
  psplit_planner_options options = options_for(3, devices);
  options.max_replicas = max_replicas;
  options.max_segments = max_segments;
  options.slack_frac = 0;
  options.time_limit_s = 0.01;
  psplit_planner *planner = unit_of(model, &options);
  const psplit_plan *plan = plan_of(planner) ? psplit_planner_plan(planner) : NULL;
  int64_t value_ns = INT64_MAX;
  if (plan) {
    value_ns = plan->bottleneck_ns;
    assert_true(plan->lower_bound_ns <= value_ns);
    for (uint32_t s = 0; s < plan->n_stages; s++)
      assert_true(plan->stages[s].memory_bytes <= memory_bytes);
  }
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  return value_ns;
}

/* Nodes that reach no output are no work for a stage, whatever memory devices have: runtimes refuse
 * a stage without outputs. */
static void dead_nodes_fill_no_stage(void **state) {
  (void)state;
  static const char three[] =
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"memory_bytes\": 1000000000},"
    " {\"name\": \"b\", \"preset\": \"cpu\", \"memory_bytes\": 1000000000},"
    " {\"name\": \"c\", \"preset\": \"cpu\", \"memory_bytes\": 1000000000}]}";
  psplit_model *model = opened_text(
    "(float[64,64] x) => (float[64,64] b) { [p] p = Exp (x) [q] q = MatMul (p, p)"
    " [a] a = MatMul (x, x) [r] r = MatMul (a, x) [b] b = MatMul (a, a) }");
  psplit_devices *devices = parsed(three);
  for (uint32_t n_stages = 2; n_stages <= 3; n_stages++) {
    const psplit_planner_options options = options_for(n_stages, devices);
    psplit_planner *planner = unit_of(model, &options);
    psplit_diag diag = {0};
    assert_int_equal(psplit_planner_run(planner, NULL, &diag),
                     n_stages == 2 ? PSPLIT_OK : PSPLIT_INFEASIBLE);
    if (n_stages == 3 && !strstr(diag.message, "only 2 groups of nodes can be distinguished"))
      fail_msg("%s", diag.message);
    psplit_planner_destroy(planner);
  }
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

/* Products of matrices one after the other, of widths that are drawn: some hold much, some hand on
 * much. */
static psplit_model *random_chain(dice *d, uint32_t n_nodes) {
  psplit_i_text nodes = {0}, weights = {0}, text = {0};
  uint32_t width = 64, n_rows = 16u << draw(d, 5);
  for (uint32_t i = 0; i < n_nodes; i++) {
    const uint32_t next = 32u << draw(d, 6);
    psplit_i_text_addf(&nodes, " v%u = MatMul (v%u, w%u)", i + 1, i, i);
    psplit_i_text_addf(&weights, "%sfloat[%u,%u] w%u = raw {0 * %u}", i ? ", " : "", width, next, i,
                       width * next);
    width = next;
  }
  psplit_i_text_addf(&text, "(float[%u,64] v0) => (float[%u,%u] v%u) <%s> {%s }", n_rows, n_rows,
                     width, n_nodes, weights.bytes, nodes.bytes);
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&nodes);
  psplit_i_text_fini(&weights);
  psplit_i_text_fini(&text);
  return model;
}

/* Devices that hold little: replicas and segments are allowed, not asked for. */
static void what_is_allowed_loses_nothing(void **state) {
  (void)state;
  uint32_t n_fit = 0, n_not = 0, n_better = 0;
  for (uint64_t seed = 0; seed < 20; seed++) {
    dice d = {.seed = seed};
    psplit_model *model = random_chain(&d, 4 + draw(&d, 5));
    for (uint64_t memory_bytes = 2000000; memory_bytes < 20000000;
         memory_bytes += memory_bytes / (3 + draw(&d, 6))) {
      const int64_t without_ns = planned_ns(model, memory_bytes, 1, 1),
                    with_ns = planned_ns(model, memory_bytes, 2, 1),
                    segments_ns = planned_ns(model, memory_bytes, 1, 2);
      if (with_ns > without_ns || segments_ns > without_ns)
        fail_msg("seed %llu, %llu bytes: %lld with replicas, %lld in segments, %lld without",
                 (unsigned long long)seed, (unsigned long long)memory_bytes, (long long)with_ns,
                 (long long)segments_ns, (long long)without_ns);
      n_fit += without_ns < INT64_MAX;
      n_not += without_ns == INT64_MAX;
      n_better += with_ns < without_ns;
    }
    psplit_model_close(model);
  }
  assert_true(n_fit > 10 && n_not > 5 && n_better > 5);
}

/* Fewer crossing tensors are no reason to cut a weight apart that has to stay together: the bound
 * of splits that do not was above such a plan. */
static void fewer_transfers_cut_no_weight(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "(float[4,64] x) => (float[4,64] v7) <float[64,64] w = random(1), float[64,64] u = random(2)> {"
    " v0 = MatMul (x, w) v1 = Softmax (v0) v2 = MatMul (v1, w) v3 = Tanh (v2)"
    " v4 = MatMul (v3, u) v5 = Tanh (v4) v6 = Add (v5, v3) v7 = Add (v6, v0) }");
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", \"preset\": \"cpu\"},"
    " {\"name\": \"c\", \"preset\": \"cpu\"}, {\"name\": \"d\", \"preset\": \"cpu\"}]}");
  for (uint32_t k = 2; k <= 4; k++)
    for (int per_tensor = 0; per_tensor < 2; per_tensor++) {
      psplit_planner_options options;
      psplit_planner_options_init(&options);
      options.n_stages = k;
      options.devices = devices;
      options.tied_weights = PSPLIT_TIED_TOGETHER;
      options.slack_frac = 1;
      options.message_latency = per_tensor ? PSPLIT_LATENCY_PER_TENSOR : PSPLIT_LATENCY_PER_PAIR;
      psplit_planner *planner = unit_of(model, &options);
      assert_true(plan_of(planner));
      assert_int_equal(planner->stage[0], planner->stage[2]);
      psplit_planner_destroy(planner);
    }
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

/* Of two tensors that so many nodes read. */
static psplit_model *star_of(unsigned n) {
  psplit_i_text text = {0}, nodes = {0};
  psplit_i_text_puts(&text, "(float[4,4] x) => (");
  for (unsigned i = 0; i < n; i++) {
    psplit_i_text_addf(&text, "%sfloat[4,4] y%u", i ? ", " : "", i);
    psplit_i_text_addf(&nodes, "y%u = Add (a, b)\n", i);
  }
  psplit_i_text_addf(&text, ") { a = Neg (x) b = Relu (x)\n%s}", nodes.bytes);
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  psplit_i_text_fini(&nodes);
  return model;
}

/* The work that looking for fewer transfers takes. */
static uint64_t slack_work(psplit_planner *planner, double limit_s) {
  const psplit_i_tied_weights ties = {0};
  psplit_diag diag = {0};
  psplit_activity *activity;
  uint64_t done, all;
  assert_int_equal(psplit_activity_create(&diag, &activity), PSPLIT_OK);
  psplit_i_activity_begin(activity, PSPLIT_ACTIVITY_WORK, 0);
  planner->options.time_limit_s = limit_s;
  planner->options.activity = activity;
  assert_int_equal(psplit_i_take_slack(planner, &ties, &diag), PSPLIT_OK);
  psplit_activity_get(activity, &done, &all);
  planner->options.activity = NULL;
  psplit_activity_destroy(activity);
  return done;
}

/* It counted no time: with any limit a star of 20,000 nodes took a second more. */
static void slack_has_a_part_of_the_time(void **state) {
  (void)state;
  psplit_model *model = star_of(2500);
  psplit_planner_options options = options_for(4, NULL);
  options.slack_frac = 0;
  options.time_limit_s = 0.01;
  options.message_latency = PSPLIT_LATENCY_PER_TENSOR;
  psplit_planner *planner = unit_of(model, &options);
  assert_true(plan_of(planner));
  planner->options.slack_frac = 1;
  assert_true(slack_work(planner, -1) > 5000000);
  assert_true(slack_work(planner, 0) < 2000000);
  assert_true(slack_work(planner, 0.2) < 4000000);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

/* More kinds of devices than the problem has: what is written can be read. */
static void a_problem_of_fewer_devices_is_read(void **state) {
  (void)state;
  psplit_model *model = opened_text(CHAIN);
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"},"
    " {\"name\": \"b\", \"preset\": \"cpu-sse\"},"
    " {\"name\": \"c\", \"preset\": \"cpu\"}]}");
  for (int latency = 0; latency < 2; latency++) {
    psplit_planner_options options;
    psplit_diag diag = {0};
    psplit_problem *problem = NULL;
    char *text = NULL;
    size_t n = 0;
    psplit_planner_options_init(&options);
    options.n_stages = 1;
    options.devices = devices;
    options.message_latency = latency ? PSPLIT_LATENCY_PER_PAIR : PSPLIT_LATENCY_PER_TENSOR;
    psplit_planner *planner = unit_of(model, &options);
    if (psplit_planner_run(planner, "infer-shapes,cost,mark,attach", &diag))
      fail_msg("%s", diag.message);
    assert_int_equal(psplit_planner_problem(planner, &diag, &text, &n), PSPLIT_OK);
    if (psplit_problem_parse_json(text, n, "written", &diag, &problem))
      fail_msg("%s", diag.message);
    assert_int_equal(problem->n_classes, 1);
    psplit_problem_destroy(problem);
    free(text);
    psplit_planner_destroy(planner);
  }
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_does_not_go_together_is_refused),
    cmocka_unit_test(the_solver_that_is_named_is_asked),
    cmocka_unit_test(segments_have_devices_enough),
    cmocka_unit_test(constants_are_one_segment),
    cmocka_unit_test(segments_keep_nodes_together),
    cmocka_unit_test(problems_are_written),
    cmocka_unit_test(a_problem_of_fewer_devices_is_read),
    cmocka_unit_test(dead_nodes_fill_no_stage),
    cmocka_unit_test(what_is_allowed_loses_nothing),
    cmocka_unit_test(fewer_transfers_cut_no_weight),
    cmocka_unit_test(slack_has_a_part_of_the_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
