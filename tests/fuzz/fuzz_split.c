/* Fuzz target: a whole split. What opens is planned, written to a directory and proved; a split
 * that was written and is not the model, or a failure that blames ourselves, is a crash. Stages,
 * boundary and weights are drawn from the input's hash. */
#include <ftw.h>
#include <psplit/emit.h>
#include <psplit/passes.h>
#include <psplit/verify.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

enum { PATH_BYTES = 4096 };

static char scratch[PATH_BYTES];

static void remove_scratch(void) { rmdir(scratch); }

/* A directory of this process, in $TMPDIR: best in memory. */
static const char *scratch_directory(void) {
  if (*scratch) return scratch;
  const char *home = getenv("TMPDIR");
  snprintf(scratch, sizeof scratch, "%s/psplit-fuzz-XXXXXX", home ? home : "/tmp");
  if (!mkdtemp(scratch)) {
    perror(scratch);
    abort();
  }
  atexit(remove_scratch);
  return scratch;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *at) {
  (void)status;
  (void)type;
  (void)at;
  return remove(path);
}

static void fail(const char *what, const psplit_diag *diag) {
  fprintf(stderr, "%s: %s: %s\n", what, psplit_code_name(diag->code), diag->message);
  abort();
}

static uint32_t hash_of(const uint8_t *data, size_t n) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < n; i++) hash = (hash ^ data[i]) * 16777619u;
  return hash ^ hash >> 16;
}

/* Whether the model has such a split; what it lacks is a reason that users are told. */
static bool plan(psplit_planner *planner, psplit_diag *diag) {
  switch (psplit_planner_run(planner, NULL, diag)) {
    case PSPLIT_OK: return true;
    case PSPLIT_INFEASIBLE:
    case PSPLIT_UNSUPPORTED:
    case PSPLIT_LIMIT: return false;
    case PSPLIT_INVALID: /* no runtime takes it, and allow_invalid was not set */
      if (diag->hint == PSPLIT_HINT_ALLOW_INVALID) return false;
      fail("plan", diag);
      return false;
    default: fail("plan", diag); return false;
  }
}

static bool emit(const psplit_model *model, const psplit_plan *made, const char *directory,
                 uint32_t choice, psplit_diag *diag) {
  static const psplit_weights weights[] = {PSPLIT_WEIGHTS_AUTO, PSPLIT_WEIGHTS_INLINE,
                                           PSPLIT_WEIGHTS_EXTERNAL};
  const psplit_emit_options options = {
    .struct_size = sizeof options,
    .boundary = choice % 2 ? PSPLIT_BOUNDARY_IO : PSPLIT_BOUNDARY_SENDRECV,
    .weights = weights[choice / 2 % 3],
    .n_threads = 1};
  switch (psplit_emit(model, made, directory, &options, diag)) {
    case PSPLIT_OK: return true;
    case PSPLIT_UNSUPPORTED:
    case PSPLIT_LIMIT: return false;
    default: fail("emit", diag); return false;
  }
}

static void split(const psplit_model *model, uint32_t choice) {
  psplit_diag diag = {0};
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = 1 + choice / 8 % 4;
  options.time_limit_s = 0.02;
  options.n_threads = 1;
  options.verify_each = true;
  options.allow_invalid = choice / 128 % 4 != 0; /* mostly: what is changed at random seldom runs */
  options.ignore_annotations = choice / 32 % 4 != 0;
  psplit_planner *planner = NULL;
  if (psplit_planner_create(model, &options, &diag, &planner) == PSPLIT_OK &&
      plan(planner, &diag)) {
    char directory[PATH_BYTES + 8];
    snprintf(directory, sizeof directory, "%s/out", scratch_directory());
    if (emit(model, psplit_planner_plan(planner), directory, choice, &diag)) {
      const psplit_verify_options verify = {.struct_size = sizeof verify, .n_threads = 1};
      if (psplit_verify(directory, model, &verify, &diag, NULL) != PSPLIT_OK) fail("verify", &diag);
      if (nftw(directory, remove_entry, 4, FTW_DEPTH | FTW_PHYS) != 0) abort();
    }
  }
  psplit_planner_destroy(planner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  const int fd = fuzz_file(data, n);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const psplit_read_options options = {
    .struct_size = sizeof options, .max_graph_bytes = 64 << 20, .follow_symlinks = true};
  psplit_model *model = NULL;
  if (psplit_model_open(path, &options, NULL, &model) == PSPLIT_OK) split(model, hash_of(data, n));
  psplit_model_close(model);
  close(fd);
  return 0;
}
