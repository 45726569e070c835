/* What copies of nodes may save: a bound on splits with copies, and a split to start from. */
#ifndef PSPLIT_PASSES_COPIES_H
#define PSPLIT_PASSES_COPIES_H

#include "planner.h"

/* A lower bound (ns) on the bottleneck of any split of the supernodes that, besides, computes nodes
 * again as `replicate` does: where that, with what the node alone reads received for it, takes less
 * than to receive its results, and its own stage still has a use for it. 0 where none was found.
 * out_stage[n_nodes]: the stages of a split that is good if copies cost what the bound counts;
 * PSPLIT_NONE for nodes that are functions of constants, and for all where nothing was found. Uses
 * planner->scratch. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_bound_with_copies(psplit_planner *planner, psplit_diag *diag,
                                                       int64_t *out_bound_ns, uint32_t *out_stage);

/* Whether a stage may compute again what another one computes, as far as the node goes. */
bool psplit_i_may_be_copied(const psplit_planner *planner, uint32_t node);

#endif
