/* Inside the raising of prices: stages that were found (planes), by what they have of each cluster
 * and of the receivers of each net that has a price for them.
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
  uint32_t n, most;   /* prices: of clusters, then of receivers */
  uint32_t n_parts;   /* to which loads are rounded */
  uint32_t *net;      /* [n - n_clusters] those with a price for receivers, */
  uint64_t *known_by; /* [n - n_clusters] and what they are known by at another limit */
  double *center;     /* [n] the best prices so far, by which the best stage is worth 1 */
  double *weight;     /* [n] how far each may go */
  double *slope;      /* [n] of the average of stages */
  int32_t *price;     /* [n] that are tried */
  int32_t *receiver;  /* [most_nets] the same, by net */
  uint8_t *side;      /* [n_clusters] of a stage that is traced, */
  int8_t *paid;       /* [most_nets] and what it does with each net */
  int8_t *has;     /* [MOST_PLANES * most] of a cluster, 1: the stage holds it; of a net, receivers
                       * that it pays for, or -1: it is one */
  double *product; /* [MOST_PLANES * MOST_PLANES] of two stages, by weight */
  double share[PSPLIT_I_MOST_PLANES], gradient[PSPLIT_I_MOST_PLANES];
  uint64_t hash[PSPLIT_I_MOST_PLANES];
  bool fits[PSPLIT_I_MOST_PLANES]; /* else its stage was found at a larger limit, or rounded more */
  uint32_t used[PSPLIT_I_MOST_PLANES]; /* the last step with a share in it */
  double sum;                          /* of the center */
  double hope;                         /* what the planes say that the next prices are worth more */
  double length;
  bool impossible; /* no stage within the limit is worth anything by prices that were tried */
};

/* Goes over to the nets of the instance at another limit, where receivers are taken apart: what is
 * known of those that were there stays. NULL: no nets have prices. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planes_take_nets(psplit_i_planes *planes,
                                                      const psplit_i_instance *instance,
                                                      int64_t limit);
/* The load of a stage, with all receivers that it pays for. */
int64_t psplit_i_planes_load(const psplit_i_planes *planes, uint32_t plane);
/* Makes the product of two stages. */
void psplit_i_planes_multiply(psplit_i_planes *planes, uint32_t a, uint32_t b);

#endif
