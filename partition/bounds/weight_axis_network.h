/* A lower bound on what crosses a bucket of the weight axis, as a minimum cut; for
 * weight_axis_cut.c. */
#ifndef PSPLIT_PARTITION_WEIGHT_AXIS_NETWORK_H
#define PSPLIT_PARTITION_WEIGHT_AXIS_NETWORK_H

#include "cut_network.h"
#include "weight_axis_inside.h"

/* What one thread cuts with, one bucket after the other. Source sides are downsets. */
typedef struct psplit_i_bucket_network {
  psplit_i_cut_network cut;
  uint32_t *place;        /* [n] network node of a free cluster */
  uint32_t *fan;          /* [n_nets] network node of a net that counts by its consumers, or NONE */
  uint64_t *pins;         /* [pins of all nets] rank of the threshold << 32 | pin */
  psplit_i_budget budget; /* of the bucket */
} psplit_i_bucket_network;

/* The cut of a bucket in one direction, over the first n_pins of network->pins. */
typedef struct psplit_i_bucket_cut {
  uint32_t q;
  bool incoming;
  uint32_t n_pins;
} psplit_i_bucket_cut;

/* The least values of a bucket's cut once the nets of each of its groups count. */
typedef struct psplit_i_crossing_groups {
  uint32_t n, rank[PSPLIT_I_MAX_STEPS];
  int64_t value[PSPLIT_I_MAX_STEPS];
} psplit_i_crossing_groups;

/* A downset's weight, and what the nets cost that cross it. */
typedef struct psplit_i_crossing_downset {
  double weight, cost;
} psplit_i_crossing_downset;

/* Room for a zeroed one, to be freed by fini in any case. False when out of memory. */
bool psplit_i_bucket_network_init(psplit_i_bucket_network *network,
                                  const psplit_i_instance *instance);
void psplit_i_bucket_network_fini(psplit_i_bucket_network *network);

/* Fills network->pins with what counts of bucket q for some partner bucket within reach, unsorted:
 * consumers of nets that count by those, producers of others; how many. Ranks rise from the nearest
 * partner on; incoming, they are partners, else their distance to the last bucket but one. */
uint32_t psplit_i_bucket_list_pins(const psplit_i_weight_axis_build *x,
                                   psplit_i_bucket_network *network, uint32_t q, bool incoming);

/* Computes a cut over its pins, which are sorted, one group of equal ranks after the other. Costs
 * are multiplied by `factor`, and the last value is at most `enough`. A cut also pays per_time for
 * each tick of the free clusters outside the downset or, if per_time < 0, -per_time for those
 * inside. Out of memory: network->cut.failed. */
void psplit_i_bucket_cut_groups(const psplit_i_weight_axis_build *x, const psplit_i_bucket_cut *cut,
                                int64_t factor, int64_t per_time, int64_t enough,
                                psplit_i_bucket_network *network, psplit_i_crossing_groups *out);

/* The downset of the last cut; marks the nets of its pins in network->fan. */
psplit_i_crossing_downset psplit_i_bucket_last_downset(const psplit_i_weight_axis_build *x,
                                                       const psplit_i_bucket_cut *cut,
                                                       psplit_i_bucket_network *network);

#endif
