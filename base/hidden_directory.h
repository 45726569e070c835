/* Directories that are filled, or used for a while, under a hidden name beside their place,
 * .NAME.psplit-PID-N. A lock tells one that a process works in from one that a killed run left
 * behind. */
#ifndef PSPLIT_BASE_HIDDEN_DIRECTORY_H
#define PSPLIT_BASE_HIDDEN_DIRECTORY_H

#include <dirent.h>
#include <sys/types.h>

#include "base.h"

/* Whether what a killed run left, open as `fd` in the directory `at`, may go. NULL: it may. */
typedef bool psplit_i_may_go(int at, int fd);

/* `path` without trailing slashes, and the directory that holds it, malloc'd; "." and ".." stand
 * for directories that exist, so they are looked up. *out_name (may be NULL): the last part of
 * *out_target. Errors: USAGE (no name), IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_take_place(const char *path, psplit_diag *diag,
                                                char **out_target, char **out_parent,
                                                const char **out_name);
/* Removes the tree `name` below `at`; symbolic links are removed, not followed. */
bool psplit_i_remove_tree(int at, const char *name);

/* Whether `entry` is ".NAME.psplit-PID-N" for this NAME: a user's own directory is not mistaken for
 * one of ours. */
bool psplit_i_hidden_is(const char *entry, const char *name);
/* Removes those for NAME that killed runs left in `parent`, as far as they can be. */
void psplit_i_hidden_sweep(const char *parent, const char *name, psplit_i_may_go *may_go);
/* Makes a new one, and locks it. *out_path, malloc'd, and *out_fd, which holds the lock, are for
 * the call below. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_hidden_make(const char *parent, const char *name, mode_t mode,
                                                 psplit_diag *diag, char **out_path, int *out_fd);
/* Removes it with all that is in it, closes *io_fd and frees `path`. */
void psplit_i_hidden_remove(char *path, int *io_fd);
/* Removes those of all names from a directory; how many. */
uint32_t psplit_i_hidden_clean(DIR *directory, psplit_i_may_go *may_go);

#endif
