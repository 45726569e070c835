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

/* Empty but for the clusters, where[n] (psplit_i_side) of which are on a side. */
void psplit_i_boundary_begin(psplit_i_boundary_network *network, const uint8_t *where);
/* A free cluster costs so much inside and so much outside, both at least 0; with what it has to
 * wait for. Returns what it costs on either side, which no cut tells. */
int64_t psplit_i_boundary_cluster(psplit_i_boundary_network *network, uint32_t cluster,
                                  int64_t inside, int64_t outside);
/* A net costs `ahead` when its producer is inside and a consumer is not, and `back` when it is the
 * other way round; 0: nothing. O(pins). */
void psplit_i_boundary_net(psplit_i_boundary_network *network, uint32_t net, int64_t ahead,
                           int64_t back);
/* The minimum cut, in *out_value, and the clusters inside in out_in[n]. False where the time ends
 * before: *out_value is no more than the cut then, and out_in as it was; or out of memory. */
bool psplit_i_boundary_cut(psplit_i_boundary_network *network, int64_t *out_value, bool *out_in);

#endif
