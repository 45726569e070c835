/* Places nodes on accelerators and CPUs for the least latency of calls. */
#ifndef PSPLIT_PARTITION_CALLS_CALLS_H
#define PSPLIT_PARTITION_CALLS_CALLS_H

#include "result.h"

/* A contiguous split of a problem: out_stage[nodes], and out_entry[stages] of its devices. Errors:
 * those of a solver. */
typedef psplit_code (*psplit_i_calls_split)(const psplit_problem *problem,
                                            const psplit_partition_options *options,
                                            uint32_t *out_stage, uint32_t *out_entry);

/* A placement of request->problem, with device and stage of every node in out_result as if each
 * device had the stage of its place in the list and all CPUs that of the first: the best that
 * annealing finds from splits by other objectives, or that blocks in a row show. Its bound: the
 * longest path of least times, chains of calls that wait for one another, and blocks in a row.
 * Errors: INFEASIBLE (none was found that memory and devices allow), UNSUPPORTED (CPUs of several
 * kinds), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_calls_place(const psplit_i_solver_request *request,
                                                 psplit_i_calls_split split,
                                                 psplit_i_result *out_result);

#endif
