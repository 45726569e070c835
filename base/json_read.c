#include "json_read.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "diag.h"
#include "unknown.h"

enum { PATH_BYTES = 400, KEY_BYTES = 100, MOST_LISTED = 12 };

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
  char must[300], is[64] = "";
  va_list args;
  if (!reads(item)) return;
  va_start(args, format);
  vsnprintf(must, sizeof must, format, args);
  va_end(args);
  switch (json_typeof(item->value)) {
    case JSON_OBJECT: snprintf(is, sizeof is, "an object"); break;
    case JSON_ARRAY: snprintf(is, sizeof is, "an array"); break;
    case JSON_STRING: snprintf(is, sizeof is, "\"%.50s\"", json_string_value(item->value)); break;
    case JSON_INTEGER:
      snprintf(is, sizeof is, "%" JSON_INTEGER_FORMAT, json_integer_value(item->value));
      break;
    case JSON_REAL: snprintf(is, sizeof is, "%g", json_real_value(item->value)); break;
    case JSON_TRUE: snprintf(is, sizeof is, "true"); break;
    case JSON_FALSE: snprintf(is, sizeof is, "false"); break;
    case JSON_NULL: snprintf(is, sizeof is, "null"); break;
  }
  psplit_i_json_wrong(item, "must be %s, not %s", must, is);
}

/* --- ways to items --- */

static psplit_code fail_to_load(const psplit_i_json_reader *r, const json_error_t *error) {
  const enum json_error_code code = json_error_code(error);
  /* Jansson says nothing where most of its own allocations fail. */
  if (code == json_error_out_of_memory || code == json_error_unknown)
    return psplit_i_nomem(r->diag);
  if (r->file)
    return psplit_i_fail(r->diag, PSPLIT_MALFORMED, "%s:%d:%d: %s", r->file, error->line,
                         error->column, error->text);
  return psplit_i_fail(r->diag, PSPLIT_MALFORMED, "line %d, column %d: %s", error->line,
                       error->column, error->text);
}

psplit_i_json_item psplit_i_json_load(psplit_i_json_reader *reader, const char *text, size_t n) {
  json_error_t error;
  const psplit_i_json_item root = {.reader = reader,
                                   .value = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error)};
  if (!root.value) reader->code = fail_to_load(reader, &error);
  return root;
}

void psplit_i_json_release(psplit_i_json_item *root) {
  json_decref((json_t *)(uintptr_t)root->value);
  root->value = NULL;
}

static bool is_object(const psplit_i_json_item *item) {
  if (!reads(item)) return false;
  if (!json_is_object(item->value)) psplit_i_json_must_be(item, "an object");
  return json_is_object(item->value);
}

psplit_i_json_item psplit_i_json_find(const psplit_i_json_item *object, const char *key) {
  psplit_i_json_item item = {.reader = object->reader, .parent = object, .key = key};
  if (is_object(object)) item.value = json_object_get(object->value, key);
  return item;
}

psplit_i_json_item psplit_i_json_need(const psplit_i_json_item *object, const char *key) {
  const psplit_i_json_item item = psplit_i_json_find(object, key);
  if (reads(object) && !item.value) psplit_i_json_wrong(&item, "is missing");
  return item;
}

psplit_i_json_item psplit_i_json_unless_null(psplit_i_json_item item) {
  if (json_is_null(item.value)) item.value = NULL;
  return item;
}

bool psplit_i_json_next(const psplit_i_json_item *object, void **io_at, psplit_i_json_item *out) {
  if (!is_object(object)) return false;
  json_t *value = (json_t *)(uintptr_t)object->value;
  *io_at = *io_at ? json_object_iter_next(value, *io_at) : json_object_iter(value);
  if (!*io_at) return false;
  *out = (psplit_i_json_item){.reader = object->reader,
                              .value = json_object_iter_value(*io_at),
                              .parent = object,
                              .key = json_object_iter_key(*io_at)};
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
      psplit_i_json_wrong(&item, "is not a key that is known here; did you mean %s?", known[near]);
    else
      psplit_i_json_wrong(&item, "is not a key that is known here; these are: %s%s", list,
                          n > MOST_LISTED ? " ..." : "");
  }
}

size_t psplit_i_json_length(const psplit_i_json_item *array, size_t least, size_t most) {
  const size_t n = json_array_size(array->value);
  if (!reads(array)) return 0;
  if (json_is_array(array->value) && n >= least && n <= most) return n;
  if (json_is_array(array->value) && least == most)
    psplit_i_json_wrong(array, "must be an array of %zu, not of %zu", most, n);
  else if (json_is_array(array->value) && !n)
    psplit_i_json_wrong(array, "must not be empty");
  else if (json_is_array(array->value))
    psplit_i_json_wrong(array, "must be an array of %zu to %zu, not of %zu", least, most, n);
  else
    psplit_i_json_must_be(array, least ? "an array that is not empty" : "an array");
  return 0;
}

psplit_i_json_item psplit_i_json_element(const psplit_i_json_item *array, size_t index) {
  return (psplit_i_json_item){.reader = array->reader,
                              .value = json_array_get(array->value, index),
                              .parent = array,
                              .index = index};
}

/* --- values --- */

bool psplit_i_json_is_string(psplit_i_json_item item) { return json_is_string(item.value); }
bool psplit_i_json_is_integer(psplit_i_json_item item) { return json_is_integer(item.value); }
bool psplit_i_json_is_number(psplit_i_json_item item) { return json_is_number(item.value); }
bool psplit_i_json_is_array(psplit_i_json_item item) { return json_is_array(item.value); }

const char *psplit_i_json_borrow(psplit_i_json_item item) {
  return json_is_string(item.value) ? json_string_value(item.value) : "";
}

double psplit_i_json_number_or(psplit_i_json_item item, double otherwise) {
  return json_is_number(item.value) ? json_number_value(item.value) : otherwise;
}

const char *psplit_i_json_copy(psplit_i_json_reader *reader, const char *text) {
  if (reader->code != PSPLIT_OK) return NULL;
  const char *copy = psplit_i_arena_strndup(reader->arena, text, strlen(text));
  if (!copy) reader->code = psplit_i_nomem(reader->diag);
  return copy;
}

static void read_text(const psplit_i_json_item *item, bool may_be_empty, const char **io_value) {
  if (!reads(item)) return;
  if (json_is_string(item->value) && (may_be_empty || json_string_length(item->value))) {
    const char *copy = psplit_i_json_copy(item->reader, json_string_value(item->value));
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
  const char *text = json_string_value(item.value);
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
  if (json_is_boolean(item.value))
    *io_value = json_is_true(item.value);
  else
    psplit_i_json_must_be(&item, "true or false");
}

void psplit_i_json_i64(psplit_i_json_item item, int64_t least, int64_t most, int64_t *io_value) {
  const int64_t value = json_integer_value(item.value);
  if (!reads(&item)) return;
  if (json_is_integer(item.value) && value >= least && value <= most)
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
  const double value = json_number_value(item.value);
  if (!reads(&item)) return;
  if (json_is_number(item.value) && value >= least && value <= most)
    *io_value = value;
  else if (most < HUGE_VAL)
    psplit_i_json_must_be(&item, "a number from %g to %g", least, most);
  else
    psplit_i_json_must_be(&item, "a number from %g", least);
}

void psplit_i_json_positive(psplit_i_json_item item, double most, double *io_value) {
  const double value = json_number_value(item.value);
  if (!reads(&item)) return;
  if (json_is_number(item.value) && value > 0 && value <= most)
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
