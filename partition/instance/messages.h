/* Messages: all tensors of a stage for another travel in one, whose time counts once for the two.
 *
 * That hangs on pairs of stages, which bounds, the exact program and the division of an order do
 * not see. They read a relaxation that is a sum over nets, as without messages: a *trunk* is a
 * series of nets each of which ends, with all its consumers, at or before the producer of the next.
 * A stage receives at most one net of a trunk: with a consumer of one in it, the producers of later
 * ones are no earlier, and those of others lie before a consumer that would have to be in front. It
 * sends at most one for the same reason. So whoever receives a net of the trunk receives a message
 * of its own, whoever sends it to m stages sends m, and no split takes less than it does where each
 * net of the trunk takes as long as a message longer and messages take nothing. */
#ifndef PSPLIT_PARTITION_MESSAGES_H
#define PSPLIT_PARTITION_MESSAGES_H

#include "problem.h"

/* Flag of a net, besides PSPLIT_NET_*: one of the trunk. */
#define PSPLIT_I_NET_TRUNK 128

/* Marks a trunk of many and long nets, in a copy of io_problem->net_flags; nothing where there are
 * no messages. Nets and edges of backward nodes order no stages, and count for nothing. `inside`
 * (may be NULL): [n_nodes] nets from these nodes to others, or back, come first.
 * O((nodes + pins) * WINDOW), mostly much less. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_messages_mark(psplit_i_arena *arena, const bool *inside,
                                                   psplit_problem *io_problem);

/* The relaxation above, as a problem without messages. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_messages_relax(const psplit_problem *problem,
                                                    psplit_i_arena *arena,
                                                    psplit_problem *out_problem);

/* Whether net e makes a message where it crosses. */
static inline bool psplit_i_makes_message(const psplit_problem *problem, uint32_t e) {
  return problem->message_ns &&
         !(problem->net_flags && (problem->net_flags[e] & PSPLIT_NET_NO_MESSAGE));
}

/* Whether net e is one of the trunk, once that is marked. */
static inline bool psplit_i_on_trunk(const psplit_problem *problem, uint32_t e) {
  return problem->message_ns && problem->net_flags && (problem->net_flags[e] & PSPLIT_I_NET_TRUNK);
}

#endif
