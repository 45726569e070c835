/* One time limit for all problems that the passes of a pipeline solve. Each problem gets a share of
 * the limit, but never more than the previous ones left, so a plan stays within its limit however
 * many problems it solves. If the limit counts work, so does the budget: a plan does not depend on
 * the machine. */
#ifndef PSPLIT_PASSES_PLAN_BUDGET_H
#define PSPLIT_PASSES_PLAN_BUDGET_H

#include <psplit/partition.h>

#include "planner.h"

/* What the planner's options allow, from now on. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_plan_budget_begin(psplit_planner *planner, psplit_diag *diag);

/* Reserves a part of what is left for later problems, until it is released. */
void psplit_i_plan_hold_back(psplit_planner *planner);
void psplit_i_plan_release(psplit_planner *planner);

/* The options of a solver, with this share of the planner's limit, or what is left. */
void psplit_i_partition_options(const psplit_planner *planner, double share,
                                psplit_partition_options *out);

/* Charges the operations (budget.h) that a problem took. */
void psplit_i_plan_spend(psplit_planner *planner, uint64_t n_ops);

/* What was charged since the budget began, in seconds of work. */
double psplit_i_plan_seconds(const psplit_planner *planner);

/* psplit_partition_solve, charged. */
PSPLIT_MUST_USE psplit_code psplit_i_plan_solve(psplit_planner *planner,
                                                const psplit_problem *problem,
                                                const psplit_partition_options *options,
                                                psplit_diag *diag, psplit_solution **out_solution);

/* psplit_partition_reduce of all splits, charged. */
PSPLIT_MUST_USE psplit_code psplit_i_plan_reduce(psplit_planner *planner,
                                                 const psplit_problem *problem,
                                                 const psplit_partition_options *options,
                                                 psplit_diag *diag, uint32_t *out_class,
                                                 uint32_t *out_n_classes);

#endif
