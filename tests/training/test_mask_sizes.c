/* Sizes of masks by what is fed: numbers, symbols, sums of products, and none where one is missing
 * or too large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "manifest.h"

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
}

static void what_has_no_size_is_told(void **state) {
  (void)state;
  const psplit_i_size_term unknown = {1, other, 1}, negative = {.factor = -1},
                           large = {INT64_MAX, batch, 1};
  const psplit_i_size_term *const terms[] = {&unknown, &negative, &large};
  for (size_t i = 0; i < 3; i++) {
    const psplit_i_mask_size shape[] = {size_of(terms[i], 1)};
    const psplit_i_mask_row mask = {.name = "m", .rank = 1, .shape = shape};
    int64_t value = 4, sizes[1], n = 99;
    psplit_diag diag = {0};
    assert_int_equal(psplit_i_mask_sizes(&mask, find, &value, &diag, sizes, &n), PSPLIT_INVALID);
    assert_int_equal(n, 99);
    assert_non_null(strstr(diag.message, "mask \"m\""));
    if (i == 0) assert_non_null(strstr(diag.message, "length"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(sizes_are_sums_of_products),
    cmocka_unit_test(what_has_no_size_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
