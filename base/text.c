#include "text.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "vec.h"

void psplit_i_text_fini(psplit_i_text *text) {
  free(text->bytes);
  *text = (psplit_i_text){0};
}

static bool reserve(psplit_i_text *text, size_t n) {
  if (text->failed) return false;
  if (n == SIZE_MAX ||
      !psplit_i_vec_grow((void **)&text->bytes, &text->capacity, text->n, n + 1, 1))
    text->failed = true;
  return !text->failed;
}

void psplit_i_text_add(psplit_i_text *text, const void *bytes, size_t n) {
  if (!reserve(text, n)) return;
  if (n) memcpy(text->bytes + text->n, bytes, n);
  text->n += n;
  text->bytes[text->n] = '\0';
}

void psplit_i_text_puts(psplit_i_text *text, const char *string) {
  psplit_i_text_add(text, string, strlen(string));
}

void psplit_i_text_addf(psplit_i_text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  const psplit_i_plain_numbers numbers = psplit_i_plain_numbers_begin();
  const int need = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (need >= 0 && reserve(text, (size_t)need)) {
    vsnprintf(text->bytes + text->n, (size_t)need + 1, format, again);
    text->n += (size_t)need;
  } else {
    text->failed = true;
  }
  psplit_i_plain_numbers_end(numbers);
  va_end(again);
}

size_t psplit_i_utf8_length(const unsigned char *s, size_t n) {
  if (n == 0) return 0;
  if (s[0] < 0x80) return 1;
  const size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
  if (s[0] < 0xc2 || s[0] > 0xf4 || n < length) return 0;
  for (size_t i = 1; i < length; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if (s[0] == 0xe0 && s[1] < 0xa0) return 0; /* overlong */
  if (s[0] == 0xed && s[1] > 0x9f) return 0; /* surrogates */
  if (s[0] == 0xf0 && s[1] < 0x90) return 0; /* overlong */
  if (s[0] == 0xf4 && s[1] > 0x8f) return 0; /* above U+10FFFF */
  return length;
}

static bool reorders(const unsigned char *s, size_t length) {
  if (length == 2) return s[0] == 0xd8 && s[1] == 0x9c;
  if (length != 3 || s[0] != 0xe2) return false;
  if (s[1] == 0x80) return s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xa8 && s[2] <= 0xae);
  return s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9;
}

size_t psplit_i_printable_length(const unsigned char *s, size_t n) {
  const size_t length = psplit_i_utf8_length(s, n);
  if (length == 1) return *s < 0x20 || *s == 0x7f ? 0 : 1;
  if (length == 2 && *s == 0xc2 && s[1] < 0xa0) return 0;
  return reorders(s, length) ? 0 : length;
}

bool psplit_i_is_utf8(const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  for (size_t left = strlen(text); left;) {
    const size_t n = psplit_i_utf8_length(s, left);
    if (!n) return false;
    s += n;
    left -= n;
  }
  return true;
}

bool psplit_i_glob_match(const char *pattern, const char *name) {
  return fnmatch(pattern, name, 0) == 0;
}

bool psplit_i_name_match(const char *pattern, bool is_name, const char *name) {
  return is_name ? strcmp(pattern, name) == 0 : psplit_i_glob_match(pattern, name);
}

bool psplit_i_parse_u64(const char *text, uint64_t *out) {
  if (!*text) return false;
  uint64_t value = 0;
  for (; *text; text++) {
    if (*text < '0' || *text > '9') return false;
    const unsigned digit = (unsigned)(*text - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return true;
}
