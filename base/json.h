/* Streaming JSON writer (RFC 8259) into a psplit_i_text. The caller makes well-formed sequences of
 * calls; the writer puts commas, indentation and escapes. Strings may hold any bytes: what is not
 * valid UTF-8 is written as U+FFFD, so the output is always valid. */
#ifndef PSPLIT_BASE_JSON_H
#define PSPLIT_BASE_JSON_H

#include "json_quote.h"
#include "text.h"

typedef struct psplit_i_json {
  psplit_i_text *out;
  unsigned depth;
  bool compact;    /* no newline inside; set it for one-line objects, unset it after */
  bool need_comma; /* a sibling stands before the next item */
  bool after_key;
} psplit_i_json;

/* Writes pretty-printed text (2 spaces) to `out`, which outlives the writer. */
void psplit_i_json_init(psplit_i_json *json, psplit_i_text *out);

void psplit_i_json_open(psplit_i_json *json, char bracket);  /* '{' or '[' */
void psplit_i_json_close(psplit_i_json *json, char bracket); /* '}' or ']' */
void psplit_i_json_key(psplit_i_json *json, const char *key);

void psplit_i_json_string(psplit_i_json *json, const char *value);
/* Whether `said`, read from JSON, is what a string of `text` is there: what is not UTF-8 is a
 * replacement character. */
bool psplit_i_json_says(const char *said, const char *text);
void psplit_i_json_int(psplit_i_json *json, int64_t value);
/* What readers take: a larger one, such as a sum that was too large, is written as INT64_MAX. */
void psplit_i_json_uint(psplit_i_json *json, uint64_t value);
/* Shortest text that reads back as the same double; null for NaN and infinities. */
void psplit_i_json_double(psplit_i_json *json, double value);
void psplit_i_json_bool(psplit_i_json *json, bool value);
void psplit_i_json_null(psplit_i_json *json);

#endif
