/* Parsing and printing when memory runs out:  test_oom_text TEXT...
 * The i-th allocation fails, for every i until none is reached: each time the call says NOMEM and
 * leaves no memory behind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "failing.h"
#include "model.h"
#include "text_form.h"

typedef psplit_code (*action)(void *user, psplit_diag *diag);

/* Number of allocations that the action takes; -1 where something went wrong. */
static long try_all(const char *what, action act, void *user) {
  for (long i = 0; i < 100000; i++) {
    psplit_diag diag = {0};
    const long live_before = live_blocks();
    fail_allocation_after(i);
    const psplit_code code = act(user, &diag);
    const bool reached = stop_failing();
    if (code != (reached ? PSPLIT_NOMEM : PSPLIT_OK) || code != diag.code ||
        live_blocks() != live_before) {
      fprintf(stderr, "%s, allocation %ld: %s: %s; %ld blocks stay\n", what, i,
              psplit_code_name(code), diag.message, live_blocks() - live_before);
      return -1;
    }
    if (!reached) return i;
  }
  return -1;
}

typedef struct text {
  char bytes[1 << 16];
  size_t n;
  psplit_model *model;
} text;

static psplit_code parse(void *user, psplit_diag *diag) {
  const text *from = user;
  void *bytes = NULL;
  size_t n;
  const psplit_code code = psplit_model_parse_text(from->bytes, from->n, NULL, diag, &bytes, &n);
  free(bytes);
  return code;
}

static psplit_code print(void *user, psplit_diag *diag) {
  const text *from = user;
  const psplit_print_text_options options = {.struct_size = sizeof options,
                                             .max_data_bytes = UINT64_MAX};
  char *out = NULL;
  size_t n;
  const psplit_code code = psplit_model_print_text(from->model, &options, diag, &out, &n);
  free(out);
  return code;
}

/* A model that has weights in its file, opened. */
static psplit_model *open_large(void) {
  static const char large[] =
    "<ir_version: 8, opset_import: [\"\": 17]> g (float[400] x) => (float[400] y) <float[400] w = "
    "random(1), float[400] v = {1 * 400}> { t = Add(x, w) y = Add(t, v) }";
  char path[64];
  const int fd = memfd_create("model", MFD_CLOEXEC);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  void *bytes;
  size_t n;
  if (fd < 0 || psplit_model_parse_text(large, strlen(large), NULL, &diag, &bytes, &n) != PSPLIT_OK)
    abort();
  if (write(fd, bytes, n) != (ssize_t)n ||
      psplit_model_open(path, NULL, &diag, &model) != PSPLIT_OK) {
    fprintf(stderr, "%s\n", diag.message);
    abort();
  }
  free(bytes);
  close(fd); /* the model holds it too */
  return model;
}

int main(int argc, char **argv) {
  static text from;
  for (int i = 1; i < argc; i++) {
    FILE *file = fopen(argv[i], "rb");
    if (!file) {
      perror(argv[i]);
      return 1;
    }
    from.n = fread(from.bytes, 1, sizeof from.bytes, file);
    fclose(file);
    const long n = try_all(argv[i], parse, &from);
    if (n < 5) return 1; /* it failed, or the wrapping does not work */
    printf("parsing %s: %ld allocations\n", argv[i], n);
  }
  from.model = open_large();
  const long n = try_all("printing", print, &from);
  psplit_model_close(from.model);
  printf("printing: %ld allocations\n", n);
  return n < 5;
}
