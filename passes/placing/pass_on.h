/* Fewer messages by relays: stages pass tensors on instead of sending another message. */
#ifndef PSPLIT_PASSES_PASS_ON_H
#define PSPLIT_PASSES_PASS_ON_H

#include "message_routes.h"
#include "planner.h"
#include "shared_split.h"
#include "tied_weights.h"

/* Where latency is charged per message, solves the split through shared memory first, and then the
 * bound over all routes. If that split reaches the bound, with direct messages or with relays, it
 * becomes the plan, with proof, and *out_settled is true. This is not the case if memory or
 * duplicated weights require further search, or if only relays reach the bound and save no more
 * than options.slack_frac. `out` must be finalised, also on failure. Applies to throughput on three
 * or more equal devices (except for memory) with equal links between all pairs, without overlap and
 * without training; else nothing is done. If the order of devices is free to choose, it may change.
 * Errors: NOMEM, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_share_memory_first(psplit_planner *planner,
                                                        const psplit_i_tied_weights *ties,
                                                        psplit_i_shared_split *out,
                                                        bool *out_settled, psplit_diag *diag);

/* In the same cases, looks for a split and for pairs of stages without a direct link, whose tensors
 * are relayed by other stages, such that the bottleneck improves by more than options.slack_frac.
 * It becomes the plan, with the bound of `shared`, which is solved again if the supernodes have
 * changed since. If there is none, the plan is unchanged. Errors: NOMEM, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_pass_on(psplit_planner *planner, psplit_i_shared_split *shared,
                                             psplit_diag *diag);

#endif
