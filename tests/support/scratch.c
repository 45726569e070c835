#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int enter_scratch(void **state) {
  char *path = strdup("/tmp/psplit-test-XXXXXX");
  if (!path || !mkdtemp(path) || chdir(path) != 0) return -1;
  *state = path;
  return 0;
}

int leave_scratch(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
  const int status = chdir("/") != 0 || system(command) != 0;
  free(*state);
  return status;
}
