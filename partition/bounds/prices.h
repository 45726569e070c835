/* Prices of clusters such that in any stage within the limit the prices of its clusters (and of
 * receivers, where these have prices) add up to at most PSPLIT_I_PRICING_ONE. So the sum of all
 * prices, in that unit, is a lower bound on the number of stages. */
#ifndef PSPLIT_PARTITION_PRICES_H
#define PSPLIT_PARTITION_PRICES_H

#include "pricing.h"

enum {
  PSPLIT_I_PRICING_PARTS = 512, /* units per limit, to which loads are rounded down */
  PSPLIT_I_PRICED_STAGES = 256  /* above this, the sum of all prices could overflow */
};

typedef struct psplit_i_prices {
  uint32_t n;
  int64_t needed;        /* upper bound on the total price of n_stages stages */
  int32_t *price, *most; /* [n] */
  bool many;             /* many clusters: cutting planes do not converge within the budget */
  uint64_t step;         /* budget units spent in the last cutting-plane step */
  double hope;           /* predicted further gain of the sum, in stages */
} psplit_i_prices;

/* Whether the method applies to the instance: devices are alike, nets run forward, and it is not
 * too large. */
bool psplit_i_prices_suit(const psplit_i_instance *instance);
/* Initial prices, in proportion to the times. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_prices_init(const psplit_i_instance *instance, int64_t limit,
                                                 psplit_i_arena *arena, psplit_i_prices *out);
/* Scales the prices in up to n_rounds rounds, until they add up to more than `needed`. *out_sum is
 * the resulting sum, or 0 if the budget ran out. Unless `to_the_end`, stops as soon as the gain per
 * round shows that `needed` is out of reach. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_prices_grow(psplit_i_prices *prices, psplit_i_pricing *pricing,
                                                 int64_t limit, uint32_t n_rounds, bool to_the_end,
                                                 psplit_i_budget *budget, int64_t *out_sum);
/* The cutting planes of a bundle method: stages found by the pricing problem, with their values.
 * Allocated in the arena; keeps a pointer to `prices`. `instance` is the one whose receivers are
 * not divided. Errors: NOMEM. */
typedef struct psplit_i_planes psplit_i_planes;
PSPLIT_MUST_USE psplit_code psplit_i_planes_make(psplit_i_prices *prices,
                                                 const psplit_i_instance *instance,
                                                 psplit_i_arena *arena, psplit_i_planes **out);
/* Turns the prices into valid ones, by which no stage is worth more than ONE, and raises them by
 * cutting planes (price_planes.c) in up to n_steps steps, until they add up to more than `needed`
 * or the predicted gain is small. Unless `to_the_end`, stops as soon as `needed` seems out of
 * reach. Prices may become negative. `instance` is that of the pricing problem if receivers are to
 * have prices too, else NULL; without point-to-point transfers it makes no difference. *out_sum is
 * the sum of all prices, or 0 if the budget ran out. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_prices_raise(psplit_i_planes *planes,
                                                  psplit_i_pricing *pricing,
                                                  const psplit_i_instance *instance, int64_t limit,
                                                  uint32_t n_parts, uint32_t n_steps,
                                                  bool to_the_end, psplit_i_budget *budget,
                                                  int64_t *out_sum);
/* Like psplit_i_prices_grow(), with prices for receivers as well (receiver_prices.c), in up to
 * n_rounds rounds. *inout_sum becomes the resulting sum of the cluster prices if that is larger.
 * `prices`, by which no stage is worth more than ONE, are not changed. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_prices_of_receivers(
  const psplit_i_prices *prices, psplit_i_pricing *pricing, const psplit_i_instance *instance,
  int64_t limit, uint32_t n_rounds, psplit_i_budget *budget, int64_t *inout_sum);
/* Scales all prices down, in proportion, where their sum would overflow. */
static inline void psplit_i_prices_keep_small(psplit_i_prices *p, int64_t sum) {
  uint32_t shift = 0;
  while (sum >> shift > INT32_MAX) shift++;
  for (uint32_t v = 0; v < p->n && shift > 0; v++) p->price[v] >>= shift;
}

#endif
