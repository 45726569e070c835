/* Recombination: the best split that can be made of the downsets of known splits and of cheap
 * cuts. */
#ifndef PSPLIT_PARTITION_RECOMBINE_H
#define PSPLIT_PARTITION_RECOMBINE_H

#include "assignment.h"
#include "budget.h"
#include "downsets.h"

enum { PSPLIT_I_RECOMBINED = 4096 }; /* clusters of an instance, at most */

/* Improves *io_split, or finds one (value INF: there was none, or is none). Begins with nothing but
 * downsets at which the whole graph is cut well, with `more`, and loads up to `limit`, so that what
 * is found does not depend on how the split was; goes on from the split only where it is better
 * still. Nothing is drawn by chance. scratch[n_stages * 5]. For instances that downset_dp.h takes.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_recombine(const psplit_i_instance *instance,
                                               const psplit_i_automaton *automaton,
                                               const psplit_i_downsets *more, int64_t limit,
                                               psplit_i_budget *budget, int64_t *scratch,
                                               psplit_i_assignment *io_split);

#endif
