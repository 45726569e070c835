/* Tensors in files: what numpy and ONNX write is read as it was meant, and what is not theirs, or
 * does not fit what is wanted, is told for what it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "casts.h"
#include "failing.h"
#include "failing_chains.h"
#include "held_values.h"
#include "made_files.h"
#include "onnx.pb-c.h"

enum { F32 = 1, U8, I8, U16, I16, I32, I64, STRING, BOOL, F16, F64, U32, U64, C64, C128, BF16, F8 };
enum { INT4 = 22 };

/* What a file that is read has to be, or what is said of it. */
static void expect_read(psplit_code code, const psplit_diag *diag, psplit_code wanted,
                        const char *says) {
  if (code != wanted || strcmp(diag->message, says) != 0)
    fail_msg("%s: \"%s\" is not \"%s\"", psplit_code_name(code), diag->message, says);
}

/* The numbers of a tensor, or its strings, as "1 2.5" and "a|b". */
static void print(const psplit_i_tensor *tensor, char *out, size_t size) {
  const OrtValue *value = psplit_i_tensor_value(tensor);
  psplit_diag diag = {0};
  psplit_i_tensor_view view;
  size_t at = 0;
  *out = '\0';
  assert_int_equal(psplit_i_tensor_look(tensor, &diag, &view), PSPLIT_OK);
  for (uint64_t i = 0; i < view.n_elements && at < size; i++)
    if (view.data)
      at += (size_t)snprintf(out + at, size - at, "%s%g", i ? " " : "",
                             psplit_i_tensor_number(&view, i));
    else
      at += (size_t)snprintf(out + at, size - at, "%s%.*s", i ? "|" : "", (int)value->strings[i].n,
                             value->strings[i].n ? value->strings[i].bytes : "");
}

/* --- .npy --- */

#define HEAD(descr, order, shape) \
  "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }\n"

static void arrays_of_numpy_are_read(void **state) {
  (void)state;
  static const struct {
    const char *header, *data;
    size_t n;
    int32_t wanted;
    const char *values;
  } good[] = {
    {HEAD("<f4", "False", "(2,)"), "\0\0\x80\x3f\0\0\x20\xc0", 8, F32, "1 -2.5"},
    {HEAD(">f4", "False", "(2,)"), "\x3f\x80\0\0\xc0\x20\0\0", 8, F32, "1 -2.5"},
    {HEAD(">f4", "False", "(0,)"), "", 0, F32, ""},
    {HEAD("=i2", "False", "()"), "\xfe\xff", 2, I16, "-2"},
    {HEAD("|u1", "True", "(2, 3)"), "\1\4\2\5\3\6", 6, U8, "1 2 3 4 5 6"},
    {HEAD("<u2", "True", "(2, 3L)"), "\1\0\4\0\2\0\5\0\3\0\6\0", 12, U16, "1 2 3 4 5 6"},
    {HEAD(">u2", "True", "(2, 2,)"), "\0\1\0\3\0\2\0\4", 8, U16, "1 2 3 4"},
    {HEAD("|u1", "True", "(3,)"), "\1\2\3", 3, U8, "1 2 3"},
    {"{\"shape\": (1,), \"descr\": \"|b1\", \"fortran_order\": False} \n", "\1", 1, BOOL, "1"},
    {HEAD("V2", "False", "(1,)"), "\x80\x3f", 2, BF16, "1"},
    {HEAD("<u2", "False", "(1,)"), "\0\x3c", 2, F16, "1"},
    {HEAD("|S2", "False", "(3,)"),
     "ab"
     "c\0"
     "\0\0",
     6, STRING, "ab|c|"},
    {HEAD("<U1", "False", "(4,)"), "A\0\0\0\xe9\0\0\0\xac\x20\0\0\0\xf6\1\0", 16, STRING,
     "A|\xc3\xa9|\xe2\x82\xac|\xf0\x9f\x98\x80"},
    {HEAD(">U2", "False", "(1,)"), "\0\0\0A\0\0\0B", 8, STRING, "AB"},
    {HEAD("<U0", "False", "(2,)"), "", 0, STRING, "|"},
  };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    for (unsigned version = 1; version <= 3; version++) {
      const made_bytes file = make_headed(version, good[i].header, good[i].data, good[i].n);
      const psplit_i_array_wanted wanted = {.data_type = good[i].wanted, .n_dims = PSPLIT_NONE};
      psplit_diag diag = {0};
      psplit_i_tensor *tensor = NULL;
      char text[100];
      expect_read(psplit_i_npy_parse(&HELD_VALUES, "f", file.at, file.n, &wanted, &diag, &tensor),
                  &diag, PSPLIT_OK, "");
      print(tensor, text, sizeof text);
      assert_string_equal(text, good[i].values);
      psplit_i_tensor_release(tensor);
      free(file.at);
    }
}

/* Numbers of two parts are turned round part by part. */
static void complex_numbers_keep_their_parts(void **state) {
  (void)state;
  static const unsigned char big[16] = {0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0};
  const made_bytes one = make_headed(1, HEAD(">c8", "False", "(1,)"), "\x3f\x80\0\0\xc0\0\0\0", 8),
                   two = make_headed(1, HEAD(">c16", "False", "(1,)"), big, 16);
  psplit_diag diag = {0};
  psplit_i_tensor *tensor = NULL;
  psplit_i_array_wanted wanted = {.data_type = C64, .n_dims = PSPLIT_NONE};
  assert_int_equal(psplit_i_npy_parse(&HELD_VALUES, "f", one.at, one.n, &wanted, &diag, &tensor),
                   PSPLIT_OK);
  const float *narrow = psplit_i_tensor_value(tensor)->data;
  assert_true(narrow[0] == 1 && narrow[1] == -2);
  psplit_i_tensor_release(tensor);
  wanted.data_type = C128;
  assert_int_equal(psplit_i_npy_parse(&HELD_VALUES, "f", two.at, two.n, &wanted, &diag, &tensor),
                   PSPLIT_OK);
  const double *numbers = psplit_i_tensor_value(tensor)->data;
  assert_true(numbers[0] == 1 && numbers[1] == -2);
  psplit_i_tensor_release(tensor);
  free(one.at);
  free(two.at);
}

static const char NO_HEADER[] = "f: the header is no .npy header",
                  NO_SIZE[] = "f: the file does not have the size of its shape",
                  NO_WIDTH[] = "f: the width of its strings";

static void headers_that_are_none_are_told(void **state) {
  (void)state;
  static const struct {
    const char *header;
    int32_t wanted;
    psplit_code code;
    const char *says;
  } bad[] = {
    {"  ", F32, PSPLIT_MALFORMED, NO_HEADER},
    {"'descr': '<f4'}", F32, PSPLIT_MALFORMED, NO_HEADER},
    {"{descr: '<f4'}", F32, PSPLIT_MALFORMED, NO_HEADER},
    {"{'descr: 1", F32, PSPLIT_MALFORMED, NO_HEADER},
    {"{'': '<f4'}", F32, PSPLIT_MALFORMED, NO_HEADER},
    {"{'a key of too many letters': 1}", F32, PSPLIT_MALFORMED, NO_HEADER},
    {"{'kind': '<f4'}", F32, PSPLIT_MALFORMED, NO_HEADER},
    {"{'descr' '<f4'}", F32, PSPLIT_MALFORMED, NO_HEADER},
    {"{'descr': <f4}", F32, PSPLIT_MALFORMED, NO_HEADER},
    {"{'descr': '<f4', 'descr': '<f4'}", F32, PSPLIT_MALFORMED, NO_HEADER},
    {"{'descr': '<f4', 'fortran_order': True, }", F32, PSPLIT_MALFORMED, NO_HEADER},
    {"{'descr': '<f4' 'fortran_order': True}", F32, PSPLIT_MALFORMED, NO_HEADER},
    {HEAD("<f4", "Maybe", "()"), F32, PSPLIT_MALFORMED, NO_HEADER},
    {HEAD("<f4", "False", "2"), F32, PSPLIT_MALFORMED, NO_HEADER},
    {HEAD("<f4", "False", "(x)"), F32, PSPLIT_MALFORMED, NO_HEADER},
    {HEAD("<f4", "False", "(-1)"), F32, PSPLIT_MALFORMED, NO_HEADER},
    {HEAD("<f4", "False", "(2 3)"), F32, PSPLIT_MALFORMED, NO_HEADER},
    {HEAD("<f4", "False", "()") "x", F32, PSPLIT_MALFORMED, NO_HEADER},
    {HEAD("<f4", "False", "(2,)"), F32, PSPLIT_MALFORMED, NO_SIZE},
    {HEAD("<f4", "False", "(9223372036854775807, 3)"), F32, PSPLIT_MALFORMED, NO_SIZE},
    {HEAD("<U4611686018427387903", "False", "()"), STRING, PSPLIT_MALFORMED, NO_HEADER},
    {HEAD("<U99999999999", "False", "(9223372036854775807,)"), STRING, PSPLIT_MALFORMED, NO_SIZE},
    {HEAD("<U", "False", "()"), STRING, PSPLIT_MALFORMED, NO_WIDTH},
    {HEAD("S12345678901234", "False", "()"), STRING, PSPLIT_MALFORMED, NO_SIZE},
    {HEAD("<U0", "False", "(65537,)"), STRING, PSPLIT_LIMIT,
     "f: over 65536 strings without a character"},
    {HEAD("<f4", "False", "()"), F64, PSPLIT_INVALID, "f holds <f4, the input is float64"},
    {HEAD("<f4", "False", "()"), STRING, PSPLIT_INVALID, "f holds <f4, the input is string"},
    {HEAD("O", "False", "()"), F32, PSPLIT_INVALID, "f holds O, the input is float32"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const made_bytes file = make_headed(1, bad[i].header, NULL, 0);
    const psplit_i_array_wanted wanted = {.data_type = bad[i].wanted, .n_dims = PSPLIT_NONE};
    psplit_diag diag = {0};
    psplit_i_tensor *tensor = NULL;
    const psplit_code code =
      psplit_i_npy_parse(&HELD_VALUES, "f", file.at, file.n, &wanted, &diag, &tensor);
    if (code != bad[i].code || strcmp(diag.message, bad[i].says) != 0)
      fail_msg("%s: %s: %s", bad[i].header, psplit_code_name(code), diag.message);
    assert_null(tensor);
    free(file.at);
  }
}

static void an_array_has_32_dimensions_at_most(void **state) {
  (void)state;
  const psplit_i_array_wanted wanted = {.data_type = U8, .n_dims = PSPLIT_NONE};
  for (int rank = PSPLIT_I_MAX_RANK; rank <= PSPLIT_I_MAX_RANK + 1; rank++) {
    char header[300] = "{'descr': '|u1', 'fortran_order': False, 'shape': (";
    for (int d = 0; d < rank; d++) strcat(header, "1,");
    strcat(header, ")}");
    const made_bytes file = make_headed(1, header, "\7", 1);
    psplit_diag diag = {0};
    psplit_i_tensor *tensor = NULL;
    const bool fits = rank == PSPLIT_I_MAX_RANK;
    expect_read(psplit_i_npy_parse(&HELD_VALUES, "f", file.at, file.n, &wanted, &diag, &tensor),
                &diag, fits ? PSPLIT_OK : PSPLIT_MALFORMED, fits ? "" : NO_HEADER);
    if (fits) assert_int_equal(psplit_i_tensor_value(tensor)->n_dims, rank);
    psplit_i_tensor_release(tensor);
    free(file.at);
  }
}

static void beginnings_that_are_none_are_told(void **state) {
  (void)state;
  static const char NONE[] = "f: not an .npy file of version 1 to 3";
  const psplit_i_array_wanted wanted = {.data_type = F32, .n_dims = PSPLIT_NONE};
  made_bytes file = make_headed(2, HEAD("<f4", "False", "()"), "\0\0\0\0", 4);
  static const struct {
    size_t at, n;
    unsigned char byte;
    const char *says;
  } bad[] = {
    {0, 80, 'x', NONE},
    {6, 80, 0, NONE},
    {6, 80, 4, NONE},
    {0, 11, 0x93, NONE},
    {10, 80, 0x11, NONE}, /* a header of more than 1 MiB */
    {9, 80, 1, "f: the header is cut off"},
  };
  assert_true(file.n >= 72);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    psplit_diag diag = {0};
    psplit_i_tensor *tensor = NULL;
    const unsigned char was = file.at[bad[i].at];
    file.at[bad[i].at] = bad[i].byte;
    expect_read(psplit_i_npy_parse(&HELD_VALUES, "f", file.at,
                                   bad[i].n < file.n ? bad[i].n : file.n, &wanted, &diag, &tensor),
                &diag, PSPLIT_MALFORMED, bad[i].says);
    file.at[bad[i].at] = was;
  }
  free(file.at);
}

/* What a stream asks of the first bytes: how many more there are. */
static void the_size_of_an_array_is_told_from_its_beginning(void **state) {
  (void)state;
  static const struct {
    const char *header;
    uint64_t n_data; /* UINT64_MAX: there is no telling */
  } rows[] = {
    {HEAD("<f4", "False", "(2, 3)"), 24},
    {HEAD("|b1", "False", "()"), 1},
    {HEAD("<U5", "False", "(2,)"), 40},
    {HEAD("<", "False", "(2,)"), UINT64_MAX},
    {HEAD("<O", "False", "(2,)"), UINT64_MAX},
    {HEAD("<U999999999999", "False", "(9223372036854775807,)"), UINT64_MAX},
    {HEAD("f8", "False", "(2305843009213693951,)"), UINT64_MAX}, /* with the header */
    {"{}", UINT64_MAX},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const made_bytes file = make_headed(1, rows[i].header, NULL, 0);
    psplit_diag diag = {0};
    uint64_t needed = 0;
    for (size_t n = 0; n < file.n; n++) {
      assert_int_equal(psplit_i_npy_measure("f", file.at, n, &diag, &needed), PSPLIT_OK);
      assert_int_equal(needed, n < PSPLIT_I_NPY_FIRST ? PSPLIT_I_NPY_FIRST : file.n);
    }
    const bool good = rows[i].n_data != UINT64_MAX;
    expect_read(psplit_i_npy_measure("f", file.at, file.n, &diag, &needed), &diag,
                good ? PSPLIT_OK : PSPLIT_MALFORMED, good ? "" : "f: no .npy comes next");
    if (good) assert_int_equal(needed, file.n + rows[i].n_data);
    file.at[0] = 'x';
    diag = (psplit_diag){0};
    expect_read(psplit_i_npy_measure("f", file.at, 7, &diag, &needed), &diag, PSPLIT_MALFORMED,
                "f: no .npy comes next");
    free(file.at);
  }
  const made_bytes large = make_headed(2, HEAD("<f4", "False", "()"), NULL, 0);
  psplit_diag diag = {0};
  uint64_t needed = 0;
  large.at[11] = 1;
  expect_read(psplit_i_npy_measure("f", large.at, large.n, &diag, &needed), &diag, PSPLIT_MALFORMED,
              "f: no .npy comes next");
  free(large.at);
}

/* --- .pb --- */

static made_bytes packed(const Onnx__TensorProto *proto) {
  made_bytes out = {malloc(onnx__tensor_proto__get_packed_size(proto) + 1), 0};
  assert_non_null(out.at);
  out.n = onnx__tensor_proto__pack(proto, out.at);
  return out;
}

static psplit_code read_proto(const Onnx__TensorProto *proto, int32_t wanted, bool safe_casts,
                              psplit_diag *diag, psplit_i_tensor **out) {
  const made_bytes file = packed(proto);
  const psplit_i_array_wanted wants = {
    .data_type = wanted, .n_dims = PSPLIT_NONE, .safe_casts = safe_casts};
  *out = NULL;
  const psplit_code code = psplit_i_pb_parse(&HELD_VALUES, "f", file.at, file.n, &wants, diag, out);
  free(file.at);
  return code;
}

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
    print(tensor, text, sizeof text);
    assert_string_equal(text, rows[i].values);
    psplit_i_tensor_release(tensor);
  }
}

/* Two to a byte, whichever field has the bytes. */
static void numbers_of_four_bits_are_bytes_of_two(void **state) {
  (void)state;
  static int64_t dims[] = {3};
  static int32_t ints[] = {0x21, 0x3};
  Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
  psplit_diag diag = {0};
  psplit_i_tensor *tensor;
  proto.n_dims = 1;
  proto.dims = dims;
  proto.has_data_type = true;
  proto.data_type = INT4;
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
  Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
  psplit_diag diag = {0};
  psplit_i_tensor *tensor, *again;
  psplit_i_text file = {0};
  char text[20];
  proto.n_dims = 2;
  proto.dims = dims;
  proto.has_data_type = true;
  proto.data_type = STRING;
  proto.n_string_data = 2;
  proto.string_data = strings;
  expect_read(read_proto(&proto, STRING, false, &diag, &tensor), &diag, PSPLIT_OK, "");
  print(tensor, text, sizeof text);
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

/* --- raw --- */

static void raw_bytes_are_what_the_input_says(void **state) {
  (void)state;
  static const int64_t dims[] = {2}, negative[] = {-1};
  static const struct {
    psplit_i_array_wanted wanted;
    psplit_code code;
    const char *says;
  } rows[] = {
    {{.data_type = I16, .n_dims = 1, .dims = dims}, PSPLIT_OK, ""},
    {{.data_type = U8, .n_dims = 1, .dims = dims},
     PSPLIT_INVALID,
     "f has 4 bytes, the input has 2"},
    {{.data_type = U8, .n_dims = 1, .dims = negative},
     PSPLIT_LIMIT,
     "f: a tensor is too large, or has a negative dimension"},
    {{.data_type = STRING, .n_dims = 1, .dims = dims},
     PSPLIT_UNSUPPORTED,
     "f: strings have no raw form; use .npy"},
    {{.data_type = U8, .n_dims = PSPLIT_NONE},
     PSPLIT_USAGE,
     "f holds raw bytes: say how large the input is"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    psplit_diag diag = {0};
    psplit_i_tensor *tensor = NULL;
    char text[20];
    expect_read(psplit_i_raw_parse(&HELD_VALUES, "f", (const unsigned char *)"\1\0\xfe\xff", 4,
                                   &rows[i].wanted, &diag, &tensor),
                &diag, rows[i].code, rows[i].says);
    if (!tensor) continue;
    print(tensor, text, sizeof text);
    assert_string_equal(text, "1 -2");
    psplit_i_tensor_release(tensor);
  }
  static const int64_t none[] = {0};
  const psplit_i_array_wanted empty = {.data_type = F32, .n_dims = 1, .dims = none};
  psplit_diag diag = {0};
  psplit_i_tensor *tensor = NULL;
  assert_int_equal(psplit_i_raw_parse(&HELD_VALUES, "f", NULL, 0, &empty, &diag, &tensor),
                   PSPLIT_OK);
  assert_int_equal(psplit_i_tensor_value(tensor)->n_elements, 0);
  psplit_i_tensor_release(tensor);
}

/* --- types that are widened, what is written, and no memory --- */

static void what_the_input_holds_is_widened(void **state) {
  (void)state;
  const made_bytes file = make_headed(1, HEAD("|u1", "False", "(2,)"), "\1\xc8", 2);
  static int64_t dims[] = {2};
  static uint8_t raw[] = {1, 200};
  Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
  psplit_diag diag = {0};
  psplit_i_tensor *tensor;
  char text[20];
  const psplit_i_array_wanted wanted = {
    .data_type = I64, .n_dims = PSPLIT_NONE, .safe_casts = true};
  expect_read(psplit_i_npy_parse(&HELD_VALUES, "f", file.at, file.n, &wanted, &diag, &tensor),
              &diag, PSPLIT_OK, "");
  assert_int_equal(psplit_i_tensor_value(tensor)->type, 7);
  print(tensor, text, sizeof text);
  assert_string_equal(text, "1 200");
  psplit_i_tensor_release(tensor);
  free(file.at);
  proto.n_dims = 1;
  proto.dims = dims;
  proto.has_data_type = proto.has_raw_data = true;
  proto.data_type = U8;
  proto.raw_data = (ProtobufCBinaryData){2, raw};
  expect_read(read_proto(&proto, F32, true, &diag, &tensor), &diag, PSPLIT_OK, "");
  print(tensor, text, sizeof text);
  assert_string_equal(text, "1 200");
  psplit_i_tensor_release(tensor);
}

static psplit_i_tensor *make(int32_t type, const int64_t *dims, size_t n_dims) {
  psplit_diag diag = {0};
  psplit_i_tensor *tensor = NULL;
  assert_int_equal(psplit_i_tensor_create(&HELD_VALUES, type, dims, n_dims, &diag, &tensor),
                   PSPLIT_OK);
  return tensor;
}

/* One of bytes that are no text is of bytes; numpy has no types for what is smaller or newer. */
static void what_numpy_has_is_written(void **state) {
  (void)state;
  static const int64_t dims[] = {2};
  static const struct {
    const char *strings[2];
    const char *descr;
  } rows[] = {
    {{"a", "\xe2\x82\xac\xf0\x9f\x98\x80"}, "'<U2'"},
    {{"", ""}, "'<U1'"},
    {{"a\xff", "bcd"}, "'|S3'"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    psplit_diag diag = {0};
    psplit_i_tensor *tensor = make(STRING, dims, 1), *again = NULL;
    psplit_i_text file = {0};
    for (size_t s = 0; s < 2; s++)
      assert_int_equal(psplit_i_tensor_set_string(tensor, s, rows[i].strings[s],
                                                  strlen(rows[i].strings[s]), &diag),
                       PSPLIT_OK);
    assert_int_equal(psplit_i_npy_format(tensor, &diag, &file), PSPLIT_OK);
    assert_non_null(memmem(file.bytes, file.n, rows[i].descr, strlen(rows[i].descr)));
    const psplit_i_array_wanted wanted = {.data_type = STRING, .n_dims = PSPLIT_NONE};
    assert_int_equal(psplit_i_npy_parse(&HELD_VALUES, "f", (const unsigned char *)file.bytes,
                                        file.n, &wanted, &diag, &again),
                     PSPLIT_OK);
    assert_true(same_values(tensor, again));
    psplit_i_tensor_release(tensor);
    psplit_i_tensor_release(again);
    psplit_i_text_fini(&file);
  }
  for (int32_t type = F32; type <= INT4; type++) {
    if (type == STRING) continue;
    const bool known = type <= C128;
    psplit_diag diag = {0};
    psplit_i_tensor *tensor = make(type, dims, 1);
    psplit_i_text file = {0};
    assert_int_equal(psplit_i_npy_format(tensor, &diag, &file),
                     known ? PSPLIT_OK : PSPLIT_UNSUPPORTED);
    assert_int_equal(file.n % 64, known ? psplit_i_element_bits(type) / 8 * 2 % 64 : 0);
    psplit_i_tensor_release(tensor);
    psplit_i_text_fini(&file);
  }
}

typedef psplit_code parse(const psplit_i_ort *, const char *, const unsigned char *, size_t,
                          const psplit_i_array_wanted *, psplit_diag *, psplit_i_tensor **);

/* Reads, measures and writes a file with each allocation failing once. */
static void survive(parse *read, const made_bytes *file, const psplit_i_array_wanted *wanted) {
  const long before = live_blocks();
  forget_chains();
  for (bool failed = true; failed;) {
    psplit_diag diag = {0};
    psplit_i_tensor *tensor = NULL;
    psplit_i_text out = {0};
    uint64_t needed;
    fail_new_allocation();
    psplit_code code = read(&HELD_VALUES, "f", file->at, file->n, wanted, &diag, &tensor);
    if (code == PSPLIT_OK && read == psplit_i_npy_parse)
      code = psplit_i_npy_measure("f", file->at, file->n, &diag, &needed);
    if (code == PSPLIT_OK) code = psplit_i_npy_format(tensor, &diag, &out);
    if (code == PSPLIT_OK) code = psplit_i_pb_format(tensor, &diag, &out);
    if (code == PSPLIT_OK && out.failed) code = PSPLIT_NOMEM;
    failed = stop_failing();
    psplit_i_tensor_release(tensor);
    psplit_i_text_fini(&out);
    if (!failed) assert_int_equal(code, PSPLIT_OK);
    /* What holds the values has a reason of its own. */
    if (failed && code != PSPLIT_NOMEM && !strstr(diag.message, ": no memory"))
      fail_msg("%s: %s", psplit_code_name(code), diag.message);
    assert_int_equal(live_blocks(), before);
  }
}

static void no_memory_is_told(void **state) {
  (void)state;
  static int64_t dims[] = {2};
  ProtobufCBinaryData strings[] = {{3, (uint8_t *)"one"}, {3, (uint8_t *)"two"}};
  Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
  const psplit_i_array_wanted numbers = {.data_type = I64,
                                         .n_dims = PSPLIT_NONE,
                                         .safe_casts = true},
                              texts = {.data_type = STRING, .n_dims = PSPLIT_NONE};
  const made_bytes turned = make_headed(1, HEAD(">u2", "True", "(2, 1)"), "\0\1\0\2", 4),
                   words = make_headed(1, HEAD("<U1", "False", "(2,)"), "A\0\0\0B\0\0\0", 8);
  proto.n_dims = 1;
  proto.dims = dims;
  proto.has_data_type = true;
  proto.data_type = STRING;
  proto.n_string_data = 2;
  proto.string_data = strings;
  const made_bytes file = packed(&proto);
  survive(psplit_i_npy_parse, &turned, &numbers);
  survive(psplit_i_npy_parse, &words, &texts);
  survive(psplit_i_pb_parse, &file, &texts);
  free(turned.at);
  free(words.at);
  free(file.at);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(arrays_of_numpy_are_read),
    cmocka_unit_test(complex_numbers_keep_their_parts),
    cmocka_unit_test(headers_that_are_none_are_told),
    cmocka_unit_test(an_array_has_32_dimensions_at_most),
    cmocka_unit_test(beginnings_that_are_none_are_told),
    cmocka_unit_test(the_size_of_an_array_is_told_from_its_beginning),
    cmocka_unit_test(numbers_of_each_field_are_read),
    cmocka_unit_test(numbers_of_four_bits_are_bytes_of_two),
    cmocka_unit_test(strings_are_read_and_written),
    cmocka_unit_test(protos_that_do_not_fit_are_told),
    cmocka_unit_test(raw_bytes_are_what_the_input_says),
    cmocka_unit_test(what_the_input_holds_is_widened),
    cmocka_unit_test(what_numpy_has_is_written),
    cmocka_unit_test(no_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
