/* Messages: all tensors from one stage to another travel in one message, whose time counts once for
 * the two stages.
 *
 * The cost of messages depends on pairs of stages, which bounds, the exact program and the division
 * of an order do not represent. They use a relaxation that is a sum over nets, as without messages.
 * A *trunk* is a series of nets each of which ends, with all its consumers, at or before the
 * producer of the next. A stage receives at most one net of a trunk: if it contains a consumer of
 * one, the producers of later nets are no earlier, and those of earlier nets lie before a consumer
 * that would have to be in an earlier stage. For the same reason it sends at most one. So a stage
 * that receives a net of the trunk receives a message for it, and a stage that sends one to m
 * stages sends m messages. No split takes less than it would if each net of the trunk took the time
 * of a message in addition, and messages took no time. */
#ifndef PSPLIT_PARTITION_MESSAGES_H
#define PSPLIT_PARTITION_MESSAGES_H

#include "problem.h"

/* Flag of a net, in addition to PSPLIT_NET_*: it is on the trunk. */
#define PSPLIT_I_NET_TRUNK 128

/* Marks a trunk of many long nets in a copy of io_problem->net_flags, if there are messages. Nets
 * and edges of backward nodes do not order stages, and are ignored. `inside` (may be NULL):
 * [n_nodes] nets between these nodes and others are preferred. O((nodes + pins) * WINDOW), usually
 * much less. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_messages_mark(psplit_i_arena *arena, const bool *inside,
                                                   psplit_problem *io_problem);

/* The relaxation above, as a problem without messages. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_messages_relax(const psplit_problem *problem,
                                                    psplit_i_arena *arena,
                                                    psplit_problem *out_problem);

/* Whether net e makes a message if it crosses. */
static inline bool psplit_i_makes_message(const psplit_problem *problem, uint32_t e) {
  return problem->message_ns &&
         !(problem->net_flags && (problem->net_flags[e] & PSPLIT_NET_NO_MESSAGE));
}

/* Whether net e is on the trunk, once that is marked. */
static inline bool psplit_i_on_trunk(const psplit_problem *problem, uint32_t e) {
  return problem->message_ns && problem->net_flags && (problem->net_flags[e] & PSPLIT_I_NET_TRUNK);
}

#endif
