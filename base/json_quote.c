#include "json_quote.h"

#include <psplit/base.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ESCAPE = 6 }; /* "\u2028" */

/* How many of the n bytes stand for themselves. */
static size_t plain(const unsigned char *s, size_t n) {
  size_t run = 0;
  while (run < n) {
    const size_t length = psplit_i_printable_length(s + run, n - run);
    if (length == 0 || s[run] == '"' || s[run] == '\\') break;
    run += length;
  }
  return run;
}

/* The code point of a sequence of one to three bytes: all above are shown. */
static unsigned code_point(const unsigned char *s, size_t length) {
  return length == 1   ? s[0]
         : length == 2 ? (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu)
                       : (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
}

/* What stands for the character at `s`, which does not stand for itself; its bytes. */
static size_t escape(const unsigned char *s, size_t n, char out[MOST_ESCAPE + 1]) {
  const size_t length = psplit_i_utf8_length(s, n);
  if (*s == '"' || *s == '\\')
    snprintf(out, MOST_ESCAPE + 1, "\\%c", *s);
  else
    snprintf(out, MOST_ESCAPE + 1, "\\u%04x", length ? code_point(s, length) : 0xfffdu);
  return length ? length : 1;
}

void psplit_i_json_escape(psplit_i_text *out, const char *bytes, size_t n) {
  const unsigned char *s = (const unsigned char *)bytes;
  while (n) {
    char escaped[MOST_ESCAPE + 1] = "";
    const size_t run = plain(s, n), width = run < n ? escape(s + run, n - run, escaped) : 0;
    psplit_i_text_add(out, s, run);
    psplit_i_text_puts(out, escaped);
    s += run + width;
    n -= run + width;
  }
}

void psplit_i_json_quote(psplit_i_text *out, const char *value) {
  psplit_i_text_add(out, "\"", 1);
  psplit_i_json_escape(out, value, strlen(value));
  psplit_i_text_add(out, "\"", 1);
}

void psplit_json_print(FILE *out, const char *bytes, size_t n) {
  const unsigned char *s = (const unsigned char *)bytes;
  fputc('"', out);
  while (n) {
    char escaped[MOST_ESCAPE + 1] = "";
    const size_t run = plain(s, n), width = run < n ? escape(s + run, n - run, escaped) : 0;
    fwrite(s, 1, run, out);
    fputs(escaped, out);
    s += run + width;
    n -= run + width;
  }
  fputc('"', out);
}
