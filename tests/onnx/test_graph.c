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

static uint32_t value_of(const psplit_graph *graph, const char *name) {
  const uint32_t id = psplit_i_graph_find_value(graph, name);
  if (id == PSPLIT_NONE) fail_msg("no value %s", name);
  return id;
}

/* Whether the ids are the values of these names, in this order. */
static void assert_names(const psplit_graph *graph, const uint32_t *ids, uint32_t n,
                         const char *names) {
  char found[1024] = "";
  for (uint32_t i = 0; i < n; i++) {
    strcat(found, i ? " " : "");
    strcat(found, ids[i] == PSPLIT_NONE ? "-" : graph->values[ids[i]].name);
  }
  assert_string_equal(found, names);
}

static void assert_consumers(const psplit_graph *graph, const char *name, uint32_t n,
                             const uint32_t *nodes) {
  const uint32_t v = value_of(graph, name);
  const uint32_t *off = graph->consumer_off;
  assert_int_equal(off[v + 1] - off[v], n);
  if (n) assert_memory_equal(graph->consumers + off[v], nodes, n * sizeof *nodes);
}

static const psplit_graph *graph_of(const psplit_model *model) {
  return psplit_i_model_graph(model);
}

/* `then_branch` and `else_branch` of an If that reads `condition`. */
static void add_if(pb *graph, const char *condition, const char *outputs, pb *then_graph,
                   pb *else_graph) {
  pb attributes = {0};
  add_body(&attributes, "then_branch", then_graph);
  if (else_graph) add_body(&attributes, "else_branch", else_graph);
  add_node_with(graph, "If", condition, outputs, &attributes);
}

static void optional_names_and_repeats(void **state) {
  (void)state;
  pb graph = {0};
  add_node(&graph, "Clip", "x - m", "a");
  add_node(&graph, "Mul", "a a", "b - c");
  add_node(&graph, "Add", "c a", "y");
  add_initializers(&graph, "m");
  add_values(&graph, 11, "x unused");
  add_values(&graph, 12, "y x m");
  pb bytes = make_model(&graph);
  psplit_model *model = opened(&bytes);
  const psplit_graph *g = graph_of(model);
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
  const int64_t two = 2;
  pb graph = {0}, sparse = {0};
  pb values = make_raw_tensor("s", 2, 1), indices = make_tensor("", 7, 1, &two);
  pb_bytes(&indices, 7, "\x01\x03", 2);
  pb_message(&sparse, 1, &values);
  pb_message(&sparse, 2, &indices);
  pb_int(&sparse, 3, 8);
  pb_message(&graph, 15, &sparse);
  add_initializers(&graph, "w listed");
  add_node(&graph, "Op", "w listed s", "y");
  add_values(&graph, 11, "x listed");
  add_values(&graph, 12, "y");
  pb bytes = make_model(&graph);
  psplit_model *model = opened(&bytes);
  const psplit_graph *g = graph_of(model);
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
static void captures_through_nested_bodies(void **state) {
  (void)state;
  pb inner = {0}, outer = {0}, other = {0}, graph = {0};
  add_node(&inner, "Op", "far shadowed near own", "t"); /* `own` is defined below */
  add_node(&inner, "Op", "far", "own");
  add_values(&inner, 12, "t near");
  add_node(&outer, "Op", "cond", "near");
  add_node(&outer, "Op", "near", "shadowed");
  add_if(&outer, "near", "t -", &inner, NULL);
  add_values(&outer, 12, "t");
  add_values(&other, 12, "far"); /* nothing but a captured output */
  add_if(&graph, "cond", "y", &outer, &other);
  add_node(&graph, "Op", "x", "far");
  add_node(&graph, "Op", "x", "shadowed");
  add_node(&graph, "Op", "x", "own");
  add_values(&graph, 11, "cond x");
  add_values(&graph, 12, "y");
  pb bytes = make_model(&graph);
  psplit_model *model = opened(&bytes);
  const psplit_graph *g = graph_of(model);
  const psplit_node *node = &g->nodes[0];
  assert_int_equal(node->n_bodies, 2);
  assert_names(g, node->captures, node->n_captures, "far"); /* `cond` is an input already */
  assert_consumers(g, "far", 1, (uint32_t[]){0});
  assert_consumers(g, "cond", 1, (uint32_t[]){0});
  assert_consumers(g, "shadowed", 0, NULL);
  assert_consumers(g, "own", 0, NULL);
  assert_int_equal(g->topo[0], 1); /* the node that makes `far` */
  const psplit_graph *body = psplit_i_attr_body(node, "then_branch");
  assert_ptr_equal(body, node->bodies[0]);
  assert_ptr_equal(psplit_i_attr_body(node, "else_branch"), node->bodies[1]);
  assert_names(body, body->nodes[2].captures, body->nodes[2].n_captures, "shadowed far");
  assert_int_equal(body->values[value_of(body, "shadowed")].outer, PSPLIT_NONE);
  const psplit_graph *at = body->nodes[2].bodies[0];
  assert_int_equal(at->values[value_of(at, "own")].outer, PSPLIT_NONE);
  const uint32_t far = psplit_i_value_resolve(&at, value_of(at, "far"));
  assert_ptr_equal(at, g);
  assert_int_equal(far, value_of(g, "far"));
  psplit_model_close(model);
}

static void body_inputs_shadow_and_value_infos_attach(void **state) {
  (void)state;
  pb body = {0}, attributes = {0}, graph = {0};
  add_node(&body, "Op", "i x w", "t");
  add_values(&body, 11, "i x");
  add_values(&body, 12, "t");
  add_values(&body, 13, "gone w t");
  add_body(&attributes, "body", &body);
  add_node_with(&graph, "Loop", "n", "y", &attributes);
  add_node(&graph, "Op", "y", "z");
  add_initializers(&graph, "w");
  add_values(&graph, 11, "n x");
  add_values(&graph, 12, "z");
  add_values(&graph, 13, "nothing y");
  pb bytes = make_model(&graph);
  psplit_model *model = opened(&bytes);
  const psplit_graph *g = graph_of(model);
  const psplit_graph *b = g->nodes[0].bodies[0];
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
  pb graph = {0};
  add_node(&graph, "Last", "c b", "y");
  add_node(&graph, "Third", "b", "c");
  add_node(&graph, "First", "x", "a");
  add_node(&graph, "Free", "x", "d");
  add_node(&graph, "Second", "a", "b");
  add_values(&graph, 11, "x");
  add_values(&graph, 12, "y");
  pb bytes = make_model(&graph);
  psplit_model *model = opened(&bytes);
  assert_memory_equal(graph_of(model)->topo, ((uint32_t[]){2, 3, 4, 1, 0}), 5 * sizeof(uint32_t));
  psplit_model_close(model);
}

static void cycles_are_named(void **state) {
  (void)state;
  pb graph = {0};
  add_node(&graph, "Op", "x", "a");
  add_node(&graph, "Op", "a y", "y");
  add_values(&graph, 11, "x");
  pb bytes = make_model(&graph);
  refused(&bytes, PSPLIT_INVALID, "cycle: #1 (Op) <- #1 (Op)");

  graph = (pb){0};
  add_node(&graph, "Op", "x d", "a"); /* waits for the cycle, is not on it */
  add_node(&graph, "Op", "a d", "b");
  add_node(&graph, "Op", "e x", "c");
  add_node(&graph, "Op", "c", "d");
  add_node(&graph, "Op", "d", "e");
  add_values(&graph, 11, "x");
  bytes = make_model(&graph);
  refused(&bytes, PSPLIT_INVALID, "cycle: #3 (Op) <- #2 (Op) <- #4 (Op) <- #3 (Op)");

  graph = (pb){0};
  for (unsigned i = 0; i < 100000; i++) {
    char from[16], to[16];
    snprintf(from, sizeof from, "v%u", (i + 1) % 100000);
    snprintf(to, sizeof to, "v%u", i);
    add_node(&graph, "Op", from, to);
  }
  bytes = make_model(&graph);
  refused(&bytes, PSPLIT_INVALID, "<- ... <- #0 (Op)");

  pb body = {0}; /* through a capture */
  graph = (pb){0};
  add_values(&body, 12, "y");
  add_if(&graph, "c", "y", &body, NULL);
  add_values(&graph, 11, "c");
  bytes = make_model(&graph);
  refused(&bytes, PSPLIT_INVALID, "cycle: #0 (If) <- #0 (If)");

  body = (pb){0}; /* inside a body */
  graph = (pb){0};
  add_node(&body, "In", "q", "p");
  add_node(&body, "In", "p", "q");
  add_if(&graph, "c", "y", &body, NULL);
  add_values(&graph, 11, "c");
  bytes = make_model(&graph);
  refused(&bytes, PSPLIT_INVALID, "cycle: #0 (In)");
}

static void each_value_has_one_definition(void **state) {
  (void)state;
  static const struct {
    const char *inputs, *initializers, *outputs; /* of the graph; of a node */
  } cases[] = {
    {"x", "", "a a"}, {"x", "", "a x"}, {"x", "w", "w"}, {"x x", "", "a"}, {"x", "w w", "a"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (unsigned inside = 0; inside < 2; inside++) {
      pb graph = {0}, outer = {0};
      add_node(&graph, "Op", "", cases[i].outputs);
      add_values(&graph, 11, cases[i].inputs);
      add_initializers(&graph, cases[i].initializers);
      if (inside) add_if(&outer, "", "", &graph, NULL);
      pb bytes = make_model(inside ? &outer : &graph);
      refused(&bytes, PSPLIT_INVALID, "is defined twice");
    }
  }
  pb graph = {0}; /* by two nodes */
  add_node(&graph, "Op", "", "a");
  add_node(&graph, "Op", "", "b a");
  pb bytes = make_model(&graph);
  refused(&bytes, PSPLIT_INVALID, "value \"a\" is defined twice");

  graph = (pb){0}; /* dense and sparse */
  const int64_t none = 0;
  pb sparse = {0}, values = make_raw_tensor("w", 0, 0), indices = make_tensor("", 7, 1, &none);
  pb_message(&sparse, 1, &values);
  pb_message(&sparse, 2, &indices);
  pb_message(&graph, 15, &sparse);
  add_initializers(&graph, "w");
  bytes = make_model(&graph);
  refused(&bytes, PSPLIT_INVALID, "value \"w\" is defined twice");

  pb attributes = {0}; /* an attribute, among few and among many */
  for (unsigned n = 2; n < 40; n += 30) {
    graph = (pb){0};
    for (unsigned i = 0; i < n; i++) {
      char name[16];
      snprintf(name, sizeof name, "a%u", i);
      add_int_attribute(&attributes, name, 1);
    }
    pb copy = {0};
    psplit_i_text_add(&copy, attributes.bytes, attributes.n);
    add_node_with(&graph, "Op", "", "y", &copy);
    bytes = make_model(&graph);
    psplit_model_close(opened(&bytes));
    add_int_attribute(&attributes, "a1", 2);
    graph = (pb){0};
    add_node_with(&graph, "Op", "", "y", &attributes);
    bytes = make_model(&graph);
    refused(&bytes, PSPLIT_INVALID, "attribute \"a1\" twice");
  }

  graph = (pb){0}; /* an operator set: twice the same is harmless, two versions are not */
  add_node(&graph, "Op", "", "y");
  bytes = make_model(&graph);
  pb opset = {0};
  pb_string(&opset, 1, "ai.onnx");
  pb_int(&opset, 2, 18);
  pb_message(&bytes, 8, &opset);
  pb copy = {0};
  psplit_i_text_add(&copy, bytes.bytes, bytes.n);
  psplit_model_close(opened(&copy));
  pb_int(&opset, 2, 17);
  pb_message(&bytes, 8, &opset);
  refused(&bytes, PSPLIT_INVALID, "in versions 18 and 17");
}

static void undefined_names_are_refused(void **state) {
  (void)state;
  pb graph = {0};
  add_node(&graph, "Op", "nowhere", "y");
  pb bytes = make_model(&graph);
  refused(&bytes, PSPLIT_INVALID, "node #0 (Op) reads \"nowhere\"");

  graph = (pb){0};
  add_node(&graph, "Op", "", "y");
  add_values(&graph, 12, "z");
  bytes = make_model(&graph);
  refused(&bytes, PSPLIT_INVALID, "output \"z\"");

  pb body = {0}; /* what a sibling body defines is not in scope, nor what a body defines outside */
  pb sibling = {0};
  graph = (pb){0};
  add_node(&sibling, "Op", "", "hidden");
  add_node(&body, "Op", "hidden", "t");
  add_if(&graph, "", "y", &sibling, &body);
  bytes = make_model(&graph);
  refused(&bytes, PSPLIT_INVALID, "reads \"hidden\"");

  graph = (pb){0};
  body = (pb){0};
  add_node(&body, "Op", "", "hidden");
  add_if(&graph, "", "y", &body, NULL);
  add_node(&graph, "Op", "hidden", "z");
  bytes = make_model(&graph);
  refused(&bytes, PSPLIT_INVALID, "reads \"hidden\"");

  graph = (pb){0}; /* a function sees its own inputs only */
  add_values(&graph, 11, "x");
  bytes = make_model(&graph);
  pb function = make_function("F", "a", "b"), node = make_node("Op", "x", "b", NULL);
  pb_message(&function, 7, &node);
  pb_message(&bytes, 25, &function);
  refused(&bytes, PSPLIT_INVALID, "function \"F\": node #0 (Op) reads \"x\"");

  graph = (pb){0};
  add_values(&graph, 11, "-");
  bytes = make_model(&graph);
  refused(&bytes, PSPLIT_INVALID, "has no name");
}

/* A call to a function of domain "local". */
static void add_call(pb *owner, uint32_t field, const char *name, const char *overload,
                     const char *inputs, const char *outputs) {
  pb node = make_node(name, inputs, outputs, NULL);
  pb_string(&node, 7, "local");
  if (*overload) pb_string(&node, 8, overload);
  pb_message(owner, field, &node);
}

static void functions_and_overloads_are_found(void **state) {
  (void)state;
  char giant[3000];
  memset(giant, 'g', sizeof giant - 1);
  giant[sizeof giant - 1] = '\0';
  pb f = make_function("F", "a", "b"), g = make_function("G", "a", "b");
  pb g_two = make_function("G", "a", "b"), h = make_function(giant, "a", "b"), body = {0};
  pb_string(&g_two, 13, "two");
  add_call(&f, 7, "G", "two", "a", "t");
  add_call(&f, 7, giant, "", "t", "b");
  add_call(&g, 7, "Neg", "", "a", "b");
  add_call(&g_two, 7, "Neg", "", "a", "b");
  add_call(&body, 1, "Neg", "", "a", "t"); /* h's only call of G stands in a body */
  add_call(&body, 1, "G", "", "t", "u");
  add_values(&body, 12, "u");
  pb attributes = {0};
  add_body(&attributes, "body", &body);
  pb node = make_node("Loop", "a", "b", &attributes);
  pb_message(&h, 7, &node);
  pb graph = {0};
  add_call(&graph, 1, "F", "", "x", "t");
  add_call(&graph, 1, "G", "three", "t", "u");
  add_node(&graph, "F", "u", "y"); /* another domain */
  add_values(&graph, 11, "x");
  pb bytes = make_model(&graph);
  pb_message(&bytes, 25, &f);
  pb_message(&bytes, 25, &g);
  pb_message(&bytes, 25, &g_two);
  pb_message(&bytes, 25, &h);
  psplit_model *model = opened(&bytes);
  const psplit_graph *m = graph_of(model), *in_f = psplit_i_model_function(model, 0);
  assert_int_equal(psplit_i_model_n_functions(model), 4);
  assert_int_equal(m->nodes[0].function, 0);
  assert_int_equal(m->nodes[1].function, PSPLIT_NONE); /* no such overload */
  assert_int_equal(m->nodes[2].function, PSPLIT_NONE);
  assert_int_equal(in_f->nodes[0].function, 2);
  assert_int_equal(in_f->nodes[1].function, 3);
  assert_int_equal(psplit_i_model_function(model, 1)->nodes[0].function, PSPLIT_NONE);
  const psplit_graph *in_h = psplit_i_model_function(model, 3)->nodes[0].bodies[0];
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
  pb graph = {0}, a = {0}, b = {0};
  pb_string(&a, 10, "d");
  pb_string(&a, 1, "x\x1fy");
  pb_string(&b, 10, "d\x1fx");
  pb_string(&b, 1, "y");
  pb bytes = make_model(&graph);
  pb_message(&bytes, 25, &a);
  pb_message(&bytes, 25, &b);
  psplit_model_close(opened(&bytes));

  pb f = make_function("F", "a", "a"), again = make_function("F", "x", "x");
  graph = (pb){0};
  bytes = make_model(&graph);
  pb_message(&bytes, 25, &f);
  pb_message(&bytes, 25, &again);
  refused(&bytes, PSPLIT_INVALID, "function \"F\" is defined twice");
}

static void recursion_is_refused(void **state) {
  (void)state;
  for (unsigned n = 1; n <= 3; n++) {
    pb graph = {0};
    pb bytes = make_model(&graph);
    for (unsigned i = 0; i < n; i++) { /* each calls the next, the last one in a body */
      char name[8], next[8];
      snprintf(name, sizeof name, "F%u", i);
      snprintf(next, sizeof next, "F%u", (i + 1) % n);
      pb function = make_function(name, "a", "b");
      if (i + 1 < n) {
        add_call(&function, 7, next, "", "a", "b");
      } else {
        pb body = {0}, attributes = {0};
        add_call(&body, 1, next, "", "a", "t");
        add_values(&body, 12, "t");
        add_body(&attributes, "then_branch", &body);
        pb node = make_node("If", "a", "b", &attributes);
        pb_message(&function, 7, &node);
      }
      pb_message(&bytes, 25, &function);
    }
    refused(&bytes, PSPLIT_INVALID, "calls itself");
  }
}

/* A hundred functions, each of which calls the next ten times: 10^100 nodes if expanded. */
static void call_bombs_are_not_expanded(void **state) {
  (void)state;
  pb graph = {0};
  add_call(&graph, 1, "F0", "", "x", "y");
  add_values(&graph, 11, "x");
  pb bytes = make_model(&graph);
  for (unsigned i = 0; i < 100; i++) {
    char name[8], next[8], in[8], out[8];
    snprintf(name, sizeof name, "F%u", i);
    snprintf(next, sizeof next, "F%u", i + 1);
    pb function = make_function(name, "v0", "v10");
    for (unsigned k = 0; k < 10; k++) {
      snprintf(in, sizeof in, "v%u", k);
      snprintf(out, sizeof out, "v%u", k + 1);
      add_call(&function, 7, next, "", in, out);
    }
    pb_message(&bytes, 25, &function);
  }
  psplit_model_close(opened(&bytes));
}

static void attributes_are_read_by_type(void **state) {
  (void)state;
  pb attributes = {0}, attribute = {0}, graph = {0};
  add_int_attribute(&attributes, "three", 3);
  pb_string(&attribute, 1, "zero"); /* as proto3 writers do: the type and no value */
  pb_int(&attribute, 20, 2);
  pb_message(&attributes, 5, &attribute);
  pb_string(&attribute, 1, "untyped");
  pb_int(&attribute, 3, 7);
  pb_message(&attributes, 5, &attribute);
  pb_string(&attribute, 1, "liar"); /* says float, holds an int */
  pb_int(&attribute, 3, 7);
  pb_int(&attribute, 20, 1);
  pb_message(&attributes, 5, &attribute);
  pb_string(&attribute, 1, "ref");
  pb_string(&attribute, 21, "outer");
  pb_int(&attribute, 20, 2);
  pb_message(&attributes, 5, &attribute);
  pb_string(&attribute, 1, "none"); /* an empty list */
  pb_int(&attribute, 20, 7);
  pb_message(&attributes, 5, &attribute);
  pb_string(&attribute, 1, "text");
  pb_string(&attribute, 4, "");
  pb_int(&attribute, 20, 3);
  pb_message(&attributes, 5, &attribute);
  add_node_with(&graph, "Op", "", "y", &attributes);
  pb bytes = make_model(&graph);
  psplit_model *model = opened(&bytes);
  const psplit_node *node = &graph_of(model)->nodes[0];
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
  pb body = {0}, inputs = {0}, graph = {0};
  for (unsigned i = 0; i < 4 * MANY; i++) { /* a node that reads and captures a great deal */
    char name[16];
    snprintf(name, sizeof name, "v%u", i);
    pb_string(&inputs, i % 2 ? 1 : 2, name);
    if (i % 2) add_values(&graph, 11, name);
    if (i % 2) add_node(&body, "Op", name, "");
  }
  pb attribute = {0};
  pb_message(&attribute, 6, &body);
  pb_string(&attribute, 1, "body");
  pb_int(&attribute, 20, 5);
  pb_message(&inputs, 5, &attribute);
  pb_message(&graph, 1, &inputs);
  pb bytes = make_model(&graph);
  clock_t start = clock();
  psplit_model *model = opened(&bytes);
  assert_fast(start);
  assert_int_equal(graph_of(model)->nodes[0].n_captures, 0);
  psplit_model_close(model);

  graph = (pb){0}; /* as many domains as nodes, each node of another */
  for (unsigned i = 0; i < MANY; i++) {
    char name[16];
    snprintf(name, sizeof name, "d%u", i);
    pb node = make_node("Op", "", "", NULL);
    pb_string(&node, 7, name);
    pb_message(&graph, 1, &node);
  }
  bytes = make_model(&graph);
  for (unsigned i = MANY; i-- > 0;) {
    char name[16];
    snprintf(name, sizeof name, "d%u", i);
    pb opset = {0};
    pb_string(&opset, 1, name);
    pb_int(&opset, 2, i);
    pb_message(&bytes, 8, &opset);
  }
  start = clock();
  model = opened(&bytes);
  assert_fast(start);
  assert_int_equal(graph_of(model)->nodes[77].opset, 77);
  psplit_model_close(model);

  graph = (pb){0}; /* a cycle of two, one of which reads a great deal before it */
  pb node = {0};
  for (unsigned i = 0; i < 3 * MANY; i++) pb_string(&node, 1, "x");
  pb_string(&node, 1, "b");
  pb_string(&node, 2, "a");
  pb_message(&graph, 1, &node);
  add_node(&graph, "Op", "a", "b");
  for (unsigned i = 0; i < 3 * MANY; i++) add_node(&graph, "", "", "");
  add_values(&graph, 11, "x");
  bytes = make_model(&graph);
  start = clock();
  refused(&bytes, PSPLIT_INVALID, "cycle");
  assert_fast(start);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(optional_names_and_repeats),
    cmocka_unit_test(initializers_of_all_kinds),
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
