/* Files of prompts, read to their end or to what is wrong with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prompt_line.h"
#include "prompts.h"
#include "scratch.h"

static const volatile int go_on;

#define FILE_OF(text) (text), sizeof(text) - 1

/* What is said of files that hold no prompts. */
static void no_prompts(void **state) {
  static const struct {
    const char *bytes;
    size_t n;
    const char *message;
  } cases[] = {
    {FILE_OF("\xff\xfe"
             "1\0,\0"
             "2\0\n\0"),
     "prompts: no prompts can be read: it is UTF-16 text; save it as UTF-8"},
    {FILE_OF("1\0,\0"
             "2\0\n\0"),
     "prompts: no prompts can be read: it is UTF-16 text; save it as UTF-8"},
    {FILE_OF("\xef\xbb\xbf"
             "1,2\n"),
     "prompts: no prompts can be read: it is text behind a byte order mark; save it as UTF-8 "
     "without one"},
    {FILE_OF("\x1f\x8b\x08\0\0\0\0\0\n"),
     "prompts: no prompts can be read: it is compressed by gzip; gunzip it first"},
    {FILE_OF("<!DOCTYPE html>\n<html></html>\n"),
     "prompts: no prompts can be read: it is a web page (HTML), as failed downloads leave"},
    {FILE_OF("one,two\n"), "prompts: line 1 is not a list of token ids"},
    {FILE_OF("1\0"
             "2\n3\n"),
     "prompts: line 1 has a NUL"},
    {FILE_OF("-1\n"), "prompts: line 1 is not a list of token ids"},
    {FILE_OF("[]\n"), "prompts: line 1 has a list without a token id"},
    {FILE_OF(" [ ] \n"), "prompts: line 1 has a list without a token id"},
    {FILE_OF("{\"prompt_ids\": []}\n"), "prompts: line 1 has \"prompt_ids\" without a token id"},
    {FILE_OF("{\"prompt_ids\": [ ]}\n"), "prompts: line 1 has \"prompt_ids\" without a token id"},
    {FILE_OF("{\"prompt_ids\": [1.5]}\n"),
     "prompts: line 1 has \"prompt_ids\" that are not token ids"},
    {FILE_OF("{\"prompt_ids\": [1], \"max_new_tokens\": 2, \"max_new_tokens\": 3}\n"),
     "prompts: line 1 has \"max_new_tokens\" twice"},
    {FILE_OF("{\"prompt_ids\": [1]} 2\n"), "prompts: line 1 is not a JSON object"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_diag diag = {0};
    prompts_file file;
    prompt_ids prompt;
    bool end = false;
    FILE *out = fopen("prompts", "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(cases[i].bytes, 1, cases[i].n, out), cases[i].n);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(prompts_open("prompts", &diag, &file), PSPLIT_OK);
    assert_int_equal(prompts_next(&file, &go_on, &diag, &prompt, &end), PSPLIT_MALFORMED);
    assert_string_equal(diag.message, cases[i].message);
    prompts_close(&file);
  }
}

/* Escapes in names: NULL where the line is refused. */
static void escapes(void **state) {
  static const struct {
    const char *escaped, *name;
  } cases[] = {
    {"a", "a"},
    {"\\u0041\\t", "A\t"},
    {"\\u00e9", "\xc3\xa9"},
    {"\\u20ac", "\xe2\x82\xac"},
    {"\\ud83d\\ude00!", "\xf0\x9f\x98\x80!"},
    {"\\uD83D\\uDE00", "\xf0\x9f\x98\x80"},
    {"\\udbff\\udfff", "\xf4\x8f\xbf\xbf"},
    {"\\ud83d", NULL},
    {"\\ud83dx", NULL},
    {"\\ud83d\\n", NULL},
    {"\\ud83d\\u0041", NULL},
    {"\\ude00\\ud83d", NULL},
    {"\\u0000", NULL},
    {"\\u12", NULL},
    {"\\x41", NULL},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[128];
    prompt_ids prompt;
    snprintf(line, sizeof line, "{\"prompt_ids\": [7], \"%s\": \"f\"}", cases[i].escaped);
    const char *wrong = prompt_line_parse(line, &prompt);
    if (!cases[i].name != (wrong != NULL)) fail_msg("%s: %s", line, wrong ? wrong : "taken");
    if (wrong) continue;
    assert_int_equal(prompt.n_inputs, 1);
    assert_string_equal(prompt.inputs[0].input, cases[i].name);
    prompt_ids_fini(&prompt);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(no_prompts, enter_scratch, leave_scratch),
    cmocka_unit_test(escapes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
