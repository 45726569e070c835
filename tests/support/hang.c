/* A library for LD_PRELOAD whose call never returns, as where a disk or another host does not
 * answer: PSPLIT_HANG is "CALL NAME", of read, pread and fsync, for files whose name has NAME in
 * it. PSPLIT_HANG_TOLD names a file that is made then. Signals are handled. */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hang(const char *call, int fd) {
  const char *asked = getenv("PSPLIT_HANG"), *told = getenv("PSPLIT_HANG_TOLD");
  const size_t n_call = strlen(call);
  char link[64], name[PATH_MAX + 1] = "";
  if (!asked || !told || strncmp(asked, call, n_call) || asked[n_call] != ' ') return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, name, PATH_MAX) < 0 || !strstr(name, asked + n_call + 1)) return;
  close(open(told, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  for (;;) pause();
}

#define NEXT(name, type) ((type)(void (*)(void))dlsym(RTLD_NEXT, name))

ssize_t read(int fd, void *data, size_t n) {
  hang("read", fd);
  return NEXT("read", ssize_t(*)(int, void *, size_t))(fd, data, n);
}
ssize_t pread(int fd, void *data, size_t n, off_t at) {
  hang("pread", fd);
  return NEXT("pread", ssize_t(*)(int, void *, size_t, off_t))(fd, data, n, at);
}
ssize_t pread64(int fd, void *data, size_t n, off64_t at) {
  hang("pread", fd);
  return NEXT("pread64", ssize_t(*)(int, void *, size_t, off64_t))(fd, data, n, at);
}
int fsync(int fd) {
  hang("fsync", fd);
  return NEXT("fsync", int (*)(int))(fd);
}
