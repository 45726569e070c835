/* Tensors in files: what numpy writes and raw bytes are read as they were meant, and what is none
 * of them, or does not fit what is wanted, is told for what it is. */
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
#include "failing.h"
#include "failing_chains.h"
#include "held_values.h"
#include "made_files.h"

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
      print_tensor(tensor, text, sizeof text);
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

static const char NO_HEADER[] = "f: the header is not a .npy header",
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
                good ? PSPLIT_OK : PSPLIT_MALFORMED,
                good ? "" : "f: the next bytes are not a .npy array");
    if (good) assert_int_equal(needed, file.n + rows[i].n_data);
    file.at[0] = 'x';
    diag = (psplit_diag){0};
    expect_read(psplit_i_npy_measure("f", file.at, 7, &diag, &needed), &diag, PSPLIT_MALFORMED,
                "f: the next bytes are not a .npy array");
    free(file.at);
  }
  const made_bytes large = make_headed(2, HEAD("<f4", "False", "()"), NULL, 0);
  psplit_diag diag = {0};
  uint64_t needed = 0;
  large.at[11] = 1;
  expect_read(psplit_i_npy_measure("f", large.at, large.n, &diag, &needed), &diag, PSPLIT_MALFORMED,
              "f: the next bytes are not a .npy array");
  free(large.at);
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
    print_tensor(tensor, text, sizeof text);
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
  print_tensor(tensor, text, sizeof text);
  assert_string_equal(text, "1 200");
  psplit_i_tensor_release(tensor);
  free(file.at);
  proto.n_dims = 1;
  proto.dims = dims;
  proto.has_data_type = proto.has_raw_data = true;
  proto.data_type = U8;
  proto.raw_data = (ProtobufCBinaryData){2, raw};
  expect_read(read_proto(&proto, F32, true, &diag, &tensor), &diag, PSPLIT_OK, "");
  print_tensor(tensor, text, sizeof text);
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
  Onnx__TensorProto proto = shaped_proto(STRING, dims, 1);
  const psplit_i_array_wanted numbers = {.data_type = I64,
                                         .n_dims = PSPLIT_NONE,
                                         .safe_casts = true},
                              texts = {.data_type = STRING, .n_dims = PSPLIT_NONE};
  const made_bytes turned = make_headed(1, HEAD(">u2", "True", "(2, 1)"), "\0\1\0\2", 4),
                   words = make_headed(1, HEAD("<U1", "False", "(2,)"), "A\0\0\0B\0\0\0", 8);
  proto.n_string_data = 2;
  proto.string_data = strings;
  const made_bytes file = packed_proto(&proto);
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
    cmocka_unit_test(raw_bytes_are_what_the_input_says),
    cmocka_unit_test(what_the_input_holds_is_widened),
    cmocka_unit_test(what_numpy_has_is_written),
    cmocka_unit_test(no_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
