/* Solves chains: clusters in a row, each of which sends to its neighbours alone. */
#ifndef PSPLIT_PARTITION_CHAIN_H
#define PSPLIT_PARTITION_CHAIN_H

#include "solver_state.h"

/* If the instance is such a chain on devices of one type: finds and proves the least bottleneck, at
 * any size. Else does nothing. Errors: NOMEM. O(clusters * log(bottleneck)). */
PSPLIT_MUST_USE psplit_code psplit_i_state_cut_chain(psplit_i_solver_state *a);

#endif
