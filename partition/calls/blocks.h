/* A bound on the latency of calls: blocks in a row.
 *
 * A *separator* is a cluster that all others are before or behind; what lies between two
 * neighbouring ones is a *block*. What runs a separator, a call or a CPU, ends before all that is
 * behind begins, but for what is in the same call, and begins when all that is before has ended.
 * Calls are convex, so one without a separator lies inside one block. So latency is the sum of what
 * the calls with separators take, of the separators on CPUs, and of what each block that is not in
 * one call takes from the end of the one separator to the begin of the other. A program over
 * separators adds the least of that up, with the bytes of the call that is open and the
 * accelerators that were used; the ways to cut a block are those of crossings.h. */
#ifndef PSPLIT_PARTITION_CALLS_BLOCKS_H
#define PSPLIT_PARTITION_CALLS_BLOCKS_H

#include "call_annealing.h"

/* Raises *inout_bound to what no placement takes less than, at most inout_best's value, and takes
 * what it comes across that is better; `search`: the request to anneal for from what the bound has,
 * at its budget besides, or NULL. Nothing happens without separators, or where the budget is spent.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_calls_blocks(const psplit_i_calls *calls,
                                                  const psplit_i_calls_closure *closure,
                                                  const psplit_i_solver_request *search,
                                                  psplit_i_budget *budget, int64_t *inout_bound,
                                                  psplit_i_calls_placed *inout_best);

#endif
