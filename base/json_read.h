/* Strict JSON input (RFC 8259): each failure names the file, the path of the wrong value and the
 * requirement, `devices[0].memory_bytes: must be an integer from 0, not "8 GiB"`.
 *
 * Failures are sticky, out of memory included: after the first one nothing is read, and outputs
 * keep their values. So a function can read everything it needs without checks; only loops over
 * elements, allocations and decisions must check `code`. */
#ifndef PSPLIT_BASE_JSON_READ_H
#define PSPLIT_BASE_JSON_READ_H

#include <psplit/base.h>

#include "arena.h"

struct psplit_i_json_value;

typedef struct psplit_i_json_reader {
  psplit_diag *diag;
  psplit_i_arena *arena; /* for copies of strings and arrays */
  const char *file;      /* prefix of each path; NULL: the caller adds it */
  psplit_code code;      /* of the first failure */
} psplit_i_json_reader;

/* A value and its path. Paths are built only when printed: an item refers to its parent item, which
 * must outlive it. */
typedef struct psplit_i_json_item {
  psplit_i_json_reader *reader;
  const struct psplit_i_json_value *value; /* NULL: missing */
  const struct psplit_i_json_item *parent; /* NULL: the whole text */
  const char *key;                         /* NULL: element `index` of an array */
  size_t index;
} psplit_i_json_item;

/* Parses the whole text; must be released. The accepted syntax: base/json_tree.h. Errors: MALFORMED
 * with line and column, LIMIT, NOMEM. */
psplit_i_json_item psplit_i_json_load(psplit_i_json_reader *reader, const char *text, size_t n);
void psplit_i_json_release(psplit_i_json_item *root); /* safe on one that did not load */

/* Records a failure at an item: INVALID, or another code. */
void psplit_i_json_wrong(const psplit_i_json_item *item, const char *format, ...)
  PSPLIT_PRINTF(2, 3);
void psplit_i_json_fail(const psplit_i_json_item *item, psplit_code code, const char *format, ...)
  PSPLIT_PRINTF(3, 4);

/* INVALID: "must be <format>, not <value>"; nothing if the item is missing. */
void psplit_i_json_must_be(const psplit_i_json_item *item, const char *format, ...)
  PSPLIT_PRINTF(2, 3);

/* A member of an object. Reading a missing item has no effect; members of missing objects are
 * missing. */
psplit_i_json_item psplit_i_json_find(const psplit_i_json_item *object, const char *key);
/* The same; a missing member is a failure. */
psplit_i_json_item psplit_i_json_need(const psplit_i_json_item *object, const char *key);
/* `item`, or a missing item if it is null. */
psplit_i_json_item psplit_i_json_unless_null(psplit_i_json_item item);
static inline bool psplit_i_json_given(psplit_i_json_item item) { return item.value != NULL; }

/* Fails at a key that is not in `known`, and suggests the nearest one. */
void psplit_i_json_keys(const psplit_i_json_item *object, const char *const *known, uint32_t n);
#define PSPLIT_I_JSON_KEYS(object, known) \
  psplit_i_json_keys((object), (known), (uint32_t)(sizeof(known) / sizeof *(known)))
/* Iterates over members in file order: *io_at is NULL at first. False: no more. */
bool psplit_i_json_next(const psplit_i_json_item *object, void **io_at, psplit_i_json_item *out);

/* Number of elements of an array, which must be in least..most; 0 if it is missing, or on
 * failure. */
size_t psplit_i_json_length(const psplit_i_json_item *array, size_t least, size_t most);
psplit_i_json_item psplit_i_json_element(const psplit_i_json_item *array, size_t index);

/* Type tests; they never fail. */
bool psplit_i_json_is_string(psplit_i_json_item item);
bool psplit_i_json_is_integer(psplit_i_json_item item);
bool psplit_i_json_is_number(psplit_i_json_item item); /* with a fraction or without */
bool psplit_i_json_is_array(psplit_i_json_item item);
/* A string, valid until the text is released; "" if it is not one. */
const char *psplit_i_json_borrow(psplit_i_json_item item);
double psplit_i_json_number_or(psplit_i_json_item item, double otherwise);

/* The following read one value; *io_value is unchanged if it is missing, and on failure. */

void psplit_i_json_text(psplit_i_json_item item, const char **io_value); /* may be empty */
void psplit_i_json_name(psplit_i_json_item item, const char **io_value); /* may not */
/* Index in `choices`. */
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
