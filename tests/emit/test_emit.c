/* Why: what the emitter writes is the model's own bytes, in the right stage, or nothing at all. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "model.h"
#include "onnx.pb-c.h"
#include "rich.h"
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

static bool file_holds(const char *path, const void *bytes, size_t n) {
  psplit_i_text text = read_file(path);
  const bool found = memmem(text.bytes, text.n, bytes, n) != NULL;
  psplit_i_text_fini(&text);
  return found;
}

static bool file_says(const char *path, const char *string) {
  return file_holds(path, string, strlen(string));
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

/* What is a hole of the model's file is one of the stage's, at the end too; data between stays. */
static void holes_stay(void **state) {
  enum { HOLE = 3 << 20, MARK = 1 << 20, BYTES = 2 * HOLE + MARK };
  (void)state;
  assert_int_equal(mkdir("m", 0777), 0);
  const int fd = open("m/data.bin", O_CREAT | O_WRONLY, 0666);
  static uint8_t mark[MARK];
  memset(mark, 7, sizeof mark);
  assert_true(fd >= 0 && pwrite(fd, mark, sizeof mark, HOLE) == MARK && ftruncate(fd, BYTES) == 0);
  struct stat status, source;
  assert_int_equal(fstat(fd, &source), 0);
  assert_int_equal(close(fd), 0);
  if (source.st_blocks * 512 >= BYTES) skip(); /* a file system without holes */
  write_model_text("m/model.onnx",
                   "(int8[7340032] x) => (int8[7340032] y)"
                   "<int8[7340032] p = [\"location\": \"data.bin\"]> {"
                   "  a = Add (x, p)"
                   "  y = Abs (a)"
                   "}");
  psplit_model *model = open_model("m/model.onnx");
  test_plan p;
  start_plan(&p, 2, "01");
  add_transfer(&p, model, "a", 0, 1);
  end_plan(&p);
  emit_ok(model, &p, "out", PSPLIT_BOUNDARY_IO, PSPLIT_WEIGHTS_AUTO);
  psplit_model_close(model);
  assert_int_equal(stat("out/stage0.onnx.data", &status), 0);
  assert_int_equal(status.st_size, BYTES);
  assert_true(status.st_blocks <= source.st_blocks + 64);
  const int made = open("out/stage0.onnx.data", O_RDONLY);
  static uint8_t read_back[BYTES];
  assert_true(made >= 0 && pread(made, read_back, BYTES, 0) == BYTES);
  for (size_t i = 0; i < BYTES; i++)
    if (read_back[i] != (i >= HOLE && i < HOLE + MARK ? 7 : 0)) fail();
  assert_int_equal(close(made), 0);
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

#define CASE(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)

int main(void) {
  const struct CMUnitTest tests[] = {
    CASE(plain_stages),       CASE(bytes_are_kept), CASE(boundary_nodes), CASE(names_are_unique),
    CASE(relays_and_copies),  CASE(deterministic),  CASE(wrong_plans),    CASE(old_models),
    CASE(split_twice),        CASE(external_stays), CASE(holes_stay),     CASE(external_to_inline),
    CASE(inline_to_external), CASE(referenced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
