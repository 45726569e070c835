#include "plan_budget.h"

#include <math.h>

#include "budget.h"
#include "solve.h"

enum { HELD_BACK = 11 }; /* one part in HELD_BACK: a tenth of the limit, see budget.c */

/* The fraction of a work limit that a single problem may take. With it, all problems of most plans
 * end within the limit, and none takes work from another. A wall time limit is shared in full. */
#define PROBLEM_PART 0.4

typedef struct psplit_i_plan_budget {
  psplit_i_budget all; /* starts with the first problem */
  bool begun;
  uint64_t held_ops;
  double held_s;
} psplit_i_plan_budget;

static void take_options(const psplit_planner *planner, psplit_partition_options *out) {
  psplit_partition_options_init(out);
  out->objective = planner->options.objective;
  /* a model of constants only has one stage without nodes */
  out->require_nonempty = planner->options.n_stages > 1;
  out->time_limit_s = planner->options.time_limit_s;
  out->limit_by_work = planner->options.limit_by_work;
  out->n_threads = planner->options.n_threads;
  out->seed = planner->options.seed;
  out->logger = planner->options.logger;
  out->cancel = planner->options.cancel;
  out->proposer = planner->options.proposer;
  out->activity = planner->options.activity;
}

psplit_code psplit_i_plan_budget_begin(psplit_planner *planner, psplit_diag *diag) {
  if (!planner->budget) planner->budget = PSPLIT_NEW(&planner->arena, psplit_i_plan_budget, 1);
  if (!planner->budget) return psplit_i_nomem(diag);
  *planner->budget = (psplit_i_plan_budget){.begun = false};
  return PSPLIT_OK;
}

/* The budget, whose clock starts with the first problem. NULL: no pipeline is running. */
static psplit_i_plan_budget *budget_of(const psplit_planner *planner) {
  psplit_partition_options options;
  psplit_i_plan_budget *budget = planner->budget;
  if (!budget || budget->begun) return budget;
  take_options(planner, &options);
  budget->all = psplit_i_budget_of(&options);
  budget->all.activity = NULL; /* the solvers report it */
  budget->begun = true;
  return budget;
}

void psplit_i_plan_hold_back(psplit_planner *planner) {
  psplit_i_plan_budget *budget = budget_of(planner);
  if (!budget || planner->options.time_limit_s < 0) return;
  const psplit_i_budget before = budget->all;
  psplit_i_budget_hold_back(&budget->all, HELD_BACK);
  budget->held_ops += before.most - budget->all.most;
  budget->held_s += before.end - budget->all.end;
}

void psplit_i_plan_release(psplit_planner *planner) {
  psplit_i_plan_budget *budget = budget_of(planner);
  if (!budget) return;
  budget->all.most += budget->held_ops;
  budget->all.end += budget->held_s;
  budget->held_ops = 0;
  budget->held_s = 0;
}

void psplit_i_partition_options(const psplit_planner *planner, double share,
                                psplit_partition_options *out) {
  const psplit_i_plan_budget *budget = budget_of(planner);
  take_options(planner, out);
  if (out->time_limit_s < 0) return; /* no limit remains no limit */
  if (out->limit_by_work) out->time_limit_s *= PROBLEM_PART;
  out->time_limit_s *= share;
  if (budget) out->time_limit_s = fmin(out->time_limit_s, psplit_i_budget_seconds(&budget->all));
}

void psplit_i_plan_spend(psplit_planner *planner, uint64_t n_ops) {
  psplit_i_plan_budget *budget = budget_of(planner);
  if (budget) psplit_i_spend(&budget->all, n_ops);
}

double psplit_i_plan_seconds(const psplit_planner *planner) {
  if (!planner->budget) return 0;
  return (double)planner->budget->all.spent /
         ((double)PSPLIT_I_STEPS_PER_SECOND * PSPLIT_I_STEP_OPS);
}

psplit_code psplit_i_plan_solve(psplit_planner *planner, const psplit_problem *problem,
                                const psplit_partition_options *options, psplit_diag *diag,
                                psplit_solution **out_solution) {
  uint64_t n_ops = 0;
  const psplit_code code = psplit_i_partition_solve(problem, options, diag, &n_ops, out_solution);
  psplit_i_plan_spend(planner, n_ops);
  return code;
}

psplit_code psplit_i_plan_reduce(psplit_planner *planner, const psplit_problem *problem,
                                 const psplit_partition_options *options, psplit_diag *diag,
                                 uint32_t *out_class, uint32_t *out_n_classes) {
  uint64_t n_ops = 0;
  const psplit_code code =
    psplit_i_partition_reduce(problem, options, INT64_MAX, diag, &n_ops, out_class, out_n_classes);
  psplit_i_plan_spend(planner, n_ops);
  return code;
}
