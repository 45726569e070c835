/* What no placement of nodes on devices is below, whatever segments it makes. */
#ifndef PSPLIT_PASSES_SEGMENT_BOUNDS_H
#define PSPLIT_PASSES_SEGMENT_BOUNDS_H

#include <psplit/partition.h>

#include "base.h"

/* Of the problems below: their times are of senders and receivers, not of links. */
enum { PSPLIT_I_MOST_SEGMENT_DEVICES = 64 };

/* Some device does at least any weighted mean of what all do, and that is at least what the node's
 * best devices make of it. Between two devices tensors count, in a minimum cut, and the weights are
 * the best to a thousandth; between more they do not, and weights are found in a few rounds. Holds
 * for the bottleneck and for latency, in which no device does two things at a time. With
 * problem->overlap computing alone counts. *out_ns: 0 where nothing is known. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_bound_devices(const psplit_problem *problem,
                                                   psplit_i_arena *arena, psplit_diag *diag,
                                                   int64_t *out_ns);

/* Latency: nodes that wait for each other do so wherever they are, and what a tensor takes between
 * two devices comes in between. Nothing overlaps with computing. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_bound_paths(const psplit_problem *problem,
                                                 psplit_i_arena *arena, psplit_diag *diag,
                                                 int64_t *out_ns);

#endif
