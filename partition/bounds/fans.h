/* The least communication of clusters between two separators in proportion to their time, added to
 * their time. */
#ifndef PSPLIT_PARTITION_FANS_H
#define PSPLIT_PARTITION_FANS_H

#include "automaton.h"
#include "budget.h"
#include "closure.h"

/* Adds to w[] of `instance`, and takes the nets off that this counts: send[] and recv[] become 0.
 * Its arrays are the caller's to change. Stages with a load <= limit take no more than before.
 * `automaton`: of an instance with the same devices. *out_any: something was added. Errors: NOMEM.
 * A few minimum cuts for each pair of neighbouring separators whose inside is above the limit. */
PSPLIT_MUST_USE psplit_code psplit_i_fans_count(psplit_i_instance *instance,
                                                const psplit_i_automaton *automaton,
                                                const psplit_i_closure *closure, int64_t limit,
                                                psplit_i_budget *budget, bool *out_any);

#endif
