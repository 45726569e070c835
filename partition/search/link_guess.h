/* Estimated times of transfers over links between pairs of devices, for dynamic programming over an
 * order, which does not know all receivers. */
#ifndef PSPLIT_PARTITION_LINK_GUESS_H
#define PSPLIT_PARTITION_LINK_GUESS_H

#include "assignment.h"
#include "load_tracker.h"

/* Room for a guess, in `arena`. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_link_guess_init(psplit_i_link_guess *guess,
                                                     const psplit_i_instance *instance,
                                                     psplit_i_arena *arena);
/* The program that divides an order forms a stage before it knows which stages are in front. So a
 * tensor counts over the link to the neighbour, unless the split `now` (may be NULL) brings it
 * further: then over the link that it takes there. The division that `now` is counts nearly as it
 * is. O(pins). mark[n_stages] is scratch. */
void psplit_i_link_guess_make(psplit_i_link_guess *guess, const psplit_i_instance *instance,
                              const psplit_i_assignment *now, uint32_t *mark);

#endif
