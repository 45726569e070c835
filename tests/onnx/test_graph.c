/* The graph index of hand-made models. opened() also checks every invariant that graph.h states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "onnx.pb-c.h"
#include "open.h"

static uint32_t value_of(const psplit_i_graph *graph, const char *name) {
  const uint32_t id = psplit_i_graph_find_value(graph, name);
  if (id == PSPLIT_NONE) fail_msg("no value %s", name);
  return id;
}

/* Whether the ids are the values of these names, in this order. */
static void assert_names(const psplit_i_graph *graph, const uint32_t *ids, uint32_t n,
                         const char *names) {
  char found[1024] = "";
  for (uint32_t i = 0; i < n; i++) {
    strcat(found, i ? " " : "");
    strcat(found, ids[i] == PSPLIT_NONE ? "-" : graph->values[ids[i]].name);
  }
  assert_string_equal(found, names);
}

static void assert_consumers(const psplit_i_graph *graph, const char *name, uint32_t n,
                             const uint32_t *nodes) {
  const uint32_t v = value_of(graph, name);
  const uint32_t *off = graph->consumer_off;
  assert_int_equal(off[v + 1] - off[v], n);
  if (n) assert_memory_equal(graph->consumers + off[v], nodes, n * sizeof *nodes);
}

/* The header of a function that may call others of its domain. */
#define LOCAL "<domain: \"local\", opset_import: [\"\": 18, \"local\": 1]> "

static const psplit_i_graph *graph_of(const psplit_model *model) {
  return psplit_i_model_graph(model);
}

static void optional_names_and_repeats(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "(x, unused) => (y, x, m) <float[1] m = {1}> {"
    "  a = Clip (x, , m)"
    "  b, , c = Mul (a, a)"
    "  y = Add (c, a)"
    "}");
  const psplit_i_graph *g = graph_of(model);
  assert_names(g, g->nodes[0].inputs, g->nodes[0].n_inputs, "x - m");
  assert_names(g, g->nodes[1].inputs, g->nodes[1].n_inputs, "a a");
  assert_names(g, g->nodes[1].outputs, g->nodes[1].n_outputs, "b - c");
  assert_names(g, g->outputs, g->n_outputs, "y x m");
  assert_consumers(g, "a", 2, (uint32_t[]){1, 2});
  assert_consumers(g, "m", 1, (uint32_t[]){0});
  assert_consumers(g, "unused", 0, NULL);
  assert_consumers(g, "b", 0, NULL);
  assert_int_equal(g->values[value_of(g, "x")].input, 0);
  assert_true(g->values[value_of(g, "x")].is_output);
  assert_int_equal(g->values[value_of(g, "m")].initializer, 0);
  assert_int_equal(g->nodes[0].opset, 18);
  assert_int_equal(psplit_i_graph_find_value(g, "-"), PSPLIT_NONE);
  psplit_model_close(model);
}

static void initializers_of_all_kinds(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "(x, listed) => (y) @{sparse_initializer: [{"
    "  values: float[2] s = raw {1, 2}, indices: int64[2] \"\" {1, 3}, dims: [8]}]}"
    "<float[1] w = {1}, float[1] listed = {1}> {"
    "  y = Op (w, listed, s)"
    "}");
  const psplit_i_graph *g = graph_of(model);
  assert_names(g, g->initializers, g->n_initializers, "w listed");
  assert_names(g, g->inputs, g->n_inputs, "x listed");
  assert_int_equal(g->values[value_of(g, "listed")].input, 1);
  assert_int_equal(g->values[value_of(g, "listed")].initializer, 1);
  assert_int_equal(g->values[value_of(g, "s")].sparse_initializer, 0);
  assert_int_equal(g->n_sparse_initializers, 1);
  psplit_model_close(model);
}

/* A captured value is an input of every node on the way in; a name defined inside is not captured,
 * even where the definition comes after the use or repeats an outer name. */
/* Fields in any order, in pieces, twice and unknown: a node is what protobuf libraries say it is.
 * opened() compares with protobuf-c. */
static void nodes_are_read_in_any_order(void **state) {
  (void)state;
  enum { INPUT = 1, OUTPUT = 2, NAME = 3, OP_TYPE = 4, ATTRIBUTE = 5, DOMAIN = 7, UNKNOWN = 1000 };
  pb model = {0}, graph = {0}, node = {0}, axis = {0}, keep = {0}, input = {0}, opset = {0};
  pb_string(&axis, 1, "axis");
  pb_int(&axis, 3, 7);
  pb_int(&axis, 20, 2);
  pb_string(&keep, 1, "keepdims");
  pb_int(&keep, 20, 2);
  pb_message(&node, ATTRIBUTE, &axis);
  pb_string(&node, NAME, "first");
  pb_string(&node, OUTPUT, "y");
  pb_string(&node, INPUT, "x");
  pb_string(&node, OP_TYPE, "Relu");
  pb_string(&node, UNKNOWN, "from the future");
  pb_string(&node, INPUT, "");
  pb_string(&node, DOMAIN, "elsewhere");
  pb_string(&node, OP_TYPE, "ReduceSum");
  pb_string(&node, NAME, "");
  pb_int(&node, UNKNOWN + 1, -1);
  pb_string(&node, OUTPUT, "z");
  pb_message(&node, ATTRIBUTE, &keep);
  pb_string(&node, INPUT, "x");
  pb_string(&node, DOMAIN, "ai.onnx");
  pb_message(&graph, 1, &node);
  pb_string(&input, 1, "x");
  pb_message(&graph, 11, &input);
  pb_int(&opset, 2, 13);
  pb_int(&model, 1, 8);
  pb_message(&model, 7, &graph);
  pb_message(&model, 8, &opset);
  psplit_model *opened_model = opened(&model);
  const psplit_i_graph *g = graph_of(opened_model);
  const psplit_i_node *read = &g->nodes[0];
  int64_t value = -1;
  assert_int_equal(g->n_nodes, 1);
  assert_string_equal(read->name, "");
  assert_string_equal(read->op_type, "ReduceSum");
  assert_string_equal(read->domain, "");
  assert_int_equal(read->opset, 13);
  assert_names(g, read->inputs, read->n_inputs, "x - x");
  assert_names(g, read->outputs, read->n_outputs, "y z");
  assert_int_equal(read->n_attributes, 2);
  assert_true(psplit_i_attr_int(read, "axis", &value));
  assert_int_equal(value, 7);
  assert_true(psplit_i_attr_int(read, "keepdims", &value));
  assert_int_equal(value, 0);
  psplit_model_close(opened_model);
}

static void captures_through_nested_bodies(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "(cond, x) => (y) {"
    "  y = If (cond) <then_branch = () => (t) {"
    "    near = Op (cond)"
    "    shadowed = Op (near)"
    "    t, \"\" = If (near) <then_branch = () => (t, near) {"
    "      t = Op (far, shadowed, near, own)"
    "      own = Op (far)"
    "    }>"
    "  }, else_branch = () => (far) {}>" /* nothing but a captured output */
    "  far = Op (x)"
    "  shadowed = Op (x)"
    "  own = Op (x)"
    "}");
  const psplit_i_graph *g = graph_of(model);
  const psplit_i_node *node = &g->nodes[0];
  assert_int_equal(node->n_bodies, 2);
  assert_names(g, node->captures, node->n_captures, "far"); /* `cond` is an input already */
  assert_consumers(g, "far", 1, (uint32_t[]){0});
  assert_consumers(g, "cond", 1, (uint32_t[]){0});
  assert_consumers(g, "shadowed", 0, NULL);
  assert_consumers(g, "own", 0, NULL);
  assert_int_equal(g->topo[0], 1); /* the node that makes `far` */
  const psplit_i_graph *body = psplit_i_attr_body(node, "then_branch");
  assert_ptr_equal(body, node->bodies[0]);
  assert_ptr_equal(psplit_i_attr_body(node, "else_branch"), node->bodies[1]);
  assert_names(body, body->nodes[2].captures, body->nodes[2].n_captures, "shadowed far");
  assert_int_equal(body->values[value_of(body, "shadowed")].outer, PSPLIT_NONE);
  const psplit_i_graph *at = body->nodes[2].bodies[0];
  assert_int_equal(at->values[value_of(at, "own")].outer, PSPLIT_NONE);
  const uint32_t far = psplit_i_value_resolve(&at, value_of(at, "far"));
  assert_ptr_equal(at, g);
  assert_int_equal(far, value_of(g, "far"));
  psplit_model_close(model);
}

static void body_inputs_shadow_and_value_infos_attach(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "(n, x) => (float z) <float[1] w = {1}, float nothing, float y> {"
    "  y = Loop (n) <body = (i, x) => (float[4] t) <float gone, float w, float[4] t> {"
    "    t = Op (i, x, w)"
    "  }>"
    "  z = Op (y)"
    "}");
  const psplit_i_graph *g = graph_of(model);
  const psplit_i_graph *b = g->nodes[0].bodies[0];
  assert_names(g, g->nodes[0].captures, g->nodes[0].n_captures, "w");
  assert_int_equal(g->values[value_of(g, "y")].value_info, 1);
  assert_non_null(g->values[value_of(g, "y")].declared_type);
  assert_int_equal(g->values[value_of(g, "z")].value_info, PSPLIT_NONE);
  assert_non_null(g->values[value_of(g, "z")].declared_type);
  assert_int_equal(b->values[value_of(b, "t")].value_info, 2);
  assert_int_equal(b->values[value_of(b, "w")].value_info, PSPLIT_NONE); /* not the body's own */
  assert_int_equal(psplit_i_type_rank(b->values[value_of(b, "t")].declared_type), 1);
  assert_int_equal(psplit_i_type_dim(b->values[value_of(b, "t")].declared_type, 0).value, 4);
  psplit_model_close(model);
}

static void unsorted_files_are_ordered(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "(x) => (y) {"
    "  y = Last (c, b)"
    "  c = Third (b)"
    "  a = First (x)"
    "  d = Free (x)"
    "  b = Second (a)"
    "}");
  assert_memory_equal(graph_of(model)->topo, ((uint32_t[]){2, 3, 4, 1, 0}), 5 * sizeof(uint32_t));
  psplit_model_close(model);
}

static void cycles_are_named(void **state) {
  (void)state;
  refused_text("(x) => () { a = Op (x) y = Op (a, y) }", PSPLIT_INVALID,
               "cycle: #1 (Op) <- #1 (Op)");
  refused_text(
    "(x) => () {"
    "  a = Op (x, d)" /* waits for the cycle, is not on it */
    "  b = Op (a, d)"
    "  c = Op (e, x)"
    "  d = Op (c)"
    "  e = Op (d)"
    "}",
    PSPLIT_INVALID, "cycle: #3 (Op) <- #2 (Op) <- #4 (Op) <- #3 (Op)");

  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "() => () {");
  for (unsigned i = 0; i < 100000; i++)
    psplit_i_text_addf(&text, "v%u = Op (v%u)\n", i, (i + 1) % 100000);
  psplit_i_text_puts(&text, "}");
  refused_text(text.bytes, PSPLIT_INVALID, "<- ... <- #0 (Op)");
  psplit_i_text_fini(&text);

  /* through a capture, and inside a body */
  refused_text("(c) => () { y = If (c) <then_branch = () => (y) {}> }", PSPLIT_INVALID,
               "cycle: #0 (If) <- #0 (If)");
  refused_text("(c) => () { y = If (c) <then_branch = () => () { p = In (q) q = In (p) }> }",
               PSPLIT_INVALID, "cycle: #0 (In)");
}

static void each_value_has_one_definition(void **state) {
  (void)state;
  static const char *const graphs[] = {
    "(x) => () { a, a = Op () }",
    "(x) => () { a, x = Op () }",
    "(x) => () <float w = {1}> { w = Op () }",
    "(x, x) => () { a = Op () }",
    "(x) => () <float w = {1}, float w = {1}> { a = Op () }",
  };
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    psplit_i_text inside = {0};
    psplit_i_text_addf(&inside, "() => () { = If () <then_branch = %s> }", graphs[i]);
    refused_text(graphs[i], PSPLIT_INVALID, "is defined twice");
    refused_text(inside.bytes, PSPLIT_INVALID, "is defined twice");
    psplit_i_text_fini(&inside);
  }
  refused_text("() => () { a = Op () b, a = Op () }", PSPLIT_INVALID,
               "value \"a\" is defined twice");
  refused_text(
    "() => () @{sparse_initializer: [{values: float[0] w {}, indices: int64[0] {}}]}"
    "<float w = {1}> {}",
    PSPLIT_INVALID, "value \"w\" is defined twice");

  for (unsigned n = 2; n < 40; n += 30) { /* an attribute, among few and among many */
    psplit_i_text text = {0};
    psplit_i_text_puts(&text, "() => () { y = Op <");
    for (unsigned i = 0; i < n; i++) psplit_i_text_addf(&text, "%sa%u = 1", i ? ", " : "", i);
    const size_t n_before = text.n;
    psplit_i_text_puts(&text, "> () }");
    psplit_model_close(opened_text(text.bytes));
    text.n = n_before;
    psplit_i_text_puts(&text, ", a1 = 2> () }");
    refused_text(text.bytes, PSPLIT_INVALID, "attribute \"a1\" twice");
    psplit_i_text_fini(&text);
  }

  /* an operator set: twice the same is harmless, two versions are not */
  psplit_model_close(
    opened_text("<ir_version: 10, opset_import: [\"\": 18, \"ai.onnx\": 18]>"
                "() => () { y = Op () }"));
  refused_text(
    "<ir_version: 10, opset_import: [\"\": 18, \"ai.onnx\": 18, \"ai.onnx\": 17]>"
    "() => () { y = Op () }",
    PSPLIT_INVALID, "in versions 18 and 17");
}

static void undefined_names_are_refused(void **state) {
  (void)state;
  refused_text("() => () { y = Op (nowhere) }", PSPLIT_INVALID, "node #0 (Op) reads \"nowhere\"");
  refused_text("() => (z) { y = Op () }", PSPLIT_INVALID, "output \"z\"");
  /* what a sibling body defines is not in scope, nor what a body defines outside */
  refused_text(
    "() => () { y = If () <then_branch = () => () { hidden = Op () },"
    "                      else_branch = () => () { t = Op (hidden) }> }",
    PSPLIT_INVALID, "reads \"hidden\"");
  refused_text("() => () { y = If () <then_branch = () => () { hidden = Op () }> z = Op (hidden) }",
               PSPLIT_INVALID, "reads \"hidden\"");
  /* a function sees its own inputs only */
  refused_text("(x) => () {} <domain: \"local\"> F (a) => (b) { b = Op (x) }", PSPLIT_INVALID,
               "function \"F\": node #0 (Op) reads \"x\"");
  refused_text("(\"\") => () {}", PSPLIT_INVALID, "has no name");
}

static void functions_and_overloads_are_found(void **state) {
  (void)state;
  char giant[3000];
  memset(giant, 'g', sizeof giant - 1);
  giant[sizeof giant - 1] = '\0';
  psplit_i_text text = {0};
  psplit_i_text_puts(&text,
                     "(x) => (y) {"
                     "  t = local.F (x)"
                     "  u = local.G:three (t)"
                     "  y = F (u)" /* another domain */
                     "}");
  psplit_i_text_addf(&text, LOCAL "F (a) => (b) { t = local.G:two (a) b = local.%s (t) }", giant);
  psplit_i_text_puts(&text, LOCAL "G (a) => (b) { b = local.Neg (a) }");
  psplit_i_text_puts(&text,
                     "<overload: \"two\", domain: \"local\", opset_import: [\"local\": 1]> "
                     "G (a) => (b) { b = local.Neg (a) }");
  /* its only call of G stands in a body */
  psplit_i_text_addf(&text,
                     LOCAL
                     "%s (a) => (b) { b = Loop (a) <body = () => (u) {"
                     "  t = local.Neg (a) u = local.G (t) }> }",
                     giant);
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  const psplit_i_graph *m = graph_of(model), *in_f = psplit_i_model_function(model, 0);
  assert_int_equal(psplit_i_model_n_functions(model), 4);
  assert_int_equal(m->nodes[0].function, 0);
  assert_int_equal(m->nodes[1].function, PSPLIT_NONE); /* no such overload */
  assert_int_equal(m->nodes[2].function, PSPLIT_NONE);
  assert_int_equal(in_f->nodes[0].function, 2);
  assert_int_equal(in_f->nodes[1].function, 3);
  assert_int_equal(psplit_i_model_function(model, 1)->nodes[0].function, PSPLIT_NONE);
  const psplit_i_graph *in_h = psplit_i_model_function(model, 3)->nodes[0].bodies[0];
  assert_int_equal(in_h->nodes[1].function, 1);
  assert_names(psplit_i_model_function(model, 3),
               psplit_i_model_function(model, 3)->nodes[0].captures,
               psplit_i_model_function(model, 3)->nodes[0].n_captures, "");
  assert_int_equal(in_f->nodes[0].opset, 1);
  psplit_model_close(model);
}

static void function_names_are_not_glued(void **state) {
  (void)state;
  /* Keys made by putting the names one after the other would be equal. */
  psplit_model_close(
    opened_text("() => ()\n"
                "{} <domain: \"d\"> e\"x\\x1fy\" () => () {}"
                "   <domain: e\"d\\x1fx\"> y () => () {}"));
  refused_text("() => () {} " LOCAL "F (a) => (a) {} " LOCAL "F (x) => (x) {}", PSPLIT_INVALID,
               "function \"F\" is defined twice");
}

static void recursion_is_refused(void **state) {
  (void)state;
  static const char *const texts[] = {
    "() => () {}" LOCAL "A (a) => (b) { b = If (a) <then_branch = () => (t) { t = local.A (a) }> }",
    "() => () {}" LOCAL "A (a) => (b) { b = local.B (a) }" LOCAL
    "B (a) => (b) { b = If (a) <then_branch = () => (t) { t = local.A (a) }> }",
    "() => () {}" LOCAL "A (a) => (b) { b = local.B (a) }" LOCAL
    "B (a) => (b) { b = local.C (a) }" LOCAL
    "C (a) => (b) { b = If (a) <then_branch = () => (t) { t = local.A (a) }> }",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    refused_text(texts[i], PSPLIT_INVALID, "calls itself");
}

/* A hundred functions, each of which calls the next ten times: 10^100 nodes if expanded. */
static void call_bombs_are_not_expanded(void **state) {
  (void)state;
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "(x) => () { y = local.F0 (x) }");
  for (unsigned i = 0; i < 100; i++) {
    psplit_i_text_addf(&text, LOCAL "F%u (v0) => (v10) {", i);
    for (unsigned k = 0; k < 10; k++)
      psplit_i_text_addf(&text, "v%u = local.F%u (v%u) ", k + 1, i + 1, k);
    psplit_i_text_puts(&text, "}");
  }
  psplit_model_close(opened_text(text.bytes));
  psplit_i_text_fini(&text);
}

static void attributes_are_read_by_type(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "() => () { y = Op <three = 3,"
    "  {name: \"zero\", type: INT}," /* as proto3 writers do: the type and no value */
    "  {name: \"untyped\", i: 7},"
    "  {name: \"liar\", i: 7, type: FLOAT},"
    "  ref: int = @outer, none: ints = [], text = \"\"> () }");
  const psplit_i_node *node = &graph_of(model)->nodes[0];
  int64_t i = -1;
  float f = -1;
  const int64_t *ints;
  const float *floats;
  const char *text;
  size_t n = 99;
  assert_true(psplit_i_attr_int(node, "three", &i) && i == 3);
  assert_true(psplit_i_attr_int(node, "zero", &i) && i == 0);
  assert_true(psplit_i_attr_int(node, "untyped", &i) && i == 7);
  i = -1;
  assert_false(psplit_i_attr_int(node, "liar", &i) || i != -1);
  assert_true(psplit_i_attr_float(node, "liar", &f) && f == 0);
  assert_false(psplit_i_attr_int(node, "ref", &i) || psplit_i_attr_int(node, "absent", &i));
  assert_false(psplit_i_attr_float(node, "untyped", &f));
  assert_true(psplit_i_attr_ints(node, "none", &ints, &n) && n == 0);
  assert_false(psplit_i_attr_floats(node, "none", &floats, &n));
  assert_false(psplit_i_attr_ints(node, "untyped", &ints, &n));
  assert_true(psplit_i_attr_string(node, "text", &text, &n) && n == 0 && !*text);
  assert_true(psplit_i_node_has_attr_ref(node));
  psplit_model_close(model);
}

/* Processor time since `start` is below what the quadratic step of each case would take, and far
 * above what the linear one does, sanitizers included. */
static void assert_fast(clock_t start) {
  const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  if (seconds > 6) fail_msg("took %.1f s", seconds);
}

/* Work that a file can ask for must stay near linear in its size. */
static void hostile_sizes_stay_fast(void **state) {
  (void)state;
  enum { MANY = 100000 };
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "(v1"); /* a node that reads and captures a great deal */
  for (unsigned i = 3; i < 4 * MANY; i += 2) psplit_i_text_addf(&text, ", v%u", i);
  psplit_i_text_puts(&text, ") => () { v0");
  for (unsigned i = 2; i < 4 * MANY; i += 2) psplit_i_text_addf(&text, ", v%u", i);
  psplit_i_text_puts(&text, " = (v1");
  for (unsigned i = 3; i < 4 * MANY; i += 2) psplit_i_text_addf(&text, ", v%u", i);
  psplit_i_text_puts(&text, ") <body = () => () {");
  for (unsigned i = 1; i < 4 * MANY; i += 2) psplit_i_text_addf(&text, "= Op (v%u)", i);
  psplit_i_text_puts(&text, "}> }");
  pb bytes = bytes_of_text(text.bytes);
  psplit_i_text_fini(&text);
  clock_t start = clock();
  psplit_model *model = opened(&bytes);
  assert_fast(start);
  assert_int_equal(graph_of(model)->nodes[0].n_captures, 0);
  psplit_model_close(model);

  psplit_i_text_puts(&text, "<ir_version: 10, opset_import: [\"\": 18"); /* each node of another */
  for (unsigned i = MANY; i-- > 0;) psplit_i_text_addf(&text, ", \"d%u\": %u", i, i);
  psplit_i_text_puts(&text, "]> () => () {");
  for (unsigned i = 0; i < MANY; i++) psplit_i_text_addf(&text, "= d%u.Op ()", i);
  psplit_i_text_puts(&text, "}");
  bytes = bytes_of_text(text.bytes);
  psplit_i_text_fini(&text);
  start = clock();
  model = opened(&bytes);
  assert_fast(start);
  assert_int_equal(graph_of(model)->nodes[77].opset, 77);
  psplit_model_close(model);

  psplit_i_text_puts(&text, "(x) => () { a = ("); /* a cycle, of which one reads a great deal */
  for (unsigned i = 0; i < 3 * MANY; i++) psplit_i_text_puts(&text, "x, ");
  psplit_i_text_puts(&text, "b) b = Op (a)");
  for (unsigned i = 0; i < 3 * MANY; i++) psplit_i_text_puts(&text, "= \"\" ()");
  psplit_i_text_puts(&text, "}");
  bytes = bytes_of_text(text.bytes);
  psplit_i_text_fini(&text);
  start = clock();
  refused(&bytes, PSPLIT_INVALID, "cycle");
  assert_fast(start);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(optional_names_and_repeats),
    cmocka_unit_test(initializers_of_all_kinds),
    cmocka_unit_test(nodes_are_read_in_any_order),
    cmocka_unit_test(captures_through_nested_bodies),
    cmocka_unit_test(body_inputs_shadow_and_value_infos_attach),
    cmocka_unit_test(unsorted_files_are_ordered),
    cmocka_unit_test(cycles_are_named),
    cmocka_unit_test(each_value_has_one_definition),
    cmocka_unit_test(undefined_names_are_refused),
    cmocka_unit_test(functions_and_overloads_are_found),
    cmocka_unit_test(function_names_are_not_glued),
    cmocka_unit_test(recursion_is_refused),
    cmocka_unit_test(call_bombs_are_not_expanded),
    cmocka_unit_test(attributes_are_read_by_type),
    cmocka_unit_test(hostile_sizes_stay_fast),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
