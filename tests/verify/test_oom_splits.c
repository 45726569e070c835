/* Why: whichever allocation fails while a split is written, proved or put together, the call says
 * so, leaks nothing, leaves nothing behind, and never calls a good split bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <dirent.h>
#include <ftw.h>
#include <psplit/emit.h>
#include <psplit/merge.h>
#include <psplit/passes.h>
#include <psplit/training.h>
#include <psplit/verify.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing.h"
#include "scratch.h"
#include "text_model.h"

/* Annotations, a function, a body, a sparse weight, a node without outputs, an If to inline. */
static const char RICH[] =
  "<ir_version: 8, opset_import: [\"\": 17, \"local\": 1], metadata_props: [\"k\": \"v\"]>"
  "main (float[2,8] x, bool flag) => (float[2,8] y, float[2,8] c) @{"
  "  quantization_annotation: ["
  "    {tensor_name: \"c\", quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"s\"]}]"
  "} <float[8,8] w = random(1), float[300] big = random(4), float[1] s = {1},"
  "   float[2,8] a, float[2,8] b> {"
  "  [a] a = MatMul (x, w)"
  "  [k] k = Constant <value = float[8] \"\" = random(3)> ()"
  "  [b] b = local.Layer (a, k)"
  "  [f] f = If (flag) <then_branch = main () => (float[2,8] t) { t = Relu (b) },"
  "    else_branch = main () => (float[2,8] e) { e = Neg (b) }>"
  "  [c] c = Add (f, k)"
  "  [z] z = ReduceMax <keepdims = 0> (big)"
  "  [d] d = Mul (c, z)"
  "  [y] y = MatMul (d, w)"
  "}"
  "<domain: \"local\", opset_import: [\"\": 17]>"
  "Layer (X, W) => (Y) { M = Mul (X, W) Y = Tanh (M) }";

static const char TRAINED[] =
  "<ir_version: 8, opset_import: [\"\": 17]>"
  "main (float[4,8] x) => (float loss) <float[8,8] w1 = random(1), float[8,8] w2 = random(2)> {"
  "  [a] a = MatMul (x, w1)"
  "  [b] b = Relu (a)"
  "  [c] c = MatMul (b, w2)"
  "  [l] loss = ReduceMean <keepdims = 0> (c)"
  "}";

/* A weight of both stages, a mask, states, sizes that are asked for. */
static const char MASKED[] =
  "<ir_version: 8, opset_import: [\"\": 17]>"
  "main (float[n,8] x) => (float loss) <float[8,8] w1 = random(1), float[8] g = random(3), float[8]"
  " h = random(4), float[8] mean = {0, 0, 0, 0, 0, 0, 0, 0}, float[8] var = {1, 1, 1, 1, 1, 1, 1, "
  "1},"
  " float ratio = {0.25}, bool yes = {1}> {"
  "  [a] a = MatMul (x, w1)"
  "  [b] b, m1, v1 = BatchNormalization <training_mode = 1> (a, g, h, mean, var)"
  "  [e] e = Dropout (b, ratio, yes)"
  "  [c] c = Tanh (e)"
  "  [d] d = MatMul (c, w1)"
  "  [l] loss = ReduceMean <keepdims = 0> (d)"
  "}";

static psplit_model *model, *whole, *changed; /* `whole`: without inlined Ifs */
static psplit_planner *planned;
static psplit_training *training;
static psplit_emit_options writing;
static psplit_annotation annotation;

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
  (void)status;
  (void)kind;
  (void)place;
  return remove(path);
}

static void remove_all(const char *path) { nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

/* Of the directory, hidden ones too. */
static unsigned n_entries(void) {
  DIR *here = opendir(".");
  unsigned n = 0;
  assert_non_null(here);
  while (readdir(here)) n++;
  closedir(here);
  return n;
}

static psplit_model *opened_from(const char *path, const psplit_inline_if *inlined) {
  psplit_diag diag = {0};
  psplit_model *found = NULL;
  const psplit_read_options options = {
    .struct_size = sizeof options, .inline_ifs = inlined, .n_inline_ifs = inlined ? 1 : 0};
  if (psplit_model_open(path, &options, &diag, &found) != PSPLIT_OK) fail_msg("%s", diag.message);
  return found;
}

/* Plans `model` in two stages. */
static void plan(const char *const *pins, size_t n_pins) {
  psplit_planner_options options;
  psplit_diag diag = {0};
  psplit_planner_options_init(&options);
  options.n_stages = 2;
  options.n_threads = 1;
  options.pins = pins;
  options.n_pins = n_pins;
  psplit_code code = training ? psplit_training_plan(training, &options, NULL, &diag, &planned)
                              : psplit_planner_create(model, &options, &diag, &planned);
  if (code == PSPLIT_OK && !training) code = psplit_planner_run(planned, NULL, &diag);
  if (code != PSPLIT_OK) fail_msg("%s", diag.message);
}

static void forget(void) {
  psplit_planner_destroy(planned);
  psplit_training_destroy(training);
  psplit_model_close(model);
  psplit_model_close(changed);
  psplit_model_close(whole);
  model = whole = changed = NULL;
  planned = NULL;
  training = NULL;
}

/* The i-th allocation of `call` fails, for each i; `left` is what it makes, and is not there after
 * a failure. */
static void fail_each(const char *what, psplit_code (*call)(psplit_diag *diag), const char *left) {
  const unsigned before = n_entries();
  long i = 0;
  for (bool reached = true; reached; i++) {
    psplit_diag diag = {0};
    const long live_before = live_blocks();
    fail_allocation_after(i);
    const psplit_code code = call(&diag);
    reached = stop_failing();
    if (code != diag.code || (code != PSPLIT_OK && (code != PSPLIT_NOMEM || !reached)) ||
        live_blocks() != live_before)
      fail_msg("%s, allocation %ld: %s: %s; %ld blocks stay", what, i, psplit_code_name(code),
               diag.message, live_blocks() - live_before);
    if (left && (access(left, F_OK) == 0) != (code == PSPLIT_OK))
      fail_msg("%s, allocation %ld: %s, and \"%s\" is %s", what, i, psplit_code_name(code), left,
               code == PSPLIT_OK ? "not there" : "left behind");
    if (left && reached) remove_all(left);
    if (left && reached && strcmp(left, "merged.onnx") == 0) remove_all("merged.onnx.data");
    if (reached && n_entries() != before) fail_msg("%s, allocation %ld: leaves a file", what, i);
    assert_true(i < 100000);
  }
  assert_true(i > 5); /* the wrapping works */
}

static psplit_code emit_it(psplit_diag *diag) {
  const psplit_plan *found = psplit_planner_plan(planned);
  return training ? psplit_training_emit(training, found, "out", &writing, diag)
                  : psplit_emit(model, found, "out", &writing, diag);
}

static psplit_code annotate_it(psplit_diag *diag) {
  const psplit_emit_options replacing = {.struct_size = sizeof replacing, .replace = true};
  return psplit_emit_annotated(model, psplit_planner_plan(planned), annotation, "marked.onnx",
                               &replacing, diag);
}

static psplit_code describe_it(psplit_diag *diag) {
  static const char *const command[] = {"onnx-pipeline-run", "/split", "$(N)"};
  const psplit_triton_options triton = {.struct_size = sizeof triton};
  const psplit_mpi_job_options job = {
    .struct_size = sizeof job, .command = command, .n_command = 3};
  const psplit_plan *found = psplit_planner_plan(planned);
  char *texts[4] = {0};
  psplit_code code = psplit_manifest(model, found, &writing, diag, &texts[0]);
  if (code == PSPLIT_OK)
    code = psplit_triton_script(model, found, &writing, &triton, diag, &texts[1]);
  if (code == PSPLIT_OK) code = psplit_mpi_job(model, found, &job, diag, &texts[2]);
  for (int i = 0; i < 4; i++) free(texts[i]);
  return code;
}

static const psplit_verify_options proving = {.struct_size = sizeof proving, .n_threads = 1};

static psplit_code verify_it(psplit_diag *diag) {
  psplit_verify_report report;
  return psplit_verify("out", whole, &proving, diag, &report);
}

static void never_told(void *user, uint32_t stage, const char *difference) {
  (void)user;
  fail_msg("stage %u: %s", stage, difference);
}

static psplit_code verify_stages(psplit_diag *diag) {
  const psplit_changed_stage tell = {.tell = never_told};
  return psplit_verify_stages("out", whole, &proving, &tell, diag);
}

static psplit_code merge_it(psplit_diag *diag) {
  psplit_merge_options options;
  psplit_merge_options_init(&options);
  options.model = whole;
  options.weights = writing.weights;
  return psplit_merge("out", "merged.onnx", &options, diag, NULL);
}

static psplit_code verify_merged(psplit_diag *diag) {
  return psplit_verify_file("merged.onnx", "out", whole, &proving, diag, NULL);
}

static psplit_code verify_values(psplit_diag *diag) {
  return psplit_verify_new_values(model, changed, NULL, NULL, diag, NULL);
}

static void each_way(const char *const *pins, size_t n_pins, psplit_boundary boundary,
                     psplit_weights weights) {
  plan(pins, n_pins);
  writing = (psplit_emit_options){.struct_size = sizeof writing,
                                  .boundary = boundary,
                                  .weights = weights,
                                  .n_threads = 1,
                                  .no_sync = true};
  fail_each("emit", emit_it, "out");
  fail_each("verify", verify_it, NULL);
  if (training) return;
  fail_each("manifest, triton and job", describe_it, NULL);
  fail_each("stages", verify_stages, NULL);
  fail_each("merge", merge_it, "merged.onnx");
  fail_each("merged", verify_merged, NULL);
}

static const char *const pins[] = {"[abk]=0", "[cdy]=1"};

static void over_send_and_recv(void **state) {
  (void)state;
  write_model_text("model.onnx", RICH);
  model = opened_from("model.onnx", NULL);
  whole = opened_from("model.onnx", NULL);
  each_way(pins, 2, PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_EXTERNAL);
  for (annotation = PSPLIT_ANNOTATION_ONNX; annotation <= PSPLIT_ANNOTATION_OLIVE; annotation++) {
    fail_each("annotate", annotate_it, "marked.onnx");
    remove_all("marked.onnx");
  }
  forget();
}

static void over_inputs_and_outputs(void **state) {
  (void)state;
  const psplit_inline_if taken = {.node = "f", .then_branch = true};
  write_model_text("model.onnx", RICH);
  model = opened_from("model.onnx", &taken);
  whole = opened_from("model.onnx", NULL);
  each_way(pins, 2, PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_INLINE);
  forget();
}

static void trained(const char *text, const psplit_training_form *form, psplit_boundary boundary) {
  static const char *const all[] = {"*"}, *const inputs[] = {"x"};
  const psplit_training_options options = {
    .loss_output = "loss", .train = all, .n_train = 1, .gradient_of = inputs, .n_gradient_of = 1};
  static const char *const halves[] = {"[abe]=0", "[cdl]=1"};
  psplit_diag diag = {0};
  write_model_text("model.onnx", text);
  model = opened_from("model.onnx", NULL);
  whole = opened_from("model.onnx", NULL);
  if (psplit_training_create(model, &options, form, NULL, &diag, &training) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  each_way(halves, 2, boundary, PSPLIT_WEIGHTS_AUTO);
  forget();
}

static void of_training(void **state) {
  (void)state;
  psplit_training_form form;
  psplit_training_form_init(&form);
  form.weights = PSPLIT_WEIGHTS_INPUT;
  form.optimizer = "sgd";
  form.recompute = PSPLIT_RECOMPUTE_HEAVY;
  form.weight_gradients = PSPLIT_WEIGHT_GRADIENTS_APART;
  trained(TRAINED, &form, PSPLIT_BOUNDARY_SENDRECV);
}

static void of_masks_and_states(void **state) {
  (void)state;
  psplit_training_form form;
  psplit_training_form_init(&form);
  form.optimizer = "adam";
  form.recompute = PSPLIT_RECOMPUTE_ALL;
  trained(MASKED, &form, PSPLIT_BOUNDARY_IO);
}

static void of_new_values(void **state) {
  (void)state;
  write_model_text("model.onnx", RICH);
  char *other = strdup(RICH);
  assert_non_null(other);
  memcpy(strstr(other, "random(1)"), "random(9)", 9);
  write_model_text("other.onnx", other);
  free(other);
  model = opened_from("model.onnx", NULL);
  whole = opened_from("model.onnx", NULL);
  changed = opened_from("other.onnx", NULL);
  fail_each("new values", verify_values, NULL);
  forget();
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {TEST(over_send_and_recv), TEST(over_inputs_and_outputs),
                                     TEST(of_training), TEST(of_masks_and_states),
                                     TEST(of_new_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
