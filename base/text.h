/* Growable byte string and text formatting. */
#ifndef PSPLIT_BASE_TEXT_H
#define PSPLIT_BASE_TEXT_H

#include <psplit/base.h>
#include <stddef.h>
#include <string.h>

/* Bytes with a terminating NUL, not counted in `n`. Failures are sticky: after a failed allocation
 * further calls are no-ops and `failed` stays true, so it can be checked once at the end. */
typedef struct psplit_i_text {
  char *bytes; /* NULL while empty */
  size_t n, capacity;
  bool failed;
} psplit_i_text;

void psplit_i_text_fini(psplit_i_text *text);
void psplit_i_text_add(psplit_i_text *text, const void *bytes, size_t n);
void psplit_i_text_addf(psplit_i_text *text, const char *format, ...) PSPLIT_PRINTF(2, 3);
void psplit_i_text_puts(psplit_i_text *text, const char *string);

/* Length of the valid UTF-8 sequence that starts at `s` (`n` bytes left), or 0. Overlong forms,
 * surrogates and values above U+10FFFF are not valid. */
size_t psplit_i_utf8_length(const unsigned char *s, size_t n);

bool psplit_i_is_utf8(const char *text);

/* The same for printable characters: 0 also for control characters, C1 included, and for characters
 * that change the order or the lines of others (U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to
 * U+2069). */
size_t psplit_i_printable_length(const unsigned char *s, size_t n);

/* Shell-style pattern over a whole name: `*`, `?`, `[a-z]`, `[!a-z]`, `\` quotes the next
 * character; fnmatch(3), where `*` also matches '/'. */
bool psplit_i_glob_match(const char *pattern, const char *name);

/* Whether a pattern selects this name. If `is_name`, the pattern itself is an existing name and
 * selects only that, so that any name can be given literally. */
bool psplit_i_name_match(const char *pattern, bool is_name, const char *name);

static inline bool psplit_i_ends_with(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

/* Parses an unsigned decimal integer strictly: digits only, whole string, no overflow. */
bool psplit_i_parse_u64(const char *text, uint64_t *out);

#endif
