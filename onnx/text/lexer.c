#include "lexer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The C library's answers depend on the locale. */
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool psplit_i_is_word(const char *text, size_t n) {
  if (n == 0 || !is_letter(text[0])) return false;
  for (size_t i = 1; i < n; i++)
    if (!is_letter(text[i]) && !is_digit(text[i])) return false;
  return true;
}

void psplit_i_lexer_fail(psplit_i_lexer *lexer, psplit_code code) {
  if (lexer->code == PSPLIT_OK) lexer->code = code;
  lexer->token.kind = PSPLIT_I_TOKEN_END;
  lexer->next = lexer->n_text;
}

void psplit_i_error_at(psplit_i_lexer *lexer, size_t at, const char *format, ...) {
  if (lexer->code != PSPLIT_OK) return;
  char what[PSPLIT_DIAG_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  size_t line = 1, column = 1;
  for (size_t i = 0; i < at; i++) {
    column++;
    if (lexer->text[i] == '\n')
      line++, column = 1;
    else if (((unsigned char)lexer->text[i] & 0xc0) == 0x80)
      column--; /* inside a character */
  }
  psplit_i_lexer_fail(lexer, psplit_i_fail(lexer->diag, PSPLIT_MALFORMED, "%s%s%zu:%zu: %s",
                                           lexer->file ? lexer->file : "", lexer->file ? ":" : "",
                                           line, column, what));
}

void psplit_i_expected(psplit_i_lexer *lexer, const char *what) {
  const psplit_i_token *token = &lexer->token;
  const int n = token->n < 60 ? (int)token->n : 60;
  switch (token->kind) {
    case PSPLIT_I_TOKEN_END:
      psplit_i_error_at(lexer, token->at, "expected %s, found the end of the text", what);
      break;
    case PSPLIT_I_TOKEN_STRING:
      psplit_i_error_at(lexer, token->at, "expected %s, found the string \"%.*s\"", what, n,
                        token->bytes);
      break;
    default:
      psplit_i_error_at(lexer, token->at, "expected %s, found '%.*s'", what, n, token->bytes);
  }
}

/* Moves over blanks and comments. */
static void skip_blanks(psplit_i_lexer *lexer) {
  while (lexer->next < lexer->n_text) {
    const char c = lexer->text[lexer->next];
    if (c == '#') {
      const char *end = memchr(lexer->text + lexer->next, '\n', lexer->n_text - lexer->next);
      lexer->next = end ? (size_t)(end - lexer->text) : lexer->n_text;
    } else if (is_blank(c)) {
      lexer->next++;
    } else {
      return;
    }
  }
}

/* The byte an escape of e"..." stands for; `at` is that of its backslash. Returns its length, 0
 * after an error. */
static size_t unescape(psplit_i_lexer *lexer, size_t at, size_t end, char *out) {
  const char *c = lexer->text + at;
  switch (end - at > 1 ? c[1] : '\0') {
    case 'n': *out = '\n'; return 2;
    case 'r': *out = '\r'; return 2;
    case 't': *out = '\t'; return 2;
    case '\\':
    case '"': *out = c[1]; return 2;
    case 'x':
      if (end - at > 3 && hex_digit(c[2]) >= 0 && hex_digit(c[3]) >= 0) {
        *out = (char)(hex_digit(c[2]) * 16 + hex_digit(c[3]));
        return 4;
      }
      break;
    default: break;
  }
  psplit_i_error_at(lexer, at, "expected one of \\n \\r \\t \\\\ \\\" \\xHH in e\"...\"");
  return 0;
}

/* Decodes text[first, end), the inside of a string literal, into `out`; returns its length. */
static size_t decode(psplit_i_lexer *lexer, char kind, size_t first, size_t end, char *out) {
  size_t n = 0;
  for (size_t i = first; i < end;) {
    const char c = lexer->text[i];
    if (kind == 'x') {
      const int high = hex_digit(c), low = i + 1 < end ? hex_digit(lexer->text[i + 1]) : -1;
      if (is_blank(c)) {
        i++;
      } else if (high < 0 || low < 0) {
        psplit_i_error_at(lexer, i, "expected two hexadecimal digits for each byte of x\"...\"");
        return 0;
      } else {
        out[n++] = (char)(high * 16 + low);
        i += 2;
      }
    } else if (c == '\\' && kind == 'e') {
      const size_t length = unescape(lexer, i, end, out + n++);
      if (!length) return 0;
      i += length;
    } else {
      if (c == '\\') i++; /* ONNX: a backslash stands before a character that is meant itself */
      out[n++] = lexer->text[i++];
    }
  }
  return n;
}

/* A string literal that starts at `next`; `kind` is 'e', 'x' or '"'. */
static void read_string(psplit_i_lexer *lexer, char kind) {
  const size_t first = lexer->next + (kind == '"' ? 1 : 2);
  size_t end = first;
  while (end < lexer->n_text && lexer->text[end] != '"')
    end += kind != 'x' && lexer->text[end] == '\\' ? 2 : 1;
  if (end >= lexer->n_text) {
    psplit_i_error_at(lexer, lexer->next, "unterminated string");
    return;
  }
  char *out = psplit_i_arena_alloc(lexer->arena, end - first + 1);
  if (!out) {
    psplit_i_lexer_fail(lexer, psplit_i_nomem(lexer->diag));
    return;
  }
  const size_t n = decode(lexer, kind, first, end, out);
  if (lexer->code != PSPLIT_OK) return;
  out[n] = '\0';
  lexer->token.kind = PSPLIT_I_TOKEN_STRING;
  lexer->token.bytes = out;
  lexer->token.n = n;
  lexer->next = end + 1;
}

/* -?[0-9]+(.[0-9]*)?([eE][+-]?[0-9]+)?, or - before a word (inf, nan); false if none starts here.
 */
static bool read_number(psplit_i_lexer *lexer) {
  const char *const start = lexer->text + lexer->next, *const end = lexer->text + lexer->n_text;
  const char *c = start;
  psplit_i_token_kind kind = PSPLIT_I_TOKEN_INTEGER;
  if (*c == '-') c++;
  if (c < end && c > start && is_letter(*c)) {
    while (c < end && is_letter(*c)) c++;
    kind = PSPLIT_I_TOKEN_REAL;
  } else {
    if (c == end || !is_digit(*c)) return false;
    while (c < end && is_digit(*c)) c++;
    if (c < end && *c == '.' && !(end - c > 1 && c[1] == '.')) {
      kind = PSPLIT_I_TOKEN_REAL;
      for (c++; c < end && is_digit(*c);) c++;
    }
    const char *e = c < end && (*c == 'e' || *c == 'E') ? c + 1 : end;
    if (e < end && (*e == '+' || *e == '-')) e++;
    if (e < end && is_digit(*e)) {
      kind = PSPLIT_I_TOKEN_REAL;
      for (c = e; c < end && is_digit(*c);) c++;
    }
  }
  lexer->token.kind = kind;
  lexer->token.n = (size_t)(c - start);
  return true;
}

void psplit_i_lexer_next(psplit_i_lexer *lexer) {
  if (lexer->code != PSPLIT_OK) return;
  skip_blanks(lexer);
  const char *c = lexer->text + lexer->next;
  const size_t left = lexer->n_text - lexer->next;
  lexer->token = (psplit_i_token){.kind = PSPLIT_I_TOKEN_END, .at = lexer->next, .bytes = c};
  if (left == 0) return;
  if (*c == '"') {
    read_string(lexer, '"');
    return;
  }
  if ((*c == 'e' || *c == 'x') && left > 1 && c[1] == '"') {
    read_string(lexer, *c);
    return;
  }
  if (is_letter(*c)) {
    lexer->token.kind = PSPLIT_I_TOKEN_WORD;
    while (lexer->token.n < left && (is_letter(c[lexer->token.n]) || is_digit(c[lexer->token.n])))
      lexer->token.n++;
  } else if (!read_number(lexer)) {
    if (!memchr("()[]{}<>,:=.?*@", *c, 15)) {
      psplit_i_error_at(lexer, lexer->next, "unexpected byte 0x%02x", (unsigned)(unsigned char)*c);
      return;
    }
    lexer->token.kind = PSPLIT_I_TOKEN_MARK;
    lexer->token.n = left > 1 && memcmp(c, "=>", 2) == 0    ? 2
                     : left > 2 && memcmp(c, "...", 3) == 0 ? 3
                                                            : 1;
  }
  lexer->next += lexer->token.n;
}

void psplit_i_lexer_init(psplit_i_lexer *lexer, const char *text, size_t n_text, const char *file,
                         psplit_i_arena *arena, psplit_diag *diag) {
  *lexer =
    (psplit_i_lexer){.text = text, .n_text = n_text, .arena = arena, .file = file, .diag = diag};
  psplit_i_lexer_next(lexer);
}

static bool token_is(const psplit_i_lexer *lexer, psplit_i_token_kind kind, const char *text) {
  const psplit_i_token *token = &lexer->token;
  return token->kind == kind && token->n == strlen(text) &&
         memcmp(token->bytes, text, token->n) == 0;
}

bool psplit_i_at(const psplit_i_lexer *lexer, const char *mark) {
  return token_is(lexer, PSPLIT_I_TOKEN_MARK, mark);
}

bool psplit_i_at_word(const psplit_i_lexer *lexer, const char *word) {
  return token_is(lexer, PSPLIT_I_TOKEN_WORD, word);
}

bool psplit_i_accept(psplit_i_lexer *lexer, const char *mark) {
  if (!psplit_i_at(lexer, mark)) return false;
  psplit_i_lexer_next(lexer);
  return true;
}

bool psplit_i_expect(psplit_i_lexer *lexer, const char *mark, const char *where) {
  if (psplit_i_accept(lexer, mark)) return true;
  char what[128];
  snprintf(what, sizeof what, "'%s' %s", mark, where);
  psplit_i_expected(lexer, what);
  return false;
}
