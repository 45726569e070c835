/* A library for LD_PRELOAD that writes down what a command does to files, so that what the disk
 * would have after a power cut can be told (tests/cli/durable.py). PSPLIT_JOURNAL names the file;
 * a line each:
 *
 *   W FILE                 was written to; files and directories are DEVICE:INODE
 *   S FILE                 was synced, a directory too
 *   A                      all was synced (syncfs)
 *   E DIR FILE NAME        an entry was made: a file, directory or link
 *   R DIR DIR NAME/NAME    was renamed; X: changed places
 *   U DIR NAME             was removed */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 9000 };

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...) {
  static int fd = -1;
  char line[MOST];
  const int reason = errno;
  const char *path = getenv("PSPLIT_JOURNAL");
  if (fd < 0 && path)
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (fd >= 0 && n > 0 && n < MOST) syscall(SYS_write, fd, line, (size_t)n);
  errno = reason;
}

/* "DEVICE:INODE" */
static const char *id_of(int fd, char out[64]) {
  struct stat status;
  snprintf(out, 64, "?");
  if (fstat(fd, &status) == 0)
    snprintf(out, 64, "%llx:%llu", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino);
  return out;
}

/* The directory of `path` seen from `at`, and the last name of it. */
static const char *home_of(int at, const char *path, char out[64]) {
  char home[4096];
  const char *slash = strrchr(path, '/');
  const size_t n = slash ? (size_t)(slash - path) : 0;
  struct stat status;
  snprintf(home, sizeof home, "%.*s", (int)n, path);
  snprintf(out, 64, "?");
  if (fstatat(at, slash ? n ? home : "/" : ".", &status, 0) == 0)
    snprintf(out, 64, "%llx:%llu", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino);
  return slash ? slash + 1 : path;
}

static void note_entry(int at, const char *path) {
  char home[64];
  struct stat status;
  const char *name = home_of(at, path, home);
  if (fstatat(at, path, &status, AT_SYMLINK_NOFOLLOW) == 0)
    note("E %s %llx:%llu %s\n", home, (unsigned long long)status.st_dev,
         (unsigned long long)status.st_ino, name);
}

static void note_removed(int at, const char *path) {
  char home[64];
  const char *name = home_of(at, path, home);
  note("U %s %s\n", home, name);
}

static void note_renamed(char how, int from_at, const char *from, int to_at, const char *to) {
  char from_home[64], to_home[64];
  const char *a = home_of(from_at, from, from_home), *b = home_of(to_at, to, to_home);
  note("%c %s %s %s/%s\n", how, from_home, to_home, a, b);
}

static void note_written(int fd) {
  char id[64];
  note("W %s\n", id_of(fd, id));
}

#define REAL(name) (*(__typeof__(&name) *)(void *)&(void *[]){dlsym(RTLD_NEXT, #name)}[0])

static int opened(int fd, int at, const char *path, int flags) {
  if (fd >= 0 && flags & O_CREAT) note_entry(at, path);
  if (fd >= 0 && flags & O_TRUNC) note_written(fd);
  return fd;
}

static mode_t mode_of(int flags, va_list args) {
  return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = mode_of(flags, args);
  va_end(args);
  return opened(REAL(open)(path, flags, mode), AT_FDCWD, path, flags);
}

int openat(int at, const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = mode_of(flags, args);
  va_end(args);
  return opened(REAL(openat)(at, path, flags, mode), at, path, flags);
}

int open64(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = mode_of(flags, args);
  va_end(args);
  return opened(REAL(open)(path, flags, mode), AT_FDCWD, path, flags);
}

int openat64(int at, const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = mode_of(flags, args);
  va_end(args);
  return opened(REAL(openat)(at, path, flags, mode), at, path, flags);
}

ssize_t write(int fd, const void *bytes, size_t n) {
  const ssize_t done = REAL(write)(fd, bytes, n);
  if (done > 0) note_written(fd);
  return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
  const ssize_t done = REAL(pwrite)(fd, bytes, n, at);
  if (done > 0) note_written(fd);
  return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t at) {
  const ssize_t done = REAL(pwrite)(fd, bytes, n, at);
  if (done > 0) note_written(fd);
  return done;
}

ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t n,
                        unsigned flags) {
  const ssize_t done = REAL(copy_file_range)(in, in_at, out, out_at, n, flags);
  if (done > 0) note_written(out);
  return done;
}

ssize_t sendfile(int out, int in, off_t *at, size_t n) {
  const ssize_t done = REAL(sendfile)(out, in, at, n);
  if (done > 0) note_written(out);
  return done;
}

ssize_t sendfile64(int out, int in, off_t *at, size_t n) {
  const ssize_t done = REAL(sendfile)(out, in, at, n);
  if (done > 0) note_written(out);
  return done;
}

int ftruncate(int fd, off_t n) {
  const int done = REAL(ftruncate)(fd, n);
  if (done == 0) note_written(fd);
  return done;
}

int ftruncate64(int fd, off_t n) {
  const int done = REAL(ftruncate)(fd, n);
  if (done == 0) note_written(fd);
  return done;
}

int fsync(int fd) {
  char id[64];
  const int done = REAL(fsync)(fd);
  if (done == 0) note("S %s\n", id_of(fd, id));
  return done;
}

int fdatasync(int fd) {
  char id[64];
  const int done = REAL(fdatasync)(fd);
  if (done == 0) note("S %s\n", id_of(fd, id));
  return done;
}

int syncfs(int fd) {
  const int done = REAL(syncfs)(fd);
  if (done == 0) note("A\n");
  return done;
}

int mkdir(const char *path, mode_t mode) {
  const int done = REAL(mkdir)(path, mode);
  if (done == 0) note_entry(AT_FDCWD, path);
  return done;
}

int mkdirat(int at, const char *path, mode_t mode) {
  const int done = REAL(mkdirat)(at, path, mode);
  if (done == 0) note_entry(at, path);
  return done;
}

int link(const char *from, const char *to) {
  const int done = REAL(link)(from, to);
  if (done == 0) note_entry(AT_FDCWD, to);
  return done;
}

int unlink(const char *path) {
  const int done = REAL(unlink)(path);
  if (done == 0) note_removed(AT_FDCWD, path);
  return done;
}

int unlinkat(int at, const char *path, int flags) {
  const int done = REAL(unlinkat)(at, path, flags);
  if (done == 0) note_removed(at, path);
  return done;
}

int rmdir(const char *path) {
  const int done = REAL(rmdir)(path);
  if (done == 0) note_removed(AT_FDCWD, path);
  return done;
}

int rename(const char *from, const char *to) {
  const int done = REAL(rename)(from, to);
  if (done == 0) note_renamed('R', AT_FDCWD, from, AT_FDCWD, to);
  return done;
}

int renameat(int from_at, const char *from, int to_at, const char *to) {
  const int done = REAL(renameat)(from_at, from, to_at, to);
  if (done == 0) note_renamed('R', from_at, from, to_at, to);
  return done;
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
  const int done = REAL(renameat2)(from_at, from, to_at, to, flags);
  if (done == 0) note_renamed(flags & RENAME_EXCHANGE ? 'X' : 'R', from_at, from, to_at, to);
  return done;
}
