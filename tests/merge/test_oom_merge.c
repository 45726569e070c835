/* Why: whichever allocation fails, merging says so, leaks nothing and leaves nothing behind. Stages
 * that other tools rewrote need all of it: names that clash, inside bodies too, annotations, a node
 * and a weight that stand in both, functions, data outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <psplit/emit.h>
#include <psplit/merge.h>

#include "../support/hand_plan.h"
#include "failing.h"
#include "graph.h"
#include "scratch.h"
#include "text_model.h"

static const char MODEL[] =
  "(float[300] x) => (float[300] y, float[300] z) <float[300] w = random(1)> {"
  "  a = Add (x, w)"
  "  b = Relu (a)"
  "  y = Add (b, w)"
  "  z = Sub (b, w)"
  "}";

#define HEAD "<ir_version: 10, opset_import: [\"\": 18, \"local\": 1]>\n"
#define FUNCTION                                                 \
  "<domain: \"local\", opset_import: [\"\": 18]> F (v) => (o) {" \
  "  t = Constant <value = float[300] = random(2)> () o = Mul (v, t) }"

static const char *const STAGES[2] = {
  HEAD
  "(float[300] x) => (float[300] a) @{quantization_annotation: [{tensor_name: \"k\","
  " quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"s\"]}]}"
  " <float[300] w = random(1), float s = {1}, float[300] k> {"
  " k = local.F (x) h = Mul (k, s) a = Add (h, w) }\n" FUNCTION,
  HEAD
  "(float[300] a) => (float[300] y, float[300] z) @{quantization_annotation: [{tensor_name:"
  " \"k\", quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"s\"]}], sparse_initializer:"
  " [{values: float[1] p {1}, indices: int64[1] {2}, dims: [300]}]}"
  " <float[300] w = random(1), float s = {2}, float[300] k, bool c = {1}> {"
  " k = local.F (a) h = Mul (k, s)"
  " y = If <then_branch = q () => (t) { t = Add (h, w) }, else_branch = r () => (u)"
  " { u = Neg (k) }> (c) z = Sub (h, p) }\n" FUNCTION};

static void emit(const psplit_model *model) {
  const uint32_t node_stage[] = {0, 1, 1, 1};
  const psplit_plan_stage stages[] = {{.device = "d", .n_nodes = 1}, {.device = "d", .n_nodes = 3}};
  const uint32_t value = psplit_i_graph_find_value(psplit_i_model_graph(model), "a");
  const psplit_plan_transfer transfers[] = {{.value = value, .tensor = "a", .from = 0, .to = 1}};
  const psplit_plan plan = hand_plan(4, node_stage, 2, stages, 1, transfers);
  psplit_emit_options options;
  psplit_emit_options_init(&options);
  options.boundary = PSPLIT_BOUNDARY_IO;
  psplit_diag diag = {0};
  if (psplit_emit(model, &plan, "s", &options, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
}

/* Merges "s" with each allocation failing in turn. */
static void fail_each(const psplit_model *model, psplit_weights weights) {
  psplit_merge_options options;
  psplit_merge_options_init(&options);
  options.weights = weights;
  options.model = model;
  psplit_code code = PSPLIT_NOMEM;
  for (long nth = 0; code != PSPLIT_OK; nth++) {
    psplit_diag diag = {0};
    psplit_merge_report report;
    const long live_before = live_blocks();
    fail_allocation_after(nth);
    code = psplit_merge("s", "merged.onnx", &options, &diag, &report);
    stop_failing();
    assert_int_equal(live_blocks(), live_before);
    if (code != PSPLIT_OK && code != PSPLIT_NOMEM)
      fail_msg("allocation %ld: %s: %s", nth, psplit_code_name(code), diag.message);
    struct stat status;
    assert_int_equal(stat("merged.onnx", &status) == 0, code == PSPLIT_OK);
    assert_true(nth < 100000);
  }
  assert_int_equal(
    system("test \"$(ls -A | tr -d '\\n')\" = merged.onnxmodel.onnxs || "
           "test \"$(ls -A | tr -d '\\n')\" = merged.onnxmerged.onnx.datamodel.onnxs"),
    0);
  remove("merged.onnx");
  remove("merged.onnx.data");
}

static void every_allocation(void **state) {
  (void)state;
  write_model_text("model.onnx", MODEL);
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  assert_int_equal(psplit_model_open("model.onnx", NULL, &diag, &model), PSPLIT_OK);
  emit(model);
  fail_each(model, PSPLIT_WEIGHTS_INLINE);
  for (int s = 0; s < 2; s++) {
    char path[32];
    snprintf(path, sizeof path, "s/stage%d.onnx", s);
    write_model_text(path, STAGES[s]);
  }
  fail_each(model, PSPLIT_WEIGHTS_EXTERNAL);
  fail_each(NULL, PSPLIT_WEIGHTS_INLINE);
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_allocation, enter_scratch, leave_scratch)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
