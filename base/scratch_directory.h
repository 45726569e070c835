/* Where files go that nobody needs once a call has ended. */
#ifndef PSPLIT_BASE_SCRATCH_DIRECTORY_H
#define PSPLIT_BASE_SCRATCH_DIRECTORY_H

#include <psplit/base.h>

#include "text.h"

/* TMPDIR; /tmp where that is not set or is empty. */
const char *psplit_i_scratch_place(void);

/* Makes a directory there that nobody else has, psplit-NAME-XXXXXX. Its path is in *out, a zeroed
 * text, for the caller to remove and to free; empty after a failure. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_scratch_directory(const char *name, psplit_diag *diag,
                                                       psplit_i_text *out);

#endif
