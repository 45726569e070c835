/* What each pass does to small models: which nodes it groups, marks and computes again, what the
 * plan says, and which requests cannot be met. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "open.h"

static bool together(const bench *b, const char *x, const char *y) {
  return psplit_i_group_of(&b->planner->grouping, node_of(b, x)) ==
         psplit_i_group_of(&b->planner->grouping, node_of(b, y));
}

/* A convolution and what runtimes run with it: normalisation, residual sum, activation. */
static void fuse_follows_a_convolution(void **state) {
  (void)state;
  const psplit_planner_options options = stages(1);
  bench b = start(
    "(float[1,4,8,8] x) => (float[1,4,8,8] pool)"
    "<float[4,4,1,1] w = raw {0 * 16}, float[4] s = raw {0 * 4}> {"
    "  c1 = Conv (x, w)"
    "  n1 = BatchNormalization (c1, s, s, s, s)"
    "  r1 = Relu (n1)"
    "  c2 = Conv (r1, w)"
    "  sum = Add (c2, x)"
    "  r2 = Relu (sum)"
    "  pool = MaxPool (r2)"
    "}",
    &options);
  run(&b, "mark,fuse");
  assert_true(together(&b, "c1", "n1") && together(&b, "c1", "r1"));
  assert_true(together(&b, "c2", "sum") && together(&b, "c2", "r2"));
  assert_false(together(&b, "r1", "c2"));
  assert_false(together(&b, "r2", "pool"));
  stop(&b);
}

/* Activations that exporters write as several nodes: SiLU, HardSwish, Gelu. */
static void fuse_follows_decomposed_activations(void **state) {
  (void)state;
  const psplit_planner_options options = stages(1);
  bench b = start(
    "(float[4,8] x) => (float[4,8] y) <float[8,8] w = raw {0 * 64}, float[1] k = raw {0}> {"
    "  m1 = MatMul (x, w)"
    "  b1 = Add (m1, k)"
    "  g1 = Sigmoid (b1)"
    "  silu = Mul (b1, g1)"
    "  m2 = MatMul (silu, w)"
    "  e1 = Div (m2, k)"
    "  e2 = Erf (e1)"
    "  e3 = Add (e2, k)"
    "  e4 = Mul (m2, e3)"
    "  gelu = Mul (e4, k)"
    "  y = Softmax (gelu)"
    "}",
    &options);
  run(&b, "mark,fuse");
  assert_true(together(&b, "m1", "b1") && together(&b, "m1", "g1") && together(&b, "m1", "silu"));
  assert_true(together(&b, "m2", "e1") && together(&b, "m2", "e4") && together(&b, "m2", "gelu"));
  assert_false(together(&b, "silu", "m2"));
  assert_false(together(&b, "gelu", "y"));
  stop(&b);
}

/* A quantised chain is cut where the tensor is int8, and the cut sends the int8 tensor. */
static void quantised_tensors_cross_as_int8(void **state) {
  (void)state;
  const psplit_planner_options options = stages(2);
  bench b = start(
    "(float[64,64] x) => (float[64,64] m2)"
    "<float[64,64] w = raw {0 * 4096}, float[1] scale = raw {0}, int8 zero = raw {0}> {"
    "  m1 = MatMul (x, w)"
    "  q1 = QuantizeLinear (m1, scale, zero)"
    "  d1 = DequantizeLinear (q1, scale, zero)"
    "  m2 = MatMul (d1, w)"
    "}",
    &options);
  run(&b, NULL);
  assert_true(together(&b, "m1", "q1") && together(&b, "d1", "m2"));
  const psplit_plan *plan = psplit_planner_plan(b.planner);
  assert_int_equal(plan->n_transfers, 1);
  assert_string_equal(plan->transfers[0].tensor, "q1");
  assert_int_equal(plan->transfers[0].bytes, 64 * 64);
  assert_true(plan->transfers[0].bytes_known);
  stop(&b);
}

/* Constants stand where they are used, dead nodes stay and cost nothing, random ones are not free.
 */
static void prune_sorts_nodes(void **state) {
  (void)state;
  const psplit_planner_options options = stages(2);
  bench b = start(
    "(float[8,8] x) => (float[8,8] z) <float[8,8] w = raw {0 * 64}> {"
    "  w2 = Identity (w)"
    "  a = MatMul (x, w2)"
    "  y = MatMul (a, w2)"
    "  dead = Relu (a)"
    "  noise = RandomNormalLike (w)"
    "  z = Add (y, noise)"
    "}",
    &options);
  run(&b, NULL);
  const uint8_t *flags = b.planner->node_flags;
  assert_true(flags[node_of(&b, "w2")] & PSPLIT_I_NODE_FREE);
  assert_true(flags[node_of(&b, "dead")] & PSPLIT_I_NODE_DEAD);
  assert_false(flags[node_of(&b, "noise")] & (PSPLIT_I_NODE_FREE | PSPLIT_I_NODE_REPEATABLE));
  const psplit_plan *plan = psplit_planner_plan(b.planner);
  assert_int_equal(plan->n_dead_nodes, 1);
  assert_int_equal(b.planner->node_ns[node_of(&b, "dead")], 0);
  uint32_t n_nodes = 0;
  for (uint32_t s = 0; s < 2; s++)
    n_nodes += plan->stages[s].n_nodes - plan->stages[s].n_duplicated;
  assert_int_equal(n_nodes, b.graph->n_nodes);
  assert_int_equal(plan->n_copies, 1); /* the constant, in the second stage too */
  assert_int_equal(plan->copies[0].node, node_of(&b, "w2"));
  stop(&b);
}

/* Why there are fewer stages to be had than nodes: what reaches no output is no stage's work. */
static void dead_nodes_are_named(void **state) {
  (void)state;
  const psplit_planner_options options = stages(2);
  bench b = start(
    "(float[8,8] x) => (float[8,8] z) {"
    "  z = Relu (x)"
    "  dead = Tanh (z)"
    "  deader = Neg (dead)"
    "}",
    &options);
  psplit_diag diag = {0};
  assert_int_equal(psplit_planner_run(b.planner, NULL, &diag), PSPLIT_INFEASIBLE);
  assert_non_null(strstr(diag.message, "; 2 nodes reach no output of the model and count "));
  stop(&b);
}

/* A float mask made from a bool model input is made again where it is needed, not sent. */
static void replicate_makes_masks_again(void **state) {
  (void)state;
  const psplit_planner_options options = stages(2);
  bench b = start(
    "(float[256,256] x, bool[256,256] ids) => (float[256,256] bm)"
    "<float[256,256] w = raw {0 * 65536}> {"
    "  mask = Cast <to = 1> (ids)"
    "  a = MatMul (x, w)"
    "  as = Softmax (a)"
    "  am = Mul (as, mask)"
    "  at = Tanh (am)" /* so that the best cut is behind the mask's first reader */
    "  b = MatMul (at, w)"
    "  bs = Softmax (b)"
    "  bt = Tanh (bs)"
    "  bm = Mul (bt, mask)"
    "}",
    &options);
  run(&b, NULL);
  const psplit_plan *plan = psplit_planner_plan(b.planner);
  for (uint32_t t = 0; t < plan->n_transfers; t++)
    assert_string_not_equal(plan->transfers[t].tensor, "mask");
  assert_int_equal(plan->n_copies, 1);
  assert_int_equal(plan->copies[0].node, node_of(&b, "mask"));
  stop(&b);
}

static psplit_code solve(const char *text, const psplit_planner_options *options,
                         psplit_diag *diag) {
  psplit_model *model = opened_text(text);
  psplit_planner *planner = NULL;
  psplit_code code = psplit_planner_create(model, options, diag, &planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(planner, NULL, diag);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
  return code;
}

static const char CHAIN[] =
  "(float[8,8] x) => (float[8,8] c) { a = Softmax (x) b = Softmax (a) c = Softmax (b) }";

/* `n` blocks of a residual run, 64 channels; the first node of block b is named b<b>. */
static bench residual(uint32_t n, uint32_t cut, const char *preset) {
  psplit_i_text text = {0};
  static char pins[64][32];
  static const char *list[64];
  psplit_i_text_puts(&text,
                     "(float[1,64,16,16] x) => (y) <float[64,64,3,3] w = raw {0 * 36864}> {"
                     " [b0] a0 = Conv <pads = [1, 1, 1, 1]> (x, w) [r0] v0 = Relu (a0)");
  for (uint32_t b = 1; b <= n; b++)
    psplit_i_text_addf(&text,
                       " [b%u] a%u = Conv <pads = [1, 1, 1, 1]> (v%u, w) [s%u] s%u = Add (a%u, v%u)"
                       " [r%u] v%u = Relu (s%u)",
                       b, b, b - 1, b, b, b, b - 1, b, b, b);
  psplit_i_text_addf(&text, " [last] y = GlobalAveragePool (v%u) }", n);
  uint32_t n_pins = 0;
  for (uint32_t b = 0; b <= n; b++) {
    snprintf(pins[n_pins], sizeof pins[0], "[brs]%u=%u", b, b >= cut);
    list[n_pins] = pins[n_pins];
    n_pins++;
  }
  psplit_planner_options options = stages(2);
  options.pins = list;
  options.n_pins = n_pins;
  psplit_diag diag = {0};
  static psplit_devices *devices;
  psplit_devices_destroy(devices);
  if (psplit_devices_preset(preset, 2, &diag, &devices) != PSPLIT_OK) fail_msg("%s", diag.message);
  options.devices = devices;
  assert_false(text.failed);
  bench b = start(text.bytes, &options);
  psplit_i_text_fini(&text);
  run(&b, NULL);
  return b;
}

/* A received tensor is plain: the more of the residual run is left behind the cut, the more sums
 * are no longer part of a convolution's kernel. Only where the runtime has blocks. */
static void cuts_in_residual_runs_cost_what_is_left_of_them(void **state) {
  (void)state;
  int64_t before = INT64_MAX;
  for (uint32_t cut = 1; cut <= 6; cut++) {
    bench b = residual(6, cut, "cpu");
    const psplit_plan *plan = psplit_planner_plan(b.planner);
    const psplit_plan_stage *from = &plan->stages[0], *to = &plan->stages[1];
    /* The sender brings one tensor back, the receiver pays the more the more is left. */
    assert_true(from->layout_ns > 0 && to->layout_ns > from->layout_ns);
    assert_true(to->layout_ns < before);
    assert_true(plan->speed_up * (double)plan->bottleneck_ns <= (double)plan->single_device_ns);
    before = to->layout_ns;
    stop(&b);
  }
  bench b = residual(6, 1, "nvidia-l4");
  assert_int_equal(psplit_planner_plan(b.planner)->layout_ns, 0);
  stop(&b);
  const psplit_planner_options options = stages(2);
  b = start(CHAIN, &options);
  run(&b, NULL);
  assert_int_equal(psplit_planner_plan(b.planner)->layout_ns, 0);
  stop(&b);
}

static void what_cannot_be_met_is_refused(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_planner_options options = stages(4);
  assert_int_equal(solve(CHAIN, &options, &diag), PSPLIT_INFEASIBLE);

  options = stages(2);
  options.pins = (const char *const[]){"nothing*=0"};
  options.n_pins = 1;
  diag = (psplit_diag){0};
  assert_int_equal(solve(CHAIN, &options, &diag), PSPLIT_USAGE);
  assert_non_null(strstr(diag.message, "matches no node"));

  options.pins = (const char *const[]){"a=2"};
  diag = (psplit_diag){0};
  assert_int_equal(solve(CHAIN, &options, &diag), PSPLIT_USAGE);
  assert_non_null(strstr(diag.message, "stages are 0 to 1"));
}

/* Every value between the two ends is a sequence: no cut sends one. */
static void sequences_are_never_cut(void **state) {
  (void)state;
  psplit_planner_options options = stages(2);
  psplit_diag diag = {0};
  assert_int_equal(solve("(float[8,8] x) => (float[8,8] y) {"
                         "  seq = SplitToSequence (x)"
                         "  y = ConcatFromSequence <axis = 0> (seq)"
                         "}",
                         &options, &diag),
                   PSPLIT_INFEASIBLE);
}

/* Passes in any order leave convex groups: verify_each checks after every one. */
static void any_order_of_passes_is_safe(void **state) {
  (void)state;
  static const char *const names[] = {"mark", "attach",       "fuse",      "coarsen:max_nodes=4",
                                      "cost", "infer-shapes", "partition", "replicate"};
  static const char model[] =
    "(float[1,4,8,8] x) => (float[1,4,8,8] i) <float[4,4,1,1] w = raw {0 * 16}> {"
    "  a = Conv (x, w)"
    "  b = Relu (a)"
    "  c = Conv (b, w)"
    "  d = Sigmoid (c)"
    "  e = Mul (c, d)"
    "  f = Add (e, b)"
    "  s = Shape (f)"
    "  h = Conv (f, w)"
    "  i = Reshape (h, s)"
    "}";
  for (uint64_t seed = 0; seed < 60; seed++) {
    const psplit_planner_options options = stages(1 + (uint32_t)(seed % 3));
    bench b = start(model, &options);
    psplit_i_text text = {0};
    for (unsigned step = 0; step < 10; step++)
      psplit_i_text_addf(&text, "%s%s", step ? "," : "",
                         names[psplit_i_splitmix64(seed, step) % (sizeof names / sizeof *names)]);
    run(&b, text.bytes);
    psplit_i_text_fini(&text);
    stop(&b);
  }
}

static void keep_last(void *user, psplit_severity severity, const char *line) {
  if (severity == PSPLIT_WARNING) snprintf(user, 256, "%s", line);
}

/* ONNX Runtime refuses them, in bodies too. */
static void names_that_nodes_share_are_warned_of(void **state) {
  (void)state;
  static const struct {
    const char *text, *warns;
  } kCases[] = {
    {"(float[4] x) => (float[4] y) { [a] t = Relu (x) [b] y = Abs (t) }", ""},
    {"(float[4] x) => (float[4] y) { t = Relu (x) y = Abs (t) }", ""},
    {"(float[4] x) => (float[4] y) { [a] t = Relu (x) [a] y = Abs (t) }",
     "two nodes of one graph are called \"a\": ONNX Runtime loads"},
    {"(float[4] x) => (float[4] y) { [a] t = Relu (x) [b] u = Abs (t) [b] v = Neg (u)"
     " [a] w = Abs (v) [b] y = Relu (w) }",
     "called \"b\", and 2 more share one: ONNX"},
    {"(float[4] x, bool c) => (float[4] y) { [a] t = Relu (x) [b] y = If (c) <then_branch = () =>"
     " (p) { [a] p = Abs (t) }, else_branch = () => (q) { [a] q = Neg (t) }> }",
     ""},
    {"(float[4] x, bool c) => (float[4] y) { [a] t = Relu (x) [b] y = If (c) <then_branch = () =>"
     " (p) { [c] o = Abs (t) [c] p = Neg (o) }, else_branch = () => (q) { [a] q = Neg (t) }> }",
     "called \"c\": ONNX"},
  };
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    char line[256] = "";
    const psplit_logger logger = {.emit = keep_last, .user = line};
    psplit_planner_options options = stages(1);
    options.logger = &logger;
    bench b = start(kCases[i].text, &options);
    psplit_diag diag = {0};
    assert_int_equal(psplit_planner_run(b.planner, NULL, &diag), PSPLIT_OK);
    if (kCases[i].warns[0])
      assert_non_null(strstr(line, kCases[i].warns));
    else
      assert_string_equal(line, "");
    stop(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(fuse_follows_a_convolution),
    cmocka_unit_test(fuse_follows_decomposed_activations),
    cmocka_unit_test(quantised_tensors_cross_as_int8),
    cmocka_unit_test(prune_sorts_nodes),
    cmocka_unit_test(dead_nodes_are_named),
    cmocka_unit_test(replicate_makes_masks_again),
    cmocka_unit_test(cuts_in_residual_runs_cost_what_is_left_of_them),
    cmocka_unit_test(what_cannot_be_met_is_refused),
    cmocka_unit_test(sequences_are_never_cut),
    cmocka_unit_test(any_order_of_passes_is_safe),
    cmocka_unit_test(names_that_nodes_share_are_warned_of),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
