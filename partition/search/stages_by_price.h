/* Builds splits from the last stage on, of stages whose clusters have the highest prices in sum. */
#ifndef PSPLIT_PARTITION_STAGES_BY_PRICE_H
#define PSPLIT_PARTITION_STAGES_BY_PRICE_H

#include "assignment.h"
#include "budget.h"
#include "downsets.h"

enum { PSPLIT_I_BY_PRICE = 4096 }; /* clusters of an instance, at most */

/* Improves *io_split, whose value is above `bound`. Nothing is drawn by chance but what is the same
 * in every run. scratch[n_stages * 5]. For devices that are alike and instances that downset_dp.h
 * takes; nothing is found where the graph is too wide (pricing.h). The downsets between the
 * stages that were found are added to *io_set. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_stages_by_price(const psplit_i_instance *instance,
                                                     const psplit_i_automaton *automaton,
                                                     int64_t bound, psplit_i_budget *budget,
                                                     int64_t *scratch,
                                                     psplit_i_assignment *io_split,
                                                     psplit_i_downsets *io_set);

#endif
