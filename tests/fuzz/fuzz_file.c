#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

int fuzz_file(const uint8_t *data, size_t n) {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || (n && write(fd, data, n) != (ssize_t)n)) {
    perror("memfd");
    abort();
  }
  if (dup2(fd, FUZZ_FD) != FUZZ_FD) abort();
  close(fd);
  return FUZZ_FD;
}
