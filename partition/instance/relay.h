/* Relays: tensors that reach stages without a link to the producer by way of other stages. */
#ifndef PSPLIT_PARTITION_RELAY_H
#define PSPLIT_PARTITION_RELAY_H

#include "instance.h"

/* A split whose nets are relayed one after the other: stage[n_clusters], device[n_stages] types of
 * the stages' devices. */
typedef struct psplit_i_relay {
  const uint32_t *stage, *device;
  int64_t *recv, *send;   /* [n_stages] times, added to */
  uint32_t *wants, *held; /* [n_stages] scratch; a net's id marks stages, PSPLIT_NONE at first */
  psplit_i_hop *hops;     /* [n_stages] scratch */
} psplit_i_relay;

/* Adds to relay->recv and relay->send what it costs to bring net e from the stage of its producer
 * to the others, by problem->next_hop. out_arcs[n_stages^2] (may be NULL) becomes 1 for every hop.
 * False: some stage cannot be reached. O(pins + n_stages) where all have links to the producer,
 * else O(n_stages^2). */
bool psplit_i_relay_net(const psplit_i_instance *instance, uint32_t e, psplit_i_relay *relay,
                        uint8_t *out_arcs);

#endif
