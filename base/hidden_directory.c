#include "hidden_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

enum { MAX_NAME_PART = 200, MAX_PREFIX = MAX_NAME_PART + 32, MAX_ATTEMPTS = 1000 };
static const char MARK[] = ".psplit-";

psplit_code psplit_i_take_place(const char *path, psplit_diag *diag, char **out_target,
                                char **out_parent, const char **out_name) {
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  char *target = n ? strndup(path, n) : NULL;
  if (!n) return psplit_i_fail(diag, PSPLIT_USAGE, "the output directory has no name");
  if (!target) return psplit_i_nomem(diag);
  *out_target = target;
  const char *slash = strrchr(target, '/');
  const char *name = slash ? slash + 1 : target;
  if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
    char *real = realpath(target, NULL);
    if (!real && errno == ENOMEM) return psplit_i_nomem(diag);
    if (!real) return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", target, strerror(errno));
    free(target);
    *out_target = target = real;
    slash = strrchr(target, '/');
  }
  if (slash == target && !slash[1])
    return psplit_i_fail(diag, PSPLIT_USAGE, "the root directory cannot be the output directory");
  *out_parent = strdup(slash ? target : ".");
  if (!*out_parent) return psplit_i_nomem(diag);
  if (slash) (*out_parent)[slash == target ? 1 : slash - target] = '\0';
  if (out_name) *out_name = slash ? slash + 1 : target;
  return PSPLIT_OK;
}

bool psplit_i_remove_tree(int at, const char *name) {
  if (unlinkat(at, name, 0) == 0) return true;
  if (errno != EISDIR && errno != EPERM) return errno == ENOENT;
  const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *entries = fd < 0 ? NULL : fdopendir(fd);
  if (!entries) {
    if (fd >= 0) close(fd);
    return false;
  }
  bool removed = true;
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (!psplit_i_remove_tree(fd, entry->d_name)) removed = false;
  }
  closedir(entries);
  return removed && unlinkat(at, name, AT_REMOVEDIR) == 0;
}

/* What stands before PID-N in the names for NAME. */
static void make_prefix(const char *name, char out[MAX_PREFIX]) {
  snprintf(out, MAX_PREFIX, ".%.*s%s", MAX_NAME_PART, name, MARK);
}

/* Whether `name` is `prefix`, digits, '-', digits. */
static bool is_hidden_name(const char *name, const char *prefix) {
  const size_t n = strlen(prefix);
  if (strncmp(name, prefix, n) != 0) return false;
  const size_t pid = strspn(name + n, "0123456789");
  if (!pid || name[n + pid] != '-') return false;
  const size_t number = strspn(name + n + pid + 1, "0123456789");
  return number && name[n + pid + 1 + number] == '\0';
}

bool psplit_i_hidden_is(const char *entry, const char *name) {
  char prefix[MAX_PREFIX];
  make_prefix(name, prefix);
  return is_hidden_name(entry, prefix);
}

static bool is_any_hidden_name(const char *name) {
  const char *end = NULL;
  for (const char *at = name; *name == '.' && (at = strstr(at + 1, MARK)) != NULL;) end = at;
  if (!end || end == name + 1) return false;
  char prefix[NAME_MAX + 1];
  snprintf(prefix, sizeof prefix, "%.*s", (int)(end - name + (ptrdiff_t)strlen(MARK)), name);
  return is_hidden_name(name, prefix);
}

/* Removes those that nobody locks, of all names for NULL. Best effort; how many. */
static uint32_t remove_stale(DIR *directory, const char *of, psplit_i_may_go *may_go) {
  const int at = dirfd(directory);
  uint32_t n = 0;
  for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    const char *name = entry->d_name;
    if (!(of ? psplit_i_hidden_is(name, of) : is_any_hidden_name(name))) continue;
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && (!may_go || may_go(at, fd)))
      n += psplit_i_remove_tree(at, name);
    close(fd);
  }
  return n;
}

/* A directory, locked: -1 and errno, EAGAIN where another run that looks for stale ones has taken
 * it between the two steps, and removes it then. */
static int make_locked(const char *path, mode_t mode) {
  if (mkdir(path, mode) != 0) {
    if (errno == EEXIST) errno = EAGAIN;
    return -1;
  }
  const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) { /* taken already, or none can be opened: then it goes */
    const int reason = errno;
    rmdir(path);
    errno = reason == ENOENT ? EAGAIN : reason;
    return -1;
  }
  /* Where there are no locks nothing is ever taken for stale. */
  const bool lost = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  struct stat ours, there;
  if (!lost && fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_ino == there.st_ino &&
      ours.st_dev == there.st_dev)
    return fd;
  close(fd);
  errno = EAGAIN;
  return -1;
}

void psplit_i_hidden_sweep(const char *parent, const char *name, psplit_i_may_go *may_go) {
  DIR *entries = opendir(parent);
  if (!entries) return;
  remove_stale(entries, name, may_go);
  closedir(entries);
}

psplit_code psplit_i_hidden_make(const char *parent, const char *name, mode_t mode,
                                 psplit_diag *diag, char **out_path, int *out_fd) {
  char prefix[MAX_PREFIX];
  make_prefix(name, prefix);
  for (unsigned attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    psplit_i_text path = {0};
    psplit_i_text_addf(&path, "%s/%s%ld-%u", strcmp(parent, "/") == 0 ? "" : parent, prefix,
                       (long)getpid(), attempt);
    if (path.failed) {
      psplit_i_text_fini(&path);
      return psplit_i_nomem(diag);
    }
    *out_fd = make_locked(path.bytes, mode);
    if (*out_fd >= 0) {
      *out_path = path.bytes;
      return PSPLIT_OK;
    }
    const int reason = errno;
    psplit_i_text_fini(&path);
    if (reason != EAGAIN)
      return psplit_i_fail(diag, PSPLIT_IO, "cannot make a directory in %s: %s", parent,
                           strerror(reason));
  }
  return psplit_i_fail(diag, PSPLIT_IO, "cannot make a directory in %s that stays", parent);
}

/* By the descriptor that there is: another may not be had. */
void psplit_i_hidden_remove(char *path, int *io_fd) {
  DIR *entries = *io_fd < 0 ? NULL : fdopendir(*io_fd);
  if (entries) {
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
        psplit_i_remove_tree(dirfd(entries), entry->d_name);
    closedir(entries);
  } else if (*io_fd >= 0) {
    close(*io_fd);
  }
  *io_fd = -1;
  if (path) psplit_i_remove_tree(AT_FDCWD, path);
  free(path);
}

uint32_t psplit_i_hidden_clean(DIR *directory, psplit_i_may_go *may_go) {
  return remove_stale(directory, NULL, may_go);
}
