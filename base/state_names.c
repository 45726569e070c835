#include "state_names.h"

#include <string.h>

/* One word becomes another, or something is put before or behind the name. */
static const struct way {
  const char *past, *present; /* the words */
  const char *before, *behind;
  bool of_memory; /* only of names that speak of a cache or a state */
} WAYS[PSPLIT_I_STATE_WAYS] = {
  {"past_key_values", "present", "", "", false},
  {"past", "present", "", "", false},
  {"in", "out", "", "", true},
  {"input", "output", "", "", true},
  {NULL, NULL, "new_", "", true},
  {NULL, NULL, "", "_out", true},
  {NULL, NULL, "", "_next", true},
  {NULL, NULL, "", "_new", true},
  {NULL, NULL, "", "N", true},
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

static bool speaks_of_memory(const char *name) {
  return strstr(name, "cache") || strstr(name, "state");
}

bool psplit_i_state_output(const char *input, size_t way, psplit_i_text *out) {
  const struct way *w = &WAYS[way];
  const char *at = w->past ? find_word(input, w->past) : input;
  out->n = 0;
  if (!at || (w->of_memory && !speaks_of_memory(input))) return false;
  psplit_i_text_puts(out, w->before);
  psplit_i_text_add(out, input, (size_t)(at - input));
  if (w->past) psplit_i_text_puts(out, w->present);
  psplit_i_text_puts(out, at + (w->past ? strlen(w->past) : 0));
  psplit_i_text_puts(out, w->behind);
  return true;
}
