/* A lower bound on the time of messages, whichever stages send them.
 *
 * A *root* is a cluster that receives no net that makes a message, and a *leaf* is one that sends
 * none. If all nets are forward, the first cluster in topological order of a stage without a root
 * has a net from another stage, so the stage receives a message. Likewise a stage without a leaf
 * sends one. With shared communication, therefore, of k non-empty stages at least k less the number
 * of roots receive a message, and at least k less the number of leaves send one.
 *
 * Point to point, a *part* is a set of clusters that are connected by nets which make messages.
 * Join every two stages one of which sends the other a message. Then stages with clusters of one
 * part are joined, so k non-empty stages form at most as many groups as there are parts, and at
 * least k less the number of parts messages are sent, and received. Each part has a root and a
 * leaf. The same holds if stages pass on tensors of others. */
#ifndef PSPLIT_PARTITION_MESSAGE_FLOOR_H
#define PSPLIT_PARTITION_MESSAGE_FLOOR_H

#include "automaton.h"
#include "instance.h"

typedef struct psplit_i_message_floor {
  int64_t send, recv; /* least time of a message, over the types that pay; 0: unknown */
  /* The least reference time that a tick of communication takes on any device; 0: some device
   * communicates for free or during computation, or has replicas. */
  double share;
  bool by_pairs; /* messages are between pairs of stages, directly or by relays */
} psplit_i_message_floor;

/* What is known of an instance. O(types). */
psplit_i_message_floor psplit_i_message_floor_of(const psplit_i_instance *instance,
                                                 const psplit_i_automaton *automaton);

/* The least reference time that n_devices, none of which has a load above `limit`, need for
 * messages, if of that many non-empty stages all but n_quiet receive at least one and all but
 * n_silent send at least one, and if n_behind messages are added. Each device with an empty stage
 * has time for one message in each direction, so their number does not matter. */
static inline double psplit_i_message_floor_within(const psplit_i_message_floor *floor,
                                                   uint32_t n_devices, uint32_t n_quiet,
                                                   uint32_t n_silent, uint32_t n_behind,
                                                   int64_t limit) {
  const bool all = limit >= floor->send + floor->recv;
  const uint32_t n_receive = all && n_devices > n_quiet ? n_devices - n_quiet : 0;
  const uint32_t n_send = (all && n_devices > n_silent ? n_devices - n_silent : 0) + n_behind;
  return ((double)n_receive * (double)floor->recv + (double)n_send * (double)floor->send) *
         floor->share;
}

#endif
