/* Splits and orders that a proposer of the caller gives (psplit/proposer.h). */
#ifndef PSPLIT_PARTITION_PROPOSALS_H
#define PSPLIT_PARTITION_PROPOSALS_H

#include "solver_state.h"

/* Asks options->proposer for splits, and takes those that the checker finds valid; `sliced`: for
 * orders as well, each divided by dynamic programming. Nothing without a proposer. Errors: NOMEM,
 * and the proposer's. */
PSPLIT_MUST_USE psplit_code psplit_i_propose(psplit_i_solver_state *a, bool sliced);

#endif
