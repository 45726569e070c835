#include "prompt_line.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char *skip(const char *at) { return at + strspn(at, " \t\r\n"); }

static const char NO_MEMORY[] = "finds no memory", NO_OBJECT[] = "is not a JSON object";

/* One of four digits; -1: none. */
static int hexadecimal(char c) {
  static const char digits[] = "0123456789abcdef";
  const char *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
  return found ? (int)(found - digits) : -1;
}

/* The number behind "u", of four digits; -1: there is none. */
static long take_unit(const char **io_at) {
  long unit = 0;
  const char *at = *io_at;
  if (*at++ != 'u') return -1;
  for (int i = 0; i < 4; i++) {
    const int digit = hexadecimal(*at++);
    if (digit < 0) return -1;
    unit = 16 * unit + digit;
  }
  *io_at = at;
  return unit;
}

static char *put_utf8(char *to, long code) {
  if (code < 0x80) {
    *to++ = (char)code;
    return to;
  }
  if (code < 0x800) {
    *to++ = (char)(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      *to++ = (char)(0xe0 | code >> 12);
    } else {
      *to++ = (char)(0xf0 | code >> 18);
      *to++ = (char)(0x80 | (code >> 12 & 0x3f));
    }
    *to++ = (char)(0x80 | (code >> 6 & 0x3f));
  }
  *to++ = (char)(0x80 | (code & 0x3f));
  return to;
}

/* A character of a string behind a backslash, as UTF-8: two units where it is above U+FFFF. */
static const char *take_escape(const char **io_at, char **io_to) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const char *simple = **io_at ? strchr(from, **io_at) : NULL;
  if (simple) {
    *(*io_to)++ = to[simple - from];
    ++*io_at;
    return NULL;
  }
  long code = take_unit(io_at);
  if (code < 0) return NO_OBJECT;
  if (code >= 0xd800 && code < 0xdc00 && **io_at == '\\') {
    ++*io_at;
    const long low = take_unit(io_at);
    if (low >= 0xdc00 && low < 0xe000) code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  if (!code || (code >= 0xd800 && code < 0xe000))
    return "has a character that names cannot contain";
  *io_to = put_utf8(*io_to, code);
  return NULL;
}

/* A string, malloc'd. */
static const char *take_string(const char **io_at, char **out) {
  const char *at = *io_at;
  if (*at++ != '"') return NO_OBJECT;
  char *made = malloc(strlen(at) + 1), *to = made;
  const char *wrong = made ? NULL : NO_MEMORY;
  while (!wrong && *at != '"') {
    if (!*at || (unsigned char)*at < ' ') {
      wrong = NO_OBJECT;
    } else if (*at == '\\') {
      at++;
      wrong = take_escape(&at, &to);
    } else {
      *to++ = *at++;
    }
  }
  if (wrong) {
    free(made);
    return wrong;
  }
  *to = '\0';
  *out = made;
  *io_at = at + 1;
  return NULL;
}

static const char *take_tokens(const char **io_at, prompt_ids *out) {
  const size_t n = strcspn(*io_at, "]");
  if (**io_at != '[' || !(*io_at)[n]) return "has no list as \"prompt_ids\"";
  if (out->tokens) return "has \"prompt_ids\" twice";
  char *list = strndup(*io_at, n + 1);
  if (!list) return NO_MEMORY;
  const bool good = prompts_parse(list, &out->tokens, &out->n);
  free(list);
  *io_at += n + 1;
  if (!good) return "has \"prompt_ids\" that are not token ids";
  return out->n ? NULL : "has \"prompt_ids\" without a token id";
}

static const char *take_count(const char **io_at, prompt_ids *out) {
  char *end;
  if (out->max_new) return "has \"max_new_tokens\" twice";
  if (**io_at < '1' || **io_at > '9')
    return "has a \"max_new_tokens\" that is not a number above 0";
  const unsigned long long count = strtoull(*io_at, &end, 10);
  if (count > INT64_MAX) return "has a \"max_new_tokens\" that is too large";
  out->max_new = count;
  *io_at = end;
  return NULL;
}

/* The file of an input; takes over `name`. */
static const char *take_input(const char **io_at, char *name, prompt_ids *out) {
  char *path = NULL;
  const char *wrong = take_string(io_at, &path);
  psplit_feed_file *grown =
    wrong ? NULL : cli_grow((void *)(uintptr_t)out->inputs, out->n_inputs, sizeof *grown);
  if (grown) {
    grown[out->n_inputs++] = (psplit_feed_file){name, path};
    out->inputs = grown;
    return NULL;
  }
  free(name);
  free(path);
  return wrong ? "names an input's file by something other than a string" : NO_MEMORY;
}

static const char *take_member(const char **io_at, prompt_ids *out) {
  char *name = NULL;
  const char *wrong = take_string(io_at, &name);
  if (wrong) return wrong;
  *io_at = skip(*io_at);
  if (*(*io_at)++ != ':') {
    free(name);
    return NO_OBJECT;
  }
  *io_at = skip(*io_at);
  const bool tokens = strcmp(name, "prompt_ids") == 0;
  if (!tokens && strcmp(name, "max_new_tokens") != 0) return take_input(io_at, name, out);
  free(name);
  return tokens ? take_tokens(io_at, out) : take_count(io_at, out);
}

/* Numbers, in a list or not; an empty line has none. */
static const char *take_list(const char *text, prompt_ids *out) {
  if (!prompts_parse(text, &out->tokens, &out->n)) return "is not a list of token ids";
  return out->n || !*skip(text) ? NULL : "has a list without a token id";
}

/* A JSON object, from its brace. */
static const char *take_object(const char *at, prompt_ids *out) {
  const char *wrong = NULL;
  at = skip(at + 1);
  for (bool more = *at != '}'; more && !wrong;) {
    wrong = take_member(&at, out);
    at = skip(at);
    more = !wrong && *at == ',';
    if (more) at = skip(at + 1);
  }
  if (!wrong && (*at != '}' || *skip(at + 1))) wrong = NO_OBJECT;
  return wrong || out->tokens ? wrong : "has no \"prompt_ids\"";
}

const char *prompt_line_parse(const char *text, prompt_ids *out) {
  const char *at = skip(text);
  *out = (prompt_ids){0};
  const char *wrong = *at == '{' ? take_object(at, out) : take_list(at, out);
  if (wrong) prompt_ids_fini(out);
  return wrong;
}
