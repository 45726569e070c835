/* Names that nothing is called by, in messages: with the nearest name there is, and the others. */
#ifndef PSPLIT_BASE_UNKNOWN_H
#define PSPLIT_BASE_UNKNOWN_H

#include <psplit/base.h>

#include "text.h"

/* The name that was most likely meant: the same in another case, one that differs in few letters
 * (neighbours exchanged count once), or one of which the other is the beginning; of several, the
 * first. One that goes on with a sign where this one ends is nearer than one with another letter.
 * PSPLIT_NONE where none is near. O(letters * all letters). */
uint32_t psplit_i_nearest(const char *name, const char *const *names, uint32_t n);

/* Adds "; did you mean <nearest>? <it has> <names>", or "; <it has> none". A long list is cut. */
void psplit_i_add_names(psplit_i_text *out, const char *it_has, const char *name,
                        const char *const *names, uint32_t n);

/* USAGE, about `subject`: "<what> <name>; did you mean <nearest>? it has <names>", or "...; it has
 * none". A list that is long is cut. */
PSPLIT_MUST_USE psplit_code psplit_i_fail_unknown(psplit_diag *diag, psplit_subject subject,
                                                  const char *what, const char *name,
                                                  const char *const *names, uint32_t n);

#endif
