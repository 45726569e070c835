/* Streaming JSON writer (RFC 8259) into a psplit_i_text. The caller is responsible for the
 * structure; the writer adds commas, indentation and escapes. Strings may contain any bytes:
 * invalid UTF-8 is written as U+FFFD, so the output is always valid. */
#ifndef PSPLIT_BASE_JSON_H
#define PSPLIT_BASE_JSON_H

#include "json_quote.h"
#include "text.h"

typedef struct psplit_i_json {
  psplit_i_text *out;
  unsigned depth;
  bool compact;    /* no newlines inside; to be set for one-line objects and reset afterwards */
  bool need_comma; /* a sibling precedes the next item */
  bool after_key;
} psplit_i_json;

/* Writes pretty-printed text (2 spaces) to `out`, which must outlive the writer. */
void psplit_i_json_init(psplit_i_json *json, psplit_i_text *out);

void psplit_i_json_open(psplit_i_json *json, char bracket);  /* '{' or '[' */
void psplit_i_json_close(psplit_i_json *json, char bracket); /* '}' or ']' */
void psplit_i_json_key(psplit_i_json *json, const char *key);

void psplit_i_json_string(psplit_i_json *json, const char *value);
/* Whether `said`, read from JSON, is the written form of `text`, in which invalid UTF-8 was
 * replaced. */
bool psplit_i_json_says(const char *said, const char *text);
void psplit_i_json_int(psplit_i_json *json, int64_t value);
/* Values above INT64_MAX, such as saturated sums, are written as INT64_MAX, the limit of
 * readers. */
void psplit_i_json_uint(psplit_i_json *json, uint64_t value);
/* Shortest text that reads back as the same double; null for NaN and infinities. */
void psplit_i_json_double(psplit_i_json *json, double value);
void psplit_i_json_bool(psplit_i_json *json, bool value);
void psplit_i_json_null(psplit_i_json *json);

#endif
