/* Plans on standard output, as onnx-pipeline-split shows them. */
#ifndef PSPLIT_TOOLS_PRINT_PLAN_H
#define PSPLIT_TOOLS_PRINT_PLAN_H

#include <psplit/snapshot.h>

#include "cli.h"
#include "stage_chart.h"

typedef struct plan_report {
  bool weights_inside; /* they stand in the stage files: say what a file of their own would save */
  bool all_transfers;  /* else the first twelve */
  stage_chart_color color;
} plan_report;

/* The stages as a table and on a terminal as bars, what crosses between them, and how good that
 * is. */
void print_plan(const psplit_plan *plan, const plan_report *report, double seconds);

/* Whether the stages wait a quarter of their time, or more, for the slowest. */
bool print_plan_waits(const psplit_plan *plan);
/* If half of the slowest stage or more is one supernode: a line that says so, and what helps. */
void print_plan_undivided(const psplit_snapshot *snapshot, FILE *out);

enum { PRINT_PLAN_LINE = 2048 };

/* What the lines rest on, said once behind them. */
typedef struct comparison_notes {
  char assumed[PRINT_PLAN_LINE];
  char none[PRINT_PLAN_LINE];     /* why the last line without a speed-up has none */
  uint32_t first_same, last_same; /* numbers of stages up to the last that have one value */
  double most_speed_up;           /* of those with several stages; 0: none was told */
  int64_t same_ns;
  char largest[160]; /* of the last: the supernode that takes most of its slowest stage */
  int64_t largest_ns;
} comparison_notes;

/* A line for each number of stages: the head, one of them, and what stands below. `notes` begins
 * zeroed. The schedule is that of the plan's micro-batches in flight, and `trains` of a step. */
void print_comparison_head(psplit_objective objective, uint32_t n_micro_batches, bool trains);
void print_comparison(const psplit_plan *plan, const psplit_schedule *schedule,
                      comparison_notes *notes);
/* The same as JSON: a list of objects, one for each number of stages, between the `[` of the first
 * and the end. One without a plan has its reason. */
void print_comparison_json(const psplit_plan *plan, const psplit_schedule *schedule, bool first);
void print_infeasible_json(uint32_t n_stages, const char *why, bool first);
void print_comparison_json_end(void);
/* Of the plan that was just printed, what its slowest stage is made of. */
void print_comparison_largest(const psplit_snapshot *snapshot, comparison_notes *notes);
void print_comparison_notes(const comparison_notes *notes);

#endif
