/* Which nodes stages compute again: each where that is cheaper than to receive its result. */
#ifndef PSPLIT_PASSES_COPIES_ADD_H
#define PSPLIT_PASSES_COPIES_ADD_H

#include "planner.h"

/* Adds to planner->copies, in their order, what pays by the loads of planner->plan: no stage
 * becomes slower than the slowest is. O(stages * (nodes + pins)); takes planner->scratch.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_copies_add(psplit_planner *planner, psplit_diag *diag);

/* Adds these, and copies of the constants that they read. As above. */
PSPLIT_MUST_USE psplit_code psplit_i_copies_give(psplit_planner *planner,
                                                 const psplit_plan_copy *copies, size_t n,
                                                 psplit_diag *diag);

#endif
