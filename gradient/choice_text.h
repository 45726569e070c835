/* Texts that choose one of several kinds, "kind:key=value,key=value": losses and optimizers. No
 * name or value in one holds a comma. */
#ifndef PSPLIT_GRADIENT_CHOICE_TEXT_H
#define PSPLIT_GRADIENT_CHOICE_TEXT_H

#include "base.h"

/* One while it is read. */
typedef struct psplit_i_choice {
  const char *what, *form; /* "loss", and how one is written, for messages */
  const char *text;        /* as it was given */
  psplit_diag *diag;
  char *kind; /* in the arena, as the entries are */
  char *rest; /* what has not been read; NULL: nothing */
} psplit_i_choice;

/* Reads the kind of a choice of which what, form, text and diag are set. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_choice_begin(psplit_i_choice *choice, psplit_i_arena *arena);

/* The next entry, or NULL for *out_key where there is none. Errors: USAGE (it has no value). */
PSPLIT_MUST_USE psplit_code psplit_i_choice_next(psplit_i_choice *choice, const char **out_key,
                                                 const char **out_value);

/* Fails with USAGE: `why`, and how the text is written. */
PSPLIT_MUST_USE psplit_code psplit_i_choice_fail(const psplit_i_choice *choice, const char *why);

/* The same of `word`, which is none of words[n]: with the one that was likely meant. */
PSPLIT_MUST_USE psplit_code psplit_i_choice_fail_unlike(const psplit_i_choice *choice,
                                                        const char *why, const char *word,
                                                        const char *const *words, uint32_t n);

#endif
