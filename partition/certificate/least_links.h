/* A relaxation for certificates of problems whose links differ between pairs of devices: every
 * transfer takes the time of the fastest link. */
#ifndef PSPLIT_PARTITION_LEAST_LINKS_H
#define PSPLIT_PARTITION_LEAST_LINKS_H

#include "arena.h"
#include "problem.h"

/* *out is the problem with one time to send and one to receive each tensor per class of device: the
 * minimum over the links that a device of the class can use. Messages are relaxed as in messages.h.
 * In the given problem no split takes less time than in this one. Devices stand in their order, and
 * send only to later ones if there are no backward nodes. The new arrays are in `arena`. Errors:
 * LIMIT (too many tensors times devices), NOMEM. O(tensors * devices^2). */
PSPLIT_MUST_USE psplit_code psplit_i_least_links(const psplit_problem *problem,
                                                 psplit_i_arena *arena, psplit_diag *diag,
                                                 psplit_problem *out);

#endif
