/* What others do in place of solving, as solvers to compare with: an order of the nodes cut into
 * even shares of the work, PipeDream's dynamic programme over it, stages grown greedily, copies of
 * the whole. Nothing is reduced before and nothing searched after them, so that they are what they
 * are said to be; value, limits and bound are those of every other solver. */
#ifndef PSPLIT_PARTITION_BASELINES_H
#define PSPLIT_PARTITION_BASELINES_H

#include "result.h"

/* Whether the solver is one of them. */
bool psplit_i_is_baseline(psplit_i_method solver);

/* The split that the baseline makes of a request for contiguous throughput. Errors: UNSUPPORTED
 * (what it makes breaks a limit: it knows of none; PipeDream's above 4,000 clusters; copies where
 * options->max_replicas allows none), NOMEM. O(K * clusters^2) for PipeDream's, else
 * O(pins + clusters^2 / K) at most, and the bound. */
PSPLIT_MUST_USE psplit_code psplit_i_baseline(const psplit_i_solver_request *request,
                                              psplit_i_method solver, psplit_i_result *out_result);
/* The same without a bound: stages and devices of the result alone, to begin with. */
PSPLIT_MUST_USE psplit_code psplit_i_baseline_split(const psplit_i_solver_request *request,
                                                    psplit_i_method solver,
                                                    psplit_i_result *out_result);

#endif
