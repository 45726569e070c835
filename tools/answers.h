/* What became of the prompts of onnx-pipeline-generate, kept until it is printed in their order. */
#ifndef PSPLIT_TOOLS_ANSWERS_H
#define PSPLIT_TOOLS_ANSWERS_H

#include <psplit/generate.h>

#include "complete.h"

typedef struct answer {
  bool ended;
  psplit_generation what; /* its tokens and message are ours */
} answer;

typedef struct answers {
  answer *list; /* [n - n_gone] by sequence, the first ones gone */
  size_t capacity;
  uint64_t n, n_gone, n_printed, n_failed, n_told;
  complete_set complete;
  bool nomem; /* something was lost */
} answers;

/* Keeps a copy of what has ended. */
void answers_keep(answers *all, const psplit_generation *g);
/* The next one in the order of prompts, which counts as printed; NULL: it has not ended. */
const psplit_generation *answers_next(answers *all);
/* Drops what has been printed, so that prompts may come for ever. */
void answers_forget(answers *all);
/* All of them, of which none is gone, as one object on standard output; report may be NULL. */
void answers_print_json(const answers *all, const psplit_generator_stats *stats,
                        const psplit_run_report *report);
/* Failures of those that are left, and how many there were, on standard error. */
void answers_tell_failures(answers *all);
void answers_fini(answers *all);

#endif
