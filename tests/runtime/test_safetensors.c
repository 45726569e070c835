/* Why: weights go to programs of others and come back from them; a header is taken from no one on
 * trust. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "safetensors.h"

/* A file with this header and n bytes of data, in `out`. */
static size_t make_file(const char *header, size_t n_data, unsigned char *out, size_t capacity) {
  const size_t n = strlen(header);
  assert_true(8 + n + n_data <= capacity);
  memset(out, 0, 8 + n + n_data);
  for (unsigned i = 0; i < 8; i++) out[i] = (unsigned char)((uint64_t)n >> 8 * i);
  memcpy(out + 8, header, n);
  return 8 + n + n_data;
}

static psplit_code parse(const unsigned char *file, size_t n, psplit_i_arena *arena,
                         psplit_diag *diag, psplit_i_safetensors *out) {
  *out = (psplit_i_safetensors){0};
  return psplit_i_safetensors_parse("f", file, n, n, arena, diag, out);
}

static void a_file_of_others_is_read(void **state) {
  (void)state;
  unsigned char file[1000];
  psplit_i_arena arena;
  psplit_i_safetensors found;
  psplit_diag diag = {0};
  const size_t n = make_file(
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"b\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[24,26]},"
    "\"none\":{\"dtype\":\"I64\",\"shape\":[0,5],\"data_offsets\":[24,24]},"
    "\"a\":{\"data_offsets\":[0,24],\"shape\":[2,3],\"dtype\":\"F32\"}}    ",
    26, file, sizeof file);
  psplit_i_arena_init(&arena, 0);
  if (parse(file, n, &arena, &diag, &found) != PSPLIT_OK) fail_msg("%s", diag.message);
  assert_int_equal(found.n, 3);
  assert_string_equal(found.tensors[0].name, "a");
  assert_int_equal(found.tensors[0].data_type, 1);
  assert_int_equal(found.tensors[0].n_dims, 2);
  assert_int_equal(found.tensors[0].dims[1], 3);
  assert_int_equal(found.tensors[0].offset, n - 26);
  assert_string_equal(found.tensors[1].name, "none");
  assert_int_equal(found.tensors[1].n_bytes, 0);
  assert_string_equal(found.tensors[2].name, "b");
  assert_int_equal(found.tensors[2].data_type, 16);
  assert_int_equal(found.tensors[2].n_dims, 0);
  assert_int_equal(found.tensors[2].offset, n - 2);
  psplit_i_arena_fini(&arena);
}

static void every_type_comes_back(void **state) {
  (void)state;
  static const int64_t dims[] = {3, 5};
  psplit_i_arena arena;
  psplit_i_safetensors found;
  psplit_i_stored tensors[32];
  char names[32][8];
  psplit_diag diag = {0};
  psplit_i_text text = {0};
  size_t n = 0;
  uint64_t n_data = 0;
  for (int32_t type = 1; type < 32; type++) {
    if (!psplit_i_safetensors_type(type)) continue;
    snprintf(names[n], sizeof names[n], "t%d", type);
    const uint64_t bytes = psplit_i_element_bits(type) / 8 * 15;
    tensors[n] = (psplit_i_stored){
      .name = names[n], .data_type = type, .n_dims = 2, .dims = dims, .n_bytes = bytes};
    n_data += bytes;
    n++;
  }
  assert_true(n >= 16);
  assert_int_equal(psplit_i_safetensors_format(tensors, n, &diag, &text), PSPLIT_OK);
  assert_int_equal(text.n % 8, 0);
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_safetensors_parse("f", (unsigned char *)text.bytes, text.n,
                                              text.n + n_data, &arena, &diag, &found),
                   PSPLIT_OK);
  assert_int_equal(found.n, n);
  uint64_t at = text.n;
  for (size_t i = 0; i < n; i++) {
    assert_string_equal(found.tensors[i].name, tensors[i].name);
    assert_int_equal(found.tensors[i].data_type, tensors[i].data_type);
    assert_int_equal(found.tensors[i].offset, at);
    at += tensors[i].n_bytes;
  }
  psplit_i_text_fini(&text);
  psplit_i_arena_fini(&arena);
}

#define ONE(dtype, shape, offsets) \
  "{\"a\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void what_cannot_be_is_said(void **state) {
  (void)state;
  static const struct {
    const char *header;
    size_t n_data;
    psplit_code code;
    const char *says;
  } wrong[] = {
    {ONE("F32", "[2]", "[0,8]"), 7, PSPLIT_MALFORMED,
     "f: cut short: a ends at byte 8 of the data, which has 7"},
    {ONE("F32", "[2]", "[0,8]"), 9, PSPLIT_INVALID, "f: 1 bytes at its end belong to no tensor"},
    {ONE("F32", "[2]", "[1,9]"), 9, PSPLIT_INVALID,
     "f: a begins at byte 1 of the data, after a gap from 0"},
    {ONE("F32", "[2]", "[0,9]"), 9, PSPLIT_INVALID,
     "f: a.data_offsets: must be as far apart as type and shape need bytes, 8"},
    {ONE("F32", "[2]", "[8,0]"), 9, PSPLIT_INVALID,
     "f: a.data_offsets: must be as far apart as type and shape need bytes, 8"},
    {ONE("F32", "[2]", "[0]"), 8, PSPLIT_INVALID,
     "f: a.data_offsets: must be an array of 2, not of 1"},
    {ONE("F32", "[-2]", "[0,8]"), 8, PSPLIT_INVALID,
     "f: a.shape[0]: must be an integer from 0, not -2"},
    {ONE("F32", "[4611686018427387904,4]", "[0,0]"), 0, PSPLIT_INVALID,
     "f: a.shape: more elements than memory can hold"},
    {ONE("F4", "[2]", "[0,1]"), 1, PSPLIT_UNSUPPORTED,
     "f: a.dtype: \"F4\" is no type that ONNX has, too"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, PSPLIT_INVALID,
     "f: a.data_offsets: is missing"},
    {"{\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, PSPLIT_INVALID,
     "f: a tensor needs a name"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
     3, PSPLIT_INVALID,
     "f: b begins at byte 1 of the data, inside another tensor, which ends at 2"},
    {"{\"__metadata__\":{\"a\":1}}", 0, PSPLIT_INVALID,
     "f: __metadata__.a: must be a string, not 1"},
    {"[1]", 0, PSPLIT_MALFORMED, "f: not a safetensors file: no header begins at byte 8"},
    {"  {}", 0, PSPLIT_MALFORMED, "f: not a safetensors file: no header begins at byte 8"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    unsigned char file[1000];
    psplit_i_arena arena;
    psplit_i_safetensors found;
    psplit_diag diag = {0};
    psplit_i_arena_init(&arena, 0);
    const size_t n = make_file(wrong[i].header, wrong[i].n_data, file, sizeof file);
    const psplit_code code = parse(file, n, &arena, &diag, &found);
    if (code != wrong[i].code || strcmp(diag.message, wrong[i].says) != 0)
      fail_msg("%zu: %s: \"%s\" is not \"%s\"", i, psplit_code_name(code), diag.message,
               wrong[i].says);
    psplit_i_arena_fini(&arena);
  }
  unsigned char file[16] = {0};
  psplit_i_arena arena;
  psplit_i_safetensors found;
  psplit_diag diag = {0};
  psplit_i_arena_init(&arena, 0);
  file[7] = 0xff;
  assert_int_equal(parse(file, sizeof file, &arena, &diag, &found), PSPLIT_MALFORMED);
  assert_string_equal(diag.message,
                      "f: cut short, or not a safetensors file: its header would have "
                      "18374686479671623680 bytes");
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_safetensors_parse("f", file, 10, UINT64_MAX, &arena, &diag, &found),
                   PSPLIT_LIMIT);
  diag = (psplit_diag){0};
  assert_int_equal(parse(file, 5, &arena, &diag, &found), PSPLIT_MALFORMED);
  assert_string_equal(diag.message, "f: cut short: a safetensors file has at least 10 bytes");
  psplit_i_arena_fini(&arena);
}

static void what_cannot_be_written_is_said(void **state) {
  (void)state;
  static const int64_t two[] = {2};
  static const struct {
    psplit_i_stored tensors[2];
    size_t n;
    psplit_code code;
    const char *says;
  } wrong[] = {
    {{{"a", 1, 1, two, 8, 0}, {"a", 1, 1, two, 8, 0}},
     2,
     PSPLIT_INVALID,
     "two tensors of a file have the name a"},
    {{{"a", 8, 1, two, 8, 0}},
     1,
     PSPLIT_UNSUPPORTED,
     "a is of string, which a safetensors file cannot hold"},
    {{{"a", 1, 1, two, 7, 0}},
     1,
     PSPLIT_INVALID,
     "a has 7 bytes, which are not those of its shape"},
    {{{"__metadata__", 1, 1, two, 8, 0}},
     1,
     PSPLIT_INVALID,
     "a tensor \"__metadata__\" cannot be written to a safetensors file: names there are UTF-8 and "
     "not \"__metadata__\""},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    psplit_diag diag = {0};
    psplit_i_text text = {0};
    assert_int_equal(psplit_i_safetensors_format(wrong[i].tensors, wrong[i].n, &diag, &text),
                     wrong[i].code);
    assert_string_equal(diag.message, wrong[i].says);
    psplit_i_text_fini(&text);
  }
}

/* Each byte changed to each of some others, and cut at each byte: what is taken is in bounds. */
static void spoilt_headers_do_no_harm(void **state) {
  (void)state;
  static const unsigned char others[] = {0, ' ', '"', '0', '9', '-', '[', ']', '{', '}', ',', 0xff};
  unsigned char file[1000];
  const size_t n = make_file(
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,4]},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
    8, file, sizeof file);
  unsigned taken = 0, refused = 0;
  for (size_t at = 0; at < n; at++)
    for (size_t o = 0; o <= sizeof others; o++) {
      psplit_i_arena arena;
      psplit_i_safetensors found;
      psplit_diag diag = {0};
      psplit_i_arena_init(&arena, 0);
      const unsigned char kept = file[at];
      if (o < sizeof others) file[at] = others[o];
      const size_t n_given = o < sizeof others ? n : at;
      const psplit_code code = parse(file, n_given, &arena, &diag, &found);
      file[at] = kept;
      assert_true((code == PSPLIT_OK) == !*diag.message);
      for (size_t i = 0; code == PSPLIT_OK && i < found.n; i++)
        assert_true(found.tensors[i].offset <= n && found.tensors[i].n_bytes <= n &&
                    found.tensors[i].offset + found.tensors[i].n_bytes <= n);
      if (code == PSPLIT_OK)
        taken++;
      else
        refused++;
      assert_true(o < sizeof others || code != PSPLIT_OK);
      psplit_i_arena_fini(&arena);
    }
  assert_true(taken > 50 && refused > 500);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_file_of_others_is_read),  cmocka_unit_test(every_type_comes_back),
    cmocka_unit_test(what_cannot_be_is_said),    cmocka_unit_test(what_cannot_be_written_is_said),
    cmocka_unit_test(spoilt_headers_do_no_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
