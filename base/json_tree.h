/* Parser of JSON (RFC 8259) into a tree, for base/json_read.h. Strict: one array or object, no
 * duplicate keys, UTF-8 only, no NUL in strings, at most PSPLIT_I_JSON_DEPTH levels. Integers
 * within 64 bits are exact, larger ones are reals. An own parser, since input is hostile and memory
 * may run out: libraries either read beyond their buffers then, or round integers above 2^53. */
#ifndef PSPLIT_BASE_JSON_TREE_H
#define PSPLIT_BASE_JSON_TREE_H

#include <psplit/base.h>

#include "arena.h"

enum { PSPLIT_I_JSON_DEPTH = 1000 };

typedef enum psplit_i_json_kind {
  PSPLIT_I_JSON_OBJECT,
  PSPLIT_I_JSON_ARRAY,
  PSPLIT_I_JSON_STRING,
  PSPLIT_I_JSON_INTEGER,
  PSPLIT_I_JSON_UNSIGNED, /* an integer from 2^63 to 2^64 - 1 */
  PSPLIT_I_JSON_REAL,
  PSPLIT_I_JSON_TRUE,
  PSPLIT_I_JSON_FALSE,
  PSPLIT_I_JSON_NULL
} psplit_i_json_kind;

typedef struct psplit_i_json_value psplit_i_json_value;
struct psplit_i_json_value {
  psplit_i_json_kind kind;
  uint32_t n;      /* members, elements, or bytes of the string */
  const char *key; /* of a member of an object; else NULL */
  union {
    const psplit_i_json_value *children; /* members or elements, in the order of the text */
    const char *text;                    /* NUL-terminated */
    int64_t integer;
    uint64_t natural; /* of UNSIGNED */
    double real;
  };
};

typedef struct psplit_i_json_place {
  /* End of the error, from 1; columns are characters. Line 0: the text as a whole is not JSON. */
  size_t line, column;
  char what[96]; /* "':' expected near '1'" */
} psplit_i_json_place;

/* Parses n bytes at `text`, not necessarily NUL-terminated, into a tree in `arena`. O(n log n) time
 * and, in addition to the arena, 32 bytes for each value of open arrays and objects. Errors:
 * MALFORMED with *out_place, LIMIT (more than 2^32 - 1 values in one), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_json_parse(const char *text, size_t n, psplit_i_arena *arena,
                                                psplit_i_json_place *out_place,
                                                const psplit_i_json_value **out);

/* A number of any kind, rounded to double; false if it is not a number. */
bool psplit_i_json_as_double(const psplit_i_json_value *value, double *out);

#endif
