/* Which of the best splits: the one that sends least, then the first. */
#ifndef PSPLIT_PARTITION_TIE_BREAKING_H
#define PSPLIT_PARTITION_TIE_BREAKING_H

#include "solver_state.h"

/* Contiguous throughput: of all splits with the answer's bottleneck one that sends less and comes
 * earlier, and sets answer->ties_proved where it is the one that sends least and comes first: its
 * stages, read by node id, are lexicographically least. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_ties_break(const psplit_i_solver_request *request,
                                                psplit_i_result *result);

/* Small moves from the best split (psplit_i_descend_ties), which becomes the answer; `keep_full`:
 * no stage becomes empty. */
PSPLIT_MUST_USE psplit_code psplit_i_ties_descend(psplit_i_solver_state *a, bool keep_full,
                                                  uint32_t most_together, uint64_t max_steps);

#endif
