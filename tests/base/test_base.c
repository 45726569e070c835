/* base/: the pieces that everything else trusts blindly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/file.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "checked.h"
#include "json_put.h"

/* What times of 1e14 ns and factors of 1e5 come to. */
static void numbers_too_large_for_a_type_are_its_largest(void **state) {
  (void)state;
  const double huge = 1e300, no_number = huge * huge * 0;
  assert_true(psplit_i_sat_i64(2.9) == 2 && psplit_i_sat_u64(2.9) == 2);
  assert_true(psplit_i_sat_i64(1e18) == INT64_C(1000000000000000000));
  assert_true(psplit_i_sat_i64(9223372036854775808.) == INT64_MAX);
  assert_true(psplit_i_sat_u64(9223372036854775808.) == UINT64_C(1) << 63);
  assert_true(psplit_i_sat_u64(18446744073709551616.) == UINT64_MAX);
  assert_true(psplit_i_sat_i64(huge * huge) == INT64_MAX && psplit_i_sat_u64(huge) == UINT64_MAX);
  assert_true(psplit_i_sat_i64(no_number) == 0 && psplit_i_sat_u64(no_number) == 0);
}

/* Small pieces stand close, and what wants more alignment gets it behind them. */
static void arena_packs_small_pieces(void **state) {
  (void)state;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  unsigned char *last = NULL;
  for (size_t i = 0; i < 3000; i++) {
    unsigned char *memory = psplit_i_arena_alloc_close(&arena, 24);
    assert_int_equal((uintptr_t)memory % 8, 0);
    memset(memory, (int)i, 24);
#ifndef PSPLIT_HAS_ASAN /* which has its own bytes between them */
    if (i % 100 == 1) assert_ptr_equal(memory, last + 24);
#endif
    last = memory;
    if (i % 100 == 50) assert_int_equal((uintptr_t)psplit_i_arena_alloc(&arena, 7) % 16, 0);
  }
  (void)last; /* nobody reads it under AddressSanitizer */
  psplit_i_arena_fini(&arena);
}

static void arena_keeps_alignment_and_limit(void **state) {
  (void)state;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 64 << 10);
  for (size_t bytes = 0; bytes < 300; bytes++) {
    unsigned char *memory = psplit_i_arena_alloc(&arena, bytes);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 16, 0);
    memset(memory, 0xab, bytes);
  }
  assert_false(arena.failed);
  assert_null(psplit_i_arena_alloc(&arena, 1 << 20));
  assert_true(arena.failed);
  assert_non_null(psplit_i_arena_alloc(&arena, 8));
  assert_true(arena.failed); /* whatever came after */
  psplit_i_arena_reset(&arena);
  assert_false(arena.failed);
  assert_null(psplit_i_arena_zeroed(&arena, SIZE_MAX / 2, 4));
  assert_true(arena.failed);
  psplit_i_arena_reset(&arena);
  assert_null(psplit_i_arena_strndup(&arena, "", SIZE_MAX));
  assert_true(arena.failed);
  psplit_i_arena_reset(&arena);
  assert_non_null(psplit_i_arena_alloc(&arena, 8));
  psplit_i_arena_fini(&arena);
  psplit_i_arena_fini(&arena);
}

/* Large requests neither waste a whole block each nor close the one that small requests fill. */
static void arena_gives_large_requests_their_own_block(void **state) {
  (void)state;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  for (int i = 0; i < 50; i++) {
    assert_non_null(psplit_i_arena_alloc(&arena, 1100 << 10));
    assert_non_null(psplit_i_arena_alloc(&arena, 100));
  }
  assert_in_range(arena.used_bytes, 50 * 1100 << 10, (50 * 1100 << 10) + (6 << 20));
  assert_false(arena.over_limit);
  arena.limit_bytes = arena.used_bytes + (1 << 20);
  assert_null(psplit_i_arena_alloc(&arena, 2 << 20));
  assert_true(arena.over_limit);
  assert_non_null(psplit_i_arena_alloc(&arena, 1 << 19));
  psplit_i_arena_fini(&arena);
}

static void siphash_is_siphash(void **state) {
  (void)state;
  /* SipHash-1-3 of the empty string under the key 00 01 .. 0f. */
  const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
  assert_true(psplit_i_siphash("", 0, key) == UINT64_C(0xabac0158050fc4dc));
  for (size_t n = 1; n < 30; n++) /* every byte and the length count */
    for (size_t at = 0; at < n; at++) {
      char text[30] = {0};
      const uint64_t before = psplit_i_siphash(text, n, key);
      assert_true(psplit_i_siphash(text, n - 1, key) != before);
      text[at] = 1;
      assert_true(psplit_i_siphash(text, n, key) != before);
    }
}

static void intern_reserves(void **state) {
  (void)state;
  psplit_i_intern table;
  psplit_i_intern_init(&table);
  assert_int_equal(psplit_i_intern_add(&table, "first"), 0);
  assert_true(psplit_i_intern_reserve(&table, 10000));
  const uint64_t *slots = table.slots;
  static char names[10000][8];
  for (unsigned i = 0; i < 10000; i++) {
    snprintf(names[i], sizeof names[i], "n%u", i);
    assert_int_equal(psplit_i_intern_add(&table, names[i]), i + 1);
  }
  assert_ptr_equal(table.slots, slots);
  assert_int_equal(psplit_i_intern_find(&table, "first"), 0);
  assert_false(psplit_i_intern_reserve(&table, SIZE_MAX));
  assert_false(psplit_i_intern_reserve(&table, UINT32_MAX));
  psplit_i_intern_fini(&table);
}

/* Names that collide for any seed of a multiply-and-shift hash; 2^14 of them must not take the
 * quarter of a billion comparisons that they would then need. */
static void intern_cannot_be_flooded(void **state) {
  (void)state;
  enum { BITS = 14, N = 1 << BITS };
  char(*names)[BITS * 16 + 1] = calloc(N, sizeof *names);
  assert_non_null(names);
  for (unsigned i = 0; i < N; i++) {
    memset(names[i], 'a', BITS * 16);
    for (unsigned b = 0; b < BITS; b++)
      if (i >> b & 1) { /* bit 63 of one word, then bits 63 and 31 of the next */
        names[i][b * 16 + 7] ^= (char)0x80;
        names[i][b * 16 + 15] ^= (char)0x80;
        names[i][b * 16 + 11] ^= (char)0x80;
      }
  }
  assert_true(psplit_i_hash_bytes(names[0], BITS * 16, 5) ==
              psplit_i_hash_bytes(names[N - 1], BITS * 16, 5)); /* they do collide there */
  psplit_i_intern table;
  psplit_i_intern_init(&table);
  for (unsigned i = 0; i < N; i++) assert_int_equal(psplit_i_intern_add(&table, names[i]), i);
  uint32_t longest = 0; /* run of full slots, which bounds every search */
  for (uint32_t s = 0, run = 0; s < table.n_slots; s++) {
    run = table.slots[s] ? run + 1 : 0;
    if (run > longest) longest = run;
  }
  assert_in_range(longest, 1, 500);
  psplit_i_intern_fini(&table);
  free(names);
}

static void intern_numbers_in_order_of_appearance(void **state) {
  (void)state;
  psplit_i_intern table;
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
  /* clang-format off */
  static const struct { const char *pattern, *name; bool matches; } cases[] = {
    {"*", "", true},           {"a*c", "abbbc", true},    {"a*c", "abbb", false},
    {"/layer.?/*", "/layer.3/x/y", true},                 {"[a-c]x", "bx", true},
    {"[!a-c]x", "bx", false},  {"[]]", "]", true},        {"[x", "[x", true},
    {"\\*", "*", true},        {"\\*", "a", false},       {"*a*a*a*b", "aaaaaaaaaaaa", false},
    {"", "", true},            {"", "a", false},
  };
  /* clang-format on */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (psplit_i_glob_match(cases[i].pattern, cases[i].name) != cases[i].matches)
      fail_msg("%s against %s", cases[i].pattern, cases[i].name);
  assert_true(psplit_i_name_match("a[1]", true, "a[1]"));
  assert_false(psplit_i_name_match("a[1]", true, "a1"));
  assert_true(psplit_i_name_match("a[1]", false, "a1"));
  assert_false(psplit_i_name_match("a[1]", false, "a[1]"));
}

static void json_is_valid_for_any_bytes(void **state) {
  (void)state;
  psplit_i_text text = {0};
  psplit_i_json json;
  psplit_i_json_init(&json, &text);
  psplit_i_json_open(&json, '{');
  psplit_i_json_put_string(&json, "a\"\\\n", "\xc3\xa4\xff\xed\xa0\x80");
  psplit_i_json_key(&json, "list");
  json.compact = true;
  psplit_i_json_open(&json, '[');
  psplit_i_json_double(&json, 0.1);
  psplit_i_json_double(&json, 3.0);
  psplit_i_json_int(&json, INT64_MIN);
  psplit_i_json_uint(&json, INT64_MAX - 1);
  psplit_i_json_uint(&json, UINT64_MAX); /* readers take no larger ones */
  psplit_i_json_close(&json, ']');
  json.compact = false;
  psplit_i_json_put_open(&json, "empty", '{');
  psplit_i_json_close(&json, '}');
  psplit_i_json_close(&json, '}');
  assert_false(text.failed);
  assert_string_equal(text.bytes,
                      "{\n  \"a\\\"\\\\\\u000a\": \"\xc3\xa4\\ufffd\\ufffd\\ufffd\\ufffd\",\n"
                      "  \"list\": [0.1, 3.0, -9223372036854775808, "
                      "9223372036854775806, 9223372036854775807],\n  \"empty\": {}\n}\n");
  psplit_i_text_fini(&text);
}

static void hasher_ignores_how_the_stream_is_cut(void **state) {
  (void)state;
  unsigned char data[100];
  for (unsigned i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 37);
  uint64_t whole[2], pieces[2];
  psplit_i_hasher hasher;
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
  psplit_i_diag_file(&diag, "model.onnx"); /* whoever opened it has said so */
  assert_string_equal(diag.message, "model.onnx: no file a?[31mb");
  assert_false(psplit_i_diag_show(&diag, "elsewhere", "place"));
  assert_false(psplit_i_diag_show(&diag, "", "place"));
  assert_true(psplit_i_diag_show(&diag, "model.onnx", "place"));
  assert_string_equal(diag.message, "place: no file a?[31mb");
  assert_true(psplit_i_diag_show(&diag, "place", "model.onnx"));
  psplit_i_diag_file(&diag, "model");
  assert_string_equal(diag.message, "model: model.onnx: no file a?[31mb");

  diag = (psplit_diag){0}; /* UTF-8 stays; a C1 control, a stray byte and a cut character do not */
  const char *bad =
    "\xc3\xa4 \xc2\x9b"
    "31m \x9b"
    "31m \x7f \xe2\x82";
  assert_int_equal(psplit_i_fail(&diag, PSPLIT_IO, "%s", bad), PSPLIT_IO);
  assert_string_equal(diag.message, "\xc3\xa4 ??31m ?31m ? ??");
  char giant[2 * PSPLIT_DIAG_BYTES];
  for (size_t i = 0; i + 1 < sizeof giant; i += 2) memcpy(giant + i, "\xc3\xa4", 2);
  giant[sizeof giant - 1] = '\0';
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_fail(&diag, PSPLIT_IO, "%s", giant), PSPLIT_IO);
  assert_int_equal(strlen(diag.message), PSPLIT_DIAG_BYTES - 1);
  assert_int_equal(diag.message[PSPLIT_DIAG_BYTES - 2], '?');
}

/* A line of a file, or a path, may be longer than a message. */
static void long_messages_lose_their_middle(void **state) {
  (void)state;
  static char giant[3 * PSPLIT_DIAG_BYTES];
  psplit_diag diag = {0};
  memset(giant, 'x', sizeof giant - 1);
  assert_int_equal(psplit_i_fail(&diag, PSPLIT_IO, "pins.txt:1: %s: why", giant), PSPLIT_IO);
  for (int more = 0; more < 3; more++) {
    const size_t n = strlen(diag.message);
    assert_int_equal(n, PSPLIT_DIAG_BYTES - 1);
    assert_memory_equal(diag.message, more ? "model: " : "pins.txt:1: x", 7);
    assert_string_equal(diag.message + n - 6, "x: why");
    assert_non_null(strstr(diag.message, "x...x"));
    psplit_i_diag_context(&diag, more ? "model: %s" : "model", giant);
  }
}

/* A name may not make others read what it is not: U+202E turns what follows around. */
static void what_reorders_is_not_shown(void **state) {
  (void)state;
  static const char *const bad[] = {"\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8",
                                    "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9", "\xc2\x85"};
  static const char *const codes[] = {"061c", "200e", "200f", "2028",
                                      "202e", "2066", "2069", "0085"};
  static const char *const good[] = {"\xe2\x80\x90",    "\xe2\x80\xaf", "\xe2\x81\xa5",
                                     "\xe2\x81\xaa",    "\xd7\x90",     "\xc2\xa0",
                                     "\xf0\x9f\x98\x80"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char name[16], wanted[16];
    snprintf(name, sizeof name, "a%sb", bad[i]);
    assert_int_equal(psplit_i_printable_length((const unsigned char *)bad[i], strlen(bad[i])), 0);
    psplit_i_text text = {0};
    psplit_i_json json;
    psplit_i_json_init(&json, &text);
    psplit_i_json_string(&json, name);
    snprintf(wanted, sizeof wanted, "\"a\\u%sb\"", codes[i]);
    assert_string_equal(text.bytes, wanted);
    psplit_i_text_fini(&text);
    char *printed = NULL;
    size_t n_printed = 0;
    FILE *stream = open_memstream(&printed, &n_printed);
    assert_non_null(stream);
    psplit_json_print(stream, name, strlen(name));
    fclose(stream);
    assert_string_equal(printed, wanted);
    free(printed);
    psplit_make_printable(name);
    snprintf(wanted, sizeof wanted, "a%.*sb", (int)strlen(bad[i]), "???");
    assert_string_equal(name, wanted);
  }
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_int_equal(psplit_i_printable_length((const unsigned char *)good[i], strlen(good[i])),
                     strlen(good[i]));
}

/* 0 - 1 - 2 - 3 - 4 and a shortcut 1 - 3; 5 has no link at all. */
static void routes_are_short_and_pass_once(void **state) {
  (void)state;
  enum { N = 6 };
  int64_t link_ns[N * N], scratch[2 * N];
  uint32_t next[N * N], held[N] = {0};
  psplit_i_hop hops[N];
  for (int i = 0; i < N * N; i++) link_ns[i] = -1;
  for (int i = 0; i < 4; i++) link_ns[i * N + i + 1] = 10;
  link_ns[1 * N + 3] = 100;
  psplit_i_route_table(N, link_ns, scratch, next);
  assert_int_equal(next[0 * N + 1], 1);
  assert_int_equal(next[0 * N + 4], 1);
  assert_int_equal(next[1 * N + 4], 3); /* fewer hops, if slower */
  assert_int_equal(next[0 * N + 5], PSPLIT_NONE);
  assert_int_equal(next[3 * N + 1], PSPLIT_NONE); /* never back */
  link_ns[0 * N + 2] = 5; /* two hops to 3 by way of 1 and of 2: the faster one */
  psplit_i_route_table(N, link_ns, scratch, next);
  assert_int_equal(next[0 * N + 3], 2);
  /* A stage that has the tensor and a link gives it. */
  held[0] = held[1] = 7;
  assert_int_equal(psplit_i_route(N, next, 0, 3, held, 7, hops), 1);
  assert_int_equal(hops[0].from, 1);
  assert_int_equal(hops[0].to, 3);
  assert_int_equal(psplit_i_route(N, next, 0, 4, held, 7, hops), 1);
  assert_int_equal(hops[0].from, 3);
  /* Nobody else has it: every stage on the way receives it. */
  held[0] = 8;
  assert_int_equal(psplit_i_route(N, next, 0, 4, held, 8, hops), 3);
  assert_int_equal(hops[2].from, 3);
  assert_int_equal(held[2], 8);
  assert_int_equal(psplit_i_route(N, next, 0, 5, held, 8, hops), 0);
}

static void unknown_names_find_the_nearest(void **state) {
  (void)state;
  static const char *const names[] = {"batch", "seq", "sequence_length", "n", "height"};
  const struct {
    const char *name, *near;
  } cases[] = {{"bacth", "batch"},   {"BATCH", "batch"},
               {"batches", "batch"}, {"heigth", "height"},
               {"sequence", "seq"},  {"sequence_lengt", "sequence_length"},
               {"N", "n"},           {"m", NULL},
               {"width", NULL},      {"", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint32_t near = psplit_i_nearest(cases[i].name, names, 5);
    if (!cases[i].near)
      assert_int_equal(near, PSPLIT_NONE);
    else
      assert_string_equal(names[near], cases[i].near);
  }
  static const char *const presets[] = {"nvidia-v100", "nvidia-a100-40gb", "nvidia-a100-80gb",
                                        "cpu"};
  assert_string_equal(presets[psplit_i_nearest("nvidia-a100", presets, 4)], "nvidia-a100-40gb");
  assert_string_equal(presets[psplit_i_nearest("nvidia-v10", presets, 4)], "nvidia-v100");
  assert_int_equal(psplit_i_nearest("x", NULL, 0), PSPLIT_NONE);
  psplit_diag diag = {0};
  assert_int_equal(
    psplit_i_fail_unknown(&diag, PSPLIT_SUBJECT_NONE, "there is no", "bacth", names, 2),
    PSPLIT_USAGE);
  assert_string_equal(diag.message, "there is no bacth; did you mean batch? it has batch, seq");
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_fail_unknown(&diag, PSPLIT_SUBJECT_NONE, "there is no", "x", NULL, 0),
                   PSPLIT_USAGE);
  assert_string_equal(diag.message, "there is no x; there are none");
  /* However many and long they are: one message, cut. */
  static char lengthy[300];
  memset(lengthy, 'l', sizeof lengthy - 1);
  const char *many[30];
  for (size_t i = 0; i < 30; i++) many[i] = lengthy;
  diag = (psplit_diag){0};
  assert_int_equal(
    psplit_i_fail_unknown(&diag, PSPLIT_SUBJECT_NONE, "there is no", lengthy, many, 30),
    PSPLIT_USAGE);
  assert_true(strlen(diag.message) < sizeof diag.message);
}

static void keep_line(void *user, psplit_severity severity, const char *line) {
  assert_int_equal(severity, PSPLIT_NOTE);
  snprintf(user, PSPLIT_DIAG_BYTES, "%s", line);
}

static void keep_advice(void *user, psplit_severity severity, const psplit_diag *advice) {
  assert_int_equal(severity, PSPLIT_NOTE);
  *(psplit_diag *)user = *advice;
}

static void hints_keep_their_arguments(void **state) {
  (void)state;
  static char giant[PSPLIT_HINT_BYTES + 1];
  memset(giant, 'g', sizeof giant - 1);
  psplit_diag diag, copy = {0};
  memset(&diag, 1, sizeof diag);
  diag.code = PSPLIT_OK; /* an older hint does not shine through */
  assert_int_equal(psplit_i_fail(&diag, PSPLIT_IO, "plain"), PSPLIT_IO);
  assert_int_equal(diag.hint, PSPLIT_HINT_NONE);
  assert_int_equal(diag.subject, PSPLIT_SUBJECT_NONE);
  assert_string_equal(psplit_hint_argument(&diag, 0), "");
  assert_int_equal(psplit_i_fail_about(&diag, PSPLIT_IO, PSPLIT_I_HELPS(REPLACE), "later"),
                   PSPLIT_IO);
  assert_int_equal(diag.hint, PSPLIT_HINT_NONE); /* of the first failure alone */
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_fail_about(&diag, PSPLIT_USAGE,
                                       (psplit_i_advice){.hint = PSPLIT_HINT_INLINE_KNOWN,
                                                         .subject = PSPLIT_SUBJECT_PIN,
                                                         .arguments = {"a\nb", "then"}},
                                       "x"),
                   PSPLIT_USAGE);
  psplit_i_diag_context(&diag, "m");
  assert_int_equal(psplit_i_fail_as(&copy, &diag), PSPLIT_USAGE);
  assert_string_equal(copy.message, "m: x");
  assert_int_equal(copy.subject, PSPLIT_SUBJECT_PIN);
  assert_int_equal(copy.hint, PSPLIT_HINT_INLINE_KNOWN);
  assert_int_equal(copy.n_hint_arguments, 2);
  assert_string_equal(psplit_hint_argument(&copy, 0), "a?b");
  assert_string_equal(psplit_hint_argument(&copy, 1), "then");
  assert_string_equal(psplit_hint_argument(&copy, 2), "");
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_fail_about(&diag, PSPLIT_IO, PSPLIT_I_HELPS_WITH(INPUT, giant), "x"),
                   PSPLIT_IO);
  assert_int_equal(diag.hint, PSPLIT_HINT_NONE); /* half a name is no advice */
}

static void loggers_get_advice_as_they_take_it(void **state) {
  (void)state;
  char line[PSPLIT_DIAG_BYTES] = "";
  psplit_logger logger = {.emit = keep_line, .user = line};
  psplit_i_advise(&logger, PSPLIT_NOTE, PSPLIT_I_HELPS_WITH(DIMS, "batch"), "%d open", 1);
  assert_string_equal(line, "1 open; psplit_planner_options.dims fixes them");
  psplit_i_advise(&logger, PSPLIT_NOTE, (psplit_i_advice){0}, "plain");
  assert_string_equal(line, "plain");
  psplit_diag advice = {0};
  logger.advise = keep_advice;
  logger.user = &advice;
  psplit_i_advise(&logger, PSPLIT_NOTE, PSPLIT_I_HELPS_WITH(DIMS, "batch"), "%d open", 1);
  assert_string_equal(advice.message, "1 open");
  assert_int_equal(advice.hint, PSPLIT_HINT_DIMS);
  assert_string_equal(psplit_hint_argument(&advice, 0), "batch");
  psplit_i_advise(NULL, PSPLIT_NOTE, (psplit_i_advice){0}, "nobody");
}

static void files_are_read_up_to_a_size(void **state) {
  (void)state;
  char path[] = "/tmp/psplit-read-XXXXXX", *text = NULL;
  size_t n = 0;
  const int fd = mkstemp(path);
  psplit_diag diag = {0};
  psplit_file_read_options options;
  assert_true(fd >= 0 && write(fd, "abc", 3) == 3 && close(fd) == 0);
  assert_int_equal(psplit_file_read(path, NULL, &diag, &text, &n), PSPLIT_OK);
  assert_int_equal(n, 3);
  assert_string_equal(text, "abc");
  free(text);
  psplit_file_read_options_init(&options);
  options.max_bytes = 2;
  assert_int_equal(psplit_file_read(path, &options, &diag, &text, &n), PSPLIT_LIMIT);
  assert_int_equal(diag.hint, PSPLIT_HINT_MAX_TEXT);
  diag = (psplit_diag){0};
  options.struct_size = 0;
  assert_int_equal(psplit_file_read(path, &options, &diag, &text, &n), PSPLIT_USAGE);
  unlink(path);
}

/* Options of this version, of an older one that ends after `a`, and of a newer one. */
typedef struct options {
  size_t struct_size;
  int a, b;
} options;

static void options_know_their_size(void **state) {
  (void)state;
  struct {
    options known;
    int newer;
  } given = {{0, 7, 8}, 0};
  psplit_diag diag = {0};
  options own = {sizeof own, 1, 2};
  assert_int_equal(PSPLIT_I_TAKE_OPTIONS(options, NULL, &own, &diag), PSPLIT_OK);
  assert_int_equal(own.a, 1);
  assert_int_equal(PSPLIT_I_TAKE_OPTIONS(options, &given, &own, &diag), PSPLIT_USAGE);
  assert_string_equal(diag.message, "options.struct_size is 0; options_init() sets it");
  assert_int_equal(own.a, 1);
  given.known.struct_size = offsetof(options, b);
  diag = (psplit_diag){0};
  assert_int_equal(PSPLIT_I_TAKE_OPTIONS(options, &given, &own, &diag), PSPLIT_OK);
  assert_int_equal(own.struct_size, sizeof own);
  assert_int_equal(own.a, 7);
  assert_int_equal(own.b, 2); /* the default */
  given.known.struct_size = sizeof given;
  assert_int_equal(PSPLIT_I_TAKE_OPTIONS(options, &given, &own, &diag), PSPLIT_OK);
  assert_int_equal(own.b, 8);
  assert_int_equal(own.struct_size, sizeof own);
  given.newer = 1;
  assert_int_equal(PSPLIT_I_TAKE_OPTIONS(options, &given, &own, &diag), PSPLIT_UNSUPPORTED);
  /* Defaults stay inside the struct that the caller has. */
  options defaults = {0, 3, 4};
  memset(&given, 0xff, sizeof given);
  psplit_i_options_defaults(&given, offsetof(options, b), &defaults, sizeof defaults);
  assert_int_equal(given.known.struct_size, offsetof(options, b));
  assert_int_equal(given.known.a, 3);
  assert_int_equal(given.known.b, -1);
  psplit_i_options_defaults(&given, sizeof given, &defaults, sizeof defaults);
  assert_int_equal(given.known.struct_size, sizeof given);
  assert_int_equal(given.known.b, 4);
  assert_int_equal(given.newer, 0);
}

static void files_in_memory_hold_their_bytes(void **state) {
  (void)state;
  char read_back[8] = "";
  const int fd = psplit_i_memory_file("bytes", 5);
  assert_true(fd >= 0);
  assert_int_equal(pread(fd, read_back, sizeof read_back, 0), 5);
  assert_string_equal(read_back, "bytes");
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_too_large_for_a_type_are_its_largest),
    cmocka_unit_test(arena_packs_small_pieces),
    cmocka_unit_test(arena_keeps_alignment_and_limit),
    cmocka_unit_test(arena_gives_large_requests_their_own_block),
    cmocka_unit_test(siphash_is_siphash),
    cmocka_unit_test(intern_reserves),
    cmocka_unit_test(intern_cannot_be_flooded),
    cmocka_unit_test(intern_numbers_in_order_of_appearance),
    cmocka_unit_test(glob_matches_like_a_shell),
    cmocka_unit_test(json_is_valid_for_any_bytes),
    cmocka_unit_test(hasher_ignores_how_the_stream_is_cut),
    cmocka_unit_test(diag_keeps_the_first_failure_printable),
    cmocka_unit_test(long_messages_lose_their_middle),
    cmocka_unit_test(what_reorders_is_not_shown),
    cmocka_unit_test(hints_keep_their_arguments),
    cmocka_unit_test(loggers_get_advice_as_they_take_it),
    cmocka_unit_test(files_are_read_up_to_a_size),
    cmocka_unit_test(options_know_their_size),
    cmocka_unit_test(files_in_memory_hold_their_bytes),
    cmocka_unit_test(routes_are_short_and_pass_once),
    cmocka_unit_test(unknown_names_find_the_nearest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
