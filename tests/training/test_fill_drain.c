/* Why: a plan of fill-drain is of two maxima over stages, which the solver, the plan and the bare
 * problem each add up in their own way. Of small models every split is valued here by the
 * definition, from times of nodes and sizes of tensors alone: none is below the plan's bound, and
 * the plan's own value is what the definition says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/training.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"
#include "text_model.h"

enum { WIDTH = 32, ROWS = 64, MOST_NODES = 10, MOST_STAGES = 3 };

static const char PIPELINE[] = "infer-shapes,cost,mark,partition,replicate";

static psplit_model *model;
static psplit_training *training;
static psplit_devices *devices;
static uint32_t n_nodes;
static uint32_t reads[MOST_NODES][2], n_reads[MOST_NODES]; /* nodes; by position */
static char text[4096];
static size_t n_text;

static uint32_t draw(uint32_t *seed, uint32_t n) {
  *seed = *seed * 1664525 + 1013904223;
  return (*seed >> 8) % n;
}

static void say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  n_text += (size_t)vsnprintf(text + n_text, sizeof text - n_text, format, arguments);
  va_end(arguments);
  assert_true(n_text < sizeof text);
}

static void add(const char *op, uint32_t first, uint32_t second) {
  reads[n_nodes][0] = first;
  reads[n_nodes][1] = second;
  n_reads[n_nodes] = first == PSPLIT_NONE ? 0 : second == PSPLIT_NONE ? 1 : 2;
  char a[16], b[16];
  snprintf(a, sizeof a, first == PSPLIT_NONE ? "x" : "v%u", first);
  snprintf(b, sizeof b, second == PSPLIT_NONE ? "w%u" : "v%u",
           second == PSPLIT_NONE ? n_nodes : second);
  if (strcmp(op, "MatMul") == 0 || second != PSPLIT_NONE)
    say("  v%u = %s (%s, %s)\n", n_nodes, op, a, b);
  else
    say("  v%u = %s (%s)\n", n_nodes, op, a);
  n_nodes++;
}

/* Products, functions and sums of earlier ones; what nobody reads is added up in the end, so that
 * there is one loss. A product with a weight that is frozen takes as long back as forward, others
 * twice that. */
static void make_model(uint32_t seed) {
  static const char *const OPS[] = {"MatMul", "MatMul", "MatMul", "Tanh", "Sigmoid", "Add"};
  const uint32_t n = 5 + draw(&seed, 2);
  bool read[MOST_NODES] = {false};
  n_nodes = 0;
  n_text = 0;
  say("<ir_version: 8, opset_import: [\"\": 17]>\nmain (float[%d,%d] x) => (float loss) <", ROWS,
      WIDTH);
  for (int w = 0; w < MOST_NODES; w++)
    say("%sfloat[%d,%d] w%d = random(%d)", w ? ", " : "", WIDTH, WIDTH, w, w + 1);
  say("> {\n");
  add("MatMul", PSPLIT_NONE, PSPLIT_NONE);
  while (n_nodes < n) {
    const char *op = OPS[draw(&seed, sizeof OPS / sizeof *OPS)];
    const uint32_t a = n_nodes - 1 - draw(&seed, n_nodes > 2 ? 2 : n_nodes);
    const uint32_t b = strcmp(op, "Add") == 0 ? draw(&seed, n_nodes) : PSPLIT_NONE;
    read[a] = true;
    if (b != PSPLIT_NONE) read[b] = true;
    add(op, a, b);
  }
  uint32_t all = n - 1;
  for (uint32_t i = 0; i + 1 < n && n_nodes + 1 < MOST_NODES; i++)
    if (!read[i]) {
      add("Add", all, i);
      all = n_nodes - 1;
    }
  reads[n_nodes][0] = all;
  n_reads[n_nodes++] = 1;
  say("  loss = ReduceMean <keepdims = 0> (v%u)\n}\n", all);
}

static void open_training(void) {
  static const char *const frozen[] = {"w[1-35-7]"};
  const psplit_training_options options = {.loss_output = "loss", .freeze = frozen, .n_freeze = 1};
  psplit_training_form form;
  psplit_diag diag = {0};
  psplit_training_form_init(&form);
  form.recompute = PSPLIT_RECOMPUTE_NONE;
  form.optimizer = "sgd";
  write_model_text("model.onnx", text);
  if (psplit_model_open("model.onnx", NULL, &diag, &model) != PSPLIT_OK ||
      psplit_training_create(model, &options, &form, NULL, &diag, &training) != PSPLIT_OK)
    fail_msg("%s\n%s", diag.message, text);
}

static void forget(void) {
  psplit_training_destroy(training);
  psplit_model_close(model);
  psplit_devices_destroy(devices);
  training = NULL;
  model = NULL;
  devices = NULL;
}

static void make_devices(uint32_t n, int64_t latency_ns, double bandwidth) {
  char said[1024];
  psplit_diag diag = {0};
  size_t at = (size_t)snprintf(said, sizeof said, "{\"devices\": [");
  for (uint32_t d = 0; d < n; d++)
    at += (size_t)snprintf(said + at, sizeof said - at,
                           "%s{\"name\": \"d%u\", \"preset\": \"cpu\"}", d ? ", " : "", d);
  at += (size_t)snprintf(said + at, sizeof said - at,
                         "], \"topology\": {\"same_host\": {\"latency_ns\": %lld, "
                         "\"bytes_per_second\": %g}}}",
                         (long long)latency_ns, bandwidth);
  if (psplit_devices_parse(said, at, &diag, &devices) != PSPLIT_OK) fail_msg("%s", diag.message);
}

static psplit_planner_options options_of(uint32_t n_stages, psplit_objective objective,
                                         psplit_message_latency latency) {
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = n_stages;
  options.n_threads = 1;
  options.devices = devices;
  options.objective = objective;
  options.message_latency = latency;
  options.tied_weights = PSPLIT_TIED_DUPLICATE;
  return options;
}

static psplit_planner *plan(const psplit_planner_options *options) {
  psplit_diag diag = {0};
  psplit_planner *planner = NULL;
  if (psplit_training_plan(training, options, PIPELINE, &diag, &planner) != PSPLIT_OK)
    fail_msg("%s\n%s", diag.message, text);
  return planner;
}

typedef struct times {
  int64_t forward[MOST_NODES], backward[MOST_NODES], there_ns, back_ns, message_ns;
} times;

/* Nodes by a plan that computes alone and by one that trains; what crosses by links both ways. */
static void take_times(psplit_planner *trains, psplit_message_latency latency, times *out) {
  psplit_diag diag = {0};
  psplit_planner *alone = NULL;
  psplit_devices *both = NULL;
  psplit_planner_options options;
  int64_t all[MOST_NODES];
  psplit_planner_options_init(&options);
  options.devices = devices;
  assert_int_equal(psplit_planner_create(psplit_training_model(training), &options, &diag, &alone),
                   PSPLIT_OK);
  assert_int_equal(psplit_planner_run(alone, "infer-shapes,cost", &diag), PSPLIT_OK);
  psplit_planner_node_ns(alone, 0, out->forward);
  psplit_planner_node_ns(trains, 0, all);
  for (uint32_t n = 0; n < n_nodes; n++) out->backward[n] = all[n] - out->forward[n];
  assert_int_equal(psplit_devices_round_trip(devices, &diag, &both), PSPLIT_OK);
  const bool each = latency == PSPLIT_LATENCY_PER_TENSOR;
  const int64_t message_ns = psplit_devices_transfer_ns(both, 0, 1, 0);
  const int64_t crossing_ns = psplit_devices_transfer_ns(both, 0, 1, ROWS * WIDTH * 4);
  out->there_ns = (crossing_ns - (each ? 0 : message_ns)) / 2;
  out->back_ns = crossing_ns - (each ? 0 : message_ns) - out->there_ns;
  out->message_ns = each ? 0 : message_ns / 2; /* latencies here are even */
  psplit_devices_destroy(both);
  psplit_planner_destroy(alone);
}

/* By the definition: each tensor goes once to each stage that reads it, and comes back; it costs
 * both ends. */
static int64_t value_of(const times *t, const uint32_t *stage, uint32_t n_stages) {
  int64_t f[MOST_STAGES] = {0}, b[MOST_STAGES] = {0}, most_f = 0, most_b = 0;
  bool met[MOST_STAGES][MOST_STAGES] = {{false}};
  for (uint32_t n = 0; n < n_nodes; n++) {
    f[stage[n]] += t->forward[n];
    b[stage[n]] += t->backward[n];
    bool sent[MOST_STAGES] = {false};
    for (uint32_t r = n + 1; r < n_nodes; r++)
      for (uint32_t k = 0; k < n_reads[r]; k++) {
        const uint32_t from = stage[n], to = stage[r];
        if (reads[r][k] != n || to == from || sent[to]) continue;
        sent[to] = true;
        const int64_t first_ns = met[from][to] ? 0 : t->message_ns;
        met[from][to] = true;
        f[from] += t->there_ns + first_ns;
        f[to] += t->there_ns + first_ns;
        b[from] += t->back_ns + first_ns;
        b[to] += t->back_ns + first_ns;
      }
  }
  for (uint32_t s = 0; s < n_stages; s++) {
    if (f[s] > most_f) most_f = f[s];
    if (b[s] > most_b) most_b = b[s];
  }
  return most_f + most_b;
}

/* The least of all splits in which every stage has a node. */
static int64_t least_of_all(const times *t, uint32_t n_stages) {
  uint32_t stage[MOST_NODES] = {0};
  int64_t least = INT64_MAX;
  for (;;) {
    uint32_t used = 0;
    bool good = true;
    for (uint32_t n = 0; n < n_nodes; n++) {
      used |= UINT32_C(1) << stage[n];
      for (uint32_t k = 0; k < n_reads[n]; k++) good &= stage[reads[n][k]] <= stage[n];
    }
    if (good && used + 1 == UINT32_C(1) << n_stages) {
      const int64_t value = value_of(t, stage, n_stages);
      if (value < least) least = value;
    }
    uint32_t n = 0;
    while (n < n_nodes && ++stage[n] == n_stages) stage[n++] = 0;
    if (n == n_nodes) return least;
  }
}

/* The bare problem has the plan's value, and is solved to it by itself. */
static void check_problem(psplit_planner *planner, int64_t value_ns) {
  psplit_diag diag = {0};
  psplit_problem *problem = NULL;
  psplit_solution *solution = NULL;
  psplit_partition_options options;
  char *json = NULL;
  size_t n;
  psplit_partition_options_init(&options);
  options.objective = PSPLIT_FILL_DRAIN;
  options.require_nonempty = true;
  options.n_threads = 1;
  if (psplit_planner_problem(planner, &diag, &json, &n) != PSPLIT_OK ||
      psplit_problem_parse_json(json, n, "problem", &diag, &problem) != PSPLIT_OK ||
      psplit_partition_solve(problem, &options, &diag, &solution) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  assert_int_equal(solution->objective_ns, value_ns);
  psplit_solution_destroy(solution);
  psplit_problem_destroy(problem);
  free(json);
}

/* Tensors that cross for little, for about a node's time, and where messages count. */
static void plans_are_the_best_of_all_splits(void **state) {
  (void)state;
  static const struct {
    int64_t latency_ns;
    double bandwidth;
    psplit_message_latency latency;
  } LINKS[] = {{100, 1e11, PSPLIT_LATENCY_PER_TENSOR},
               {2000, 2e9, PSPLIT_LATENCY_PER_TENSOR},
               {0, 1e10, PSPLIT_LATENCY_PER_PAIR},
               {1000, 1e10, PSPLIT_LATENCY_PER_PAIR}};
  uint32_t n_better = 0, n_other = 0;
  for (uint32_t seed = 1; seed <= 8; seed++) {
    const size_t l = seed % (sizeof LINKS / sizeof *LINKS);
    const uint32_t n_stages = 2 + seed / 4 % 2;
    make_model(seed);
    make_devices(n_stages, LINKS[l].latency_ns, LINKS[l].bandwidth);
    open_training();
    const psplit_planner_options options =
      options_of(n_stages, PSPLIT_FILL_DRAIN, LINKS[l].latency);
    psplit_planner *planner = plan(&options);
    const psplit_plan *found = psplit_planner_plan(planner);
    times t;
    take_times(planner, LINKS[l].latency, &t);
    const int64_t least_ns = least_of_all(&t, n_stages);
    assert_string_equal(found->objective, "fill-drain");
    assert_true(psplit_plan_is_fill_drain(found));
    assert_int_equal(found->value_ns, found->fill_drain_ns);
    if (found->fill_drain_ns != value_of(&t, found->node_stage, n_stages) ||
        found->lower_bound_ns > least_ns || found->fill_drain_ns < least_ns)
      fail_msg("%lld, by the definition %lld; the best %lld, the bound %lld\n%s",
               (long long)found->fill_drain_ns,
               (long long)value_of(&t, found->node_stage, n_stages), (long long)least_ns,
               (long long)found->lower_bound_ns, text);
    if (LINKS[l].latency == PSPLIT_LATENCY_PER_TENSOR || LINKS[l].latency_ns == 0) {
      assert_int_equal(found->fill_drain_ns, least_ns);
      assert_true(found->proved_optimal);
      check_problem(planner, least_ns);
    } else {
      n_other++; /* what messages take is in the plan alone */
      assert_false(found->proved_optimal);
      assert_true(found->gap_frac > 0 && found->gap_frac < 0.6);
    }
    const psplit_planner_options in_turn =
      options_of(n_stages, PSPLIT_THROUGHPUT, LINKS[l].latency);
    psplit_planner *other = plan(&in_turn);
    assert_string_equal(psplit_planner_plan(other)->objective, "throughput");
    assert_true(psplit_planner_plan(other)->n_copies > 0 ||
                psplit_planner_plan(other)->fill_drain_ns >= least_ns);
    n_better += psplit_planner_plan(other)->fill_drain_ns > found->fill_drain_ns;
    psplit_planner_destroy(other);
    psplit_planner_destroy(planner);
    forget();
  }
  if (n_better < 2 || n_other < 2) fail_msg("%u better, %u with messages", n_better, n_other);
}

/* Each stage holds what all micro-batches of a step stash. */
static void stages_hold_the_whole_step(void **state) {
  (void)state;
  psplit_training_stage one[2], eight[2];
  psplit_diag diag = {0};
  make_model(4);
  make_devices(2, 0, 1e10);
  open_training();
  for (uint32_t m = 1; m <= 8; m += 7) {
    psplit_planner_options options = options_of(2, PSPLIT_FILL_DRAIN, PSPLIT_LATENCY_PER_PAIR);
    options.n_micro_batches = m;
    psplit_planner *planner = plan(&options);
    const psplit_plan *found = psplit_planner_plan(planner);
    assert_int_equal(psplit_training_schedule_of(found), PSPLIT_SCHEDULE_FILL_DRAIN);
    psplit_training_stage *stages = m == 1 ? one : eight;
    assert_int_equal(psplit_training_stages(training, found, &diag, stages), PSPLIT_OK);
    for (int s = 0; s < 2; s++) {
      assert_int_equal(found->stages[s].n_in_flight, m);
      assert_int_equal(found->stages[s].stash_bytes, m * stages[s].stash_bytes);
    }
    psplit_planner_destroy(planner);
  }
  for (int s = 0; s < 2; s++) assert_int_equal(one[s].stash_bytes, eight[s].stash_bytes);
  assert_true(one[0].stash_bytes + one[1].stash_bytes > 0);
  forget();
}

static void refused(const psplit_planner_options *options, bool trains, const char *says) {
  psplit_diag diag = {0};
  psplit_planner *planner = NULL;
  psplit_code code;
  if (trains) {
    code = psplit_training_plan(training, options, PIPELINE, &diag, &planner);
  } else {
    code = psplit_planner_create(model, options, &diag, &planner);
  }
  if (code != PSPLIT_UNSUPPORTED || !strstr(diag.message, says))
    fail_msg("%s: %s", psplit_code_name(code), diag.message);
}

static void what_it_does_not_know_is_refused(void **state) {
  (void)state;
  static const psplit_working_point prompt = {0, 4, 1};
  make_model(3);
  make_devices(2, 0, 1e10);
  open_training();
  psplit_planner_options options = options_of(2, PSPLIT_FILL_DRAIN, PSPLIT_LATENCY_PER_PAIR);
  refused(&options, false, "this plan does not train; use throughput for a forward pass");
  options.certify = true;
  refused(&options, true, "fill-drain cannot be combined with a certificate");
  options.certify = false;
  options.prefill = &prompt;
  refused(&options, true, "fill-drain cannot be combined with two kinds of steps");
  options.prefill = NULL;
  options.max_segments = 2;
  refused(&options, true, "training");
  options.max_segments = 0;
  options.max_replicas = 2;
  refused(&options, true, "training");
  options = options_of(2, PSPLIT_CALL_LATENCY, PSPLIT_LATENCY_PER_PAIR);
  refused(&options, true, "call latency is for partition problems, not for models");
  psplit_devices_destroy(devices);
  static const char LINKS[] =
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", \"preset\": \"cpu\"},"
    " {\"name\": \"c\", \"preset\": \"cpu\", \"host\": \"h\"}]}";
  psplit_diag diag = {0};
  assert_int_equal(psplit_devices_parse(LINKS, sizeof LINKS - 1, &diag, &devices), PSPLIT_OK);
  options = options_of(3, PSPLIT_FILL_DRAIN, PSPLIT_LATENCY_PER_PAIR);
  refused(&options, true, "the same link between all pairs of devices");
  forget();
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {
    TEST(plans_are_the_best_of_all_splits),
    TEST(stages_hold_the_whole_step),
    TEST(what_it_does_not_know_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
