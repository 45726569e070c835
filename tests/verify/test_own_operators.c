/* Why: a model may have a function by the name of an operator of ONNX's. A node that a split adds
 * by that name would call it, and no longer hand on what it is given: such models are refused where
 * nodes are added, and split where none are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/emit.h>
#include <psplit/gradient.h>
#include <psplit/passes.h>
#include <psplit/verify.h>
#include <string.h>
#include <unistd.h>

#include "edited.h"
#include "scratch.h"
#include "text_model.h"

#define MODEL(domain, name)                                                       \
  "<ir_version: 10, opset_import: [\"\": 17, \"local\": 1]>\n"                    \
  "main (float[2,8] x, bool flag) => (float[2,8] y) <float[8] w = random(1)> {\n" \
  "  [a] a = Mul (x, w)\n"                                                        \
  "  [f] f = If (flag) <then_branch = t () => (float[2,8] u) { u = Relu (a) },\n" \
  "    else_branch = e () => (float[2,8] v) { v = Neg (a) }>\n"                   \
  "  [y] y = Tanh (f)\n"                                                          \
  "}\n"                                                                           \
  "<domain: \"" domain "\", opset_import: [\"\": 17]>\n" name " (X) => (Y) { Y = Neg (X) }\n"

#define OWN "the model has its own function \"Identity\""

static const struct {
  const char *text;
  bool is_own;
} cases[] = {{MODEL("", "Identity"), true},
             {MODEL("ai.onnx", "Identity"), true},
             {MODEL("local", "Identity"), false},
             {MODEL("local", "Neg"), false}};
enum { N_CASES = sizeof cases / sizeof *cases };

static psplit_code split(psplit_boundary boundary, psplit_diag *diag) {
  static const char *const pins[] = {"a=0", "[fy]=1"};
  psplit_planner *planner = NULL;
  psplit_planner_options planning;
  psplit_planner_options_init(&planning);
  planning.n_stages = 2;
  planning.pins = pins;
  planning.n_pins = 2;
  const psplit_emit_options emitting = {
    .struct_size = sizeof emitting, .boundary = boundary, .replace = true, .no_sync = true};
  psplit_code code = psplit_planner_create(model, &planning, diag, &planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(planner, NULL, diag);
  if (code == PSPLIT_OK)
    code = psplit_emit(model, psplit_planner_plan(planner), "out", &emitting, diag);
  psplit_planner_destroy(planner);
  return code;
}

static void is_refused(bool wanted, psplit_code code, const psplit_diag *diag) {
  if (wanted ? code != PSPLIT_UNSUPPORTED || !strstr(diag->message, OWN) : code != PSPLIT_OK)
    fail_msg("%s: %s", psplit_code_name(code), diag->message);
}

static void in_a_boundary(void **state) {
  (void)state;
  for (int i = 0; i < N_CASES; i++) {
    psplit_diag diag = {0};
    write_model_text("model.onnx", cases[i].text);
    assert_int_equal(psplit_model_open("model.onnx", NULL, &diag, &model), PSPLIT_OK);
    is_refused(cases[i].is_own, split(PSPLIT_BOUNDARY_SENDRECV, &diag), &diag);
    if (i == 0) assert_int_equal(access("out", F_OK), -1);
    diag = (psplit_diag){0};
    is_refused(false, split(PSPLIT_BOUNDARY_IO, &diag), &diag);
    is_refused(false, psplit_verify("out", model, NULL, &diag, NULL), &diag);
    psplit_model_close(model);
  }
}

static void in_place_of_an_if(void **state) {
  (void)state;
  const psplit_inline_if taken = {.node = "f", .then_branch = true};
  const psplit_read_options reading = {
    .struct_size = sizeof reading, .inline_ifs = &taken, .n_inline_ifs = 1};
  for (int i = 0; i < N_CASES; i++) {
    psplit_diag diag = {0};
    psplit_model *inlined = NULL;
    write_model_text("model.onnx", cases[i].text);
    is_refused(cases[i].is_own, psplit_model_open("model.onnx", &reading, &diag, &inlined), &diag);
    psplit_model_close(inlined);
  }
}

static void in_training(void **state) {
  (void)state;
  const psplit_training_options options = {.loss_output = "y"};
  psplit_diag diag = {0};
  psplit_gradient *gradient = NULL;
  write_model_text("model.onnx", cases[0].text);
  assert_int_equal(psplit_model_open("model.onnx", NULL, &diag, &model), PSPLIT_OK);
  is_refused(true, psplit_gradient_create(model, &options, NULL, &diag, &gradient), &diag);
  psplit_model_close(model);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {TEST(in_a_boundary), TEST(in_place_of_an_if),
                                     TEST(in_training)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
