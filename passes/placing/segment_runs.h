/* Fewer segments: those that stand in a row are given devices anew. */
#ifndef PSPLIT_PASSES_SEGMENT_RUNS_H
#define PSPLIT_PASSES_SEGMENT_RUNS_H

#include <psplit/partition.h>

#include "base.h"

/* Segments 0..n-1 in their order of execution, segment[n_nodes]; n, most_runs > 0. Sets
 * out_device[n] such that neighbours on one device make most_runs runs at most, and no more than
 * 128, of all such the one with the least sum of weight[device] times time, with what a segment
 * gets from those before it where the device changes. *out_found: false where there is none, and
 * with more than 16 devices, for which none is sought. O(nodes + pins + n * runs * devices^2).
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_join_segments(const psplit_problem *problem,
                                                   const uint32_t *segment, uint32_t n,
                                                   const uint32_t *weight, uint32_t most_runs,
                                                   psplit_diag *diag, uint32_t *out_device,
                                                   bool *out_found);

#endif
