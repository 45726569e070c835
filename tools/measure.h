/* For onnx-pipeline-learn: problems of models, and what their splits take when they are run. */
#ifndef PSPLIT_TOOLS_MEASURE_H
#define PSPLIT_TOOLS_MEASURE_H

#include <psplit/policy.h>

#include "ort_library.h"
#include "plan_options.h"

typedef struct measure_options {
  const plan_options *plan; /* devices, costs, and sizes that models leave open; loaded */
  uint32_t n_stages;        /* of models; 0: one for each device */
  uint32_t n_micro_batches; /* of a run; 0: as many as take half a second, 12 at least */
  ort_library library;
  bool run; /* else models are planned alone */
  const volatile int *cancel;
} measure_options;

typedef struct measure measure;

/* `options` is copied; what it points to must live as long. Errors: those of
 * psplit_onnxruntime_open, UNSUPPORTED (built without what runs stages), NOMEM, IO. */
PSPLIT_MUST_USE psplit_code measure_create(const measure_options *options, psplit_diag *diag,
                                           measure **out);
void measure_destroy(measure *measure); /* NULL is fine */

/* The next problem is that of a model; *out_problem is the caller's (psplit_problem_destroy). */
PSPLIT_MUST_USE psplit_code measure_model(measure *measure, const char *path, psplit_diag *diag,
                                          psplit_problem **out_problem);
/* The next problem is not a model's: its splits cannot be run. */
PSPLIT_MUST_USE psplit_code measure_bare(measure *measure, psplit_diag *diag);
/* Whether each name of --dim and --shape is one of a model, once all are there. Errors: USAGE. */
PSPLIT_MUST_USE psplit_code measure_check_names(const measure *measure, psplit_diag *diag);

/* A psplit_policy_measure, of a measure: the least of at most three runs of the same split. */
PSPLIT_MUST_USE psplit_code measure_split(void *user, uint32_t problem, const psplit_items *items,
                                          const uint32_t *stage, const uint32_t *type,
                                          double *out_ns, psplit_diag *diag);

/* Problem 0, 1, ..: of its splits that were run those that took least, run again in turn; of these
 * the one that takes least then, by nodes: out_stage (the measure's); NULL: no split of
 * it was run. */
PSPLIT_MUST_USE psplit_code measure_choose(measure *measure, uint32_t problem,
                                           const uint32_t **out_stage, uint32_t *out_n_nodes,
                                           psplit_diag *diag);

/* A line for each model that was run: its best split, and the one that was asked for last, run
 * again in turn. */
PSPLIT_MUST_USE psplit_code measure_print(measure *measure, FILE *out, psplit_diag *diag);

#endif
