/* Fewer segments: assigns devices to a sequence of segments anew. */
#ifndef PSPLIT_PASSES_SEGMENT_RUNS_H
#define PSPLIT_PASSES_SEGMENT_RUNS_H

#include <psplit/partition.h>

#include "base.h"

/* Segments 0..n-1 in their order of execution, segment[n_nodes]; n, most_runs > 0. Sets
 * out_device[n] such that consecutive segments on one device form at most most_runs runs, and at
 * most 128. Among these assignments it minimises the sum of weight[device] times time, with the
 * cost of what a segment receives from earlier ones where the device changes. *out_found is false
 * if there is none, and with more than 16 devices, for which none is sought. O(nodes + pins + n *
 * runs * devices^2). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_join_segments(const psplit_problem *problem,
                                                   const uint32_t *segment, uint32_t n,
                                                   const uint32_t *weight, uint32_t most_runs,
                                                   psplit_diag *diag, uint32_t *out_device,
                                                   bool *out_found);

#endif
