/* Requests: what is given is held against what the model declares, and those that are joined get
 * what they would get alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "batching.h"
#include "failing.h"
#include "held_values.h"
#include "request_inputs.h"

enum { F32 = 1, U8 = 2, I64 = 7, STRING = 8, INT4 = 22 };

static void expect(psplit_code code, const psplit_diag *diag, psplit_code wanted,
                   const char *says) {
  if (code != wanted || strcmp(diag->message, says) != 0)
    fail_msg("%s: \"%s\" is not \"%s\"", psplit_code_name(code), diag->message, says);
}

static void release(psplit_i_tensor **tensors, size_t n) { psplit_i_tensors_release(tensors, n); }

/* --- what a request gives --- */

static const psplit_i_manifest_dim N_2[] = {{-1, "n"}, {2, NULL}}, N_N[] = {{-1, "n"}, {-1, "n"}},
                                   OPEN[] = {{-1, NULL}};
static const char *const NAMES[] = {"x", "words", "any", "default"};
static const psplit_i_manifest_value VALUES[] = {{"x", "float32", {2, N_2}},
                                                 {"words", "string", {1, OPEN}},
                                                 {"any", NULL, {-1, NULL}},
                                                 {"default", "float32", {2, N_N}}};
static const psplit_i_manifest GIVEN = {
  .n_inputs = 4, .n_needed = 3, .inputs = NAMES, .input_values = VALUES};

static const int64_t D32[] = {3, 2}, D33[] = {3, 3}, D2[] = {2}, MINUS[] = {-1, 2},
                     ONES[PSPLIT_I_MAX_RANK + 1];
static const float SIX[6] = {1, 2, 3, 4, 5, 6};
/* "ab" and "c": lengths, then texts. */
static const struct {
  uint64_t lengths[2];
  char text[3];
} WORDS = {{2, 1}, {'a', 'b', 'c'}};
enum { N_WORDS = 2 * sizeof(uint64_t) + 3 };

#define X                                 \
  {                                       \
    "x", { F32, 2, D32, SIX, sizeof SIX } \
  }
#define W                                       \
  {                                             \
    "words", { STRING, 1, D2, &WORDS, N_WORDS } \
  }
#define ANY                         \
  {                                 \
    "any", { U8, 0, NULL, "\7", 1 } \
  }

static void inputs_are_taken_as_they_are_given(void **state) {
  (void)state;
  const psplit_named_tensor inputs[] = {ANY, X, W};
  psplit_i_tensor *out[3] = {0};
  psplit_request request;
  psplit_diag diag = {0};
  psplit_request_init(&request);
  request.inputs = inputs;
  request.n_inputs = 3;
  expect(psplit_i_request_inputs_take(&HELD_VALUES, &GIVEN, &request, &diag, out), &diag, PSPLIT_OK,
         "");
  const OrtValue *x = psplit_i_tensor_value(out[0]), *words = psplit_i_tensor_value(out[1]),
                 *any = psplit_i_tensor_value(out[2]);
  assert_memory_equal(x->data, SIX, sizeof SIX);
  assert_true(x->n_dims == 2 && x->dims[0] == 3 && x->dims[1] == 2);
  assert_true(words->strings[0].n == 2 && memcmp(words->strings[0].bytes, "ab", 2) == 0);
  assert_true(words->strings[1].n == 1 && *words->strings[1].bytes == 'c');
  assert_int_equal(*(const char *)any->data, 7);
  release(out, 3);
}

static void what_does_not_fit_is_told(void **state) {
  (void)state;
  static const char BYTES[] = "bytes, which is not its shape's";
  const struct {
    psplit_named_tensor inputs[4];
    uint32_t n;
    psplit_code code;
    const char *says;
  } rows[] = {
    {{X, W}, 2, PSPLIT_USAGE, "there is no data for input any"},
    {{X, X}, 2, PSPLIT_USAGE, "input x is given twice"},
    {{{"default", {F32, 2, D33, SIX, 4}}},
     1,
     PSPLIT_UNSUPPORTED,
     "input default has a default, which a request cannot override"},
    {{{"x", {99, 2, D32, SIX, 24}}}, 1, PSPLIT_INVALID, "input x: unknown data type 99"},
    {{{"x", {I64, 2, D32, SIX, 24}}},
     1,
     PSPLIT_INVALID,
     "input x: it is int64, the model's is float32"},
    {{{"any", {U8, PSPLIT_I_MAX_RANK + 1, ONES, SIX, 0}}},
     1,
     PSPLIT_LIMIT,
     "input any: it has more than 32 dimensions"},
    {{{"x", {F32, 1, D2, SIX, 8}}},
     1,
     PSPLIT_INVALID,
     "input x: it has 1 dimensions, the model's has 2"},
    {{{"x", {F32, 2, D33, SIX, 36}}},
     1,
     PSPLIT_INVALID,
     "input x: dimension 1 is 3, the model's is 2"},
    {{{"x", {F32, 2, MINUS, SIX, 0}}}, 1, PSPLIT_INVALID, BYTES},
    {{{"x", {F32, 2, D32, SIX, 20}}}, 1, PSPLIT_INVALID, BYTES},
    {{{"x", {F32, 2, D32, NULL, 24}}}, 1, PSPLIT_INVALID, BYTES},
    {{{"words", {STRING, 1, D2, &WORDS, 15}}}, 1, PSPLIT_INVALID, BYTES},
    {{{"words", {STRING, 1, D2, &WORDS, 18}}},
     1,
     PSPLIT_INVALID,
     "input words: a message of strings is too short"},
    {{{NULL, {F32, 0, NULL, SIX, 4}}}, 1, PSPLIT_USAGE, "the model has no input without a name"},
    {{{"y", {F32, 0, NULL, SIX, 4}}}, 1, PSPLIT_USAGE, "the model has no input y"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    psplit_i_tensor *out[3] = {0};
    psplit_request request;
    psplit_diag diag = {0};
    psplit_request_init(&request);
    request.inputs = rows[i].inputs;
    request.n_inputs = rows[i].n;
    const psplit_code code =
      psplit_i_request_inputs_take(&HELD_VALUES, &GIVEN, &request, &diag, out);
    if (code != rows[i].code || !strstr(diag.message, rows[i].says))
      fail_msg("%zu: %s: %s", i, psplit_code_name(code), diag.message);
    release(out, 3);
  }
}

/* A symbol is one number in all of a request, among the first 64 of them. */
static void a_symbol_is_one_number(void **state) {
  (void)state;
  enum { N = 66 };
  static char names[N][8], symbols[N][8];
  const char *inputs[N];
  psplit_i_manifest_dim dims[N];
  psplit_i_manifest_value values[N];
  psplit_named_tensor given[N];
  int64_t sizes[N];
  for (int i = 0; i < N; i++) {
    snprintf(names[i], sizeof names[i], "i%d", i);
    snprintf(symbols[i], sizeof symbols[i], "s%d", i);
    inputs[i] = names[i];
    dims[i] = (psplit_i_manifest_dim){-1, symbols[i]};
    values[i] = (psplit_i_manifest_value){names[i], "uint8", {1, &dims[i]}};
    sizes[i] = 1;
    given[i] = (psplit_named_tensor){names[i], {U8, 1, &sizes[i], "12", 1}};
  }
  const psplit_i_manifest m = {
    .n_inputs = N, .n_needed = N, .inputs = inputs, .input_values = values};
  for (int twice = 1; twice < N; twice += 63) { /* the second, the 65th */
    psplit_i_tensor *out[N] = {0};
    psplit_request request;
    psplit_diag diag = {0};
    psplit_request_init(&request);
    request.inputs = given;
    request.n_inputs = N;
    dims[N - 1].param = symbols[twice];
    given[N - 1].tensor.n_bytes = 1;
    sizes[N - 1] = 1;
    expect(psplit_i_request_inputs_take(&HELD_VALUES, &m, &request, &diag, out), &diag, PSPLIT_OK,
           "");
    release(out, N);
    sizes[N - 1] = 2;
    given[N - 1].tensor.n_bytes = 2;
    const bool seen = twice < 64;
    expect(psplit_i_request_inputs_take(&HELD_VALUES, &m, &request, &diag, out), &diag,
           seen ? PSPLIT_INVALID : PSPLIT_OK,
           seen ? "input i65: dimension s1 is 2 and, in another place, 1" : "");
    release(out, N);
  }
}

/* --- requests that are joined --- */

static const psplit_i_manifest_dim BATCH_3[] = {{-1, "batch"}, {3, NULL}},
                                   TWO_BATCH[] = {{2, NULL}, {-1, "batch"}}, FIXED[] = {{2, NULL}};
static const char *const INS[] = {"a", "b", "k"}, *const OUTS[] = {"y"};
static const psplit_i_manifest_value IN_VALUES[] = {
  {"a", "float32", {2, BATCH_3}}, {"b", "uint8", {2, TWO_BATCH}}, {"k", "uint8", {1, FIXED}}};
static psplit_i_manifest_value out_value = {"y", "uint8", {2, TWO_BATCH}};
static const psplit_i_manifest JOINS = {.n_inputs = 3,
                                        .n_needed = 3,
                                        .inputs = INS,
                                        .input_values = IN_VALUES,
                                        .n_outputs = 1,
                                        .outputs = OUTS,
                                        .output_values = &out_value};

static psplit_i_tensor *make(int32_t type, const int64_t *dims, size_t n_dims, int first) {
  psplit_diag diag = {0};
  psplit_i_tensor *tensor = NULL;
  psplit_i_tensor_view view;
  assert_int_equal(psplit_i_tensor_make(&HELD_VALUES, type, dims, n_dims, &diag, &tensor, &view),
                   PSPLIT_OK);
  for (uint64_t i = 0; view.data && i < view.n_bytes; i++)
    ((unsigned char *)view.data)[i] = (unsigned char)(first + (int)i);
  return tensor;
}

/* A request of so many rows. */
static void make_request(int64_t rows, int first, psplit_i_tensor **out) {
  const int64_t a[] = {rows, 3}, b[] = {2, rows}, k[] = {2};
  out[0] = make(F32, a, 2, first);
  out[1] = make(U8, b, 2, first);
  out[2] = make(U8, k, 1, 9);
}

static void open_batching(psplit_i_batching *out) {
  psplit_diag diag = {0};
  expect(psplit_i_batching_init(&HELD_VALUES, &JOINS, "batch", &diag, out), &diag, PSPLIT_OK, "");
}

static void dimensions_that_join_nothing_are_refused(void **state) {
  (void)state;
  static const psplit_i_manifest_value good = {"y", "uint8", {2, TWO_BATCH}};
  static const struct {
    psplit_i_manifest_value output;
    const char *name;
    const char *says;
  } rows[] = {
    {{"y", "uint8", {2, TWO_BATCH}}, "length", "no input has a dimension length"},
    {{"y", "uint8", {1, FIXED}}, "batch", "requests cannot be joined along batch: output y "},
    {{"y", "string", {2, TWO_BATCH}}, "batch", "requests cannot be joined along batch: output y "},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    psplit_i_batching batching = {0};
    psplit_diag diag = {0};
    out_value = rows[i].output;
    assert_int_equal(psplit_i_batching_init(&HELD_VALUES, &JOINS, rows[i].name, &diag, &batching),
                     PSPLIT_USAGE);
    if (strncmp(diag.message, rows[i].says, strlen(rows[i].says)) != 0)
      fail_msg("%s", diag.message);
    assert_null(batching.input_axes);
  }
  psplit_i_batching batching;
  psplit_diag diag = {0};
  out_value = (psplit_i_manifest_value){"y", NULL, {2, TWO_BATCH}}; /* of a type nobody knows */
  assert_int_equal(psplit_i_batching_init(&HELD_VALUES, &JOINS, "batch", &diag, &batching),
                   PSPLIT_OK);
  assert_int_equal(batching.output_axes[0], 1);
  psplit_i_batching_fini(&batching);
  out_value = good;
}

static void requests_of_one_size_have_rows(void **state) {
  (void)state;
  static const int64_t a[] = {2, 3}, b[] = {2, 5}, flat[] = {6}, k[] = {2};
  static const struct {
    int32_t type;
    const int64_t *dims;
    size_t n_dims;
    int64_t rows;
  } firsts[] = {
    {F32, a, 2, -1}, {INT4, a, 2, -1}, {STRING, a, 2, -1}, {F32, NULL, 0, -1}, {F32, flat, 1, -1},
  };
  psplit_i_batching batching;
  psplit_i_tensor *inputs[3];
  open_batching(&batching);
  make_request(4, 1, inputs);
  assert_int_equal(psplit_i_batching_rows(&batching, inputs), 4);
  release(inputs, 3);
  for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
    inputs[0] = make(firsts[i].type, firsts[i].dims, firsts[i].n_dims, 0);
    inputs[1] = make(U8, b, 2, 0);
    inputs[2] = make(U8, k, 1, 0);
    assert_int_equal(psplit_i_batching_rows(&batching, inputs), firsts[i].rows);
    release(inputs, 3);
  }
  psplit_i_batching_fini(&batching);
}

/* All but the dimension is alike, and what has it not is equal. */
static void requests_that_differ_are_not_joined(void **state) {
  (void)state;
  static const int64_t a[] = {1, 3}, wide[] = {1, 4}, k[] = {2}, one[] = {1};
  psplit_i_batching batching;
  psplit_i_tensor *x[3], *y[3];
  open_batching(&batching);
  make_request(2, 1, x);
  make_request(1, 5, y);
  assert_true(psplit_i_batching_fits(&batching, x, y));
  const struct {
    int at;
    psplit_i_tensor *other;
  } rows[] = {
    {0, make(U8, a, 2, 0)}, {0, make(F32, wide, 2, 0)}, {0, make(F32, k, 1, 0)},
    {2, make(U8, k, 1, 8)}, {2, make(U8, one, 1, 9)},   {2, make(STRING, k, 1, 0)},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    psplit_i_tensor *const was = y[rows[i].at];
    y[rows[i].at] = rows[i].other;
    assert_false(psplit_i_batching_fits(&batching, x, y));
    y[rows[i].at] = was;
    psplit_i_tensor_release(rows[i].other);
  }
  /* Strings are never known to be equal. */
  psplit_i_tensor_release(x[2]);
  psplit_i_tensor_release(y[2]);
  x[2] = make(STRING, k, 1, 0);
  y[2] = psplit_i_tensor_hold(x[2]);
  assert_false(psplit_i_batching_fits(&batching, x, y));
  release(x, 3);
  release(y, 3);
  psplit_i_batching_fini(&batching);
}

static void what_was_joined_comes_apart_again(void **state) {
  (void)state;
  psplit_i_batching batching;
  psplit_i_tensor *x[3], *y[3], *none[3], *all[3] = {0}, *part[1] = {0};
  psplit_diag diag = {0};
  open_batching(&batching);
  make_request(2, 1, x);
  make_request(0, 1, none);
  make_request(1, 100, y);
  psplit_i_tensor *const *const each[] = {x, none, y};
  assert_int_equal(psplit_i_batching_join(&batching, each, 3, &diag, all), PSPLIT_OK);
  const OrtValue *a = psplit_i_tensor_value(all[0]), *b = psplit_i_tensor_value(all[1]);
  assert_true(a->dims[0] == 3 && a->dims[1] == 3 && b->dims[0] == 2 && b->dims[1] == 3);
  assert_memory_equal(a->data, psplit_i_tensor_value(x[0])->data, 24);
  assert_memory_equal((char *)a->data + 24, psplit_i_tensor_value(y[0])->data, 12);
  assert_memory_equal(b->data, "\1\2\x64\3\4\x65", 6);
  assert_ptr_equal(all[2], x[2]);
  const struct {
    psplit_i_tensor *of;
    int64_t first, n;
  } parts[] = {{x[1], 0, 2}, {none[1], 2, 0}, {y[1], 2, 1}};
  for (size_t p = 0; p < 3; p++) {
    assert_int_equal(
      psplit_i_batching_split(&batching, &all[1],
                              (psplit_i_batch_rows){parts[p].first, parts[p].n, 3}, &diag, part),
      PSPLIT_OK);
    assert_true(same_values(part[0], parts[p].of));
    release(part, 1);
  }
  expect(psplit_i_batching_split(&batching, &all[1], (psplit_i_batch_rows){0, 1, 4}, &diag, part),
         &diag, PSPLIT_INVALID, "output y: it does not have the 4 rows of the joined requests");
  diag = (psplit_diag){0};
  expect(psplit_i_batching_split(&batching, &all[2], (psplit_i_batch_rows){0, 1, 3}, &diag, part),
         &diag, PSPLIT_INVALID, "output y: a tensor of 1 dimensions and type uint8 has no rows");
  release(x, 3);
  release(y, 3);
  release(none, 3);
  release(all, 3);
  psplit_i_batching_fini(&batching);
}

static psplit_code join_and_split(psplit_i_tensor *const *const *each, psplit_diag *diag) {
  psplit_i_batching batching = {0}, other = {0};
  psplit_i_tensor *all[3] = {0}, *part[1] = {0};
  psplit_code code = psplit_i_batching_init(&HELD_VALUES, &JOINS, "other", diag, &other);
  if (code != PSPLIT_USAGE) return code;
  *diag = (psplit_diag){0};
  code = psplit_i_batching_init(&HELD_VALUES, &JOINS, "batch", diag, &batching);
  if (code == PSPLIT_OK) code = psplit_i_batching_join(&batching, each, 2, diag, all);
  if (code == PSPLIT_OK)
    code = psplit_i_batching_split(&batching, &all[1], (psplit_i_batch_rows){0, 2, 3}, diag, part);
  release(all, 3);
  release(part, 1);
  psplit_i_batching_fini(&batching);
  return code;
}

static void no_memory_is_told(void **state) {
  (void)state;
  psplit_i_tensor *x[3], *y[3];
  make_request(2, 1, x);
  make_request(1, 100, y);
  psplit_i_tensor *const *const each[] = {x, y};
  const long before = live_blocks();
  long n_told = 0;
  for (bool failed = true; failed;) {
    psplit_diag diag = {0};
    fail_new_allocation();
    const psplit_code code = join_and_split(each, &diag);
    failed = stop_failing();
    n_told += code != PSPLIT_OK; /* names can go unsaid */
    if (code != PSPLIT_OK &&
        (!failed || (code != PSPLIT_NOMEM && !strstr(diag.message, ": no memory"))))
      fail_msg("%s: %s", psplit_code_name(code), diag.message);
    assert_int_equal(live_blocks(), before);
  }
  assert_true(n_told > 6);
  release(x, 3);
  release(y, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(inputs_are_taken_as_they_are_given),
    cmocka_unit_test(what_does_not_fit_is_told),
    cmocka_unit_test(a_symbol_is_one_number),
    cmocka_unit_test(dimensions_that_join_nothing_are_refused),
    cmocka_unit_test(requests_of_one_size_have_rows),
    cmocka_unit_test(requests_that_differ_are_not_joined),
    cmocka_unit_test(what_was_joined_comes_apart_again),
    cmocka_unit_test(no_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
