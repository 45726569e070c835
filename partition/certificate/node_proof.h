/* Proofs by one minimum cut: every set of clusters that holds a given one has at least a certain
 * load. */
#ifndef PSPLIT_PARTITION_NODE_PROOF_H
#define PSPLIT_PARTITION_NODE_PROOF_H

#include "automaton.h"
#include "budget.h"
#include "vec.h"

/* Flow through a net between its producer and one consumer. */
typedef struct psplit_i_net_flow {
  uint32_t net, consumer; /* of the instance */
  bool receiving;         /* from the consumer to the producer; else the other way */
  int64_t amount;
} psplit_i_net_flow;

typedef struct psplit_i_node_proof {
  uint32_t cluster; /* NONE: there is no proof */
  /* What the messages of a set that holds it count, and each leaf, or root, is lighter by: a set
   * without one sends, or receives, a message (message_floor.h). */
  int64_t sent, received;
  PSPLIT_VEC(psplit_i_net_flow) flows;
} psplit_i_node_proof;

void psplit_i_node_proof_fini(psplit_i_node_proof *proof);

/* Looks for a cluster whose least load is `target` or more, among the `most` that are heaviest with
 * their nets; the flow of its minimum cut proves it. Valid for any placement, but with overlap or
 * replicas none is found. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_node_proof_find(const psplit_i_instance *instance,
                                                     const psplit_i_automaton *automaton,
                                                     int64_t target, uint32_t most,
                                                     psplit_i_budget *budget,
                                                     psplit_i_node_proof *out);

#endif
