/* Sizes of a step of a decoder, as sizes of symbols. */
#ifndef PSPLIT_PASSES_WORKING_POINT_H
#define PSPLIT_PASSES_WORKING_POINT_H

#include "planner.h"

/* Adds the symbols that options.decode fixes to options.dims, behind those that are there, which
 * count. Needs named_states. Errors: USAGE (no decoder, a symbol that would have two sizes), NOMEM.
 */
PSPLIT_MUST_USE psplit_code psplit_i_planner_take_point(psplit_planner *planner, psplit_diag *diag);

/* The mean over steps of what a step takes, `own` of decode and `other` of prefill. */
double psplit_i_mean_over_steps(const psplit_planner *planner, double own, double other);

/* phases.c: adds plan->phases. Needs plan->transfers and the stages of nodes. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_plan_phases(psplit_planner *planner, psplit_plan *plan,
                                                 psplit_diag *diag);

#endif
