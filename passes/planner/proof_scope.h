/* The scope of a bound, and of an optimality proof by it: the plans that its problem covers. */
#ifndef PSPLIT_PASSES_PROOF_SCOPE_H
#define PSPLIT_PASSES_PROOF_SCOPE_H

#include "planner.h"

/* The problem that the plan's bound is of. */
typedef enum psplit_i_bound_of {
  PSPLIT_I_BOUND_OF_SOLVER,     /* each node is computed once */
  PSPLIT_I_BOUND_OF_COPIES,     /* copies.h */
  PSPLIT_I_BOUND_OF_ALL_COPIES, /* all_copies.h */
  PSPLIT_I_BOUND_OF_ANY_PLAN    /* by the times of nodes only */
} psplit_i_bound_of;

/* Sets plan->bound_scope and, if the plan is proved, plan->proof_scope. plan->device_order must be
 * set. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_plan_proof_scope(psplit_planner *planner, psplit_plan *plan,
                                                      psplit_i_bound_of of, psplit_diag *diag);

#endif
