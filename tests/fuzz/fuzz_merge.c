/* Fuzz target: --inline-if and merge. Ifs of the input are taken for one branch each, the model is
 * split, proved, and put together again; what comes out has to be the model with these Ifs
 * replaced, unless it breaks a rule of ONNX, such as one output that is listed twice. */
#include <psplit/merge.h>
#include <psplit/snapshot.h>
#include <psplit/verify.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "splits.h"

enum { MOST_IFS = 3, NAME_BYTES = 256 };

/* Names of Ifs of the main graph, as the option takes them: the node's, else its first output's. */
static size_t find_ifs(const psplit_model *model, uint32_t choice, char names[][NAME_BYTES],
                       psplit_inline_if *out) {
  psplit_diag diag = {0};
  psplit_planner_options options;
  psplit_planner *planner = NULL;
  psplit_snapshot *snapshot = NULL;
  size_t n = 0;
  fuzz_planner_options(&options, 1);
  options.ignore_annotations = true;
  if (psplit_planner_create(model, &options, &diag, &planner) == PSPLIT_OK &&
      psplit_snapshot_take(planner, &diag, &snapshot) == PSPLIT_OK)
    for (uint32_t i = 0; i < snapshot->n_nodes && n < MOST_IFS; i++) {
      const psplit_snapshot_node *node = &snapshot->nodes[i];
      if (strcmp(node->op_type, "If") != 0 || !node->n_outputs) continue;
      const uint32_t output = node->outputs[0];
      const char *name = *node->name             ? node->name
                         : output != PSPLIT_NONE ? snapshot->values[output].name
                                                 : "";
      if (!*name || strlen(name) >= NAME_BYTES) continue;
      strcpy(names[n], name);
      out[n] = (psplit_inline_if){names[n], choice >> n & 1};
      n++;
    }
  psplit_snapshot_destroy(snapshot);
  psplit_planner_destroy(planner);
  return n;
}

/* Whether the stages were put together; some models that split cannot be one file of ours again. */
static bool merge(const char *directory, const psplit_model *model, const char *path) {
  psplit_diag diag = {0};
  psplit_merge_options options;
  psplit_merge_options_init(&options);
  options.model = model;
  options.replace = true;
  switch (psplit_merge(directory, path, &options, &diag, NULL)) {
    case PSPLIT_OK: return true;
    case PSPLIT_UNSUPPORTED:
    case PSPLIT_LIMIT: return false;
    default: fuzz_fail("merge", &diag);
  }
}

/* A planner that has a plan; NULL: there is none. */
static psplit_planner *plan(const psplit_model *model, uint32_t choice, bool allow_invalid) {
  psplit_diag diag = {0};
  psplit_planner_options options;
  psplit_planner *planner = NULL;
  fuzz_planner_options(&options, 1 + choice / 8 % 4);
  options.allow_invalid = allow_invalid;
  options.ignore_annotations = true;
  if (psplit_planner_create(model, &options, &diag, &planner) == PSPLIT_OK && fuzz_plan(planner))
    return planner;
  psplit_planner_destroy(planner);
  return NULL;
}

static void check(const psplit_model *model, const psplit_model *file, uint32_t choice) {
  const psplit_verify_options verify = {.struct_size = sizeof verify, .n_threads = 1};
  psplit_diag diag = {0};
  char directory[FUZZ_PATH_BYTES], path[FUZZ_PATH_BYTES];
  fuzz_path("out", directory);
  fuzz_path("merged.onnx", path);
  psplit_planner *planner = plan(model, choice, false);
  const bool valid = planner;
  if (!valid) planner = plan(model, choice, true);
  if (planner && fuzz_emit(model, psplit_planner_plan(planner), directory, choice)) {
    fuzz_must(psplit_verify(directory, file, &verify, &diag, NULL) == PSPLIT_OK, "verify", &diag);
    if (merge(directory, file, path) && valid)
      fuzz_must(psplit_verify_file(path, directory, file, &verify, &diag, NULL) == PSPLIT_OK,
                "verify of the merged file", &diag);
    fuzz_remove(path);
    fuzz_remove(directory);
  }
  psplit_planner_destroy(planner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  const int fd = fuzz_file(data, n);
  const uint32_t choice = fuzz_hash(data, n);
  psplit_diag diag = {0};
  psplit_model *file = fuzz_open(fd, NULL, 0, &diag);
  if (file) {
    char names[MOST_IFS][NAME_BYTES];
    psplit_inline_if ifs[MOST_IFS];
    const size_t n_ifs = find_ifs(file, choice >> 16, names, ifs);
    psplit_model *inlined = n_ifs ? fuzz_open(fd, ifs, n_ifs, &diag) : NULL;
    if (n_ifs && !inlined && diag.code != PSPLIT_USAGE && diag.code != PSPLIT_LIMIT &&
        diag.code != PSPLIT_UNSUPPORTED && diag.code != PSPLIT_INVALID)
      fuzz_fail("inline", &diag);
    check(inlined ? inlined : file, file, choice);
    psplit_model_close(inlined);
  }
  psplit_model_close(file);
  close(fd);
  return 0;
}
