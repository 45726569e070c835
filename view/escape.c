#include <string.h>

#include "view.h"

void psplit_i_view_word(psplit_i_text *out, const char *name) {
  if (!*name)
    psplit_i_text_puts(out, "-");
  else if (strcmp(name, "-") == 0)
    psplit_i_text_puts(out, "\\x2d");
  else
    psplit_i_view_escaped(out, name, strlen(name));
}

/* `special`: printable characters that are escaped all the same. */
static void put_escaped(psplit_i_text *out, const char *text, size_t left, const char *special) {
  for (const unsigned char *s = (const unsigned char *)text; left;) {
    const size_t n = psplit_i_printable_length(s, left);
    const size_t width = n ? n : 1;
    if (*s == '\\')
      psplit_i_text_puts(out, "\\\\");
    else if (!n || (*s && strchr(special, *s)))
      psplit_i_text_addf(out, "\\x%02x", *s);
    else
      psplit_i_text_add(out, s, width);
    s += width;
    left -= width;
  }
}

void psplit_i_view_escaped(psplit_i_text *out, const char *text, size_t n) {
  put_escaped(out, text, n, " ,\"");
}

void psplit_i_view_line(psplit_i_text *out, const char *text) {
  put_escaped(out, text, strlen(text), "");
}

void psplit_i_view_dot_string(psplit_i_text *out, const char *name) {
  const unsigned char *s = (const unsigned char *)name;
  psplit_i_text_puts(out, "\"");
  for (size_t left = strlen(name); left;) {
    const size_t n = psplit_i_printable_length(s, left);
    const size_t width = n ? n : 1;
    if (*s == '"' || *s == '\\')
      psplit_i_text_addf(out, "\\%c", *s);
    else if (*s == '&')
      psplit_i_text_puts(out, "&amp;"); /* Graphviz reads character references */
    else if (!n)
      psplit_i_text_puts(out, "\xef\xbf\xbd");
    else
      psplit_i_text_add(out, s, width);
    s += width;
    left -= width;
  }
  psplit_i_text_puts(out, "\"");
}

void psplit_i_view_html(psplit_i_text *out, const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  for (size_t left = strlen(text); left;) {
    const size_t n = psplit_i_printable_length(s, left);
    const size_t width = n ? n : 1;
    switch (*s) {
      case '&': psplit_i_text_puts(out, "&amp;"); break;
      case '<': psplit_i_text_puts(out, "&lt;"); break;
      case '>': psplit_i_text_puts(out, "&gt;"); break;
      case '"': psplit_i_text_puts(out, "&quot;"); break;
      case '\'': psplit_i_text_puts(out, "&#39;"); break;
      default:
        if (n)
          psplit_i_text_add(out, s, width);
        else
          psplit_i_text_puts(out, "\xef\xbf\xbd");
    }
    s += width;
    left -= width;
  }
}
