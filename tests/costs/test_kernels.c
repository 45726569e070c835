/* Times of kernels on a CPU: what costs more than its arithmetic says does so in the model, too.
 * Each case holds two models against each other. The number behind a colon is the ratio of the
 * kernels' times in ONNX Runtime 1.30, one thread, x86-64 with AVX-512, the least of 12 runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>

#include <psplit/devices.h>

#include "open.h"
#include "planner.h"

/* Time of all nodes of a model, ns. */
static double time_of(const char *preset, const char *text) {
  enum { MOST_NODES = 16 };
  psplit_model *model = opened_text(text);
  psplit_planner_options options;
  psplit_planner *planner;
  psplit_devices *devices;
  psplit_diag diag = {0};
  int64_t ns[MOST_NODES] = {0};
  double sum = 0;
  psplit_planner_options_init(&options);
  if (psplit_devices_preset(preset, 1, &diag, &devices) != PSPLIT_OK) fail_msg("%s", diag.message);
  options.devices = devices;
  options.n_stages = 1;
  if (psplit_planner_create(model, &options, &diag, &planner) != PSPLIT_OK ||
      psplit_planner_run(planner, "infer-shapes,cost", &diag) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  psplit_planner_node_ns(planner, 0, ns);
  for (int n = 0; n < MOST_NODES; n++) sum += (double)ns[n];
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
  return sum;
}

static const struct {
  const char *why, *light, *heavy;
  double at_least, at_most; /* times as long */
} cases[] = {
  {"a softmax along another axis moves every element there and back: 16",
   "(float[1,21,128,128] x) => (y) { y = Softmax <axis = 3> (x) }",
   "(float[1,21,128,128] x) => (y) { y = Softmax <axis = 1> (x) }", 8, 30},
  {"along the last but one it moves blocks: 3.2",
   "(float[8,197,197] x) => (y) { y = Softmax <axis = 2> (x) }",
   "(float[8,197,197] x) => (y) { y = Softmax <axis = 1> (x) }", 1.5, 5},
  {"every row is a sum of its own: 7.4", "(float[64,256] x) => (y) { y = Softmax (x) }",
   "(float[1,128,64,2] x) => (y) { y = Softmax <axis = 3> (x) }", 2, 20},
  {"an activation is part of the convolution in front: 1.0",
   "(float[1,64,56,56] x) => (y) <float[64,64,1,1] w = raw {0 * 4096}> { y = Conv (x, w) }",
   "(float[1,64,56,56] x) => (y) <float[64,64,1,1] w = raw {0 * 4096}> {"
   " c = Conv (x, w) y = Relu (c) }",
   1, 1.05},
  {"so are a normalisation and a sum: 1.0",
   "(float[1,64,56,56] x, float[1,64,56,56] z) => (y) <float[64,64,1,1] w = raw {0 * 4096}> {"
   " y = Conv (x, w) }",
   "(float[1,64,56,56] x, float[1,64,56,56] z) => (y) <float[64,64,1,1] w = raw {0 * 4096},"
   " float[64] s = raw {0 * 64}> {"
   " c = Conv (x, w) b = BatchNormalization (c, s, s, s, s) a = Add (b, z) y = Relu (a) }",
   1, 1.2},
  {"not if somebody else reads the convolution's result",
   "(float[1,64,56,56] x) => (y) <float[64,64,1,1] w = raw {0 * 4096}> {"
   " c = Conv (x, w) y = Relu (c) }",
   "(float[1,64,56,56] x) => (y, c) <float[64,64,1,1] w = raw {0 * 4096}> {"
   " c = Conv (x, w) y = Relu (c) }",
   1.1, 1.6},
  {"a second activation is a kernel of its own",
   "(float[1,64,56,56] x) => (y) <float[64,64,1,1] w = raw {0 * 4096}> {"
   " c = Conv (x, w) y = Relu (c) }",
   "(float[1,64,56,56] x) => (y) <float[64,64,1,1] w = raw {0 * 4096}> {"
   " c = Conv (x, w) r = Relu (c) y = Tanh (r) }",
   1.2, 2},
  {"groups without a whole block of channels are products one by one: 4.4",
   "(float[1,512,14,14] x) => (y) <float[512,16,3,3] w = raw {0 * 73728}> {"
   " y = Conv <group = 32, pads = [1, 1, 1, 1]> (x, w) }",
   "(float[1,256,28,28] x) => (y) <float[256,8,3,3] w = raw {0 * 18432}> {"
   " y = Conv <group = 32, pads = [1, 1, 1, 1]> (x, w) }",
   2.5, 7},
  {"8 channels take the lanes of 16: 0.98",
   "(float[1,64,56,56] x) => (y) <float[16,64,3,3] w = raw {0 * 9216}> {"
   " y = Conv <pads = [1, 1, 1, 1]> (x, w) }",
   "(float[1,64,56,56] x) => (y) <float[8,64,3,3] w = raw {0 * 4608}> {"
   " y = Conv <pads = [1, 1, 1, 1]> (x, w) }",
   0.7, 1.01},
  {"bytes without a sign have no instruction of their own: 3 to 9",
   "(uint8[197,768] x) => (y) <int8[768,768] w = raw {0 * 589824}> { y = MatMulInteger (x, w) }",
   "(uint8[197,768] x) => (y) <uint8[768,768] w = raw {0 * 589824}> { y = MatMulInteger (x, w) }",
   2.5, 9},
  {"a batch of small products: 1.6",
   "(float[4704,32] x, float[32,98] z) => (y) { y = MatMul (x, z) }",
   "(float[96,49,32] x, float[96,32,98] z) => (y) { y = MatMul (x, z) }", 1.2, 4},
  {"steps that wait for each other: 1.6",
   "(float[1,50,64] x) => (y) <float[1,256,64] w = raw {0 * 16384}> {"
   " y = LSTM <hidden_size = 64> (x, w, w) }",
   "(float[50,1,64] x) => (y) <float[1,256,64] w = raw {0 * 16384}> {"
   " y = LSTM <hidden_size = 64> (x, w, w) }",
   1.1, 5},
  {"cubic interpolation is scalar: 36",
   "(float[1,24,40,40] x) => (y) <float[4] s = {1, 1, 4, 4}> {"
   " y = Resize <mode = \"linear\"> (x, , s) }",
   "(float[1,24,40,40] x) => (y) <float[4] s = {1, 1, 4, 4}> {"
   " y = Resize <mode = \"cubic\"> (x, , s) }",
   15, 60},
  {"a sum over neighbouring channels takes a power: 38",
   "(float[1,64,56,56] x) => (y) <float[64] s = raw {0 * 64}> { y = InstanceNormalization (x, s, "
   "s) }",
   "(float[1,64,56,56] x) => (y) { y = LRN <size = 5> (x) }", 10, 60},
  {"short pieces of a part are copied one by one: 9.2",
   "(float[4420,4] x) => (y) <int64[1] s = {0}, int64[1] e = {2210}, int64[1] a = {0}> {"
   " y = Slice (x, s, e, a) }",
   "(float[4420,4] x) => (y) <int64[1] s = {0}, int64[1] e = {2}, int64[1] a = {1}> {"
   " y = Slice (x, s, e, a) }",
   6, 12},
  {"so are those that are joined: 7.6",
   "(float[4420,2] x, float[4420,2] z) => (y) { y = Concat <axis = 0> (x, z) }",
   "(float[4420,2] x, float[4420,2] z) => (y) { y = Concat <axis = 1> (x, z) }", 5, 10},
  {"or parted: 7.1", "(float[4420,4] x) => (y, z) { y, z = Split <axis = 0> (x) }",
   "(float[4420,4] x) => (y, z) { y, z = Split <axis = 1> (x) }", 5, 10},
  {"not single elements: 1.4",
   "(float[4420,2] x, float[4420,2] z) => (y) { y = Concat <axis = 0> (x, z) }",
   "(float[4420,1] x, float[4420,1] z) => (y) { y = Concat <axis = 1> (x, z) }", 0.5, 2},
  {"nor long pieces: 1.6",
   "(float[442,40] x) => (y) <int64[1] s = {0}, int64[1] e = {221}, int64[1] a = {0}> {"
   " y = Slice (x, s, e, a) }",
   "(float[442,40] x) => (y) <int64[1] s = {0}, int64[1] e = {20}, int64[1] a = {1}> {"
   " y = Slice (x, s, e, a) }",
   0.9, 2.5},
  {"indices pick elements one by one: 30",
   "(float[4,4420] x) => (y) <int64[2] i = {0, 2}> { y = Gather <axis = 0> (x, i) }",
   "(float[4420,4] x) => (y) <int64[2] i = {0, 2}> { y = Gather <axis = 1> (x, i) }", 15, 40},
  {"numbers between short rows: 16",
   "(float[4420,2] x) => (y) <int64[4] p = {2210, 0, 2210, 0}> { y = Pad (x, p) }",
   "(float[4420,2] x) => (y) <int64[4] p = {0, 1, 0, 1}> { y = Pad (x, p) }", 10, 25},
  {"not if how short they are is assumed",
   "(float[4420,k] x) => (y) <int64[4] p = {2210, 0, 2210, 0}> { y = Pad (x, p) }",
   "(float[4420,k] x) => (y) <int64[4] p = {0, 1, 0, 1}> { y = Pad (x, p) }", 0.5, 3},
  {"an operand for each short row: 10",
   "(float[4420,4] x, float[4420,4] z) => (y) { y = Add (x, z) }",
   "(float[4420,4] x, float[4420,1] z) => (y) { y = Add (x, z) }", 6, 14},
  {"or for each element of it: 10", "(float[4420,4] x, float[4420,4] z) => (y) { y = Add (x, z) }",
   "(float[4420,4] x, float[4] z) => (y) { y = Add (x, z) }", 6, 14},
  {"every row goes down every tree",
   "(float[10000,8] x) => (y) { y = ai.onnx.ml.TreeEnsembleRegressor <nodes_treeids = [0, 0, 0],"
   " target_ids = [0, 0]> (x) }",
   "(float[10000,8] x) => (y) { y = ai.onnx.ml.TreeEnsembleRegressor <nodes_treeids = [0, 0, 0, 1,"
   " 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5], target_ids = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]>"
   " (x) }",
   4, 6.1},
  {"and down to a leaf",
   "(float[10000,8] x) => (y, s) { y, s = ai.onnx.ml.TreeEnsembleClassifier <nodes_treeids ="
   " [0, 0, 0, 1, 1, 1], classlabels_int64s = [0, 1], class_ids = [0, 1, 0, 1]> (x) }",
   "(float[10000,8] x) => (y, s) { y, s = ai.onnx.ml.TreeEnsembleClassifier <nodes_treeids ="
   " [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1], classlabels_int64s = [0, 1], class_ids ="
   " [0, 1, 0, 1, 0, 1, 0, 1]> (x) }",
   1.4, 2},
  {"a tree has no leaves among its nodes in the newer operator",
   "(float[10000,8] x) => (y) { y = ai.onnx.ml.TreeEnsembleRegressor <nodes_treeids ="
   " [0, 0, 0, 1, 1, 1], target_ids = [0, 0, 0, 0]> (x) }",
   "(float[10000,8] x) => (y) { y = ai.onnx.ml.TreeEnsemble <tree_roots = [0, 1],"
   " nodes_featureids = [3, 4], leaf_targetids = [0, 0, 0, 0]> (x) }",
   0.99, 1.01},
  {"distances to four times as many vectors",
   "(float[10000,4] x) => (y) { y = ai.onnx.ml.SVMRegressor <support_vectors = [0.1, 0.2, 0.3,"
   " 0.4], coefficients = [1.0]> (x) }",
   "(float[10000,4] x) => (y) { y = ai.onnx.ml.SVMRegressor <support_vectors = [0.1, 0.2, 0.3,"
   " 0.4, 0.1, 0.2, 0.3, 0.4, 0.1, 0.2, 0.3, 0.4, 0.1, 0.2, 0.3, 0.4], coefficients ="
   " [1.0, 1.0, 1.0, 1.0]> (x) }",
   2.5, 4.1},
  {"a row of coefficients is short: 20 ns, where a large product takes less than 1",
   "(float[1,4] x) => (y) { y = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 1.0, 1.0, 1.0]>"
   " (x) }",
   "(float[1000,4] x) => (y) { y = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 1.0, 1.0, 1.0]>"
   " (x) }",
   5, 20},
  {"what a body runs takes what it takes outside",
   "(float[197,768] x, bool[] c) => (y) <float[768,768] w = raw {0 * 589824}> {"
   " y = MatMul (x, w) }",
   "(float[197,768] x, bool[] c) => (y) <float[768,768] w = raw {0 * 589824}> {"
   " y = If (c) <then_branch = t () => (r) { r = MatMul (x, w) },"
   " else_branch = e () => (r) { r = MatMul (x, w) }> }",
   0.9, 1.1},
};

static void what_kernels_do_besides_counts(void **state) {
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const double ratio =
      time_of("cpu-avx512", cases[c].heavy) / time_of("cpu-avx512", cases[c].light);
    if (!(ratio >= cases[c].at_least && ratio <= cases[c].at_most))
      fail_msg("%s: %.2f, not %.2f to %.2f", cases[c].why, ratio, cases[c].at_least,
               cases[c].at_most);
  }
}

/* Weights that no cache holds come from memory; those of a small model do not. */
static void weights_of_a_large_model_come_from_memory(void **state) {
  (void)state;
  const double small = time_of("cpu",
                               "(float[1,1000] x) => (y) <float[1000,1000] w = raw {0 * "
                               "1000000}> { y = MatMul (x, w) }");
  const double large = time_of("cpu",
                               "(float[1,5000] x) => (y) <float[5000,1000] w = raw {0 * "
                               "5000000}> { y = MatMul (x, w) }");
  assert_true(large > 8 * small && large < 20 * small);
}

/* Other devices have the roofline. */
static void a_gpu_has_no_such_kernels(void **state) {
  (void)state;
  assert_true(time_of("nvidia-l4", "(float[1,21,128,128] x) => (y) { y = Softmax <axis=3> (x) }") ==
              time_of("nvidia-l4", "(float[1,21,128,128] x) => (y) { y = Softmax <axis=1> (x) }"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_kernels_do_besides_counts),
    cmocka_unit_test(weights_of_a_large_model_come_from_memory),
    cmocka_unit_test(a_gpu_has_no_such_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
