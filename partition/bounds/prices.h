/* Prices of clusters such that in any stage within the limit the prices of its clusters (and of
 * receivers, where these have prices) add up to at most PSPLIT_I_PRICING_ONE. So the sum of all
 * prices, in that unit, is a lower bound on the number of stages. */
#ifndef PSPLIT_PARTITION_PRICES_H
#define PSPLIT_PARTITION_PRICES_H

#include "pricing.h"

enum {
  PSPLIT_I_PRICING_PARTS = 512, /* of the limit, to which loads are rounded */
  PSPLIT_I_PRICED_STAGES = 256  /* at most: of more all clusters may be worth too large a number */
};

typedef struct psplit_i_prices {
  uint32_t n;
  int64_t needed;        /* what all stages that there are are worth at most */
  int32_t *price, *most; /* [n] */
  bool many;             /* clusters: to raise prices takes more steps than there is time for */
  uint64_t step;         /* operations of the last step in which they were raised */
  double hope;           /* stages, that all may be worth more where prices are raised further */
} psplit_i_prices;

/* Whether there are prices of its clusters: devices are alike, and it is not too large. */
bool psplit_i_prices_suit(const psplit_i_instance *instance);
/* Prices in proportion to times. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_prices_init(const psplit_i_instance *instance, int64_t limit,
                                                 psplit_i_arena *arena, psplit_i_prices *out);
/* They grow in up to so many rounds, until all clusters are worth more than `needed`; *out_sum:
 * what they are worth then, 0: the budget did not do. Not `to_the_end`: only while that may still
 * be. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_prices_grow(psplit_i_prices *prices, psplit_i_pricing *pricing,
                                                 int64_t limit, uint32_t n_rounds, bool to_the_end,
                                                 psplit_i_budget *budget, int64_t *out_sum);
/* Stages that bound what any is worth by prices, and what is known of these. It is the arena's, and
 * keeps `prices`. `instance` is the one without receivers apart. Errors: NOMEM. */
typedef struct psplit_i_planes psplit_i_planes;
PSPLIT_MUST_USE psplit_code psplit_i_planes_make(psplit_i_prices *prices,
                                                 const psplit_i_instance *instance,
                                                 psplit_i_arena *arena, psplit_i_planes **out);
/* Its prices become ones by which no stage is worth more than ONE, and are raised by cutting planes
 * (price_planes.c), in up to so many steps, until all clusters are worth more than `needed`, or
 * little more is to be had; not `to_the_end`: only while that may still be. They may be negative.
 * `instance`, or NULL, is that of the pricing: receivers have prices besides, which say nothing
 * where tensors are sent once for all.
 * *out_sum: what all are worth then, 0: the budget did not do. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_prices_raise(psplit_i_planes *planes,
                                                  psplit_i_pricing *pricing,
                                                  const psplit_i_instance *instance, int64_t limit,
                                                  uint32_t n_parts, uint32_t n_steps,
                                                  bool to_the_end, psplit_i_budget *budget,
                                                  int64_t *out_sum);
/* Growth with prices for receivers as well (receiver_prices.c), in so many rounds: *inout_sum
 * becomes what all clusters are worth then if that is more. `prices`, by which no stage is worth
 * more than ONE, stay as they are. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_prices_of_receivers(
  const psplit_i_prices *prices, psplit_i_pricing *pricing, const psplit_i_instance *instance,
  int64_t limit, uint32_t n_rounds, psplit_i_budget *budget, int64_t *inout_sum);
/* Prices keep their proportions where all together, `sum`, would be too large a number. */
static inline void psplit_i_prices_keep_small(psplit_i_prices *p, int64_t sum) {
  uint32_t shift = 0;
  while (sum >> shift > INT32_MAX) shift++;
  for (uint32_t v = 0; v < p->n && shift > 0; v++) p->price[v] >>= shift;
}

#endif
