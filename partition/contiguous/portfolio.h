/* The portfolio of bounds and solvers for contiguous throughput: they share one solver state and
 * run in turn until bound and value meet. The steps that each solver takes part in are in its row
 * of methods/methods.def. */
#ifndef PSPLIT_PARTITION_PORTFOLIO_H
#define PSPLIT_PARTITION_PORTFOLIO_H

#include "solver_state.h"

/* A first split, by the solver that was asked for or by all, before any bound that takes one.
 * Errors: INFEASIBLE, UNSUPPORTED as psplit_i_state_find_any, which leave the diag to the caller;
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_portfolio_first(psplit_i_solver_state *a);

/* Bounds, then the solver that was asked for, or all in turn, until bound and value meet or time is
 * out. parent[n_nodes]: as psplit_i_state_reduce, which is called where more is known; NULL: the
 * instance stays as it is. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_portfolio_close(psplit_i_solver_state *a, uint32_t *parent);

/* Whether a run with this solver can prove anything: no bounds run beside a heuristic that is asked
 * for by itself. */
bool psplit_i_portfolio_proves(psplit_i_method solver);

/* What keeps value and bound apart in the end: words for psplit_i_result.unproved. */
const char *psplit_i_portfolio_why_open(const psplit_i_solver_state *a);

#endif
