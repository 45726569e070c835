#include "open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "text_model.h"

int memory_file(const void *bytes, size_t n) {
  const int fd = memfd_create("model", MFD_CLOEXEC);
  if (fd < 0 || (n && write(fd, bytes, n) != (ssize_t)n)) {
    perror("memfd");
    abort();
  }
  return fd;
}

static psplit_code open_bytes(pb *bytes, psplit_diag *diag, psplit_model **out) {
  char path[64];
  const int fd = memory_file(bytes->bytes, bytes->n);
  psplit_i_text_fini(bytes);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  /* Tests of speed open files that ask for more than the default grants. */
  const psplit_read_options options = {.struct_size = sizeof options,
                                       .max_graph_bytes = UINT64_C(2) << 30};
  const psplit_code code = psplit_model_open(path, &options, diag, out);
  close(fd);
  return code;
}

psplit_model *opened(pb *bytes) {
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  if (open_bytes(bytes, &diag, &model) != PSPLIT_OK) {
    fprintf(stderr, "refused: %s\n", diag.message);
    abort();
  }
  check_model(model);
  return model;
}

void refused(pb *bytes, psplit_code code, const char *part) {
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  const psplit_code got = open_bytes(bytes, &diag, &model);
  if (got == code && diag.code == code && !model && strstr(diag.message, part)) return;
  fprintf(stderr, "expected %s with \"%s\", got %s: %s\n", psplit_code_name(code), part,
          psplit_code_name(got), diag.message);
  abort();
}

pb bytes_of_text(const char *text) {
  psplit_diag diag = {0};
  void *bytes = NULL;
  size_t n = 0;
  if (parse_model_text(text, strlen(text), NULL, &diag, &bytes, &n) != PSPLIT_OK) {
    fprintf(stderr, "%s\n%.2000s\n", diag.message, text);
    abort();
  }
  pb out = {0};
  psplit_i_text_add(&out, bytes, n);
  free(bytes);
  if (out.failed) abort();
  return out;
}

psplit_model *opened_text(const char *text) {
  pb bytes = bytes_of_text(text);
  return opened(&bytes);
}

void refused_text(const char *text, psplit_code code, const char *part) {
  pb bytes = bytes_of_text(text);
  refused(&bytes, code, part);
}
