/* Lower bounds on any placement of nodes on devices, whatever the segments. */
#ifndef PSPLIT_PASSES_SEGMENT_BOUNDS_H
#define PSPLIT_PASSES_SEGMENT_BOUNDS_H

#include <psplit/partition.h>

#include "base.h"

/* For problems whose times of tensors are given per sender and receiver, not per link. */
enum { PSPLIT_I_MOST_SEGMENT_DEVICES = 64 };

/* The load of the bottleneck device is at least any weighted mean of all loads, and that mean is at
 * least the sum of the nodes' least weighted times. With two devices, tensors are counted by a
 * minimum cut, and the weights are optimal to a thousandth. With more, tensors are ignored, and
 * weights are found in a few rounds. Holds for the bottleneck and for latency, where no device does
 * two things at a time. With problem->overlap only computation counts. *out_ns is 0 if no bound is
 * known. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_bound_devices(const psplit_problem *problem,
                                                   psplit_i_arena *arena, psplit_diag *diag,
                                                   int64_t *out_ns);

/* For latency: a longest path, where each node runs on any device and tensors between two devices
 * take their time. Nothing overlaps with computation. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_bound_paths(const psplit_problem *problem,
                                                 psplit_i_arena *arena, psplit_diag *diag,
                                                 int64_t *out_ns);

#endif
