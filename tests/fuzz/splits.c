#include "splits.h"

#include <ftw.h>
#include <psplit/model_text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char scratch[FUZZ_PATH_BYTES / 2];

void fuzz_fail(const char *what, const psplit_diag *diag) {
  fprintf(stderr, "%s: %s: %s\n", what, psplit_code_name(diag->code), diag->message);
  abort();
}

void fuzz_must(bool holds, const char *what, const psplit_diag *diag) {
  if (!holds) fuzz_fail(what, diag);
}

void fuzz_holds(bool holds, const char *condition) {
  if (holds) return;
  fprintf(stderr, "does not hold: %s\n", condition);
  abort();
}

uint32_t fuzz_hash(const uint8_t *data, size_t n) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < n; i++) hash = (hash ^ data[i]) * 16777619u;
  return hash ^ hash >> 16;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *at) {
  (void)status;
  (void)type;
  (void)at;
  return remove(path);
}

void fuzz_remove(const char *path) {
  if (access(path, F_OK) == 0 && nftw(path, remove_entry, 4, FTW_DEPTH | FTW_PHYS) != 0) {
    perror(path);
    abort();
  }
}

static void remove_scratch(void) { fuzz_remove(scratch); }

void fuzz_path(const char *name, char out[FUZZ_PATH_BYTES]) {
  if (!*scratch) {
    const char *home = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/psplit-fuzz-XXXXXX", home ? home : "/tmp");
    if (!mkdtemp(scratch)) {
      perror(scratch);
      abort();
    }
    atexit(remove_scratch);
  }
  snprintf(out, FUZZ_PATH_BYTES, "%s/%s", scratch, name);
}

psplit_model *fuzz_open(int fd, const psplit_inline_if *ifs, size_t n_ifs, psplit_diag *diag) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const psplit_read_options options = {.struct_size = sizeof options,
                                       .max_graph_bytes = 64 << 20,
                                       .follow_symlinks = true,
                                       .inline_ifs = ifs,
                                       .n_inline_ifs = n_ifs};
  psplit_model *model = NULL;
  const psplit_code code = psplit_model_open(path, &options, diag, &model);
  if ((code == PSPLIT_OK) != (model != NULL)) abort();
  return model;
}

psplit_model *fuzz_model_of(const char *text) {
  const psplit_parse_text_options options = {.struct_size = sizeof options, .fill_left_out = true};
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  void *bytes;
  size_t n;
  if (psplit_model_parse_text(text, strlen(text), &options, &diag, &bytes, &n) != PSPLIT_OK ||
      psplit_model_open_memory(bytes, n, "model.onnx", NULL, &diag, &model) != PSPLIT_OK)
    fuzz_fail("model", &diag);
  free(bytes);
  return model;
}

void fuzz_planner_options(psplit_planner_options *options, uint32_t n_stages) {
  psplit_planner_options_init(options);
  options->n_stages = n_stages;
  options->time_limit_s = 0.02;
  options->n_threads = 1;
  options->verify_each = true;
}

bool fuzz_plan(psplit_planner *planner) {
  psplit_diag diag = {0};
  switch (psplit_planner_run(planner, NULL, &diag)) {
    case PSPLIT_OK: return true;
    case PSPLIT_INFEASIBLE:
    case PSPLIT_UNSUPPORTED:
    case PSPLIT_LIMIT: return false;
    case PSPLIT_INVALID: /* no runtime takes it, and allow_invalid was not set */
      if (diag.hint == PSPLIT_HINT_ALLOW_INVALID) return false;
      fuzz_fail("plan", &diag);
    default: fuzz_fail("plan", &diag);
  }
}

bool fuzz_emit(const psplit_model *model, const psplit_plan *plan, const char *directory,
               uint32_t choice) {
  static const psplit_weights weights[] = {PSPLIT_WEIGHTS_AUTO, PSPLIT_WEIGHTS_INLINE,
                                           PSPLIT_WEIGHTS_EXTERNAL};
  psplit_diag diag = {0};
  const psplit_emit_options options = {
    .struct_size = sizeof options,
    .boundary = choice % 2 ? PSPLIT_BOUNDARY_IO : PSPLIT_BOUNDARY_SENDRECV,
    .weights = weights[choice / 2 % 3],
    .n_threads = 1,
    .no_sync = true};
  switch (psplit_emit(model, plan, directory, &options, &diag)) {
    case PSPLIT_OK: return true;
    case PSPLIT_UNSUPPORTED:
    case PSPLIT_LIMIT: return false;
    default: fuzz_fail("emit", &diag);
  }
}

void fuzz_must_split(const psplit_model *model, const char *directory, uint32_t choice) {
  psplit_planner_options options;
  psplit_planner *planner = NULL;
  psplit_diag diag = {0};
  fuzz_planner_options(&options, 2);
  fuzz_must(psplit_planner_create(model, &options, &diag, &planner) == PSPLIT_OK, "planner", &diag);
  FUZZ_HOLDS(fuzz_plan(planner) &&
             fuzz_emit(model, psplit_planner_plan(planner), directory, choice));
  psplit_planner_destroy(planner);
}
