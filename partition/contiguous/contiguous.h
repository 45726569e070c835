/* Contiguous throughput: bounds and solvers in turn until bound and value meet. */
#ifndef PSPLIT_PARTITION_CONTIGUOUS_H
#define PSPLIT_PARTITION_CONTIGUOUS_H

#include "result.h"

/* Fills *out_result with the best contiguous split that was found and the best bound on all of
 * them. Errors: INFEASIBLE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_contiguous(const psplit_i_solver_request *request,
                                                psplit_i_result *out_result);

#endif
