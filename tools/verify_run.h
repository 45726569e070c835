/* onnx-pipeline-verify --run, --gradients: the numbers beside the proof. Built with the runtime. */
#ifndef PSPLIT_TOOLS_VERIFY_RUN_H
#define PSPLIT_TOOLS_VERIFY_RUN_H

#include "feed_options.h"
#include "ort_library.h"

enum { OPT_RUN = 3000, OPT_GRADIENTS, OPT_DIRECTIONS, OPT_MICRO_BATCHES, OPT_OPTIMIZATION };

typedef struct verify_run {
  bool wanted, gradients;
  const char *given; /* an option that only runs have a use for, or NULL */
  bool directed;     /* --directions was given */
  uint32_t n_directions;
  ort_library library;
  feed_settings feed;
  int optimization;
  uint32_t n_micro_batches;
} verify_run;

/* Optimisation off, two micro-batches; inputs that no file gives are random. */
void verify_run_init(verify_run *run);

/* Takes an option; false after an error line. */
bool verify_run_option(const cli *program, verify_run *run, int id, const char *argument);

/* The model that a directory is the stages of, its file and how that was read. */
typedef struct verified_model {
  const char *path;
  const psplit_model *model;
  const psplit_read_options *read;
} verified_model;

/* With --run compares and prints a line for each output, with --gradients for each weight; frees
 * `run`. Errors: MISMATCH where a bit differs with optimisation off, or a gradient by more than
 * rounding explains. */
PSPLIT_MUST_USE psplit_code verify_run_finish(verify_run *run, const char *directory,
                                              const verified_model *of, uint64_t max_text_bytes,
                                              bool quiet, psplit_diag *diag);

#endif
