#include "comma_locale.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const decimal_point POINTS[N_POINTS] = {{"comma", ",", ','}, {"momayyez", "\u066b", 0x66b}};

#ifdef __GLIBC__
/* A file as localedef(1) writes it: where each of these is, then they. */
enum { POINT, THOUSANDS, GROUPING, WIDE_POINT, WIDE_THOUSANDS, CODESET, N_ITEMS };
typedef struct numeric {
  uint32_t magic, n_items, at[N_ITEMS];
  char point[8], none[4];
  uint32_t wide_point, wide_none;
  char codeset[8];
} numeric;

static void write_numeric(const decimal_point *point, const char *path) {
  const uint32_t none = offsetof(numeric, none);
  numeric all = {.magic = UINT32_C(0x20031115) ^ LC_NUMERIC,
                 .n_items = N_ITEMS,
                 .at = {offsetof(numeric, point), none, none, offsetof(numeric, wide_point),
                        offsetof(numeric, wide_none), offsetof(numeric, codeset)},
                 .wide_point = point->character,
                 .codeset = "UTF-8"};
  strcpy(all.point, point->bytes);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(&all, sizeof all, 1, file), 1);
  assert_int_equal(fclose(file), 0);
}

void use_point(const decimal_point *point) {
  char path[64], half[8], expected[8];
  mkdir(point->name, 0700);
  snprintf(path, sizeof path, "%s/LC_NUMERIC", point->name);
  write_numeric(point, path);
  assert_int_equal(setenv("LOCPATH", ".", 1), 0);
  assert_non_null(setlocale(LC_NUMERIC, point->name));
  snprintf(half, sizeof half, "%g", 0.5);
  snprintf(expected, sizeof expected, "0%s5", point->bytes);
  assert_string_equal(half, expected);
}
#else
void use_point(const decimal_point *point) {
  (void)point;
  skip();
}
#endif

void use_plain_point(void) { setlocale(LC_NUMERIC, "C"); }
