#include "compat.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hash.h"
#include "scratch_directory.h"

#ifdef __linux__
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#endif

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

/* The entry `name` of the directory `at`, which is closed; it is not a symbolic link. */
static int open_entry(int at, const char *name, int flags) {
  const int next = openat(at, name, OPEN_FLAGS | O_NOFOLLOW | flags);
  int reason = errno;
  /* A symbolic link where a directory must be is reported as "not a directory". */
  struct stat status;
  if (next < 0 && reason == ENOTDIR && fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(status.st_mode))
    reason = ELOOP;
  close(at);
  errno = reason;
  return next;
}

/* The directory that `names`, one behind the other and n bytes with their NULs, lead to. */
static int open_walked(int dir_fd, const char *names, size_t n) {
  int at = dup(dir_fd);
  for (size_t i = 0; i < n && at >= 0; i += strlen(names + i) + 1)
    at = open_entry(at, names + i, O_DIRECTORY);
  return at;
}

static int refuse(int at, int reason) {
  close(at);
  errno = reason;
  return -1;
}

/* One component after the other, none of them a symbolic link: what openat2 does in one call. For
 * ".." the way is gone again from its beginning: what the system has for a parent may be moved. */
static int open_by_components(int dir_fd, const char *path) {
  char walked[PATH_MAX]; /* names, with their NULs */
  size_t n_walked = 0;
  if (!*path || strlen(path) >= sizeof walked) {
    errno = *path ? ENAMETOOLONG : ENOENT;
    return -1;
  }
  int at = dup(dir_fd);
  while (at >= 0 && *path) {
    const size_t n = strcspn(path, "/");
    char *name = walked + n_walked;
    if (n > NAME_MAX) return refuse(at, ENAMETOOLONG);
    memcpy(name, path, n);
    name[n] = '\0';
    path += n;
    const bool is_directory = *path == '/';
    path += strspn(path, "/");
    if (strcmp(name, "..") != 0) {
      at = open_entry(at, name, is_directory ? O_DIRECTORY : 0);
      if (strcmp(name, ".") != 0) n_walked += n + 1;
      continue;
    }
    if (!n_walked) return refuse(at, EXDEV);
    for (n_walked--; n_walked && walked[n_walked - 1]; n_walked--) continue;
    close(at);
    at = open_walked(dir_fd, walked, n_walked);
  }
  return at;
}

int psplit_i_open_beneath(int dir_fd, const char *path, bool follow_symlinks) {
  if (path[0] == '/') {
    errno = EXDEV;
    return -1;
  }
  if (follow_symlinks) return openat(dir_fd, path, OPEN_FLAGS);
#if defined(__linux__) && defined(SYS_openat2)
  struct open_how how = {.flags = OPEN_FLAGS,
                         .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  const long fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return (int)fd;
#endif
  return open_by_components(dir_fd, path);
}

/* An empty one, for reading and writing. */
static int unnamed_file(void) {
#if defined(__linux__) && defined(MFD_ALLOW_SEALING)
  const int fd = memfd_create("psplit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd >= 0 || errno != ENOSYS) return fd;
#endif
  char path[4096];
  const int n = snprintf(path, sizeof path, "%s/psplit-XXXXXX", psplit_i_scratch_place());
  if (n < 0 || (size_t)n >= sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  const int named = mkostemp(path, O_CLOEXEC);
  if (named >= 0) (void)unlink(path);
  return named;
}

int psplit_i_memory_file(const void *bytes, size_t n) {
  const unsigned char *next = bytes;
  const int fd = unnamed_file();
  while (fd >= 0 && n) {
    const ssize_t put = write(fd, next, n);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int reason = put ? errno : EIO;
      close(fd);
      errno = reason;
      return -1;
    }
    next += put;
    n -= (size_t)put;
  }
#if defined(__linux__) && defined(F_ADD_SEALS)
  if (fd >= 0) (void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
#endif
  return fd;
}

void psplit_i_random(void *out, size_t bytes) {
#ifdef __linux__
  if (getrandom(out, bytes, GRND_NONBLOCK) == (ssize_t)bytes) return;
#endif
  struct timespec now = {0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t seed = (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)out;
  for (size_t i = 0; i < bytes; i++)
    ((unsigned char *)out)[i] = (unsigned char)psplit_i_splitmix64(seed, i);
}

bool psplit_i_exchange(const char *a, const char *b) {
  return psplit_i_exchange_at(AT_FDCWD, a, b);
}

bool psplit_i_exchange_at(int dir_fd, const char *a, const char *b) {
#ifdef RENAME_EXCHANGE
  return renameat2(dir_fd, a, dir_fd, b, RENAME_EXCHANGE) == 0;
#else
  (void)dir_fd;
  (void)a;
  (void)b;
  return false;
#endif
}

bool psplit_i_rename_new(int dir_fd, const char *from, const char *to) {
#ifdef RENAME_NOREPLACE
  if (renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
#endif
  struct stat status; /* rename replaces a file, and an empty directory */
  if (fstatat(dir_fd, to, &status, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return false;
  }
  return renameat(dir_fd, from, dir_fd, to) == 0;
}

bool psplit_i_sync_all(int fd) {
#ifdef __linux__
  return syncfs(fd) == 0;
#else
  (void)fd;
  sync();
  return true;
#endif
}
