/* Internal to the cutting planes of prices. A plane is a stage that pricing found, stored as its
 * coefficients: one per cluster, and one per net whose receivers have a price.
 *
 *   plane_nets.c    which nets these are, at one limit and at the next
 *   price_planes.c  the steps */
#ifndef PSPLIT_PARTITION_PLANES_INSIDE_H
#define PSPLIT_PARTITION_PLANES_INSIDE_H

#include "prices.h"

enum { PSPLIT_I_MOST_PLANES = 160 };

struct psplit_i_planes {
  psplit_i_prices *prices;
  psplit_i_pricing *pricing;
  const psplit_i_instance *instance;
  psplit_i_budget *budget;
  int64_t limit;
  uint32_t n_clusters, most_nets, n_planes;
  uint32_t n, most;   /* number of prices (clusters first, then receivers), and its maximum */
  uint32_t n_parts;   /* load units per limit */
  uint32_t *net;      /* [n - n_clusters] nets whose receivers have a price */
  uint64_t *known_by; /* [n - n_clusters] hash that identifies the net at another limit */
  /* [n] the best prices so far (the center), by which the best stage is worth 1 */
  double *center;
  /* [n] weight of the price in the proximal term: the square of a typical change */
  double *weight;
  double *slope;     /* [n] subgradient at the center, and then the next prices */
  int32_t *price;    /* [n] trial prices */
  int32_t *receiver; /* [most_nets] trial prices of receivers, by net */
  uint8_t *side;     /* [n_clusters] sides of a traced stage */
  int8_t *paid;      /* [most_nets] its role in each net */
  /* [MOST_PLANES * most] coefficients: 1 if the stage holds the cluster; receivers of the net that
   * it pays for, or -1 if it receives it */
  int8_t *has;
  double *product; /* [MOST_PLANES * MOST_PLANES] weighted scalar product of two planes */
  double share[PSPLIT_I_MOST_PLANES], gradient[PSPLIT_I_MOST_PLANES];
  uint64_t hash[PSPLIT_I_MOST_PLANES];
  /* the stage is within the limit; false for some found at a larger one */
  bool fits[PSPLIT_I_MOST_PLANES];
  uint32_t used[PSPLIT_I_MOST_PLANES]; /* the last step in which the plane had share */
  double sum;                          /* sum of the center */
  double hope;                         /* gain that the model predicts for the next prices */
  double length;
  bool impossible; /* no stage within the limit has a positive value by the trial prices */
};

/* Switches to the nets of an instance at another limit, where receivers are divided differently.
 * Prices and coefficients of nets that existed before are kept. `instance` NULL: no nets have
 * prices. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planes_take_nets(psplit_i_planes *planes,
                                                      const psplit_i_instance *instance,
                                                      int64_t limit);
/* The load of a stage, with all receivers that it pays for. */
int64_t psplit_i_planes_load(const psplit_i_planes *planes, uint32_t plane);
/* Computes the weighted scalar product of two planes. */
void psplit_i_planes_multiply(psplit_i_planes *planes, uint32_t a, uint32_t b);

#endif
