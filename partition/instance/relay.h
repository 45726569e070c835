/* Relays: tensors that reach stages without a link to the producer by way of other stages. */
#ifndef PSPLIT_PARTITION_RELAY_H
#define PSPLIT_PARTITION_RELAY_H

#include "instance.h"

/* Scratch of the function below; the first two hold no `stamp` yet. */
typedef struct psplit_i_relay {
  uint32_t *wants, *held; /* [n_stages] */
  psplit_i_hop *hops;     /* [n_stages] */
} psplit_i_relay;

/* Adds to recv[n_stages] and send[n_stages] what it costs to bring net e from the stage of its
 * producer to the others, by problem->next_hop; device[n_stages] are the types of the stages'
 * devices. out_arcs[n_stages^2] (may be NULL) becomes 1 for every hop. False: some stage cannot be
 * reached. O(pins + n_stages) where all have links to the producer, else O(n_stages^2). */
bool psplit_i_relay_net(const psplit_i_instance *instance, uint32_t e, const uint32_t *stage,
                        const uint32_t *device, psplit_i_relay *relay, uint32_t stamp,
                        int64_t *recv, int64_t *send, uint8_t *out_arcs);

#endif
