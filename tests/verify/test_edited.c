/* Why: what is spoilt in a split is told, by the line that says what. The stages and the manifest
 * are edited as text; mutants.py spoils what only bytes can say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/verify.h>
#include <string.h>

#include "edited_two.h"
#include "scratch.h"
#include "text_model.h"

/* Nodes without outputs, an input with a default, a tensor with two annotations. */
static const char MODEL[] =
  "<ir_version: 8, opset_import: [\"\": 17, \"local\": 1]>\n"
  "main (float[2,8] x, bool flag, float[8] d) => (float[2,8] y, float[2,8] c) @{\n"
  "  quantization_annotation: [\n"
  "    {tensor_name: \"c\", quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"s\"]},\n"
  "    {tensor_name: \"c\", quant_parameter_tensor_names: [\"ZERO_POINT_TENSOR\": \"s\"]},\n"
  "    {tensor_name: \"a\", quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"s\"]}]\n"
  "} <float[8,8] w = random(1), float[8] d = {1, 1, 1, 1, 1, 1, 1, 1}, float[1] s = {1},\n"
  "   float[2,8] a, float[2,8] b> {\n"
  "  [a] a = MatMul (x, w)\n"
  "  [k] k = Constant <value = float[8] \"\" = {1, 1, 1, 1, 1, 1, 1, 1}> ()\n"
  "  [b] b = local.Layer (a, k)\n"
  "  [p] = local.Watch (a)\n"
  "  [q] \"\" = local.Watch (a)\n"
  "  [f] f = If (flag) <then_branch = main () => (float[2,8] t) { t = Relu (b) },\n"
  "    else_branch = main () => (float[2,8] e) { e = Neg (b) }>\n"
  "  [c] c = Add (f, k)\n"
  "  [y0] y0 = Mul (c, d)\n"
  "  [y] y = MatMul (y0, w)\n"
  "}\n"
  "<domain: \"local\", opset_import: [\"\": 17]>\n"
  "Layer (X, W) => (Y) { M = Mul (X, W) Y = Tanh (M) }\n";

#define WITH_IR_VERSION(version)                                                      \
  "<ir_version: " version                                                             \
  ", opset_import: [\"\": 9]>\n"                                                      \
  "main (float[2,8] x, float[8,8] w, float[8,8] v) => (float[2,8] y, float[2,8] a)\n" \
  "<float[8,8] w = random(1), float[8,8] v = random(2)> {\n"                          \
  "  [a] a = MatMul (x, w)\n"                                                         \
  "  [b] b = Tanh (a)\n"                                                              \
  "  [y] y = MatMul (b, v)\n"                                                         \
  "}\n"

/* Before IR version 4, initializers are inputs, which nobody gives. */
static const char OLD[] = WITH_IR_VERSION("3");

/* From version 4 on, an initializer that is an input is a default, which the manifest lists. */
static const char DEFAULTS[] = WITH_IR_VERSION("4");

/* Nodes without outputs are told apart by what they are: several of them. */
static const char WATCHED[] =
  "<ir_version: 8, opset_import: [\"\": 17, \"other\": 1]>\n"
  "main (float[2,8] x) => (float[2,8] y) {\n"
  "  [a] a = Neg (x)\n"
  "  [s1] = other.Watch (a)\n"
  "  [s2] = other.Log (a)\n"
  "  [s3] = other.Watch (x)\n"
  "  [s4] = other.Log (x)\n"
  "  [s5] = other.Count (a)\n"
  "  [s6] = other.Count (x)\n"
  "  [y] y = Relu (a)\n"
  "}\n";

static const edited_split SENDRECV[] = {
#define SEND "tag = 0, peer = 1, tensor = \"b\", dtype = 1, shape = [2, 8]> (b)"
#define ROW_B "{\"name\": \"b.recv0\", \"tensor\": \"b\", \"from\": 0}"
#define ROW_D "{\"name\": \"d\", \"tensor\": \"d\", \"from\": \"model\"}"
#define BODY "y = Identity (x)"
#define LAST "domain: \"psplit\""
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  /* what a node of the boundary is */
  {PSPLIT_OK, "", {{0, ", dtype = 1", "", NULL}}},
  {PSPLIT_MISMATCH,
   "a Send node is not of the boundary's form",
   {{0, "tag = 0, peer", "peer", NULL}}},
  {PSPLIT_MISMATCH,
   "a Send node is not of the boundary's form",
   {{0, "tag = 0", "tag = -1", NULL}}},
  {PSPLIT_MISMATCH, "a Send node is not of the boundary's form", {{0, "peer = 1, ", "", NULL}}},
  {PSPLIT_MISMATCH,
   "a Send node is not of the boundary's form",
   {{0, "tensor = \"b\", ", "", NULL}}},
  {PSPLIT_MISMATCH, "not of the boundary's form", {{0, "8]> (b)", "8]> (b, a)", NULL}}},
  {PSPLIT_MISMATCH, "not of the boundary's form", {{0, "8]> (b)", "8]> ()", NULL}}},
  {PSPLIT_MISMATCH, "not of the boundary's form", {{0, "8]> (b)", "8]> (\"\")", NULL}}},
  {PSPLIT_MISMATCH,
   "not of the boundary's form",
   {{0, "\"b.send1\" = ", "\"b.send1\", z = ", NULL}}},
  {PSPLIT_MISMATCH,
   "is not a transfer of the manifest",
   {{0, "tensor = \"b\"", "tensor = \"a\"", NULL}}},
  {PSPLIT_MISMATCH,
   "is not a transfer of the manifest",
   {{0, "tensor = \"b\"", "tensor = \"bb\"", NULL}}},
  {PSPLIT_MISMATCH, "is not a transfer of the manifest", {{0, "peer = 1", "peer = 0", NULL}}},
  {PSPLIT_MISMATCH, "does not send \"b\" to 1", {{0, "dtype = 1", "dtype = 99", NULL}}},
  {PSPLIT_MISMATCH, "does not send \"b\" to 1", {{0, "dtype = 1", "dtype = 7", NULL}}},
  {PSPLIT_MISMATCH,
   "",
   {{1, "psplit.Recv", "psplit.Send", NULL}, {1, "Recv <tag", "Send <tag", NULL}}},
  /* the function that it calls */
  {PSPLIT_MISMATCH,
   "function 1 is not the model's",
   {{0, BODY, "z = Identity (x)\n y = Identity (z)", LAST}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, BODY, "y = Identity <a = 1> (x)", LAST}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, BODY, "y, z = Identity (x)", LAST}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, BODY, "y = Identity (x, x)", LAST}}},
  {PSPLIT_OK, "", {{0, BODY, "y = \"ai.onnx\".Identity (x)", LAST}}},
  {PSPLIT_OK, "", {{0, BODY, "y = CastLike (x, x)", LAST}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, BODY, "y = CastLike (x)", LAST}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, BODY, "y = CastLike (x, \"\")", LAST}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, BODY, "y = CastLike (x, x, x)", LAST}}},
  {PSPLIT_MISMATCH,
   "function 1 is not the model's",
   {{0, "(x) => (y)", "(x, z) => (y)", LAST}, {0, BODY, "y = CastLike (x, z)", LAST}}},
  {PSPLIT_MISMATCH,
   "function 1 is not the model's",
   {{0, BODY, "z = Cast <to = 10> (x)\n y = CastLike (x, z)", LAST}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, BODY, "y = Identity:o (x)", LAST}}},
  {PSPLIT_MISMATCH,
   "function 1 is not the model's",
   {{0, LAST, LAST ", overload: \"o\"", NULL}, {0, "psplit.Send <", "psplit.Send:o <", NULL}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, BODY, "y = Neg (x)", LAST}}},
  {PSPLIT_MISMATCH,
   "function 1 is not the model's",
   {{0, BODY, "y = other.Identity (x)", LAST},
    {0, LAST, LAST ", opset_import: [\"\": 17, \"other\": 1]", NULL}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, "(x) => (y)", "(x, z) => (y)", LAST}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, "(x) => (y)", "(x) => (y, x)", LAST}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, "(x) => (y)", "(x) => (x)", LAST}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, LAST, "domain: \"other\"", NULL}}},
  {PSPLIT_MISMATCH, "function 1 is not the model's", {{0, ",\n  " LAST, "", NULL}}},
  {PSPLIT_MISMATCH,
   "function 1 is not the model's",
   {{0, "Send <tag", "Other <tag", LAST}, {0, "psplit.Send", "psplit.Other", NULL}}},
  {PSPLIT_MISMATCH,
   "opset import 2 is not the model's",
   {{0, "\"psplit\": 1", "\"psplit\": 2", NULL}}},
  {PSPLIT_MISMATCH,
   "opset import 2 is not the model's",
   {{0, "\"psplit\": 1", "{version: 17}", NULL}}},
  /* ports */
  {PSPLIT_MISMATCH,
   "\"b\" crosses as no known type",
   {{0, "(float[2,8] \"b.send1\")", "(seq(float[2,8]) \"b.send1\")", NULL}}},
  {PSPLIT_MISMATCH,
   "from stage 1, which is not before it",
   {{1, "(bool flag,", "(float[2,8] z, bool flag,", NULL},
    {MANIFEST, ROW_B, ROW_B ", {\"name\": \"z\", \"tensor\": \"a\", \"from\": 1}", NULL}}},
  {PSPLIT_MISMATCH,
   "which stage 0 does not send",
   {{1, "(bool flag,", "(float[2,8] z, bool flag,", NULL},
    {MANIFEST, ROW_B, ROW_B ", {\"name\": \"z\", \"tensor\": \"a\", \"from\": 0}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest lists 4 inputs, the file has 3",
   {{MANIFEST, ROW_B, ROW_B ", {\"name\": \"zz\", \"tensor\": \"x\", \"from\": \"model\"}", NULL}}},
  {PSPLIT_MISMATCH,
   "does not list input \"flag\"",
   {{MANIFEST, "{\"name\": \"flag\", \"tensor\": \"flag\", \"from\": \"model\"},", "", NULL}}},
  {PSPLIT_MISMATCH,
   "output \"b.send1\" is not the model's",
   {{MANIFEST, "\"to\": [1]", "\"to\": [1, \"model\"]", NULL}}},
  {PSPLIT_MISMATCH,
   "output \"y\" is not the model's",
   {{MANIFEST, "\"tensor\": \"y\"", "\"tensor\": \"c\"", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 0 does not send \"b\" to 1",
   {{MANIFEST, "\"to\": [1]", "\"to\": []", NULL}}},
  {PSPLIT_MISMATCH,
   "input \"d\" is not the model's",
   {{1, "  float[8] d = {1, 1, 1, 1, 1, 1, 1, 1},\n", "", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest says that input \"d\" has no default",
   {{MANIFEST, ROW_B, ROW_B ", " ROW_D, NULL},
    {MANIFEST, ROW_D, "", "\"optional_inputs\": [\n        "}}},
  /* the manifest's own inputs */
  {PSPLIT_MISMATCH,
   "lists input \"x\", which is there only once",
   {{MANIFEST, "{\"name\": \"x\", \"dtype\": \"float32\", \"shape\": [2, 8]},",
     "{\"name\": \"x\", \"dtype\": \"float32\", \"shape\": [2, 8]}, {\"name\": \"x\", \"dtype\": "
     "\"float32\", \"shape\": [2, 8]},",
     NULL}}},
  {PSPLIT_MISMATCH,
   "lists input \"a\", which is not an input of the model",
   {{MANIFEST, "{\"name\": \"x\", \"dtype\"", "{\"name\": \"a\", \"dtype\"", NULL}}},
  {PSPLIT_MISMATCH,
   "input \"d\" has no default",
   {{MANIFEST, "\"shape\": []}",
     "\"shape\": []}, {\"name\": \"d\", \"dtype\": \"float32\", \"shape\": [8]}", NULL},
    {MANIFEST, "{\"name\": \"d\", \"dtype\": \"float32\", \"shape\": [8]}", "",
     "\"optional_inputs\""}}},
  {PSPLIT_MISMATCH,
   "input \"flag\" has a default",
   {{MANIFEST, "{\"name\": \"d\", \"dtype\"",
     "{\"name\": \"flag\", \"dtype\": \"bool\", \"shape\": []}, {\"name\": \"d\", \"dtype\"", NULL},
    {MANIFEST, ",\n    {\"name\": \"flag\", \"dtype\": \"bool\", \"shape\": []}", "", NULL}}},
  /* nodes without outputs are told apart by all that they are */
  {PSPLIT_MISMATCH,
   "node p is in no stage",
   {{0, "  [p] = local.Watch (a)\n", "", NULL}, {MANIFEST, "\"nodes\": 5", "\"nodes\": 4", NULL}}},
  {PSPLIT_MISMATCH,
   "node p is not in the model",
   {{0, "[p] = local.Watch", "[p] = local.Wait", NULL}}},
  {PSPLIT_MISMATCH,
   "node p is not in the model",
   {{0, "[p] = local.Watch (a)", "[p] = local.Watch (a)\n  [p] = local.Watch (a)", NULL}}},
  {PSPLIT_MISMATCH,
   "node q is not in the model",
   {{0, "[q] \"\" = local.Watch (a)", "[q] \"\" = local.Watch (x)", NULL}}},
  {PSPLIT_MISMATCH,
   "node p is in 1 stages, the manifest says 2",
   {{MANIFEST, "\"also\": [1]}",
     "\"also\": [1]}, {\"index\": 3, \"node\": \"p\", \"stage\": 0, \"also\": [1]}", NULL}}},
  /* annotations of one tensor: all, and in order */
  {PSPLIT_MISMATCH,
   "quantization annotation of \"c\" is not the model's",
   {{1, "SCALE_TENSOR", "OTHER", NULL}}},
  {PSPLIT_MISMATCH,
   "quantization annotation of \"c\" is missing",
   {{1, ", {tensor_name: \"c\", quant_parameter_tensor_names: [\"ZERO_POINT_TENSOR\": \"s\"]}", "",
     NULL}}},
  {PSPLIT_MISMATCH,
   "quantization annotation of \"c\" is not the model's",
   {{1, "[\"ZERO_POINT_TENSOR\": \"s\"]}",
     "[\"ZERO_POINT_TENSOR\": \"s\"]}, {tensor_name: \"c\", quant_parameter_tensor_names: "
     "[\"ZERO_POINT_TENSOR\": \"s\"]}",
     NULL}}},
  {PSPLIT_MISMATCH,
   "quantization annotation of \"\" is not the model's",
   {{1, "tensor_name: \"c\", ", "", NULL}}},
  {PSPLIT_MISMATCH,
   "quantization annotation of \"zz\" is not the model's",
   {{1, "tensor_name: \"c\"", "tensor_name: \"zz\"", NULL}}},
  /* initializers */
  {PSPLIT_MISMATCH,
   "\"s\" is now a graph input",
   {{1, "(bool flag,", "(float[1] s, bool flag,", NULL}}},
  {PSPLIT_MISMATCH,
   "\"d\" is no longer a graph input",
   {{1, " float[8] d, float", " float", NULL}}},
  {PSPLIT_MISMATCH,
   "initializer \"b.recv0\" is not the model's",
   {{1, "  float[1] s = {1},",
     "  float[1] s = {1}, float[2,8] \"b.recv0\" = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
     "1},",
     NULL}}},
};

static const edited_split IO[] = {
  {PSPLIT_MISMATCH,
   "\"b\" crosses as float64, the model says float32",
   {{0, "float[2,8] b", "double[2,8] b", NULL},
    {1, "float[2,8] b", "double[2,8] b", NULL},
    {MANIFEST, "\"dtype\": \"float32\", \"shape\": [2, 8], \"bytes\": 64",
     "\"dtype\": \"float64\", \"shape\": [2, 8], \"bytes\": 128",
     "\"tensor\": \"b\", \"from\": 0, \"to\": 1"}}},
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  {PSPLIT_MISMATCH,
   "stage 1: opset import",
   {{1, "\"local\": 1", "\"local\": 1, \"psplit\": 1", NULL}}},
  {PSPLIT_MISMATCH,
   "initializer \"b\" is not the model's",
   {{1, "  float[8] d = {",
     "  float[2,8] b = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, float[8] d = {", NULL}}},
  {PSPLIT_MISMATCH,
   "output \"b\" is not the model's",
   {{MANIFEST, "\"to\": [1]", "\"to\": [1, \"model\"]", NULL}}},
  {PSPLIT_MISMATCH,
   "is missing among the transfers",
   {{1, "(bool flag,", "(float[2,8] a, bool flag,", NULL},
    {0, "=> (float[2,8] b)", "=> (float[2,8] b, float[2,8] a)", NULL},
    {MANIFEST, "{\"name\": \"b\", \"tensor\": \"b\", \"from\": 0}",
     "{\"name\": \"b\", \"tensor\": \"b\", \"from\": 0}, {\"name\": \"a\", \"tensor\": \"a\", "
     "\"from\": 0}",
     NULL},
    {MANIFEST, "{\"name\": \"b\", \"tensor\": \"b\", \"to\": [1]}",
     "{\"name\": \"b\", \"tensor\": \"b\", \"to\": [1]}, {\"name\": \"a\", \"tensor\": \"a\", "
     "\"to\": [1]}",
     NULL}}},
  /* a tensor that has a default where it arrives */
  {PSPLIT_MISMATCH,
   "\"d\" is received and an initializer",
   {{MANIFEST, "\"bytes\": 64}",
     "\"bytes\": 64}, {\"tag\": 1, \"tensor\": \"d\", \"from\": 0, \"to\": 1, \"dtype\": "
     "\"float32\", \"shape\": [8], \"bytes\": 32}",
     NULL},
    {0, "  float[8,8] w = ", "  float[8] d = {1, 1, 1, 1, 1, 1, 1, 1}, float[8,8] w = ", NULL},
    {MANIFEST, "\"optional_inputs\": []",
     "\"optional_inputs\": [{\"name\": \"d\", \"tensor\": \"d\", \"from\": \"model\"}]", NULL},
    {0, "(float[2,8] x)", "(float[2,8] x, float[8] d)", NULL},
    {0, "=> (float[2,8] b)", "=> (float[2,8] b, float[8] d)", NULL},
    {MANIFEST, "{\"name\": \"d\", \"tensor\": \"d\", \"from\": \"model\"}",
     "{\"name\": \"d\", \"tensor\": \"d\", \"from\": 0}", "\"index\": 1"},
    {MANIFEST, "\"to\": [1]}", "\"to\": [1]}, {\"name\": \"d\", \"tensor\": \"d\", \"to\": [1]}",
     NULL}}},
};

static const edited_split OF_OLD[] = {
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  {PSPLIT_MISMATCH,
   "(ir_version) is not the model's",
   {{0, "ir_version: 3", "ir_version: 4", NULL}}},
  {PSPLIT_MISMATCH, "\"w\" is no longer a graph input", {{0, ", float[8,8] w)", ")", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest says that input \"w\" has no default",
   {{MANIFEST, "\"shape\": [2, 8]}",
     "\"shape\": [2, 8]}, {\"name\": \"w\", \"dtype\": \"float32\", \"shape\": [8, 8]}", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest says that input \"w\" has no default",
   {{MANIFEST, "{\"name\": \"x\", \"tensor\": \"x\", \"from\": \"model\"}",
     "{\"name\": \"x\", \"tensor\": \"x\", \"from\": \"model\"}, {\"name\": \"w\", \"tensor\": "
     "\"w\", \"from\": \"model\"}",
     NULL}}},
};

static const edited_split OF_DEFAULTS[] = {
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest does not list the model's input \"w\"",
   {{MANIFEST, "{\"name\": \"w\", \"dtype\": \"float32\", \"shape\": [8, 8]},", "", NULL},
    {MANIFEST, "{\"name\": \"w\", \"tensor\": \"w\", \"from\": \"model\"}", "", NULL}}},
};

static const edited_split OF_WATCHED[] = {
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  {PSPLIT_MISMATCH, "node s2 is not in the model", {{0, "Log (a)", "Log (a, a)", NULL}}},
};

static const char *const watched_pins[] = {"[as]*=0", "y=1"};
static const char *const pins[] = {"[abkpq]=0", "[cyf]*=1"};
static const char *const old_pins[] = {"[ab]=0", "y=1"};

static void over_send_and_recv(void **state) {
  (void)state;
  split_in_two(MODEL, pins, 2, PSPLIT_BOUNDARY_SENDRECV);
  each_is_told(SENDRECV, sizeof SENDRECV / sizeof *SENDRECV, true);
  forget();
}

static void over_inputs_and_outputs(void **state) {
  (void)state;
  split_in_two(MODEL, pins, 2, PSPLIT_BOUNDARY_IO);
  each_is_told(IO, sizeof IO / sizeof *IO, true);
  forget();
}

static void of_old_models(void **state) {
  (void)state;
  split_in_two(OLD, old_pins, 2, PSPLIT_BOUNDARY_IO);
  each_is_told(OF_OLD, sizeof OF_OLD / sizeof *OF_OLD, true);
  forget();
}

static void of_defaults(void **state) {
  (void)state;
  split_in_two(DEFAULTS, old_pins, 2, PSPLIT_BOUNDARY_IO);
  each_is_told(OF_DEFAULTS, sizeof OF_DEFAULTS / sizeof *OF_DEFAULTS, true);
  forget();
}

static void of_nodes_without_outputs(void **state) {
  (void)state;
  split_in_two(WATCHED, watched_pins, 2, PSPLIT_BOUNDARY_IO);
  each_is_told(OF_WATCHED, sizeof OF_WATCHED / sizeof *OF_WATCHED, true);
  forget();
}

static void one_file(void **state) {
  (void)state;
  proves_itself(MODEL, OLD);
  proves_itself(OLD, MODEL);
}

/* The model that was split is another one: that is said before the first difference. */
static void is_told(const char *path, const char *text, const char *beginning) {
  psplit_diag diag = {0};
  psplit_model *other;
  write_model_text(path, text);
  assert_int_equal(psplit_model_open(path, NULL, &diag, &other), PSPLIT_OK);
  assert_int_equal(psplit_verify("out", other, NULL, &diag, NULL), PSPLIT_MISMATCH);
  if (strncmp(diag.message, beginning, strlen(beginning)) != 0) fail_msg("%s", diag.message);
  psplit_model_close(other);
}

static void of_another_model(void **state) {
  (void)state;
#define HEAD "<ir_version: 4, opset_import: [\"\": 9]>\nmain "
  split_in_two(
    HEAD "(float[2,8] x) => (float[2,8] y) { [a] a = Abs (x) [b] b = Neg (a) [y] y = Abs (b) }",
    old_pins, 2, PSPLIT_BOUNDARY_IO);
#define NOT(name) name " is not the model that was split (model.onnx, by pipeline.json): it has "
  is_told("other.onnx", HEAD "(float[2,8] z) => (float[2,8] y) { y = Abs (z) }",
          NOT("other.onnx") "input \"z\", which that model lacks: ");
  is_told("other.onnx", HEAD "(float[2,8] x) => (float[2,8] u) { u = Abs (x) }",
          NOT("other.onnx") "output \"u\", which that model lacks: ");
  is_told("other.onnx", HEAD "(float[2,8] x) => (float[2,8] y) { y = Abs (x) }",
          NOT("other.onnx") "1 node instead of 3: transfer 0: ");
  is_told(
    "sub.onnx",
    HEAD
    "(float[2,8] x) => (float[2,8] y) { [a] a = Abs (x) [b] b = Exp (a) [y] y = Abs (b) "
    "}",
    "pipeline.json describes model.onnx, and this is sub.onnx: stage 0: node b is not as in ");
  is_told("model.onnx",
          HEAD
          "(float[2,8] x) => (float[2,8] y) { [a] a = Abs (x) [b] b = Exp (a) [y] y = Abs (b) "
          "}",
          "stage 0: node b is not as in ");
  forget();
}

static void what_is_asked_wrongly(void **state) {
  (void)state;
  const psplit_inline_if taken = {.node = "f", .then_branch = true};
  const psplit_read_options inlining = {
    .struct_size = sizeof inlining, .inline_ifs = &taken, .n_inline_ifs = 1};
  const psplit_read_options no_reading = {.struct_size = 1};
  const psplit_verify_options none = {.struct_size = 1},
                              of_none = {.struct_size = sizeof of_none, .read = &no_reading};
  psplit_diag diag = {0};
  psplit_model *inlined;
  split_in_two(MODEL, pins, 2, PSPLIT_BOUNDARY_IO);
  assert_int_equal(psplit_verify("out", model, &none, &diag, NULL), PSPLIT_USAGE);
  diag = (psplit_diag){0};
  assert_int_equal(psplit_verify("out", model, &of_none, &diag, NULL), PSPLIT_USAGE);
  diag = (psplit_diag){0};
  assert_int_equal(psplit_model_open("model.onnx", &inlining, &diag, &inlined), PSPLIT_OK);
  assert_int_equal(psplit_verify("out", inlined, NULL, &diag, NULL), PSPLIT_USAGE);
  assert_string_equal(diag.message, "a proof needs the model as its file has it");
  psplit_model_close(inlined);
  forget();
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {
    TEST(over_send_and_recv), TEST(over_inputs_and_outputs),  TEST(of_old_models),
    TEST(of_defaults),        TEST(of_nodes_without_outputs), TEST(one_file),
    TEST(of_another_model),   TEST(what_is_asked_wrongly)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
