/* Making what trains when memory runs out:  test_oom_training MODEL...
 * A plan of two stages is made first. Then the i-th allocation fails, for every i until none is
 * reached, while the model is differentiated and the plan's files are laid out with what is
 * computed again: the call says NOMEM, or UNSUPPORTED, as contents that could not be read are
 * merely unknown to shape inference; and it leaves no memory behind. */
#include <psplit/training.h>
#include <stdio.h>
#include <stdlib.h>

#include "failing.h"

static const char *const all[] = {"*"};
static const psplit_training_options options = {.loss = "mse:", .train = all, .n_train = 1};

static psplit_code begin(const psplit_model *model, psplit_diag *diag, psplit_training **out) {
  psplit_training_form form;
  psplit_training_form_init(&form);
  form.weights = PSPLIT_WEIGHTS_INPUT;
  form.optimizer = "adamw";
  form.recompute = PSPLIT_RECOMPUTE_HEAVY;
  form.weight_gradients = PSPLIT_WEIGHT_GRADIENTS_APART;
  return psplit_training_create(model, &options, &form, NULL, diag, out);
}

static psplit_code lay_out(const psplit_model *model, const psplit_plan *plan, psplit_diag *diag) {
  psplit_training *training = NULL;
  char *text = NULL;
  psplit_code code = begin(model, diag, &training);
  if (code == PSPLIT_OK) code = psplit_training_manifest(training, plan, NULL, diag, &text);
  free(text);
  psplit_training_destroy(training);
  return code;
}

/* Number of allocations that it takes; -1 where something went wrong. */
static long try_all(const psplit_model *model, const psplit_plan *plan) {
  for (long i = 0; i < 100000; i++) {
    psplit_diag diag = {0};
    const long live_before = live_blocks();
    fail_allocation_after(i);
    const psplit_code code = lay_out(model, plan, &diag);
    const bool reached = stop_failing();
    const bool known = code == PSPLIT_OK || code == PSPLIT_NOMEM || code == PSPLIT_UNSUPPORTED;
    if (!known || (code != PSPLIT_OK && !reached) || live_blocks() != live_before) {
      fprintf(stderr, "allocation %ld: %s (%s), %ld blocks stay\n", i, psplit_code_name(code),
              diag.message, live_blocks() - live_before);
      return -1;
    }
    if (!reached) return i;
  }
  return -1;
}

static int try_model(const char *path, psplit_diag *diag) {
  psplit_model *model = NULL;
  psplit_training *training = NULL;
  psplit_planner *planner = NULL;
  psplit_planner_options planning;
  psplit_planner_options_init(&planning);
  planning.n_stages = 2;
  planning.n_threads = 1;
  psplit_code code = psplit_model_open(path, NULL, diag, &model);
  if (code == PSPLIT_OK) code = begin(model, diag, &training);
  if (code == PSPLIT_OK)
    code =
      psplit_training_plan(training, &planning, "infer-shapes,cost,mark,partition", diag, &planner);
  const long n = code == PSPLIT_OK ? try_all(model, psplit_planner_plan(planner)) : -1;
  if (n >= 0) printf("%s: %ld allocations\n", path, n);
  psplit_planner_destroy(planner);
  psplit_training_destroy(training);
  psplit_model_close(model);
  return n < 50; /* the wrapping does not work, or try_all said why */
}

int main(int argc, char **argv) {
  int bad = argc < 2;
  for (int i = 1; i < argc; i++) {
    psplit_diag diag = {0};
    const int failed = try_model(argv[i], &diag);
    if (failed) fprintf(stderr, "%s: %s\n", argv[i], diag.message);
    bad |= failed;
  }
  return bad;
}
