/* A lower bound on the time of messages, whoever sends them.
 *
 * A *root* is a cluster to which no net comes that makes a message, a *leaf* one that none leaves.
 * Where all nets run ahead, the first cluster of a stage without a root, in topological order, has
 * a net from another stage: the stage receives a message. One without a leaf sends one. By shared
 * memory, of k stages that hold something, at least k less the number of roots receive, and k less
 * the number of leaves send.
 *
 * Point to point, clusters that nets which make messages connect are a *part*. Join any two stages
 * one of which sends the other a message: those with clusters of one part are all joined, so that k
 * stages that hold something fall into no more groups than there are parts, and at least k less the
 * number of parts messages are sent, and received. Each part has a root and a leaf. The same holds
 * where stages pass on what others make. */
#ifndef PSPLIT_PARTITION_MESSAGE_FLOOR_H
#define PSPLIT_PARTITION_MESSAGE_FLOOR_H

#include "automaton.h"
#include "instance.h"

typedef struct psplit_i_message_floor {
  int64_t send, recv; /* what one takes at least, over the types that pay; 0: nothing is known */
  /* Of a tick of communication, what it takes at least of the reference time that devices have; 0:
   * some device communicates for nothing, or while it computes, or has copies. */
  double share;
  bool by_pairs; /* messages are between pairs of stages, directly or by way of others */
} psplit_i_message_floor;

/* What is known of an instance. O(types). */
psplit_i_message_floor psplit_i_message_floor_of(const psplit_i_instance *instance,
                                                 const psplit_i_automaton *automaton);

/* Reference time that n_devices, none of which has more to do than `limit`, need at least for
 * messages, if of so many that hold something all but n_quiet receive one at least, and all but
 * n_silent send one, and n_behind besides. Each device that holds nothing has time for one message
 * both ways, so that it does not matter how many do. */
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
