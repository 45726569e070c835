/* Tokens of the text form, with positions for error messages. Errors are sticky: after the first
 * one every token is the end of the text, so that loops and callers terminate; the initial caller
 * checks `code`. */
#ifndef PSPLIT_ONNX_TEXT_LEXER_H
#define PSPLIT_ONNX_TEXT_LEXER_H

#include "base.h"

typedef enum psplit_i_token_kind {
  PSPLIT_I_TOKEN_END,     /* end of the text, or after an error */
  PSPLIT_I_TOKEN_WORD,    /* [A-Za-z_][A-Za-z0-9_]* */
  PSPLIT_I_TOKEN_INTEGER, /* -?[0-9]+ */
  PSPLIT_I_TOKEN_REAL,    /* with a point or an exponent; -inf, -nan; inf and nan are words */
  PSPLIT_I_TOKEN_STRING,  /* "...", e"...", x"...": decoded, NUL-terminated, in the arena */
  PSPLIT_I_TOKEN_MARK     /* ( ) [ ] { } < > , : = . ? * @ => ... */
} psplit_i_token_kind;

typedef struct psplit_i_token {
  psplit_i_token_kind kind;
  size_t at; /* offset of its first byte */
  const char *bytes;
  size_t n;
} psplit_i_token;

typedef struct psplit_i_lexer {
  const char *text;
  size_t n_text, next; /* `next`: offset after this token */
  psplit_i_token token;
  psplit_i_arena *arena;
  const char *file; /* in messages, "FILE:line:column: "; NULL: "line:column: " */
  psplit_diag *diag;
  psplit_code code;
} psplit_i_lexer;

/* Reads the first token. Text, arena and diag must outlive the lexer. */
void psplit_i_lexer_init(psplit_i_lexer *lexer, const char *text, size_t n_text, const char *file,
                         psplit_i_arena *arena, psplit_diag *diag);
void psplit_i_lexer_next(psplit_i_lexer *lexer);

/* Whether the token is this mark. */
bool psplit_i_at(const psplit_i_lexer *lexer, const char *mark);
/* Whether the token is this word. */
bool psplit_i_at_word(const psplit_i_lexer *lexer, const char *word);
/* Consumes the token if it is this mark. */
bool psplit_i_accept(psplit_i_lexer *lexer, const char *mark);
/* Consumes the mark, or fails: */
bool psplit_i_expect(psplit_i_lexer *lexer, const char *mark, const char *where);

/* "expected <what>, found <the token>". */
void psplit_i_expected(psplit_i_lexer *lexer, const char *what);
/* MALFORMED at a byte of the text. */
void psplit_i_error_at(psplit_i_lexer *lexer, size_t at, const char *format, ...)
  PSPLIT_PRINTF(3, 4);
/* A failure that is not an error of the text. */
void psplit_i_lexer_fail(psplit_i_lexer *lexer, psplit_code code);

/* Whether `text` needs no quotes as a name: a word. */
bool psplit_i_is_word(const char *text, size_t n);

#endif
