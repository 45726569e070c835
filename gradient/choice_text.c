#include "choice_text.h"

#include <stdio.h>
#include <string.h>

#include "unknown.h"

psplit_code psplit_i_choice_begin(psplit_i_choice *choice, psplit_i_arena *arena) {
  choice->kind = psplit_i_arena_strndup(arena, choice->text, strlen(choice->text));
  if (!choice->kind) return psplit_i_nomem(choice->diag);
  choice->rest = strchr(choice->kind, ':');
  if (choice->rest) *choice->rest++ = '\0';
  return PSPLIT_OK;
}

psplit_code psplit_i_choice_next(psplit_i_choice *choice, const char **out_key,
                                 const char **out_value) {
  char *entry = choice->rest && *choice->rest ? choice->rest : NULL;
  char *value = entry;
  if (entry) {
    choice->rest = strchr(entry, ',');
    if (choice->rest) *choice->rest++ = '\0';
    value = strchr(entry, '=');
    if (!value) return psplit_i_choice_fail(choice, "an entry without a value");
    *value++ = '\0';
  }
  *out_key = entry;
  *out_value = value;
  return PSPLIT_OK;
}

psplit_code psplit_i_choice_fail(const psplit_i_choice *choice, const char *why) {
  return psplit_i_fail(choice->diag, PSPLIT_USAGE, "%s \"%s\": %s%s expected %s", choice->what,
                       choice->text, why, why[strlen(why) - 1] == '?' ? "" : ";", choice->form);
}

psplit_code psplit_i_choice_fail_unlike(const psplit_i_choice *choice, const char *why,
                                        const char *word, const char *const *words, uint32_t n) {
  char line[256];
  const uint32_t near = psplit_i_nearest(word, words, n);
  if (near == PSPLIT_NONE) return psplit_i_choice_fail(choice, why);
  snprintf(line, sizeof line, "%s, did you mean %s?", why, words[near]);
  return psplit_i_choice_fail(choice, line);
}
