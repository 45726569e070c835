/* Temporary directories with a hidden name next to their final place, .NAME.psplit-PID-N. A lock
 * distinguishes directories in use from leftovers of killed runs. */
#ifndef PSPLIT_BASE_HIDDEN_DIRECTORY_H
#define PSPLIT_BASE_HIDDEN_DIRECTORY_H

#include <dirent.h>
#include <sys/types.h>

#include "base.h"

/* Whether a leftover, open as `fd` in the directory `at`, may be removed. NULL: always. */
typedef bool psplit_i_may_go(int at, int fd);

/* `path` without trailing slashes, and its parent directory, malloc'd; "." and ".." are resolved.
 * *out_name (may be NULL): the last part of *out_target. Errors: USAGE (no name), IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_take_place(const char *path, psplit_diag *diag,
                                                char **out_target, char **out_parent,
                                                const char **out_name);
/* Removes the tree `name` below `at`; symbolic links are removed, not followed. */
bool psplit_i_remove_tree(int at, const char *name);

/* Whether `entry` is ".NAME.psplit-PID-N" for this NAME; directories of users do not match. */
bool psplit_i_hidden_is(const char *entry, const char *name);
/* Removes leftovers for NAME from `parent`, best effort. */
void psplit_i_hidden_sweep(const char *parent, const char *name, psplit_i_may_go *may_go);
/* Creates and locks a directory. *out_path, malloc'd, and *out_fd, which holds the lock, are for
 * psplit_i_hidden_remove. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_hidden_make(const char *parent, const char *name, mode_t mode,
                                                 psplit_diag *diag, char **out_path, int *out_fd);
/* Removes it recursively, closes *io_fd and frees `path`. */
void psplit_i_hidden_remove(char *path, int *io_fd);
/* Removes leftovers for all names from a directory; returns their number. */
uint32_t psplit_i_hidden_clean(DIR *directory, psplit_i_may_go *may_go);

#endif
