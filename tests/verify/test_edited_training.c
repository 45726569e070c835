/* Why: what is spoilt in stages that train is told, by the line that says what. The stages, what
 * belongs to them and the manifest are edited as text; training_changes.py spoils all else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/training.h>
#include <psplit/verify.h>

#include "edited.h"
#include "scratch.h"
#include "text_model.h"

/* A weight of both stages, and a layer with states. */
static const char STATES[] =
  "<ir_version: 8, opset_import: [\"\": 17]>\n"
  "main (float[n,8] x) => (float loss) <float[8,8] w1 = random(1), float[8,8] w2 = random(2), "
  "float[8] g = random(3), float[8] h = random(4), float[8] mean = {0,0,0,0,0,0,0,0}, float[8] var "
  "= {1,1,1,1,1,1,1,1}> {\n"
  "  [a] a = MatMul (x, w1)\n"
  "  [b] b, next_mean, next_var = BatchNormalization <training_mode = 1> (a, g, h, mean, var)\n"
  "  [q] q = Tanh (b)\n"
  "  [c] c = MatMul (q, w2)\n"
  "  [d] d = MatMul (c, w1)\n"
  "  [l] loss = ReduceMean <keepdims = 0> (d)\n"
  "}\n";

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
 * which the backward pass reads too. And an operator of ONNX Runtime's own, computed again. */
static const char FROZEN[] =
  "<ir_version: 8, opset_import: [\"\": 17, \"com.microsoft\": 1]>\n"
  "main (float[n,8] x, float[8] k) => (float loss) <float[8,8] w1 = random(1), float[8,8] w2 = "
  "random(2), float[8] k = random(3)> {\n"
  "  [a] a = MatMul (x, w1)\n"
  "  [b] b = \"com.microsoft\".FastGelu (a)\n"
  "  [p] p = Mul (b, b)\n"
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
  FORWARD0,
  FORWARD1,
  MANIFEST,
  AGAIN0,
  N_SHARED,
  BACKWARD0 = N_SHARED,
  BACKWARD1,
  N_OF_STATES,
  WEIGHTS0 = N_SHARED,
  N_OF_APART,
  N_OF_GIVEN = MANIFEST + 1,
  FROZEN0 = N_OF_GIVEN,
  N_OF_FROZEN
};

static const char *const OF_STATES[] = {"out/stage0.onnx",          "out/stage1.onnx",
                                        "out/pipeline.json",        "out/stage0.again.onnx",
                                        "out/stage0.backward.onnx", "out/stage1.backward.onnx"};
static const char *const OF_APART[] = {"out/stage0.onnx", "out/stage1.onnx", "out/pipeline.json",
                                       "out/stage0.again.onnx", "out/stage0.weights.onnx"};

static const char *const OF_GIVEN[] = {"out/stage0.onnx", "out/stage1.onnx", "out/pipeline.json"};
static const char *const OF_FROZEN[] = {"out/stage0.onnx", "out/stage1.onnx", "out/pipeline.json",
                                        "out/stage0.backward.onnx"};

static void split(const char *text, const psplit_training_form *form, psplit_boundary boundary) {
  static const char *const pins[] = {"[abq]=0", "[cdl]=1"};
  static const char *const pins_of_branch[] = {"[ap]=0", "[rsql]=1"};
  static const char *const given[] = {"x"}, *const frozen[] = {"k"};
  static const psplit_inline_if taken = {"b", true};
  const bool inlines = text == BRANCH;
  const psplit_read_options reading = {
    .struct_size = sizeof reading, .inline_ifs = &taken, .n_inline_ifs = inlines};
  const psplit_training_options options = {.loss_output = "loss",
                                           .freeze = frozen,
                                           .n_freeze = inlines || text == FROZEN,
                                           .gradient_of = given,
                                           .n_gradient_of = text == GIVEN};
  const psplit_emit_options emitting = {.struct_size = sizeof emitting,
                                        .boundary = boundary,
                                        .weights = PSPLIT_WEIGHTS_INLINE,
                                        .no_sync = true};
  psplit_planner_options planning;
  psplit_diag diag = {0};
  psplit_training *training = NULL;
  psplit_planner *planner = NULL;
  psplit_planner_options_init(&planning);
  planning.n_stages = 2;
  planning.pins = inlines ? pins_of_branch : pins;
  planning.n_pins = 2;
  write_model_text("model.onnx", text);
  psplit_code code = psplit_model_open("model.onnx", &reading, &diag, &model);
  if (code == PSPLIT_OK)
    code = psplit_training_create(model, &options, form, NULL, &diag, &training);
  if (code == PSPLIT_OK) code = psplit_training_plan(training, &planning, NULL, &diag, &planner);
  if (code == PSPLIT_OK)
    code = psplit_training_emit(training, psplit_planner_plan(planner), "out", &emitting, &diag);
  if (code != PSPLIT_OK) fail_msg("%s", diag.message);
  psplit_planner_destroy(planner);
  psplit_training_destroy(training);
}

static const edited_split BY_STATES[] = {
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  {PSPLIT_INVALID,
   "training.stages[0].index",
   {{MANIFEST, "\"index\": 0", "\"index\": 1", "\"recompute\""}}},
  /* rows of states */
  {PSPLIT_MISMATCH,
   "stage 0: output \"next_mean\" goes nowhere, and is not kept",
   {{MANIFEST, "\"next\": \"next_mean\"", "\"next\": \"next_var\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: output \"next_mean\" goes nowhere, and is not kept",
   {{MANIFEST, "\"next\": \"next_mean\"", "\"next\": \"b\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: output \"next_mean\" goes nowhere, and is not kept",
   {{MANIFEST, "\"next\": \"next_mean\"", "\"next\": \"none\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: output \"next_mean\" goes nowhere, and is not kept",
   {{MANIFEST, ", \"next\": \"next_mean\"", "", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's trained weight 2 is not \"h\" as it is",
   {{MANIFEST, "\"before\": \"g.grad.before\"}",
     "\"before\": \"g.grad.before\", \"next\": \"next_mean\"}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: \"mean\" does not go on as \"next_mean\"",
   {{FORWARD0, ", float[8] next_mean", "", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: output \"next_mean\" is not the next \"mean\"",
   {{FORWARD0, "float[8] next_mean", "float[7] next_mean", NULL}}},
  {PSPLIT_OK,
   "",
   {{FORWARD0, "float[8] next_mean, float[8] next_var", "float[8] next_var, float[8] next_mean",
     NULL}}},
  /* weights that a stage takes */
  {PSPLIT_MISMATCH,
   "stage 0: the manifest lists weight \"none\" twice, out of order, or as one that is not trained",
   {{MANIFEST, "\"weights\": [\n          \"w1\",\n          \"g\",",
     "\"weights\": [\n          \"w1\",\n          \"none\",", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: the manifest lists weight \"a\" twice, out of order, or as one that is not trained",
   {{MANIFEST, "\"weights\": [\n          \"w1\",\n          \"g\",",
     "\"weights\": [\n          \"w1\",\n          \"a\",", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: the manifest lists weight \"x\" twice, out of order, or as one that is not trained",
   {{MANIFEST, "\"weights\": [\n          \"w1\",\n          \"g\",",
     "\"weights\": [\n          \"w1\",\n          \"x\",", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: the trained weight \"g\" is no input",
   {{FORWARD0, ", float[8] g,", ",", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: weight \"g\" has another type",
   {{FORWARD0, "float[8] g,", "float[8,1] g,", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: weight \"g\" has another type",
   {{FORWARD0, "float[8] g,", "double[8] g,", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: weight \"g\" has another type",
   {{FORWARD0, "float[8] g,", "seq(float[8]) g,", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: weight \"g\" has another type",
   {{FORWARD0, "float[8] g,", "float[7] g,", NULL}}},
  /* what is kept */
  {PSPLIT_MISMATCH,
   "stage 1: node d.shape is not in the model",
   {{FORWARD1, "Shape (d)", "Shape (c)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: node d.shape is not in the model",
   {{FORWARD1, "Shape (d)", "Shape <start = 1> (d)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: node d.shape is not in the model",
   {{FORWARD1, "Shape (d)", "Shape (d, d)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: node d.shape is not in the model",
   {{FORWARD1, "\"d.shape\" = Shape (d)", "\"d.shape\", z = Shape (d)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: node d.shape is not in the model",
   {{FORWARD1, "= Shape (d)", "= Shape (\"\")", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: node d.shape is not in the model",
   {{FORWARD1, "= Shape (d)", "= Size (d)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: output \"d.shape\", to be kept, is not as in the model",
   {{FORWARD1, "int64[2] \"d.shape\"", "int64[3] \"d.shape\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: output \"d.shape\", to be kept, is not as in the model",
   {{FORWARD1, "int64[2] \"d.shape\"", "int64[n] \"d.shape\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: output \"d.shape\", to be kept, is not as in the model",
   {{FORWARD1, "int64[2] \"d.shape\"", "int32[2] \"d.shape\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: output \"d.shape\", to be kept, is not as in the model",
   {{FORWARD1, "[\"d.shape\"] \"d.shape\"", "[\"other\"] \"d.shape\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: output \"c\" goes nowhere, and is not kept",
   {{FORWARD1, "int64[2] \"d.shape\")", "int64[2] \"d.shape\", float[n,8] c)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest gives \"c.shape\", to be kept, another type than the model",
   {{MANIFEST, "\"tensor\": \"d.shape\"", "\"tensor\": \"c.shape\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: \"a\", which is to be kept, is not \"q\"",
   {{MANIFEST, "{\"name\": \"q\", \"tensor\": \"q\", \"dtype\"",
     "{\"name\": \"q\", \"tensor\": \"a\", \"dtype\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest gives \"w1\", to be kept, another type than the model",
   {{MANIFEST, "{\"name\": \"q\", \"tensor\": \"q\", \"dtype\"",
     "{\"name\": \"w1\", \"tensor\": \"w1\", \"dtype\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest gives \"none\", to be kept, another type than the model",
   {{MANIFEST, "{\"name\": \"q\", \"tensor\": \"q\", \"dtype\"",
     "{\"name\": \"none\", \"tensor\": \"none\", \"dtype\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest gives \"q\", to be kept, another type than the model",
   {{MANIFEST, "{\"name\": \"q\", \"tensor\": \"q\", \"dtype\": \"float32\"",
     "{\"name\": \"q\", \"tensor\": \"q\", \"dtype\": \"float16\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest gives \"d.shape\", to be kept, another type than the model",
   {{MANIFEST, "\"dtype\": \"int64\", \"shape\": [2]", "\"dtype\": \"int64\", \"shape\": [3]",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest gives \"d.shape\", to be kept, another type than the model",
   {{MANIFEST, "\"dtype\": \"int64\", \"shape\": [2]", "\"dtype\": \"int64\", \"shape\": null",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest gives \"d.shape\", to be kept, another type than the model",
   {{MANIFEST, "\"dtype\": \"int64\", \"shape\": [2]", "\"dtype\": \"int64\", \"shape\": [null]",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest gives \"q\", to be kept, another type than the model",
   {{MANIFEST, "\"shape\": [\"n\", 8]}\n        ],", "\"shape\": [\"m\", 8]}\n        ],", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest gives \"q\", to be kept, another type than the model",
   {{MANIFEST, "\"shape\": [\"n\", 8]}\n        ],", "\"shape\": [4, 8]}\n        ],", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest gives \"q\", to be kept, another type than the model",
   {{MANIFEST, "\"shape\": [\"n\", 8]}\n        ],", "\"shape\": [null, 8]}\n        ],", NULL}}},
  /* what is computed again */
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: node a is not the model's",
   {{AGAIN0, "[a] a = MatMul (x, w1)", "[a] a = MatMul (w1, x)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: node z is not the model's",
   {{AGAIN0, "[a] a = MatMul (x, w1)", "[z] z = MatMul (x, w1) [a] a = MatMul (x, w1)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: node z is not the model's",
   {{AGAIN0, "[a] a = MatMul (x, w1)", "[z] \"\" = MatMul (x, w1) [a] a = MatMul (x, w1)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: initializer \"mean\" is not the model's",
   {{AGAIN0, "float[8] mean = {0", "float[8] mean = {1", NULL}}},
  {PSPLIT_INVALID,
   "out/stage0.again.onnx: tensor \"more\": it holds 1 numbers or strings, its shape needs 8",
   {{AGAIN0, "float[8] mean = {0", "float[8] more = {1}, float[8] mean = {0", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{AGAIN0, "=> (float[n,8] a, float[n,8] q)", "=> (float[n,8] q, float[n,8] a)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{AGAIN0, "=> (float[n,8] a, float[n,8] q)", "=> (float[n,8] a, float[n,8] b)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{AGAIN0, "=> (float[n,8] a, float[n,8] q)", "=> (float[n,8] a, float[n,8] q, float[n,8] b)",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{AGAIN0, "=> (float[n,8] a, ", "=> (float[n,7] a, ", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{AGAIN0, "float[8] g,", "float[7] g,", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{AGAIN0, "float[8] g,", "float[8] g, float[8] mean,", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{AGAIN0, "float[8] g,", "float[8] g, float[8] z,", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: initializer \"h\" is not the model's",
   {{AGAIN0, "float[8] mean =", "float[8] h = {0,0,0,0,0,0,0,0}, float[8] mean =", NULL}}},
  {PSPLIT_OK, "", {{AGAIN0, "float[8] g, float[8] h)", "float[8] h, float[8] g)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: input \"x\" is not what the manifest takes it from",
   {{MANIFEST,
     "{\"name\": \"x\", \"from\": \"model\"},\n            {\"name\": \"w1\", \"from\": "
     "\"weights\"},",
     "{\"name\": \"x\", \"from\": \"weights\"},\n            {\"name\": \"w1\", \"from\": "
     "\"weights\"},",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: input \"w1\" is not what the manifest takes it from",
   {{MANIFEST,
     "{\"name\": \"x\", \"from\": \"model\"},\n            {\"name\": \"w1\", \"from\": "
     "\"weights\"},",
     "{\"name\": \"x\", \"from\": \"model\"},\n            {\"name\": \"w1\", \"from\": "
     "\"model\"},",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{MANIFEST, "{\"name\": \"a\", \"to\": [\"backward\"]}", "{\"name\": \"a\", \"to\": []}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{MANIFEST, "{\"name\": \"a\", \"to\": [\"backward\"]}",
     "{\"name\": \"a\", \"to\": [\"update\"]}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: input \"a\" is not what the manifest takes it from",
   {{MANIFEST, "{\"name\": \"a\", \"to\": [\"backward\"]}",
     "{\"name\": \"c\", \"to\": [\"backward\"]}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{MANIFEST, "\"nodes\": 3,\n          \"inputs\"", "\"nodes\": 2,\n          \"inputs\"",
     NULL}}},
  /* backward passes */
  {PSPLIT_MISMATCH,
   "stage1.backward.onnx: stage 1: \"g14\" crosses with a shape that is not the model's",
   {{BACKWARD1, "float[?,8] g14", "float[n,8] g14", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: stage 0: \"g14\" crosses with a shape that is not the model's",
   {{BACKWARD0, "float[?,8] g14", "float[?,7] g14", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: stage 0: the data of \"c28\" differs at byte 0",
   {{BACKWARD0, "c28 = raw {1e-05}", "c28 = raw {1e-04}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's backward pass: transfer 0: the manifest gives \"g14\" another shape than stage "
   "0 does",
   {{MANIFEST, "\"shape\": [null, 8]}", "\"shape\": [null, 7]}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's backward pass: transfer 0: the manifest gives \"g14\" another shape than stage "
   "0 does",
   {{MANIFEST, "\"shape\": [null, 8]}", "\"shape\": [\"n\", 8]}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's transfer of \"g14\" back has tag 1",
   {{MANIFEST, "\"tag\": 0", "\"tag\": 1", "\"recompute\""}}},
  {PSPLIT_MISMATCH,
   "the manifest's transfer of \"g14\" back has tag 7",
   {{MANIFEST, "\"tag\": 0", "\"tag\": 7", "\"recompute\""}}},
  {PSPLIT_MISMATCH,
   "the manifest's backward pass: transfer 0: stage 1 does not send \"g14\" to 0",
   {{MANIFEST, "{\"name\": \"g14\", \"to\": [0]}", "{\"name\": \"g14\", \"to\": [1]}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's backward pass: transfer 0: stage 0 does not receive \"g14\"",
   {{MANIFEST, "{\"name\": \"g14\", \"from\": 1}", "{\"name\": \"g14\", \"from\": 0}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's backward pass: \"g14\" goes from stage 0 to 1, which is not behind it",
   {{MANIFEST, "\"tensor\": \"g14\", \"from\": 1, \"to\": 0",
     "\"tensor\": \"g14\", \"from\": 0, \"to\": 1", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's backward pass: transfer 0: \"g15\" is no value of the model",
   {{MANIFEST, "\"tensor\": \"g14\", \"from\": 1, \"to\": 0",
     "\"tensor\": \"g15\", \"from\": 1, \"to\": 0", NULL}}},
  {PSPLIT_MISMATCH,
   "stage1.backward.onnx: input \"loss.grad\" is not what the manifest takes it from",
   {{MANIFEST, "{\"name\": \"loss.grad\", \"from\": \"loss\"}",
     "{\"name\": \"loss.grad\", \"from\": \"before\"}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: stage 0: output \"g.grad\" goes nowhere",
   {{MANIFEST, "{\"name\": \"g.grad\", \"to\": [\"update\"]}", "{\"name\": \"g.grad\", \"to\": []}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: input \"q\" is not what the manifest takes it from",
   {{MANIFEST, "{\"name\": \"q\", \"from\": \"again\"}", "{\"name\": \"q\", \"from\": \"stash\"}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: input \"x\" is not what the manifest takes it from",
   {{MANIFEST,
     "{\"name\": \"x\", \"from\": \"model\"},\n            {\"name\": \"w1.grad.1.before\"",
     "{\"name\": \"x\", \"from\": \"before\"},\n            {\"name\": \"w1.grad.1.before\"",
     NULL}}},
  /* weights and gradients */
  {PSPLIT_MISMATCH,
   "the gradient of \"w1\" arises in stage 0, and another one is said to own it",
   {{MANIFEST, "\"owner\": 0", "\"owner\": 1", NULL}}},
  {PSPLIT_MISMATCH,
   "the gradient of \"g\" arises in stage 0, and another one is said to own it",
   {{MANIFEST, "\"owner\": 0", "\"owner\": 1", "\"name\": \"g\", \"dtype\""}}},
  {PSPLIT_MISMATCH,
   "the manifest's trained weight 0 is not \"w1\" as it is",
   {{MANIFEST, "{\"gradient\": \"w1.grad.1\", \"before\": \"w1.grad.1.before\"}",
     "{\"gradient\": \"w1.grad.2\", \"before\": \"w1.grad.1.before\"}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's trained weight 0 is not \"w1\" as it is",
   {{MANIFEST, "{\"gradient\": \"w1.grad.1\", \"before\": \"w1.grad.1.before\"}",
     "{\"gradient\": \"w1.grad.1\", \"before\": \"w1.grad.2.before\"}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's trained weight 0 is not \"w1\" as it is",
   {{MANIFEST, ", \"more\": [{\"gradient\": \"w1.grad.1\", \"before\": \"w1.grad.1.before\"}]", "",
     NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's trained weight 0 is not \"w1\" as it is",
   {{MANIFEST, "\"stages\": [0, 1], \"owner\"", "\"stages\": [0], \"owner\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0 does not give the loss \"loss\"",
   {{MANIFEST, "\"loss\": {\"tensor\": \"loss\", \"stage\": 1",
     "\"loss\": {\"tensor\": \"loss\", \"stage\": 0", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1 does not give the loss \"loss\"",
   {{MANIFEST, "\"loss\": {\"tensor\": \"loss\"", "\"loss\": {\"tensor\": \"d\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1 does not give the loss \"loss\"",
   {{MANIFEST, "\"gradient\": \"loss.grad\"}", "\"gradient\": \"d.grad\"}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: the trained weight \"w1\" is an initializer as well",
   {{MANIFEST, "\"weight_form\": \"default\"", "\"weight_form\": \"input\"", NULL}}},
  /* updates */
  {PSPLIT_MISMATCH,
   "stage0.update.onnx has other inputs or outputs than the manifest says",
   {{MANIFEST, "\"lr\": \"lr\"", "\"lr\": \"l\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.update.onnx has other inputs or outputs than the manifest says",
   {{MANIFEST, "\"scale\": \"scale\"", "\"scale\": \"s\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.update.onnx has other inputs or outputs than the manifest says",
   {{MANIFEST, "\"scale\": \"scale\"", "\"scale\": \"scale\", \"step\": \"t\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.update.onnx has other inputs or outputs than the manifest says",
   {{MANIFEST, "\"new\": \"g.new\"", "\"new\": \"g.old\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.update.onnx has other inputs or outputs than the manifest says",
   {{MANIFEST, "\"weight\": \"g\", \"state\": false", "\"weight\": \"h\", \"state\": false",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.update.onnx has other inputs or outputs than the manifest says",
   {{MANIFEST, "\"weight\": \"g\", \"state\": false", "\"weight\": \"g\", \"state\": true", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0 has an update",
   {{MANIFEST, "\"optimizer\": \"sgd\"", "\"optimizer\": null", NULL}}},
  {PSPLIT_MISMATCH,
   "optimizer \"none\": no such method; it is sgd[:weight_decay=], "
   "momentum[:momentum=,nesterov=,weight_decay=] or adam or "
   "adamw[:beta1=,beta2=,epsilon=,weight_decay=]",
   {{MANIFEST, "\"optimizer\": \"sgd\"", "\"optimizer\": \"none\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.update.onnx is not the update by \"adam\"",
   {{MANIFEST, "\"optimizer\": \"sgd\"", "\"optimizer\": \"adam\"", NULL}}},
  {PSPLIT_MISMATCH,
   "what the manifest trains cannot be: the loss \"d\" has more than one element: give one that is "
   "summed or averaged, or a kind of loss",
   {{MANIFEST, "\"loss_output\": \"loss\"", "\"loss_output\": \"d\"", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest trains \"mean\", which what it says does not train",
   {{MANIFEST, "\"batch_norm\": \"as-is\"", "\"batch_norm\": \"frozen\"", NULL}}},
};

static const edited_split MORE_BY_STATES[] = {
  {PSPLIT_MISMATCH,
   "stage 0: output \"next_mean\" goes nowhere, and is not kept",
   {{MANIFEST, "\"owner\": 0, \"gradient\": null, \"before\": null, \"next\": \"next_mean\"",
     "\"owner\": null, \"gradient\": null, \"before\": null, \"next\": \"next_mean\"", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's trained weight 0 is not \"w1\" as it is",
   {{MANIFEST, "\"stages\": [0, 1], \"owner\"", "\"stages\": [1, 0], \"owner\"", NULL}}},
  {PSPLIT_INVALID,
   "training.weights[0].stages[1]: each stage stands there once",
   {{MANIFEST, "\"stages\": [0, 1], \"owner\"", "\"stages\": [0, 0], \"owner\"", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's trained weight 5 is not \"var\" as it is",
   {{MANIFEST,
     ",\n      {\"name\": \"var\", \"dtype\": \"float32\", \"shape\": [8], \"stages\": [0], "
     "\"owner\": 0, \"gradient\": null, \"before\": null, \"next\": \"next_var\"}",
     "", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's trained weight 1 is not \"w2\" as it is",
   {{MANIFEST,
     "{\"name\": \"w2\", \"dtype\": \"float32\", \"shape\": [8, 8], \"stages\": [1], \"owner\": 1, "
     "\"gradient\": \"w2.grad\", \"before\": \"w2.grad.before\"}",
     "{\"name\": \"w2\", \"dtype\": \"float32\", \"shape\": [8, 8], \"stages\": [1], \"owner\": 1, "
     "\"gradient\": \"w1.grad\", \"before\": \"w2.grad.before\"}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's trained weight 1 is not \"w2\" as it is",
   {{MANIFEST, "\"gradient\": \"w2.grad\", \"before\": \"w2.grad.before\"}",
     "\"gradient\": \"w2.grad\", \"before\": \"w1.grad.before\"}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's trained weight 2 is not \"g\" as it is",
   {{MANIFEST, "\"gradient\": \"w2.grad\", \"before\": \"w2.grad.before\"}",
     "\"gradient\": \"w2.grad\", \"before\": \"w2.grad.before\"}, {\"name\": \"w2\", \"dtype\": "
     "\"float32\", \"shape\": [8, 8], \"stages\": [1], \"owner\": 1, \"gradient\": \"w2.grad\", "
     "\"before\": \"w2.grad.before\"}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest trains \"w1\" twice",
   {{MANIFEST, "\"gradient\": null, \"before\": null, \"next\": \"next_var\"}",
     "\"gradient\": null, \"before\": null, \"next\": \"next_var\"}, {\"name\": \"w1\", \"dtype\": "
     "\"float32\", \"shape\": [8, 8], \"stages\": [0, 1], \"owner\": 0, \"gradient\": null, "
     "\"before\": null}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "a stage keeps \"q\" twice, by the manifest, or computes it twice",
   {{MANIFEST,
     "{\"name\": \"q\", \"tensor\": \"q\", \"dtype\": \"float32\", \"shape\": [\"n\", 8]}\n        "
     "],",
     "{\"name\": \"q\", \"tensor\": \"q\", \"dtype\": \"float32\", \"shape\": [\"n\", 8]},\n       "
     "   {\"name\": \"q\", \"tensor\": \"q\", \"dtype\": \"float32\", \"shape\": [\"n\", 8]}\n     "
     "   ],",
     NULL}}},
  {PSPLIT_MISMATCH,
   "a stage keeps \"a\" twice, by the manifest, or computes it twice",
   {{MANIFEST, "{\"name\": \"a\", \"to\": [\"backward\"]},",
     "{\"name\": \"a\", \"to\": [\"backward\"]}, {\"name\": \"a\", \"to\": [\"backward\"]},",
     NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's trained weight 3 is not \"h\" as it is",
   {{MANIFEST, "\"weights\": [\n          \"w1\",\n          \"g\",\n          \"h\",",
     "\"weights\": [\n          \"w1\",\n          \"g\",", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: initializer \"gg\" is not the model's",
   {{FORWARD0, "float[8] g = ", "float[8] gg = ", NULL}}},
  {PSPLIT_MISMATCH,
   "what the manifest trains cannot be: the loss \"c\" has more than one element: give one that is "
   "summed or averaged, or a kind of loss",
   {{MANIFEST, "\"loss_output\": \"loss\"", "\"loss_output\": \"c\"", NULL}}},
  {PSPLIT_OK, "", {{MANIFEST, "\"batch_norm\": \"as-is\"", "\"batch_norm\": \"train\"", NULL}}},
  {PSPLIT_OK, "", {{MANIFEST, "\"dropout\": \"as-is\"", "\"dropout\": \"train\"", NULL}}},
  {PSPLIT_MISMATCH,
   "what the manifest trains cannot be: training needs a loss or the output that is one",
   {{MANIFEST, "\"loss\": null", "\"loss\": \"mse:\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest gives \"d.shape\", to be kept, another type than the model",
   {{MANIFEST, "\"dtype\": \"int64\", \"shape\": [2]", "\"dtype\": \"int32\", \"shape\": [2]",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: the manifest gives \"d\", to be kept, another type than the model",
   {{MANIFEST, "{\"name\": \"d.shape\", \"tensor\": \"d.shape\"",
     "{\"name\": \"d.shape\", \"tensor\": \"d\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: \"q\", which is to be kept, is not \"zz\"",
   {{MANIFEST,
     "{\"name\": \"q\", \"tensor\": \"q\", \"dtype\": \"float32\", \"shape\": [\"n\", 8]}",
     "{\"name\": \"zz\", \"tensor\": \"q\", \"dtype\": \"float32\", \"shape\": [\"n\", 8]}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: \"q\" crosses with a shape that is not the model's",
   {{FORWARD1, "float[n,8] q,", "float[m,8] q,", NULL}}},
  {PSPLIT_INVALID,
   "out/pipeline.json: training.masks[0].dtype: is missing",
   {{MANIFEST, "\"masks\": []",
     "\"masks\": [{\"name\": \"x\", \"tensor\": \"x\", \"stage\": 0, \"node\": \"a\", \"number\": "
     "0, \"kind\": \"keep\", \"ratio\": 0.5, \"shape\": []}]",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: node a is not to be computed again, by the manifest's \"recompute\"",
   {{MANIFEST, "\"recompute\": \"all\"", "\"recompute\": \"heavy\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: node a is not to be computed again, by the manifest's \"recompute\"",
   {{MANIFEST, "\"recompute\": \"all\"", "\"recompute\": \"none\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: node y is not the model's",
   {{AGAIN0, "[a] a = MatMul (x, w1)", "[a] a = MatMul (x, w1) [y] y = Dropout (a)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{AGAIN0, "=> (float[n,8] a", "=> (float[n,8] x, float[n,8] a", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: initializer \"g\" is not the model's",
   {{AGAIN0, "float[8] mean = {0", "float[8] g = {0,0,0,0,0,0,0,0}, float[8] mean = {0", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.again.onnx: initializer \"w1\" is not the model's",
   {{AGAIN0, "float[8] mean = {0", "float[8,8] w1 = random(1), float[8] mean = {0", NULL}}},
  {PSPLIT_MISMATCH,
   "stage1.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{MANIFEST,
     "{\"name\": \"w2\", \"from\": \"weights\"},\n            {\"name\": \"q\", \"from\": "
     "\"stash\"}",
     "{\"name\": \"q\", \"from\": \"stash\"}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage1.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{MANIFEST, "{\"name\": \"c\", \"to\": [\"backward\"]}", "{\"name\": \"c\", \"to\": []}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: output \"g.grad\" does not go where the manifest says",
   {{MANIFEST, "{\"name\": \"g.grad\", \"to\": [\"update\"]}",
     "{\"name\": \"g.grad\", \"to\": [\"model\"]}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: stage 0: the manifest says 25 nodes, the file has 26",
   {{MANIFEST, "\"nodes\": 26", "\"nodes\": 25", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: stage 0: input \"g.grad.before\" is not the model's",
   {{BACKWARD0, "float[8] \"g.grad.before\"", "float[7] \"g.grad.before\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage1.backward.onnx: stage 1 sends \"g14\" twice to stage 0",
   {{MANIFEST, "{\"name\": \"g14\", \"to\": [0]}", "{\"name\": \"g14\", \"to\": [0, 0]}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.backward.onnx: stage 0: the manifest lists input \"g14\" twice",
   {{MANIFEST, "{\"name\": \"g14\", \"from\": 1}",
     "{\"name\": \"g14\", \"from\": 1}, {\"name\": \"g14\", \"from\": 1}", NULL}}},
  {PSPLIT_MISMATCH,
   "stage1.backward.onnx: stage 0: node l/grad.0 is in an earlier stage, and no duplicate that the "
   "manifest declares",
   {{MANIFEST, "\"file\": \"stage0.backward.onnx\"", "\"file\": \"stage1.backward.onnx\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage1.again.onnx has other inputs, outputs or nodes than the manifest says",
   {{MANIFEST, "\"file\": \"stage0.again.onnx\"", "\"file\": \"stage1.again.onnx\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.update.onnx is not the update by \"sgd\"",
   {{MANIFEST, "\"file\": \"stage1.update.onnx\"", "\"file\": \"stage0.update.onnx\"", NULL}}},
};

static const edited_split BY_INPUT[] = {
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest has the gradient of input \"x\" twice",
   {{MANIFEST, "{\"name\": \"x\", \"gradient\": \"x.grad\"}",
     "{\"name\": \"x\", \"gradient\": \"x.grad\"}, {\"name\": \"x\", \"gradient\": \"x.grad\"}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest's gradient of input \"x\" is another",
   {{MANIFEST, "{\"name\": \"x\", \"gradient\": \"x.grad\"}",
     "{\"name\": \"x\", \"gradient\": \"y.grad\"}", NULL}}},
  {PSPLIT_MISMATCH,
   "what the manifest trains cannot be: a gradient of \"z\" is asked for, but no input has this "
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
   "stage0.weights.onnx does not hold first values of weights as the model does",
   {{WEIGHTS0, "float[8,8] w1, float[8] k", "float[8,8] w1", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold first values of weights as the model does",
   {{WEIGHTS0, "=> (float[8,8] w1", "=> (float[8,7] w1", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold first values of weights as the model does",
   {{WEIGHTS0, "weights ()", "weights (float z)", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold first values of weights as the model does",
   {{WEIGHTS0, "weights ()", "other ()", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold first values of weights as the model does",
   {{WEIGHTS0, "> {}", "> { z = Relu (k) }", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold first values of weights as the model does",
   {{WEIGHTS0, "float[8] k = raw", "float[8] w2 = raw", NULL},
    {WEIGHTS0, "float[8] k", "float[8] w2", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold first values of weights as the model does",
   {{WEIGHTS0, "float[8] k = raw", "float[8] z = raw", NULL},
    {WEIGHTS0, "float[8] k", "float[8] z", NULL}}},
  {PSPLIT_MISMATCH,
   "initializer \"w1\" is in no stage",
   {{MANIFEST, "\"first_weights\": {\"file\": \"stage0.weights.onnx\"}", "\"first_weights\": null",
     NULL}}},
  {PSPLIT_MISMATCH,
   "stage1.weights.onnx does not hold first values of weights as the model does",
   {{MANIFEST, "\"stage0.weights.onnx\"", "\"stage1.weights.onnx\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold first values of weights as the model does",
   {{MANIFEST, "\"stage1.weights.onnx\"", "\"stage0.weights.onnx\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage0.weights.onnx does not hold first values of weights as the model does",
   {{MANIFEST, "\"weight_form\": \"input\"", "\"weight_form\": \"default\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0: initializer \"k\" is not the model's",
   {{FORWARD0, "float[n,8] a) {", "float[n,8] a) <float[8] k = {1,1,1,1,1,1,1,1}> {", NULL}}},
  {PSPLIT_INVALID,
   "out/stage0.onnx: node q reads \"k\", which nothing defines",
   {{FORWARD0, ", float[8] k)", ")", NULL}}},
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
};

static const edited_split BY_BRANCH[] = {
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  {PSPLIT_MISMATCH,
   "what the manifest trains cannot be",
   {{MANIFEST, "\"branch\": \"then\"", "\"branch\": \"else\"", NULL}}},
};

static void with_states(void **state) {
  (void)state;
  psplit_training_form form;
  psplit_training_form_init(&form);
  form.optimizer = "sgd";
  form.recompute = PSPLIT_RECOMPUTE_ALL;
  split(STATES, &form, PSPLIT_BOUNDARY_IO);
  read_split(OF_STATES, N_OF_STATES);
  each_is_told(BY_STATES, sizeof BY_STATES / sizeof *BY_STATES, false);
  each_is_told(MORE_BY_STATES, sizeof MORE_BY_STATES / sizeof *MORE_BY_STATES, false);
  forget();
}

static void with_weights_apart(void **state) {
  (void)state;
  psplit_training_form form;
  psplit_training_form_init(&form);
  form.weights = PSPLIT_WEIGHTS_INPUT;
  form.optimizer = "momentum";
  form.recompute = PSPLIT_RECOMPUTE_HEAVY;
  form.weight_gradients = PSPLIT_WEIGHT_GRADIENTS_APART;
  split(APART, &form, PSPLIT_BOUNDARY_SENDRECV);
  read_split(OF_APART, N_OF_APART);
  each_is_told(BY_APART, sizeof BY_APART / sizeof *BY_APART, false);
  forget();
}

static void with_gradients_of_inputs(void **state) {
  (void)state;
  psplit_training_form form;
  psplit_training_form_init(&form);
  split(GIVEN, &form, PSPLIT_BOUNDARY_IO);
  read_split(OF_GIVEN, N_OF_GIVEN);
  each_is_told(BY_INPUT, sizeof BY_INPUT / sizeof *BY_INPUT, false);
  forget();
}

static void with_a_default_and_others_operators(void **state) {
  (void)state;
  psplit_training_form form;
  psplit_training_form_init(&form);
  form.recompute = PSPLIT_RECOMPUTE_ALL;
  split(FROZEN, &form, PSPLIT_BOUNDARY_IO);
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
  split(BRANCH, &form, PSPLIT_BOUNDARY_IO);
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
  const struct CMUnitTest tests[] = {TEST(with_states), TEST(with_weights_apart),
                                     TEST(with_gradients_of_inputs), TEST(with_a_branch),
                                     TEST(with_a_default_and_others_operators)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
