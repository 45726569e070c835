#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lexer.h"
#include "names.h"
#include "print.h"

void psplit_i_print(psplit_i_printer *printer, const char *text) {
  psplit_i_text_puts(printer->out, text);
}

void psplit_i_print_line(psplit_i_printer *printer) {
  psplit_i_text_addf(printer->out, "\n%*s", (int)(2 * printer->indent), "");
}

void psplit_i_print_comma(psplit_i_printer *printer, bool first) {
  if (!first) psplit_i_print(printer, ", ");
}

/* Whether "..." can hold it so that a reader sees it as it is: characters that may be shown, and
 * the end of a line. */
static bool is_plain(const unsigned char *bytes, size_t n) {
  for (size_t i = 0; i < n;) {
    const size_t length = bytes[i] == '\n' ? 1 : psplit_i_printable_length(bytes + i, n - i);
    if (!length) return false;
    i += length;
  }
  return true;
}

static void print_escaped(psplit_i_printer *printer, const unsigned char *bytes, size_t n) {
  psplit_i_print(printer, "e\"");
  for (size_t i = 0; i < n;) {
    const size_t length = psplit_i_printable_length(bytes + i, n - i);
    if (length > 1) {
      psplit_i_text_add(printer->out, bytes + i, length);
      i += length;
      continue;
    }
    const unsigned char c = bytes[i++];
    switch (c) {
      case '\n': psplit_i_print(printer, "\\n"); break;
      case '\r': psplit_i_print(printer, "\\r"); break;
      case '\t': psplit_i_print(printer, "\\t"); break;
      case '"':
      case '\\': psplit_i_text_addf(printer->out, "\\%c", c); break;
      default:
        psplit_i_text_addf(printer->out, c < 0x20 || c >= 0x7f ? "\\x%02x" : "%c", (unsigned)c);
    }
  }
  psplit_i_print(printer, "\"");
}

/* Text that is mostly no text is shown by its bytes. */
static bool is_binary(const unsigned char *bytes, size_t n) {
  size_t n_odd = 0;
  for (size_t i = 0; i < n; i++) n_odd += bytes[i] < 0x20 || bytes[i] >= 0x7f;
  return 3 * n_odd > n;
}

void psplit_i_print_string(psplit_i_printer *printer, const void *bytes, size_t n) {
  const unsigned char *c = bytes;
  if (!is_plain(c, n)) {
    if (!is_binary(c, n)) {
      print_escaped(printer, c, n);
      return;
    }
    psplit_i_print(printer, "x\"");
    for (size_t i = 0; i < n; i++) psplit_i_text_addf(printer->out, "%02x", (unsigned)c[i]);
    psplit_i_print(printer, "\"");
    return;
  }
  psplit_i_print(printer, "\"");
  for (size_t i = 0; i < n; i++) {
    if (c[i] == '"' || c[i] == '\\') psplit_i_print(printer, "\\");
    psplit_i_text_add(printer->out, c + i, 1);
  }
  psplit_i_print(printer, "\"");
}

void psplit_i_print_word(psplit_i_printer *printer, const char *name) {
  const size_t n = strlen(name);
  if (psplit_i_is_word(name, n))
    psplit_i_print(printer, name);
  else
    psplit_i_print_string(printer, name, n);
}

void psplit_i_print_name(psplit_i_printer *printer, const char *name) {
  const size_t n = strlen(name);
  if (psplit_i_starts_type(name, n) || psplit_i_is_real_word(name, n))
    psplit_i_print_string(printer, name, n);
  else
    psplit_i_print_word(printer, name);
}

/* A nan by its sign, and by its bits where they are not the usual ones. */
static void print_nan(psplit_i_printer *printer, uint64_t bits, unsigned n_bytes, uint64_t usual) {
  const uint64_t sign = UINT64_C(1) << (8 * n_bytes - 1);
  if ((bits & ~sign) == usual) {
    psplit_i_print(printer, bits & sign ? "-nan" : "nan");
    return;
  }
  psplit_i_text_addf(printer->out, "nan(x\"%0*" PRIx64 "\")", (int)(2 * n_bytes), bits);
}

static void print_real(psplit_i_printer *printer, const char *text, bool exact) {
  psplit_i_print(printer, text);
  if (exact && !strpbrk(text, ".eni")) psplit_i_print(printer, ".0");
}

void psplit_i_print_float(psplit_i_printer *printer, float value, bool exact) {
  char text[64];
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isnan(value)) {
    print_nan(printer, bits, 4, UINT32_C(0x7fc00000));
    return;
  }
  for (int digits = 6; digits <= 9; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, (double)value);
    if (strtof(text, NULL) == value) break;
  }
  print_real(printer, text, exact);
}

void psplit_i_print_double(psplit_i_printer *printer, double value) {
  char text[64];
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isnan(value)) {
    print_nan(printer, bits, 8, UINT64_C(0x7ff8000000000000));
    return;
  }
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  print_real(printer, text, false);
}
