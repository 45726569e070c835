/* Fuzz target: opening a model and walking all of its index. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  const int fd = fuzz_file(data, n);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  /* Below /proc/self/fd every name is a link; "100" is the model itself. */
  const psplit_read_options options = {
    .struct_size = sizeof options, .max_graph_bytes = 64 << 20, .follow_symlinks = true};
  psplit_diag diag = {0}, other_diag = {0};
  psplit_model *model = NULL, *other = NULL;
  const psplit_code code = psplit_model_open(path, &options, &diag, &model);
  /* From memory it is the same model, or the same error. */
  psplit_read_options beside = options;
  beside.data_directory = "/proc/self/fd";
  if (psplit_model_open_memory(data, n, path, &beside, &other_diag, &other) != code) abort();
  if (strcmp(diag.message, other_diag.message) != 0) abort();
  if (other) check_model(other);
  psplit_model_close(other);
  if ((code == PSPLIT_OK) != (model != NULL) || code != diag.code) abort();
  if (code == PSPLIT_INTERNAL || code == PSPLIT_NOMEM) {
    fprintf(stderr, "%s\n", diag.message);
    abort();
  }
  if (model) check_model(model);
  psplit_model_close(model);
  close(fd);
  return 0;
}
