/* Directories for temporary files of a call. */
#ifndef PSPLIT_BASE_SCRATCH_DIRECTORY_H
#define PSPLIT_BASE_SCRATCH_DIRECTORY_H

#include <psplit/base.h>

#include "text.h"

/* TMPDIR; /tmp if that is unset or empty. */
const char *psplit_i_scratch_place(void);

/* Creates a private directory psplit-NAME-XXXXXX there. Its path is appended to *out, a zeroed
 * text, for the caller to remove and free; empty after a failure. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_scratch_directory(const char *name, psplit_diag *diag,
                                                       psplit_i_text *out);

#endif
