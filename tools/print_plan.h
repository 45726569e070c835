/* Plans on standard output, as onnx-pipeline-split shows them. */
#ifndef PSPLIT_TOOLS_PRINT_PLAN_H
#define PSPLIT_TOOLS_PRINT_PLAN_H

#include "cli.h"

/* The stages as a table, what crosses between them, and how good that is. */
void print_plan(const psplit_plan *plan, double seconds);

/* A line for each number of stages: the head, and one of them. Errors: those of the schedule. */
void print_comparison_head(psplit_objective objective, uint32_t n_micro_batches);
PSPLIT_MUST_USE psplit_code print_comparison(const psplit_plan *plan, uint32_t n_micro_batches,
                                             psplit_diag *diag);

#endif
