/* Why: nodes that are in several stages have to agree, and few that draw or are not known do. What
 * is spoilt in a split with copies is told, by the line that says what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include "edited_two.h"
#include "scratch.h"

/* What may have copies and what may not; values of all kinds; one node without outputs, and one
 * annotation; an input whose default is sparse, a sparse weight that nothing reads. */
static const char COPIES[] =
  "<ir_version: 8, producer_name: \"p\", opset_import: [\"\": 17, \"local\": 1, \"other\": 1,\n"
  "  \"ai.onnx.ml\": 3, \"com.microsoft\": 1]>\n"
  "main (float[2,8] x, bool flag, seq(float[2,8]) q, map(int64, float) m, opaque(dom, nm) o,\n"
  "      sparse_tensor(float[4]) sp, optional(float[3]) op, float[4] e) => (float[2,8] y) @{\n"
  "  quantization_annotation: [\n"
  "    {tensor_name: \"c\", quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"w\"]}],\n"
  "  sparse_initializer: [{values: float[1] s {5}, indices: int64[1] {2}, dims: [8]},\n"
  "                       {values: float[1] e {5}, indices: int64[1] {2}, dims: [4]},\n"
  "                       {values: float[1] unread {7}, indices: int64[1] {2}, dims: [4]}]\n"
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
   "a duplicate of node 99, which does not exist",
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
  {PSPLIT_MISMATCH,
   "initializer \"unread\" is in no stage",
   {{0, "{values: float[1] unread {7}, indices: int64[1] {2}, dims: [4]}", "", NULL}}},
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
     "quantization_annotation: [{tensor_name: \"c\", quant_parameter_tensor_names: "
     "[\"SCALE_TENSOR\": \"w\"]}], ",
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
   "is not connected to the file's outputs",
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

static const char *const copies_pins[] = {"[csbf]*=0", "y*=1"};

static void of_copies(void **state) {
  (void)state;
  split_in_two(COPIES, copies_pins, 2, PSPLIT_BOUNDARY_SENDRECV);
  each_is_told(OF_COPIES, sizeof OF_COPIES / sizeof *OF_COPIES, true);
  forget();
}

static void as_one_file(void **state) {
  (void)state;
  proves_itself(
    COPIES,
    "<ir_version: 8, opset_import: [\"\": 17]> m (float[2] x) => (float[2] y) { y = Abs (x) }");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {TEST(of_copies), TEST(as_one_file)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
