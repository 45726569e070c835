/* Tensors as ONNX writes them: numbers of each field and strings are read as they were meant, and
 * what is no TensorProto, or does not fit what is wanted, is told for what it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array_cases.h"
#include "casts.h"
#include "held_values.h"

/* Each field that may hold numbers, each number as its type has it. */
static void numbers_of_each_field_are_read(void **state) {
  (void)state;
  static float floats[] = {1, -2.5F};
  static double doubles[] = {1, -2.5};
  static int64_t longs[] = {1, -2};
  static uint64_t unsigned_longs[] = {1, 200};
  static int32_t ints[] = {1, 200}, negative[] = {1, -2}, halves[] = {0x3c00, 0xc100};
  static int64_t dims[] = {2};
  static uint8_t raw[] = {1, 200};
#define WITH(field, values) .n_dims = 1, .dims = dims, .n_##field = 2, .field = values
  const struct {
    Onnx__TensorProto proto;
    int32_t type;
    const char *values;
  } rows[] = {
    {{WITH(float_data, floats)}, F32, "1 -2.5"},
    {{WITH(double_data, doubles)}, F64, "1 -2.5"},
    {{WITH(int64_data, longs)}, I64, "1 -2"},
    {{WITH(uint64_data, unsigned_longs)}, U64, "1 200"},
    {{WITH(uint64_data, unsigned_longs)}, U32, "1 200"},
    {{WITH(int32_data, ints)}, U8, "1 200"},
    {{WITH(int32_data, ints)}, U16, "1 200"},
    {{WITH(int32_data, negative)}, I8, "1 -2"},
    {{WITH(int32_data, negative)}, I32, "1 -2"},
    {{WITH(int32_data, halves)}, F16, "1 -2.5"},
    {{.n_dims = 1, .dims = dims, .has_raw_data = true, .raw_data = {2, raw}}, U8, "1 200"},
    {{.has_raw_data = true, .raw_data = {1, raw}}, BOOL, "1"},
    {{.n_dims = 1, .dims = (int64_t[]){0}}, F32, ""},
    {{.n_dims = 1, .dims = (int64_t[]){0}, .has_raw_data = true}, F32, ""},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
    const ProtobufCMessage base = proto.base;
    psplit_diag diag = {0};
    psplit_i_tensor *tensor;
    char text[100];
    proto = rows[i].proto;
    proto.base = base;
    proto.has_data_type = true;
    proto.data_type = rows[i].type;
    if (!proto.raw_data.data) proto.raw_data.data = raw;
    expect_read(read_proto(&proto, rows[i].type, false, &diag, &tensor), &diag, PSPLIT_OK, "");
    print_tensor(tensor, text, sizeof text);
    assert_string_equal(text, rows[i].values);
    psplit_i_tensor_release(tensor);
  }
}

/* Two to a byte, whichever field has the bytes. */
static void numbers_of_four_bits_are_bytes_of_two(void **state) {
  (void)state;
  static int64_t dims[] = {3};
  static int32_t ints[] = {0x21, 0x3};
  Onnx__TensorProto proto = shaped_proto(INT4, dims, 1);
  psplit_diag diag = {0};
  psplit_i_tensor *tensor;
  proto.n_int32_data = 2;
  proto.int32_data = ints;
  expect_read(read_proto(&proto, INT4, false, &diag, &tensor), &diag, PSPLIT_OK, "");
  assert_memory_equal(psplit_i_tensor_value(tensor)->data, "\x21\x3", 2);
  psplit_i_tensor_release(tensor);
  proto.n_int32_data = 1;
  expect_read(read_proto(&proto, INT4, false, &diag, &tensor), &diag, PSPLIT_INVALID,
              "f: data and dims do not agree");
}

static void strings_are_read_and_written(void **state) {
  (void)state;
  static int64_t dims[] = {2, 1};
  ProtobufCBinaryData strings[] = {{3, (uint8_t *)"one"}, {0, (uint8_t *)""}};
  Onnx__TensorProto proto = shaped_proto(STRING, dims, 2);
  psplit_diag diag = {0};
  psplit_i_tensor *tensor, *again;
  psplit_i_text file = {0};
  char text[20];
  proto.n_string_data = 2;
  proto.string_data = strings;
  expect_read(read_proto(&proto, STRING, false, &diag, &tensor), &diag, PSPLIT_OK, "");
  print_tensor(tensor, text, sizeof text);
  assert_string_equal(text, "one|");
  assert_int_equal(psplit_i_pb_format(tensor, &diag, &file), PSPLIT_OK);
  const psplit_i_array_wanted wanted = {.data_type = STRING, .n_dims = PSPLIT_NONE};
  assert_int_equal(psplit_i_pb_parse(&HELD_VALUES, "f", (const unsigned char *)file.bytes, file.n,
                                     &wanted, &diag, &again),
                   PSPLIT_OK);
  assert_true(same_values(tensor, again));
  psplit_i_tensor_release(tensor);
  psplit_i_tensor_release(again);
  psplit_i_text_fini(&file);
  proto.n_string_data = 1;
  expect_read(read_proto(&proto, STRING, false, &diag, &tensor), &diag, PSPLIT_INVALID,
              "f: strings and dims do not agree");
}

static void protos_that_do_not_fit_are_told(void **state) {
  (void)state;
  static float floats[3];
  static uint64_t longs[1];
  static int32_t ints[1];
  static int64_t two[] = {2}, eight[] = {8}, negative[] = {-1}, one[] = {1},
                 many[PSPLIT_I_MAX_RANK + 1];
  static Onnx__StringStringEntryProto entry = ONNX__STRING_STRING_ENTRY_PROTO__INIT;
  static Onnx__StringStringEntryProto *external[] = {&entry};
  static const char COUNTS[] = "f: data and dims do not agree",
                    LARGE[] = "f: a tensor is too large, or has a negative dimension";
  const struct {
    Onnx__TensorProto proto;
    int32_t type, wanted;
    bool safe;
    psplit_code code;
    const char *says;
  } rows[] = {
    {{.n_dims = 1, .dims = two}, F32, F32, false, PSPLIT_INVALID, COUNTS},
    {{.n_dims = 1, .dims = two, .n_float_data = 3, .float_data = floats},
     F32,
     F32,
     false,
     PSPLIT_INVALID,
     COUNTS},
    {{.n_dims = 1, .dims = two, .n_float_data = 3, .float_data = floats},
     F64,
     F64,
     false,
     PSPLIT_INVALID,
     COUNTS},
    {{.n_dims = 1, .dims = eight, .n_int64_data = 1, .int64_data = two},
     BOOL, /* of which numbers of 64 bits are none */
     BOOL,
     false,
     PSPLIT_INVALID,
     COUNTS},
    {{.n_dims = 1, .dims = two, .n_uint64_data = 1, .uint64_data = longs},
     U64,
     U64,
     false,
     PSPLIT_INVALID,
     COUNTS},
    {{.n_dims = 1, .dims = one, .n_uint64_data = 1, .uint64_data = longs},
     C128,
     C128,
     false,
     PSPLIT_INVALID,
     COUNTS},
    {{.n_dims = 1, .dims = one, .n_int32_data = 1, .int32_data = ints},
     I64,
     I64,
     false,
     PSPLIT_INVALID,
     COUNTS},
    {{.n_dims = 1, .dims = two, .has_raw_data = true}, U8, U8, false, PSPLIT_INVALID, COUNTS},
    {{.n_dims = 1, .dims = negative}, F32, F32, false, PSPLIT_LIMIT, LARGE},
    {{.n_dims = PSPLIT_I_MAX_RANK + 1, .dims = many}, F32, F32, false, PSPLIT_LIMIT, LARGE},
    {{.n_external_data = 1, .external_data = external},
     F32,
     F32,
     false,
     PSPLIT_UNSUPPORTED,
     "f has external data"},
    {{.n_dims = 0}, F32, F64, false, PSPLIT_INVALID, "f holds float32, the input is float64"},
    {{.n_dims = 0}, F64, F32, true, PSPLIT_INVALID, "f holds float64, the input is float32"},
    {{.n_dims = 0}, 99, F32, true, PSPLIT_INVALID, "f holds no known type, the input is float32"},
  };
  entry.key = (char *)"location";
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
    const ProtobufCMessage base = proto.base;
    psplit_diag diag = {0};
    psplit_i_tensor *tensor;
    proto = rows[i].proto;
    proto.base = base;
    proto.has_data_type = true;
    proto.data_type = rows[i].type;
    proto.raw_data.data = (uint8_t *)"";
    expect_read(read_proto(&proto, rows[i].wanted, rows[i].safe, &diag, &tensor), &diag,
                rows[i].code, rows[i].says);
    assert_null(tensor);
  }
  const psplit_i_array_wanted wanted = {.data_type = F32};
  psplit_diag diag = {0};
  psplit_i_tensor *tensor = NULL;
  expect_read(
    psplit_i_pb_parse(&HELD_VALUES, "f", (const unsigned char *)"\xff", 1, &wanted, &diag, &tensor),
    &diag, PSPLIT_MALFORMED, "f: not a TensorProto");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_of_each_field_are_read),
    cmocka_unit_test(numbers_of_four_bits_are_bytes_of_two),
    cmocka_unit_test(strings_are_read_and_written),
    cmocka_unit_test(protos_that_do_not_fit_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
