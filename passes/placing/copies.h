/* Copies of nodes: a lower bound for splits with copies, and a split to start from. */
#ifndef PSPLIT_PASSES_COPIES_H
#define PSPLIT_PASSES_COPIES_H

#include "planner.h"

/* A lower bound (ns) on the bottleneck of any split of the supernodes with copies as `replicate`
 * makes them: where a copy, with inputs that only the node reads, costs less than receiving its
 * results, and the node's own stage still uses the node. 0 if no bound was found.
 * out_stage[n_nodes] are the stages of a split that is good at the relaxed costs of copies,
 * PSPLIT_NONE for nodes that are functions of constants, or for all nodes if there is none. Uses
 * planner->scratch. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_bound_with_copies(psplit_planner *planner, psplit_diag *diag,
                                                       int64_t *out_bound_ns, uint32_t *out_stage);

/* Whether a stage may compute again what another one computes, as far as the node goes. */
bool psplit_i_may_be_copied(const psplit_planner *planner, uint32_t node);

#endif
