/* Tie-breaking: of all best splits, the one that sends least, then the lexicographically least. */
#ifndef PSPLIT_PARTITION_TIE_BREAKING_H
#define PSPLIT_PARTITION_TIE_BREAKING_H

#include "solver_state.h"

/* Contiguous throughput: replaces the result by a split with the same bottleneck that sends less,
 * or as much with lexicographically smaller stages, read by node id. Sets result->ties_proved where
 * it is the least of all in this order. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_ties_break(const psplit_i_solver_request *request,
                                                psplit_i_result *result);

/* Descent from the best split (psplit_i_descend_ties), whose end becomes the result; `keep_full`:
 * no stage becomes empty. */
PSPLIT_MUST_USE psplit_code psplit_i_ties_descend(psplit_i_solver_state *a, bool keep_full,
                                                  uint32_t most_together, uint64_t max_steps);

#endif
