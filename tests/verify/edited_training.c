#include "edited_training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>

#include "edited.h"
#include "text_model.h"

void split_training(const trained_split *split, const psplit_training_form *form) {
  const psplit_inline_if taken = {split->inline_then, true};
  const psplit_read_options reading = {.struct_size = sizeof reading,
                                       .inline_ifs = &taken,
                                       .n_inline_ifs = split->inline_then != NULL};
  const psplit_training_options options = {.loss_output = "loss",
                                           .freeze = &split->freeze,
                                           .n_freeze = split->freeze != NULL,
                                           .gradient_of = &split->gradient_of,
                                           .n_gradient_of = split->gradient_of != NULL};
  const psplit_emit_options emitting = {.struct_size = sizeof emitting,
                                        .boundary = split->boundary,
                                        .weights = PSPLIT_WEIGHTS_INLINE,
                                        .no_sync = true};
  psplit_planner_options planning;
  psplit_diag diag = {0};
  psplit_training *training = NULL;
  psplit_planner *planner = NULL;
  psplit_planner_options_init(&planning);
  planning.n_stages = 2;
  planning.pins = split->pins;
  planning.n_pins = 2;
  write_model_text("model.onnx", split->text);
  psplit_code code = psplit_model_open("model.onnx", &reading, &diag, &model);
  if (code == PSPLIT_OK)
    code = psplit_training_create(model, &options, form, NULL, &diag, &training);
  if (code == PSPLIT_OK) code = psplit_training_plan(training, &planning, NULL, &diag, &planner);
  if (code == PSPLIT_OK)
    code = psplit_training_emit(training, psplit_planner_plan(planner), "out", &emitting, &diag);
  if (code != PSPLIT_OK) fail_msg("%s", diag.message);
  psplit_planner_destroy(planner);
  psplit_training_destroy(training);
}
