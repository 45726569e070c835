/* Fewer crossing tensors for a slightly slower slowest stage. */
#ifndef PSPLIT_PASSES_SLACK_H
#define PSPLIT_PASSES_SLACK_H

#include "tied_weights.h"

/* Looks for a split whose bottleneck is at most options.slack_frac above that of the plan, which is
 * the best that was found, and that has fewer transfers; of several the one whose slowest stage is
 * fastest. Those that divide one of two orders of the supernodes are looked at. The plan becomes
 * that split, with its own bottleneck, no proof unless it is as good, the same bound, and what was
 * given up; where there is none it stays. Weights that have to stay together do. For throughput
 * over equal devices and links, without pins or training; else nothing is done. Errors: NOMEM.
 * O(supernodes * pins / stages); nothing is done where that is too much. */
PSPLIT_MUST_USE psplit_code psplit_i_take_slack(psplit_planner *planner,
                                                const psplit_i_tied_weights *ties,
                                                psplit_diag *diag);

#endif
