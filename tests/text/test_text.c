/* The text form: other spellings of the same, what is refused and where, data that is made up.
 * That printing and parsing lose nothing is text_roundtrip's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comma_locale.h"
#include "same.h"
#include "scratch.h"

/* A text parsed, which has to succeed; the arena is the caller's to end. */
static Onnx__ModelProto *parsed(const char *text, psplit_i_arena *arena) {
  psplit_diag diag = {0};
  Onnx__ModelProto *model = NULL;
  psplit_i_arena_init(arena, 0);
  if (psplit_i_text_parse(text, strlen(text), NULL, arena, &diag, &model) != PSPLIT_OK)
    fail_msg("%s\n%s", diag.message, text);
  return model;
}

static psplit_i_text printed(const Onnx__ModelProto *model, uint64_t max_data_bytes) {
  const psplit_print_text_options options = {.struct_size = sizeof options,
                                             .max_data_bytes = max_data_bytes};
  psplit_i_text out = {0};
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_text_print(model, &options, NULL, NULL, &diag, &out), PSPLIT_OK);
  return out;
}

/* That two texts say the same model. */
static void assert_same(const char *a, const char *b) {
  psplit_i_arena arenas[2];
  const Onnx__ModelProto *one = parsed(a, &arenas[0]), *two = parsed(b, &arenas[1]);
  if (!same_packed(one, two)) {
    psplit_i_text left = printed(one, UINT64_MAX), right = printed(two, UINT64_MAX);
    fail_msg("not the same:\n%s\n%s", left.bytes, right.bytes);
  }
  psplit_i_arena_fini(&arenas[0]);
  psplit_i_arena_fini(&arenas[1]);
}

static void what_may_be_written_in_several_ways(void **state) {
  (void)state;
  static const char *const pairs[][2] = {
    {"g(x)=>(y){y=Relu(x)}", "# a comment\n g (x) => (y) { # another\n  y = Relu (x) }\n"},
    {"g () => () {}", "<> g () => () {}"},
    /* inputs and outputs that are left out, as ONNX's parser has it */
    {"() => () { a = Op(x,,y) }", "() => () { a = Op(x, \"\", y) }"},
    {"() => () { a = Op(,x) }", "() => () { a = Op(\"\", x) }"},
    {"() => () { a = Op(x,) }", "() => () { a = Op(x) }"},
    {"() => () { a = Op(,) }", "() => () { a = Op(\"\") }"},
    {"() => () { a,,b = Op() }", "() => () { a, \"\", b = Op() }"},
    {"() => () { [] = Op() }", "() => () { [\"\"] = Op() }"},
    /* attributes before and behind the inputs; their types said and understood */
    {"() => () { a = Op<i=1>(x) }", "() => () { a = Op(x)<i: int = 1> }"},
    {"() => () { a = Op<f: float = 2>() }", "() => () { a = Op<f = 2.0>() }"},
    {"() => () { a = Op<f: floats = [1, 2.5]>() }", "() => () { a = Op<f = [1.0, 2.5]>() }"},
    {"() => () { a = Op<f = 1e0>() }", "() => () { a = Op<f = 1.>() }"},
    {"() => () { a = Op<f = [nan, INF, -Infinity]>() }",
     "() => () { a = Op<f = [NaN, inf, -inf]>() }"},
    {"() => () { a = Op<f = nan(x\"7fc00000\")>() }", "() => () { a = Op<f = nan>() }"},
    {"() => () { a = Op<f: float = -0>() }", "() => () { a = Op<f = -0.0>() }"},
    {"() => () { a = Op<t = float[1] = {1}>() }", "() => () { a = Op<t = float[1] {1}>() }"},
    {"() => () { a = Op<t: tensor = {dims: [1], data_type: 1, float_data: [1]}>() }",
     "() => () { a = Op<t = float[1] {1}>() }"},
    {"() => () { a = Op<b = g () => () {}>() }", "() => () { a = Op<b = \"g\" () => () {}>() }"},
    /* strings */
    {"() => () @{doc_string: \"a\\b\"} {}", "() => () @{doc_string: \"ab\"} {}"},
    {"() => () @{doc_string: e\"\\x61\\n\\\\\\\"\"} {}",
     "() => () @{doc_string: \"a\n\\\\\\\"\"} {}"},
    {"() => () @{doc_string: x\"61 62\n63\"} {}", "() => () @{doc_string: \"abc\"} {}"},
    /* an initializer that is an input as well */
    {"(float[1] x = {2}) => () {}", "(float[1] x) => () <float[1] x = {2}> {}"},
    {"(x) => () < > { }", "(x) => () {}"},
    /* repeats */
    {"() => () <float[4] w = {1 * 3, 2}> {}", "() => () <float[4] w = {1, 1, 1, 2}> {}"},
    {"() => () <float[2] w = raw {1 * 0, 2 * 2}> {}", "() => () <float[2] w = raw {2, 2}> {}"},
    {"() => () <string[2] w = {\"a\" * 2}> {}", "() => () <string[2] w = {\"a\", \"a\"}> {}"},
    {"() => () <int16[2] w = raw {1, -1}> {}", "() => () <int16[2] w = raw x\"0100ffff\"> {}"},
    /* types of a function's values */
    {"() => () {} F (float[1] a, b) => (int64 c) <float t> {}",
     "() => () {} F (a, b) => (c) <float[1] a, int64 c, float t> {}"},
    {"() => () {} F () => () {}", "() => () {} {name: \"F\"}"},
    {"() => () { {op_type: \"Op\", input: [\"x\"]} }", "() => () { = Op(x) }"},
    /* fields by name are those of the syntax */
    {"<graph: g (x) => () {}>", "g (x) => () {}"},
    {"<ir_version: 1, functions: [{name: \"F\", node: [{op_type: \"A\"}]}]> () => () {}",
     "<ir_version: 1> () => () {} F () => () { = A() }"},
    {"(x @{type: float[2]}) => () {}", "(float[2] x) => () {}"},
    {"<opset_import: [{domain: \"a\", version: 3}]>", "<opset_import: [\"a\": 3]>"},
    {"<77: 18446744073709551615>", "<77: -1>"},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) assert_same(pairs[i][0], pairs[i][1]);
}

/* Names may not make others read what they are not: bytes are written, which read as the same. */
static void what_turns_a_line_around_is_escaped(void **state) {
  (void)state;
  static const char *const bad[] = {"\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\xa8", "\xd8\x9c",
                                    "\xc2\x85",     "\x7f",         "\x1b"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[128];
    psplit_i_arena arenas[2];
    snprintf(text, sizeof text, "() => () { \"a name that is long, \xc3\xa4 %s\" = Op() }", bad[i]);
    const Onnx__ModelProto *model = parsed(text, &arenas[0]);
    psplit_i_text out = printed(model, UINT64_MAX);
    if (strstr(out.bytes, bad[i])) fail_msg("it is there: %s", out.bytes);
    assert_non_null(strstr(out.bytes, "e\"a name that is long, \xc3\xa4 \\x"));
    assert_true(same_packed(model, parsed(out.bytes, &arenas[1])));
    psplit_i_text_fini(&out);
    psplit_i_arena_fini(&arenas[0]);
    psplit_i_arena_fini(&arenas[1]);
  }
}

/* What stands in the text is there, and what does not is not: "" is not nothing. */
static void absent_is_not_empty(void **state) {
  (void)state;
  psplit_i_arena arena;
  const Onnx__ModelProto *model =
    parsed("(x) => () { [\"\"] \"\" = Relu(x) a = \"\".Relu(x) = (x) }", &arena);
  const Onnx__NodeProto *const *nodes = (const Onnx__NodeProto *const *)model->graph->node;
  assert_null(model->graph->name);
  assert_false(model->has_ir_version);
  assert_null(model->graph->input[0]->type);
  assert_string_equal(nodes[0]->name, "");
  assert_int_equal(nodes[0]->n_output, 1);
  assert_string_equal(nodes[0]->output[0], "");
  assert_null(nodes[0]->domain);
  assert_null(nodes[1]->name);
  assert_string_equal(nodes[1]->domain, "");
  assert_string_equal(nodes[1]->op_type, "Relu");
  assert_null(nodes[2]->op_type);
  assert_int_equal(nodes[2]->n_output, 0);
  psplit_i_arena_fini(&arena);
}

static void errors_say_where_and_what(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
    {"g (x) => (y) {\n  y = Relu (x\n}",
     "m.onnxtxt:3:1: expected ')' after the inputs of a node, found '}'"},
    {"g (x) => (y) {",
     "m.onnxtxt:1:15: expected '=' after the outputs of a node, found the end of "
     "the text"},
    {"g (x) (y) {}", "m.onnxtxt:1:7: expected '=>' after the inputs of a graph, found '('"},
    {"<ir_version: \"8\">", "m.onnxtxt:1:14: expected a number, found the string \"8\""},
    {"<ir_version: 99999999999999999999>",
     "m.onnxtxt:1:14: expected a number from -9223372036854775808 to 9223372036854775807"},
    {"<ir_version: 1, ir_version: 2>",
     "m.onnxtxt:1:17: ir_version is given twice, or beside a field that excludes it"},
    {"<ir_versoin: 1>",
     "m.onnxtxt:1:2: expected a field of ModelProto, or a number, found "
     "'ir_versoin'"},
    {"<1: 8>", "m.onnxtxt:1:2: field 1 has a name: ir_version"},
    {"<536870912: 8>", "m.onnxtxt:1:2: expected a field number from 1 to 536870911"},
    {"<99: 1.5>",
     "m.onnxtxt:1:6: expected a number, fixed32(number), fixed64(number) or a string, "
     "found '1.5'"},
    {"<99: fixed32(4294967296)>", "m.onnxtxt:1:14: expected a number from 0 to 4294967295"},
    {"() => () <ünder", "m.onnxtxt:1:11: unexpected byte 0xc3"},
    {"# ü\n() => () { ü", "m.onnxtxt:2:12: unexpected byte 0xc3"},
    {"(\"ü\" %", "m.onnxtxt:1:6: unexpected byte 0x25"},
    {"g (float[2 x) => () {}", "m.onnxtxt:1:12: expected ']' after dimensions, found 'x'"},
    {"g (float[1.5] x) => () {}",
     "m.onnxtxt:1:10: expected a dimension: a number, a name or '?', found '1.5'"},
    {"g (seq) => () {}", "m.onnxtxt:1:7: expected '(' after the kind of a type, found ')'"},
    {"g (map(tensor, float) x) => () {}",
     "m.onnxtxt:1:8: expected an element type, found 'tensor'"},
    {"() => () <float[N] w = {1}> {}",
     "m.onnxtxt:1:11: expected dimensions that are numbers before data"},
    {"() => () <float[] w = {1}> {}",
     "m.onnxtxt:1:11: expected an element type and dimensions, without more, before data"},
    {"() => () <w = {1}> {}",
     "m.onnxtxt:1:11: expected an element type and dimensions, without more, before data"},
    {"() => () <int8[1] w = {4294967296}> {}",
     "m.onnxtxt:1:24: expected a number from -2147483648 to 2147483647"},
    {"() => () <int8[1] w = raw {128}> {}", "m.onnxtxt:1:28: expected a number from -128 to 127"},
    {"() => () <uint8[1] w = raw {-1}> {}", "m.onnxtxt:1:29: expected a number from 0 to 255"},
    {"() => () <int4[1] w = raw {1}> {}",
     "m.onnxtxt:1:28: expected a string with the bytes, \"...\": the elements of this type are not "
     "written as numbers, found '1'"},
    {"() => () <?(99)[1] w = {1}> {}",
     "m.onnxtxt:1:25: expected a string with the bytes, \"...\": the elements of this type are not "
     "written as numbers, found '1'"},
    {"() => () <float[1] w = {...}> {}",
     "m.onnxtxt:1:25: data was left out when this text was printed: print it whole, or have data "
     "made up for it"},
    {"() => () <float[1] w = soon> {}",
     "m.onnxtxt:1:24: expected data: '{', '[', raw or random, found 'soon'"},
    {"() => () <float[1] w = []> {}", "m.onnxtxt:1:25: expected a key, \"...\", found ']'"},
    {"() => () <float[1] w = {nan(x\"00\")}> {}", "m.onnxtxt:1:29: expected 4 bytes"},
    {"() => () { a = Op <x = []> () }",
     "m.onnxtxt:1:24: an empty list needs a type: name: ints = []"},
    {"() => () { a = Op <x: int = [1]> () }",
     "m.onnxtxt:1:29: a list, for an attribute of type int"},
    {"() => () { a = Op <x: ints = 1> () }",
     "m.onnxtxt:1:30: expected a value of type ints, found one of type int"},
    {"() => () { a = Op <x = [1, 2.5]> () }",
     "m.onnxtxt:1:28: expected a value of type int, found one of type float"},
    {"() => () { a = Op <x: number = 1> () }",
     "m.onnxtxt:1:23: expected the type of an attribute, found 'number'"},
    {"() => () { a = Op <x = {dims: [1]}> () }",
     "m.onnxtxt:1:24: expected a value; '{' needs a type that is a message, name: tensor = {...}, "
     "found '{'"},
    {"() => () { a = Op <x> () }",
     "m.onnxtxt:1:21: expected '=' after the name of an attribute, "
     "found '>'"},
    {"() => () { a = Op (x y) }",
     "m.onnxtxt:1:22: expected ')' after the inputs of a node, found 'y'"},
    {"() => () { a = \"Op (x) }", "m.onnxtxt:1:16: unterminated string"},
    {"() => () { a = e\"\\q\"(x) }",
     "m.onnxtxt:1:18: expected one of \\n \\r \\t \\\\ \\\" \\xHH in e\"...\""},
    {"() => () { a = x\"6\"(x) }",
     "m.onnxtxt:1:18: expected two hexadecimal digits for each byte of x\"...\""},
    {"() => () { a = x\"6100\"(x) }", "m.onnxtxt:1:16: this string may not hold a NUL byte"},
    {"() => () {} g",
     "m.onnxtxt:1:14: expected '(' before the inputs of a function, found the end "
     "of the text"},
    {"() => () {} }", "m.onnxtxt:1:13: expected a function: '<' or its name, found '}'"},
    {"() => () {} <name: \"F\"> F () => () {}", "m.onnxtxt:1:25: the function has a name already"},
    {"(x) => () {} @{99: 1}", "m.onnxtxt:1:14: expected a function: '<' or its name, found '@'"},
    {"() => () @{sparse_initializer: {}} {}",
     "m.onnxtxt:1:32: expected '[' before the values of a repeated field, found '{'"},
    {"() => () @{sparse_initializer: [1]} {}",
     "m.onnxtxt:1:33: expected '{' and the fields of a message, found '1'"},
    {"() => () <float[1] w = {1} @{payload_view: []}> {}",
     "m.onnxtxt:1:30: expected a field of TensorProto, or a number, found 'payload_view'"},
    {"() => () <float[1] w = {1} @{data_location: NOWHERE}> {}",
     "m.onnxtxt:1:45: expected a name of DataLocation, or a number, found 'NOWHERE'"},
  };
  const psplit_parse_text_options options = {.struct_size = sizeof options,
                                             .file_name = "m.onnxtxt"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    void *bytes = NULL;
    size_t n;
    psplit_diag diag = {0};
    assert_int_equal(
      psplit_model_parse_text(cases[i].text, strlen(cases[i].text), &options, &diag, &bytes, &n),
      PSPLIT_MALFORMED);
    assert_string_equal(diag.message, cases[i].message);
    assert_null(bytes);
  }
  psplit_diag diag = {0};
  void *bytes;
  size_t n;
  assert_int_equal(psplit_model_parse_text("(", 1, NULL, &diag, &bytes, &n), PSPLIT_MALFORMED);
  assert_string_equal(diag.message, "1:2: expected a type or a name, found the end of the text");
}

/* `text` has to fail with this code, in bounded time and memory. */
static void assert_fails(const char *text, psplit_code code, const char *part) {
  psplit_diag diag = {0};
  void *bytes;
  size_t n;
  assert_int_equal(psplit_model_parse_text(text, strlen(text), NULL, &diag, &bytes, &n), code);
  assert_non_null(strstr(diag.message, part));
}

static void depth_and_size_are_limited(void **state) {
  (void)state;
  static const char *const openings[] = {"(seq(",
                                         "() => () { = Op <g = ", "<training_info: [{algorithm: "};
  static const char *const repeats[] = {
    "seq(", "() => () { = Op <g = ", "() => () @{node: [{attribute: [{g: "};
  for (size_t i = 0; i < sizeof repeats / sizeof *repeats; i++) {
    psplit_i_text text = {0};
    psplit_i_text_puts(&text, openings[i]);
    for (unsigned depth = 0; depth < 1000000; depth++) psplit_i_text_puts(&text, repeats[i]);
    assert_fails(text.bytes, PSPLIT_LIMIT, "nest more than 100 deep");
    psplit_i_text_fini(&text);
  }
  assert_fails("() => () <float[9] w = {1 * 2147483647}> {}", PSPLIT_LIMIT, "over 2 GiB");
  assert_fails("() => () <float[65536,65536] w = random(1)> {}", PSPLIT_LIMIT, "over 2 GiB");
}

/* As many values as the dims say, which the seed alone decides. */
static void made_up_data_fits(void **state) {
  (void)state;
  static const struct {
    const char *type;
    size_t bytes;
  } cases[] = {{"float[3,5]", 60},     {"double[3]", 24}, {"int64[2]", 16},  {"bool[7]", 7},
               {"float16[4]", 8},      {"int4[5]", 3},    {"uint2[9]", 3},   {"complex64[2]", 16},
               {"float8e4m3fn[3]", 3}, {"float", 4},      {"float[0,3]", 0}, {"bfloat16[1]", 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[128];
    psplit_i_arena arenas[3];
    const Onnx__TensorProto *tensors[3];
    for (unsigned k = 0; k < 3; k++) {
      snprintf(text, sizeof text, "() => () <%s w = random(%u)> {}", cases[i].type, k == 2 ? 8 : 7);
      tensors[k] = parsed(text, &arenas[k])->graph->initializer[0];
      assert_true(tensors[k]->has_raw_data);
      assert_int_equal(tensors[k]->raw_data.len, cases[i].bytes);
    }
    assert_memory_equal(tensors[0]->raw_data.data, tensors[1]->raw_data.data, cases[i].bytes);
    if (cases[i].bytes > 8)
      assert_memory_not_equal(tensors[0]->raw_data.data, tensors[2]->raw_data.data, cases[i].bytes);
    for (unsigned k = 0; k < 3; k++) psplit_i_arena_fini(&arenas[k]);
  }
  psplit_i_arena arena;
  const Onnx__TensorProto *floats =
    parsed("() => () <float[1000] w = random(1)> {}", &arena)->graph->initializer[0];
  float sum = 0;
  for (size_t i = 0; i < 1000; i++) {
    float value;
    memcpy(&value, floats->raw_data.data + 4 * i, sizeof value);
    assert_true(value >= -0.5F && value < 0.5F);
    sum += value;
  }
  assert_true(sum > -50 && sum < 50);
  psplit_i_arena_fini(&arena);
}

/* What is left out is as large as it was once it is made up, and no other data is touched. */
static void data_can_be_left_out(void **state) {
  (void)state;
  static const char text[] =
    "() => () <float[4] raw4 = raw {1, 2, 3, 4}, float[4] typed = {1, 2, 3, 4}, int64[3] ids = {1, "
    "2, 3}, string[2] words = {\"long enough\", \"\"}, float[2] small = {1, 2}, int4[40] i4 = raw "
    "x\"0000000000000000000000000000000000000000\", ?(99)[1] newer = raw \"0123456789\"> {}";
  static const char expected[] =
    "<>\n() => ()\n<\n  float[4] raw4 = raw {...},\n"
    "  float[4] typed = {...},\n  int64[3] ids = {...},\n"
    "  string[2] words = {...},\n  float[2] small = {1, 2},\n"
    "  int4[40] i4 = raw {...},\n  ?(99)[1] newer = raw \"0123456789\"\n"
    "> {}\n";
  psplit_i_arena arena, again;
  psplit_i_text out = printed(parsed(text, &arena), 8);
  assert_string_equal(out.bytes, expected);
  const psplit_parse_text_options fill = {.struct_size = sizeof fill, .fill_left_out = true};
  Onnx__ModelProto *model;
  psplit_diag diag = {0};
  psplit_i_arena_init(&again, 0);
  assert_int_equal(psplit_i_text_parse(out.bytes, out.n, &fill, &again, &diag, &model), PSPLIT_OK);
  Onnx__TensorProto *const *tensors = model->graph->initializer;
  assert_int_equal(tensors[0]->raw_data.len, 16);
  assert_int_equal(tensors[1]->n_float_data, 4);
  assert_int_equal(tensors[2]->n_int64_data, 3);
  assert_int_equal(tensors[3]->n_string_data, 2);
  assert_true(tensors[4]->float_data[1] == 2);
  assert_int_equal(tensors[5]->raw_data.len, 20);
  psplit_i_text_fini(&out);
  psplit_i_arena_fini(&again);
  psplit_i_arena_fini(&arena);
}

/* Programs that embed the library may have set a locale that writes 0,5. */
static void the_locale_does_not_matter(void **state) {
  (void)state;
  use_point(&POINTS[0]);
  psplit_i_arena arena;
  psplit_i_text out = printed(parsed("() => () <float[1] w = {0.5}> {}", &arena), UINT64_MAX);
  assert_non_null(strstr(out.bytes, "{0.5}"));
  psplit_i_text_fini(&out);
  psplit_i_arena_fini(&arena);
  use_plain_point();
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_may_be_written_in_several_ways),
    cmocka_unit_test(what_turns_a_line_around_is_escaped),
    cmocka_unit_test(absent_is_not_empty),
    cmocka_unit_test(errors_say_where_and_what),
    cmocka_unit_test(depth_and_size_are_limited),
    cmocka_unit_test(made_up_data_fits),
    cmocka_unit_test(data_can_be_left_out),
    cmocka_unit_test_setup_teardown(the_locale_does_not_matter, enter_scratch, leave_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
