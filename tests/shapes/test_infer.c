/* Shape inference on small models, one for each rule of thumb that real exports need, and on models
 * that are made to hurt. A model is a text of one line per item, and a case says what a value must
 * print as:
 *
 *   in x float batch,3,h      an input; "?" for a dimension without a name, "..." for no shape
 *
 *   const s int64 2: 1 -1     an initializer: dims, then elements ("int64 :" is a scalar)
 *
 *   Reshape x s > y ; axis=1 perm=0,2,1    a node; "-" is an omitted input
 *
 *   out y                     an output
 */
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

static int32_t type_number(const char *name) {
  for (int32_t type = 1; type < 24; type++)
    if (psplit_i_dtype_name(type) && strcmp(psplit_i_dtype_name(type), name) == 0) return type;
  return strcmp(name, "float") == 0 ? 1 : 0;
}

static bool is_number(const char *text) {
  return *text && strspn(text + (*text == '-'), "0123456789") == strlen(text + (*text == '-'));
}

/* in NAME TYPE DIMS */
static void add_input(pb *graph, char *rest) {
  char *name = strtok(rest, " "), *type_name = strtok(NULL, " "), *dims = strtok(NULL, " ");
  pb shape = {0}, tensor = {0}, type = {0}, info = {0};
  pb_int(&tensor, 1, type_number(type_name));
  if (!dims || strcmp(dims, "...") != 0) {
    for (char *dim = dims ? strtok(dims, ",") : NULL; dim; dim = strtok(NULL, ",")) {
      pb message = {0};
      if (is_number(dim))
        pb_int(&message, 1, strtoll(dim, NULL, 10));
      else if (strcmp(dim, "?") != 0)
        pb_string(&message, 2, dim);
      pb_message(&shape, 1, &message);
    }
    pb_message(&tensor, 2, &shape);
  }
  pb_message(&type, 1, &tensor);
  pb_string(&info, 1, name);
  pb_message(&info, 2, &type);
  pb_message(graph, 11, &info);
}

/* const NAME TYPE DIMS: ELEMENTS */
static void add_constant(pb *graph, char *rest) {
  char *colon = strchr(rest, ':');
  *colon = '\0';
  char *name = strtok(rest, " "), *type_name = strtok(NULL, " "), *dims = strtok(NULL, " ");
  const int32_t type = type_number(type_name);
  pb tensor = {0};
  for (char *dim = dims ? strtok(dims, ",") : NULL; dim; dim = strtok(NULL, ","))
    pb_int(&tensor, 1, strtoll(dim, NULL, 10));
  pb_int(&tensor, 2, type);
  pb_string(&tensor, 8, name);
  pb data = {0};
  for (char *item = strtok(colon + 1, " "); item; item = strtok(NULL, " ")) {
    const int64_t whole = strtoll(item, NULL, 10);
    const float real = strtof(item, NULL);
    const uint8_t byte = (uint8_t)whole;
    if (type == 1)
      psplit_i_text_add(&data, &real, sizeof real);
    else if (type == 7)
      psplit_i_text_add(&data, &whole, sizeof whole);
    else
      psplit_i_text_add(&data, &byte, 1);
  }
  pb_bytes(&tensor, 9, data.bytes, data.n);
  psplit_i_text_fini(&data);
  pb_message(graph, 5, &tensor);
}

/* NAME=1 or NAME=1,2 or NAME=TEXT */
static void add_attribute(pb *node, char *text) {
  char *equals = strchr(text, '=');
  *equals = '\0';
  pb attribute = {0};
  pb_string(&attribute, 1, text);
  if (strchr(equals + 1, ',') && !strstr(equals + 1, "->")) {
    for (char *save, *item = strtok_r(equals + 1, ",", &save); item;
         item = strtok_r(NULL, ",", &save))
      pb_int(&attribute, 8, strtoll(item, NULL, 10));
    pb_int(&attribute, 20, 7);
  } else if (is_number(equals + 1)) {
    pb_int(&attribute, 3, strtoll(equals + 1, NULL, 10));
    pb_int(&attribute, 20, 2);
  } else {
    pb_string(&attribute, 4, equals + 1);
    pb_int(&attribute, 20, 3);
  }
  pb_message(node, 5, &attribute);
}

static void add_line(pb *graph, char *line) {
  if (strncmp(line, "in ", 3) == 0) {
    add_input(graph, line + 3);
  } else if (strncmp(line, "const ", 6) == 0) {
    add_constant(graph, line + 6);
  } else if (strncmp(line, "out ", 4) == 0) {
    pb info = {0};
    pb_string(&info, 1, line + 4);
    pb_message(graph, 12, &info);
  } else {
    pb node = {0};
    int part = 0;
    char *save;
    char *word = strtok_r(line, " ", &save), *dot = strrchr(word, '.');
    pb_string(&node, 4, dot ? dot + 1 : word);
    if (dot) {
      *dot = '\0';
      pb_string(&node, 7, word);
    }
    for (word = strtok_r(NULL, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
      if (strcmp(word, ">") == 0 || strcmp(word, ";") == 0)
        part++;
      else if (part < 2)
        pb_string(&node, part == 0 ? 1 : 2, strcmp(word, "-") == 0 ? "" : word);
      else
        add_attribute(&node, word);
    }
    pb_message(graph, 1, &node);
  }
}

static psplit_model *model_of(const char *text, int64_t opset) {
  char *copy = strdup(text);
  pb graph = {0}, model = {0}, import = {0}, contrib = {0};
  for (char *save, *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
    add_line(&graph, line);
  free(copy);
  pb_int(&model, 1, 8);
  pb_message(&model, 7, &graph);
  pb_int(&import, 2, opset);
  pb_message(&model, 8, &import);
  pb_string(&contrib, 1, "com.microsoft");
  pb_int(&contrib, 2, 1);
  pb_message(&model, 8, &contrib);
  return opened(&model);
}

static char said[4096];

static void note(void *user, psplit_severity severity, const char *line) {
  (void)user;
  (void)severity;
  const size_t n = strlen(said);
  snprintf(said + n, sizeof said - n, "%s\n", line);
}

static psplit_i_shapes *infer(psplit_model *model, const psplit_binding *bindings, size_t n) {
  psplit_diag diag = {0};
  psplit_i_shapes *shapes;
  const psplit_sink sink = {.emit = note};
  said[0] = '\0';
  if (psplit_i_shapes_create(psplit_i_model_graph(model), bindings, n, &sink, &diag, &shapes) !=
      PSPLIT_OK)
    fail_msg("%s", diag.message);
  return shapes;
}

static void is(const char *why, const psplit_i_shapes *shapes, const char *value,
               const char *expected) {
  const uint32_t id = psplit_i_graph_find_value(psplit_i_shapes_graph(shapes), value);
  if (id == PSPLIT_NONE) fail_msg("%s: no value %s", why, value);
  psplit_text text = {0};
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
   "in x float batch,seq,768\nconst i int64 : 0\nconst j int64 : 1\nconst a int64 1: 0\n"
   "const t int64 2: 12 64\nShape x > s\nGather s i > b\nGather s j > q\nUnsqueeze b a > bu\n"
   "Unsqueeze q a > qu\nConcat bu qu t > shape ; axis=0\nReshape x shape > y\nout y",
   "y", "float32[batch, seq, 12, 64]"},
  {"-1 of Reshape divides expressions", 17,
   "in x float batch,seq,768\nconst s int64 3: -1 12 64\nReshape x s > y\nout y", "y",
   "float32[batch*seq, 12, 64]"},
  {"-1 behind a copied 0", 17,
   "in x float batch,c,h,w\nconst s int64 3: 0 0 -1\nReshape x s > y\nout y", "y",
   "float32[batch, c, h*w]"},
  {"two strided convolutions of an unknown size", 17,
   "in x float n,3,h,w\nin w float 8,3,3,3\nin v float 8,8,3,3\n"
   "Conv x w > a ; strides=2,2 pads=1,1,1,1\nConv a v > y ; strides=2,2 pads=1,1,1,1\nout y",
   "y", "float32[n, 8, floor((h+3)/4), floor((w+3)/4)]"},
  {"growing cache", 17,
   "in past float b,4,past,8\nin now float b,4,seq,8\nConcat past now > y ; axis=2\nout y", "y",
   "float32[b, 4, past+seq, 8]"},
  {"slices count from the end", 17,
   "in x float b,n\nconst s int64 1: 1\nconst e int64 1: 9223372036854775807\n"
   "const a int64 1: 1\nSlice x s e a > y\nout y",
   "y", "float32[b, max(0, n-1)]"},
  {"a slice backwards", 17,
   "in x float b,10\nconst s int64 1: -1\nconst e int64 1: -9223372036854775807\n"
   "const a int64 1: 1\nconst t int64 1: -3\nSlice x s e a t > y\nout y",
   "y", "float32[b, 4]"},
  {"a slice backwards from the end, of an unknown size", 17,
   "in x float b,n\nconst s int64 1: -1\nconst e int64 1: -9223372036854775807\n"
   "const a int64 1: 1\nconst t int64 1: -1\nSlice x s e a t > y\nout y",
   "y", "float32[b, n]"},
  {"a slice backwards that starts before the beginning", 17,
   "in x float b,5\nconst s int64 1: -9\nconst e int64 1: -9223372036854775807\n"
   "const a int64 1: 1\nconst t int64 1: -1\nSlice x s e a t > y\nout y",
   "y", "float32[b, 1]"},
  {"transposed, SAME, under a kernel smaller than its stride", 11,
   "in x float n,2,h\nin w float 2,3,2\n"
   "ConvTranspose x w > y ; strides=4, auto_pad=SAME_UPPER\nout y",
   "y", "float32[n, 3, 4*h-2]"},
  {"transposed, SAME, under a kernel larger than its stride", 11,
   "in x float n,2,h\nin w float 2,3,5\n"
   "ConvTranspose x w > y ; strides=4, auto_pad=SAME_LOWER\nout y",
   "y", "float32[n, 3, 4*h]"},
  {"attributes of Slice before opset 10", 9,
   "in x float b,10\nSlice x > y ; axes=1,0 starts=2,0 ends=8,1\nout y", "y",
   "float32[min(1, b), 6]"},
  {"a pool that rounds up starts inside", 11,
   "in x float 1,1,4,4\nMaxPool x > y ; kernel_shape=1,1 strides=3,3 ceil_mode=1\nout y", "y",
   "float32[1, 1, 2, 2]"},
  {"sizes of Resize from half of a size", 13,
   "in x float n,c,h,w\nconst sc float 4: 1 1 0.5 2\nResize x - sc > y\nout y", "y",
   "float32[n, c, floor(h/2), 2*w]"},
  {"sizes by way of floats", 13,
   "in x float n,c,h,w\nconst i int64 : 2\nconst k float : 1.5\nShape x > s\nGather s i > g\n"
   "Cast g > f ; to=1\nMul f k > m\nFloor m > fl\nCast fl > o ; to=7\nRange z o one > y\n"
   "const z int64 : 0\nconst one int64 : 1\nout y",
   "y", "int64[floor((3*h)/2)]"},
  {"-1 turned into 1 by Where, as Expand exports write it", 17,
   "in x float b,1,64\nconst t int64 3: -1 7 -1\nconst m int64 1: -1\nconst n int64 1: 3\n"
   "ConstantOfShape n > ones ; value=1\nEqual t m > e\nconst o int64 3: 1 1 1\nWhere e o t > s\n"
   "Expand x s > y\nout y",
   "y", "float32[b, 7, 64]"},
  {"a size that only a run can tell is one symbol", 17,
   "in x float n\nNonZero x > nz\nTranspose nz > t\nGatherND x t > g\nAdd g g > y\nout y", "y",
   "float32[?1]"},
  {"an unknown rank stays unknown", 17, "in x float ...\nRelu x > y\nout y", "y", "float32[...]"},
  {"the element type is known without a shape", 17,
   "in x float ...\nin s int64 r\nReshape x s > r\nArgMax r > y ; axis=0\nout y", "y",
   "int64[...]"},
  {"axes of ReduceSum as an input", 13,
   "in x float b,n,4\nconst a int64 1: 1\nReduceSum x a > y ; keepdims=0\nout y", "y",
   "float32[b, 4]"},
  {"axes of ReduceMean as an attribute before 18", 13,
   "in x float b,n,4\nReduceMean x > y ; axes=1,2 keepdims=0\nout y", "y", "float32[b]"},
  {"Einsum with letters", 13,
   "in a float b,h,i,d\nin c float b,h,j,d\nEinsum a c > y ; equation=bhid,bhjd->bhij\nout y", "y",
   "float32[b, h, i, j]"},
  {"Split into uneven parts", 18, "in x float b,10\nSplit x > p q r ; axis=1 num_outputs=3\nout r",
   "r", "float32[b, 2]"},
  {"a broadcast of two symbols says so", 17, "in a float n,4\nin c float m,1\nAdd a c > y\nout y",
   "y", "float32[broadcast(n, m), 4]"},
  {"LSTM of two directions", 14,
   "in x float seq,b,8\nin w float 2,64,8\nin r float 2,64,16\n"
   "LSTM x w r > y h c ; hidden_size=16 direction=bidirectional\nout y",
   "y", "float32[seq, 2, b, 16]"},
  {"attention with grouped keys", 23,
   "in q float b,s,512\nin k float b,t,128\nin v float b,t,128\n"
   "Attention q k v > y ; q_num_heads=8 kv_num_heads=2\nout y",
   "y", "float32[b, s, 512]"},
  {"present keys of MultiHeadAttention", 17,
   "in q float b,s,64\nin k float b,s,64\nin v float b,s,64\nin pk float b,4,p,16\n"
   "in pv float b,4,p,16\n"
   "com.microsoft.MultiHeadAttention q k v - - - pk pv > y nk nv ; num_heads=4\nout nk",
   "nk", "float32[b, 4, s+p, 16]"},
  {"packed weights", 17,
   "in x float b,s,64\nin w uint8 256,2,16\nin c float 512\n"
   "com.microsoft.MatMulNBits x w c > y ; K=64 N=256 bits=4 block_size=32\nout y",
   "y", "float32[b, s, 256]"},
  {"SkipLayerNormalization", 17,
   "in x float b,s,64\nin k float b,s,64\nin g float 64\n"
   "com.microsoft.SkipLayerNormalization x k g > y m v sum\nout sum",
   "sum", "float32[b, s, 64]"},
  {"TopK at most takes what it is asked for", 11,
   "in x float b,n\nconst k int64 1: 5\nTopK x k > v i\nout i", "i", "int64[b, 5]"},
  {"overflowing sizes are unknown", 17,
   "const s int64 3: 9223372036854775807 9223372036854775807 2\nConstantOfShape s > x\n"
   "const t int64 1: -1\nReshape x t > y\nout y",
   "y", "float32[2*?0]"},
  {"a negative size is unknown", 17, "const s int64 1: -5\nConstantOfShape s > y\nout y", "y",
   "float32[?0]"},
  {"a kernel larger than its input", 17,
   "in x float 1,1,2,2\nin w float 1,1,5,5\nConv x w > y\nout y", "y", "float32[1, 1, ?4, ?5]"},
  {"a step of zero", 17,
   "in x float 10\nconst o int64 1: 0\nconst e int64 1: 5\nSlice x o e o o > y\nout y", "y",
   "float32[?0]"},
  {"axes out of range", 17, "in x float 10\nconst a int64 1: 7\nSqueeze x a > y\nout y", "y",
   "float32[...]"},
  {"a range that never ends", 17,
   "const a int64 : 0\nconst b int64 : 10\nconst z int64 : 0\nRange a b z > y\nout y", "y",
   "int64[?0]"},
  {"a range as long as an integer allows", 17,
   "const a int64 : -9223372036854775808\nconst b int64 : 9223372036854775807\n"
   "const z int64 : 1\nRange a b z > y\nout y",
   "y", "int64[?0]"},
  {"a division by zero", 17,
   "const a int64 1: 7\nconst z int64 1: 0\nDiv a z > s\nConstantOfShape s > y\nout y", "y",
   "float32[?0]"},
  {"an equation that is no equation", 17, "in x float 2,3\nEinsum x > y ; equation=->.,..,\nout y",
   "y", "float32[...]"},
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

static void bindings_reach_branches_and_results(void **state) {
  (void)state;
  psplit_model *model =
    model_of("in x float batch,4\nShape x > s\nConstantOfShape s > y\nout y", 17);
  const psplit_binding bindings[] = {{"batch", 3}, {"unused", 1}};
  psplit_i_shapes *shapes = infer(model, bindings, 2);
  is("bound", shapes, "y", "float32[3, 4]");
  psplit_i_shapes_destroy(shapes);
  shapes = infer(model, NULL, 0);
  is("free", shapes, "y", "float32[batch, 4]");
  const uint32_t y = psplit_i_graph_find_value(psplit_i_model_graph(model), "y");
  const psplit_emit_dim dim =
    psplit_i_shapes_emit_dim(shapes, psplit_i_shapes_type(shapes, y)->dims[0]);
  assert_string_equal(dim.symbol, "batch");
  assert_int_equal(dim.value, -1);
  psplit_i_shapes_destroy(shapes);
  psplit_diag diag = {0};
  const psplit_binding negative = {"batch", -1};
  assert_int_equal(
    psplit_i_shapes_create(psplit_i_model_graph(model), &negative, 1, NULL, &diag, &shapes),
    PSPLIT_INVALID);
  psplit_model_close(model);
}

static void work_is_known_or_says_what_is_missing(void **state) {
  (void)state;
  psplit_model *model = model_of(
    "in x float batch,128\nin u float unrelated\nconst i int64 1: 0\nin w float 128,256\n"
    "MatMul x w > y\nRelu y > z\nRelu u > v\nout z\nout v",
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
  const psplit_binding bindings[] = {{"batch", 2}};
  psplit_cost_options options = {bindings, 1, -1, -1};
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

/* Sizes of inputs are the caller's to give; what is found, or made by nobody knows what, is not. */
static void what_the_data_decides_is_told_from_what_is_open(void **state) {
  (void)state;
  psplit_model *model = model_of(
    "in x float batch,8\nin w float 8,8\nMatMul x w > a\nNonZero a > b\nShape b > s\n"
    "Gather a b > c\nMatMul c w > d\nsome.where.Odd a > e\nRelu a > f\n"
    "out d\nout e\nout f\nout s",
    17);
  static const psplit_i_data_dependence expected[] = {
    PSPLIT_I_DATA_NONE,  PSPLIT_I_DATA_LIGHT, PSPLIT_I_DATA_NONE, PSPLIT_I_DATA_LIGHT,
    PSPLIT_I_DATA_HEAVY, PSPLIT_I_DATA_HEAVY, PSPLIT_I_DATA_NONE};
  psplit_i_shapes *shapes = infer(model, NULL, 0);
  const psplit_cost_options counted[] = {
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
    const psplit_graph *graph = psplit_i_model_graph(model);
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
    "in x float 4\nsome.where.Odd x > a\nsome.where.Odd a > b\nNoSuchOperator b > c\nout c", 17);
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
  psplit_text text = {0};
  psplit_i_text_puts(&text, "in x float a,b,c\nShape x > s0\n");
  for (int i = 0; i < 400; i++)
    psplit_i_text_addf(&text, i % 2 ? "Mul s%d s%d > s%d\n" : "Add s%d s0 > s%d\n", i,
                       i % 2 ? i : i + 1, i + 1);
  psplit_i_text_puts(&text, "ConstantOfShape s400 > y\nout y");
  psplit_model *model = model_of(text.bytes, 17);
  psplit_i_text_fini(&text);
  psplit_i_shapes *shapes = infer(model, NULL, 0);
  assert_true(psplit_i_dims_count(psplit_i_shapes_dims(shapes)) < 100000);
  const psplit_binding bindings[] = {{"a", 2}, {"b", 3}, {"c", 4}};
  psplit_i_costs *costs;
  const psplit_cost_options options = {bindings, 3, -1, -1};
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
    cmocka_unit_test(work_is_known_or_says_what_is_missing),
    cmocka_unit_test(what_the_data_decides_is_told_from_what_is_open),
    cmocka_unit_test(a_missing_rule_is_said_once),
    cmocka_unit_test(sizes_that_double_are_cut_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
