/* accept_spoilt MODEL DIR: splits in two through the public API, with an `accept` that spoils a
 * byte of the finished files before it proves them. Exits with the status of the result; DIR must
 * not appear. */
#include <psplit/emit.h>
#include <psplit/passes.h>
#include <psplit/verify.h>
#include <stdio.h>
#include "../../tools/exit_status.h"

static psplit_code spoil_and_prove(void *user, const char *directory, psplit_diag *diag) {
  const psplit_model *model = user;
  char path[4096];
  snprintf(path, sizeof path, "%s/stage1.onnx", directory);
  FILE *file = fopen(path, "r+b");
  if (!file || fseek(file, -1, SEEK_END) != 0) return PSPLIT_INTERNAL;
  const int last = fgetc(file);
  if (fseek(file, -1, SEEK_END) != 0 || fputc(last ^ 1, file) == EOF) return PSPLIT_INTERNAL;
  if (fclose(file) != 0) return PSPLIT_INTERNAL;
  return psplit_verify(directory, model, NULL, diag, NULL);
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  psplit_planner *planner = NULL;
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = 2;
  psplit_code code = psplit_model_open(argv[1], NULL, &diag, &model);
  if (code == PSPLIT_OK) code = psplit_planner_create(model, &options, &diag, &planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(planner, NULL, &diag);
  const psplit_emit_options emit = {
    .struct_size = sizeof emit, .accept = spoil_and_prove, .accept_user = model};
  if (code == PSPLIT_OK)
    code = psplit_emit(model, psplit_planner_plan(planner), argv[2], &emit, &diag);
  if (code != PSPLIT_OK) fprintf(stderr, "error: %s\n", diag.message);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
  return cli_exit_status(code);
}
