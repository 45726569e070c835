/* Messages for unknown names, with the nearest existing name, and others. */
#ifndef PSPLIT_BASE_UNKNOWN_H
#define PSPLIT_BASE_UNKNOWN_H

#include <psplit/base.h>

#include "text.h"

/* The name that was most likely meant: equal except for case, within a small edit distance
 * (transpositions count once), or one a prefix of the other; the first if there are several. A name
 * that continues with punctuation after the given one is nearer than one with a substituted letter.
 * PSPLIT_NONE if none is near. O(letters * all letters). */
uint32_t psplit_i_nearest(const char *name, const char *const *names, uint32_t n);

/* Appends "; did you mean <nearest>? <it has> <names>", or "; <it has> none". A long list is
 * truncated. */
void psplit_i_add_names(psplit_i_text *out, const char *it_has, const char *name,
                        const char *const *names, uint32_t n);

/* USAGE, about `subject`: "<what> <name>; did you mean <nearest>? it has <names>", or "...; it has
 * none". A long list is truncated. */
PSPLIT_MUST_USE psplit_code psplit_i_fail_unknown(psplit_diag *diag, psplit_subject subject,
                                                  const char *what, const char *name,
                                                  const char *const *names, uint32_t n);

#endif
