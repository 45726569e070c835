/* What messages take at least, whoever sends them.
 *
 * A *root* is a cluster to which no net comes that makes a message, a *leaf* one that none leaves.
 * Where all nets run ahead, the first cluster of a stage without a root, in topological order, has
 * a net from another stage: the stage receives a message. One without a leaf sends one. So of k
 * stages that hold something, at least k less the number of roots receive, and as many messages are
 * sent; by shared memory, at least k less the number of leaves. */
#ifndef PSPLIT_PARTITION_MESSAGE_FLOOR_H
#define PSPLIT_PARTITION_MESSAGE_FLOOR_H

#include "automaton.h"
#include "instance.h"

typedef struct psplit_i_message_floor {
  int64_t send, recv; /* what one takes at least, over the types that pay; 0: nothing is known */
  /* Of a tick of communication, what it takes at least of the reference time that devices have; 0:
   * some device communicates for nothing, or while it computes, or has copies. */
  double share;
  bool one_message; /* for all that a stage sends */
} psplit_i_message_floor;

/* What is known of an instance. O(types). */
psplit_i_message_floor psplit_i_message_floor_of(const psplit_i_instance *instance,
                                                 const psplit_i_automaton *automaton);

/* Reference time that n_devices, none of which has more to do than `limit`, need at least for
 * messages, if what they hold has so many roots and leaves, and n_behind stages that others hold
 * are sent some. Each device that holds nothing has time for one message both ways, so that it does
 * not matter how many do. */
static inline double psplit_i_message_floor_within(const psplit_i_message_floor *floor,
                                                   uint32_t n_devices, uint32_t n_roots,
                                                   uint32_t n_leaves, uint32_t n_behind,
                                                   int64_t limit) {
  const bool all = limit >= floor->send + floor->recv;
  const uint32_t n_receive = all && n_devices > n_roots ? n_devices - n_roots : 0;
  const uint32_t not_leaves = all && n_devices > n_leaves ? n_devices - n_leaves : 0;
  /* To each receiver one, which others have not counted yet; or one for all. */
  const uint32_t n_send = floor->one_message ? not_leaves : n_receive + n_behind;
  return ((double)n_receive * (double)floor->recv + (double)n_send * (double)floor->send) *
         floor->share;
}

#endif
