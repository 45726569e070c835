/* onnx-pipeline-split --autotune: its options, and a line for each round. */
#ifndef PSPLIT_TOOLS_TUNE_H
#define PSPLIT_TOOLS_TUNE_H

#include <psplit/emit.h>
#include <stdio.h>

#include "ort_library.h"
#include "plan_options.h"
#if PSPLIT_HAS_RUNTIME
#include "feed_options.h"
#endif

typedef struct tune_settings {
  uint32_t n_rounds; /* 0: none */
  ort_library library;
  int optimization; /* 0, 1, 2 or 99 */
#if PSPLIT_HAS_RUNTIME
  feed_settings feed; /* files and shapes of inputs; else random ones, sizes of --dim */
#endif
  const volatile int *cancel; /* a flag: stop */
  /* Goes on with the costs of the best round and ends the process: called where a signal came
   * behind a round and stages that run do not stop. */
  void (*go_on)(void *user, uint32_t n_rounds);
  void *user;
} tune_settings;

void tune_init(tune_settings *settings);

/* The split that is tuned. */
typedef struct tune_split {
  const char *path; /* of `model` */
  const psplit_model *model;
  uint32_t n_stages;
  const psplit_emit_options *emit;
  const char *directory; /* where the split will be: stages are run beside it */
  FILE *out;             /* gets a line for each round; NULL: none */
} tune_split;

/* Runs psplit_autotune and leaves the costs of the best round in `plan`, also where a signal ends
 * the rounds after the first. *out_n_rounds is how many there were. Errors: those of
 * psplit_autotune; UNSUPPORTED where the runner was not built. */
PSPLIT_MUST_USE psplit_code tune_run(const tune_settings *settings, const tune_split *split,
                                     plan_options *plan, psplit_diag *diag, uint32_t *out_n_rounds);
void tune_fini(tune_settings *settings);

#endif
