/* Reduces the number of segments by assigning other devices to a sequence of segments. */
#ifndef PSPLIT_PASSES_SEGMENT_RUNS_H
#define PSPLIT_PASSES_SEGMENT_RUNS_H

#include <psplit/partition.h>

#include "base.h"

/* A sequence of segments, and what an assignment of devices to it minimises. */
typedef struct psplit_i_segment_row {
  const uint32_t *segment; /* [n_nodes] 0..n-1 in their order of execution */
  uint32_t n;              /* number of segments, > 0 */
  const uint32_t *weight;  /* [n_devices] factors of the times of devices */
  uint32_t most_runs;      /* consecutive segments on one device are a run; > 0 */
} psplit_i_segment_row;

/* Sets out_device[n] such that there are at most most_runs runs, and at most 128. Among these
 * assignments it minimises the sum of weight[device] times time, with the cost of what a segment
 * receives from earlier ones where the device changes. *out_found is false if there is none, and
 * with more than 16 devices, for which none is sought. O(nodes + pins + n * runs * devices^2).
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_join_segments(const psplit_problem *problem,
                                                   const psplit_i_segment_row *row,
                                                   psplit_diag *diag, uint32_t *out_device,
                                                   bool *out_found);

#endif
