/* JSON text (RFC 8259) as a tree, for base/json_read.h. Strict: one array or object, no key twice,
 * UTF-8 alone, no NUL in strings, at most PSPLIT_I_JSON_DEPTH levels. Integers within 64 bits are
 * exact, larger ones are reals. A parser of our own because what it reads is hostile and memory may
 * run out: libraries either read past their buffers then, or round integers above 2^53. */
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
  /* Of the end of what is wrong, from 1; columns are characters. Line 0: the whole is no JSON. */
  size_t line, column;
  char what[96]; /* "':' expected near '1'" */
} psplit_i_json_place;

/* The tree of the n bytes at `text`, which need no NUL, in `arena`. O(n log n) time and, beside the
 * arena, 32 bytes for each value of what is open. Errors: MALFORMED with *out_place, LIMIT (more
 * than 2^32 - 1 values in one), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_json_parse(const char *text, size_t n, psplit_i_arena *arena,
                                                psplit_i_json_place *out_place,
                                                const psplit_i_json_value **out);

/* A number of any kind, rounded where a double does not hold it; false where it is none. */
bool psplit_i_json_as_double(const psplit_i_json_value *value, double *out);

#endif
