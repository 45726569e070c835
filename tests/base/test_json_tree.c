/* Why: what is read as JSON decides what is planned and where. Texts at random, most of them nearly
 * JSON, are taken and refused as jansson does, value by value, but for integers beyond 64 bits,
 * which it refuses; and what jansson does not say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "failing.h"
#include "json_tree.h"

static psplit_code parse(const char *text, size_t n, psplit_i_arena *arena,
                         psplit_i_json_place *place, const psplit_i_json_value **out) {
  char *exact = malloc(n ? n : 1); /* of its own, for sanitizers to see its end */
  assert_non_null(exact);
  memcpy(exact, text, n);
  const psplit_code code = psplit_i_json_parse(exact, n, arena, place, out);
  free(exact);
  return code;
}

static bool is_real(json_t *other, double value) {
  return json_is_real(other) &&
         memcmp(&value, &(double){json_real_value(other)}, sizeof value) == 0;
}

/* With an integer beyond 64 bits in a text, jansson reads all of its integers as reals. */
static bool same(const psplit_i_json_value *value, json_t *other) {
  switch (value->kind) {
    case PSPLIT_I_JSON_OBJECT: {
      if (!json_is_object(other) || json_object_size(other) != value->n) return false;
      for (uint32_t i = 0; i < value->n; i++) {
        json_t *member = json_object_get(other, value->children[i].key);
        if (!member || !same(&value->children[i], member)) return false;
      }
      return true;
    }
    case PSPLIT_I_JSON_ARRAY:
      if (!json_is_array(other) || json_array_size(other) != value->n) return false;
      for (uint32_t i = 0; i < value->n; i++)
        if (!same(&value->children[i], json_array_get(other, i))) return false;
      return true;
    case PSPLIT_I_JSON_STRING:
      return json_is_string(other) && json_string_length(other) == value->n &&
             strcmp(json_string_value(other), value->text) == 0;
    case PSPLIT_I_JSON_INTEGER: /* 0 of -0 */
      return json_is_integer(other) ? json_integer_value(other) == value->integer
                                    : json_number_value(other) == (double)value->integer;
    case PSPLIT_I_JSON_UNSIGNED:
      return value->natural > INT64_MAX && is_real(other, (double)value->natural);
    case PSPLIT_I_JSON_REAL: return is_real(other, value->real);
    case PSPLIT_I_JSON_TRUE: return json_is_true(other);
    case PSPLIT_I_JSON_FALSE: return json_is_false(other);
    case PSPLIT_I_JSON_NULL: return json_is_null(other);
  }
  return false;
}

static void agree(const char *text, size_t n) {
  psplit_i_arena arena;
  psplit_i_json_place place = {0};
  const psplit_i_json_value *value = NULL;
  json_error_t error;
  psplit_i_arena_init(&arena, 0);
  const psplit_code code = parse(text, n, &arena, &place, &value);
  json_t *other = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
  if (!other && strncmp(error.text, "too big", 7) == 0)
    other = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &error);
  if ((code == PSPLIT_OK) != (other != NULL))
    fail_msg("%.*s\nours: %s, jansson: %s", (int)n, text, code == PSPLIT_OK ? "taken" : place.what,
             other ? "taken" : error.text);
  if (other && !same(value, other)) fail_msg("%.*s\nis read as something else", (int)n, text);
  if (code != PSPLIT_OK && (code != PSPLIT_MALFORMED || !*place.what))
    fail_msg("%.*s\nis refused without a reason", (int)n, text);
  json_decref(other);
  psplit_i_arena_fini(&arena);
}

static const char *const kTexts[] = {
  "{\"a\": [1, -2.5e-3, true, false, null, \"x\\u00e9\\ud83d\\ude00\\n\\/\"], \"b\": {\"c\": {}}}",
  "[9223372036854775807, -9223372036854775808, 0, -0, -0.0, 1e308, 1E-400, 0.1]",
  "[9223372036854775808]",
  "[-9223372036854775809]",
  "[18446744073709551615, 18446744073709551616, -18446744073709551615, 100000000000000000000]",
  "[1e400]",
  "[\"\\u0000\"]",
  "{\"\\u0041\": 1, \"A\": 2}",
  "[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\", \"\x7f\"]",
  "[\"\xff\"]",
  "[\"\\ud800\"]",
  "[01]",
  "[1.]",
  "[.5]",
  "[+1]",
  "[nul]",
  "[1]x",
  "\xef\xbb\xbf[]",
  "  []\t\r\n ",
  "",
  "[",
  "[\"a",
  "[\"a\\",
  "{\"a\"}",
  "{\"a\": 1 \"b\": 2}",
  "{\"a\": 1, \"b\": 2, \"c\": 3, \"d\": 4, \"e\": 5, \"f\": 6, \"g\": 7, \"h\": 8, \"i\": 9,"
  " \"j\": 10, \"k\": 11, \"l\": 12, \"m\": 13, \"n\": 14, \"o\": 15, \"p\": 16, \"q\": 17, \"c\": "
  "0}",
};

static uint64_t next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

static void texts_at_random(void **state) {
  (void)state;
  static const char PIECES[] = "{}[]:,\"\\u0123456789abcdefnrtl.eE+- \n\x01\x80\xc3\xa9";
  uint64_t seed = 1;
  for (size_t t = 0; t < sizeof kTexts / sizeof *kTexts; t++) {
    agree(kTexts[t], strlen(kTexts[t]));
    for (unsigned i = 0; i < 3000; i++) {
      char text[400];
      size_t n = strlen(kTexts[t]);
      memcpy(text, kTexts[t], n);
      for (uint64_t k = next(&seed) % 3; k < 3; k++) {
        const size_t at = n ? next(&seed) % n : 0;
        const char c = PIECES[next(&seed) % (sizeof PIECES - 1)];
        switch (next(&seed) % 3) {
          case 0: /* another byte */
            if (n) text[at] = c;
            break;
          case 1: /* one more */
            memmove(text + at + 1, text + at, n - at);
            text[at] = c;
            n++;
            break;
          default: /* one less */
            if (!n) break;
            memmove(text + at, text + at + 1, n - at - 1);
            n--;
        }
      }
      agree(text, n);
    }
  }
}

/* Integers are exact as far as 64 bits hold them. */
static void integers(void **state) {
  (void)state;
  static const char text[] =
    "[9223372036854775807, 9223372036854775808, 18446744073709551615, 18446744073709551616,"
    " -9223372036854775808, -9223372036854775809]";
  psplit_i_arena arena;
  psplit_i_json_place place = {0};
  const psplit_i_json_value *list;
  psplit_i_arena_init(&arena, 0);
  assert_int_equal(parse(text, sizeof text - 1, &arena, &place, &list), PSPLIT_OK);
  const psplit_i_json_value *v = list->children;
  assert_true(v[0].kind == PSPLIT_I_JSON_INTEGER && v[0].integer == INT64_MAX);
  assert_true(v[1].kind == PSPLIT_I_JSON_UNSIGNED && v[1].natural == (uint64_t)INT64_MAX + 1);
  assert_true(v[2].kind == PSPLIT_I_JSON_UNSIGNED && v[2].natural == UINT64_MAX);
  assert_true(v[3].kind == PSPLIT_I_JSON_REAL && v[3].real == 0x1p64);
  assert_true(v[4].kind == PSPLIT_I_JSON_INTEGER && v[4].integer == INT64_MIN);
  assert_true(v[5].kind == PSPLIT_I_JSON_REAL && v[5].real == -0x1p63);
  psplit_i_arena_fini(&arena);
}

/* Depth is bounded before the stack is. */
static void deep_texts(void **state) {
  (void)state;
  for (unsigned depth = PSPLIT_I_JSON_DEPTH; depth <= PSPLIT_I_JSON_DEPTH + 1; depth++) {
    psplit_i_arena arena;
    psplit_i_json_place place = {0};
    const psplit_i_json_value *value;
    char text[2 * PSPLIT_I_JSON_DEPTH + 2];
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    psplit_i_arena_init(&arena, 0);
    assert_int_equal(parse(text, 2 * (size_t)depth, &arena, &place, &value),
                     depth > PSPLIT_I_JSON_DEPTH ? PSPLIT_MALFORMED : PSPLIT_OK);
    psplit_i_arena_fini(&arena);
  }
}

static void memory_that_runs_out(void **state) {
  (void)state;
  for (size_t t = 0; t < sizeof kTexts / sizeof *kTexts; t++) {
    bool reached = true;
    psplit_code usual = PSPLIT_NOMEM;
    for (long i = -1; reached; i++) { /* first the usual answer */
      psplit_i_arena arena;
      psplit_i_json_place place = {0};
      const psplit_i_json_value *value;
      psplit_i_arena_init(&arena, 0);
      if (i >= 0) fail_allocation_after(i);
      const psplit_code code =
        psplit_i_json_parse(kTexts[t], strlen(kTexts[t]), &arena, &place, &value);
      reached = stop_failing() || i < 0;
      psplit_i_arena_fini(&arena);
      if (i < 0) usual = code;
      assert_int_equal(code, reached && i >= 0 ? PSPLIT_NOMEM : usual);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(texts_at_random),
    cmocka_unit_test(integers),
    cmocka_unit_test(deep_texts),
    cmocka_unit_test(memory_that_runs_out),
  };
  return cmocka_run_group_tests_name("json-tree", tests, NULL, NULL);
}
