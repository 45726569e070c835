/* Relays: tensors that reach stages without a link to the producer by way of other stages. */
#ifndef PSPLIT_PARTITION_RELAY_H
#define PSPLIT_PARTITION_RELAY_H

#include "instance.h"

/* A split whose nets are relayed one after another: stage[n_clusters]; device[n_stages], the types
 * of the stages' devices. */
typedef struct psplit_i_relay {
  const uint32_t *stage, *device;
  int64_t *recv, *send; /* [n_stages] times, to which those of nets are added */
  /* [n_stages] scratch; marked by the id of a net, PSPLIT_NONE at first */
  uint32_t *wants, *held;
  psplit_i_hop *hops; /* [n_stages] scratch */
} psplit_i_relay;

/* Adds the cost of bringing net e from its producer's stage to all others that read it, by
 * problem->next_hop, to relay->recv and relay->send. out_arcs[n_stages^2] (may be NULL) becomes 1
 * for every hop. Returns false if a stage cannot be reached. O(pins + n_stages) if all have links
 * to the producer, else O(n_stages^2). */
bool psplit_i_relay_net(const psplit_i_instance *instance, uint32_t e, psplit_i_relay *relay,
                        uint8_t *out_arcs);

#endif
