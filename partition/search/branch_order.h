/* A topological order in which the branches between separators are sorted by the cost of sending
 * what they make. */
#ifndef PSPLIT_PARTITION_BRANCH_ORDER_H
#define PSPLIT_PARTITION_BRANCH_ORDER_H

#include "automaton.h"

enum { PSPLIT_I_ROW_PARTS = 32 };

/* A topological order: blocks in turn, in each its branches, first those that send least for their
 * time beyond what they receive; inside a branch by id. `part` of PSPLIT_I_ROW_PARTS of the
 * branches of a block (0: none) are in two rows behind those: first their fronts, which contain all
 * readers of the net that many branches read and that costs most, then in reverse the rest of each.
 * *out_any: some block has branches that differ, or with rows, branches with such a front; else the
 * order may be that of ids. out_order[n]. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_branch_order(const psplit_i_instance *instance,
                                                  const psplit_i_automaton *automaton,
                                                  uint32_t part, uint32_t *out_order,
                                                  bool *out_any);

#endif
