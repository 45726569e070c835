/* Masks of a manifest: rows that are read and rows that are wrong; and their sizes by what is fed,
 * numbers, symbols, sums of products, and none where one is missing or too large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "rows.h"

static bool find(void *user, const char *symbol, int64_t *out) {
  *out = *(const int64_t *)user;
  return strcmp(symbol, "batch") == 0;
}

static const char *const batch[] = {"batch", "batch"}, *const other[] = {"length"};

static psplit_i_mask_size size_of(const psplit_i_size_term *terms, uint32_t n) {
  return (psplit_i_mask_size){terms, n};
}

static void sizes_are_sums_of_products(void **state) {
  (void)state;
  const psplit_i_size_term number = {.factor = 7}, symbol = {1, batch, 1};
  const psplit_i_size_term sum[] = {{2, batch, 2}, {-3, batch, 1}, {.factor = 5}};
  const psplit_i_mask_size shape[] = {size_of(&number, 1), size_of(&symbol, 1), size_of(sum, 3)};
  const psplit_i_mask_row mask = {.name = "m", .rank = 3, .shape = shape};
  int64_t value = 4, sizes[3], n;
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_mask_sizes(&mask, find, &value, &diag, sizes, &n), PSPLIT_OK);
  assert_int_equal(sizes[0], 7);
  assert_int_equal(sizes[1], 4);
  assert_int_equal(sizes[2], 2 * 16 - 3 * 4 + 5);
  assert_int_equal(n, 7 * 4 * 25);
  value = 0; /* a batch without samples */
  assert_int_equal(psplit_i_mask_sizes(&mask, find, &value, &diag, sizes, &n), PSPLIT_OK);
  assert_int_equal(sizes[1], 0);
  assert_int_equal(n, 0);
}

static void what_has_no_size_is_told(void **state) {
  (void)state;
  const psplit_i_size_term unknown = {1, other, 1}, negative = {.factor = -1},
                           large = {INT64_MAX, batch, 1},
                           sum[] = {{.factor = INT64_MAX}, {.factor = 1}};
  const psplit_i_size_term *const terms[] = {&unknown, &negative, &large, sum};
  for (size_t i = 0; i < 4; i++) {
    const psplit_i_mask_size shape[] = {size_of(terms[i], terms[i] == sum ? 2 : 1)};
    const psplit_i_mask_row mask = {.name = "m", .rank = 1, .shape = shape};
    int64_t value = 4, sizes[1], n = 99;
    psplit_diag diag = {0};
    assert_int_equal(psplit_i_mask_sizes(&mask, find, &value, &diag, sizes, &n), PSPLIT_INVALID);
    assert_int_equal(n, 99);
    assert_non_null(strstr(diag.message, "mask \"m\""));
    if (i == 0) assert_non_null(strstr(diag.message, "length"));
  }
}

/* Reads a list of one row; what is said of it in *diag. */
static psplit_code read_row(const char *row, psplit_i_arena *arena, psplit_diag *diag,
                            const psplit_i_mask_row **out) {
  char text[1024];
  uint32_t n = 0;
  psplit_i_json_reader reader = {.diag = diag, .arena = arena};
  const int length = snprintf(text, sizeof text, "[%s]", row);
  psplit_i_json_item root = psplit_i_json_load(&reader, text, (size_t)length);
  psplit_i_read_masks(root, 2, out, &n);
  psplit_i_json_release(&root);
  if (reader.code == PSPLIT_OK) assert_int_equal(n, 1);
  return reader.code;
}

#define ROW(number, stage, kind, ratio, dtype, shape)                              \
  "{\"number\": " number ", \"name\": \"m\", \"tensor\": \"m\", \"stage\": " stage \
  ", \"node\": \"drop\", \"kind\": \"" kind "\", " ratio "\"dtype\": \"" dtype     \
  "\", \"shape\": " shape "}"
#define QUARTER "\"ratio\": 0.25, "

static void rows_are_read(void **state) {
  (void)state;
  psplit_i_arena arena;
  psplit_diag diag = {0};
  const psplit_i_mask_row *row;
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(read_row(ROW("0", "1", "keep", QUARTER, "bool",
                                "[7, \"batch\", [[2, \"batch\", \"batch\"], [\"batch\"], [5]]]"),
                            &arena, &diag, &row),
                   PSPLIT_OK);
  assert_int_equal(row->rank, 3);
  assert_int_equal(row->stage, 1);
  assert_true(row->ratio == 0.25);
  int64_t value = 3, sizes[3], n;
  assert_int_equal(psplit_i_mask_sizes(row, find, &value, &diag, sizes, &n), PSPLIT_OK);
  assert_int_equal(sizes[2], 2 * 9 + 3 + 5);
  assert_int_equal(n, 7 * 3 * 26);
  assert_int_equal(read_row(ROW("0", "0", "normal", "", "float32", "[]"), &arena, &diag, &row),
                   PSPLIT_OK);
  assert_int_equal(row->kind, 2);
  psplit_i_arena_fini(&arena);
}

static void wrong_rows_are_told(void **state) {
  (void)state;
  static const struct {
    const char *row, *path;
  } cases[] = {
    {ROW("1", "0", "keep", QUARTER, "bool", "[]"), "[0].number"},
    {ROW("0", "2", "keep", QUARTER, "bool", "[]"), "[0].stage"},
    {ROW("0", "0", "maybe", QUARTER, "bool", "[]"), "[0].kind"},
    {ROW("0", "0", "keep", "", "bool", "[]"), "ratio"},
    {ROW("0", "0", "keep", "\"ratio\": 1.5, ", "bool", "[]"), "[0].ratio"},
    {ROW("0", "0", "keep", QUARTER, "float32", "[]"), "[0].dtype"},
    {ROW("0", "0", "uniform", "", "bool", "[]"), "[0].dtype"},
    {ROW("0", "0", "keep", QUARTER, "bool", "null"), "[0].shape"},
    {ROW("0", "0", "keep", QUARTER, "bool", "[null]"), "[0].shape[0]"},
    {ROW("0", "0", "keep", QUARTER, "bool", "[-1]"), "[0].shape[0]"},
    {ROW("0", "0", "keep", QUARTER, "bool", "[[[]]]"), "[0].shape[0][0]"},
    {ROW("0", "0", "keep", QUARTER, "bool", "[[[\"n\", 2]]]"), "[0].shape[0][0][1]"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_i_arena arena;
    psplit_diag diag = {0};
    const psplit_i_mask_row *row;
    psplit_i_arena_init(&arena, 0);
    if (read_row(cases[i].row, &arena, &diag, &row) != PSPLIT_INVALID ||
        !strstr(diag.message, cases[i].path))
      fail_msg("%s: %s", cases[i].row, diag.message);
    psplit_i_arena_fini(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sizes_are_sums_of_products),
    cmocka_unit_test(what_has_no_size_is_told),
    cmocka_unit_test(rows_are_read),
    cmocka_unit_test(wrong_rows_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
