/* Reading JSON (RFC 8259) strictly: each failure names the file, the path of what is wrong and what
 * it must be, `devices[0].memory_bytes: must be an integer from 0, not "8 GiB"`.
 *
 * A reader remembers its first failure, of memory too: from then on nothing is read, and what was
 * to be set keeps its value. So a function reads all that it needs, and only who loops over
 * elements, allocates or takes a decision asks `code` in between. */
#ifndef PSPLIT_BASE_JSON_READ_H
#define PSPLIT_BASE_JSON_READ_H

#include <psplit/base.h>

#include "arena.h"

struct psplit_i_json_value;

typedef struct psplit_i_json_reader {
  psplit_diag *diag;
  psplit_i_arena *arena; /* what strings and arrays are copied to */
  const char *file;      /* stands before each path; NULL: the caller adds it */
  psplit_code code;      /* of the first failure */
} psplit_i_json_reader;

/* A place in a text and what is there. Paths are made when they are printed: an item holds on to
 * the one that it is in, which outlives it. */
typedef struct psplit_i_json_item {
  psplit_i_json_reader *reader;
  const struct psplit_i_json_value *value; /* NULL: missing */
  const struct psplit_i_json_item *parent; /* NULL: the whole text */
  const char *key;                         /* NULL: element `index` of an array */
  size_t index;
} psplit_i_json_item;

/* The whole text, to be released; what is accepted: base/json_tree.h. Errors: MALFORMED with line
 * and column, LIMIT, NOMEM. */
psplit_i_json_item psplit_i_json_load(psplit_i_json_reader *reader, const char *text, size_t n);
void psplit_i_json_release(psplit_i_json_item *root); /* safe on one that did not load */

/* The failure at an item: INVALID, or another. */
void psplit_i_json_wrong(const psplit_i_json_item *item, const char *format, ...)
  PSPLIT_PRINTF(2, 3);
void psplit_i_json_fail(const psplit_i_json_item *item, psplit_code code, const char *format, ...)
  PSPLIT_PRINTF(3, 4);

/* INVALID: "must be <format>, not <what it is>"; nothing where it is missing. */
void psplit_i_json_must_be(const psplit_i_json_item *item, const char *format, ...)
  PSPLIT_PRINTF(2, 3);

/* A member of an object. One that is missing is read as nothing is: it sets nothing. In what is
 * missing itself, all is. */
psplit_i_json_item psplit_i_json_find(const psplit_i_json_item *object, const char *key);
/* The same; a member that is missing is a failure. */
psplit_i_json_item psplit_i_json_need(const psplit_i_json_item *object, const char *key);
/* `item`, or a missing one in place of null. */
psplit_i_json_item psplit_i_json_unless_null(psplit_i_json_item item);
static inline bool psplit_i_json_given(psplit_i_json_item item) { return item.value != NULL; }

/* Fails at a key that is not one of `known`, with the one that is nearest. */
void psplit_i_json_keys(const psplit_i_json_item *object, const char *const *known, uint32_t n);
#define PSPLIT_I_JSON_KEYS(object, known) \
  psplit_i_json_keys((object), (known), (uint32_t)(sizeof(known) / sizeof *(known)))
/* The members, in the order of the file: *io_at begins as NULL. False: there are no more. */
bool psplit_i_json_next(const psplit_i_json_item *object, void **io_at, psplit_i_json_item *out);

/* Elements of an array of `least` to `most`; 0 where it is missing, or on failure. */
size_t psplit_i_json_length(const psplit_i_json_item *array, size_t least, size_t most);
psplit_i_json_item psplit_i_json_element(const psplit_i_json_item *array, size_t index);

/* For decisions, and for what may be anything: these never fail. */
bool psplit_i_json_is_string(psplit_i_json_item item);
bool psplit_i_json_is_integer(psplit_i_json_item item);
bool psplit_i_json_is_number(psplit_i_json_item item); /* with a fraction or without */
bool psplit_i_json_is_array(psplit_i_json_item item);
/* A string, until the text is released; "" where it is none. */
const char *psplit_i_json_borrow(psplit_i_json_item item);
double psplit_i_json_number_or(psplit_i_json_item item, double otherwise);

/* The rest read one value; *io_value is left alone where it is missing, and on failure. */

void psplit_i_json_text(psplit_i_json_item item, const char **io_value); /* may be empty */
void psplit_i_json_name(psplit_i_json_item item, const char **io_value); /* may not */
/* Position in `choices`. */
void psplit_i_json_choice(psplit_i_json_item item, const char *const *choices, uint32_t n,
                          uint32_t *io_value);
void psplit_i_json_flag(psplit_i_json_item item, bool *io_value);
/* least <= value <= most */
void psplit_i_json_i64(psplit_i_json_item item, int64_t least, int64_t most, int64_t *io_value);
void psplit_i_json_u64(psplit_i_json_item item, uint64_t *io_value); /* to 2^63 - 1 */
void psplit_i_json_u32(psplit_i_json_item item, uint32_t least, uint32_t most, uint32_t *io_value);
void psplit_i_json_real(psplit_i_json_item item, double least, double most, double *io_value);
/* 0 < value <= most */
void psplit_i_json_positive(psplit_i_json_item item, double most, double *io_value);

/* A copy in the reader's arena; NULL on failure. */
const char *psplit_i_json_copy(psplit_i_json_reader *reader, const char *text);
/* n zeroed items of `size` bytes in the reader's arena; NULL on failure. */
void *psplit_i_json_zeroed(psplit_i_json_reader *reader, size_t n, size_t size);
#define PSPLIT_I_JSON_NEW(reader, type, n) \
  ((type *)psplit_i_json_zeroed((reader), (n), sizeof(type)))

#endif
