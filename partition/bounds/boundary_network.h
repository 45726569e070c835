/* The network whose minimum cut is the cheapest downset: the clusters on the source side. */
#ifndef PSPLIT_PARTITION_BOUNDARY_NETWORK_H
#define PSPLIT_PARTITION_BOUNDARY_NETWORK_H

#include "cut_network.h"
#include "instance.h"

typedef struct psplit_i_boundary_network {
  const psplit_i_instance *instance;
  psplit_i_budget *budget;
  psplit_i_cut_network cut;
  uint32_t *place; /* [n] node of a cluster */
} psplit_i_boundary_network;

/* Its memory for clusters lives in the arena; the rest is freed by fini. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_boundary_network_init(psplit_i_boundary_network *network,
                                                           const psplit_i_instance *instance,
                                                           psplit_i_budget *budget,
                                                           psplit_i_arena *arena);
void psplit_i_boundary_network_fini(psplit_i_boundary_network *network);

/* Begins a network with the clusters alone; where[n] (psplit_i_side) says which of them are on a
 * side already. */
void psplit_i_boundary_begin(psplit_i_boundary_network *network, const uint8_t *where);
/* Adds a free cluster with its cost inside and its cost outside, both at least 0, and its order
 * edges. Returns the part that it costs on either side, which the cut does not count. */
int64_t psplit_i_boundary_cluster(psplit_i_boundary_network *network, uint32_t cluster,
                                  int64_t inside, int64_t outside);
/* Adds a net, which costs `ahead` when its producer is inside and a consumer is not, and `back` the
 * other way round; both may be 0. O(pins). */
void psplit_i_boundary_net(psplit_i_boundary_network *network, uint32_t net, int64_t ahead,
                           int64_t back);
/* The value of the minimum cut, and the clusters inside as out_in[n]. False if the budget ended
 * before, *out_value then being a lower bound on the cut and out_in unchanged, or if out of
 * memory. */
bool psplit_i_boundary_cut(psplit_i_boundary_network *network, int64_t *out_value, bool *out_in);

#endif
