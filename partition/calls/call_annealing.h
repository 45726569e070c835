/* Annealing of placements of calls. */
#ifndef PSPLIT_PARTITION_CALLS_CALL_ANNEALING_H
#define PSPLIT_PARTITION_CALLS_CALL_ANNEALING_H

#include "moves.h"
#include "result.h"

/* The best placement so far, and its latency. */
typedef struct psplit_i_calls_placed {
  int64_t value;
  uint32_t *device; /* [nodes] */
} psplit_i_calls_placed;

/* Rounds of four chains from an allowed placement, until one is at the bound, `most_idle` rounds
 * have brought nothing or half of the budget is spent, to which a step is charged step_ops. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_calls_anneal(const psplit_i_solver_request *request,
                                                  const psplit_i_calls *calls,
                                                  const psplit_i_calls_closure *closure,
                                                  uint64_t step_ops, uint32_t most_idle,
                                                  int64_t bound, psplit_i_calls_placed *inout_best);

#endif
