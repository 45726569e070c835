/* Branch and bound over placements of few clusters. */
#ifndef PSPLIT_PARTITION_BRANCH_AND_BOUND_H
#define PSPLIT_PARTITION_BRANCH_AND_BOUND_H

#include "placement_task.h"

/* Depth-first branch and bound for a placement below *inout_value: label[n], task->types and
 * *inout_value become those of the best one found. *out_done: the search was complete within
 * max_steps and the budget. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_branch_and_bound(const psplit_i_placement_task *task,
                                                      uint64_t max_steps, uint32_t *label,
                                                      int64_t *inout_value, bool *out_done);

#endif
