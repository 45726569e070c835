#include "json_tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign.h"
#include "number.h"
#include "text.h"
#include "vec.h"

enum { MOST_NUMBER = 1000, MOST_SHOWN = 20, QUADRATIC = 16 };

/* A value whose object or array is not complete. */
typedef struct open_value {
  psplit_i_json_value value;
  size_t key_end; /* in the text, to name a key that stands twice */
} open_value;

typedef struct parser {
  const char *text;
  size_t n, at;    /* what is read next */
  size_t token_at; /* where what was read last begins */
  psplit_i_arena *arena;
  open_value *open; /* a stack */
  size_t n_open, capacity;
  char number[MOST_NUMBER + 1]; /* not on the stack, which arrays in arrays share */
  psplit_code code;
  psplit_i_json_place *place;
} parser;

/* --- failures --- */

static void locate(const parser *p, size_t end, psplit_i_json_place *place) {
  place->line = 1;
  place->column = 0;
  for (size_t i = 0; i < end; i++) {
    const unsigned char c = (unsigned char)p->text[i];
    if (c == '\n') {
      place->line++;
      place->column = 0;
    } else {
      place->column += c < 0x80 || c >= 0xc0; /* not within a character */
    }
  }
}

static bool fail(parser *p, size_t end, const char *format, ...) PSPLIT_PRINTF(3, 4);

/* False. What is wrong begins at token_at and ends before `end`. */
static bool fail(parser *p, size_t end, const char *format, ...) {
  va_list args;
  if (p->code != PSPLIT_OK) return false;
  p->code = PSPLIT_MALFORMED;
  locate(p, end, p->place);
  va_start(args, format);
  const int used = vsnprintf(p->place->what, sizeof p->place->what, format, args);
  va_end(args);
  const size_t left = sizeof p->place->what - (size_t)used, length = end - p->token_at;
  if (p->token_at >= p->n)
    snprintf(p->place->what + used, left, " near end of file");
  else if (length && length <= MOST_SHOWN)
    snprintf(p->place->what + used, left, " near '%.*s'", (int)length, p->text + p->token_at);
  return false;
}

/* What is no JSON from its first byte on: no place within helps. */
static bool fail_whole(parser *p, const psplit_i_foreign *foreign) {
  p->code = PSPLIT_MALFORMED;
  *p->place = (psplit_i_json_place){0};
  snprintf(p->place->what, sizeof p->place->what, "not JSON: it is %s%s", foreign->is,
           foreign->helps);
  return false;
}

static bool no_memory(parser *p) {
  if (p->code == PSPLIT_OK) p->code = PSPLIT_NOMEM;
  return false;
}

/* --- tokens --- */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The first byte of the next token, NUL at the end. */
static char look(parser *p) {
  while (p->at < p->n && memchr(" \t\r\n", p->text[p->at], 4)) p->at++;
  p->token_at = p->at;
  return p->at < p->n ? p->text[p->at] : '\0';
}

/* The end of what a reader would call one word. */
static size_t token_end(const parser *p) {
  size_t end = p->token_at;
  if (end >= p->n) return p->n;
  if (!is_letter(p->text[end]) && p->text[end] != '"') {
    const size_t length = psplit_i_utf8_length((const unsigned char *)p->text + end, p->n - end);
    return end + (length ? length : 1);
  }
  const bool quoted = p->text[end] == '"';
  for (end++; end < p->n; end++) {
    if (quoted ? p->text[end] == '"' || p->text[end] == '\n' : !is_letter(p->text[end])) break;
    if (quoted && p->text[end] == '\\' && end + 1 < p->n) end++;
  }
  return end + (quoted && end < p->n);
}

static bool expected(parser *p, const char *what) {
  return fail(p, token_end(p), "%s expected", what);
}

static bool take(parser *p, char c, const char *what) {
  if (look(p) != c) return expected(p, what);
  p->at++;
  return true;
}

/* --- strings --- */

static int hex(char c) {
  return is_digit(c)            ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* Four digits behind "\u", which *io_at is at; -1: there are none. */
static long code_unit(const parser *p, size_t *io_at) {
  long unit = 0;
  if (p->n - *io_at < 6 || p->text[*io_at] != '\\' || p->text[*io_at + 1] != 'u') return -1;
  for (size_t i = 2; i < 6; i++) {
    const int digit = hex(p->text[*io_at + i]);
    if (digit < 0) return -1;
    unit = 16 * unit + digit;
  }
  *io_at += 6;
  return unit;
}

static char *put_utf8(char *to, unsigned long c) {
  if (c < 0x80) {
    *to++ = (char)c;
  } else if (c < 0x800) {
    *to++ = (char)(0xc0 | c >> 6);
    *to++ = (char)(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    *to++ = (char)(0xe0 | c >> 12);
    *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    *to++ = (char)(0x80 | (c & 0x3f));
  } else {
    *to++ = (char)(0xf0 | c >> 18);
    *to++ = (char)(0x80 | (c >> 12 & 0x3f));
    *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    *to++ = (char)(0x80 | (c & 0x3f));
  }
  return to;
}

/* "\u0041", or two of them for what is above U+FFFF; p->at is on the backslash. */
static bool put_unicode(parser *p, char **io_to) {
  const size_t begin = p->at;
  long unit = code_unit(p, &p->at);
  if (unit < 0) return fail(p, begin + 2, "invalid escape");
  if (unit == 0) return fail(p, p->at, "\\u0000 is not allowed");
  if (unit >= 0xd800 && unit < 0xdc00) {
    const long low = code_unit(p, &p->at);
    if (low < 0xdc00 || low > 0xdfff) return fail(p, p->at, "invalid Unicode");
    unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
  } else if (unit >= 0xdc00 && unit < 0xe000) {
    return fail(p, p->at, "invalid Unicode");
  }
  *io_to = put_utf8(*io_to, (unsigned long)unit);
  return true;
}

static bool put_escape(parser *p, char **io_to) {
  static const char LETTERS[] = "\"\\/bfnrt", MEANS[] = "\"\\/\b\f\n\r\t";
  const char c = p->at + 1 < p->n ? p->text[p->at + 1] : '\0';
  const char *known = c ? strchr(LETTERS, c) : NULL;
  if (c == 'u') return put_unicode(p, io_to);
  if (!known) return fail(p, p->at + (p->at + 1 < p->n ? 2 : 1), "invalid escape");
  *(*io_to)++ = MEANS[known - LETTERS];
  p->at += 2;
  return true;
}

/* Bytes up to the closing quote, as many as the string has at most; SIZE_MAX: there is none. */
static size_t string_bytes(const parser *p) {
  size_t i = p->at;
  while (i < p->n && p->text[i] != '"') i += p->text[i] == '\\' ? 2 : 1;
  return i < p->n ? i - p->at : SIZE_MAX;
}

/* The string whose opening quote is read next. */
static bool read_string(parser *p, const char **out, uint32_t *out_n) {
  p->token_at = p->at++;
  const size_t most = string_bytes(p);
  if (most == SIZE_MAX) return fail(p, p->n, "premature end of input");
  if (most >= UINT32_MAX) {
    p->code = PSPLIT_LIMIT;
    return false;
  }
  char *text = psplit_i_arena_alloc_close(p->arena, most + 1), *to = text;
  if (!text) return no_memory(p);
  while (p->text[p->at] != '"') {
    const unsigned char *c = (const unsigned char *)p->text + p->at;
    const size_t length = psplit_i_utf8_length(c, p->n - p->at);
    if (*c < 0x20) return fail(p, p->at, "control character 0x%x", *c);
    if (!length) return fail(p, p->at, "unable to decode byte 0x%x", *c);
    if (*c == '\\') {
      if (!put_escape(p, &to)) return false;
      continue;
    }
    memcpy(to, c, length);
    to += length;
    p->at += length;
  }
  p->at++;
  *to = '\0';
  *out = text;
  *out_n = (uint32_t)(to - text);
  return true;
}

/* --- numbers and words --- */

static size_t digits(const parser *p, size_t at) {
  while (at < p->n && is_digit(p->text[at])) at++;
  return at;
}

/* The end of the number at `at`, or `at` where none is; *out_real: with a fraction or exponent. */
static size_t number_end(const parser *p, size_t at, bool *out_real) {
  const size_t begin = at;
  if (at < p->n && p->text[at] == '-') at++;
  if (at >= p->n || !is_digit(p->text[at])) return begin;
  at = p->text[at] == '0' ? at + 1 : digits(p, at);
  if (at < p->n && is_digit(p->text[at])) return begin; /* 01 */
  *out_real = false;
  if (at < p->n && p->text[at] == '.') {
    const size_t fraction = at + 1;
    if ((at = digits(p, fraction)) == fraction) return begin;
    *out_real = true;
  }
  if (at < p->n && (p->text[at] == 'e' || p->text[at] == 'E')) {
    size_t exponent = at + 1;
    if (exponent < p->n && (p->text[exponent] == '-' || p->text[exponent] == '+')) exponent++;
    if ((at = digits(p, exponent)) == exponent) return begin;
    *out_real = true;
  }
  return at;
}

/* False where 64 bits do not hold it: writers put large reals without a fraction, too. */
static bool read_integer(const char *copy, psplit_i_json_value *out) {
  errno = 0;
  out->kind = PSPLIT_I_JSON_INTEGER;
  out->integer = strtoll(copy, NULL, 10);
  if (errno != ERANGE) return true;
  if (*copy == '-') return false;
  errno = 0;
  out->kind = PSPLIT_I_JSON_UNSIGNED;
  out->natural = strtoull(copy, NULL, 10);
  return errno != ERANGE;
}

static bool read_number(parser *p, psplit_i_json_value *out) {
  char *copy = p->number;
  bool real = false;
  const size_t end = number_end(p, p->at, &real), length = end - p->at;
  if (!length) return fail(p, token_end(p), "invalid token");
  if (length > MOST_NUMBER) return fail(p, end, "too long a number");
  memcpy(copy, p->text + p->at, length);
  copy[length] = '\0';
  p->at = end;
  if (!real && read_integer(copy, out)) return true;
  errno = 0;
  out->kind = PSPLIT_I_JSON_REAL;
  out->real = psplit_i_number_parse(copy, NULL);
  if (errno == ERANGE && (out->real > 1 || out->real < -1))
    return fail(p, end, "real number overflow");
  return true;
}

static bool read_word(parser *p, psplit_i_json_value *out) {
  static const struct {
    const char *word;
    psplit_i_json_kind kind;
  } WORDS[] = {
    {"true", PSPLIT_I_JSON_TRUE}, {"false", PSPLIT_I_JSON_FALSE}, {"null", PSPLIT_I_JSON_NULL}};
  const size_t end = token_end(p), length = end - p->at;
  for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
    if (length != strlen(WORDS[i].word) || memcmp(p->text + p->at, WORDS[i].word, length) != 0)
      continue;
    out->kind = WORDS[i].kind;
    p->at = end;
    return true;
  }
  return fail(p, end, "invalid token");
}

/* --- objects and arrays --- */

static bool push(parser *p, const open_value *value) {
  if (!psplit_i_vec_grow((void **)&p->open, &p->capacity, p->n_open, 1, sizeof *p->open))
    return no_memory(p);
  p->open[p->n_open++] = *value;
  return true;
}

/* By key, then by place. */
static int by_key(const void *a, const void *b) {
  const open_value *x = *(const open_value *const *)a, *y = *(const open_value *const *)b;
  const int keys = strcmp(x->value.key, y->value.key);
  return keys ? keys : (x > y) - (x < y);
}

static bool same_key(parser *p, const open_value *second) {
  p->token_at = second->key_end - strlen(second->value.key) - 2; /* with its quotes */
  return fail(p, second->key_end, "duplicate object key");
}

/* Of the keys that stand twice, the first that does so again. */
static bool check_keys(parser *p, const open_value *members, size_t n) {
  const open_value *second = NULL;
  if (n <= QUADRATIC) {
    for (size_t i = 1; i < n && !second; i++)
      for (size_t k = 0; k < i; k++)
        if (strcmp(members[i].value.key, members[k].value.key) == 0) second = &members[i];
    return second ? same_key(p, second) : true;
  }
  const open_value **sorted = malloc(n * sizeof *sorted);
  if (!sorted) return no_memory(p);
  for (size_t i = 0; i < n; i++) sorted[i] = &members[i];
  qsort(sorted, n, sizeof *sorted, by_key);
  for (size_t i = 1; i < n; i++)
    if (strcmp(sorted[i - 1]->value.key, sorted[i]->value.key) == 0 &&
        (!second || sorted[i] < second))
      second = sorted[i];
  free(sorted);
  return second ? same_key(p, second) : true;
}

/* Moves what was pushed behind `from` into its place in the arena. */
static bool close_children(parser *p, size_t from, psplit_i_json_value *out) {
  const size_t n = p->n_open - from;
  if (n > UINT32_MAX) {
    p->code = PSPLIT_LIMIT;
    return false;
  }
  if (out->kind == PSPLIT_I_JSON_OBJECT && n && !check_keys(p, p->open + from, n)) return false;
  psplit_i_json_value *children = psplit_i_arena_array(p->arena, n, sizeof *children);
  if (!children) return no_memory(p);
  for (size_t i = 0; i < n; i++) children[i] = p->open[from + i].value;
  p->n_open = from;
  out->n = (uint32_t)n;
  out->children = children;
  return true;
}

static bool read_value(parser *p, unsigned depth, psplit_i_json_value *out);

static bool read_key(parser *p, open_value *member) {
  uint32_t n;
  if (look(p) != '"') return expected(p, "string or '}'");
  if (!read_string(p, &member->value.key, &n)) return false;
  member->key_end = p->at;
  return take(p, ':', "':'");
}

static bool read_children(parser *p, unsigned depth, char close, psplit_i_json_value *out) {
  const size_t from = p->n_open;
  const bool is_object = close == '}';
  out->kind = is_object ? PSPLIT_I_JSON_OBJECT : PSPLIT_I_JSON_ARRAY;
  p->at++;
  if (depth == PSPLIT_I_JSON_DEPTH) return fail(p, p->at, "maximum parsing depth reached");
  if (look(p) == close) {
    p->at++;
    return close_children(p, from, out);
  }
  for (;;) {
    open_value child = {0};
    if (is_object && !read_key(p, &child)) return false;
    if (!read_value(p, depth + 1, &child.value) || !push(p, &child)) return false;
    if (look(p) == ',') {
      p->at++;
      continue;
    }
    return take(p, close, is_object ? "'}'" : "']'") && close_children(p, from, out);
  }
}

static bool read_value(parser *p, unsigned depth, psplit_i_json_value *out) {
  const char c = look(p);
  switch (c) {
    case '{': return read_children(p, depth, '}', out);
    case '[': return read_children(p, depth, ']', out);
    case '"': out->kind = PSPLIT_I_JSON_STRING; return read_string(p, &out->text, &out->n);
    default: break;
  }
  if (c == '-' || is_digit(c)) return read_number(p, out);
  if (is_letter(c)) return read_word(p, out);
  return fail(p, token_end(p), p->at < p->n ? "invalid token" : "unexpected token");
}

psplit_code psplit_i_json_parse(const char *text, size_t n, psplit_i_arena *arena,
                                psplit_i_json_place *out_place, const psplit_i_json_value **out) {
  parser p = {.text = text, .n = n, .arena = arena, .place = out_place};
  psplit_i_json_value *root = PSPLIT_NEW(arena, psplit_i_json_value, 1);
  const psplit_i_foreign *foreign = psplit_i_foreign_to_text(text, n);
  const char c = look(&p);
  bool good = root || no_memory(&p);
  if (good && foreign) good = fail_whole(&p, foreign);
  if (good && c != '{' && c != '[') good = expected(&p, "not JSON: '[' or '{'");
  if (good && read_value(&p, 0, root) && (look(&p), p.at < n)) expected(&p, "end of file");
  free(p.open);
  if (p.code == PSPLIT_OK) *out = root;
  return p.code;
}

bool psplit_i_json_as_double(const psplit_i_json_value *value, double *out) {
  switch (value->kind) {
    case PSPLIT_I_JSON_INTEGER: *out = (double)value->integer; return true;
    case PSPLIT_I_JSON_UNSIGNED: *out = (double)value->natural; return true;
    case PSPLIT_I_JSON_REAL: *out = value->real; return true;
    default: return false;
  }
}
