#include "out_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cancel.h"
#include "compat.h"
#include "diag.h"
#include "text.h"

enum { MAX_LINKS = 40, MAX_ATTEMPTS = 100, NAME_PART = 200, HEX_DIGITS = 16, PATIENCE_MS = 50 };

static psplit_code cannot(const char *path, int reason, psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be written: %s", path, strerror(reason));
}

static bool is_stopped(const psplit_i_out_options *options) {
  return options->stop && atomic_load(options->stop);
}

/* --- signals --- */

static sigset_t size_signal(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

psplit_i_held_signal psplit_i_hold_size_signal(void) {
  const sigset_t set = size_signal();
  psplit_i_held_signal h = {.held = false};
  h.held = pthread_sigmask(SIG_BLOCK, &set, &h.before) == 0;
  return h;
}

void psplit_i_let_size_signal(const psplit_i_held_signal *h) {
  if (!h->held || sigismember(&h->before, SIGXFSZ)) return;
  const sigset_t set = size_signal();
  const struct timespec now = {0};
  while (sigtimedwait(&set, NULL, &now) == SIGXFSZ) continue;
  pthread_sigmask(SIG_SETMASK, &h->before, NULL);
}

/* --- the disk --- */

bool psplit_i_synced(int fd) {
  return fsync(fd) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP || errno == EBADF;
}

/* --- where a path leads --- */

/* `path` cut in two: what stands before its last component, "." where nothing does, and that. */
static bool cut_path(const char *path, char **out_directory, const char **out_name) {
  const char *slash = strrchr(path, '/');
  *out_name = slash ? slash + 1 : path;
  *out_directory = !slash          ? strdup(".")
                   : slash == path ? strdup("/")
                                   : strndup(path, (size_t)(slash - path));
  return *out_directory != NULL;
}

/* A link among a process's own descriptors, as /dev/stdout leads to: the descriptor, duplicated.
 * Opened by name it would have an offset of its own, and a file that the shell appends to would be
 * overwritten. -1: it is none. */
static int own_descriptor(const char *directory, const char *name) {
  struct stat here, descriptors;
  char *end;
  const long number = *name ? strtol(name, &end, 10) : -1;
  if (number < 0 || number > INT_MAX || *end || stat(directory, &here) != 0 ||
      stat("/dev/fd", &descriptors) != 0 || here.st_dev != descriptors.st_dev ||
      here.st_ino != descriptors.st_ino)
    return -1;
  return fcntl((int)number, F_DUPFD_CLOEXEC, 0);
}

/* Follows the links at the end of *io_path, as far as they go: one that leads nowhere yet names
 * the file to make. *out_fd: a descriptor that they end in, or -1. */
static psplit_code follow_links(const char *path, psplit_i_text *io_path, psplit_diag *diag,
                                int *out_fd) {
  *out_fd = -1;
  for (unsigned i = 0; i < MAX_LINKS; i++) {
    struct stat status;
    char target[PATH_MAX];
    if (lstat(io_path->bytes, &status) != 0 || !S_ISLNK(status.st_mode)) return PSPLIT_OK;
    char *directory;
    const char *name;
    if (!cut_path(io_path->bytes, &directory, &name)) return psplit_i_nomem(diag);
    *out_fd = own_descriptor(directory, name);
    const ssize_t n = *out_fd < 0 ? readlink(io_path->bytes, target, sizeof target) : 0;
    if (n > 0 && (size_t)n < sizeof target) {
      psplit_i_text next = {0};
      if (*target != '/') psplit_i_text_addf(&next, "%s/", directory);
      psplit_i_text_add(&next, target, (size_t)n);
      psplit_i_text_fini(io_path);
      *io_path = next;
    }
    free(directory);
    if (io_path->failed) return psplit_i_nomem(diag);
    if (*out_fd >= 0) return PSPLIT_OK;
    if (n <= 0 || (size_t)n >= sizeof target)
      return cannot(path, n < 0 ? errno : ENAMETOOLONG, diag);
  }
  return cannot(path, ELOOP, diag);
}

/* --- what is not a regular file --- */

/* Without a reader a FIFO cannot be opened, and the wait for one must end with the process. */
static psplit_code open_through(psplit_i_out_file *file, bool is_fifo, psplit_diag *diag) {
  const struct timespec nap = {0, PATIENCE_MS * 1000000L};
  while ((file->fd = open(file->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0 &&
         errno == ENXIO && is_fifo) {
    if (is_stopped(&file->options)) return psplit_i_interrupted(diag);
    nanosleep(&nap, NULL);
  }
  return file->fd < 0 ? cannot(file->path, errno, diag) : PSPLIT_OK;
}

/* --- the hidden file --- */

/* What stands before the digits in the hidden names for a file. */
static void hidden_prefix(const char *name, char out[NAME_PART + 32]) {
  snprintf(out, NAME_PART + 32, ".%.*s.psplit-", NAME_PART, name);
}

static const char MARK[] = ".psplit-";

/* What stands behind `prefix`, or without one behind ".NAME.psplit-"; NULL: it is another name. */
static const char *hidden_end(const char *name, const char *prefix) {
  const size_t n = prefix ? strlen(prefix) : 0;
  if (prefix) return strncmp(name, prefix, n) == 0 ? name + n : NULL;
  const char *end = NULL;
  for (const char *at = name; *name == '.' && (at = strstr(at + 1, MARK)) != NULL;) end = at;
  return end && end > name + 1 ? end + strlen(MARK) : NULL;
}

/* Removes what killed processes left: hidden files that nobody locks. Best effort. */
uint32_t psplit_i_out_clean(int directory_fd, const char *prefix) {
  uint32_t n_removed = 0;
  const int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = fd < 0 ? NULL : fdopendir(fd);
  if (!entries) {
    if (fd >= 0) close(fd);
    return 0;
  }
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    struct stat status;
    const char *name = entry->d_name, *end = hidden_end(name, prefix);
    if (!end || strspn(end, "0123456789abcdef") != HEX_DIGITS || end[HEX_DIGITS]) continue;
    const int stale = openat(directory_fd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (stale < 0) continue;
    if (fstat(stale, &status) == 0 && S_ISREG(status.st_mode) &&
        flock(stale, LOCK_EX | LOCK_NB) == 0)
      n_removed += unlinkat(directory_fd, name, 0) == 0;
    close(stale);
  }
  closedir(entries);
  return n_removed;
}

/* Makes the hidden file and locks it. Another process that removes leftovers may take it between
 * the two steps: then the next name. */
static psplit_code make_temp(psplit_i_out_file *file, mode_t mode, psplit_diag *diag) {
  char prefix[NAME_PART + 32];
  hidden_prefix(file->name, prefix);
  if (!file->options.is_many) psplit_i_out_clean(file->directory_fd, prefix);
  for (unsigned attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    psplit_i_text temp = {0};
    uint64_t number;
    psplit_i_random(&number, sizeof number);
    psplit_i_text_addf(&temp, "%s%016" PRIx64, prefix, number);
    if (temp.failed) {
      psplit_i_text_fini(&temp);
      return psplit_i_nomem(diag);
    }
    file->fd = openat(file->directory_fd, temp.bytes,
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    const int reason = errno;
    struct stat status;
    const bool lost =
      file->fd >= 0 && ((flock(file->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
                        fstat(file->fd, &status) != 0 || status.st_nlink == 0);
    if (file->fd >= 0 && !lost) {
      file->temp = temp.bytes;
      return PSPLIT_OK;
    }
    psplit_i_text_fini(&temp);
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
    if (!lost && reason != EEXIST) return cannot(file->path, reason, diag);
  }
  return cannot(file->path, EEXIST, diag);
}

bool psplit_i_take_over(int fd, const struct stat *old) {
  struct stat now;
  if (fstat(fd, &now) != 0) return false;
  /* Not everybody may give files away; the mode is what counts. */
  if ((old->st_uid != now.st_uid || old->st_gid != now.st_gid) &&
      fchown(fd, old->st_uid, old->st_gid) != 0 && fchown(fd, (uid_t)-1, old->st_gid) != 0)
    errno = 0;
  return fchmod(fd, old->st_mode & (S_ISDIR(old->st_mode) ? 07777 : 0777)) == 0;
}

/* The owner and mode of what is replaced; a file that may not be written may not be replaced. */
static psplit_code begin_place(psplit_i_out_file *file, const struct stat *met, psplit_diag *diag) {
  psplit_code code;
  struct stat old;
  const bool exists = fstatat(file->directory_fd, file->name, &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (!exists && errno != ENOENT) return cannot(file->path, errno, diag);
  if (exists != (met != NULL) ||
      (met && (old.st_dev != met->st_dev || old.st_ino != met->st_ino || !S_ISREG(old.st_mode))))
    return psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be written: it changes meanwhile",
                         file->path);
  if (exists && file->options.keep)
    return psplit_i_fail_about(diag, PSPLIT_IO, PSPLIT_I_HELPS(REPLACE), "%s exists", file->path);
  if (exists && faccessat(file->directory_fd, file->name, W_OK, AT_EACCESS) != 0)
    return cannot(file->path, errno, diag);
  file->was_new = !exists;
  PSPLIT_TRY(make_temp(file, exists ? 0600 : 0666, diag));
  if (!exists) return PSPLIT_OK;
  if (!psplit_i_take_over(file->fd, &old)) code = cannot(file->path, errno, diag);
out:
  return code;
}

static psplit_code open_directory(psplit_i_out_file *file, const char *place, psplit_diag *diag) {
  char *directory;
  const char *name;
  if (!cut_path(place, &directory, &name)) return psplit_i_nomem(diag);
  file->name = strdup(name);
  file->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
#ifdef O_PATH
  if (file->directory_fd < 0 && errno == EACCES) /* may be written, not read */
    file->directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
#endif
  const int reason = errno;
  free(directory);
  if (!file->name) return psplit_i_nomem(diag);
  if (file->directory_fd < 0) return cannot(file->path, reason, diag);
  return *file->name ? PSPLIT_OK : cannot(file->path, EISDIR, diag);
}

/* Opens `path`, or with `only_look` finds out whether that could be done without waiting. */
static psplit_code begin(const char *path, const psplit_i_out_options *options, bool only_look,
                         psplit_diag *diag, psplit_i_out_file *out) {
  psplit_code code = PSPLIT_OK;
  psplit_i_out_file file = {.fd = -1, .path = path, .directory_fd = -1};
  psplit_i_text place = {0};
  struct stat status;
  if (options) file.options = *options;
  psplit_i_text_puts(&place, path);
  if (place.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  const bool exists = stat(path, &status) == 0;
  if (!exists && errno != ENOENT) PSPLIT_TRY(cannot(path, errno, diag));
  if (exists && S_ISDIR(status.st_mode)) PSPLIT_TRY(cannot(path, EISDIR, diag));
  PSPLIT_TRY(follow_links(path, &place, diag, &file.fd));
  if (file.fd >= 0) goto out;
  if (exists && !S_ISREG(status.st_mode)) {
    if (!only_look)
      code = open_through(&file, S_ISFIFO(status.st_mode), diag);
    else if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
      code = cannot(path, errno, diag);
    goto out;
  }
  PSPLIT_TRY(open_directory(&file, place.bytes, diag));
  PSPLIT_TRY(begin_place(&file, exists ? &status : NULL, diag));
out:
  psplit_i_text_fini(&place);
  if (code != PSPLIT_OK) psplit_i_out_abandon(&file);
  *out = file;
  return code;
}

psplit_code psplit_i_out_begin(const char *path, const psplit_i_out_options *options,
                               psplit_diag *diag, psplit_i_out_file *out) {
  return begin(path, options, false, diag, out);
}

psplit_code psplit_i_out_probe(const char *path, const psplit_i_out_options *options,
                               psplit_diag *diag) {
  psplit_i_out_file file;
  const psplit_code code = begin(path, options, true, diag, &file);
  psplit_i_out_abandon(&file);
  return code;
}

/* --- writing and ending --- */

psplit_code psplit_i_out_write(psplit_i_out_file *file, const void *bytes, size_t n,
                               psplit_diag *diag) {
  const char *from = bytes;
  bool stopped = false;
  int reason = 0;
  const psplit_i_held_signal held = psplit_i_hold_size_signal();
  while (n && !reason && !stopped) {
    const ssize_t done = write(file->fd, from, n);
    if (done >= 0) {
      from += done;
      n -= (size_t)done;
    } else if (errno == EAGAIN) { /* a FIFO whose reader is slow */
      struct pollfd event = {.fd = file->fd, .events = POLLOUT};
      poll(&event, 1, PATIENCE_MS);
      stopped = is_stopped(&file->options);
    } else if (errno != EINTR) {
      reason = errno;
    }
  }
  psplit_i_let_size_signal(&held);
  if (stopped) return psplit_i_interrupted(diag);
  return reason ? cannot(file->path, reason, diag) : PSPLIT_OK;
}

/* Where two files cannot change places: the old one gets a hidden name. */
static bool put_aside(psplit_i_out_file *file, char **out_aside) {
  char prefix[NAME_PART + 32];
  psplit_i_text aside = {0};
  uint64_t number;
  hidden_prefix(file->name, prefix);
  psplit_i_random(&number, sizeof number);
  psplit_i_text_addf(&aside, "%s%016" PRIx64, prefix, number);
  if (aside.failed) errno = ENOMEM;
  if (!aside.failed && psplit_i_rename_new(file->directory_fd, file->name, aside.bytes)) {
    *out_aside = aside.bytes;
    return true;
  }
  const int reason = errno;
  psplit_i_text_fini(&aside);
  errno = reason;
  return false;
}

/* False with errno, and all is as it was then. */
static bool move(psplit_i_out_file *file, bool holds_old) {
  const int at = file->directory_fd;
  char *aside = NULL;
  if (file->options.keep) {
    if (!psplit_i_rename_new(at, file->temp, file->name)) return false;
  } else {
    if (holds_old && !file->was_new && !put_aside(file, &aside)) return false;
    if (renameat(at, file->temp, at, file->name) != 0) {
      const int reason = errno;
      if (aside) (void)renameat(at, aside, at, file->name);
      free(aside);
      errno = reason;
      return false;
    }
  }
  free(file->temp);
  file->temp = aside;
  return true;
}

/* The old file is in its place again, or nothing is. */
static void take_back(psplit_i_out_file *file) {
  const int at = file->directory_fd;
  if (file->temp && !psplit_i_exchange_at(at, file->temp, file->name) &&
      renameat(at, file->temp, at, file->name) == 0) {
    free(file->temp);
    file->temp = NULL;
  } else if (!file->temp && file->was_new) {
    unlinkat(at, file->name, 0);
  }
  (void)psplit_i_synced(at);
}

/* Renames, and syncs the directory: 0, or the reason why not, and then all is as it was. An old
 * file changes places with the new one, so that it can come back. */
static int put_in_place(psplit_i_out_file *file, bool holds_old) {
  const bool many = file->options.is_many;
  const bool exchanged = !many && !file->options.keep &&
                         psplit_i_exchange_at(file->directory_fd, file->temp, file->name);
  if (!exchanged && !move(file, holds_old)) return errno;
  const int reason = many || psplit_i_synced(file->directory_fd) ? 0 : errno;
  if (reason) take_back(file);
  return reason;
}

static psplit_code place(psplit_i_out_file *file, bool holds_old, psplit_diag *diag) {
  int reason = 0;
  if (file->directory_fd >= 0 && !file->options.is_many && !psplit_i_synced(file->fd))
    reason = errno;
  /* Network file systems report a full disk here. */
  if (close(file->fd) != 0 && !reason) reason = errno;
  file->fd = -1;
  if (!reason && file->directory_fd >= 0) reason = put_in_place(file, holds_old);
  if (!reason) return PSPLIT_OK;
  const psplit_code code = cannot(file->path, reason, diag);
  psplit_i_out_abandon(file);
  return code;
}

psplit_code psplit_i_out_place(psplit_i_out_file *file, psplit_diag *diag) {
  const psplit_code code = place(file, true, diag);
  if (code != PSPLIT_OK) return code;
  file->is_placed = true;
  /* Locked: other processes take it for no leftover. */
  if (file->temp)
    file->fd =
      openat(file->directory_fd, file->temp, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (file->fd >= 0) (void)flock(file->fd, LOCK_SH | LOCK_NB);
  return PSPLIT_OK;
}

psplit_code psplit_i_out_commit(psplit_i_out_file *file, psplit_diag *diag) {
  const psplit_code code = file->is_placed ? PSPLIT_OK : place(file, false, diag);
  file->is_placed = false;
  psplit_i_out_abandon(file); /* and what is under the hidden name goes */
  return code;
}

void psplit_i_out_abandon(psplit_i_out_file *file) {
  if (file->is_placed && file->directory_fd >= 0) take_back(file);
  if (file->fd >= 0) close(file->fd);
  if (file->temp) unlinkat(file->directory_fd, file->temp, 0);
  if (file->directory_fd >= 0) close(file->directory_fd);
  free(file->temp);
  free(file->name);
  *file = (psplit_i_out_file){.fd = -1, .directory_fd = -1};
}

psplit_code psplit_i_out_put(const char *path, const psplit_i_out_options *options,
                             const void *bytes, size_t n, psplit_diag *diag) {
  psplit_code code;
  psplit_i_out_file file = {.fd = -1, .directory_fd = -1};
  PSPLIT_TRY(psplit_i_out_begin(path, options, diag, &file));
  PSPLIT_TRY(psplit_i_out_write(&file, bytes, n, diag));
  PSPLIT_TRY(psplit_i_out_commit(&file, diag));
out:
  psplit_i_out_abandon(&file);
  return code;
}

psplit_code psplit_i_out_sync(const char *directory, psplit_diag *diag) {
  const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno == EACCES ? PSPLIT_OK : cannot(directory, errno, diag);
  const psplit_code code = psplit_i_sync_all(fd) ? PSPLIT_OK : cannot(directory, errno, diag);
  close(fd);
  return code;
}
