/* Numbers, strings and names. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "parse.h"

static bool at_number(const psplit_i_lexer *lexer, bool real) {
  const psplit_i_token *token = &lexer->token;
  if (token->kind == PSPLIT_I_TOKEN_INTEGER) return true;
  if (token->kind == PSPLIT_I_TOKEN_REAL) return real;
  return real && token->kind == PSPLIT_I_TOKEN_WORD &&
         psplit_i_is_real_word(token->bytes, token->n);
}

int64_t psplit_i_parse_int(psplit_i_parser *parser, int64_t least, int64_t most, const char *what) {
  psplit_i_lexer *lexer = &parser->lexer;
  if (!at_number(lexer, false)) {
    psplit_i_expected(lexer, what);
    return 0;
  }
  const psplit_i_token *token = &lexer->token;
  const bool negative = token->bytes[0] == '-';
  const uint64_t bound = negative ? (uint64_t)0 - (uint64_t)least : (uint64_t)most;
  uint64_t magnitude = 0;
  for (size_t i = negative; i < token->n; i++) {
    const unsigned digit = (unsigned)(token->bytes[i] - '0');
    if ((negative && least > 0) || digit > bound || magnitude > (bound - digit) / 10) {
      psplit_i_error_at(lexer, token->at, "expected %s from %" PRId64 " to %" PRId64, what, least,
                        most);
      return 0;
    }
    magnitude = magnitude * 10 + digit;
  }
  psplit_i_lexer_next(lexer);
  return negative ? (int64_t)((uint64_t)0 - magnitude) : (int64_t)magnitude;
}

uint64_t psplit_i_parse_uint(psplit_i_parser *parser, uint64_t most, const char *what) {
  psplit_i_lexer *lexer = &parser->lexer;
  const psplit_i_token *token = &lexer->token;
  if (!at_number(lexer, false)) {
    psplit_i_expected(lexer, what);
    return 0;
  }
  uint64_t value = 0;
  for (size_t i = 0; i < token->n; i++) {
    const unsigned digit = (unsigned)(token->bytes[i] - '0');
    if (token->bytes[i] == '-' || digit > most || value > (most - digit) / 10) {
      psplit_i_error_at(lexer, token->at, "expected %s from 0 to %" PRIu64, what, most);
      return 0;
    }
    value = value * 10 + digit;
  }
  psplit_i_lexer_next(lexer);
  return value;
}

/* The number in the token as a C string; false, with an error, where there is none. `text` holds
 * what no number that is meant exceeds: the decimal expansion of a double has up to 1,075 digits.
 */
static bool take_real(psplit_i_parser *parser, char text[1200]) {
  psplit_i_lexer *lexer = &parser->lexer;
  const psplit_i_token *token = &lexer->token;
  const bool after_sign = token->kind == PSPLIT_I_TOKEN_REAL && token->bytes[0] == '-' &&
                          token->n > 1 && (token->bytes[1] < '0' || token->bytes[1] > '9');
  if (!at_number(lexer, true) || token->n >= 1200 ||
      (after_sign && !psplit_i_is_real_word(token->bytes + 1, token->n - 1))) {
    psplit_i_expected(lexer, "a number");
    return false;
  }
  memcpy(text, token->bytes, token->n);
  text[token->n] = '\0';
  psplit_i_lexer_next(lexer);
  return true;
}

/* The bits in nan(x"..."), most significant byte first; false where no '(' follows a nan. */
static bool nan_bits(psplit_i_parser *parser, unsigned n_bytes, uint64_t *out) {
  if (!psplit_i_accept(&parser->lexer, "(")) return false;
  const size_t at = parser->lexer.token.at;
  const ProtobufCBinaryData bits =
    psplit_i_parse_bytes(parser, "the bytes of the number, x\"...\"");
  if (bits.len != n_bytes) psplit_i_error_at(&parser->lexer, at, "expected %u bytes", n_bytes);
  *out = 0;
  for (size_t i = 0; i < bits.len; i++) *out = *out << 8 | bits.data[i];
  psplit_i_expect(&parser->lexer, ")", "after the bytes of a nan");
  return true;
}

float psplit_i_parse_float(psplit_i_parser *parser) {
  char text[1200];
  if (!take_real(parser, text)) return 0;
  const float value = strtof(text, NULL);
  uint64_t bits;
  if (!isnan(value) || !nan_bits(parser, 4, &bits)) return value;
  const uint32_t narrow = (uint32_t)bits;
  float out;
  memcpy(&out, &narrow, sizeof out);
  return out;
}

double psplit_i_parse_double(psplit_i_parser *parser) {
  char text[1200];
  if (!take_real(parser, text)) return 0;
  double value = strtod(text, NULL);
  uint64_t bits;
  if (isnan(value) && nan_bits(parser, 8, &bits)) memcpy(&value, &bits, sizeof value);
  return value;
}

ProtobufCBinaryData psplit_i_parse_bytes(psplit_i_parser *parser, const char *what) {
  psplit_i_lexer *lexer = &parser->lexer;
  ProtobufCBinaryData out = {0};
  if (lexer->token.kind != PSPLIT_I_TOKEN_STRING) {
    psplit_i_expected(lexer, what);
    return out;
  }
  out.data = (uint8_t *)(uintptr_t)lexer->token.bytes; /* decoded, in the arena */
  out.len = lexer->token.n;
  psplit_i_lexer_next(lexer);
  return out;
}

static char *empty(psplit_i_parser *parser) {
  *parser->no_string = '\0';
  return parser->no_string;
}

char *psplit_i_parse_string(psplit_i_parser *parser, const char *what) {
  const size_t at = parser->lexer.token.at;
  const ProtobufCBinaryData bytes = psplit_i_parse_bytes(parser, what);
  if (!bytes.data) return empty(parser);
  if (memchr(bytes.data, 0, bytes.len))
    psplit_i_error_at(&parser->lexer, at, "this string may not hold a NUL byte");
  return (char *)bytes.data;
}

bool psplit_i_at_name(const psplit_i_parser *parser) {
  const psplit_i_token_kind kind = parser->lexer.token.kind;
  return kind == PSPLIT_I_TOKEN_WORD || kind == PSPLIT_I_TOKEN_STRING;
}

static char *copy(psplit_i_parser *parser, const char *text, size_t n) {
  char *out = psplit_i_arena_strndup(parser->arena, text, n);
  if (out) return out;
  psplit_i_lexer_fail(&parser->lexer, psplit_i_nomem(parser->lexer.diag));
  return empty(parser);
}

char *psplit_i_token_string(psplit_i_parser *parser) {
  return copy(parser, parser->lexer.token.bytes, parser->lexer.token.n);
}

char *psplit_i_parse_name(psplit_i_parser *parser, const char *what) {
  if (parser->lexer.token.kind != PSPLIT_I_TOKEN_WORD) return psplit_i_parse_string(parser, what);
  char *out = psplit_i_token_string(parser);
  psplit_i_lexer_next(&parser->lexer);
  return out;
}

char *psplit_i_parse_optional_name(psplit_i_parser *parser) {
  return psplit_i_at_name(parser) ? psplit_i_parse_name(parser, "") : copy(parser, "", 0);
}
