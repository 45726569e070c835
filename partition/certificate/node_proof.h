/* Proofs by one minimum cut: every set that contains a given cluster has at least a certain
 * load. */
#ifndef PSPLIT_PARTITION_NODE_PROOF_H
#define PSPLIT_PARTITION_NODE_PROOF_H

#include "automaton.h"
#include "budget.h"
#include "vec.h"

/* Flow through a net between its producer and one of its consumers. */
typedef struct psplit_i_net_flow {
  uint32_t net, consumer; /* ids in the instance */
  /* from the consumer to the producer; otherwise from the producer to the consumer */
  bool receiving;
  int64_t amount;
} psplit_i_net_flow;

typedef struct psplit_i_node_proof {
  uint32_t cluster; /* NONE: there is no proof */
  /* Time that is added for the messages of a set with the cluster, and subtracted from every leaf
   * and every root respectively: a set without a leaf sends a message, and one without a root
   * receives one (message_floor.h). */
  int64_t sent, received;
  PSPLIT_VEC(psplit_i_net_flow) flows;
} psplit_i_node_proof;

void psplit_i_node_proof_fini(psplit_i_node_proof *proof);

/* Looks for a cluster whose least load is at least `target`, among the `most` clusters that are
 * heaviest together with their nets. The flow of its minimum cut is the proof, which is valid for
 * any placement. With overlap or replicas none is found. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_node_proof_find(const psplit_i_instance *instance,
                                                     const psplit_i_automaton *automaton,
                                                     int64_t target, uint32_t most,
                                                     psplit_i_budget *budget,
                                                     psplit_i_node_proof *out);

#endif
