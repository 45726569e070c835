/* What the solvers of contiguous throughput do with one solver state, each in its turn. Which step
 * each of them has is in its row of methods/methods.def. */
#ifndef PSPLIT_PARTITION_TURNS_H
#define PSPLIT_PARTITION_TURNS_H

#include "solver_state.h"

/* A first split, by the solver that was asked for or by all, before any bound that takes one.
 * Errors: INFEASIBLE, UNSUPPORTED as psplit_i_state_find_any, which leave the diag to the caller;
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_turns_first(psplit_i_solver_state *a);

/* Bounds, then the solver that was asked for, or all in turn, until bound and value meet or time is
 * out. parent[n_nodes]: as psplit_i_state_reduce, which is called where more is known; NULL: the
 * instance stays as it is. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_turns_close(psplit_i_solver_state *a, uint32_t *parent);

/* Whether something is proved where this solver is asked for: one that takes its turns alone proves
 * nothing. */
bool psplit_i_turns_prove(psplit_i_method solver);

/* What keeps value and bound apart in the end: words for psplit_i_result.unproved. */
const char *psplit_i_turns_why_open(const psplit_i_solver_state *a);

#endif
