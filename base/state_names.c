#include "state_names.h"

#include <string.h>

static const struct {
  const char *past, *present;
} WORDS[PSPLIT_I_STATE_WAYS] = {
  {"past_key_values", "present"},
  {"past", "present"},
};

static bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Where `word` stands in the name as a word of its own; NULL: nowhere. */
static const char *find_word(const char *name, const char *word) {
  const size_t n = strlen(word);
  for (const char *at = strstr(name, word); at; at = strstr(at + 1, word))
    if ((at == name || !is_word_character(at[-1])) && !is_word_character(at[n])) return at;
  return NULL;
}

bool psplit_i_state_output(const char *input, size_t way, psplit_i_text *out) {
  const char *at = find_word(input, WORDS[way].past);
  out->n = 0;
  if (!at) return false;
  psplit_i_text_add(out, input, (size_t)(at - input));
  psplit_i_text_puts(out, WORDS[way].present);
  psplit_i_text_puts(out, at + strlen(WORDS[way].past));
  return true;
}
