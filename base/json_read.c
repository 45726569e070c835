#include "json_read.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "json_tree.h"
#include "number.h"
#include "unknown.h"

enum { PATH_BYTES = 400, KEY_BYTES = 100, MOST_LISTED = 12 };

typedef psplit_i_json_value json_value;

static bool is(const psplit_i_json_item *item, psplit_i_json_kind kind) {
  return item->value && item->value->kind == kind;
}

static bool is_number(const psplit_i_json_item *item) {
  double number;
  return item->value && psplit_i_json_as_double(item->value, &number);
}

/* 0 where it is none. */
static double number_of(const psplit_i_json_item *item) {
  double number;
  return item->value && psplit_i_json_as_double(item->value, &number) ? number : 0;
}

/* Members or elements; 0 of what has none. */
static size_t size_of(const psplit_i_json_item *item, psplit_i_json_kind kind) {
  return is(item, kind) ? item->value->n : 0;
}

/* Whether there is something to read. */
static bool reads(const psplit_i_json_item *item) {
  return item->value && item->reader->code == PSPLIT_OK;
}

/* --- failures --- */

/* Puts `piece` before what begins at `at`; where it does not fit, "..." ends the path. */
static char *prepend(char *path, char *at, const char *piece) {
  enum { DOTS = 3 };
  const size_t n = strlen(piece);
  if (n + DOTS <= (size_t)(at - path)) return memcpy(at - n, piece, n);
  if (at - path >= DOTS && strncmp(at, "...", DOTS) != 0) return memcpy(at - DOTS, "...", DOTS);
  return at;
}

/* "devices[0].name", in the tail of `path`. */
static const char *path_of(const psplit_i_json_item *item, char path[PATH_BYTES]) {
  char *at = path + PATH_BYTES - 1;
  *at = '\0';
  for (; item->parent; item = item->parent) {
    char piece[KEY_BYTES];
    if (item->key)
      snprintf(piece, sizeof piece, "%s%s", item->parent->parent ? "." : "", item->key);
    else
      snprintf(piece, sizeof piece, "[%zu]", item->index);
    at = prepend(path, at, piece);
  }
  return at;
}

static void fail_at(const psplit_i_json_item *item, psplit_code code, const char *format,
                    va_list args) PSPLIT_PRINTF(3, 0);
static void fail_at(const psplit_i_json_item *item, psplit_code code, const char *format,
                    va_list args) {
  psplit_i_json_reader *r = item->reader;
  char buffer[PATH_BYTES], what[PSPLIT_DIAG_BYTES / 2];
  if (r->code != PSPLIT_OK) return;
  vsnprintf(what, sizeof what, format, args);
  const char *path = path_of(item, buffer);
  if (!r->file && !*path) path = "file";
  r->code = psplit_i_fail(r->diag, code, "%s%s%s: %s", r->file ? r->file : "",
                          r->file && *path ? ": " : "", path, what);
}

void psplit_i_json_fail(const psplit_i_json_item *item, psplit_code code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fail_at(item, code, format, args);
  va_end(args);
}

void psplit_i_json_wrong(const psplit_i_json_item *item, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fail_at(item, PSPLIT_INVALID, format, args);
  va_end(args);
}

void psplit_i_json_must_be(const psplit_i_json_item *item, const char *format, ...) {
  char must[300], what[64] = "";
  va_list args;
  if (!reads(item)) return;
  const psplit_i_plain_numbers numbers = psplit_i_plain_numbers_begin();
  va_start(args, format);
  vsnprintf(must, sizeof must, format, args);
  va_end(args);
  switch (item->value->kind) {
    case PSPLIT_I_JSON_OBJECT: snprintf(what, sizeof what, "an object"); break;
    case PSPLIT_I_JSON_ARRAY: snprintf(what, sizeof what, "an array"); break;
    case PSPLIT_I_JSON_STRING: snprintf(what, sizeof what, "\"%.50s\"", item->value->text); break;
    case PSPLIT_I_JSON_INTEGER:
      snprintf(what, sizeof what, "%" PRId64, item->value->integer);
      break;
    case PSPLIT_I_JSON_UNSIGNED:
      snprintf(what, sizeof what, "%" PRIu64, item->value->natural);
      break;
    case PSPLIT_I_JSON_REAL: snprintf(what, sizeof what, "%g", item->value->real); break;
    case PSPLIT_I_JSON_TRUE: snprintf(what, sizeof what, "true"); break;
    case PSPLIT_I_JSON_FALSE: snprintf(what, sizeof what, "false"); break;
    case PSPLIT_I_JSON_NULL: snprintf(what, sizeof what, "null"); break;
  }
  psplit_i_plain_numbers_end(numbers);
  psplit_i_json_wrong(item, "must be %s, not %s", must, what);
}

/* --- ways to items --- */

/* The tree and what it is made of. */
typedef struct tree {
  json_value root; /* first: an item of the whole text leads here */
  psplit_i_arena arena;
} tree;

static psplit_code fail_to_load(const psplit_i_json_reader *r, psplit_code code,
                                const psplit_i_json_place *place) {
  if (code == PSPLIT_NOMEM) return psplit_i_nomem(r->diag);
  if (code == PSPLIT_LIMIT)
    return psplit_i_fail(r->diag, code, "%s: has more than 2^32 values in one",
                         r->file ? r->file : "file");
  if (!place->line)
    return psplit_i_fail(r->diag, code, "%s%s%s", r->file ? r->file : "", r->file ? ": " : "",
                         place->what);
  if (r->file)
    return psplit_i_fail(r->diag, code, "%s:%zu:%zu: %s", r->file, place->line, place->column,
                         place->what);
  return psplit_i_fail(r->diag, code, "line %zu, column %zu: %s", place->line, place->column,
                       place->what);
}

psplit_i_json_item psplit_i_json_load(psplit_i_json_reader *reader, const char *text, size_t n) {
  psplit_i_json_item root = {.reader = reader};
  psplit_i_json_place place = {0};
  const json_value *parsed = NULL;
  tree *made = malloc(sizeof *made);
  psplit_code code = made ? PSPLIT_OK : PSPLIT_NOMEM;
  if (made) psplit_i_arena_init(&made->arena, 0);
  if (made) code = psplit_i_json_parse(text, n, &made->arena, &place, &parsed);
  if (code == PSPLIT_OK) {
    made->root = *parsed;
    root.value = &made->root;
    return root;
  }
  if (made) psplit_i_arena_fini(&made->arena);
  free(made);
  reader->code = fail_to_load(reader, code, &place);
  return root;
}

void psplit_i_json_release(psplit_i_json_item *root) {
  tree *made = (tree *)(uintptr_t)root->value;
  if (!made) return;
  psplit_i_arena_fini(&made->arena);
  free(made);
  root->value = NULL;
}

static bool is_object(const psplit_i_json_item *item) {
  if (!reads(item)) return false;
  if (!is(item, PSPLIT_I_JSON_OBJECT)) psplit_i_json_must_be(item, "an object");
  return is(item, PSPLIT_I_JSON_OBJECT);
}

psplit_i_json_item psplit_i_json_find(const psplit_i_json_item *object, const char *key) {
  psplit_i_json_item item = {.reader = object->reader, .parent = object, .key = key};
  const size_t n = is_object(object) ? object->value->n : 0;
  for (size_t i = 0; i < n && !item.value; i++)
    if (strcmp(object->value->children[i].key, key) == 0) item.value = &object->value->children[i];
  return item;
}

psplit_i_json_item psplit_i_json_need(const psplit_i_json_item *object, const char *key) {
  const psplit_i_json_item item = psplit_i_json_find(object, key);
  if (reads(object) && !item.value) psplit_i_json_wrong(&item, "is missing");
  return item;
}

psplit_i_json_item psplit_i_json_unless_null(psplit_i_json_item item) {
  if (is(&item, PSPLIT_I_JSON_NULL)) item.value = NULL;
  return item;
}

bool psplit_i_json_next(const psplit_i_json_item *object, void **io_at, psplit_i_json_item *out) {
  if (!is_object(object)) return false;
  const json_value *at = *io_at ? (const json_value *)*io_at + 1 : object->value->children;
  if (at == object->value->children + object->value->n) return false;
  *io_at = (void *)(uintptr_t)at;
  *out =
    (psplit_i_json_item){.reader = object->reader, .value = at, .parent = object, .key = at->key};
  return true;
}

void psplit_i_json_keys(const psplit_i_json_item *object, const char *const *known, uint32_t n) {
  psplit_i_json_item item;
  char list[300] = "";
  for (void *at = NULL; psplit_i_json_next(object, &at, &item);) {
    uint32_t i = 0;
    while (i < n && strcmp(known[i], item.key) != 0) i++;
    if (i < n) continue;
    const uint32_t near = psplit_i_nearest(item.key, known, n);
    for (uint32_t k = 0; k < n && k < MOST_LISTED; k++)
      snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", k ? ", " : "", known[k]);
    if (near != PSPLIT_NONE)
      psplit_i_json_wrong(&item, "unknown key; did you mean %s?", known[near]);
    else
      psplit_i_json_wrong(&item, "unknown key; keys are: %s%s", list,
                          n > MOST_LISTED ? " ..." : "");
  }
}

size_t psplit_i_json_length(const psplit_i_json_item *array, size_t least, size_t most) {
  const size_t n = size_of(array, PSPLIT_I_JSON_ARRAY);
  if (!reads(array)) return 0;
  if (is(array, PSPLIT_I_JSON_ARRAY) && n >= least && n <= most) return n;
  if (is(array, PSPLIT_I_JSON_ARRAY) && least == most)
    psplit_i_json_wrong(array, "must be an array of %zu, not of %zu", most, n);
  else if (is(array, PSPLIT_I_JSON_ARRAY) && !n)
    psplit_i_json_wrong(array, "must not be empty");
  else if (is(array, PSPLIT_I_JSON_ARRAY))
    psplit_i_json_wrong(array, "must be an array of %zu to %zu, not of %zu", least, most, n);
  else
    psplit_i_json_must_be(array, least ? "an array that is not empty" : "an array");
  return 0;
}

psplit_i_json_item psplit_i_json_element(const psplit_i_json_item *array, size_t index) {
  const bool there = index < size_of(array, PSPLIT_I_JSON_ARRAY);
  return (psplit_i_json_item){.reader = array->reader,
                              .value = there ? &array->value->children[index] : NULL,
                              .parent = array,
                              .index = index};
}

/* --- values --- */

bool psplit_i_json_is_string(psplit_i_json_item item) { return is(&item, PSPLIT_I_JSON_STRING); }
bool psplit_i_json_is_integer(psplit_i_json_item item) { return is(&item, PSPLIT_I_JSON_INTEGER); }
bool psplit_i_json_is_number(psplit_i_json_item item) { return is_number(&item); }
bool psplit_i_json_is_array(psplit_i_json_item item) { return is(&item, PSPLIT_I_JSON_ARRAY); }

const char *psplit_i_json_borrow(psplit_i_json_item item) {
  return is(&item, PSPLIT_I_JSON_STRING) ? item.value->text : "";
}

double psplit_i_json_number_or(psplit_i_json_item item, double otherwise) {
  return is_number(&item) ? number_of(&item) : otherwise;
}

const char *psplit_i_json_copy(psplit_i_json_reader *reader, const char *text) {
  if (reader->code != PSPLIT_OK) return NULL;
  const char *copy = psplit_i_arena_strndup(reader->arena, text, strlen(text));
  if (!copy) reader->code = psplit_i_nomem(reader->diag);
  return copy;
}

static void read_text(const psplit_i_json_item *item, bool may_be_empty, const char **io_value) {
  if (!reads(item)) return;
  if (is(item, PSPLIT_I_JSON_STRING) && (may_be_empty || item->value->n)) {
    const char *copy = psplit_i_json_copy(item->reader, item->value->text);
    if (copy) *io_value = copy;
  } else {
    psplit_i_json_must_be(item, may_be_empty ? "a string" : "a string that is not empty");
  }
}

void psplit_i_json_text(psplit_i_json_item item, const char **io_value) {
  read_text(&item, true, io_value);
}

void psplit_i_json_name(psplit_i_json_item item, const char **io_value) {
  read_text(&item, false, io_value);
}

void psplit_i_json_choice(psplit_i_json_item item, const char *const *choices, uint32_t n,
                          uint32_t *io_value) {
  char list[300] = "";
  const char *text = is(&item, PSPLIT_I_JSON_STRING) ? item.value->text : NULL;
  if (!reads(&item)) return;
  for (uint32_t i = 0; i < n; i++) {
    if (text && strcmp(text, choices[i]) == 0) {
      *io_value = i;
      return;
    }
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s\"%s\"",
             i == 0       ? ""
             : i + 1 == n ? " or "
                          : ", ",
             choices[i]);
  }
  psplit_i_json_must_be(&item, "%s", list);
}

void psplit_i_json_flag(psplit_i_json_item item, bool *io_value) {
  if (!reads(&item)) return;
  if (is(&item, PSPLIT_I_JSON_TRUE) || is(&item, PSPLIT_I_JSON_FALSE))
    *io_value = is(&item, PSPLIT_I_JSON_TRUE);
  else
    psplit_i_json_must_be(&item, "true or false");
}

void psplit_i_json_i64(psplit_i_json_item item, int64_t least, int64_t most, int64_t *io_value) {
  const int64_t value = is(&item, PSPLIT_I_JSON_INTEGER) ? item.value->integer : 0;
  if (!reads(&item)) return;
  if (is(&item, PSPLIT_I_JSON_INTEGER) && value >= least && value <= most)
    *io_value = value;
  else if (least == most)
    psplit_i_json_must_be(&item, "%" PRId64, least);
  else if (most == INT64_MAX)
    psplit_i_json_must_be(&item, "an integer from %" PRId64, least);
  else
    psplit_i_json_must_be(&item, "an integer from %" PRId64 " to %" PRId64, least, most);
}

void psplit_i_json_u64(psplit_i_json_item item, uint64_t *io_value) {
  int64_t value = (int64_t)(*io_value & INT64_MAX);
  if (!reads(&item)) return;
  psplit_i_json_i64(item, 0, INT64_MAX, &value);
  if (item.reader->code == PSPLIT_OK) *io_value = (uint64_t)value;
}

void psplit_i_json_u32(psplit_i_json_item item, uint32_t least, uint32_t most, uint32_t *io_value) {
  int64_t value = *io_value;
  psplit_i_json_i64(item, least, most, &value);
  *io_value = (uint32_t)value;
}

void psplit_i_json_real(psplit_i_json_item item, double least, double most, double *io_value) {
  const double value = number_of(&item);
  if (!reads(&item)) return;
  if (is_number(&item) && value >= least && value <= most)
    *io_value = value;
  else if (most < HUGE_VAL)
    psplit_i_json_must_be(&item, "a number from %g to %g", least, most);
  else
    psplit_i_json_must_be(&item, "a number from %g", least);
}

void psplit_i_json_positive(psplit_i_json_item item, double most, double *io_value) {
  const double value = number_of(&item);
  if (!reads(&item)) return;
  if (is_number(&item) && value > 0 && value <= most)
    *io_value = value;
  else if (most < HUGE_VAL)
    psplit_i_json_must_be(&item, "a number above 0 up to %g", most);
  else
    psplit_i_json_must_be(&item, "a number above 0");
}

void *psplit_i_json_zeroed(psplit_i_json_reader *reader, size_t n, size_t size) {
  void *memory = reader->code == PSPLIT_OK ? psplit_i_arena_zeroed(reader->arena, n, size) : NULL;
  if (!memory && reader->code == PSPLIT_OK) reader->code = psplit_i_nomem(reader->diag);
  return memory;
}
