/* Opening a model when memory runs out:  test_oom MODEL...
 * The i-th allocation fails, for every i until none is reached: each time the call says NOMEM and
 * leaves no memory and no file descriptor behind. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing.h"
#include "open.h"

static unsigned count_files(void) {
  unsigned n = 0;
  DIR *directory = opendir("/proc/self/fd");
  while (directory && readdir(directory)) n++;
  if (directory) closedir(directory);
  return n;
}

enum { OWN_FD = 100 };
typedef enum source { FROM_PATH, FROM_FD, FROM_MEMORY, N_SOURCES } source;

static psplit_code open_from(source from, const char *path, psplit_diag *diag, psplit_model **out) {
  static uint8_t bytes[1 << 16];
  psplit_read_options options = {.struct_size = sizeof options, .follow_symlinks = true};
  if (from == FROM_PATH) return psplit_model_open(path, &options, diag, out);
  options.data_directory = "/proc/self/fd";
  if (from == FROM_FD) return psplit_model_open_fd(OWN_FD, NULL, &options, diag, out);
  const ssize_t n = pread(OWN_FD, bytes, sizeof bytes, 0);
  return psplit_model_open_memory(bytes, n < 0 ? 0 : (size_t)n, NULL, &options, diag, out);
}

/* Number of allocations that opening takes; -1 where something went wrong. */
static long try_all(source from, const char *path) {
  for (long i = 0; i < 100000; i++) {
    psplit_diag diag = {0};
    psplit_model *model = NULL;
    const long live_before = live_blocks();
    const unsigned files_before = count_files();
    fail_allocation_after(i);
    const psplit_code code = open_from(from, path, &diag, &model);
    const bool reached = stop_failing();
    if (model) check_model(model);
    psplit_model_close(model);
    const bool right = code == (reached ? PSPLIT_NOMEM : PSPLIT_OK) && code == diag.code &&
                       (code == PSPLIT_OK) == (model != NULL);
    if (!right || live_blocks() != live_before || count_files() != files_before) {
      fprintf(stderr, "%s, allocation %ld: %s: %s; %ld blocks and %d files stay\n", path, i,
              psplit_code_name(code), diag.message, live_blocks() - live_before,
              (int)count_files() - (int)files_before);
      return -1;
    }
    if (!reached) return i;
  }
  return -1;
}

int main(int argc, char **argv) {
  /* With this number a model can name itself as its external data
   * (tests/fuzz/texts/tensors.onnxtxt). */
  for (int i = 1; i < argc; i++) {
    const int fd = open(argv[i], O_RDONLY);
    if (fd < 0 || dup2(fd, OWN_FD) < 0) {
      perror(argv[i]);
      return 1;
    }
    close(fd);
    for (int from = FROM_PATH; from < N_SOURCES; from++) {
      const long n = try_all((source)from, "/proc/self/fd/100");
      if (n < 0) return 1;
      printf("%s: %ld allocations\n", argv[i], n);
      if (n < 5) return 1; /* the wrapping does not work */
    }
  }
  return argc < 2;
}
