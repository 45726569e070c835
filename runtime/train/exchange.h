/* Transfers between stages of different devices. */
#ifndef PSPLIT_RUNTIME_TRAIN_EXCHANGE_H
#define PSPLIT_RUNTIME_TRAIN_EXCHANGE_H

#include "work.h"

/* Takes all that comes to a stage by wires of `kind` for the piece at hand, whose event counts it;
 * gives what goes out by them. Errors: PSPLIT_I_STOPPED (see all_reduce.h), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_take_all(psplit_i_work *work, psplit_i_learner *learner,
                                              psplit_i_wire_kind kind, psplit_i_event *event);
PSPLIT_MUST_USE psplit_code psplit_i_give_all(psplit_i_work *work, const psplit_i_learner *learner,
                                              psplit_i_wire_kind kind, psplit_diag *diag);

/* Once a step: gradients of weights that several stages read, to who updates these; and weights
 * from there to the others. */
PSPLIT_MUST_USE psplit_code psplit_i_share(psplit_i_work *work, psplit_i_wire_kind kind,
                                           psplit_diag *diag);
/* Once a step: the gradients of all replicas become their sum, in the order of the replicas. */
PSPLIT_MUST_USE psplit_code psplit_i_sum_replicas(psplit_i_work *work, psplit_diag *diag);

#endif
