#include "prompts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static bool is_between(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool prompts_parse(const char *text, int64_t **out_tokens, size_t *out_n) {
  const size_t most = strlen(text) / 2 + 1;
  int64_t *tokens = malloc(most * sizeof *tokens);
  size_t n = 0;
  bool open = false, good = tokens != NULL;
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
    good = end != text && !errno && n < most;
    if (!good) break;
    tokens[n++] = token;
    text = end;
    while (is_between(*text)) text++;
    if (*text == ',') text++;
  }
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

bool prompts_add(prompts_list *list, int64_t *tokens, size_t n) {
  prompt_ids *grown = cli_grow(list->list, list->n, sizeof *grown);
  if (!grown) {
    free(tokens);
    return false;
  }
  list->list = grown;
  list->list[list->n++] = (prompt_ids){tokens, n};
  return true;
}

void prompts_fini(prompts_list *list) {
  for (size_t i = 0; i < list->n; i++) free(list->list[i].tokens);
  free(list->list);
}

psplit_code prompts_open(const char *path, psplit_diag *diag, prompts_file *out) {
  *out = (prompts_file){.path = path, .in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re")};
  return out->in ? PSPLIT_OK : psplit_diag_fail(diag, PSPLIT_IO, "%s: %s", path, strerror(errno));
}

psplit_code prompts_next(prompts_file *file, psplit_diag *diag, prompt_ids *out, bool *out_end) {
  static const size_t MOST_BYTES = (size_t)64 << 20;
  for (*out_end = false;;) {
    size_t n = 0;
    for (int c;; n++) {
      if (n + 1 >= file->capacity) {
        const size_t capacity = file->capacity ? 2 * file->capacity : 256;
        char *grown = capacity > MOST_BYTES ? NULL : realloc(file->text, capacity);
        if (capacity > MOST_BYTES)
          return psplit_diag_fail(diag, PSPLIT_LIMIT, "%s: line %" PRIu64 " is over 64 MiB",
                                  file->path, file->line + 1);
        if (!grown) return cli_nomem(diag);
        file->text = grown;
        file->capacity = capacity;
      }
      c = getc_unlocked(file->in);
      if (c == EOF && ferror(file->in) && errno != EINTR)
        return psplit_diag_fail(diag, PSPLIT_IO, "%s: %s", file->path, strerror(errno));
      if (c == EOF && !n) {
        *out_end = true;
        return PSPLIT_OK;
      }
      if (c == EOF || c == '\n') break;
      file->text[n] = (char)c;
    }
    file->text[n] = '\0';
    file->line++;
    if (strlen(file->text) != n || !prompts_parse(file->text, &out->tokens, &out->n))
      return psplit_diag_fail(diag, PSPLIT_MALFORMED,
                              "%s: line %" PRIu64 " is no list of numbers of tokens", file->path,
                              file->line);
    if (out->n) return PSPLIT_OK;
    free(out->tokens); /* an empty line */
  }
}

void prompts_close(prompts_file *file) {
  if (file->in && file->in != stdin) fclose(file->in);
  free(file->text);
}
