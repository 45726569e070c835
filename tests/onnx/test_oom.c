/* Opening a model when memory runs out:  test_oom MODEL...
 * The i-th allocation fails, for every i until none is reached: each time the call says NOMEM and
 * leaves no memory and no file descriptor behind. The linker wraps the allocator (meson.build). */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "open.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);

static long n_live, n_until_failure = -1;

static bool fails(void) { return n_until_failure >= 0 && n_until_failure-- == 0; }

static void *counted(void *memory) {
  n_live += memory != NULL;
  return memory;
}

void *__wrap_malloc(size_t bytes) { return fails() ? NULL : counted(__real_malloc(bytes)); }

void *__wrap_calloc(size_t n, size_t bytes) {
  return fails() ? NULL : counted(__real_calloc(n, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes) {
  if (fails()) return NULL;
  return memory ? __real_realloc(memory, bytes) : counted(__real_realloc(NULL, bytes));
}

void __wrap_free(void *memory) {
  n_live -= memory != NULL;
  __real_free(memory);
}

static unsigned count_files(void) {
  unsigned n = 0;
  DIR *directory = opendir("/proc/self/fd");
  while (directory && readdir(directory)) n++;
  if (directory) closedir(directory);
  return n;
}

/* Number of allocations that opening takes; -1 where something went wrong. */
static long try_all(const char *path) {
  const psplit_read_options options = {.follow_symlinks = true};
  for (long i = 0; i < 100000; i++) {
    psplit_diag diag = {0};
    psplit_model *model = NULL;
    const long live_before = n_live;
    const unsigned files_before = count_files();
    n_until_failure = i;
    const psplit_code code = psplit_model_open(path, &options, &diag, &model);
    const bool reached = n_until_failure < 0;
    n_until_failure = -1;
    if (model) check_model(model);
    psplit_model_close(model);
    const bool right = code == (reached ? PSPLIT_NOMEM : PSPLIT_OK) && code == diag.code &&
                       (code == PSPLIT_OK) == (model != NULL);
    if (!right || n_live != live_before || count_files() != files_before) {
      fprintf(stderr, "%s, allocation %ld: %s: %s; %ld blocks and %d files stay\n", path, i,
              psplit_code_name(code), diag.message, n_live - live_before,
              (int)count_files() - (int)files_before);
      return -1;
    }
    if (!reached) return i;
  }
  return -1;
}

int main(int argc, char **argv) {
  /* With this number a model can name itself as its external data (tests/fuzz/make_seeds.c). */
  enum { OWN_FD = 100 };
  for (int i = 1; i < argc; i++) {
    const int fd = open(argv[i], O_RDONLY);
    if (fd < 0 || dup2(fd, OWN_FD) < 0) {
      perror(argv[i]);
      return 1;
    }
    close(fd);
    const long n = try_all("/proc/self/fd/100");
    if (n < 0) return 1;
    printf("%s: %ld allocations\n", argv[i], n);
    if (n < 5) return 1; /* the wrapping does not work */
  }
  return argc < 2;
}
