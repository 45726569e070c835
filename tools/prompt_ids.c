#include "prompt_ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void prompt_ids_fini(prompt_ids *prompt) {
  free(prompt->tokens);
  for (size_t i = 0; i < prompt->n_inputs; i++) {
    free((char *)(uintptr_t)prompt->inputs[i].input);
    free((char *)(uintptr_t)prompt->inputs[i].path);
  }
  free((psplit_feed_file *)(uintptr_t)prompt->inputs);
  *prompt = (prompt_ids){0};
}

static bool is_between(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool ends_number(char c) { return !c || c == ',' || c == ']' || is_between(c); }

bool prompts_parse(const char *text, int64_t **out_tokens, size_t *out_n) {
  const size_t most = strlen(text) / 2 + 1;
  int64_t *tokens = malloc(most * sizeof *tokens);
  size_t n = 0;
  bool open = false, more = false, good = tokens != NULL; /* more: behind a comma */
  while (is_between(*text)) text++;
  if (*text == '[') {
    open = true;
    text++;
  }
  while (good) {
    while (is_between(*text)) text++;
    if (!*text || *text == ']') break;
    char *end;
    errno = 0;
    const long long token = strtoll(text, &end, 10);
    /* Signs are refused: where a token is negative, Gather counts from the vocabulary's end. */
    good = *text >= '0' && *text <= '9' && !errno && n < most && ends_number(*end);
    if (!good) break;
    tokens[n++] = token;
    text = end;
    while (is_between(*text)) text++;
    more = *text == ',';
    if (more) text++;
  }
  good &= !more;
  if (good && open) good = *text++ == ']';
  while (good && is_between(*text)) text++;
  if (!good || *text) {
    free(tokens);
    return false;
  }
  *out_tokens = tokens;
  *out_n = n;
  return true;
}
