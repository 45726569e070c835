/* Why: a program that has the library in it chooses its own locale, Python's programs among them,
 * and one that writes 0,5 may change neither what is read nor what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "comma_locale.h"
#include "json_tree.h"
#include "scratch.h"

static void reads(const char *text, double expected, const char *rest) {
  char *end = NULL;
  assert_true(psplit_i_number_parse(text, &end) == expected);
  assert_string_equal(end, rest);
}

static void prints(double value, int fewest, int most, const char *expected) {
  char text[PSPLIT_I_NUMBER_BYTES];
  psplit_i_number_print(value, fewest, most, text);
  assert_string_equal(text, expected);
}

static void json_is_json(void) {
  psplit_i_text text = {0};
  psplit_i_json json;
  psplit_i_arena arena;
  psplit_i_json_place place = {0};
  const psplit_i_json_value *value = NULL;
  psplit_i_json_init(&json, &text);
  psplit_i_json_double(&json, 0.25);
  assert_string_equal(text.bytes, "0.25");
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(psplit_i_json_parse("[-1.5e1]", 8, &arena, &place, &value), PSPLIT_OK);
  assert_true(value->children[0].real == -15);
  psplit_i_arena_fini(&arena);
  psplit_i_text_fini(&text);
}

static void texts_and_messages_are_the_same(void) {
  psplit_diag diag = {0};
  psplit_i_text text = {0};
  psplit_i_text_addf(&text, "%.2f %s", 0.25, "%");
  assert_string_equal(text.bytes, "0.25 %");
  psplit_i_text_fini(&text);
  assert_int_equal(psplit_i_fail(&diag, PSPLIT_USAGE, "not %g", 0.5), PSPLIT_USAGE);
  assert_string_equal(diag.message, "not 0.5");
}

static void numbers(void) {
  reads("0.5", 0.5, "");
  reads(" 1e3x", 1000, "x");
  reads("0,5", 0, ",5");
  reads("0\u066b5", 0, "\u066b5");
  prints(0.1, 1, 17, "0.1");
  prints(0.5, 12, 17, "0.5");
  prints(-DBL_MAX, 1, 17, "-1.7976931348623157e+308");
  prints(1.0 / 3, 6, 6, "0.333333");
  json_is_json();
  texts_and_messages_are_the_same();
}

static void are_those_of_locale_c(void **state) {
  (void)state;
  numbers();
}

static void are_so_in_another(void **state) {
  (void)state;
  for (int i = 0; i < N_POINTS; i++) {
    char half[8], expected[8];
    use_point(&POINTS[i]);
    numbers();
    /* The program's own locale is as it was. */
    snprintf(half, sizeof half, "%g", 0.5);
    snprintf(expected, sizeof expected, "0%s5", POINTS[i].bytes);
    assert_string_equal(half, expected);
    use_plain_point();
  }
}

static void may_stand_inside_each_other(void **state) {
  (void)state;
  char half[8];
  use_point(&POINTS[0]);
  const psplit_i_plain_numbers outer = psplit_i_plain_numbers_begin();
  reads("0.5", 0.5, "");
  snprintf(half, sizeof half, "%g", 0.5);
  assert_string_equal(half, "0.5");
  psplit_i_plain_numbers_end(outer);
  snprintf(half, sizeof half, "%g", 0.5);
  assert_string_equal(half, "0,5");
  use_plain_point();
}

/* 1010 KiB was 1.01e+03 KiB. */
static void units_have_three_digits(void **state) {
  static const struct {
    uint64_t bytes;
    const char *text;
  } SIZES[] = {{0, "0 B"},
               {999, "999 B"},
               {1000, "0.98 KiB"},
               {UINT64_C(1010) << 10, "0.99 MiB"},
               {UINT64_C(99) << 20, "99.0 MiB"},
               {UINT64_C(100) << 20, "100 MiB"},
               {UINT64_C(3) << 29, "1.50 GiB"},
               {UINT64_MAX, "16.0 EiB"}};
  char out[PSPLIT_I_UNIT_BYTES];
  (void)state;
  for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
    assert_string_equal(psplit_i_in_bytes(SIZES[i].bytes, out), SIZES[i].text);
  assert_string_equal(psplit_i_in_seconds(999, out), "999 ns");
  assert_string_equal(psplit_i_in_seconds(9520000, out), "9.52 ms");
  assert_string_equal(psplit_i_in_seconds(INT64_MAX, out), "9223372037 s");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(units_have_three_digits),
    cmocka_unit_test(are_those_of_locale_c),
    cmocka_unit_test_setup_teardown(are_so_in_another, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(may_stand_inside_each_other, enter_scratch, leave_scratch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
