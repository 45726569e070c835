/* Contiguous throughput: bounds and solvers in turn until they meet. */
#ifndef PSPLIT_PARTITION_CONTIGUOUS_H
#define PSPLIT_PARTITION_CONTIGUOUS_H

#include "result.h"

/* Contiguous throughput. Fills *out_answer. */
PSPLIT_MUST_USE psplit_code psplit_i_contiguous(const psplit_i_solver_request *request,
                                                psplit_i_result *out_result);

#endif
