/* A row of the portfolio: solves the problem of the heavy clusters alone (bounds/heavy.h) for a
 * bound, and divides topological orders that come of its split. */
#ifndef PSPLIT_PARTITION_HEAVY_NODES_H
#define PSPLIT_PARTITION_HEAVY_NODES_H

#include "solver_state.h"

/* Solves relaxations with fewer, then with more of the clusters (heavy.h), for a part of the budget
 * each and as long as they are proved: what they are bounded by bounds the instance, and the orders
 * of their splits are divided. Once, and not in a relaxation. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_heavy_turn(psplit_i_solver_state *a, psplit_i_turn *turn);

#endif
