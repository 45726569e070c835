/* Runs the independent checker on the problem with merged devices, which solvers read. */
#ifndef PSPLIT_PARTITION_CHECK_MERGED_H
#define PSPLIT_PARTITION_CHECK_MERGED_H

#include "result.h"

/* psplit_partition_check() of a contiguous split of the request's problem, in which pairs of
 * devices that nothing is sent between bear a flag that no problem of a caller's has. Errors: those
 * of psplit_partition_check(). */
PSPLIT_MUST_USE psplit_code psplit_i_check_merged(const psplit_i_solver_request *request,
                                                  const uint32_t *stage, const uint32_t *device,
                                                  const uint32_t *replicas, psplit_diag *diag,
                                                  psplit_solution **out_solution);

#endif
