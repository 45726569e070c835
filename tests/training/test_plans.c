/* Why: a plan that trains is of the memory that there is, and what is said of its stages is asked
 * of that plan alone; each allocation of these calls fails once. */
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

#include "failing.h"
#include "scratch.h"
#include "text_model.h"

/* Functions of one element each between products: what is computed again saves memory. */
static const char MODEL[] =
  "<ir_version: 8, opset_import: [\"\": 17]>\n"
  "main (float[n,64] x) => (float loss) <float[64,64] w1 = random(1), float[64,64] w2 = random(2),"
  " float[64,64] w3 = random(3)> {\n"
  "  [a] a = MatMul (x, w1)\n"
  "  [b] b = Tanh (a)\n"
  "  [c] c = Sigmoid (b)\n"
  "  [d] d = MatMul (c, w2)\n"
  "  [e] e = Tanh (d)\n"
  "  [f] f = Sigmoid (e)\n"
  "  [g] g = MatMul (f, w3)\n"
  "  [h] h = Tanh (g)\n"
  "  [l] loss = ReduceMean <keepdims = 0> (h)\n"
  "}\n";

static psplit_model *model;
static psplit_training *training;
static psplit_planner *planner;

static void open_training(psplit_weight_gradients halves, psplit_recompute recompute) {
  const psplit_training_options options = {.loss_output = "loss"};
  psplit_training_form form;
  psplit_diag diag = {0};
  psplit_training_form_init(&form);
  form.weights = PSPLIT_WEIGHTS_INPUT;
  form.optimizer = "sgd";
  form.weight_gradients = halves;
  form.recompute = recompute;
  write_model_text("model.onnx", MODEL);
  if (psplit_model_open("model.onnx", NULL, &diag, &model) != PSPLIT_OK ||
      psplit_training_create(model, &options, &form, NULL, &diag, &training) != PSPLIT_OK)
    fail_msg("%s", diag.message);
}

static void forget(void) {
  psplit_planner_destroy(planner);
  psplit_training_destroy(training);
  psplit_model_close(model);
  planner = NULL;
  training = NULL;
  model = NULL;
}

/* On two devices of so much memory; 0: any. */
static psplit_code plan(uint64_t memory_bytes, const psplit_dim_value *dims, size_t n_dims,
                        psplit_devices **out_devices, psplit_diag *diag) {
  psplit_planner_options options;
  char text[512], limit[64] = "";
  psplit_planner_options_init(&options);
  psplit_planner_destroy(planner);
  planner = NULL;
  if (memory_bytes)
    snprintf(limit, sizeof limit, ", \"memory_bytes\": %llu", (unsigned long long)memory_bytes);
  const int n = snprintf(text, sizeof text,
                         "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"%s},"
                         " {\"name\": \"b\", \"preset\": \"cpu\"%s}]}",
                         limit, limit);
  psplit_devices_destroy(*out_devices);
  *out_devices = NULL;
  psplit_code code = psplit_devices_parse(text, (size_t)n, diag, out_devices);
  options.n_stages = 2;
  options.n_threads = 1;
  options.devices = *out_devices;
  options.dims = dims;
  options.n_dims = n_dims;
  if (code == PSPLIT_OK) code = psplit_training_plan(training, &options, NULL, diag, &planner);
  return code;
}

/* The less memory, the more is computed again, and the longer it takes; then nothing fits. */
static void memory_decides_what_is_computed_again(void **state) {
  (void)state;
  static const psplit_dim_value rows = {"n", 4096};
  psplit_devices *devices = NULL;
  psplit_recompute last = PSPLIT_RECOMPUTE_NONE;
  bool met[PSPLIT_RECOMPUTE_ALL + 1] = {false}, fits = true;
  open_training(PSPLIT_WEIGHT_GRADIENTS_TOGETHER, PSPLIT_RECOMPUTE_AUTO);
  for (uint64_t bytes = 64 << 20; bytes > 1 << 18; bytes -= bytes / 16) {
    psplit_diag diag = {0};
    psplit_training_stage stages[2];
    const psplit_code code = plan(bytes, &rows, 1, &devices, &diag);
    if (code != PSPLIT_OK && code != PSPLIT_INFEASIBLE) fail_msg("%s", diag.message);
    if (code == PSPLIT_INFEASIBLE) {
      fits = false;
      continue;
    }
    const psplit_recompute now = psplit_training_recompute(training);
    assert_true(fits && now >= last);
    met[last = now] = true;
    assert_int_equal(psplit_training_stages(training, psplit_planner_plan(planner), &diag, stages),
                     PSPLIT_OK);
    assert_int_equal(stages[0].again_ns + stages[1].again_ns > 0, now != PSPLIT_RECOMPUTE_NONE);
    for (int s = 0; s < 2; s++)
      assert_true(psplit_planner_plan(planner)->stages[s].memory_bytes <= bytes);
  }
  assert_true(!fits && met[PSPLIT_RECOMPUTE_NONE] && met[PSPLIT_RECOMPUTE_ALL]);
  psplit_devices_destroy(devices);
  forget();
}

/* Where it is not AUTO, it stays. */
static void what_is_asked_for_stays(void **state) {
  (void)state;
  static const psplit_dim_value rows = {"n", 4096};
  for (psplit_recompute r = PSPLIT_RECOMPUTE_NONE; r <= PSPLIT_RECOMPUTE_ALL; r++) {
    psplit_devices *devices = NULL;
    psplit_diag diag = {0};
    open_training(PSPLIT_WEIGHT_GRADIENTS_TOGETHER, r);
    const psplit_code code = plan(1 << 22, &rows, 1, &devices, &diag);
    if (code != (r == PSPLIT_RECOMPUTE_NONE ? PSPLIT_INFEASIBLE : code)) fail_msg("it fits");
    assert_int_equal(psplit_training_recompute(training), r);
    psplit_devices_destroy(devices);
    forget();
  }
}

/* A table speaks of the forward pass; the backward pass is longer by as much. Devices are asked for
 * anew by each plan. */
static void measured_times_are_of_both_passes(void **state) {
  (void)state;
  enum { N_NODES = 9, NODE_NS = 50000000 };
  int64_t node_ns[N_NODES];
  psplit_diag diag = {0};
  psplit_cost_table *table = NULL;
  psplit_devices *devices = NULL;
  psplit_training_stage stages[2];
  double forward[3] = {0}, backward[3] = {0};
  for (int n = 0; n < N_NODES; n++) node_ns[n] = NODE_NS;
  open_training(PSPLIT_WEIGHT_GRADIENTS_TOGETHER, PSPLIT_RECOMPUTE_NONE);
  if (psplit_cost_table_of_nodes(node_ns, N_NODES, &diag, &table) != PSPLIT_OK ||
      psplit_devices_preset("cpu", 2, &diag, &devices) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  const psplit_cost_table *const costs[] = {table};
  for (int i = 0; i < 3; i++) { /* by the roofline, as measured, by the roofline */
    psplit_planner_options options;
    psplit_planner_options_init(&options);
    options.n_stages = 2;
    options.n_threads = 1;
    options.devices = i == 1 ? devices : NULL;
    options.costs = costs;
    options.n_costs = i == 1;
    psplit_planner_destroy(planner);
    planner = NULL;
    if (psplit_training_plan(training, &options, NULL, &diag, &planner) != PSPLIT_OK ||
        psplit_training_stages(training, psplit_planner_plan(planner), &diag, stages) != PSPLIT_OK)
      fail_msg("%s", diag.message);
    for (int s = 0; s < 2; s++) {
      forward[i] += (double)stages[s].forward_ns;
      backward[i] += (double)stages[s].backward_ns;
    }
  }
  char *text = NULL, line[128]; /* what is written is what is planned */
  const psplit_emit_options plainly = {.struct_size = sizeof plainly};
  if (psplit_training_manifest(training, psplit_planner_plan(planner), &plainly, &diag, &text) !=
      PSPLIT_OK)
    fail_msg("%s", diag.message);
  for (int s = 0; s < 2; s++) {
    snprintf(line, sizeof line, "\"forward_ns\": %lld,", (long long)stages[s].forward_ns);
    assert_non_null(strstr(text, line));
    snprintf(line, sizeof line, "\"backward_ns\": %lld,", (long long)stages[s].backward_ns);
    assert_non_null(strstr(text, line));
  }
  free(text);
  assert_true(forward[1] == (double)N_NODES * NODE_NS);
  const double longer = forward[1] / forward[0], as_much = backward[1] / backward[0];
  assert_true(longer > 2 && as_much > 0.99 * longer && as_much < 1.01 * longer);
  assert_true(forward[2] == forward[0] && backward[2] == backward[0]);
  psplit_cost_table_destroy(table);
  psplit_devices_destroy(devices);
  forget();
}

static psplit_schedule_kind kind;

static psplit_code ask(psplit_diag *diag) {
  int64_t forward_ns[2], backward_ns[2];
  uint64_t bytes[2];
  psplit_schedule *schedule = NULL;
  const psplit_plan *found = psplit_planner_plan(planner);
  psplit_code code = psplit_training_pieces(training, found, diag, forward_ns, backward_ns, bytes);
  if (code == PSPLIT_OK) code = psplit_training_schedule(training, found, kind, 4, diag, &schedule);
  psplit_schedule_destroy(schedule);
  return code;
}

static void every_allocation(void) {
  long i = 0;
  for (bool reached = true; reached; i++) {
    psplit_diag diag = {0};
    const long live_before = live_blocks();
    fail_allocation_after(i);
    const psplit_code code = ask(&diag);
    reached = stop_failing();
    if (code != diag.code || (reached ? code != PSPLIT_NOMEM : code != PSPLIT_OK) ||
        live_blocks() != live_before)
      fail_msg("allocation %ld: %s: %s", i, psplit_code_name(code), diag.message);
  }
  assert_true(i > 5);
}

static void stages_are_of_the_plan(void **state) {
  (void)state;
  static const psplit_schedule_kind kinds[] = {PSPLIT_SCHEDULE_FILL_DRAIN, PSPLIT_SCHEDULE_1F1B,
                                               PSPLIT_SCHEDULE_ZERO_BUBBLE};
  for (int apart = 0; apart < 2; apart++) {
    psplit_devices *devices = NULL;
    psplit_diag diag = {0};
    psplit_training_stage stages[3];
    open_training(apart ? PSPLIT_WEIGHT_GRADIENTS_APART : PSPLIT_WEIGHT_GRADIENTS_TOGETHER,
                  PSPLIT_RECOMPUTE_HEAVY);
    static const psplit_dim_value dims[] = {{"n", 64}};
    if (plan(0, dims, 1, &devices, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
    for (int k = 0; k < 3; k++) {
      kind = kinds[k];
      diag = (psplit_diag){0};
      if (kind == PSPLIT_SCHEDULE_ZERO_BUBBLE && !apart) {
        assert_int_equal(ask(&diag), PSPLIT_USAGE);
        assert_non_null(strstr(diag.message, "make all gradients in one piece"));
      } else {
        every_allocation();
      }
    }
    /* other plans */
    const psplit_plan *found = psplit_planner_plan(planner);
    psplit_plan other = *found;
    other.n_stages = 3;
    assert_int_equal(psplit_training_stages(training, &other, &diag, stages), PSPLIT_USAGE);
    other = *found;
    other.n_nodes--;
    diag = (psplit_diag){0};
    assert_int_equal(psplit_training_stages(training, &other, &diag, stages), PSPLIT_USAGE);
    assert_non_null(strstr(diag.message, "was not made by psplit_training_plan"));
    /* a node in both stages costs in both */
    psplit_training_stage before[2], after[2];
    const psplit_plan_copy again = {.node = 0, .stage = 1};
    other = *found;
    other.copies = &again;
    other.n_copies = 1;
    assert_int_equal(psplit_training_stages(training, found, &diag, before), PSPLIT_OK);
    assert_int_equal(psplit_training_stages(training, &other, &diag, after), PSPLIT_OK);
    assert_true(after[1].forward_ns > before[1].forward_ns);
    psplit_devices_destroy(devices);
    forget();
  }
}

static void wrong_forms_are_refused(void **state) {
  (void)state;
  static const psplit_training_options options = {.loss_output = "loss"};
  psplit_training_form form;
  psplit_diag diag = {0};
  psplit_training *none = NULL;
  psplit_devices *devices = NULL;
  char *text = NULL;
  open_training(PSPLIT_WEIGHT_GRADIENTS_TOGETHER, PSPLIT_RECOMPUTE_NONE);
  psplit_training_form_init(&form);
  form.weight_gradients = (psplit_weight_gradients)7;
  assert_int_equal(psplit_training_create(model, &options, &form, NULL, &diag, &none),
                   PSPLIT_USAGE);
  assert_non_null(strstr(diag.message, "no such place for gradients"));
  diag = (psplit_diag){0};
  form.weight_gradients = PSPLIT_WEIGHT_GRADIENTS_APART;
  form.optimizer = "sgdd";
  assert_int_equal(psplit_training_create(model, &options, &form, NULL, &diag, &none),
                   PSPLIT_USAGE);
  diag = (psplit_diag){0};
  if (plan(0, NULL, 0, &devices, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
  const psplit_emit_options pointing = {.struct_size = sizeof pointing,
                                        .weights = PSPLIT_WEIGHTS_REFERENCE};
  const psplit_plan *found = psplit_planner_plan(planner);
  assert_int_equal(psplit_training_manifest(training, found, &pointing, &diag, &text),
                   PSPLIT_USAGE);
  assert_non_null(strstr(diag.message, "hold their weights"));
  diag = (psplit_diag){0};
  assert_int_equal(psplit_training_emit(training, found, "out", &pointing, &diag), PSPLIT_USAGE);
  /* a dimension that the model has not */
  static const psplit_dim_value dims[] = {{"n", 64}, {"m", 2}};
  diag = (psplit_diag){0};
  assert_int_equal(plan(0, dims, 2, &devices, &diag), PSPLIT_USAGE);
  assert_non_null(strstr(diag.message, "no dimension m"));
  psplit_devices_destroy(devices);
  forget();
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {
    TEST(memory_decides_what_is_computed_again),
    TEST(what_is_asked_for_stays),
    TEST(measured_times_are_of_both_passes),
    TEST(stages_are_of_the_plan),
    TEST(wrong_forms_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
