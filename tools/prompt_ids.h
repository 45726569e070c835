/* A prompt: numbers of tokens, and what else it says. */
#ifndef PSPLIT_TOOLS_PROMPT_IDS_H
#define PSPLIT_TOOLS_PROMPT_IDS_H

#include <psplit/run.h>
#include <stdbool.h>

typedef struct prompt_ids {
  int64_t *tokens; /* [n]; malloc'd */
  size_t n;
  uint64_t max_new;               /* 0: as the option says */
  const psplit_feed_file *inputs; /* [n_inputs]; malloc'd, with names and paths */
  size_t n_inputs;
} prompt_ids;
void prompt_ids_fini(prompt_ids *prompt);

/* "1,2,3", "1 2 3", "[1, 2, 3]"; false where it is none such, a number is negative, or out of
 * memory. */
bool prompts_parse(const char *text, int64_t **out_tokens, size_t *out_n);

#endif
