/* base/: the pieces that everything else trusts blindly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base.h"

static void arena_keeps_alignment_and_limit(void **state) {
  (void)state;
  psplit_arena arena;
  psplit_i_arena_init(&arena, 64 << 10);
  for (size_t bytes = 0; bytes < 300; bytes++) {
    unsigned char *memory = psplit_i_arena_alloc(&arena, bytes);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 16, 0);
    memset(memory, 0xab, bytes);
  }
  assert_null(psplit_i_arena_alloc(&arena, 1 << 20));
  assert_null(psplit_i_arena_zeroed(&arena, SIZE_MAX / 2, 4));
  psplit_i_arena_reset(&arena);
  assert_non_null(psplit_i_arena_alloc(&arena, 8));
  psplit_i_arena_fini(&arena);
  psplit_i_arena_fini(&arena);
}

static void intern_numbers_in_order_of_appearance(void **state) {
  (void)state;
  psplit_intern table;
  psplit_i_intern_init(&table);
  static char names[5000][8];
  for (unsigned i = 0; i < 5000; i++) {
    snprintf(names[i], sizeof names[i], "n%u", i);
    assert_int_equal(psplit_i_intern_add(&table, names[i]), i);
  }
  for (unsigned i = 0; i < 5000; i += 7) {
    char copy[8];
    memcpy(copy, names[i], sizeof copy);
    assert_int_equal(psplit_i_intern_add(&table, copy), i);
    assert_int_equal(psplit_i_intern_find(&table, copy), i);
  }
  assert_int_equal(psplit_i_intern_find(&table, "absent"), PSPLIT_NONE);
  psplit_i_intern_fini(&table);
}

static void glob_matches_like_a_shell(void **state) {
  (void)state;
  static const struct { const char *pattern, *name; bool matches; } cases[] = {
    {"*", "", true},           {"a*c", "abbbc", true},    {"a*c", "abbb", false},
    {"/layer.?/*", "/layer.3/x/y", true},                 {"[a-c]x", "bx", true},
    {"[!a-c]x", "bx", false},  {"[]]", "]", true},        {"[x", "[x", true},
    {"\\*", "*", true},        {"\\*", "a", false},       {"*a*a*a*b", "aaaaaaaaaaaa", false},
    {"", "", true},            {"", "a", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (psplit_i_glob_match(cases[i].pattern, cases[i].name) != cases[i].matches)
      fail_msg("%s against %s", cases[i].pattern, cases[i].name);
}

static void json_is_valid_for_any_bytes(void **state) {
  (void)state;
  psplit_text text = {0};
  psplit_json json;
  psplit_i_json_init(&json, &text);
  psplit_i_json_open(&json, '{');
  psplit_i_json_key(&json, "a\"\\\n");
  psplit_i_json_string(&json, "\xc3\xa4\xff\xed\xa0\x80");
  psplit_i_json_key(&json, "list");
  json.compact = true;
  psplit_i_json_open(&json, '[');
  psplit_i_json_double(&json, 0.1);
  psplit_i_json_double(&json, 3.0);
  psplit_i_json_int(&json, INT64_MIN);
  psplit_i_json_close(&json, ']');
  json.compact = false;
  psplit_i_json_key(&json, "empty");
  psplit_i_json_open(&json, '{');
  psplit_i_json_close(&json, '}');
  psplit_i_json_close(&json, '}');
  assert_false(text.failed);
  assert_string_equal(text.bytes,
                      "{\n  \"a\\\"\\\\\\u000a\": \"\xc3\xa4\\ufffd\\ufffd\\ufffd\\ufffd\",\n"
                      "  \"list\": [0.1, 3.0, -9223372036854775808],\n  \"empty\": {}\n}\n");
  psplit_i_text_fini(&text);
}

static void hasher_ignores_how_the_stream_is_cut(void **state) {
  (void)state;
  unsigned char data[100];
  for (unsigned i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 37);
  uint64_t whole[2], pieces[2];
  psplit_hasher hasher;
  psplit_i_hasher_init(&hasher);
  psplit_i_hasher_add(&hasher, data, sizeof data);
  psplit_i_hasher_done(&hasher, whole);
  for (size_t cut = 0; cut <= sizeof data; cut++) {
    psplit_i_hasher_init(&hasher);
    psplit_i_hasher_add(&hasher, data, cut);
    psplit_i_hasher_add(&hasher, data + cut, sizeof data - cut);
    psplit_i_hasher_done(&hasher, pieces);
    assert_memory_equal(whole, pieces, sizeof whole);
  }
  data[99] ^= 1;
  psplit_i_hasher_init(&hasher);
  psplit_i_hasher_add(&hasher, data, sizeof data);
  psplit_i_hasher_done(&hasher, pieces);
  assert_memory_not_equal(whole, pieces, sizeof whole);
}

static void diag_keeps_the_first_failure_printable(void **state) {
  (void)state;
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_fail(&diag, PSPLIT_IO, "no file %s", "a\033[31mb"), PSPLIT_IO);
  assert_int_equal(psplit_i_fail(&diag, PSPLIT_LIMIT, "later"), PSPLIT_LIMIT);
  psplit_i_diag_context(&diag, "model.onnx");
  assert_int_equal(diag.code, PSPLIT_IO);
  assert_string_equal(diag.message, "model.onnx: no file a?[31mb");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(arena_keeps_alignment_and_limit),
    cmocka_unit_test(intern_numbers_in_order_of_appearance),
    cmocka_unit_test(glob_matches_like_a_shell),
    cmocka_unit_test(json_is_valid_for_any_bytes),
    cmocka_unit_test(hasher_ignores_how_the_stream_is_cut),
    cmocka_unit_test(diag_keeps_the_first_failure_printable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
