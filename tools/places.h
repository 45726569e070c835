/* Where outputs go: what is found out before the work for them begins. Nothing is left behind. */
#ifndef PSPLIT_TOOLS_PLACES_H
#define PSPLIT_TOOLS_PLACES_H

#include <psplit/model.h>

/* Whether the file `path` begins as a model does. */
bool place_holds_model(const char *path);

/* Whether the text `path` can be written: its place takes it, no model stands there, and it is none
 * of the files that make up the model (NULL: whatever they are). Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code place_check(const char *path, const psplit_model *model,
                                        psplit_diag *diag);

/* The same of a model, which stands there only if `replace`. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code place_check_new(const char *path, bool replace,
                                            const psplit_model *model, psplit_diag *diag);

/* What becomes of a split in whose directory `path` is to be written: none of its own files is
 * replaced, and where it alone stands there, a warning tells that it will not be any more. The
 * functions above ask this. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code place_check_split(const char *path, psplit_diag *diag);

/* Whether it is another file, or directory, than `input`, which the command reads. Errors: IO. */
PSPLIT_MUST_USE psplit_code place_check_unread(const char *path, const char *input,
                                               psplit_diag *diag);

/* Whether it is another place than `other`, of another output. Errors: USAGE, NOMEM. */
PSPLIT_MUST_USE psplit_code place_check_apart(const char *path, const char *other,
                                              psplit_diag *diag);

/* Whether it is not in the directory `directory`, which is replaced as a whole. Errors: USAGE,
 * NOMEM.
 */
PSPLIT_MUST_USE psplit_code place_check_outside(const char *path, const char *directory,
                                                psplit_diag *diag);

/* Makes the directory `path` where there is none, and waits until the disk has it. Errors: IO,
 * NOMEM. */
PSPLIT_MUST_USE psplit_code place_make_directory(const char *path, psplit_diag *diag);

#endif
