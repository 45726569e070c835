/* Plans on standard output, as onnx-pipeline-split shows them. */
#ifndef PSPLIT_TOOLS_PRINT_PLAN_H
#define PSPLIT_TOOLS_PRINT_PLAN_H

#include "cli.h"

/* The stages as a table, what crosses between them, and how good that is; where weights stand in
 * the stage files (`weights_inside`), what a file of their own would save, if that is much. */
void print_plan(const psplit_plan *plan, bool weights_inside, double seconds);

enum { PRINT_PLAN_LINE = 2048 };

/* What the lines rest on, said once behind them. */
typedef struct comparison_notes {
  bool given_order;
  char assumed[PRINT_PLAN_LINE];
  char none[PRINT_PLAN_LINE]; /* why the last line without a speed-up has none */
} comparison_notes;

/* A line for each number of stages: the head, one of them, and what stands below. `notes` begins
 * zeroed. The schedule is that of the plan's micro-batches in flight, and `trains` of a step. */
void print_comparison_head(psplit_objective objective, uint32_t n_micro_batches, bool trains);
void print_comparison(const psplit_plan *plan, const psplit_schedule *schedule,
                      comparison_notes *notes);
void print_comparison_notes(const comparison_notes *notes);

#endif
