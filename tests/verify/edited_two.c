#include "edited_two.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/passes.h>
#include <psplit/verify.h>
#include <string.h>
#include <unistd.h>

#include "text_model.h"

static const char *const PATHS[] = {"out/stage0.onnx", "out/stage1.onnx", "out/pipeline.json"};

void split_in_two(const char *text, const char *const *pins, size_t n_pins,
                  psplit_boundary boundary) {
  psplit_diag diag = {0};
  psplit_planner *planner = NULL;
  psplit_planner_options planning;
  psplit_planner_options_init(&planning);
  planning.n_stages = 2;
  planning.pins = pins;
  planning.n_pins = n_pins;
  const psplit_emit_options emitting = {.struct_size = sizeof emitting,
                                        .boundary = boundary,
                                        .weights = PSPLIT_WEIGHTS_INLINE,
                                        .no_sync = true};
  write_model_text("model.onnx", text);
  psplit_code code = psplit_model_open("model.onnx", NULL, &diag, &model);
  if (code == PSPLIT_OK) code = psplit_planner_create(model, &planning, &diag, &planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(planner, NULL, &diag);
  if (code == PSPLIT_OK)
    code = psplit_emit(model, psplit_planner_plan(planner), "out", &emitting, &diag);
  if (code != PSPLIT_OK) fail_msg("%s", diag.message);
  psplit_planner_destroy(planner);
  read_split(PATHS, N_FILES);
}

static psplit_code verify_file(const char *path, const char *directory, psplit_diag *diag) {
  psplit_verify_report report;
  *diag = (psplit_diag){0};
  return psplit_verify_file(path, directory, model, NULL, diag, &report);
}

void proves_itself(const char *text, const char *other) {
  psplit_diag diag;
  char absolute[4096];
  assert_non_null(getcwd(absolute, sizeof absolute - 16));
  strcat(absolute, "/model.onnx");
  write_model_text("model.onnx", text);
  write_model_text("other.onnx", other);
  assert_int_equal(psplit_model_open("model.onnx", NULL, &diag, &model), PSPLIT_OK);
  const char *const paths[] = {"model.onnx", "./model.onnx", absolute};
  for (int i = 0; i < 3; i++)
    if (verify_file(paths[i], NULL, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
  assert_int_equal(verify_file("other.onnx", NULL, &diag), PSPLIT_MISMATCH);
  assert_int_equal(verify_file("/none.onnx", NULL, &diag), PSPLIT_IO);
  assert_non_null(strstr(diag.message, "/none.onnx"));
  psplit_model_close(model);
}
