#include "diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

/* What a terminal may act on becomes '?': control characters, the C1 ones of UTF-8 (U+0080 to
 * U+009F) too, and bytes that are not UTF-8, such as a character that the end of `text` cut. */
static void make_printable(char *text) {
  unsigned char *c = (unsigned char *)text;
  for (size_t left = strlen(text); left;) {
    const size_t length = psplit_i_utf8_length(c, left);
    const bool control = *c < 0x20 || *c == 0x7f || (length == 2 && *c == 0xc2 && c[1] < 0xa0);
    const size_t n = length ? length : 1;
    if (control || !length) memset(c, '?', n);
    c += n;
    left -= n;
  }
}

psplit_code psplit_i_fail(psplit_diag *diag, psplit_code code, const char *format, ...) {
  if (!diag || diag->code != PSPLIT_OK) return code;
  va_list args;
  va_start(args, format);
  vsnprintf(diag->message, sizeof diag->message, format, args);
  va_end(args);
  make_printable(diag->message);
  diag->code = code;
  return code;
}

void psplit_i_diag_context(psplit_diag *diag, const char *format, ...) {
  if (!diag || diag->code == PSPLIT_OK) return;
  char joined[PSPLIT_DIAG_BYTES];
  va_list args;
  va_start(args, format);
  int used = vsnprintf(joined, sizeof joined, format, args);
  va_end(args);
  if (used < 0 || (size_t)used >= sizeof joined - 3) return;
  size_t n = (size_t)used;
  joined[n++] = ':';
  joined[n++] = ' ';
  for (const char *c = diag->message; *c && n < sizeof joined - 1; c++) joined[n++] = *c;
  joined[n] = '\0';
  make_printable(joined);
  memcpy(diag->message, joined, n + 1);
}

psplit_code psplit_i_nomem(psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_NOMEM, "out of memory");
}

void psplit_i_say(const psplit_logger *logger, psplit_severity severity, const char *format, ...) {
  if (!logger || !logger->emit) return;
  char line[PSPLIT_DIAG_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  make_printable(line);
  logger->emit(logger->user, severity, line);
}

const char *psplit_code_name(psplit_code code) {
  switch (code) {
    case PSPLIT_OK: return "OK";
    case PSPLIT_NOMEM: return "NOMEM";
    case PSPLIT_IO: return "IO";
    case PSPLIT_MALFORMED: return "MALFORMED";
    case PSPLIT_INVALID: return "INVALID";
    case PSPLIT_UNSUPPORTED: return "UNSUPPORTED";
    case PSPLIT_LIMIT: return "LIMIT";
    case PSPLIT_INFEASIBLE: return "INFEASIBLE";
    case PSPLIT_PLUGIN: return "PLUGIN";
    case PSPLIT_USAGE: return "USAGE";
    case PSPLIT_MISMATCH: return "MISMATCH";
    case PSPLIT_INTERNAL: return "INTERNAL";
  }
  return "UNKNOWN";
}

int psplit_code_exit_status(psplit_code code) {
  switch (code) {
    case PSPLIT_OK: return 0;
    case PSPLIT_MISMATCH: return 1;
    case PSPLIT_USAGE: return 2;
    case PSPLIT_IO: return 3;
    case PSPLIT_MALFORMED:
    case PSPLIT_INVALID: return 4;
    case PSPLIT_UNSUPPORTED: return 5;
    case PSPLIT_NOMEM:
    case PSPLIT_LIMIT: return 6;
    case PSPLIT_INFEASIBLE: return 7;
    case PSPLIT_PLUGIN: return 8;
    case PSPLIT_INTERNAL: break;
  }
  return 70;
}

const char *psplit_version(void) { return PSPLIT_VERSION; }
