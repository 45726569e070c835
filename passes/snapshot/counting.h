/* What other splits of the same supernodes are counted from. */
#ifndef PSPLIT_PASSES_COUNTING_H
#define PSPLIT_PASSES_COUNTING_H

#include <psplit/snapshot.h>

#include "planner.h"

/* For a planner with a plan. nodes[n_nodes]: of each the group is read, below n_groups, PSPLIT_NONE
 * of free nodes. What it gives lives in `arena`. Errors: NOMEM. As psplit_i_layout_prices_find, and
 * O(nodes * classes). */
PSPLIT_MUST_USE psplit_code psplit_i_counting_make(const psplit_planner *planner,
                                                   const psplit_snapshot_node *nodes,
                                                   uint32_t n_groups, psplit_i_arena *arena,
                                                   psplit_diag *diag,
                                                   const psplit_snapshot_counting **out);

#endif
