/* Solvers for the other objectives: latency, chunks, free placement. */
#ifndef PSPLIT_PARTITION_PLACING_H
#define PSPLIT_PARTITION_PLACING_H

#include "result.h"

/* Latency, interleaved chunks and non-contiguous placement. Fills *out_result. Errors: INFEASIBLE
 * (none fits, or none was found: the message says which), LIMIT, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_place(const psplit_i_solver_request *request,
                                           psplit_i_result *out_result);

#endif
