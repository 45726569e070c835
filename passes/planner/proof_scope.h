/* Among which plans a bound holds, and a proof by it: those that the problem behind it knows. */
#ifndef PSPLIT_PASSES_PROOF_SCOPE_H
#define PSPLIT_PASSES_PROOF_SCOPE_H

#include "planner.h"

/* Whose bound the plan's is. */
typedef enum psplit_i_bound_of {
  PSPLIT_I_BOUND_OF_SOLVER,     /* each node is computed once */
  PSPLIT_I_BOUND_OF_COPIES,     /* copies.h */
  PSPLIT_I_BOUND_OF_ALL_COPIES, /* all_copies.h */
  PSPLIT_I_BOUND_OF_ANY_PLAN    /* by the times of nodes alone */
} psplit_i_bound_of;

/* Says plan->bound_scope, and plan->proof_scope where the plan is proved; plan->device_order is
 * known. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_plan_proof_scope(psplit_planner *planner, psplit_plan *plan,
                                                      psplit_i_bound_of of, psplit_diag *diag);

#endif
