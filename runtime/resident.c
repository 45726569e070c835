#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "source.h"

uint64_t psplit_i_resident_bytes(int pid) {
  char path[64];
  char line[128], *behind; /* pages: all, resident, ... */
  uint64_t pages = 0;
  snprintf(path, sizeof path, "/proc/%d/statm", pid);
  FILE *statm = fopen(path, "re");
  if (statm && fgets(line, sizeof line, statm) && strtoull(line, &behind, 10))
    pages = strtoull(behind, NULL, 10);
  if (statm) fclose(statm);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
