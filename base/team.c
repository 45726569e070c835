#include "team.h"

#include <fcntl.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name is libomp's: __kmp_reg_status_name() in its kmp_runtime.cpp. */
static void remove_empty_record(void) {
  char name[64];
  snprintf(name, sizeof name, "/__KMP_REGISTERED_LIB_%ld_%ld", (long)getpid(), (long)getuid());
  const int fd = shm_open(name, O_RDONLY, 0);
  if (fd < 0) return;
  struct stat status;
  if (fstat(fd, &status) == 0 && status.st_size == 0) shm_unlink(name);
  close(fd);
}

int psplit_i_team_size(uint32_t asked) {
  static atomic_bool is_clean;
  if (!atomic_exchange(&is_clean, true)) remove_empty_record();
  return asked ? (int)asked : omp_get_max_threads();
}
