/* The pattern language and the built-in patterns: what a text means, which mistakes are named with
 * their line, and that each shape an exporter writes becomes one group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.pb-c.h"
#include "open.h"
#include "pattern.h"
#include "planner.h"
#include "text_form.h"

/* A model from its nodes as text, in ONNX's syntax (docs/text-form.md): "a = Foo (x)" is one of the
 * standard domain, "a = my.domain.Foo (x)" one of my.domain, which patterns write my.domain:Foo.
 * Names in capitals are weights, zeros but for TWO; of the others, what nobody makes is an input
 * and what nobody reads an output. A text that starts with '(' is the whole graph. */
typedef struct sketch {
  psplit_model *model;
  psplit_planner *planner;
  const psplit_i_graph *graph;
} sketch;

static const char *const *user_patterns; /* what read_text hands out */

static psplit_code read_text(void *user, const char *path, psplit_diag *diag, char **out_text,
                             size_t *out_n) {
  (void)user;
  (void)path;
  (void)diag;
  *out_n = strlen(*user_patterns);
  *out_text = malloc(*out_n + 1);
  assert_non_null(*out_text);
  memcpy(*out_text, *user_patterns, *out_n + 1);
  return PSPLIT_OK;
}

/* Adds `name` unless it is there already. */
static void note(psplit_i_intern *names, const char *name) {
  if (psplit_i_intern_add(names, name) == PSPLIT_NONE) abort();
}

static bool in(const psplit_i_intern *names, const char *name) {
  return psplit_i_intern_find(names, name) != PSPLIT_NONE;
}

static void list(psplit_i_text *text, const char *before, const char *name, const char *after) {
  psplit_i_text_addf(text, "%sfloat%s %s%s", text->n ? ", " : "", before, name, after);
}

/* The graph around nodes. */
static psplit_i_text graph_around(const char *nodes) {
  psplit_i_text text = {0}, inputs = {0}, outputs = {0}, weights = {0};
  psplit_i_intern made, read;
  psplit_i_arena arena;
  psplit_diag diag = {0};
  Onnx__ModelProto *model;
  psplit_i_intern_init(&made);
  psplit_i_intern_init(&read);
  psplit_i_arena_init(&arena, 0);
  psplit_i_text_addf(&text, "() => () {%s}", nodes);
  if (psplit_i_text_parse(text.bytes, text.n, NULL, &arena, &diag, &model) != PSPLIT_OK)
    fail_msg("%s\n%s", diag.message, nodes);
  for (size_t n = 0; n < model->graph->n_node; n++) {
    const Onnx__NodeProto *node = model->graph->node[n];
    for (size_t i = 0; i < node->n_input; i++) note(&read, node->input[i]);
    for (size_t o = 0; o < node->n_output; o++) note(&made, node->output[o]);
  }
  for (uint32_t i = 0; i < read.n; i++) {
    const char *name = read.text[i];
    if (in(&made, name)) continue;
    if (strcmp(name, "TWO") == 0)
      list(&weights, "", name, " = {2}");
    else if (*name >= 'A' && *name <= 'Z')
      list(&weights, "[1]", name, " = {0}");
    else
      list(&inputs, "[4]", name, "");
  }
  for (uint32_t i = 0; i < made.n; i++)
    if (!in(&read, made.text[i])) list(&outputs, "[4]", made.text[i], "");
  text.n = 0;
  psplit_i_text_addf(&text, "(%s) => (%s) <%s> {%s}", inputs.n ? inputs.bytes : "",
                     outputs.n ? outputs.bytes : "", weights.n ? weights.bytes : "", nodes);
  psplit_i_text_fini(&inputs);
  psplit_i_text_fini(&outputs);
  psplit_i_text_fini(&weights);
  psplit_i_intern_fini(&made);
  psplit_i_intern_fini(&read);
  psplit_i_arena_fini(&arena);
  return text;
}

static sketch draw(const char *text) {
  psplit_i_text whole = {0};
  if (*text != '(') whole = graph_around(text);
  sketch s = {.model = opened_text(*text == '(' ? text : whole.bytes)};
  psplit_i_text_fini(&whole);
  s.graph = psplit_i_model_graph(s.model);
  return s;
}

static psplit_code fuse(sketch *s, const char *patterns, psplit_diag *diag) {
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.verify_each = true;
  options.read_text = read_text;
  user_patterns = &patterns;
  psplit_code code = psplit_planner_create(s->model, &options, diag, &s->planner);
  if (code == PSPLIT_OK)
    code = psplit_planner_run(s->planner, patterns ? "mark,fuse:patterns=mine" : "mark,fuse", diag);
  return code;
}

static void erase(sketch *s) {
  psplit_planner_destroy(s->planner);
  psplit_model_close(s->model);
}

/* Groups as text, by the first result of each node: those of one group in the file's order joined
 * by
 * '+', groups by their first node. */
static void groups_are(const char *model, const char *patterns, const char *wanted) {
  sketch s = draw(model);
  psplit_diag diag = {0};
  if (fuse(&s, patterns, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
  psplit_i_text got = {0};
  for (uint32_t n = 0; n < s.graph->n_nodes; n++) {
    const uint32_t group = psplit_i_group_of(&s.planner->grouping, n);
    bool is_first = true;
    for (uint32_t m = 0; m < n && is_first; m++)
      is_first = psplit_i_group_of(&s.planner->grouping, m) != group;
    for (uint32_t m = n; m < s.graph->n_nodes && is_first; m++)
      if (psplit_i_group_of(&s.planner->grouping, m) == group)
        psplit_i_text_addf(&got, "%s%s",
                           m > n ? "+"
                           : n   ? " "
                                 : "",
                           s.graph->values[s.graph->nodes[m].outputs[0]].name);
  }
  if (strcmp(got.bytes, wanted) != 0) fail_msg("%s\n  is  %s\n  not %s", model, got.bytes, wanted);
  psplit_i_text_fini(&got);
  erase(&s);
}

/* Every node is in one group, but for functions of constants, which are in none. */
static void is_one_group(const char *model) {
  sketch s = draw(model);
  psplit_diag diag = {0};
  if (fuse(&s, NULL, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
  for (uint32_t n = 1; n < s.graph->n_nodes; n++)
    if (!(s.planner->node_flags[n] & PSPLIT_I_NODE_FREE) &&
        psplit_i_group_of(&s.planner->grouping, n) != psplit_i_group_of(&s.planner->grouping, 0))
      fail_msg("%s\n  %s stands apart", model, s.graph->values[s.graph->nodes[n].outputs[0]].name);
  erase(&s);
}

static void activations(void **state) {
  (void)state;
  is_one_group(
    "c = Conv (x, W) d = Div (c, K) e = Erf (d) f = Add (e, K) g = Mul (c, f) "
    "y = Mul (g, K)");
  is_one_group(
    "c = MatMul (x, W) d = Div (c, K) e = Erf (d) f = Add (e, K) h = Mul (c, K) "
    "y = Mul (h, f)");
  is_one_group(
    "c = Gemm (x, W, B) d = Mul (c, K) e = Erf (d) f = Add (K, e) g = Mul (f, K) "
    "y = Mul (g, c)");
  is_one_group(
    "c = MatMul (x, W) w2 = Mul (c, c) w = Mul (c, w2) v = Mul (w, K) u = Add (c, v) "
    "s = Mul (u, K) t = Tanh (s) f = Add (t, K) h = Mul (c, K) y = Mul (h, f)");
  is_one_group("c = MatMul (x, W) s = Sigmoid (c) y = Mul (c, s)");
  is_one_group("c = Conv (x, W) s = HardSigmoid (c) y = Mul (s, c)");
  is_one_group("c = MatMul (x, W) z = Mul (c, K) s = Sigmoid (z) y = Mul (c, s)");
  is_one_group("c = Conv (x, W) a = Add (c, K) l = Clip (a, L, M) m = Mul (c, l) y = Div (m, K)");
  is_one_group("c = Conv (x, W) a = Add (c, K) l = Clip (a, L, M) d = Div (l, K) y = Mul (c, d)");
  is_one_group("c = Conv (x, W) p = Softplus (c) t = Tanh (p) y = Mul (c, t)");
  is_one_group(
    "c = Conv (x, W) e = Exp (c) o = Add (e, K) p = Log (o) t = Tanh (p) "
    "y = Mul (c, t)");
  is_one_group("m = ReduceMax (x) s = Sub (x, m) e = Exp (s) u = ReduceSum (e) y = Div (e, u)");
}

static void kernels(void **state) {
  (void)state;
  is_one_group(
    "c = ConvTranspose (x, W) n = BatchNormalization (c, S, T, M, V) "
    "y = LeakyRelu (n)");
  is_one_group("p = Pad (x, P) c = Conv (p, W) s = Add (c, r) y = Relu (s)");
  is_one_group(
    "q, s, z = DynamicQuantizeLinear (x) m = MatMulInteger (q, W, z, Z) c = Cast (m) "
    "f = Mul (s, K) g = Mul (c, f) y = Add (g, B)");
  is_one_group(
    "d = DequantizeLinear (x, S, Z) w = DequantizeLinear (W, S, Z) c = Conv (d, w) "
    "r = Relu (c) y = QuantizeLinear (r, S, Z)");
  /* Three products share the quantised input: it stands alone, each product is whole. */
  groups_are(
    "q, s, z = DynamicQuantizeLinear (x) m = MatMulInteger (q, W, z, Z) c = Cast (m) "
    "f = Mul (s, K) g = Mul (c, f) m2 = MatMulInteger (q, V, z, Z) c2 = Cast (m2) "
    "f2 = Mul (s, L) g2 = Mul (c2, f2)",
    NULL, "q m+c+f+g m2+c2+f2+g2");
  /* The sum's second operand comes from elsewhere; its reader is nobody's. */
  groups_are(
    "a = Conv (x, W) p = MaxPool (a) b = Conv (p, V) s = Add (b, p) y = Relu (s) "
    "z = Softmax (y)",
    NULL, "a p b+s+y z");
}

static void normalisations(void **state) {
  (void)state;
  is_one_group(
    "m = ReduceMean (x) d = Sub (x, m) q = Pow (d, TWO) v = ReduceMean (q) "
    "e = Add (v, E) r = Sqrt (e) n = Div (d, r) s = Mul (n, W) y = Add (s, B)");
  is_one_group(
    "x = Add (a, b) m = ReduceMean (x) d = Sub (x, m) q = Mul (d, d) "
    "v = ReduceMean (q) e = Add (v, E) r = Sqrt (e) n = Div (d, r) y = Mul (n, W)");
  /* A residual stream passes by: it can be cut behind its sum. */
  groups_are(
    "x = Add (a, b) m = ReduceMean (x) d = Sub (x, m) q = Mul (d, d) "
    "v = ReduceMean (q) e = Add (v, E) r = Sqrt (e) n = Div (d, r) y = Mul (n, W) "
    "keep = Softmax (x)",
    NULL, "x m+d+q+v+e+r+n+y keep");
  groups_are(
    "p = MatMul (a, W) x = Add (r, p) y = LayerNormalization (x, W, B) "
    "q = MatMul (y, V) z = Add (x, q)",
    NULL, "p+x y q+z");
  is_one_group(
    "m = ReduceMean (x) d = Sub (x, m) d2 = Sub (x, m) q = Pow (d, TWO) "
    "v = ReduceMean (q) e = Add (v, E) r = Sqrt (e) n = Div (d2, r) s = Mul (n, W) "
    "y = Add (s, B)");
  is_one_group(
    "q = Pow (x, TWO) v = ReduceMean (q) e = Add (v, E) r = Sqrt (e) i = Div (ONE, r) "
    "n = Mul (x, i) y = Mul (n, W)");
  is_one_group(
    "q = Mul (x, x) v = ReduceMean (q) e = Add (v, E) r = Sqrt (e) i = Reciprocal (r) "
    "n = Mul (x, i) c = Cast (n) y = Mul (W, c)");
  is_one_group(
    "r = Reshape (x, S) i = InstanceNormalization (r, G, B) b = Reshape (i, t) "
    "s = Mul (b, W) y = Add (s, C)");
  is_one_group("x = Add (a, b) y = LayerNormalization (x, W, B)");
}

static void attention(void **state) {
  (void)state;
  /* torch */
  is_one_group(
    "q0 = Transpose (q) qs = Mul (q0, K) k0 = Transpose (k) ks = Mul (k0, K) "
    "t = MatMul (qs, ks) s = Add (t, mask) p = Softmax (s) v0 = Transpose (v) "
    "y = MatMul (p, v0) o = Transpose (y)");
  /* tf2onnx */
  is_one_group(
    "t = MatMul (q, k) u = Mul (t, K) s = Add (u, mask) p = Softmax (s) "
    "y = MatMul (p, v)");
  /* optimum: a causal mask, then one for padding */
  is_one_group(
    "t = MatMul (q, k) u = Div (t, K) w = Where (causal, u, M) s = Add (w, mask) "
    "p = Softmax (s) p2 = Cast (p) y = MatMul (p2, v) o = Transpose (y)");
  is_one_group(
    "h1 = Slice (x, A, B, C) h2 = Slice (x, D, E, F) n = Neg (h2) r = Concat (n, h1) "
    "b = Mul (r, sin) a = Mul (x, cos) y = Add (a, b)");
  is_one_group(
    "h1, h2 = Split (x) n = Neg (h2) r = Concat (n, h1) a = Mul (x, cos) "
    "b = Mul (r, sin) y = Add (a, b)");
  is_one_group("i = Transpose (x) y, h, c = LSTM (i, W, R, B) z = Squeeze (y, AXES)");
  is_one_group("y = GRU (x, W, R, B) t = Transpose (y) z = Reshape (t, S)");
  is_one_group("i = Transpose (x) r = Resize (i, R, S) r2 = Resize (r, R, S) y = Transpose (r2)");
}

static void the_language(void **state) {
  (void)state;
  /* Alternatives: the first that fits counts; a custom domain is named; an input anywhere. */
  groups_are("a = Foo (x) b = Bar (a) c = Baz (b)", "pattern p\nk = Foo|Qux(_)\ny = Bar(k)\n",
             "a+b c");
  groups_are("a = Foo (x) b = Bar (a) c = Baz (b)",
             "set ends = Baz | Qux\npattern p\nk = Foo(_)\nm = *(k)\ny = @ends(m)\n", "a+b+c");
  groups_are("a = Foo (x) b = Bar (a)", "pattern p\nk = my.domain:Foo(_)\ny = Bar(k)\n", "a b");
  groups_are("a = my.domain.Foo (x) b = Bar (a)", "pattern p\nk = my.domain:Foo(_)\ny = Bar(k)\n",
             "a+b");
  groups_are("a = my.domain.Foo (x) b = Bar (a)", "pattern p\nk = Foo(_)\ny = Bar(k)\n", "a b");
  groups_are("a = Foo (x) b = Bar (x, x, a)", "pattern p\nk = Foo(_)\ny = Bar(~k)\n", "a+b");
  /* Optional steps, forwards and backwards. */
  groups_are("a = Foo (x) c = Baz (a)", "pattern p\nk = Foo(_)\nm ?= Bar(k)\ny = Baz(m)\n", "a+c");
  groups_are("a = Foo (x) b = Bar (a) c = Baz (b)",
             "pattern p\nk = Foo(_)\nm ?= Bar(k)\ny = Baz(m)\n", "a+b+c");
  groups_are("a = Foo (x) b = Bar (a) c = Baz (b)",
             "pattern p\ny = Baz(m)\nm ?= Bar(k)\nk = Foo(_)\n", "a+b+c");
  groups_are("a = Foo (x) c = Baz (a)", "pattern p\ny = Baz(m)\nm ?= Bar(k)\nk = Foo(_)\n", "a+c");
  /* What is read outside is no part of the inside, unless it may leave. */
  groups_are("a = Foo (x) b = Bar (a) c = Qux (a)", "pattern p\nk = Foo(_)\ny = Bar(k)\n", "a b c");
  groups_are("(x) => (a, b) { a = Foo (x) b = Bar (a) }", "pattern p\nk = Foo(_)\ny = Bar(k)\n",
             "a b");
  groups_are("a = Foo (x) b = Bar (a) c = Qux (a)", "pattern p\nk = Foo(_)\ny = Bar(k)\nout k y\n",
             "a+b c");
  /* Constants, numbers (the weights of this test hold zeros), equal names, order of inputs. */
  groups_are("a = Foo (x, K) b = Bar (a)", "pattern p\nk = Foo(_, const)\ny = Bar(k)\n", "a+b");
  groups_are("a = Foo (x, z) b = Bar (a)", "pattern p\nk = Foo(_, const)\ny = Bar(k)\n", "a b");
  groups_are("a = Foo (x, K) b = Bar (a)", "pattern p\nk = Foo(_, 0)\ny = Bar(k)\n", "a+b");
  groups_are("a = Foo (x, K) b = Bar (a)", "pattern p\nk = Foo(_, 2)\ny = Bar(k)\n", "a b");
  groups_are("a = Foo (x, x) b = Bar (a)", "pattern p\nk = Foo(v, v)\ny = Bar(k)\n", "a+b");
  groups_are("a = Foo (x, z) b = Bar (a)", "pattern p\nk = Foo(v, v)\ny = Bar(k)\n", "a b");
  groups_are("a = Mul (K, x) b = Bar (a)", "pattern p\nk = Mul(_, const)\ny = Bar(k)\n", "a+b");
  groups_are("a = Sub (K, x) b = Bar (a)", "pattern p\nk = Sub(_, const)\ny = Bar(k)\n", "a b");
  groups_are("a = Foo (x, z) b = Bar (a)", "pattern p\nk = Foo(_)\ny = Bar(k)\n", "a b");
  groups_are("a = Foo (x, z) b = Bar (a)", "pattern p\nk = Foo(_, *)\ny = Bar(k)\n", "a+b");
  groups_are("a, b = Foo (x) c = Bar (b)", "pattern p\nk, m = Foo(_)\ny = Bar(m)\n", "a+c");
}

/* A pattern stands for one per choice, in order; what may leave is each one's own. */
static void alternatives(void **state) {
  (void)state;
  static const char two[] =
    "pattern p\n"
    "  k = Foo(x)\n"
    "  either\n"
    "    m = Bar(k)\n"
    "  or     # by way of another\n"
    "    m0 = Qux(k)\n"
    "    m = Bar(m0)\n"
    "  end\n"
    "  y = Baz(m)\n"
    "  either\n"
    "    z = Bar(y)\n"
    "  or\n"
    "    z = Qux(y)\n"
    "  or\n"
    "  end\n";
  groups_are("a = Foo (x) b = Bar (a) c = Baz (b)", two, "a+b+c");
  groups_are("a = Foo (x) q = Qux (a) b = Bar (q) c = Baz (b)", two, "a+q+b+c");
  groups_are("a = Foo (x) q = Qux (a) b = Bar (q) c = Baz (b) d = Qux (c)", two, "a+q+b+c+d");
  groups_are("a = Foo (x) b = Bar (a) c = Baz (b) d = Bar (c)", two, "a+b+c+d");
  groups_are("a = Foo (x) b = Qux (a) c = Baz (b)", two, "a b c");
  /* The first that fits counts, so a longer one stands before its beginning. */
  groups_are("a = Foo (x) b = Bar (a)", "pattern p\nk = Foo(x)\neither\nor\ny = Bar(k)\nend\n",
             "a b");
  /* Alternatives may hold the anchor, "out", and sets that stand behind; a value may be "end". */
  groups_are("a = Foo (x) c = Baz (a)",
             "pattern p\neither\nk = Bar(x)\nor\nk = Foo(x)\nend\nend = Baz(k)\nset s = Qux\n",
             "a+c");
  groups_are("a = Foo (x) b = Bar (a) c = Qux (a)",
             "pattern p\nk = Foo(_)\neither\ny = Baz(k)\nor\ny = Bar(k)\nout k y\nend\n", "a+b c");
}

/* How often each name matched, its alternatives together. */
static void matches_are_counted(void **state) {
  (void)state;
  sketch s = draw("a = Foo (x) b = Bar (a) c = Foo (y) d = Baz (c)");
  psplit_diag diag = {0};
  assert_int_equal(fuse(&s,
                        "pattern mine\nk = Foo(_)\neither\nz = Bar(k)\nor\nz = Baz(k)\nend\n"
                        "pattern none\nk = Nothing(_)\n",
                        &diag),
                   PSPLIT_OK);
  const psplit_i_pattern_count *counts = s.planner->patterns;
  const uint32_t n = s.planner->n_patterns;
  assert_true(n > 2);
  assert_string_equal(counts[0].name, "kernel");
  assert_int_equal(counts[0].n_matches, 0);
  assert_string_equal(counts[n - 2].name, "mine");
  assert_int_equal(counts[n - 2].n_matches, 2);
  assert_int_equal(counts[n - 2].n_nodes, 4);
  assert_string_equal(counts[n - 1].name, "none");
  assert_int_equal(counts[n - 1].n_matches, 0);
  for (uint32_t p = 1; p < n; p++)
    for (uint32_t q = 0; q < p; q++) assert_string_not_equal(counts[p].name, counts[q].name);
  erase(&s);
}

static void is_refused(const char *text, const char *wanted) {
  sketch s = draw("a = Foo (x)");
  psplit_diag diag = {0};
  if (fuse(&s, text, &diag) != PSPLIT_USAGE || !strstr(diag.message, wanted))
    fail_msg("%s\n  says %s\n  not  %s", text, diag.message, wanted);
  erase(&s);
}

static void mistakes_are_named(void **state) {
  (void)state;
  is_refused("pattern\n", "mine:1: a pattern's name is missing");
  is_refused("# text\n\ny = Foo(x)\n", "mine:3: no pattern has begun before \"y\"");
  is_refused("pattern p\n\npattern q\ny = Foo(x)\n", "mine:1: no steps in pattern \"p\"");
  is_refused("pattern p\ny = Foo x\n", "mine:2: \"(\" is missing before \"x\"");
  is_refused("pattern p\ny = Foo(x\n", "mine:2: \")\" is missing");
  is_refused("pattern p\ny Foo(x)\n", "mine:2: \"=\" is missing before \"Foo(x)\"");
  is_refused("pattern p\ny = (x)\n", "mine:2: an operator is missing before \"(x)\"");
  is_refused("pattern p\ny = @none(x)\n", "mine:2: there is no set \"none\"");
  is_refused("pattern p\ny = Foo(*, x)\n", "mine:2: \"*\" must be the last operand");
  is_refused("pattern p\ny ?= Foo(x)\n", "mine:2: the first step cannot be optional");
  is_refused("pattern p\ny = Foo(x)\nz = Bar(u)\n", "mine:3: no earlier step names a value");
  is_refused("pattern p\ny = Foo(x)\ny = Bar(y)\n", "mine:3: two steps make \"y\"");
  is_refused("pattern p\ny = Foo(x) z\n", "mine:2: expected the end of the line, found \"z\"");
  is_refused("pattern p\ny = Foo(x)\nout x\n", "mine:1: \"out\" names a value that no step makes");
  is_refused("pattern p\ny = Foo(,)\n", "mine:2: an operand is missing");
  is_refused("set s Foo\n", "mine:1: expected: set NAME = OP | OP");
  is_refused("pattern p\ny = my:(x)\n", "mine:2: an operator is missing in \"my:\"");
  is_refused("pattern p\neither\ny = Foo(x)\n", "mine:2: \"end\" is missing");
  is_refused("pattern p\ny = Foo(x)\nend\n", "mine:3: \"either\" is missing");
  is_refused("pattern p\nor # here\n", "mine:2: \"either\" is missing");
  is_refused("pattern p\neither\neither\n", "mine:3: only steps");
  is_refused("pattern p\neither\nset s = Foo\nend\n", "mine:3: only steps");
  is_refused("pattern p\neither\npattern q\n", "mine:3: only steps");
  is_refused("pattern p\neither\ny = Foo(x)\nor\ny = Bar x\nend\n", "mine:5: \"(\" is missing");
  is_refused("pattern p\ny = Foo(x)\neither\nz = Bar(u)\nor\nz = Bar(y)\nend\n",
             "mine:4: no earlier step names a value");
  static const char eight[] = "either\nor\nor\nor\nor\nor\nor\nor\nend\n";
  psplit_i_text many = {0};
  psplit_i_text_addf(&many, "pattern p\ny = Foo(x)\n%s%s%s", eight, eight, eight);
  is_refused(many.bytes, "mine:29: the alternatives of a pattern may have at most 64 combinations");
  psplit_i_text_fini(&many);
}

/* Any bytes are taken or refused, never followed out of bounds; what parses can be run. */
static void any_text_is_safe(void **state) {
  (void)state;
  static const char *const words[] = {"pattern",
                                      "set",
                                      "out",
                                      "p",
                                      "y",
                                      "x",
                                      "=",
                                      "?=",
                                      "Foo",
                                      "(",
                                      ")",
                                      ",",
                                      "|",
                                      "*",
                                      "@ops",
                                      "~x",
                                      "const",
                                      "-1.5",
                                      "_",
                                      "\n",
                                      "\n",
                                      "#",
                                      "a:B",
                                      "Bar",
                                      "y = Foo(x)\n",
                                      "\npattern q\nk = Foo(_)\n",
                                      "either",
                                      "or",
                                      "end",
                                      "z = Bar(~y)\n"};
  for (uint64_t seed = 0; seed < 2000; seed++) {
    psplit_i_text text = {0};
    psplit_i_text_puts(&text, seed % 2 ? "pattern p\n" : "");
    for (unsigned i = 0; i < 12; i++)
      psplit_i_text_addf(&text, "%s ",
                         words[psplit_i_splitmix64(seed, i) % (sizeof words / sizeof *words)]);
    sketch s = draw("a = Foo (x) b = Bar (a) c = Foo (b) d = Bar (c)");
    psplit_diag diag = {0};
    const psplit_code code = fuse(&s, text.bytes, &diag);
    assert_true(code == PSPLIT_OK || code == PSPLIT_USAGE);
    erase(&s);
    psplit_i_text_fini(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(activations),         cmocka_unit_test(kernels),
    cmocka_unit_test(normalisations),      cmocka_unit_test(attention),
    cmocka_unit_test(the_language),        cmocka_unit_test(alternatives),
    cmocka_unit_test(matches_are_counted), cmocka_unit_test(mistakes_are_named),
    cmocka_unit_test(any_text_is_safe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
