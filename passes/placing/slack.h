/* Fewer crossing tensors for a slightly slower bottleneck. */
#ifndef PSPLIT_PASSES_SLACK_H
#define PSPLIT_PASSES_SLACK_H

#include "tied_weights.h"

/* Looks for a split with fewer transfers whose bottleneck is at most options.slack_frac above that
 * of the plan, which is the best that was found. Ties prefer the faster bottleneck. Only divisions
 * of two orders of the supernodes are considered. The plan becomes that split, with its own
 * bottleneck, the same bound, a proof only if it is as good as the best, and what was given up. If
 * there is none, the plan is unchanged. Weights that must stay together do. For throughput with
 * equal devices and links, without pins or training; else nothing is done. Errors: NOMEM.
 * O(supernodes * pins / stages); nothing is done if that is too much. */
PSPLIT_MUST_USE psplit_code psplit_i_take_slack(psplit_planner *planner,
                                                const psplit_i_tied_weights *ties,
                                                psplit_diag *diag);

#endif
