/* Fuzz target: a whole split. What opens is planned, written to a directory and proved; a split
 * that was written and is not the model, or a failure that blames ourselves, is a crash. Stages,
 * boundary and weights are drawn from the input's hash. */
#include <psplit/verify.h>
#include <unistd.h>

#include "splits.h"

static void split(const psplit_model *model, uint32_t choice) {
  psplit_diag diag = {0};
  psplit_planner_options options;
  fuzz_planner_options(&options, 1 + choice / 8 % 4);
  options.allow_invalid = choice / 128 % 4 != 0; /* mostly: what is changed at random seldom runs */
  options.ignore_annotations = choice / 32 % 4 != 0;
  psplit_planner *planner = NULL;
  if (psplit_planner_create(model, &options, &diag, &planner) == PSPLIT_OK && fuzz_plan(planner)) {
    char directory[FUZZ_PATH_BYTES];
    fuzz_path("out", directory);
    if (fuzz_emit(model, psplit_planner_plan(planner), directory, choice)) {
      const psplit_verify_options verify = {.struct_size = sizeof verify, .n_threads = 1};
      fuzz_must(psplit_verify(directory, model, &verify, &diag, NULL) == PSPLIT_OK, "verify",
                &diag);
      fuzz_remove(directory);
    }
  }
  psplit_planner_destroy(planner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  const int fd = fuzz_file(data, n);
  psplit_diag diag = {0};
  psplit_model *model = fuzz_open(fd, NULL, 0, &diag);
  if (model) split(model, fuzz_hash(data, n));
  psplit_model_close(model);
  close(fd);
  return 0;
}
