/* What C11 and POSIX do not give: Linux calls, with portable fallbacks. */
#ifndef PSPLIT_BASE_COMPAT_H
#define PSPLIT_BASE_COMPAT_H

#include <stdbool.h>

/* Opens `path`, relative to the directory `dir_fd`, for reading, refusing to leave that directory:
 * no absolute path, no "..", and no symbolic link unless `follow_symlinks`. Never blocks on a FIFO
 * or device. Returns a descriptor, or -1 with errno (ELOOP, EXDEV: it would leave). */
int psplit_i_open_beneath(int dir_fd, const char *path, bool follow_symlinks);

/* Exchanges two directory entries atomically; false where the system cannot. */
bool psplit_i_exchange(const char *a, const char *b);

#endif
