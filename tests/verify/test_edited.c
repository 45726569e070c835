/* Why: what is spoilt in a split is told, by the line that says what. The stages and the manifest
 * are edited as text; mutants.py spoils what only bytes can say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/emit.h>
#include <psplit/passes.h>
#include <psplit/verify.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "edited.h"
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

/* What may have copies and what may not; values of all kinds; one node without outputs, and one
 * annotation; an input whose default is sparse. */
static const char COPIES[] =
  "<ir_version: 8, producer_name: \"p\", opset_import: [\"\": 17, \"local\": 1, \"other\": 1,\n"
  "  \"ai.onnx.ml\": 3, \"com.microsoft\": 1]>\n"
  "main (float[2,8] x, bool flag, seq(float[2,8]) q, map(int64, float) m, opaque(dom, nm) o,\n"
  "      sparse_tensor(float[4]) sp, optional(float[3]) op, float[4] e) => (float[2,8] y) @{\n"
  "  quantization_annotation: [\n"
  "    {tensor_name: \"c\", quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"w\"]}],\n"
  "  sparse_initializer: [{values: float[1] s {5}, indices: int64[1] {2}, dims: [8]},\n"
  "                       {values: float[1] e {5}, indices: int64[1] {2}, dims: [4]}]\n"
  "} <float[1] w = {1}, float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} c0> {\n"
  "  [c] c = other.Mix (x, flag, q, m, o, sp, op)\n"
  "  [s] = other.Watch (c)\n"
  "  [b1] b1 = local.Tame (x)\n"
  "  [b2] b2 = local.Drawn (x)\n"
  "  [f1] f1 = If (flag) <then_branch = main () => (t1) { t1 = local.Tame (x) },\n"
  "    else_branch = main () => (e1) { e1 = Neg (x) }>\n"
  "  [f2] f2 = If (flag) <then_branch = main () => (t2) { t2 = Bernoulli (x) },\n"
  "    else_branch = main () => (e2) { e2 = Neg (x) }>\n"
  "  [b3] b3 = \"ai.onnx.ml\".Scaler (x)\n"
  "  [b4] b4 = \"com.microsoft\".FastGelu (x)\n"
  "  [b5] b5 = Multinomial (x)\n"
  "  [b6] b6 = other.Op (x)\n"
  "  [c0] c0 = other.Join (c, b1, b2, f1, f2, b3, b4, b5, b6)\n"
  "  [y1] y1 = other.Take (c0, s, e, x, flag)\n"
  "  [y] y = Relu (y1)\n"
  "}\n"
  "<domain: \"local\", opset_import: [\"\": 17, \"local\": 1]>\n"
  "Tame (X) => (Y) { Y = Tanh (X) }\n"
  "<domain: \"local\", opset_import: [\"\": 17, \"local\": 1]>\n"
  "Drawn (X) => (Y) { M = local.Tame (X) Y = RandomNormalLike (M) }\n";

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

enum { N_FILES = 3, MANIFEST = 2 };

static const char *const PATHS[] = {"out/stage0.onnx", "out/stage1.onnx", "out/pipeline.json"};

static void split(const char *text, const char *const *pins, size_t n_pins,
                  psplit_boundary boundary) {
  psplit_diag diag = {0};
  psplit_planner *planner = NULL;
  psplit_planner_options planning;
  psplit_planner_options_init(&planning);
  planning.n_stages = 2;
  planning.pins = pins;
  planning.n_pins = n_pins;
  const psplit_emit_options emitting = {.struct_size = sizeof emitting,
                                        .boundary = boundary,
                                        .weights = PSPLIT_WEIGHTS_INLINE,
                                        .no_sync = true};
  write_model_text("model.onnx", text);
  psplit_code code = psplit_model_open("model.onnx", NULL, &diag, &model);
  if (code == PSPLIT_OK) code = psplit_planner_create(model, &planning, &diag, &planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(planner, NULL, &diag);
  if (code == PSPLIT_OK)
    code = psplit_emit(model, psplit_planner_plan(planner), "out", &emitting, &diag);
  if (code != PSPLIT_OK) fail_msg("%s", diag.message);
  psplit_planner_destroy(planner);
  read_split(PATHS, N_FILES);
}

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
   "is no transfer of the manifest",
   {{0, "tensor = \"b\"", "tensor = \"a\"", NULL}}},
  {PSPLIT_MISMATCH,
   "is no transfer of the manifest",
   {{0, "tensor = \"b\"", "tensor = \"bb\"", NULL}}},
  {PSPLIT_MISMATCH, "is no transfer of the manifest", {{0, "peer = 1", "peer = 0", NULL}}},
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
  {PSPLIT_MISMATCH,
   "function 1 is not the model's",
   {{0, "Send <tag", "Other <tag", LAST}, {0, "psplit.Send", "psplit.Other", NULL}}},
  {PSPLIT_MISMATCH,
   "opset import 2 is not the model's",
   {{0, "\"psplit\": 1", "\"psplit\": 2", NULL}}},
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
   "lists input \"a\", which is none of the model's",
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

/* A copy of the model's node `index` in stage 1. */
#define ONE_SEND "psplit.Send <tag = 0, peer = 1, tensor = \"c0\", dtype = 1> (c0)"
#define TWO_SENDS "[\"c0.send1\"] \"c0.send1\" = " ONE_SEND " z = " ONE_SEND
#define COPY(index, name, node)                                                           \
  {                                                                                       \
    {1, "  [y1]", "  [" name "] " node "\n  [y1]", NULL},                                 \
      {MANIFEST, "\"nodes\": 2", "\"nodes\": 3", "\"index\": 1"},                         \
      {MANIFEST, "\"duplicated_nodes\": 0", "\"duplicated_nodes\": 1", "\"index\": 1"}, { \
      MANIFEST, "\"transfers\"", ROW_OF(index, name, "1") "\"transfers\"", NULL           \
    }                                                                                     \
  }
#define ROW_OF(index, name, also)                              \
  "\"duplicates\": [{\"index\": " #index ", \"node\": \"" name \
  "\", \"stage\": 0, \"also\": [" also "]}], "
#define MAY_DIFFER(name) "node " name " is in several stages, and its copies may not agree"

static const edited_split OF_COPIES[] = {
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  {PSPLIT_OK, "", COPY(2, "b1", "b1 = local.Tame (x)")},
  {PSPLIT_MISMATCH, MAY_DIFFER("b2"), COPY(3, "b2", "b2 = local.Drawn (x)")},
  {PSPLIT_MISMATCH, MAY_DIFFER("b5"), COPY(8, "b5", "b5 = Multinomial (x)")},
  {PSPLIT_MISMATCH, MAY_DIFFER("b6"), COPY(9, "b6", "b6 = other.Op (x)")},
  {PSPLIT_OK, "", COPY(6, "b3", "b3 = \"ai.onnx.ml\".Scaler (x)")},
  {PSPLIT_OK, "", COPY(7, "b4", "b4 = \"com.microsoft\".FastGelu (x)")},
  {PSPLIT_OK, "",
   COPY(4, "f1",
        "f1 = If (flag) <then_branch = main () => (t1) { t1 = local.Tame (x) }, "
        "else_branch = main () => (e1) { e1 = Neg (x) }>")},
  {PSPLIT_MISMATCH, MAY_DIFFER("f2"),
   COPY(5, "f2",
        "f2 = If (flag) <then_branch = main () => (t2) { t2 = Bernoulli (x) }, "
        "else_branch = main () => (e2) { e2 = Neg (x) }>")},
  /* rows of copies */
  {PSPLIT_MISMATCH,
   "a duplicate of node 99, which is not there",
   {{MANIFEST, "\"transfers\"",
     "\"duplicates\": [{\"index\": 99, \"node\": \"b1\", \"stage\": 0, \"also\": [1]}], "
     "\"transfers\"",
     NULL}}},
  {PSPLIT_MISMATCH,
   "node 2 a duplicate twice",
   {{MANIFEST, "\"transfers\"",
     "\"duplicates\": [{\"index\": 2, \"node\": \"b1\", \"stage\": 0, \"also\": [1]}, {\"index\": "
     "2, \"node\": \"b1\", \"stage\": 0, \"also\": [1]}], \"transfers\"",
     NULL}}},
  {PSPLIT_MISMATCH,
   "places a copy of node 2 twice in one stage",
   {{MANIFEST, "\"transfers\"",
     "\"duplicates\": [{\"index\": 2, \"node\": \"b1\", \"stage\": 0, \"also\": [1, 1]}], "
     "\"transfers\"",
     NULL}}},
  /* sparse values */
  {PSPLIT_MISMATCH, "initializer \"s\" is not the model's", {{1, "s {5}", "s {6}", NULL}}},
  {PSPLIT_MISMATCH,
   "input \"e\" is not the model's",
   {{1, ", {values: float[1] e {5}, indices: int64[1] {2}, dims: [4]}", "", NULL}}},
  /* the one node without outputs */
  {PSPLIT_MISMATCH, "node s is not in the model", {{0, "Watch (c)", "Watch (x)", NULL}}},
  {PSPLIT_MISMATCH, "node s is not in the model", {{0, "Watch (c)", "Watch (b1)", NULL}}},
  {PSPLIT_MISMATCH, "node s is not in the model", {{0, "Watch (c)", "Watch (q)", NULL}}},
  {PSPLIT_MISMATCH, "node s is not in the model", {{0, "Watch (c)", "Watch (m)", NULL}}},
  {PSPLIT_MISMATCH, "node s is not in the model", {{0, "Watch (c)", "Watch (flag)", NULL}}},
  {PSPLIT_MISMATCH, "node s is not in the model", {{0, "Watch (c)", "Watch (o)", NULL}}},
  {PSPLIT_MISMATCH,
   "node s is not in the model",
   {{0, "[s] = other.Watch (c)", "[s] = other.Watch (c) [s] = other.Watch (c)", NULL}}},
  /* the one annotation */
  {PSPLIT_MISMATCH,
   "quantization annotation of \"c\" is not the model's",
   {{0, "SCALE_TENSOR", "OTHER", NULL}}},
  {PSPLIT_MISMATCH,
   "quantization annotation of \"c\" is missing",
   {{0,
     " @{quantization_annotation: [{tensor_name: \"c\", quant_parameter_tensor_names: "
     "[\"SCALE_TENSOR\": \"w\"]}]}",
     "", NULL}}},
  {PSPLIT_MISMATCH,
   "quantization annotation of \"c\" is not the model's",
   {{0, "{tensor_name: \"c\", quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"w\"]}",
     "{tensor_name: \"c\", quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"w\"]}, {tensor_name: "
     "\"c\", quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"w\"]}",
     NULL}}},
  /* fields of the model */
  {PSPLIT_MISMATCH,
   "ModelProto field 2 (producer_name) is not the model's",
   {{0, "  producer_name: \"p\",", "", NULL}}},
  {PSPLIT_MISMATCH,
   "ModelProto field 4 (domain) is not the model's",
   {{0, "ir_version: 8", "ir_version: 8, domain: \"d\"", NULL}}},
  {PSPLIT_MISMATCH,
   "ModelProto field 4000 (unknown) is not the model's",
   {{0, "ir_version: 8", "ir_version: 8, 4000: 8", NULL}}},
  {PSPLIT_MISMATCH,
   "GraphProto field 10 (doc_string) is not the model's",
   {{0, "@{quantization", "@{doc_string: \"d\", quantization", NULL}}},
  /* types of the model's inputs */
  {PSPLIT_MISMATCH,
   "the manifest says that \"q\" is map(int64, float32)",
   {{MANIFEST, "sequence(float32)", "map(int64, float32)", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest says that \"m\" is sequence(float32)",
   {{MANIFEST, "map(int64, float32)", "sequence(float32)", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest says that \"o\" is float32",
   {{MANIFEST, "\"opaque\"", "\"float32\"", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest says that \"sp\" is float32",
   {{MANIFEST, "sparse_tensor(float32)", "float32", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest says that \"op\" is float32",
   {{MANIFEST, "optional(float32)", "float32", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest says that \"x\" is of no known type",
   {{MANIFEST, "\"dtype\": \"float32\"", "\"dtype\": null", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest says that \"x\" is float64",
   {{MANIFEST, "\"dtype\": \"float32\"", "\"dtype\": \"float64\"", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest gives \"x\" another shape",
   {{MANIFEST, "[2, 8]", "[2, 8, 1]", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest gives \"x\" another shape",
   {{MANIFEST, "[2, 8]", "[2, 7]", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest gives \"x\" another shape",
   {{MANIFEST, "[2, 8]", "[2, null]", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest gives \"x\" another shape",
   {{MANIFEST, "[2, 8]", "[\"N\", 8]", NULL}}},
  {PSPLIT_MISMATCH, "the manifest gives \"x\" another shape", {{MANIFEST, "[2, 8]", "null", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest gives \"q\" another shape",
   {{MANIFEST, "\"sequence(float32)\", \"shape\": null", "\"sequence(float32)\", \"shape\": []",
     NULL}}},
  /* types of ports */
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{0, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"",
     "float[N @{denotation: \"DATA_BATCH\"},?] \"c0.send1\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{0, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"",
     "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"IMAGE\"} \"c0.send1\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{0, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"",
     "float[N,?] @{denotation: \"TENSOR\"} \"c0.send1\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{0, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"",
     "float[N @{denotation: \"DATA_TIME\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{0, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"",
     "float[M @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{0, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"",
     "float[2 @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{0, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"",
     "float[? @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{0, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"",
     "float[N @{denotation: \"DATA_BATCH\"},8] @{denotation: \"TENSOR\"} \"c0.send1\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{0, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"",
     "float[N @{denotation: \"DATA_BATCH\"},L] @{denotation: \"TENSOR\"} \"c0.send1\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{0, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"",
     "float[N @{denotation: \"DATA_BATCH\"},?,?] @{denotation: \"TENSOR\"} \"c0.send1\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{0, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.send1\"",
     "float[] @{denotation: \"TENSOR\"} \"c0.send1\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{1, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"",
     "float[N @{denotation: \"DATA_BATCH\"},?] \"c0.recv0\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{1, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"",
     "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"IMAGE\"} \"c0.recv0\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{1, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"",
     "float[N,?] @{denotation: \"TENSOR\"} \"c0.recv0\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{1, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"",
     "float[N @{denotation: \"DATA_TIME\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{1, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"",
     "float[M @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{1, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"",
     "float[2 @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{1, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"",
     "float[? @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{1, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"",
     "float[N @{denotation: \"DATA_BATCH\"},8] @{denotation: \"TENSOR\"} \"c0.recv0\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{1, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"",
     "float[N @{denotation: \"DATA_BATCH\"},L] @{denotation: \"TENSOR\"} \"c0.recv0\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{1, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"",
     "float[N @{denotation: \"DATA_BATCH\"},?,?] @{denotation: \"TENSOR\"} \"c0.recv0\"", NULL}}},
  {PSPLIT_MISMATCH,
   "\"c0\" crosses with a shape that is not the model's",
   {{1, "float[N @{denotation: \"DATA_BATCH\"},?] @{denotation: \"TENSOR\"} \"c0.recv0\"",
     "float[] @{denotation: \"TENSOR\"} \"c0.recv0\"", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest gives \"c0\" another shape than stage 1 does",
   {{MANIFEST, "[\"N\", null], \"bytes\"", "[\"M\", null], \"bytes\"", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest gives \"c0\" another shape than stage 1 does",
   {{MANIFEST, "[\"N\", null], \"bytes\"", "[\"N\", 8], \"bytes\"", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest gives \"c0\" another shape than stage 1 does",
   {{MANIFEST, "[\"N\", null], \"bytes\"", "[null, null], \"bytes\"", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest gives \"c0\" another shape than stage 1 does",
   {{MANIFEST, "[\"N\", null], \"bytes\"", "[\"N\", \"L\"], \"bytes\"", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest gives \"c0\" another shape than stage 1 does",
   {{MANIFEST, "[\"N\", null], \"bytes\"", "[\"N\"], \"bytes\"", NULL}}},
  {PSPLIT_MISMATCH,
   "the manifest gives \"c0\" another shape than stage 1 does",
   {{MANIFEST, "[\"N\", null], \"bytes\"", "null, \"bytes\"", NULL}}},
  /* nodes of the boundary */
  {PSPLIT_MISMATCH,
   "two Send nodes for \"c0\" with tag 0",
   {{0,
     "[\"c0.send1\"] \"c0.send1\" = psplit.Send <tag = 0, peer = 1, tensor = \"c0\", dtype = 1> "
     "(c0)",
     TWO_SENDS, NULL},
    {0, " \"c0.send1\") @", " \"c0.send1\", float z) @", NULL}}},
  {PSPLIT_MISMATCH,
   "is not joined to the file's outputs",
   {{0,
     "[\"c0.send1\"] \"c0.send1\" = psplit.Send <tag = 0, peer = 1, tensor = \"c0\", dtype = 1> "
     "(c0)",
     TWO_SENDS, NULL}}},
  {PSPLIT_MISMATCH,
   "a Send node is not of the boundary's form",
   {{0, "[c0] c0", "\"\" = " ONE_SEND " [c0] c0", NULL}}},
  {PSPLIT_MISMATCH,
   "a Send node is not of the boundary's form",
   {{0, "[c0] c0", " = " ONE_SEND " [c0] c0", NULL}}},
  {PSPLIT_MISMATCH,
   "a Recv node is not of the boundary's form",
   {{1, "  [y1]", "  z = psplit.Recv <tag = 0, peer = 0, tensor = \"c0\"> ()\n  [y1]", NULL}}},
};

static const edited_split OF_WATCHED[] = {
  {PSPLIT_OK, "", {{0, "", "", NULL}}},
  {PSPLIT_MISMATCH, "node s2 is not in the model", {{0, "Log (a)", "Log (a, a)", NULL}}},
};

static const char *const copies_pins[] = {"[csbf]*=0", "y*=1"};

static const char *const watched_pins[] = {"[as]*=0", "y=1"};
static const char *const pins[] = {"[abkpq]=0", "[cyf]*=1"};
static const char *const old_pins[] = {"[ab]=0", "y=1"};

static void over_send_and_recv(void **state) {
  (void)state;
  split(MODEL, pins, 2, PSPLIT_BOUNDARY_SENDRECV);
  each_is_told(SENDRECV, sizeof SENDRECV / sizeof *SENDRECV, true);
  forget();
}

static void over_inputs_and_outputs(void **state) {
  (void)state;
  split(MODEL, pins, 2, PSPLIT_BOUNDARY_IO);
  each_is_told(IO, sizeof IO / sizeof *IO, true);
  forget();
}

static void of_old_models(void **state) {
  (void)state;
  split(OLD, old_pins, 2, PSPLIT_BOUNDARY_IO);
  each_is_told(OF_OLD, sizeof OF_OLD / sizeof *OF_OLD, true);
  forget();
}

static void of_defaults(void **state) {
  (void)state;
  split(DEFAULTS, old_pins, 2, PSPLIT_BOUNDARY_IO);
  each_is_told(OF_DEFAULTS, sizeof OF_DEFAULTS / sizeof *OF_DEFAULTS, true);
  forget();
}

static void of_copies(void **state) {
  (void)state;
  split(COPIES, copies_pins, 2, PSPLIT_BOUNDARY_SENDRECV);
  each_is_told(OF_COPIES, sizeof OF_COPIES / sizeof *OF_COPIES, true);
  forget();
}

static void of_nodes_without_outputs(void **state) {
  (void)state;
  split(WATCHED, watched_pins, 2, PSPLIT_BOUNDARY_IO);
  each_is_told(OF_WATCHED, sizeof OF_WATCHED / sizeof *OF_WATCHED, true);
  forget();
}

static psplit_code verify_file(const char *path, const char *directory, psplit_diag *diag) {
  psplit_verify_report report;
  *diag = (psplit_diag){0};
  return psplit_verify_file(path, directory, model, NULL, diag, &report);
}

/* One file that is to be the model, wherever it lies. */
static void one_file(void **state) {
  (void)state;
  psplit_diag diag;
  char absolute[4096];
  assert_non_null(getcwd(absolute, sizeof absolute - 16));
  strcat(absolute, "/model.onnx");
  const char *const texts_of[] = {MODEL, OLD, COPIES};
  for (size_t m = 0; m < 3; m++) {
    write_model_text("model.onnx", texts_of[m]);
    write_model_text("other.onnx", texts_of[(m + 1) % 3]);
    assert_int_equal(psplit_model_open("model.onnx", NULL, &diag, &model), PSPLIT_OK);
    const char *const paths[] = {"model.onnx", "./model.onnx", absolute};
    for (int i = 0; i < 3; i++)
      if (verify_file(paths[i], NULL, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
    assert_int_equal(verify_file("other.onnx", NULL, &diag), PSPLIT_MISMATCH);
    assert_int_equal(verify_file("/none.onnx", NULL, &diag), PSPLIT_IO);
    assert_non_null(strstr(diag.message, "/none.onnx"));
    psplit_model_close(model);
  }
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
  split(HEAD "(float[2,8] x) => (float[2,8] y) { [a] a = Abs (x) [b] b = Neg (a) [y] y = Abs (b) }",
        old_pins, 2, PSPLIT_BOUNDARY_IO);
#define NOT(name) name " is not the model that was split (by pipeline.json model.onnx): it has "
  is_told("other.onnx", HEAD "(float[2,8] z) => (float[2,8] y) { y = Abs (z) }",
          NOT("other.onnx") "input \"z\", which that has not: ");
  is_told("other.onnx", HEAD "(float[2,8] x) => (float[2,8] u) { u = Abs (x) }",
          NOT("other.onnx") "output \"u\", which that has not: ");
  is_told("other.onnx", HEAD "(float[2,8] x) => (float[2,8] y) { y = Abs (x) }",
          NOT("other.onnx") "1 node, that 3: transfer 0: ");
  is_told("sub.onnx",
          HEAD
          "(float[2,8] x) => (float[2,8] y) { [a] a = Abs (x) [b] b = Exp (a) [y] y = Abs (b) "
          "}",
          "pipeline.json tells of model.onnx, and this is sub.onnx: stage 0: node b is not as in ");
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
  split(MODEL, pins, 2, PSPLIT_BOUNDARY_IO);
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
  const struct CMUnitTest tests[] = {TEST(over_send_and_recv),
                                     TEST(over_inputs_and_outputs),
                                     TEST(of_old_models),
                                     TEST(of_defaults),
                                     TEST(of_copies),
                                     TEST(of_nodes_without_outputs),
                                     TEST(one_file),
                                     TEST(of_another_model),
                                     TEST(what_is_asked_wrongly)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
