/* Why: what the emitter writes is the model's own bytes, in the right stage, or nothing at all. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <psplit/emit.h>

#include "../support/hand_plan.h"
#include "model.h"
#include "onnx.pb-c.h"
#include "scratch.h"
#include "text_model.h"

static psplit_i_text read_file(const char *path) {
  psplit_i_text text = {0};
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;)
    psplit_i_text_add(&text, buffer, n);
  fclose(file);
  psplit_i_text_add(&text, "", 1); /* not empty, and a string */
  text.n--;
  return text;
}

static bool exists(const char *path) {
  struct stat status;
  return lstat(path, &status) == 0;
}

static bool file_holds(const char *path, const void *bytes, size_t n) {
  psplit_i_text text = read_file(path);
  const bool found = memmem(text.bytes, text.n, bytes, n) != NULL;
  psplit_i_text_fini(&text);
  return found;
}

static bool file_says(const char *path, const char *string) {
  return file_holds(path, string, strlen(string));
}

/* --- a model with what is easily lost ---
 *
 * 0 Mul(x, w) = a                    | b is an output of the model, is sent, and is captured
 * 1 Relu(a) = b                      |
 * 2 If(c) { Add(b, v) } { b } = d    | v is read in a body only
 * 3 Mul(d, w) = e                    | w is tied to node 0
 * 4 Add(e, b) = y                    | b skips a stage */

enum { N_NODES = 5, N_BIG = 300 };

static const char RICH[] =
  "<ir_version: 8, producer_name: \"fixture\", opset_import: [{version: 17}],"
  " metadata_props: [\"key\": \"a model's metadata\"], 1002: \"unknown to the model\">"
  "rich (float[n,4] x, bool c, int64[n] unused) => (float[n,4] b, float[n,4] y)"
  "@{doc_string: \"a graph's doc_string\","
  "  quantization_annotation: [{tensor_name: \"e\","
  "    quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"big\"]}],"
  "  1001: \"unknown to the graph\"}"
  "<float[4] w = raw {1, 2, 3, 4}, float[4] v = raw {2, 3, 4, 5}, float[4] u = raw {3, 4, 5, 6},"
  " float[300] big = random(1), float[n,4] d @{doc_string: \"a value's doc_string\"}> {"
  "  [first] a = Mul (x, w) @{doc_string: \"a node's doc_string\", 1000: 7}"
  "  b = Relu (a)"
  "  d = If (c) <"
  "    then_branch = then_branch () => (float[n,4] then_out) { then_out = Add (b, v) },"
  "    else_branch = else_branch () => (float[n,4] else_out) { else_out = Identity (b) }>"
  "  e = Mul (d, u)"
  "  y = Add (e, b)"
  "}";

static psplit_model *open_model(const char *path) {
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  const psplit_code code = psplit_model_open(path, NULL, &diag, &model);
  if (code != PSPLIT_OK) fail_msg("%s", diag.message);
  return model;
}

static psplit_model *open_rich(void) {
  write_model_text("model.onnx", RICH);
  return open_model("model.onnx");
}

/* --- plans --- */

typedef struct test_plan {
  psplit_plan plan;
  uint32_t node_stage[16];
  psplit_plan_stage stages[4];
  psplit_plan_copy copies[4];
  psplit_plan_transfer transfers[8];
} test_plan;

static uint32_t id_of(const psplit_model *model, const char *name) {
  return psplit_i_graph_find_value(psplit_i_model_graph(model), name);
}

static void add_transfer(test_plan *p, const psplit_model *model, const char *name, uint32_t from,
                         uint32_t to) {
  p->transfers[p->plan.n_transfers++] =
    (psplit_plan_transfer){.value = id_of(model, name), .tensor = name, .from = from, .to = to};
}

static void add_copy(test_plan *p, uint32_t node_id, uint32_t stage) {
  p->copies[p->plan.n_copies++] = (psplit_plan_copy){.node = node_id, .stage = stage};
}

/* `where`: the stage of each node as a digit. */
static void start_plan(test_plan *p, uint32_t n_stages, const char *where) {
  *p = (test_plan){.plan = hand_plan((uint32_t)strlen(where), NULL, n_stages, NULL, 0, NULL)};
  for (size_t n = 0; where[n]; n++) p->node_stage[n] = (uint32_t)(where[n] - '0');
}

static void end_plan(test_plan *p) {
  for (uint32_t s = 0; s < p->plan.n_stages; s++) p->stages[s] = (psplit_plan_stage){.device = "d"};
  for (uint32_t n = 0; n < p->plan.n_nodes; n++)
    if (p->node_stage[n] < p->plan.n_stages) p->stages[p->node_stage[n]].n_nodes++;
  for (uint32_t c = 0; c < p->plan.n_copies; c++) {
    p->stages[p->copies[c].stage].n_nodes++;
    p->stages[p->copies[c].stage].n_duplicated++;
  }
  p->plan.node_stage = p->node_stage;
  p->plan.stages = p->stages;
  p->plan.copies = p->copies;
  p->plan.transfers = p->transfers;
}

/* Nodes 0, 1 | 2 | 3, 4. */
static void rich_plan(test_plan *p, const psplit_model *model) {
  start_plan(p, 3, "00122");
  add_transfer(p, model, "b", 0, 1);
  add_transfer(p, model, "b", 0, 2);
  add_transfer(p, model, "d", 1, 2);
  end_plan(p);
}

static psplit_code emit(const psplit_model *model, const test_plan *p, const char *directory,
                        psplit_boundary boundary, psplit_weights weights, bool replace,
                        psplit_diag *diag) {
  const psplit_emit_options options = {
    .struct_size = sizeof options, .boundary = boundary, .weights = weights, .replace = replace};
  *diag = (psplit_diag){0};
  return psplit_emit(model, &p->plan, directory, &options, diag);
}

static void emit_ok(const psplit_model *model, const test_plan *p, const char *directory,
                    psplit_boundary boundary, psplit_weights weights) {
  psplit_diag diag;
  const psplit_code code = emit(model, p, directory, boundary, weights, false, &diag);
  if (code != PSPLIT_OK) fail_msg("%s", diag.message);
}

/* --- what belongs to a stage --- */

static void assert_names(const psplit_i_graph *graph, const uint32_t *values, uint32_t n,
                         const char *expected) {
  psplit_i_text names = {0};
  for (uint32_t i = 0; i < n; i++)
    psplit_i_text_addf(&names, "%s%s", i ? " " : "", graph->values[values[i]].name);
  assert_string_equal(names.bytes ? names.bytes : "", expected);
  psplit_i_text_fini(&names);
}

static void assert_stage(const char *path, uint32_t n_nodes, const char *inputs,
                         const char *outputs, const char *initializers) {
  psplit_model *model = open_model(path);
  const psplit_i_graph *graph = psplit_i_model_graph(model);
  assert_int_equal(graph->n_nodes, n_nodes);
  assert_names(graph, graph->inputs, graph->n_inputs, inputs);
  assert_names(graph, graph->outputs, graph->n_outputs, outputs);
  assert_names(graph, graph->initializers, graph->n_initializers, initializers);
  for (uint32_t i = 0; i < graph->n_nodes; i++) assert_int_equal(graph->topo[i], i);
  assert_string_equal(model->proto->graph->doc_string, "a graph's doc_string");
  psplit_model_close(model);
}

/* Plain boundaries: original names, captures and tied weights in each stage that reads them, an
 * output that is sent as well once, annotated scales beside their value. */
static void plain_stages(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  emit_ok(model, &p, "out", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO);
  assert_stage("out/stage0.onnx", 2, "x unused", "b", "w");
  assert_stage("out/stage1.onnx", 1, "c b", "d", "v");
  assert_stage("out/stage2.onnx", 2, "b d", "y", "u big");
  assert_true(file_says("out/pipeline.json", "\"to\": [1, 2, \"model\"]"));
  assert_true(file_says("out/stage1.onnx", "a value's doc_string"));
  psplit_model_close(model);
}

/* Bytes: nodes, weights, unknown fields and what belongs to the model as a whole. */
static void bytes_are_kept(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  emit_ok(model, &p, "out", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_AUTO);
  psplit_i_text whole = read_file("model.onnx");
  for (uint32_t n = 0; n < N_NODES; n++) {
    const psplit_i_span *span = &model->skeleton.graph_fields.items[model->node_spans[n]];
    char path[32];
    snprintf(path, sizeof path, "out/stage%u.onnx", p.node_stage[n]);
    assert_true(file_holds(path, whole.bytes + span->file_offset, span->file_bytes));
  }
  const psplit_i_span *big = &model->skeleton.graph_fields.items[model->initializer_spans[3]];
  assert_true(big->has_view);
  assert_true(file_holds("out/stage2.onnx", whole.bytes + big->file_offset, big->file_bytes));
  for (unsigned s = 0; s < 3; s++) {
    char path[32];
    snprintf(path, sizeof path, "out/stage%u.onnx", s);
    assert_true(file_says(path, "a model's metadata"));
    assert_true(file_says(path, "unknown to the model"));
    assert_true(file_says(path, "unknown to the graph"));
  }
  psplit_i_text_fini(&whole);
  psplit_model_close(model);
}

/* Send and Recv: functions, attributes, ports under names of their own. */
static void boundary_nodes(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  emit_ok(model, &p, "out", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_AUTO);
  assert_stage("out/stage0.onnx", 4, "x unused", "b b.send1 b.send2", "w");
  assert_stage("out/stage1.onnx", 3, "c b.recv0", "d.send2", "v");
  assert_stage("out/stage2.onnx", 4, "b.recv0 d.recv1", "y", "u big");
  psplit_model *stage = open_model("out/stage1.onnx");
  const psplit_i_graph *graph = psplit_i_model_graph(stage);
  assert_int_equal(psplit_i_model_n_functions(stage), 2);
  const psplit_i_node *send = &graph->nodes[2];
  assert_string_equal(send->op_type, "Send");
  assert_string_equal(send->domain, "psplit");
  assert_int_equal(send->opset, 1);
  assert_int_not_equal(send->function, PSPLIT_NONE);
  int64_t i = -1;
  const char *tensor = NULL;
  size_t n = 0;
  assert_true(psplit_i_attr_int(send, "tag", &i) && i == 2);
  assert_true(psplit_i_attr_int(send, "peer", &i) && i == 2);
  assert_true(psplit_i_attr_int(send, "dtype", &i) && i == 1);
  assert_true(psplit_i_attr_string(send, "tensor", &tensor, &n) && n == 1 && *tensor == 'd');
  const psplit_i_value *port = &graph->values[graph->inputs[1]];
  assert_int_equal(psplit_i_type_rank(port->declared_type), 2);
  assert_string_equal(psplit_i_type_dim(port->declared_type, 0).param, "n");
  assert_int_equal(psplit_i_type_dim(port->declared_type, 1).value, 4);
  psplit_model_close(stage);
  psplit_model_close(model);
}

/* A name of ours that the model has already, in a body, gets a suffix. */
static void names_are_unique(void **state) {
  (void)state;
  write_model_text("model.onnx",
                   "(float[4] x) => (float[4] y) {"
                   "  a = Relu (x)"
                   "  \"a.send1\" = Relu (a)"
                   "  y = Add (a, \"a.send1\")"
                   "}");
  psplit_model *model = open_model("model.onnx");
  test_plan p;
  start_plan(&p, 2, "001");
  add_transfer(&p, model, "a", 0, 1);
  add_transfer(&p, model, "a.send1", 0, 1);
  end_plan(&p);
  emit_ok(model, &p, "out", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_AUTO);
  assert_true(file_says("out/pipeline.json", "\"a.send1_1\""));
  assert_true(file_says("out/pipeline.json", "\"a.send1.send1\""));
  psplit_model_close(open_model("out/stage0.onnx"));
  psplit_model_close(model);
}

/* A stage may pass on what it receives, whether it reads it or not; a copy replaces a transfer. */
static void relays_and_copies(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  start_plan(&p, 3, "00122");
  add_copy(&p, 0, 2);
  add_copy(&p, 1, 2);
  add_transfer(&p, model, "b", 0, 1);
  add_transfer(&p, model, "d", 1, 2);
  end_plan(&p);
  emit_ok(model, &p, "copies", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO);
  assert_stage("copies/stage2.onnx", 4, "x d", "y", "w u big");
  assert_true(file_says("copies/pipeline.json",
                        "{\"index\": 0, \"node\": \"first\", \"stage\": 0, \"also\": [2]}"));
  start_plan(&p, 3, "00122");
  add_transfer(&p, model, "b", 0, 1);
  add_transfer(&p, model, "b", 1, 2);
  add_transfer(&p, model, "d", 1, 2);
  end_plan(&p);
  emit_ok(model, &p, "plain", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO);
  assert_stage("plain/stage1.onnx", 1, "c b", "b d", "v");
  emit_ok(model, &p, "nodes", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_AUTO);
  assert_stage("nodes/stage1.onnx", 4, "c b.recv0", "b.send2 d.send2", "v");
  psplit_model_close(model);
}

/* Same input, same bytes. */
static void deterministic(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  emit_ok(model, &p, "one", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_EXTERNAL);
  emit_ok(model, &p, "two", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_EXTERNAL);
  assert_int_equal(system("diff -r one two"), 0);
  psplit_diag diag = {0};
  char *text = NULL;
  assert_int_equal(psplit_manifest(model, &p.plan, NULL, &diag, &text), PSPLIT_OK);
  assert_true(file_says("one/pipeline.json", text));
  free(text);
  psplit_model_close(model);
}

/* --- plans that do not hold --- */

typedef void spoiler(test_plan *p, const psplit_model *model);

static void lose_transfer(test_plan *p, const psplit_model *m) {
  (void)m;
  p->plan.n_transfers--;
}
static void swap_transfers(test_plan *p, const psplit_model *m) {
  (void)m;
  const psplit_plan_transfer first = p->transfers[0];
  p->transfers[0] = p->transfers[1];
  p->transfers[1] = first;
}
static void send_unread(test_plan *p, const psplit_model *m) {
  p->plan.n_transfers = 1;
  add_transfer(p, m, "b", 0, 2);
  add_transfer(p, m, "a", 1, 2);
}
static void send_for_nothing(test_plan *p, const psplit_model *m) {
  p->transfers[2] = p->transfers[1];
  p->transfers[1].value = p->transfers[0].value;
  p->plan.n_transfers = 0;
  add_transfer(p, m, "a", 0, 1);
  add_transfer(p, m, "b", 0, 1);
  add_transfer(p, m, "b", 0, 2);
  add_transfer(p, m, "d", 1, 2);
}
static void send_input(test_plan *p, const psplit_model *m) {
  p->transfers[0].value = id_of(m, "x");
  p->transfers[0].tensor = "x";
}
static void fall_back(test_plan *p, const psplit_model *m) {
  (void)m;
  p->node_stage[0] = 1;
}
static void beyond(test_plan *p, const psplit_model *m) {
  (void)m;
  p->node_stage[0] = 9;
}
static void miscount(test_plan *p, const psplit_model *m) {
  (void)m;
  p->stages[1].n_nodes++;
}
static void other_model(test_plan *p, const psplit_model *m) {
  (void)m;
  p->plan.n_nodes--;
}
static void copy_original(test_plan *p, const psplit_model *m) {
  (void)m;
  add_copy(p, 0, 0);
}
static void copy_starved(test_plan *p, const psplit_model *m) {
  (void)m;
  add_copy(p, 4, 1);
  end_plan(p);
}
static void misname(test_plan *p, const psplit_model *m) {
  (void)m;
  p->transfers[0].tensor = "z";
}

/* Each is refused by name, and nothing is written. */
static void wrong_plans(void **state) {
  (void)state;
  static const struct {
    spoiler *spoil;
    psplit_code code;
    const char *says;
  } cases[] = {
    {lose_transfer, PSPLIT_INTERNAL, "without \"d\""},
    {swap_transfers, PSPLIT_INTERNAL, "out of order"},
    {send_unread, PSPLIT_INTERNAL, "does not have it"},
    {send_for_nothing, PSPLIT_INTERNAL, "where nothing reads it"},
    {send_input, PSPLIT_INTERNAL, "which every stage has as an input"},
    {fall_back, PSPLIT_INTERNAL, ""},
    {beyond, PSPLIT_INTERNAL, "in stage 9 of 3"},
    {miscount, PSPLIT_INTERNAL, "the plan counts"},
    {other_model, PSPLIT_INVALID, "this one has 5"},
    {copy_original, PSPLIT_INTERNAL, "its own original"},
    {copy_starved, PSPLIT_INTERNAL, "without \"e\""},
    {misname, PSPLIT_INVALID, "calls value \"b\" \"z\""},
  };
  psplit_model *model = open_rich();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    test_plan p;
    rich_plan(&p, model);
    cases[i].spoil(&p, model);
    psplit_diag diag;
    const psplit_code code =
      emit(model, &p, "out", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_AUTO, false, &diag);
    if (code != cases[i].code || !strstr(diag.message, cases[i].says))
      fail_msg("case %zu: %s: %s", i, psplit_code_name(code), diag.message);
    assert_false(exists("out"));
  }
  assert_int_equal(system("test \"$(ls -A)\" = model.onnx"), 0);
  psplit_model_close(model);
}

/* Models before IR 3 import no domains. */
static void old_models(void **state) {
  (void)state;
  write_model_text("model.onnx",
                   "<ir_version: 2> (float[4] x) => (float[4] y) { a = Relu (x) y = Relu (a) }");
  psplit_model *model = open_model("model.onnx");
  test_plan p;
  start_plan(&p, 2, "01");
  add_transfer(&p, model, "a", 0, 1);
  end_plan(&p);
  psplit_diag diag;
  assert_int_equal(
    emit(model, &p, "out", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_AUTO, false, &diag),
    PSPLIT_UNSUPPORTED);
  assert_int_equal(diag.hint, PSPLIT_HINT_BOUNDARY_IO);
  emit_ok(model, &p, "out", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO);
  psplit_model_close(model);
}

/* A stage is a model: it can be split again, Send and Recv of the first split included. */
static void split_twice(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  emit_ok(model, &p, "out", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_AUTO);
  psplit_model_close(model);
  model = open_model("out/stage0.onnx"); /* Mul Relu Send Send */
  start_plan(&p, 2, "0111");
  add_transfer(&p, model, "a", 0, 1);
  end_plan(&p);
  emit_ok(model, &p, "again", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_AUTO);
  psplit_model *stage = open_model("again/stage1.onnx");
  assert_int_equal(psplit_i_model_n_functions(stage), 2);
  psplit_model_close(stage);
  psplit_model_close(model);
}

/* --- weights --- */

static psplit_model *open_external(void) {
  float data[2000];
  for (unsigned i = 0; i < 2000; i++) data[i] = (float)i;
  assert_true(mkdir("m", 0777) == 0 && mkdir("m/w", 0777) == 0);
  FILE *file = fopen("m/w/data.bin", "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, sizeof data, file), sizeof data);
  assert_int_equal(fclose(file), 0);
#define AT(offset)                                                               \
  "[\"checksum\": \"kept\", \"location\": \"w/data.bin\", \"offset\": \"" offset \
  "\", \"length\": \"2000\"] @{doc_string: \"a tensor's doc_string\"}"
  write_model_text("m/model.onnx",
                   "(float[500] x) => (float[500] y)"
                   "<float[500] p = " AT("0") ", float[500] q = " AT("0") "> {"
                   "  a = Add (x, p)"
                   "  b = Add (a, q)"
                   "  k = Constant <value = float[500] = " AT("4000") "> ()"
                   "  y = Add (b, k)"
                   "}");
  return open_model("m/model.onnx");
}

static void external_plan(test_plan *p, const psplit_model *model) {
  start_plan(p, 2, "0011");
  add_transfer(p, model, "b", 0, 1);
  end_plan(p);
}

static void assert_weight(const psplit_model *model, const Onnx__TensorProto *tensor, float first) {
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  const psplit_i_tensor view = psplit_i_tensor_of(tensor);
  const double *values;
  size_t n;
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_tensor_doubles(model, &view, 1000, &arena, &diag, &values, &n),
                   PSPLIT_OK);
  assert_int_equal(n, 500);
  for (size_t i = 0; i < n; i++) assert_true(values[i] == (double)first + (double)i);
  psplit_i_arena_fini(&arena);
}

/* External data stays external, at page bounds, each range once; what else an entry says is kept.
 */
static void external_stays(void **state) {
  (void)state;
  psplit_model *model = open_external();
  test_plan p;
  external_plan(&p, model);
  emit_ok(model, &p, "out", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO);
  struct stat status;
  assert_int_equal(stat("out/stage0.onnx.data", &status), 0);
  assert_int_equal(status.st_size, 2000); /* p and q are one range */
  psplit_model *stage = open_model("out/stage0.onnx");
  assert_weight(stage, stage->proto->graph->initializer[1], 0);
  assert_true(file_says("out/stage0.onnx", "checksum"));
  assert_true(file_says("out/stage0.onnx", "a tensor's doc_string"));
  assert_false(file_says("out/stage0.onnx", "data.bin"));
  psplit_model_close(stage);
  stage = open_model("out/stage1.onnx"); /* in an attribute */
  const psplit_i_graph *graph = psplit_i_model_graph(stage);
  assert_weight(stage, psplit_i_attr_tensor(&graph->nodes[0], "value"), 1000);
  psplit_model_close(stage);
  psplit_model_close(model);
}

static void external_to_inline(void **state) {
  (void)state;
  psplit_model *model = open_external();
  test_plan p;
  external_plan(&p, model);
  emit_ok(model, &p, "out", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_INLINE);
  assert_false(exists("out/stage0.onnx.data"));
  psplit_model *stage = open_model("out/stage0.onnx");
  assert_false(stage->has_external_data);
  assert_weight(stage, stage->proto->graph->initializer[0], 0);
  psplit_model_close(stage);
  stage = open_model("out/stage1.onnx");
  const psplit_i_graph *graph = psplit_i_model_graph(stage);
  assert_weight(stage, psplit_i_attr_tensor(&graph->nodes[0], "value"), 1000);
  psplit_model_close(stage);
  psplit_model_close(model);
}

static void inline_to_external(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  emit_ok(model, &p, "out", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_EXTERNAL);
  assert_false(exists("out/stage0.onnx.data")); /* nothing in it is large */
  psplit_model *stage = open_model("out/stage2.onnx");
  assert_true(stage->has_external_data);
  const Onnx__TensorProto *big = stage->proto->graph->initializer[1];
  psplit_i_payload payload;
  assert_true(psplit_i_tensor_payload(stage, big, &payload));
  assert_int_equal(payload.file, 1);
  assert_int_equal(payload.bytes, 4 * N_BIG);
  psplit_model_close(stage);
  psplit_model_close(model);
}

/* Stages beside the model point into its files, inline data too; elsewhere they cannot. */
static void referenced(void **state) {
  (void)state;
  psplit_model *model = open_external();
  test_plan p;
  external_plan(&p, model);
  psplit_diag diag;
  assert_int_equal(
    emit(model, &p, "out", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_REFERENCE, false, &diag),
    PSPLIT_UNSUPPORTED);
  assert_false(exists("out"));
  emit_ok(model, &p, ".", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_REFERENCE);
  assert_false(exists("stage0.onnx.data"));
  psplit_model *stage = open_model("stage0.onnx");
  assert_string_equal(stage->files.items[1].location, "m/w/data.bin");
  assert_weight(stage, stage->proto->graph->initializer[0], 0);
  psplit_model_close(stage);
  assert_int_equal(emit(model, &p, ".", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_REFERENCE, false, &diag),
                   PSPLIT_IO);
  assert_int_equal(emit(model, &p, ".", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_REFERENCE, true, &diag),
                   PSPLIT_OK);
  assert_int_equal(system("test \"$(ls -A | tr '\\n' ' ')\" = "
                          "'m pipeline.json stage0.onnx stage1.onnx '"),
                   0);
  psplit_model_close(model);
}

/* --- the directory --- */

static void emit_refused(const psplit_model *model, const test_plan *p, const char *directory,
                         bool replace, const char *says) {
  psplit_diag diag;
  assert_int_equal(
    emit(model, p, directory, PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO, replace, &diag), PSPLIT_IO);
  if (!strstr(diag.message, says)) fail_msg("\"%s\" does not say \"%s\"", diag.message, says);
  if (strcmp(says, "exists") == 0) assert_int_equal(diag.hint, PSPLIT_HINT_REPLACE);
}

/* What is in the way stays as it is, unless it is a directory that may be replaced. */
static void what_is_in_the_way(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  assert_int_equal(system("mkdir old && echo mine > old/note && echo mine > file && "
                          "ln -s old link && mkdir holds && cp model.onnx holds/"),
                   0);
  emit_refused(model, &p, "old", false, "old holds note,"); /* leave to replace would not help */
  assert_int_equal(system("mkdir bare"), 0);
  emit_refused(model, &p, "bare", false, "exists");
  emit_refused(model, &p, "bare/", false, "exists");
  emit_refused(model, &p, "file", true, "is not a directory");
  emit_refused(model, &p, "link", true, "is not a directory");
  emit_refused(model, &p, "none/out", true, "none: No such file");
  emit_refused(model, &p, "file/out", true, "Not a directory");
  emit_refused(model, &p, ".", true, "holds the model itself");
  assert_true(exists("old/note"));
  assert_int_equal(system("mkdir -p tree/src here && echo mine > tree/src/note"), 0);
  emit_refused(model, &p, "tree", true, "tree holds src,");
  assert_true(exists("tree/src/note"));
  assert_int_equal(chdir("here"), 0);
  emit_refused(model, &p, ".", true, "working directory");
  emit_refused(model, &p, "../here", true, "working directory");
  assert_int_equal(chdir(".."), 0);
  emit_refused(model, &p, "old", true, "old holds note, which is not of the split there (no");
  assert_true(exists("old/note"));
  assert_int_equal(system("rm old/note"), 0);
  psplit_diag diag;
  assert_int_equal(emit(model, &p, "old//", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO, true, &diag),
                   PSPLIT_OK);
  assert_true(exists("old/pipeline.json"));
  emit_refused(model, &p, "old", false, "exists");
  emit_ok(model, &p, "./holds/../new/", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO);
  assert_true(exists("new/stage2.onnx"));
  assert_int_equal(system("test -z \"$(ls -A | grep psplit)\""), 0);
  psplit_model_close(model);
}

/* A directory is replaced where all that it holds is of the split that its pipeline.json tells of.
 */
static void only_splits_are_replaced(void **state) {
  (void)state;
  static const struct {
    const char *make, *says; /* NULL: it is replaced */
  } cases[] = {
    {"rm -r old && mkdir old", NULL},
    {"true", NULL},
    {"rm old/stage1.onnx", NULL},
    {"touch old/thesis.tex old/zebra", "old holds thesis.tex, which is not of the split there,"},
    {"touch old/.hidden", "old holds .hidden,"},
    {"touch old/stage3.onnx", "old holds stage3.onnx,"},
    {"touch old/stage0.onnx.data.bak", "old holds stage0.onnx.data.bak,"},
    {"rm old/stage0.onnx && ln -s ../model.onnx old/stage0.onnx", "old holds stage0.onnx,"},
    {"rm old/stage0.onnx && mkfifo old/stage0.onnx", "old holds stage0.onnx,"},
    {"rm old/stage0.onnx && mkdir old/stage0.onnx", "old holds stage0.onnx,"},
    {"rm old/pipeline.json", "old holds stage0.onnx,"},
    {"rm old/pipeline.json old/stage*", NULL},
    {"rm old/pipeline.json && mkfifo old/pipeline.json", "old holds pipeline.json,"},
    {"echo '{\"steps\": []}' > old/pipeline.json && rm old/stage*",
     "old holds pipeline.json, which is not of the split there (this version reads none there: "},
    {"sed -i 's/\"transfers\"/\"sent\"/' old/pipeline.json",
     "(this version reads none there: old/pipeline.json: transfers: is missing)"},
    {"mv old/pipeline.json . && ln -s ../pipeline.json old/", "old holds pipeline.json,"},
  };
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(system("rm -rf old pipeline.json"), 0);
    emit_ok(model, &p, "old", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_EXTERNAL);
    assert_int_equal(system(cases[i].make), 0);
    assert_int_equal(system("rm -rf as_it_was && cp -a old as_it_was && chmod 750 old"), 0);
    if (cases[i].says) {
      emit_refused(model, &p, "old", true, cases[i].says);
      psplit_diag diag = {0};
      const psplit_emit_options force = {.struct_size = sizeof force, .replace = true};
      assert_int_equal(psplit_emit_check(model, "old", &force, &diag), PSPLIT_IO);
      assert_non_null(strstr(diag.message, cases[i].says));
      assert_int_equal(system("test \"$(ls -lA old)\" = \"$(ls -lA as_it_was)\""), 0);
    } else {
      psplit_diag diag;
      assert_int_equal(emit(model, &p, "old", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO, true, &diag),
                       PSPLIT_OK);
      assert_int_equal(system("test \"$(ls -A old | tr '\\n' ' ')\" = "
                              "'pipeline.json stage0.onnx stage1.onnx stage2.onnx '"),
                       0);
    }
    assert_int_equal(system("test \"$(stat -c %a old)\" = 750"), 0);
  }
  psplit_model_close(model);
}

static psplit_code put_note(void *user, const char *directory, psplit_diag *diag) {
  (void)user, (void)directory, (void)diag;
  return system("touch old/note") == 0 ? PSPLIT_OK : PSPLIT_IO;
}

/* What comes into the old directory while the new one is written is not lost. */
static void late_files_are_kept(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  emit_ok(model, &p, "old", PSPLIT_BOUNDARY_SENDRECV, PSPLIT_WEIGHTS_AUTO);
  assert_int_equal(system("cp -a old before && touch before/note"), 0);
  const psplit_emit_options options = {
    .struct_size = sizeof options, .replace = true, .accept = put_note};
  psplit_diag diag = {0};
  assert_int_equal(psplit_emit(model, &p.plan, "old", &options, &diag), PSPLIT_IO);
  assert_non_null(strstr(diag.message, "old holds note,"));
  assert_int_equal(system("diff -r old before && test -z \"$(ls -A | grep psplit)\""), 0);
  psplit_model_close(model);
}

/* Files keep their modes, new ones that of pipeline.json; DIR keeps its own. */
static void modes_are_kept(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  for (int inside = 0; inside < 2; inside++) {
    const psplit_weights weights = inside ? PSPLIT_WEIGHTS_REFERENCE : PSPLIT_WEIGHTS_AUTO;
    const char *directory = inside ? "." : "out";
    psplit_diag diag;
    assert_int_equal(chmod(".", 0755), 0);
    emit_ok(model, &p, directory, PSPLIT_BOUNDARY_IO, weights);
    assert_int_equal(chdir(directory), 0);
    assert_int_equal(chmod(".", 0700) | chmod("pipeline.json", 0640) | chmod("stage0.onnx", 0600) |
                       chmod("stage1.onnx", 0444) | unlink("stage2.onnx"),
                     0);
    assert_int_equal(chdir(inside ? "." : ".."), 0);
    assert_int_equal(emit(model, &p, directory, PSPLIT_BOUNDARY_SENDRECV, weights, true, &diag),
                     PSPLIT_OK);
    assert_int_equal(chdir(directory), 0);
    assert_int_equal(system("test \"$(stat -c %a . pipeline.json stage?.onnx | tr '\\n' ' ')\" = "
                            "'700 640 600 444 640 '"),
                     0);
    assert_int_equal(chdir(inside ? "." : ".."), 0);
  }
  psplit_model_close(model);
}

/* What a killed run left is removed; what is being written, or is a user's own, is not. */
static void hidden_directories(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  assert_int_equal(system("mkdir -p .out.psplit-1-0/x .out.psplit-2-0 .out.psplit-mine "
                          ".other.psplit-1-0 && touch .out.psplit-1-0/stage0.onnx"),
                   0);
  const int live = open(".out.psplit-2-0", O_RDONLY | O_DIRECTORY);
  assert_true(live >= 0 && flock(live, LOCK_EX) == 0);
  emit_ok(model, &p, "out", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO);
  assert_false(exists(".out.psplit-1-0"));
  assert_true(exists(".out.psplit-2-0"));
  assert_true(exists(".out.psplit-mine"));
  assert_true(exists(".other.psplit-1-0"));
  close(live);
  psplit_model_close(model);
}

/* A model that changes under the reader is not mixed with what it was. */
static void changed_model(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  assert_int_equal(system("echo >> model.onnx"), 0);
  emit_refused(model, &p, "out", false, "changed while");
  assert_int_equal(truncate("model.onnx", 100), 0);
  emit_refused(model, &p, "out", false, "became shorter");
  assert_int_equal(system("test \"$(ls -A)\" = model.onnx"), 0);
  psplit_model_close(model);
}

static void interrupted(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  const int cancel = 1;
  const psplit_emit_options options = {.struct_size = sizeof options, .cancel = &cancel};
  psplit_diag diag = {0};
  assert_int_equal(psplit_emit(model, &p.plan, "out", &options, &diag), PSPLIT_CANCELLED);
  assert_string_equal(diag.message, "interrupted");
  assert_int_equal(system("test \"$(ls -A)\" = model.onnx"), 0);
  psplit_model_close(model);
}

/* Before the last stage those in front of it have been counted. */
typedef struct watched {
  psplit_activity *activity;
  uint64_t done, all;
} watched;

static void watch(void *user, psplit_severity severity, const char *line) {
  watched *w = user;
  if (severity != PSPLIT_PROGRESS || !strstr(line, "writing stage 3")) return;
  assert_int_equal(psplit_activity_get(w->activity, &w->done, &w->all), PSPLIT_ACTIVITY_BYTES);
}

static void bytes_are_counted(void **state) {
  (void)state;
  psplit_model *model = open_rich();
  test_plan p;
  rich_plan(&p, model);
  watched w = {0};
  psplit_diag diag = {0};
  assert_int_equal(psplit_activity_create(&diag, &w.activity), PSPLIT_OK);
  const psplit_logger logger = {.emit = watch, .user = &w};
  const psplit_emit_options options = {
    .struct_size = sizeof options, .n_threads = 1, .logger = &logger, .activity = w.activity};
  assert_int_equal(psplit_emit(model, &p.plan, "out", &options, &diag), PSPLIT_OK);
  struct stat whole, first, second;
  assert_int_equal(stat("model.onnx", &whole), 0);
  assert_int_equal(stat("out/stage0.onnx", &first), 0);
  assert_int_equal(stat("out/stage1.onnx", &second), 0);
  assert_int_equal(w.done, first.st_size + second.st_size);
  assert_int_equal(w.all, whole.st_size);
  assert_int_equal(psplit_activity_get(w.activity, &w.done, &w.all), PSPLIT_ACTIVITY_NONE);
  psplit_activity_destroy(w.activity);
  psplit_model_close(model);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)

int main(void) {
  const struct CMUnitTest tests[] = {
    CASE(plain_stages),        CASE(bytes_are_kept),
    CASE(boundary_nodes),      CASE(names_are_unique),
    CASE(relays_and_copies),   CASE(deterministic),
    CASE(wrong_plans),         CASE(old_models),
    CASE(split_twice),         CASE(external_stays),
    CASE(external_to_inline),  CASE(inline_to_external),
    CASE(referenced),          CASE(what_is_in_the_way),
    CASE(hidden_directories),  CASE(only_splits_are_replaced),
    CASE(late_files_are_kept), CASE(modes_are_kept),
    CASE(changed_model),       CASE(interrupted),
    CASE(bytes_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
