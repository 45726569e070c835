/* Hints of the library in the words of the commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/advice.h"

static psplit_diag with(psplit_hint hint, uint32_t n, const char *arguments, size_t bytes) {
  psplit_diag diag = {.message = "m", .hint = hint, .n_hint_arguments = n};
  memcpy(diag.hint_arguments, arguments, bytes);
  return diag;
}

static void says(psplit_diag diag, const char *line) {
  char text[CLI_ADVICE_BYTES];
  assert_string_equal(cli_advice(&diag, text, sizeof text), line);
}

static void all_have_words(void **state) {
  (void)state;
  char text[CLI_ADVICE_BYTES];
  for (int h = PSPLIT_HINT_NONE + 1; h < PSPLIT_N_HINTS; h++) {
    const psplit_diag diag = with((psplit_hint)h, 2, "a\0then", 7);
    assert_non_null(psplit_hint_text((psplit_hint)h));
    assert_true(strlen(cli_advice(&diag, text, sizeof text)) > 5);
    assert_null(strpbrk(text, "${}")); /* of the templates */
  }
  for (int s = PSPLIT_SUBJECT_NONE + 1; s < PSPLIT_N_SUBJECTS; s++) {
    const psplit_diag diag = {.message = "m", .subject = (psplit_subject)s};
    assert_non_null(psplit_subject_name((psplit_subject)s));
    assert_memory_equal(cli_advice(&diag, text, sizeof text), "--", 2);
  }
  says((psplit_diag){.message = "m"}, "m");
  says((psplit_diag){.message = "m", .hint = (psplit_hint)4711}, "m"); /* of a newer library */
}

static void arguments_take_their_places(void **state) {
  (void)state;
  says(with(PSPLIT_HINT_DIMS, 1, "batch", 6), "m; pass --dim batch=N to cost them");
  says(with(PSPLIT_HINT_DIMS, 1, "length / 2", 11), "m; pass --dim 'length / 2=N' to cost them");
  says(with(PSPLIT_HINT_DIMS, 3, "a\0b\0...", 8), "m; pass --dim a=N --dim b=N ... to cost them");
  says(with(PSPLIT_HINT_MEASURED_DIMS, 2, "a=1\0b=2", 8),
       "m; it was measured with --dim a=1 --dim b=2");
  says(with(PSPLIT_HINT_INLINE_KNOWN, 2, "an If\0else", 11),
       "m; its condition is constant: --inline-if 'an If=else' takes it");
  says(with(PSPLIT_HINT_INLINE_ASSUMED, 1, "f", 2),
       "m; where it is known which one runs, --inline-if f=then or --inline-if f=else takes it");
  says(with(PSPLIT_HINT_INPUT_SHAPE, 1, "x", 2), "m: --shape x=...");
  says(with(PSPLIT_HINT_INPUT_SHAPE, 2, "x\0length / 2", 13),
       "m: --dim 'length / 2=N', or --shape x=...");
  says(with(PSPLIT_HINT_INPUT_SHAPE, 1, "x y", 4), "m: --shape 'x y=...'");
  says(with(PSPLIT_HINT_INPUT_SHAPE, 3, "x\0b\0c d", 8),
       "m: --dim b=N --dim 'c d=N', or --shape x=...");
  says(with(PSPLIT_HINT_INPUT_SHAPE, 3, "\0b\0...", 7),
       "m: --dim b=N ..., or --shape INPUT=... for each input");
  says(with(PSPLIT_HINT_INPUT_SHAPE, 1, "", 1), "m: --shape INPUT=... for each input");
  psplit_diag pin = {.message = "x=1 matches no node", .subject = PSPLIT_SUBJECT_PIN};
  says(pin, "--pin x=1 matches no node");
}

static void short_buffers_end(void **state) {
  (void)state;
  const psplit_diag diag = with(PSPLIT_HINT_REPLACE, 0, "", 1);
  char text[4];
  for (size_t n = 1; n <= sizeof text; n++)
    assert_int_equal(strlen(cli_advice(&diag, text, n)), n - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_have_words),
    cmocka_unit_test(arguments_take_their_places),
    cmocka_unit_test(short_buffers_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
