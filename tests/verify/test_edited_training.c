/* Why: what is spoilt in stages that train is told, by the line that says what. The stages, what
 * belongs to them and the manifest are edited as text; training_changes.py spoils all else, and
 * states have a test of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/verify.h>

#include "edited.h"
#include "edited_training.h"
#include "scratch.h"

/* Weights as inputs, gradients of weights by themselves, something to compute again. */
static const char APART[] =
  "<ir_version: 8, opset_import: [\"\": 17]>\n"
  "main (float[n,8] x) => (float loss) <float[8,8] w1 = random(1), float[8,8] w2 = random(2), "
  "float[8] k = random(3)> {\n"
  "  [a] a = MatMul (x, w1)\n"
  "  [b] b = Tanh (a)\n"
  "  [q] q = Add (b, k)\n"
  "  [c] c = MatMul (q, w2)\n"
  "  [d] d = Mul (c, q)\n"
  "  [l] loss = ReduceMean <keepdims = 0> (d)\n"
  "}\n";

/* An output besides the loss, and the gradient of an input. */
static const char GIVEN[] =
  "<ir_version: 8, opset_import: [\"\": 17]>\n"
  "main (float[n,8] x) => (float loss, float[n,8] d) <float[8,8] w1 = random(1), float[8,8] w2 = "
  "random(2), float[8] k = random(3)> {\n"
  "  [a] a = MatMul (x, w1)\n"
  "  [b] b = Tanh (a)\n"
  "  [q] q = Add (b, k)\n"
  "  [c] c = MatMul (q, w2)\n"
  "  [d] d = Mul (c, q)\n"
  "  [l] loss = ReduceMean <keepdims = 0> (d)\n"
  "}\n";

/* A weight that stays as it is, and that whoever runs the model may give: an input with a default,
 * which the backward pass reads too. One that is read again. And an operator of ONNX Runtime's own,
 * computed again. */
static const char FROZEN[] =
  "<ir_version: 8, opset_import: [\"\": 17, \"com.microsoft\": 1]>\n"
  "main (float[n,8] x, float[8] k) => (float loss) <float[8,8] w1 = random(1), float[8,8] w2 = "
  "random(2), float[8] k = random(3), float[8] fe = random(4)> {\n"
  "  [a] a = MatMul (x, w1)\n"
  "  [b] b = \"com.microsoft\".FastGelu (a)\n"
  "  [e] e = Mul (b, fe)\n"
  "  [p] p = Mul (e, e)\n"
  "  [q] q = Mul (p, k)\n"
  "  [c] c = MatMul (q, w2)\n"
  "  [d] d = Mul (c, q)\n"
  "  [l] loss = ReduceMean <keepdims = 0> (d)\n"
  "}\n";

/* A branch with a weight, and with constants of both kinds that the backward pass reads and that
 * are too large for the scan to take into memory. */
static const char BRANCH[] =
  "<ir_version: 8, opset_import: [\"\": 17]>\n"
  "main (float[n,8] x, bool flag) => (float loss) <float[8,8] w1 = random(1)> {\n"
  "  [a] a = MatMul (x, w1)\n"
  "  [b] b = If (flag) <then_branch = t () => (s) <float[8,8] w2 = random(2), float[8,40] k = "
  "random(3)> {\n"
  "    [p] p = MatMul (a, k)\n"
  "    [o] o = Constant <value = float[40,8] = random(4)> ()\n"
  "    [r] r = MatMul (p, o)\n"
  "    [s] s = MatMul (r, w2)\n"
  "  }, else_branch = e () => (m) { [m] m = Neg (a) }>\n"
  "  [q] q = Tanh (b)\n"
  "  [l] loss = ReduceMean <keepdims = 0> (q)\n"
  "}\n";

enum {
  WEIGHTS0 = N_SHARED,
  N_OF_APART,
  N_OF_GIVEN = MANIFEST + 1,
  FROZEN0 = N_OF_GIVEN,
  FROZEN_AGAIN0,
  N_OF_FROZEN
};

static const char *const OF_APART[] = {"out/stage0.onnx", "out/stage1.onnx", "out/pipeline.json",
                                       "out/stage0.again.onnx", "out/stage0.weights.onnx"};

static const char *const OF_GIVEN[] = {"out/stage0.onnx", "out/stage1.onnx", "out/pipeline.json"};
static const char *const OF_FROZEN[] = {"out/stage0.onnx", "out/stage1.onnx", "out/pipeline.json",
                                        "out/stage0.backward.onnx", "out/stage0.again.onnx"};

static const char *const PINS[] = {"[abq]=0", "[cdl]=1"};

static const edited_split BY_INPUT[] = {
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest has the gradient of input \"x\" twice",
   {{MANIFEST, "{\"name\": \"x\", \"gradient\": \"x.grad\"}",
     "{\"name\": \"x\", \"gradient\": \"x.grad\"}, {\"name\": \"x\", \"gradient\": \"x.grad\"}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest lists another gradient for input \"x\"",
   {{MANIFEST, "{\"name\": \"x\", \"gradient\": \"x.grad\"}",
     "{\"name\": \"x\", \"gradient\": \"y.grad\"}", NULL}}},
  {PSPLIT_MISMATCH,
   "the training that the manifest describes is invalid: a gradient of \"z\" is requested, but no "
   "input has this "
   "name; it has x",
   {{MANIFEST, "{\"name\": \"x\", \"gradient\": \"x.grad\"}",
     "{\"name\": \"z\", \"gradient\": \"x.grad\"}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage1.backward.onnx: stage 1: node c/grad.20 is not as in the model",
   {{MANIFEST, "\"input_gradients\": [\n      {\"name\": \"x\", \"gradient\": \"x.grad\"}\n    ],",
     "", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1 does not give the loss \"loss\"",
   {{MANIFEST, "\"loss\": {\"tensor\": \"loss\"", "\"loss\": {\"tensor\": \"d\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: output \"x.grad\" does not go where the manifest says",
   {{MANIFEST, "{\"name\": \"x.grad\", \"to\": [\"model\"]}",
     "{\"name\": \"x.grad\", \"to\": [\"update\"]}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: stage 0: output \"x.grad\" goes nowhere",
   {{MANIFEST, "{\"name\": \"x.grad\", \"to\": [\"model\"]}", "{\"name\": \"x.grad\", \"to\": []}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0 has no update",
   {{MANIFEST, "\"optimizer\": null", "\"optimizer\": \"sgd\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: output \"k.grad\" does not go where the manifest says",
   {{MANIFEST, "{\"name\": \"k.grad\", \"to\": [\"update\"]}",
     "{\"name\": \"k.grad\", \"to\": [\"model\"]}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: initializer \"kk\" is not the model's",
   {{FORWARD0, "float[8] k = ", "float[8] kk = ", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: the trained weight \"w1\" is an initializer as well",
   {{MANIFEST, "\"weight_form\": \"default\"", "\"weight_form\": \"input\"", NULL}}},
};

static const edited_split BY_APART[] = {
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  /* first weights */
  {PSPLIT_OK, "", {{WEIGHTS0, "float[8,8] w1, float[8] k", "float[8] k, float[8,8] w1", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold initial values of weights as the model does",
   {{WEIGHTS0, "float[8,8] w1, float[8] k", "float[8,8] w1", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold initial values of weights as the model does",
   {{WEIGHTS0, "=> (float[8,8] w1", "=> (float[8,7] w1", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold initial values of weights as the model does",
   {{WEIGHTS0, "weights ()", "weights (float z)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold initial values of weights as the model does",
   {{WEIGHTS0, "weights ()", "other ()", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold initial values of weights as the model does",
   {{WEIGHTS0, "> {}", "> { z = Relu (k) }", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold initial values of weights as the model does",
   {{WEIGHTS0, "float[8] k = raw", "float[8] w2 = raw", NULL},
    {WEIGHTS0, "float[8] k", "float[8] w2", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold initial values of weights as the model does",
   {{WEIGHTS0, "float[8] k = raw", "float[8] z = raw", NULL},
    {WEIGHTS0, "float[8] k", "float[8] z", NULL}}},
  {PSPLIT_MISMATCH,
   "initializer \"w1\" is in no stage",
   {{MANIFEST, "\"first_weights\": {\"file\": \"stage0.weights.onnx\"}", "\"first_weights\": null",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage1.weights.onnx does not hold initial values of weights as the model does",
   {{MANIFEST, "\"stage0.weights.onnx\"", "\"stage1.weights.onnx\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold initial values of weights as the model does",
   {{MANIFEST, "\"stage1.weights.onnx\"", "\"stage0.weights.onnx\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold initial values of weights as the model does",
   {{MANIFEST, "\"weight_form\": \"input\"", "\"weight_form\": \"default\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: initializer \"k\" is not the model's",
   {{FORWARD0, "float[n,8] a) {", "float[n,8] a) <float[8] k = {1,1,1,1,1,1,1,1}> {", NULL}}},
  {PSPLIT_INVALID,
   "out/stage0.onnx: node q reads \"k\", which is not defined",
   {{FORWARD0, ", float[8] k)", ")", NULL}}},
  {PSPLIT_MISMATCH, "\"k\"", {{WEIGHTS0, "k = raw {-", "k = raw {", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold initial values of weights as the model does",
   {{WEIGHTS0, "float[8] k = raw", "float[2,4] k = raw", NULL}}},
  /* weights that a stage takes */
  {PSPLIT_MISMATCH,
   "stage 0: the manifest does not list weight \"k\"",
   {{MANIFEST, "\"w1\",\n          \"k\"", "\"w1\"", "\"index\": 0"},
    {MANIFEST, "\"stages\": [0]", "\"stages\": []", "\"name\": \"k\""}}},
  {PSPLIT_MISMATCH,
   "stage 1: weight \"w1\" is not an input there",
   {{MANIFEST, "\"w2\"\n        ]", "\"w1\",\n          \"w2\"\n        ]", NULL},
    {MANIFEST, "\"stages\": [0]", "\"stages\": [0, 1]", NULL}}},
  /* kept as ports */
  {PSPLIT_MISMATCH,
   "transfer 0: stage 1 does not receive \"q\"",
   {{MANIFEST, "{\"name\": \"q.recv0\", \"tensor\": \"q\"",
     "{\"name\": \"q.recv0\", \"tensor\": \"c\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest does not list input \"q.recv0\"",
   {{MANIFEST, "{\"name\": \"q.recv0\", \"tensor\": \"q\"", "{\"name\": \"c\", \"tensor\": \"q\"",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: output \"a\" goes nowhere, and is not kept",
   {{MANIFEST, "{\"name\": \"a\", \"tensor\": \"a\"", "{\"name\": \"q.send1\", \"tensor\": \"q\"",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: output \"a\" goes nowhere, and is not kept",
   {{MANIFEST, "{\"name\": \"a\", \"tensor\": \"a\"", "{\"name\": \"q.send1\", \"tensor\": \"a\"",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: output \"b\" goes nowhere, and is not kept",
   {{FORWARD0, "(float[n,8] \"q.send1\", float[n,8] a)", "(float[n,8] \"q.send1\", float[n,8] b)",
     NULL}}},
  /* gradients of weights by themselves */
  {PSPLIT_MISMATCH,
   "the manifest's backward pass: transfer 0: stage 1 does not send \"g7\" to 1",
   {{MANIFEST, "{\"name\": \"g7\", \"to\": [1]}", "{\"name\": \"g7\", \"to\": [0]}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's backward pass: transfer 0: stage 1 does not send \"g7\" to 1",
   {{MANIFEST, "{\"name\": \"g7\", \"to\": [1]}", "{\"name\": \"g7\", \"to\": []}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest sends \"g7\" to or from a stage without backward pass",
   {{MANIFEST, "{\"name\": \"g7\", \"from\": 1}", "{\"name\": \"g7\", \"from\": 0}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest sends \"g7\" to or from a stage without backward pass",
   {{MANIFEST, "{\"tag\": 0, \"tensor\": \"g7\", \"from\": 1, \"to\": 1",
     "{\"tag\": 0, \"tensor\": \"g7\", \"from\": 0, \"to\": 1", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.update.onnx has other inputs or outputs than the manifest says",
   {{MANIFEST,
     "{\"name\": \"w1.momentum\", \"new\": \"w1.momentum.new\", \"weight\": \"w1\", \"state\": "
     "true}",
     "{\"name\": \"w1.momentum\", \"new\": \"w1.momentum.new\", \"weight\": \"k\", \"state\": "
     "true}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: node b is not to be computed again, by the manifest's \"recompute\"",
   {{MANIFEST, "\"recompute\": \"heavy\"", "\"recompute\": \"none\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: \"a\" is kept, which the manifest's \"recompute\" computes again",
   {{MANIFEST, "\"recompute\": \"heavy\"", "\"recompute\": \"all\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: node b is not the model's",
   {{AGAIN0, "Tanh (a)", "Sigmoid (a)", NULL}}},
};

static const edited_split BY_FROZEN[] = {
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: stage 0: the manifest does not list input \"k\"",
   {{MANIFEST, "\"optional_inputs\": [\n            {\"name\": \"k\", \"from\": \"model\"}",
     "\"optional_inputs\": [", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: stage 0: initializer \"z\" is not the model's",
   {{FROZEN0, "float[8] k = raw", "float[8] z = raw", NULL}}},
  /* what is computed again */
  {PSPLIT_MISMATCH,
   "opset import 0 is not the model's",
   {{FROZEN_AGAIN0, "\"\": 17", "\"\": 18", NULL}}},
  {PSPLIT_MISMATCH, "\"fe\"", {{FROZEN_AGAIN0, "fe = raw {-", "fe = raw {", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: initializer \"w1\" is not the model's",
   {{FROZEN_AGAIN0, ", float[8,8] w1)", ")", NULL},
    {FROZEN_AGAIN0, "float[8] fe", "float[8,8] w1 = random(1), float[8] fe", NULL},
    {MANIFEST, ",\n            {\"name\": \"w1\", \"from\": \"weights\"}", "", "again.onnx"}}},
  /* what the backward pass takes */
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: input \"e\" does not match its source in the manifest",
   {{MANIFEST, "{\"name\": \"e\", \"from\": \"again\"}", "{\"name\": \"e\", \"from\": \"model\"}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: input \"w1.grad.before\" does not match its source in the manifest",
   {{MANIFEST, "{\"name\": \"w1.grad.before\", \"from\": \"before\"}",
     "{\"name\": \"w1.grad.before\", \"from\": \"model\"}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: input \"w1.grad.before\" does not match its source in the manifest",
   {{MANIFEST, "{\"name\": \"w1.grad.before\", \"from\": \"before\"}",
     "{\"name\": \"w1.grad.before\", \"from\": \"loss\"}", NULL}}},
  /* types */
  {PSPLIT_MISMATCH,
   "the manifest gives weight \"w1\" another type than the model",
   {{MANIFEST, "[8, 8], \"stages\": [0]", "[8, 8, 1], \"stages\": [0]", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest gives weight \"w1\" another type than the model",
   {{MANIFEST, "[8, 8], \"stages\": [0]", "[8], \"stages\": [0]", NULL}}},
};

static const edited_split BY_BRANCH[] = {
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  {PSPLIT_MISMATCH,
   "the training that the manifest describes is invalid",
   {{MANIFEST, "\"branch\": \"then\"", "\"branch\": \"else\"", NULL}}},
};

static void with_weights_apart(void **state) {
  (void)state;
  psplit_training_form form;
  psplit_training_form_init(&form);
  form.weights = PSPLIT_WEIGHTS_INPUT;
  form.optimizer = "momentum";
  form.recompute = PSPLIT_RECOMPUTE_HEAVY;
  form.weight_gradients = PSPLIT_WEIGHT_GRADIENTS_APART;
  split_training(
    &(trained_split){.text = APART, .pins = PINS, .boundary = PSPLIT_BOUNDARY_SENDRECV}, &form);
  read_split(OF_APART, N_OF_APART);
  each_is_told(BY_APART, sizeof BY_APART / sizeof *BY_APART, false);
  forget();
}

static void with_gradients_of_inputs(void **state) {
  (void)state;
  psplit_training_form form;
  psplit_training_form_init(&form);
  split_training(
    &(trained_split){
      .text = GIVEN, .pins = PINS, .gradient_of = "x", .boundary = PSPLIT_BOUNDARY_IO},
    &form);
  read_split(OF_GIVEN, N_OF_GIVEN);
  each_is_told(BY_INPUT, sizeof BY_INPUT / sizeof *BY_INPUT, false);
  forget();
}

static void with_a_default_and_others_operators(void **state) {
  (void)state;
  psplit_training_form form;
  psplit_training_form_init(&form);
  form.recompute = PSPLIT_RECOMPUTE_ALL;
  split_training(
    &(trained_split){
      .text = FROZEN, .pins = PINS, .freeze = "*[ke]", .boundary = PSPLIT_BOUNDARY_IO},
    &form);
  read_split(OF_FROZEN, N_OF_FROZEN);
  each_is_told(BY_FROZEN, sizeof BY_FROZEN / sizeof *BY_FROZEN, false);
  forget();
}

/* The stages say what was inlined, without which they are of another model than the file's. */
static void with_a_branch(void **state) {
  (void)state;
  psplit_training_form form;
  psplit_training_form_init(&form);
  form.weights = PSPLIT_WEIGHTS_INPUT;
  static const char *const pins[] = {"[ap]=0", "[rsql]=1"};
  split_training(&(trained_split){.text = BRANCH,
                                  .pins = pins,
                                  .freeze = "k",
                                  .inline_then = "b",
                                  .boundary = PSPLIT_BOUNDARY_IO},
                 &form);
  psplit_diag diag = {0};
  psplit_model_close(model);
  model = NULL;
  psplit_verify_report report;
  psplit_code code = psplit_model_open("model.onnx", NULL, &diag, &model);
  if (code == PSPLIT_OK) code = psplit_verify("out", model, NULL, &diag, &report);
  if (code != PSPLIT_OK) fail_msg("%s", diag.message);
  assert_int_equal(report.n_assumed, 1);
  read_split(OF_GIVEN, N_OF_GIVEN);
  each_is_told(BY_BRANCH, sizeof BY_BRANCH / sizeof *BY_BRANCH, false);
  forget();
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {TEST(with_weights_apart), TEST(with_gradients_of_inputs),
                                     TEST(with_a_branch),
                                     TEST(with_a_default_and_others_operators)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
