/* Sizes of symbols in a step of a decoder. */
#ifndef PSPLIT_PASSES_WORKING_POINT_H
#define PSPLIT_PASSES_WORKING_POINT_H

#include "planner.h"

/* Adds the symbols that options.decode fixes to options.dims, after those that are there, which
 * take precedence. Needs named_states. Errors: USAGE (no decoder, a symbol with two sizes),
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_take_point(psplit_planner *planner, psplit_diag *diag);

/* The mean over steps, where a step of decode takes `own` and one of prefill takes `other`. */
double psplit_i_mean_over_steps(const psplit_planner *planner, double own, double other);

/* phases.c: adds plan->phases. Needs plan->transfers and the stages of nodes. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_plan_phases(psplit_planner *planner, psplit_plan *plan,
                                                 psplit_diag *diag);

#endif
