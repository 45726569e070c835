/* Runs a fuzz target over kept inputs, without libFuzzer:  replay FILE-OR-DIRECTORY...
 * Each file is also run cut short at a few places. Fails when there is nothing to run. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz.h"

static unsigned n_run;

static void run_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END) != 0) {
    perror(path);
    exit(1);
  }
  const size_t n = (size_t)ftell(file);
  rewind(file);
  uint8_t *bytes = malloc(n + 1);
  if (!bytes || fread(bytes, 1, n, file) != n) {
    perror(path);
    exit(1);
  }
  fclose(file);
  for (size_t cut = 0; cut < 16; cut++) LLVMFuzzerTestOneInput(bytes, n * cut / 16);
  LLVMFuzzerTestOneInput(bytes, n);
  free(bytes);
  n_run++;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    struct stat status;
    if (stat(argv[i], &status) == 0 && S_ISREG(status.st_mode)) {
      run_file(argv[i]);
      continue;
    }
    DIR *directory = opendir(argv[i]);
    if (!directory) {
      perror(argv[i]);
      return 1;
    }
    for (const struct dirent *entry; (entry = readdir(directory));) {
      char path[4096];
      snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
      if (stat(path, &status) == 0 && S_ISREG(status.st_mode)) run_file(path);
    }
    closedir(directory);
  }
  printf("%u inputs\n", n_run);
  return n_run ? 0 : 1;
}
