/* Fewer messages: tensors that stages pass on instead of another message. */
#ifndef PSPLIT_PASSES_PASS_ON_H
#define PSPLIT_PASSES_PASS_ON_H

#include "message_routes.h"
#include "planner.h"
#include "shared_split.h"
#include "tied_weights.h"

/* Where latency is a message's, asks for the split through shared memory first, and then for what
 * no way of passing on is below: where sending straight, or passing on, takes a split no longer
 * than that, it is the plan, proved, and *out_settled. It is not where memory, or a weight that is
 * cut apart, leaves more to be asked; nor where passing on alone does it, and saves no more than
 * options.slack_frac. `out` is to be ended, also on failure. For throughput over three devices and
 * more, equal but for their memory, alike and all linked, which do not send while they compute; not
 * for training; else nothing is done. Where their order is chosen it may become another one.
 * Errors: NOMEM, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_share_memory_first(psplit_planner *planner,
                                                        const psplit_i_tied_weights *ties,
                                                        psplit_i_shared_split *out,
                                                        bool *out_settled, psplit_diag *diag);

/* There as well: a stage that passes tensors on saves the message of who makes them. Looks for a
 * split and for pairs of stages that send each other nothing, whose tensors go by way of others,
 * with a bottleneck that is less by more than options.slack_frac. The plan becomes that, with the
 * bound of `shared`, which is asked for where the supernodes are others by now; where there is none
 * it stays. Errors: NOMEM, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_pass_on(psplit_planner *planner, psplit_i_shared_split *shared,
                                             psplit_diag *diag);

#endif
