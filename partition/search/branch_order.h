/* A topological order in which the branches between separators are sorted by the cost of sending
 * what they make. */
#ifndef PSPLIT_PARTITION_BRANCH_ORDER_H
#define PSPLIT_PARTITION_BRANCH_ORDER_H

#include "automaton.h"

/* A topological order: blocks in turn, in each its branches, first those that send least for their
 * time beyond what they receive; inside a branch by id. *out_any: some block has branches that
 * differ, else the order is that of ids. out_order[n]. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_branch_order(const psplit_i_instance *instance,
                                                  const psplit_i_automaton *automaton,
                                                  uint32_t *out_order, bool *out_any);

#endif
