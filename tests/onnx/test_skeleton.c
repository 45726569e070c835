/* The wire scan: what it keeps, what it leaves in the file, what it refuses. Where the wire itself
 * is what a test is about (fields given twice, padded lengths, wrong types, cut files) its models
 * are bytes, which a text cannot say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "onnx.pb-c.h"
#include "open.h"
#include "wire.h"

enum { NO_LIMIT = 1 << 30 };

static psplit_code scan(const pb *file, uint64_t limit, psplit_diag *diag, psplit_i_skeleton *out) {
  const int fd = memory_file(file->bytes, file->n);
  *diag = (psplit_diag){0};
  const psplit_code code = psplit_i_skeleton_scan(fd, file->n, limit, NULL, NULL, diag, out);
  close(fd);
  if (code == PSPLIT_OK) check_skeleton(out, (const uint8_t *)file->bytes, file->n);
  return code;
}

/* Scans and unpacks; frees the file. */
static Onnx__ModelProto *scanned(pb *file, psplit_i_skeleton *out) {
  psplit_diag diag;
  if (scan(file, NO_LIMIT, &diag, out) != PSPLIT_OK) fail_msg("%s", diag.message);
  psplit_i_text_fini(file);
  Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, out->n_bytes, out->bytes);
  assert_non_null(model);
  return model;
}

static void expect(pb *file, psplit_code code, const char *part) {
  psplit_i_skeleton skeleton;
  psplit_diag diag;
  assert_int_equal(scan(file, NO_LIMIT, &diag, &skeleton), code);
  if (!strstr(diag.message, part)) fail_msg("\"%s\" lacks \"%s\"", diag.message, part);
  if (code != PSPLIT_OK) assert_null(skeleton.bytes);
  psplit_i_skeleton_fini(&skeleton);
  psplit_i_text_fini(file);
}

/* A ModelProto around a graph, which is consumed. */
static pb around(pb *graph) {
  pb model = {0};
  pb_int(&model, 1, 10);
  pb_message(&model, 7, graph);
  return model;
}

/* Fields that no message of the schema has, one for each wire type. */
#define UNKNOWN "1000: -1, 1001: \"kept\", 1002: fixed64(1234567), 536870910: fixed32(89)"

static void unknown_fields_survive_at_every_level(void **state) {
  (void)state;
  pb model =
    bytes_of_text("<ir_version: 10, functions: [{" UNKNOWN "}], " UNKNOWN
                  ">"
                  "({name: \"x\", type: {tensor_type: {shape: {dim: [{dim_value: 3, " UNKNOWN
                  "}], " UNKNOWN "}, " UNKNOWN "}, " UNKNOWN "}, " UNKNOWN "}) => () @{" UNKNOWN
                  "} {"
                  "  = Op <a @{" UNKNOWN "} = float = {} @{" UNKNOWN "}> (x) @{" UNKNOWN
                  "}"
                  "}");
  pb copy = {0};
  psplit_i_text_add(&copy, model.bytes, model.n);

  psplit_i_skeleton skeleton;
  Onnx__ModelProto *unpacked = scanned(&model, &skeleton);
  assert_int_equal(skeleton.n_bytes, copy.n);
  assert_memory_equal(skeleton.bytes, copy.bytes, copy.n);
  uint8_t *packed = malloc(copy.n);
  assert_int_equal(onnx__model_proto__get_packed_size(unpacked), copy.n);
  onnx__model_proto__pack(unpacked, packed);
  assert_memory_equal(packed, copy.bytes, copy.n);
  free(packed);
  onnx__model_proto__free_unpacked(unpacked, NULL);
  psplit_i_skeleton_fini(&skeleton);
  psplit_i_text_fini(&copy);
}

static size_t find_bytes(const pb *file, const void *bytes, size_t n) {
  const char *found = memmem(file->bytes, file->n, bytes, n);
  assert_non_null(found);
  return (size_t)(found - file->bytes);
}

static void every_payload_field_is_left_behind(void **state) {
  (void)state;
  static const uint32_t fields[] = {4, 5, 7, 9, 10, 11};
  uint8_t payload[PSPLIT_I_VIEW_BYTES + 8];
  for (size_t i = 0; i < sizeof payload; i++) payload[i] = (uint8_t)(i % 127);
  for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
    pb tensor = {0}, graph = {0};
    pb_bytes(&tensor, fields[f], payload, sizeof payload);
    pb_string(&tensor, 12, "after");
    pb_message(&graph, 5, &tensor);
    pb_string(&graph, 10, "behind");
    pb file = around(&graph);
    const size_t at = find_bytes(&file, payload, sizeof payload);
    psplit_i_skeleton skeleton;
    Onnx__ModelProto *model = scanned(&file, &skeleton);
    const Onnx__TensorProto *left = model->graph->initializer[0];
    assert_int_equal(left->n_payload_view, 1);
    assert_int_equal(left->payload_view[0]->field, fields[f]);
    assert_int_equal(left->payload_view[0]->offset, at);
    assert_int_equal(left->payload_view[0]->bytes, sizeof payload);
    assert_false(left->has_raw_data || left->n_float_data || left->n_int32_data ||
                 left->n_int64_data || left->n_double_data || left->n_uint64_data);
    assert_string_equal(left->doc_string, "after");
    assert_string_equal(model->graph->doc_string, "behind");
    assert_true(skeleton.n_bytes < PSPLIT_I_VIEW_BYTES);
    assert_int_equal(skeleton.graph_fields.n, 2);
    assert_true(skeleton.graph_fields.items[0].has_view);
    assert_false(skeleton.graph_fields.items[1].has_view);
    onnx__model_proto__free_unpacked(model, NULL);
    psplit_i_skeleton_fini(&skeleton);
  }
}

static void small_payloads_and_strings_stay(void **state) {
  (void)state;
  char bytes[PSPLIT_I_VIEW_BYTES * 2] = {0};
  pb tensor = {0}, graph = {0};
  pb_bytes(&tensor, 9, bytes, PSPLIT_I_VIEW_BYTES);
  pb_bytes(&tensor, 6, bytes, sizeof bytes);
  pb_message(&graph, 5, &tensor);
  pb file = around(&graph);
  const size_t n = file.n;
  psplit_i_skeleton skeleton;
  Onnx__ModelProto *model = scanned(&file, &skeleton);
  assert_int_equal(skeleton.n_bytes, n);
  assert_int_equal(model->graph->initializer[0]->n_payload_view, 0);
  onnx__model_proto__free_unpacked(model, NULL);
  psplit_i_skeleton_fini(&skeleton);
}

/* Two payloads on one level, a third two bodies deeper: each length around them must shrink by what
 * was left below it, and by nothing else. */
static void lengths_are_rewritten_at_every_level(void **state) {
  (void)state;
  pb file = bytes_of_text(
    "() => () {"
    "  c = Before ()"
    "  y = Loop (c) <body = () => (t) <uint8[1200] middle = raw {210 * 1200}> {"
    "    t = If (c) <then_branch = () => (t)"
    "      <uint8[2000] deep = raw {208 * 2000}, uint8[20000] deeper = raw {209 * 20000}> {"
    "      t = Add (deep, deeper)"
    "    }>"
    "  }>"
    "  z = After (y)"
    "}");
  pb copy = {0};
  psplit_i_text_add(&copy, file.bytes, file.n);

  psplit_i_skeleton skeleton;
  Onnx__ModelProto *model = scanned(&file, &skeleton);
  assert_int_equal(model->graph->n_node, 3);
  const Onnx__GraphProto *body = model->graph->node[1]->attribute[0]->g;
  const Onnx__GraphProto *branch = body->node[0]->attribute[0]->g;
  const struct {
    const Onnx__TensorProto *tensor;
    unsigned char fill;
    size_t bytes;
  } views[] = {{body->initializer[0], 0xd2, 1200},
               {branch->initializer[0], 0xd0, 2000},
               {branch->initializer[1], 0xd1, 20000}};
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(views[i].tensor->n_payload_view, 1);
    const Onnx__PayloadView *view = views[i].tensor->payload_view[0];
    assert_int_equal(view->bytes, views[i].bytes);
    for (size_t k = 0; k < view->bytes; k++)
      assert_int_equal((unsigned char)copy.bytes[view->offset + k], views[i].fill);
    assert_int_not_equal((unsigned char)copy.bytes[view->offset - 1], views[i].fill);
  }
  assert_string_equal(branch->output[0]->name, "t");
  assert_string_equal(model->graph->node[2]->op_type, "After");
  for (size_t i = 0; i < skeleton.graph_fields.n; i++)
    assert_int_equal(skeleton.graph_fields.items[i].has_view, i == 1);
  onnx__model_proto__free_unpacked(model, NULL);
  psplit_i_skeleton_fini(&skeleton);
  psplit_i_text_fini(&copy);
}

/* A TensorProto with this many bytes of raw_data. */
static pb raw_tensor(size_t n, int fill) {
  pb tensor = {0};
  char *bytes = malloc(n + 1);
  memset(bytes, fill, n);
  pb_bytes(&tensor, 9, bytes, n);
  free(bytes);
  return tensor;
}

static pb padded_model(unsigned width) {
  pb name = {0}, node = {0}, graph = {0}, tensor = raw_tensor(1200, 1), model = {0};
  psplit_i_text_puts(&name, "Op");
  pb_message_padded(&node, 4, &name, width);
  pb_message_padded(&graph, 1, &node, width);
  pb_message_padded(&graph, 5, &tensor, width);
  pb_message_padded(&model, 7, &graph, width);
  pb_string(&model, 6, "end");
  return model;
}

/* Padded lengths are legal, and what makes rewriting in place possible. protobuf-c takes five
 * bytes. */
static void padded_lengths_are_read(void **state) {
  (void)state;
  for (unsigned width = 3; width <= 10; width++) {
    pb file = padded_model(width);
    psplit_i_skeleton skeleton;
    Onnx__ModelProto *model = scanned(&file, &skeleton);
    assert_string_equal(model->graph->node[0]->op_type, "Op");
    assert_string_equal(model->doc_string, "end");
    assert_int_equal(model->graph->initializer[0]->payload_view[0]->bytes, 1200);
    onnx__model_proto__free_unpacked(model, NULL);
    psplit_i_skeleton_fini(&skeleton);
  }
}

static void a_nul_in_a_name_is_refused(void **state) {
  (void)state;
  static const uint32_t fields[] = {1, 2, 3, 4, 6, 7, 8};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    pb node = {0}, graph = {0};
    pb_bytes(&node, fields[i], "a\0b", 3);
    pb_message(&graph, 1, &node);
    pb file = around(&graph);
    expect(&file, PSPLIT_MALFORMED, "NUL");
  }
  pb attribute = {0}, node = {0}, graph = {0}; /* but a string value is bytes */
  pb_bytes(&attribute, 4, "a\0b", 3);
  pb_message(&node, 5, &attribute);
  pb_message(&graph, 1, &node);
  pb file = around(&graph);
  expect(&file, PSPLIT_OK, "");
}

static void a_single_message_given_twice_is_refused(void **state) {
  (void)state;
  pb first = {0}, second = {0};
  pb model = around(&first);
  pb_message(&model, 7, &second);
  expect(&model, PSPLIT_MALFORMED, "twice");

  pb type = {0}, again = {0}, info = {0}, graph = {0};
  pb_message(&info, 2, &type);
  pb_message(&info, 2, &again);
  pb_message(&graph, 11, &info);
  model = around(&graph);
  expect(&model, PSPLIT_MALFORMED, "twice");
}

/* A TypeProto that nests so that the whole model is `depth` messages deep. */
static pb nested_types(unsigned depth) {
  pb message = {0};
  for (; depth > 4; depth--) { /* TypeProto and Sequence alternate; the outermost is a TypeProto */
    pb outer = {0};
    pb_message(&outer, depth % 2 ? 4 : 1, &message);
    message = outer;
  }
  pb info = {0}, graph = {0};
  pb_message(&info, 2, &message);
  pb_message(&graph, 11, &info);
  return around(&graph);
}

static void depth_is_limited(void **state) {
  (void)state;
  pb model = nested_types(PSPLIT_I_MAX_DEPTH);
  expect(&model, PSPLIT_OK, "");
  model = nested_types(PSPLIT_I_MAX_DEPTH + 1);
  expect(&model, PSPLIT_LIMIT, "nest");
  model = nested_types(10000);
  expect(&model, PSPLIT_LIMIT, "nest");
}

static void memory_is_limited(void **state) {
  (void)state;
  pb graph = {0};
  for (int i = 0; i < 20000; i++) { /* 40 kB that would take over 4 MB */
    pb node = {0};
    pb_message(&graph, 1, &node);
  }
  pb file = around(&graph);
  psplit_i_skeleton skeleton;
  psplit_diag diag;
  assert_int_equal(scan(&file, 1 << 20, &diag, &skeleton), PSPLIT_LIMIT);
  assert_int_equal(diag.hint, PSPLIT_HINT_MAX_GRAPH_BYTES);
  assert_int_equal(scan(&file, 16 << 20, &diag, &skeleton), PSPLIT_OK);
  assert_in_range(skeleton.unpacked_bytes, 20000 * sizeof(Onnx__NodeProto), 16 << 20);
  psplit_i_skeleton_fini(&skeleton);
  psplit_i_text_fini(&file);
}

static void a_cut_file_is_malformed(void **state) {
  (void)state;
  pb whole = padded_model(4);
  psplit_i_skeleton skeleton;
  psplit_diag diag;
  assert_int_equal(scan(&whole, NO_LIMIT, &diag, &skeleton), PSPLIT_OK);
  for (size_t n = 0; n < whole.n; n++) {
    bool boundary = n == 0; /* between two fields of the model nothing is cut */
    for (size_t i = 0; i < skeleton.model_fields.n; i++)
      if (skeleton.model_fields.items[i].file_offset == n) boundary = true;
    pb cut = {.bytes = whole.bytes, .n = n};
    psplit_i_skeleton of_cut;
    const psplit_code code = scan(&cut, NO_LIMIT, &diag, &of_cut);
    if (code != (boundary ? PSPLIT_OK : PSPLIT_MALFORMED))
      fail_msg("cut at %zu: %s", n, psplit_code_name(code));
    psplit_i_skeleton_fini(&of_cut);
  }
  psplit_i_skeleton_fini(&skeleton);
  /* A file that shrank after its size was taken is an I/O error, not a wait. */
  const int fd = memory_file(whole.bytes, whole.n - 1);
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_skeleton_scan(fd, whole.n, NO_LIMIT, NULL, NULL, &diag, &skeleton),
                   PSPLIT_IO);
  close(fd);
  psplit_i_text_fini(&whole);
}

/* A field of each wire type, with content that is right for it. */
static void add_of_wire_type(pb *message, uint32_t field, unsigned wire_type) {
  psplit_i_wire_tag(message, field, wire_type);
  psplit_i_text_add(message, "\0\0\0\0\0\0\0",
                    wire_type == PSPLIT_I_WIRE_FIXED64   ? 8
                    : wire_type == PSPLIT_I_WIRE_FIXED32 ? 4
                                                         : 1);
}

static bool wire_type_is_right(const ProtobufCFieldDescriptor *field, unsigned wire_type) {
  unsigned own = PSPLIT_I_WIRE_VARINT;
  switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT: own = PSPLIT_I_WIRE_FIXED32; break;
    case PROTOBUF_C_TYPE_DOUBLE: own = PSPLIT_I_WIRE_FIXED64; break;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: own = PSPLIT_I_WIRE_BYTES; break;
    default: break;
  }
  const bool packed = field->label == PROTOBUF_C_LABEL_REPEATED && wire_type == PSPLIT_I_WIRE_BYTES;
  return wire_type == own || packed;
}

static void only_the_right_wire_types_are_read(void **state) {
  (void)state;
  static const struct {
    const ProtobufCMessageDescriptor *descriptor;
    unsigned n_path;
    uint32_t path[3]; /* field numbers from the model down, innermost first */
  } places[] = {{&onnx__model_proto__descriptor, 0, {0}},
                {&onnx__graph_proto__descriptor, 1, {7}},
                {&onnx__node_proto__descriptor, 2, {1, 7}},
                {&onnx__tensor_proto__descriptor, 2, {5, 7}},
                {&onnx__attribute_proto__descriptor, 3, {5, 1, 7}}};
  for (size_t p = 0; p < sizeof places / sizeof *places; p++)
    for (unsigned f = 0; f <= places[p].descriptor->n_fields; f++)
      for (unsigned wire_type = 0; wire_type < 8; wire_type++) {
        const bool known = f < places[p].descriptor->n_fields;
        const ProtobufCFieldDescriptor *field = &places[p].descriptor->fields[f];
        if (known && field->id > 1000) continue; /* payload_view: refused always, below */
        bool right = known ? wire_type_is_right(field, wire_type) : wire_type < 3 || wire_type == 5;
        pb message = {0};
        add_of_wire_type(&message, known ? field->id : 999, wire_type);
        for (unsigned i = 0; i < places[p].n_path; i++) {
          pb outer = {0};
          pb_message(&outer, places[p].path[i], &message);
          message = outer;
        }
        expect(&message, right ? PSPLIT_OK : PSPLIT_MALFORMED, right ? "" : "wire type");
      }
}

static void broken_framing_is_refused(void **state) {
  (void)state;
#define CASE(text, code, part) \
  { text, sizeof text - 1, code, part }
  static const struct {
    const char *bytes;
    size_t n;
    psplit_code code;
    const char *part;
  } cases[] = {
    CASE("\x00\x01", PSPLIT_MALFORMED, "no field starts"),
    CASE("\x07", PSPLIT_MALFORMED, "no field starts"),
    CASE("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", PSPLIT_MALFORMED, "no field starts"),
    CASE("\x8a\x80\x80\x80\x80\x00", PSPLIT_MALFORMED, "no field starts"), /* a 6-byte tag */
    CASE("\x80\x80\x80\x80\x10\x01", PSPLIT_MALFORMED, "no field starts"), /* number 2^29 */
    CASE("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", PSPLIT_OK, ""),   /* -1 */
    CASE("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", PSPLIT_MALFORMED, "cut off"),
    CASE("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", PSPLIT_MALFORMED, "cut off"),
    CASE("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", PSPLIT_MALFORMED, "past the end"),
    CASE("\x3a\xf5\xff\xff\xff\xff\xff\xff\xff\xff\x01", PSPLIT_MALFORMED, "past the end"),
    CASE("\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f", PSPLIT_MALFORMED, "past the end"),
    CASE("\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", PSPLIT_MALFORMED, "cut off"),
    CASE("\x3a\x02\x2a\x01\x00", PSPLIT_MALFORMED, "past the end"), /* ends in its parent */
    CASE("\x3a\x04\x2a\x02\x4a\x05", PSPLIT_MALFORMED, "past the end"),
    /* payloads: graph, initializer, raw_data or float_data with a huge length */
    CASE("\x3a\x0d\x2a\x0b\x4a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", PSPLIT_MALFORMED,
         "past the end"),
    CASE("\x3a\x05\x2a\x03\x22\x01\x00", PSPLIT_MALFORMED, "packed"), /* a quarter of a float */
    CASE("\x3a\x05\x2a\x03\x0a\x01\x80", PSPLIT_MALFORMED, "packed"), /* half a dim */
    /* payload_view: ours alone in a tensor, an unknown field elsewhere */
    CASE("\x3a\x08\x2a\x06\xfa\xff\xff\xff\x0f\x00", PSPLIT_UNSUPPORTED, "reserved"),
    CASE("\x3a\x07\x2a\x05\xf8\xff\xff\xff\x0f", PSPLIT_UNSUPPORTED, "reserved"),
    CASE("\x3a\x08\x0a\x06\xfa\xff\xff\xff\x0f\x00", PSPLIT_OK, ""),
  };
#undef CASE
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pb file = {0};
    psplit_i_text_add(&file, cases[i].bytes, cases[i].n);
    expect(&file, cases[i].code, cases[i].part);
  }
}

/* int32_data (field 5) of 30,000 bytes, which stay in the file, in numbers of `width` bytes. */
static void expect_of_numbers(unsigned width, uint8_t last, psplit_code code, const char *part) {
  enum { N = 30000 };
  uint8_t *numbers = malloc(N);
  for (unsigned i = 0; i < N; i++) numbers[i] = (i + 1) % width ? 0x81 : 0x01;
  numbers[N - 1] = last;
  pb tensor = {0}, graph = {0};
  pb_bytes(&tensor, 5, numbers, N);
  pb_message(&graph, 5, &tensor);
  free(numbers);
  pb file = around(&graph);
  expect(&file, code, part);
}

/* What stays in the file is not a model either where protobuf would refuse it. */
static void packed_numbers_that_stay_behind_are_whole(void **state) {
  (void)state;
  expect_of_numbers(1, 0x01, PSPLIT_OK, "");
  expect_of_numbers(3, 0x01, PSPLIT_OK, "");
  expect_of_numbers(10, 0x01, PSPLIT_OK, "");
  expect_of_numbers(1, 0x81, PSPLIT_MALFORMED, "packed");
  expect_of_numbers(10, 0x81, PSPLIT_MALFORMED, "packed");
  expect_of_numbers(11, 0x01, PSPLIT_MALFORMED, "packed");
}

/* Strings and payloads across the edges of the scan's window. */
static void windows_do_not_show(void **state) {
  (void)state;
  pb graph = {0}, copy = {0};
  char *text = malloc(3 << 20);
  memset(text, 'n', 3 << 20);
  for (unsigned i = 0; i < 40; i++) {
    const size_t n = (size_t)(psplit_i_splitmix64(7, i) % (i % 10 ? 9000 : 3 << 20));
    pb node = {0};
    pb_bytes(&node, 3, text, n);
    pb_message(&graph, 1, &node);
    pb tensor = raw_tensor(4 * (size_t)(psplit_i_splitmix64(9, i) % 30000), 0x11);
    pb_message(&graph, 5, &tensor);
  }
  free(text);
  pb file = around(&graph);
  psplit_i_text_add(&copy, file.bytes, file.n);
  psplit_i_skeleton skeleton;
  Onnx__ModelProto *model = scanned(&file, &skeleton);
  for (size_t i = 0; i < 40; i++) {
    const Onnx__TensorProto *tensor = model->graph->initializer[i];
    assert_int_equal(strlen(model->graph->node[i]->name),
                     psplit_i_splitmix64(7, i) % (i % 10 ? 9000 : 3 << 20));
    const uint64_t n = 4 * (psplit_i_splitmix64(9, i) % 30000);
    if (n <= PSPLIT_I_VIEW_BYTES) continue;
    assert_int_equal(tensor->payload_view[0]->bytes, n);
    for (uint64_t k = 0; k < n; k++)
      assert_int_equal(copy.bytes[tensor->payload_view[0]->offset + k], 0x11);
  }
  onnx__model_proto__free_unpacked(model, NULL);
  psplit_i_skeleton_fini(&skeleton);
  psplit_i_text_fini(&copy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(unknown_fields_survive_at_every_level),
    cmocka_unit_test(every_payload_field_is_left_behind),
    cmocka_unit_test(small_payloads_and_strings_stay),
    cmocka_unit_test(lengths_are_rewritten_at_every_level),
    cmocka_unit_test(padded_lengths_are_read),
    cmocka_unit_test(a_nul_in_a_name_is_refused),
    cmocka_unit_test(a_single_message_given_twice_is_refused),
    cmocka_unit_test(depth_is_limited),
    cmocka_unit_test(memory_is_limited),
    cmocka_unit_test(a_cut_file_is_malformed),
    cmocka_unit_test(only_the_right_wire_types_are_read),
    cmocka_unit_test(broken_framing_is_refused),
    cmocka_unit_test(packed_numbers_that_stay_behind_are_whole),
    cmocka_unit_test(windows_do_not_show),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
