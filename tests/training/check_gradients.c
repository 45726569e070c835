/* What psplit_check_gradients finds in stages that no proof was asked about, a line a weight:
 * check_gradients MODEL DIR [--dim NAME=N] [--shape NAME=N,..] [--input NAME=LO..HI] [--seed N] */
#include <psplit/run_gradients.h>
#include <stdio.h>

#include "../../tools/feed_options.h"

static const cli_option OPTIONS[] = {FEED_OPTIONS};
static const cli PROGRAM = {"check_gradients", "MODEL DIR [OPTION]...", "", OPTIONS,
                            sizeof OPTIONS / sizeof *OPTIONS};

int main(int argc, char **argv) {
  static const char *const verdicts[] = {"holds", "differs", "untold"};
  feed_settings feed;
  const char *argument;
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  psplit_onnxruntime *ort = NULL;
  psplit_gradient_check *check = NULL;
  psplit_gradient_check_options options;
  feed_init(&feed);
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;)
    if (!feed_option(&PROGRAM, &feed, id, argument)) return 2;
  feed.options.random = true;
  psplit_gradient_check_options_init(&options);
  options.feed = &feed.options;
  psplit_code code = psplit_model_open(argv[argc - 2], NULL, &diag, &model);
  if (code == PSPLIT_OK) code = psplit_onnxruntime_open(NULL, &diag, &ort);
  if (code == PSPLIT_OK)
    code = psplit_check_gradients(ort, argv[argc - 1], model, &options, &diag, &check);
  if (code != PSPLIT_OK) printf("error: %s\n", diag.message);
  for (uint32_t i = 0; check && i < psplit_gradient_check_n_findings(check); i++) {
    const psplit_gradient_finding *f = psplit_gradient_check_finding(check, i);
    printf("%s %s %.6g %.6g %.6g\n", f->name, verdicts[f->verdict], f->scale, f->gap, f->bound);
  }
  psplit_gradient_check_destroy(check);
  psplit_onnxruntime_close(ort);
  psplit_model_close(model);
  feed_fini(&feed);
  return code == PSPLIT_OK ? 0 : 1;
}
