/* The parts of a plan that are found by themselves. */
#ifndef PSPLIT_PASSES_PLAN_H
#define PSPLIT_PASSES_PLAN_H

#include "planner.h"
#include "proof_scope.h"

/* Fills stages[options.n_stages] but for what transfers and layouts take: nodes, what these take,
 * devices, memory. The transfers stand by sending stage, then by value and receiver, each a hop
 * that a link carries; they are the caller's. In planner->scratch. Errors: INFEASIBLE (no way
 * between stages), INTERNAL, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_plan_stages(psplit_planner *planner, psplit_plan_stage *stages,
                                                 psplit_i_transfers *out_transfers,
                                                 psplit_diag *diag);

/* Sets the plan's bound, its name, the gap and whether that proves the plan, from what the plan
 * takes and what solvers said of it; what the bound is of goes to *out_of. Errors: INTERNAL (the
 * bound is above the plan), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_plan_bound(psplit_planner *planner, psplit_plan *plan,
                                                psplit_diag *diag, psplit_i_bound_of *out_of);

#endif
