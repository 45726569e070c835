/* Apart from splits.c, as few targets are linked with training. */
#include "splits.h"

void fuzz_must_train(const psplit_model *model, const char *directory,
                     const psplit_training_form *form) {
  const psplit_training_options options = {.loss_output = "loss"};
  psplit_planner_options planner_options;
  psplit_training *training = NULL;
  psplit_planner *planner = NULL;
  psplit_diag diag = {0};
  fuzz_planner_options(&planner_options, 2);
  if (psplit_training_create(model, &options, form, NULL, &diag, &training) != PSPLIT_OK ||
      psplit_training_plan(training, &planner_options, NULL, &diag, &planner) != PSPLIT_OK ||
      psplit_training_emit(training, psplit_planner_plan(planner), directory, NULL, &diag) !=
        PSPLIT_OK)
    fuzz_fail("a split that trains", &diag);
  psplit_planner_destroy(planner);
  psplit_training_destroy(training);
}
