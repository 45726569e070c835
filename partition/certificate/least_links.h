/* A relaxation for certificates: where links differ between pairs of devices, every transfer takes
 * the time of the fastest link. */
#ifndef PSPLIT_PARTITION_LEAST_LINKS_H
#define PSPLIT_PARTITION_LEAST_LINKS_H

#include "arena.h"
#include "problem.h"

/* *out is the problem with one time to send and one to receive each tensor by class of device: the
 * least over the links that a device of the class can use, with messages as their relaxation has
 * them (messages.h). No split takes less in truth. Devices
 * stand in their order; without backward nodes they send to later ones alone. The new arrays are in
 * `arena`. Errors: LIMIT (too many tensors times devices), NOMEM. O(tensors * devices^2). */
PSPLIT_MUST_USE psplit_code psplit_i_least_links(const psplit_problem *problem,
                                                 psplit_i_arena *arena, psplit_diag *diag,
                                                 psplit_problem *out);

#endif
