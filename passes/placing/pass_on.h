/* Fewer messages: tensors that stages pass on instead of another message. */
#ifndef PSPLIT_PASSES_PASS_ON_H
#define PSPLIT_PASSES_PASS_ON_H

#include "planner.h"

/* Where latency is a message's, a stage that passes tensors on saves the message of who makes them:
 * looks for a split and for pairs of stages that send each other nothing, whose tensors go by way
 * of others, with a bottleneck that is less by more than options.slack_frac. The plan becomes that,
 * with a bound for all ways (shared memory: each stage sends one message at most, and receives
 * one); where there is none it stays. For throughput over three equal devices and more, alike and
 * all linked, which do not send while they compute; not for training; else nothing is done.
 * Errors: NOMEM, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_pass_on(psplit_planner *planner, psplit_diag *diag);
/* Takes that back: all stages send to each other. */
void psplit_i_pass_nothing_on(psplit_planner *planner);

#endif
