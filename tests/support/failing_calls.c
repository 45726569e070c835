#include "failing_calls.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

static atomic_long n_until_failure = -1; /* of all threads */
static int reason, reason_of_exchanges;
static volatile int *cancelled; /* NULL: nobody cancels */
static atomic_long n_until_cancelled;

static bool fails(void) {
  if (cancelled && atomic_fetch_sub(&n_until_cancelled, 1) == 0) *cancelled = 1;
  if (n_until_failure < 0 || atomic_fetch_sub(&n_until_failure, 1) != 0) return false;
  errno = reason;
  return true;
}

void fail_call_after(long nth, int why) {
  reason = why;
  n_until_failure = nth;
}

void fail_exchanges(int why) { reason_of_exchanges = why; }

void cancel_at_call(long nth, volatile int *flag) {
  n_until_cancelled = nth;
  cancelled = flag;
}

long calls_since_cancelled(void) { return -1 - n_until_cancelled; }

bool stop_failing_calls(void) {
  cancelled = NULL;
  const bool failed = n_until_failure < 0;
  reason_of_exchanges = 0;
  n_until_failure = -1;
  return failed;
}

/* Calls by the names that they have with 64-bit offsets. Those that may be variadic take what an
 * argument that is not there happens to be, and hand it on. */
#define FAILING(type, name, parameters, arguments) \
  type __real_##name parameters;                   \
  type __wrap_##name parameters;                   \
  type __wrap_##name parameters { return fails() ? (type)-1 : __real_##name arguments; }

FAILING(int, access, (const char *path, int mode), (path, mode))
FAILING(ssize_t, copy_file_range,
        (int in, off_t *at_in, int out, off_t *at_out, size_t n, unsigned flags),
        (in, at_in, out, at_out, n, flags))
FAILING(int, dup, (int fd), (fd))
FAILING(int, faccessat, (int at, const char *path, int mode, int flags), (at, path, mode, flags))
FAILING(int, fchmod, (int fd, mode_t mode), (fd, mode))
FAILING(int, flock, (int fd, int operation), (fd, operation))
FAILING(int, fstat64, (int fd, struct stat *out), (fd, out))
FAILING(int, fstatat64, (int at, const char *path, struct stat *out, int flags),
        (at, path, out, flags))
FAILING(off_t, lseek64, (int fd, off_t offset, int whence), (fd, offset, whence))
FAILING(int, lstat64, (const char *path, struct stat *out), (path, out))
FAILING(int, memfd_create, (const char *name, unsigned flags), (name, flags))
FAILING(int, mkdir, (const char *path, mode_t mode), (path, mode))
FAILING(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode))
FAILING(int, open64, (const char *path, int flags, mode_t mode), (path, flags, mode))
FAILING(int, openat64, (int at, const char *path, int flags, mode_t mode), (at, path, flags, mode))
FAILING(ssize_t, pread64, (int fd, void *out, size_t n, off_t offset), (fd, out, n, offset))
FAILING(ssize_t, read, (int fd, void *out, size_t n), (fd, out, n))
FAILING(int, rename, (const char *from, const char *to), (from, to))
FAILING(int, renameat, (int at, const char *from, int to_at, const char *to), (at, from, to_at, to))
FAILING(ssize_t, sendfile64, (int out, int in, off_t *at, size_t n), (out, in, at, n))
FAILING(int, stat64, (const char *path, struct stat *out), (path, out))
FAILING(ssize_t, write, (int fd, const void *bytes, size_t n), (fd, bytes, n))

int __real_renameat2(int at, const char *from, int to_at, const char *to, unsigned flags);
int __wrap_renameat2(int at, const char *from, int to_at, const char *to, unsigned flags);
int __wrap_renameat2(int at, const char *from, int to_at, const char *to, unsigned flags) {
  if (reason_of_exchanges) errno = reason_of_exchanges;
  return reason_of_exchanges || fails() ? -1 : __real_renameat2(at, from, to_at, to, flags);
}

/* What is waited for would take most of the time, and shows nothing here. */
int __wrap_fsync(int fd);
int __wrap_syncfs(int fd);

int __wrap_fsync(int fd) {
  (void)fd;
  return fails() ? -1 : 0;
}

int __wrap_syncfs(int fd) {
  (void)fd;
  return fails() ? -1 : 0;
}
