/* Prompts as numbers of tokens: of the command line, of a file with one a line. */
#ifndef PSPLIT_TOOLS_PROMPTS_H
#define PSPLIT_TOOLS_PROMPTS_H

#include "prompt_ids.h"

typedef struct prompts_list {
  prompt_ids *list; /* [n] */
  size_t n;
} prompts_list;

/* Takes over `tokens`; false when out of memory. */
bool prompts_add(prompts_list *list, int64_t *tokens, size_t n);
void prompts_fini(prompts_list *list);

/* A file that is read as it grows. */
typedef struct prompts_file {
  int fd; /* -1: none */
  const char *path;
  uint64_t line;
  char *text;             /* what has been read; the line at hand first */
  size_t at, n, capacity; /* text[at..n) is behind that line */
  bool ended;
} prompts_file;

/* "-" is standard input; a pipe that nobody writes to yet is waited for by prompts_next.
 * Errors: IO. */
PSPLIT_MUST_USE psplit_code prompts_open(const char *path, psplit_diag *diag, prompts_file *out);
/* The next line that is not empty, which the caller frees, or *out_end. Where none is there, waits
 * until there is, or *stop is not 0. Errors: IO, CANCELLED (*stop), MALFORMED (names the line),
 * LIMIT (a line over 64 MiB). */
PSPLIT_MUST_USE psplit_code prompts_next(prompts_file *file, const volatile int *stop,
                                         psplit_diag *diag, prompt_ids *out, bool *out_end);
void prompts_close(prompts_file *file);

#endif
