/* onnx-pipeline-split --autotune: split, run, correct the costs, again. */
#ifndef PSPLIT_TOOLS_AUTOTUNE_H
#define PSPLIT_TOOLS_AUTOTUNE_H

#include <psplit/emit.h>
#include <stdatomic.h>
#include <stdio.h>

#include "plan_options.h"

typedef struct autotune_options {
  uint32_t n_rounds;                /* 0: none */
  const char *onnxruntime;          /* NULL: as onnx-pipeline-run finds it */
  int optimization;                 /* 0, 1, 2 or 99 */
  const struct feed_settings *feed; /* inputs and their sizes; NULL: random ones, sizes of --dim */
  const atomic_int *interrupted;    /* not 0: stop */
} autotune_options;

/* Runs up to n_rounds splits of `model`, opened from `path`, and leaves the costs of the one whose
 * slowest stage was fastest in `plan`. Stages run at once in this process, a thread each; round by
 * round the nodes of a stage become as much dearer as it was slower than
 * predicted. Ends early once the stages are within 5 % of their mean, or the cut does not change.
 * Without a table of costs the whole model is profiled first. Each round is written in a new
 * directory beside `directory`, the output, and removed, also where the run is interrupted. `out`
 * gets a line for each round; NULL: none. Errors: those of planning, writing and running;
 * UNSUPPORTED where the runner was not built. */
PSPLIT_MUST_USE psplit_code autotune(const autotune_options *options, const char *path,
                                     const psplit_model *model, uint32_t n_stages,
                                     const psplit_emit_options *emit, const char *directory,
                                     FILE *out, psplit_diag *diag, plan_options *plan);

#endif
