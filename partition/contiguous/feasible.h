/* Decides whether there is any split within the limits, and if not, says why. */
#ifndef PSPLIT_PARTITION_FEASIBLE_H
#define PSPLIT_PARTITION_FEASIBLE_H

#include "solver_state.h"

/* No split was found yet: looks for any. INFEASIBLE: there is none; UNSUPPORTED: nobody knows. */
PSPLIT_MUST_USE psplit_code psplit_i_state_find_any(psplit_i_solver_state *a);
/* Says why there is no split; with `counts`, and without pins, also a number of stages, some of
 * them perhaps empty, for which a split is found. Returns INFEASIBLE. */
PSPLIT_MUST_USE psplit_code psplit_i_state_explain(const psplit_i_solver_state *a, bool counts);

#endif
