/* Shape inference on small models, one for each rule of thumb that real exports need, and on models
 * that are made to hurt. A case says what a value must print as. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "open.h"
#include "shape.h"
#include "work.h"

static psplit_model *model_of(const char *text, int opset) {
  psplit_i_text whole = {0};
  psplit_i_text_addf(&whole, "<ir_version: 8, opset_import: [\"\": %d, \"com.microsoft\": 1]>\n%s",
                     opset, text);
  psplit_model *model = opened_text(whole.bytes);
  psplit_i_text_fini(&whole);
  return model;
}

static char said[4096];

static void note(void *user, psplit_severity severity, const char *line) {
  (void)user;
  (void)severity;
  const size_t n = strlen(said);
  snprintf(said + n, sizeof said - n, "%s\n", line);
}

static psplit_i_shapes *infer(psplit_model *model, const psplit_i_binding *bindings, size_t n) {
  psplit_diag diag = {0};
  psplit_i_shapes *shapes;
  const psplit_logger logger = {.emit = note};
  said[0] = '\0';
  if (psplit_i_shapes_create(psplit_i_model_graph(model), bindings, n, &logger, &diag, &shapes) !=
      PSPLIT_OK)
    fail_msg("%s", diag.message);
  return shapes;
}

static void is(const char *why, const psplit_i_shapes *shapes, const char *value,
               const char *expected) {
  const uint32_t id = psplit_i_graph_find_value(psplit_i_shapes_graph(shapes), value);
  if (id == PSPLIT_NONE) fail_msg("%s: no value %s", why, value);
  psplit_i_text text = {0};
  psplit_i_shapes_print(shapes, psplit_i_shapes_type(shapes, id), &text);
  if (strcmp(text.bytes, expected) != 0)
    fail_msg("%s: %s is %s, expected %s", why, value, text.bytes, expected);
  psplit_i_text_fini(&text);
}

static const struct {
  const char *why;
  int opset;
  const char *model, *value, *expected;
} cases[] = {
  {"sizes pass through Shape, Gather, Concat, Reshape", 17,
   "(float[batch,seq,768] x) => (y) <int64 i = {0}, int64 j = {1}, int64[1] a = {0}, "
   "int64[2] t = {12, 64}> {"
   "  s = Shape (x) b = Gather (s, i) q = Gather (s, j) bu = Unsqueeze (b, a)"
   "  qu = Unsqueeze (q, a) shape = Concat <axis = 0> (bu, qu, t) y = Reshape (x, shape)"
   "}",
   "y", "float32[batch, seq, 12, 64]"},
  {"-1 of Reshape divides expressions", 17,
   "(float[batch,seq,768] x) => (y) <int64[3] s = {-1, 12, 64}> { y = Reshape (x, s) }", "y",
   "float32[batch*seq, 12, 64]"},
  {"-1 behind a copied 0", 17,
   "(float[batch,c,h,w] x) => (y) <int64[3] s = {0, 0, -1}> { y = Reshape (x, s) }", "y",
   "float32[batch, c, h*w]"},
  {"two strided convolutions of an unknown size", 17,
   "(float[n,3,h,w] x, float[8,3,3,3] w, float[8,8,3,3] v) => (y) {"
   "  a = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w)"
   "  y = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (a, v)"
   "}",
   "y", "float32[n, 8, floor((h+3)/4), floor((w+3)/4)]"},
  {"growing cache", 17,
   "(float[b,4,past,8] past, float[b,4,seq,8] now) => (y) {"
   "  y = Concat <axis = 2> (past, now)"
   "}",
   "y", "float32[b, 4, past+seq, 8]"},
  {"slices count from the end", 17,
   "(float[b,n] x) => (y) <int64[1] s = {1}, int64[1] e = {9223372036854775807}, "
   "int64[1] a = {1}> {"
   "  y = Slice (x, s, e, a)"
   "}",
   "y", "float32[b, max(0, n-1)]"},
  {"a slice backwards", 17,
   "(float[b,10] x) => (y) <int64[1] s = {-1}, int64[1] e = {-9223372036854775807}, "
   "int64[1] a = {1}, int64[1] t = {-3}> {"
   "  y = Slice (x, s, e, a, t)"
   "}",
   "y", "float32[b, 4]"},
  {"a slice backwards from the end, of an unknown size", 17,
   "(float[b,n] x) => (y) <int64[1] s = {-1}, int64[1] e = {-9223372036854775807}, "
   "int64[1] a = {1}, int64[1] t = {-1}> { y = Slice (x, s, e, a, t) }",
   "y", "float32[b, n]"},
  {"a slice backwards that starts before the beginning", 17,
   "(float[b,5] x) => (y) <int64[1] s = {-9}, int64[1] e = {-9223372036854775807}, "
   "int64[1] a = {1}, int64[1] t = {-1}> { y = Slice (x, s, e, a, t) }",
   "y", "float32[b, 1]"},
  {"transposed, SAME, under a kernel smaller than its stride", 11,
   "(float[n,2,h] x, float[2,3,2] w) => (y) { "
   "y = ConvTranspose <strides = [4], auto_pad = \"SAME_UPPER\"> (x, w) }",
   "y", "float32[n, 3, 4*h-2]"},
  {"transposed, SAME, under a kernel larger than its stride", 11,
   "(float[n,2,h] x, float[2,3,5] w) => (y) { "
   "y = ConvTranspose <strides = [4], auto_pad = \"SAME_LOWER\"> (x, w) }",
   "y", "float32[n, 3, 4*h]"},
  {"attributes of Slice before opset 10", 9,
   "(float[b,10] x) => (y) { y = Slice <axes = [1, 0], starts = [2, 0], ends = [8, 1]> (x) }", "y",
   "float32[min(1, b), 6]"},
  {"a pool that rounds up starts inside", 11,
   "(float[1,1,4,4] x) => (y) {"
   "  y = MaxPool <kernel_shape = [1, 1], strides = [3, 3], ceil_mode = 1> (x)"
   "}",
   "y", "float32[1, 1, 2, 2]"},
  {"sizes of Resize from half of a size", 13,
   "(float[n,c,h,w] x) => (y) <float[4] sc = {1, 1, 0.5, 2}> { y = Resize (x, , sc) }", "y",
   "float32[n, c, floor(h/2), 2*w]"},
  {"sizes by way of floats", 13,
   "(float[n,c,h,w] x) => (y) <int64 i = {2}, float k = {1.5}, int64 z = {0}, int64 one = {1}> {"
   "  s = Shape (x) g = Gather (s, i) f = Cast <to = 1> (g) m = Mul (f, k) fl = Floor (m)"
   "  o = Cast <to = 7> (fl) y = Range (z, o, one)"
   "}",
   "y", "int64[floor((3*h)/2)]"},
  {"-1 turned into 1 by Where, as Expand exports write it", 17,
   "(float[b,1,64] x) => (y) <int64[3] t = {-1, 7, -1}, int64[1] m = {-1}, int64[1] n = {3}, "
   "int64[3] o = {1, 1, 1}> {"
   "  ones = ConstantOfShape <value = 1> (n) e = Equal (t, m) s = Where (e, o, t)"
   "  y = Expand (x, s)"
   "}",
   "y", "float32[b, 7, 64]"},
  {"a size that only a run can tell is one symbol", 17,
   "(float[n] x) => (y) { nz = NonZero (x) t = Transpose (nz) g = GatherND (x, t) y = Add (g, g) }",
   "y", "float32[?1]"},
  {"an unknown rank stays unknown", 17, "(float[] x) => (y) { y = Relu (x) }", "y", "float32[...]"},
  {"the element type is known without a shape", 17,
   "(float[] x, int64[r] s) => (y) { r = Reshape (x, s) y = ArgMax <axis = 0> (r) }", "y",
   "int64[...]"},
  {"axes of ReduceSum as an input", 13,
   "(float[b,n,4] x) => (y) <int64[1] a = {1}> { y = ReduceSum <keepdims = 0> (x, a) }", "y",
   "float32[b, 4]"},
  {"axes of ReduceMean as an attribute before 18", 13,
   "(float[b,n,4] x) => (y) { y = ReduceMean <axes = [1, 2], keepdims = 0> (x) }", "y",
   "float32[b]"},
  {"Einsum with letters", 13,
   "(float[b,h,i,d] a, float[b,h,j,d] c) => (y) {"
   "  y = Einsum <equation = \"bhid,bhjd->bhij\"> (a, c)"
   "}",
   "y", "float32[b, h, i, j]"},
  {"Split into uneven parts", 18,
   "(float[b,10] x) => (r) { p, q, r = Split <axis = 1, num_outputs = 3> (x) }", "r",
   "float32[b, 2]"},
  {"a broadcast of two symbols says so", 17,
   "(float[n,4] a, float[m,1] c) => (y) { y = Add (a, c) }", "y", "float32[broadcast(n, m), 4]"},
  {"LSTM of two directions", 14,
   "(float[seq,b,8] x, float[2,64,8] w, float[2,64,16] r) => (y) {"
   "  y, h, c = LSTM <hidden_size = 16, direction = \"bidirectional\"> (x, w, r)"
   "}",
   "y", "float32[seq, 2, b, 16]"},
  {"attention with grouped keys", 23,
   "(float[b,s,512] q, float[b,t,128] k, float[b,t,128] v) => (y) {"
   "  y = Attention <q_num_heads = 8, kv_num_heads = 2> (q, k, v)"
   "}",
   "y", "float32[b, s, 512]"},
  {"present of GroupQueryAttention: a cache that grows", 17,
   "(float[b,1,32] q, float[b,1,16] k, float[b,1,16] v, float[b,2,3,8] pk, float[b,2,3,8] pv,"
   " int32[b] lengths) => (y, w, z) <int32 total = {4}>"
   " { y, w, z = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2>"
   " (q, k, v, pk, pv, lengths, total) }",
   "w", "float32[b, 2, 4, 8]"},
  {"present of GroupQueryAttention: a buffer that is longer", 17,
   "(float[b,1,32] q, float[b,1,16] k, float[b,1,16] v, float[b,2,9,8] pk, float[b,2,9,8] pv,"
   " int32[b] lengths) => (y, w, z) <int32 total = {4}>"
   " { y, w, z = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2>"
   " (q, k, v, pk, pv, lengths, total) }",
   "w", "float32[b, 2, 9, 8]"},
  {"present of GroupQueryAttention is told by the length of a mask", 17,
   "(float[b,s,32] q, float[b,s,16] k, float[b,s,16] v, int64[b,all] mask, int32[b] lengths)"
   " => (y, w, z) <int64 one = {1}> { shape = Shape (mask) length = Gather (shape, one)"
   " total = Cast <to = 6> (length)"
   " y, w, z = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2>"
   " (q, k, v, \"\", \"\", lengths, total) }",
   "w", "float32[b, 2, all, 8]"},
  {"pairs of positions of packed tokens", 17,
   "(float[n,32] q, float[n,32] k, float[n,48] v, int32[b,s] o, int32[m] c) => (y)"
   " { y = com.microsoft.PackedMultiHeadAttention <num_heads = 4> (q, k, v, \"\", o, c) }",
   "y", "float32[n, 48]"},
  {"paged attention with all in one tensor", 17,
   "(float16[n,64] q, float16[p,16,2,8] k, float16[p,16,2,8] v, int32[c] s, int32[b] l,"
   " int32[b,m] t) => (y, w, z) { y, w, z = com.microsoft.PagedAttention"
   " <num_heads = 4, kv_num_heads = 2> (q, \"\", \"\", k, v, s, l, t) }",
   "y", "float16[n, 32]"},
  {"padding removed", 17,
   "(float[b,s,h] x, int32[b] n) => (y, o, c, m)"
   " { y, o, c, m = com.microsoft.RemovePadding (x, n) }",
   "c", "int32[b+1]"},
  {"padding put back", 17,
   "(float[n,h] x, int32[b,s] o) => (y) { y = com.microsoft.RestorePadding (x, o) }", "y",
   "float32[b, s, h]"},
  {"half of the last axis gates the other", 17,
   "(float[n,seq,80] x, float[80] b) => (y) { y = com.microsoft.BiasSplitGelu (x, b) }", "y",
   "float32[n, seq, 40]"},
  {"as many experts as one", 17,
   "(float16[n,8] x, float16[n,4] r, float16[4,16,8] a, float16[4,8,16] b) => (y)"
   " { y = com.microsoft.MoE <k = 2> (x, r, a, \"\", b) }",
   "y", "float16[n, 8]"},
  {"keys of three projections", 17,
   "(float[b,s,64] x, float[64] n, uint8[32,2,16] q, float[64] t, uint8[16,2,16] k, float[32] u,"
   " uint8[16,2,16] v, float[32] w) => (y, z, a)"
   " { y, z, a = com.microsoft.MatMulNBitsQkv <K = 64, Nq = 32, Nkv = 16, block_size = 32>"
   " (x, \"\", n, q, t, \"\", k, u, \"\", v, w) }",
   "z", "float32[b, s, 16]"},
  {"state of linear attention", 17,
   "(float[b,s,16] q, float[b,s,16] k, float[b,s,24] v) => (y, w)"
   " { y, w = com.microsoft.LinearAttention <q_num_heads = 2, kv_num_heads = 2> (q, k, v) }",
   "w", "float32[b, 2, 8, 12]"},
  {"moments of an optimizer", 17,
   "(float r, int64 t, float[3,n] x, float[3,n] g, float[3,n] v, float[3,n] h) => (a, b, c)"
   " { a, b, c = ai.onnx.preview.training.Adam (r, t, x, g, v, h) }",
   "c", "float32[3, n]"},
  {"two tensors of an optimizer", 17,
   "(float r, int64 t, float[3] x, float[n] y, float[3] g, float[n] h, float[3] u, float[n] v)"
   " => (a, b, c, d) { a, b, c, d = ai.onnx.preview.training.Momentum (r, t, x, y, g, h, u, v) }",
   "d", "float32[n]"},
  {"words that a beam search finds", 17,
   "(int32[b,s] x) => (y) <int32[1] most = {20}, int32[1] least = {1}, int32[1] beams = {4},"
   " int32[1] back = {2}> { y = com.microsoft.BeamSearch <eos_token_id = 1, pad_token_id = 0,"
   " decoder = d () => (o) { o = Identity (x) }> (x, most, least, beams, back) }",
   "y", "int32[b, 2, 20]"},
  {"present keys of MultiHeadAttention", 17,
   "(float[b,s,64] q, float[b,s,64] k, float[b,s,64] v, float[b,4,p,16] pk, "
   "float[b,4,p,16] pv) => (nk) {"
   "  y, nk, nv = com.microsoft.MultiHeadAttention <num_heads = 4> (q, k, v, , , , pk, pv)"
   "}",
   "nk", "float32[b, 4, s+p, 16]"},
  {"packed weights", 17,
   "(float[b,s,64] x, uint8[256,2,16] w, float[512] c) => (y) {"
   "  y = com.microsoft.MatMulNBits <K = 64, N = 256, bits = 4, block_size = 32> (x, w, c)"
   "}",
   "y", "float32[b, s, 256]"},
  {"SkipLayerNormalization", 17,
   "(float[b,s,64] x, float[b,s,64] k, float[64] g) => (sum) {"
   "  y, m, v, sum = com.microsoft.SkipLayerNormalization (x, k, g)"
   "}",
   "sum", "float32[b, s, 64]"},
  {"TopK at most takes what it is asked for", 11,
   "(float[b,n] x) => (i) <int64[1] k = {5}> { v, i = TopK (x, k) }", "i", "int64[b, 5]"},
  {"overflowing sizes are unknown", 17,
   "() => (y) <int64[3] s = {9223372036854775807, 9223372036854775807, 2}, int64[1] t = {-1}> {"
   "  x = ConstantOfShape (s) y = Reshape (x, t)"
   "}",
   "y", "float32[2*?0]"},
  {"a negative size is unknown", 17, "() => (y) <int64[1] s = {-5}> { y = ConstantOfShape (s) }",
   "y", "float32[?0]"},
  {"a kernel larger than its input", 17,
   "(float[1,1,2,2] x, float[1,1,5,5] w) => (y) { y = Conv (x, w) }", "y", "float32[1, 1, ?4, ?5]"},
  {"a step of zero", 17,
   "(float[10] x) => (y) <int64[1] o = {0}, int64[1] e = {5}> { y = Slice (x, o, e, o, o) }", "y",
   "float32[?0]"},
  {"axes out of range", 17, "(float[10] x) => (y) <int64[1] a = {7}> { y = Squeeze (x, a) }", "y",
   "float32[...]"},
  {"a range that never ends", 17,
   "() => (y) <int64 a = {0}, int64 b = {10}, int64 z = {0}> { y = Range (a, b, z) }", "y",
   "int64[?0]"},
  {"a range as long as an integer allows", 17,
   "() => (y) <int64 a = {-9223372036854775808}, int64 b = {9223372036854775807}, int64 z = {1}> {"
   "  y = Range (a, b, z)"
   "}",
   "y", "int64[?0]"},
  {"a division by zero", 17,
   "() => (y) <int64[1] a = {7}, int64[1] z = {0}> { s = Div (a, z) y = ConstantOfShape (s) }", "y",
   "float32[?0]"},
  {"an equation that is no equation", 17,
   "(float[2,3] x) => (y) { y = Einsum <equation = \"->.,..,\"> (x) }", "y", "float32[...]"},
};

static void rules_give_the_shapes_of_exports(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_model *model = model_of(cases[i].model, cases[i].opset);
    psplit_i_shapes *shapes = infer(model, NULL, 0);
    is(cases[i].why, shapes, cases[i].value, cases[i].expected);
    psplit_i_costs *costs;
    assert_int_equal(psplit_i_costs_create(shapes, NULL, NULL, &costs), PSPLIT_OK);
    psplit_i_costs_destroy(costs);
    psplit_i_shapes_destroy(shapes);
    psplit_model_close(model);
  }
}

/* From IR 4 on; before, such an initializer is a constant. */
static void defaults_count_where_they_may(void **state) {
  (void)state;
  psplit_model *model =
    model_of("(float[batch,64] x, int64[3] s = {-1, 8, 8}) => (y) { y = Reshape (x, s) }", 17);
  psplit_i_shapes *shapes = infer(model, NULL, 0);
  is("as emitted", shapes, "y", "float32[?4, ?5, ?6]");
  assert_string_equal(said, "");
  psplit_i_shapes_destroy(shapes);
  const psplit_logger logger = {.emit = note};
  const psplit_i_known_sizes sizes = {.defaults_hold = true};
  psplit_diag diag = {0};
  assert_int_equal(
    psplit_i_shapes_create_seen(psplit_i_model_graph(model), &sizes, &logger, &diag, &shapes),
    PSPLIT_OK);
  is("as planned", shapes, "y", "float32[batch, 8, 8]");
  assert_non_null(strstr(said, "sizes depend on inputs that have defaults, such as \"s\""));
  psplit_i_shapes_destroy(shapes);
  psplit_model_close(model);
}

/* A default that is not what the input is declared as says nothing: what is beyond its end would be
 * taken for its contents. */
static void defaults_of_another_type_do_not_count(void **state) {
  (void)state;
  static const char *const texts[] = {
    "(float[batch,64] x, int64[3] s) => (y) <int64[2] s = {8, 8}> { y = Reshape (x, s) }",
    "(float[batch,64] x, int64[3] s) => (y) <int32[3] s = {-1, 8, 8}> { y = Reshape (x, s) }"};
  for (int i = 0; i < 2; i++) {
    psplit_model *model = model_of(texts[i], 17);
    const psplit_i_known_sizes sizes = {.defaults_hold = true};
    psplit_i_shapes *shapes;
    psplit_diag diag = {0};
    assert_int_equal(
      psplit_i_shapes_create_seen(psplit_i_model_graph(model), &sizes, NULL, &diag, &shapes),
      PSPLIT_OK);
    is("as declared", shapes, "y", "float32[?4, ?5, ?6]");
    psplit_i_shapes_destroy(shapes);
    psplit_model_close(model);
  }
}

static void bindings_reach_branches_and_results(void **state) {
  (void)state;
  psplit_model *model =
    model_of("(float[batch,4] x) => (y) { s = Shape (x) y = ConstantOfShape (s) }", 17);
  const psplit_i_binding bindings[] = {{"batch", 3}, {"unused", 1}};
  psplit_i_shapes *shapes = infer(model, bindings, 2);
  is("bound", shapes, "y", "float32[3, 4]");
  psplit_i_shapes_destroy(shapes);
  shapes = infer(model, NULL, 0);
  is("free", shapes, "y", "float32[batch, 4]");
  const uint32_t y = psplit_i_graph_find_value(psplit_i_model_graph(model), "y");
  const psplit_i_emit_dim dim =
    psplit_i_shapes_emit_dim(shapes, psplit_i_shapes_type(shapes, y)->dims[0]);
  assert_string_equal(dim.symbol, "batch");
  assert_int_equal(dim.value, -1);
  psplit_i_shapes_destroy(shapes);
  psplit_diag diag = {0};
  const psplit_i_binding negative = {"batch", -1};
  assert_int_equal(
    psplit_i_shapes_create(psplit_i_model_graph(model), &negative, 1, NULL, &diag, &shapes),
    PSPLIT_INVALID);
  psplit_model_close(model);
}

static void work_is_known_or_says_what_is_missing(void **state) {
  (void)state;
  psplit_model *model = model_of(
    "(float[batch,128] x, float[unrelated] u, float[128,256] w) => (z, v) <int64[1] i = {0}> {"
    "  y = MatMul (x, w) z = Relu (y) v = Relu (u)"
    "}",
    17);
  psplit_i_shapes *shapes = infer(model, NULL, 0);
  psplit_i_costs *costs;
  assert_int_equal(psplit_i_costs_create(shapes, NULL, NULL, &costs), PSPLIT_OK);
  assert_false(psplit_i_costs_node(costs, 0).known);
  assert_int_equal(psplit_i_costs_n_unknown(costs), 3);
  assert_string_equal(psplit_i_costs_missing(costs, 0), "batch");
  assert_string_equal(psplit_i_costs_missing(costs, 1), "unrelated");
  assert_null(psplit_i_costs_missing(costs, 2));
  psplit_i_costs_destroy(costs);
  const psplit_i_binding bindings[] = {{"batch", 2}};
  psplit_i_cost_options options = {bindings, 1, -1, -1};
  assert_int_equal(psplit_i_costs_create(shapes, &options, NULL, &costs), PSPLIT_OK);
  psplit_work work = psplit_i_costs_node(costs, 0);
  assert_true(work.known);
  assert_int_equal(work.flops, 2 * 2 * 128 * 256);
  assert_int_equal(work.bytes_read, 4 * (2 * 128 + 128 * 256));
  assert_int_equal(work.bytes_written, 4 * 2 * 256);
  assert_int_equal(work.op_class, PSPLIT_CLASS_MATMUL);
  assert_string_equal(psplit_i_costs_missing(costs, 0), "unrelated");
  psplit_i_costs_destroy(costs);
  options.assume_input = 1;
  assert_int_equal(psplit_i_costs_create(shapes, &options, NULL, &costs), PSPLIT_OK);
  assert_int_equal(psplit_i_costs_n_unknown(costs), 0);
  assert_false(psplit_i_costs_node_assumed(costs, 0));
  assert_true(psplit_i_costs_node_assumed(costs, 2));
  uint64_t bytes;
  bool assumed;
  const uint32_t v = psplit_i_graph_find_value(psplit_i_model_graph(model), "v");
  assert_true(psplit_i_costs_value_bytes(costs, v, &bytes, &assumed));
  assert_int_equal(bytes, 4);
  assert_true(assumed);
  psplit_i_costs_destroy(costs);
  psplit_i_shapes_destroy(shapes);
  psplit_model_close(model);
}

/* A speech model's number of features was counted as 1, though its first convolution takes 80. */
static void sizes_that_a_node_takes_alone_are_known(void **state) {
  (void)state;
  psplit_model *model = model_of(
    "(float[n,c,9] x, float[n,k] u, float[found] t, bool q, float[r,3] s) => (y, v, z, g)"
    "<float[4,40,3] w = random(1), float[5,2] p = random(2)> {"
    "  y = Conv <group = 2> (x, w) v = MatMul (u, p) f = NonZero (t)"
    "  z = If (q) <then_branch = a () => (b) { b = MatMul (s, p) },"
    "              else_branch = d () => (e) { e = Relu (s) }>"
    "  h = Shape (f) g = Reshape (t, h)"
    "}",
    17);
  psplit_i_shapes *shapes = infer(model, NULL, 0);
  psplit_i_costs *costs;
  psplit_i_cost_options options = {NULL, 0, -1, -1};
  assert_int_equal(psplit_i_costs_create(shapes, &options, NULL, &costs), PSPLIT_OK);
  assert_string_equal(psplit_i_costs_missing(costs, 0), "n");
  assert_string_equal(psplit_i_costs_missing(costs, 1), "found");
  assert_string_equal(psplit_i_costs_missing(costs, 2), "r"); /* the branch may never run */
  assert_null(psplit_i_costs_missing(costs, 3));
  psplit_i_costs_destroy(costs);
  options.assume_input = options.assume_data = 1;
  assert_int_equal(psplit_i_costs_create(shapes, &options, NULL, &costs), PSPLIT_OK);
  assert_int_equal(psplit_i_costs_node(costs, 0).bytes_read, 4 * (80 * 9 + 4 * 40 * 3));
  assert_int_equal(psplit_i_costs_node(costs, 1).flops, 2 * 5 * 2);
  psplit_i_costs_destroy(costs);
  const psplit_i_binding given = {"c", 6}; /* the caller's own goes before */
  options.bindings = &given;
  options.n_bindings = 1;
  assert_int_equal(psplit_i_costs_create(shapes, &options, NULL, &costs), PSPLIT_OK);
  assert_int_equal(psplit_i_costs_node(costs, 0).bytes_read, 4 * (6 * 9 + 4 * 40 * 3));
  psplit_i_costs_destroy(costs);
  psplit_i_shapes_destroy(shapes);
  psplit_model_close(model);
}

/* The mask of an attention, which the plan of a training counted as that of one head. */
static void sizes_without_a_name_follow_from_others(void **state) {
  (void)state;
  psplit_model *model = model_of(
    "(float[batch,n,8] x, bool[?,n,n] mask, float[?,2] free) => (y, z)"
    "<int64[1] zero = {0}, int64[1] one = {1}, int64[1] heads = {4}> {"
    "  s = Shape (x) batch_size = Gather (s, zero) length = Gather (s, one)"
    "  rows = Mul (batch_size, heads) to = Concat <axis = 0> (rows, length, length)"
    "  y = Reshape (mask, to) z = Relu (free)"
    "}",
    17);
  psplit_i_shapes *shapes = infer(model, NULL, 0);
  const psplit_i_binding bindings[] = {{"n", 3}, {"batch", 5}};
  const uint32_t mask = psplit_i_graph_find_value(psplit_i_model_graph(model), "mask");
  uint64_t bytes;
  bool assumed;
  uint32_t value;
  int32_t axis;
  for (uint32_t n_given = 0; n_given <= 2; n_given++) {
    psplit_i_costs *costs;
    const psplit_i_cost_options options = {bindings, n_given, 2, 2};
    assert_int_equal(psplit_i_costs_create(shapes, &options, NULL, &costs), PSPLIT_OK);
    assert_true(psplit_i_costs_value_bytes(costs, mask, &bytes, &assumed));
    assert_int_equal(bytes, n_given == 0 ? 8 * 2 * 2 : n_given == 1 ? 8 * 3 * 3 : 20 * 3 * 3);
    assert_int_equal(assumed, n_given < 2);
    assert_true(psplit_i_costs_missing_axis(costs, 0, &value, &axis));
    assert_int_equal(value, mask + 1);
    assert_false(psplit_i_costs_missing_axis(costs, 1, &value, &axis));
    psplit_i_costs_destroy(costs);
  }
  psplit_i_shapes_destroy(shapes);
  psplit_model_close(model);
}

static void work_of_nothing_and_of_branches(void **state) {
  (void)state;
  psplit_model *model = model_of(
    "(float[0,4] none, bool c, float[2,2] x, float[n,2] open) => (a, y, z) { a = Relu (none)"
    "  y = If (c) <then_branch = t () => (r) { r = MatMul (x, x) },"
    "              else_branch = e () => (s) { s = Relu (x) }>"
    "  z = If (c) <then_branch = u () => (v) { v = MatMul (x, x) },"
    "              else_branch = o () => (w) { w = Relu (open) }>"
    "}",
    17);
  static const bool known[] = {true, true, false};
  psplit_i_shapes *shapes = infer(model, NULL, 0);
  psplit_i_costs *costs;
  assert_int_equal(psplit_i_costs_create(shapes, NULL, NULL, &costs), PSPLIT_OK);
  for (uint32_t n = 0; n < 3; n++) assert_int_equal(psplit_i_costs_node(costs, n).known, known[n]);
  assert_int_equal(psplit_i_costs_node(costs, 0).bytes_read, 0);
  assert_int_equal(psplit_i_costs_node(costs, 1).flops, 2 * 2 * 2 * 2); /* of the dearer branch */
  psplit_i_costs_destroy(costs);
  psplit_i_shapes_destroy(shapes);
  psplit_model_close(model);
}

/* Trips of different sizes count each with its own, and their weights once. */
static void work_of_few_trips(void **state) {
  (void)state;
  psplit_model *model = model_of(
    "(float[3,2] x) => (y) <int64 two = {2}, bool yes = {1}, float[2,2] w = random(1)> {"
    "  y = Loop (two, yes, x) <body = b (int64 i, bool go, float[m,2] old) => (on, new) {"
    "    longer = Concat <axis = 0> (old, x) new = MatMul (longer, w) on = Identity (go) }> }",
    17);
  psplit_i_shapes *shapes = infer(model, NULL, 0);
  is("after two trips", shapes, "y", "float32[9, 2]");
  psplit_i_costs *costs;
  assert_int_equal(psplit_i_costs_create(shapes, NULL, NULL, &costs), PSPLIT_OK);
  const psplit_work work = psplit_i_costs_node(costs, 0);
  assert_true(work.known);
  assert_int_equal(work.flops, (6 + 9) * 2 * 2 * 2);
  assert_int_equal(work.weight_bytes, 2 * 2 * 4);
  psplit_i_costs_destroy(costs);
  psplit_i_shapes_destroy(shapes);
  psplit_model_close(model);
}

/* Sizes of inputs are the caller's to give; what is found, or made by nobody knows what, is not. */
static void what_the_data_decides_is_told_from_what_is_open(void **state) {
  (void)state;
  psplit_model *model = model_of(
    "(float[batch,8] x, float[8,8] w) => (d, e, f, s) { a = MatMul (x, w) b = NonZero (a) "
    "s = Shape (b) c = Gather (a, b) d = MatMul (c, w) e = some.where.Odd (a) f = Relu (a) }",
    17);
  static const psplit_i_data_dependence expected[] = {
    PSPLIT_I_DATA_NONE,  PSPLIT_I_DATA_LIGHT, PSPLIT_I_DATA_NONE, PSPLIT_I_DATA_LIGHT,
    PSPLIT_I_DATA_HEAVY, PSPLIT_I_DATA_HEAVY, PSPLIT_I_DATA_NONE};
  psplit_i_shapes *shapes = infer(model, NULL, 0);
  const psplit_i_cost_options counted[] = {
    {NULL, 0, -1, -1}, {NULL, 0, 1, -1}, {NULL, 0, 1, 1}, {NULL, 0, 64, 1000}};
  for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
    psplit_i_costs *costs;
    uint32_t n_data = 0;
    assert_int_equal(psplit_i_costs_create(shapes, &counted[i], NULL, &costs), PSPLIT_OK);
    for (uint32_t n = 0; n < sizeof expected / sizeof *expected; n++) {
      if (psplit_i_costs_node_data(costs, n) != expected[n] && counted[i].assume_input > 0)
        fail_msg("case %zu, node %u: %d", i, n, (int)psplit_i_costs_node_data(costs, n));
      n_data += psplit_i_costs_node_data(costs, n) != PSPLIT_I_DATA_NONE;
    }
    assert_int_equal(psplit_i_costs_n_data(costs), n_data);
    const psplit_i_graph *graph = psplit_i_model_graph(model);
    assert_false(psplit_i_costs_value_data(costs, psplit_i_graph_find_value(graph, "w")));
    assert_true(psplit_i_costs_value_data(costs, psplit_i_graph_find_value(graph, "b")));
    assert_true(psplit_i_costs_value_data(costs, psplit_i_graph_find_value(graph, "e")));
    uint32_t value;
    int32_t axis;
    assert_false(psplit_i_costs_missing_axis(costs, 0, &value, &axis));
    psplit_i_costs_destroy(costs);
  }
  psplit_i_shapes_destroy(shapes);
  psplit_model_close(model);
}

static void a_missing_rule_is_said_once(void **state) {
  (void)state;
  psplit_model *model = model_of(
    "(float[4] x) => (c) { a = some.where.Odd (x) b = some.where.Odd (a) c = NoSuchOperator (b) }",
    17);
  psplit_i_shapes *shapes = infer(model, NULL, 0);
  assert_int_equal(psplit_i_shapes_n_uncovered(shapes), 3);
  assert_non_null(strstr(said, "some.where.Odd"));
  assert_null(strstr(strstr(said, "some.where.Odd") + 1, "some.where.Odd"));
  assert_non_null(strstr(said, "NoSuchOperator"));
  is("no rule", shapes, "c", "?");
  psplit_i_shapes_destroy(shapes);
  psplit_model_close(model);
}

/* y_i = y_{i-1} + y_{i-1} on sizes: values double and must not wrap; texts must not grow. */
static void sizes_that_double_are_cut_off(void **state) {
  (void)state;
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "(float[a,b,c] x) => (y) { s0 = Shape (x)\n");
  for (int i = 0; i < 400; i++)
    psplit_i_text_addf(&text, i % 2 ? "s%d = Mul (s%d, s%d)\n" : "s%d = Add (s%d, s0)\n", i + 1, i,
                       i);
  psplit_i_text_puts(&text, "y = ConstantOfShape (s400) }");
  psplit_model *model = model_of(text.bytes, 17);
  psplit_i_text_fini(&text);
  psplit_i_shapes *shapes = infer(model, NULL, 0);
  assert_true(psplit_i_dims_count(psplit_i_shapes_dims(shapes)) < 100000);
  const psplit_i_binding bindings[] = {{"a", 2}, {"b", 3}, {"c", 4}};
  psplit_i_costs *costs;
  const psplit_i_cost_options options = {bindings, 3, -1, -1};
  assert_int_equal(psplit_i_costs_create(shapes, &options, NULL, &costs), PSPLIT_OK);
  uint64_t bytes;
  const uint32_t y = psplit_i_graph_find_value(psplit_i_model_graph(model), "y");
  assert_false(psplit_i_costs_value_bytes(costs, y, &bytes, NULL));
  psplit_i_costs_destroy(costs);
  psplit_i_shapes_destroy(shapes);
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rules_give_the_shapes_of_exports),
    cmocka_unit_test(bindings_reach_branches_and_results),
    cmocka_unit_test(defaults_count_where_they_may),
    cmocka_unit_test(defaults_of_another_type_do_not_count),
    cmocka_unit_test(work_is_known_or_says_what_is_missing),
    cmocka_unit_test(sizes_without_a_name_follow_from_others),
    cmocka_unit_test(sizes_that_a_node_takes_alone_are_known),
    cmocka_unit_test(work_of_nothing_and_of_branches),
    cmocka_unit_test(work_of_few_trips),
    cmocka_unit_test(what_the_data_decides_is_told_from_what_is_open),
    cmocka_unit_test(a_missing_rule_is_said_once),
    cmocka_unit_test(sizes_that_double_are_cut_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
