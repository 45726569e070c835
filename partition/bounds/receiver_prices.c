/* Prices of receivers: a stage that sends a net to m others pays for each of them, which no sum
 * over what one stage holds can tell. Let r(e) be any number. A stage gets r(e) for each receiver
 * that it pays for as the producer of e, and gives r(e) if it receives e: over all stages of a
 * split that comes to nothing, as each receiver is paid for. So with any prices p of clusters,
 * negative ones too, stages together are worth sum p(v), and if none is worth more than ONE, K are
 * worth K ONE.
 *
 * Prices w by which no stage is worth more than ONE, without any for receivers, are given. Let q(v)
 * be no less than what a stage with v is worth by p and r, and Q >= ONE no less than what any is.
 * Then p(v) ONE / Q + (1 - q(v) / Q) w(v), with r(e) ONE / Q, are valid prices: a stage S that is
 * worth x by p and r is worth at most x ONE / Q + (1 - x / Q) w(S) <= ONE. */
#include "prices.h"

#include <string.h>

enum {
  MOST_RECEIVERS = 8, /* of a net with a price for them */
  PARTS = PSPLIT_I_PRICING_PARTS,
  ONE = PSPLIT_I_PRICING_ONE
};

typedef struct receiver_price_search {
  uint32_t n, n_nets;
  int32_t *price, *most; /* [n] */
  int32_t *receiver;     /* [n_nets] */
} receiver_price_search;

static bool is_priced(const psplit_i_instance *in, uint32_t e, int64_t limit) {
  const uint32_t n = in->net_off[e + 1] - in->net_off[e] - 1;
  return n > 1 && n <= MOST_RECEIVERS && in->send[e] > 0 && in->send[e] <= limit;
}

/* Whether what a part of the graph is worth fits 32 bits. Receivers that a stage pays for add
 * little: they take load. */
static bool are_small(const receiver_price_search *p) {
  int64_t all = 0;
  for (uint32_t v = 0; v < p->n; v++) all += p->price[v] < 0 ? -p->price[v] : p->price[v];
  for (uint32_t e = 0; e < p->n_nets; e++) all += p->receiver[e];
  return all < INT32_MAX - (int64_t)4 * MOST_RECEIVERS * ONE;
}

/* A receiver's price is what it takes to send to, in parts of a stage. A producer gives back what
 * it gets for the first, and consumers share it: a stage with all of them is worth what it was. */
static void begin(const psplit_i_instance *in, int64_t limit, receiver_price_search *p) {
  for (uint32_t e = 0; e < in->n_nets; e++) {
    p->receiver[e] = 0;
    if (!is_priced(in, e, limit)) continue;
    const uint32_t *pin = in->net_pin + in->net_off[e], n = in->net_off[e + 1] - in->net_off[e] - 1;
    const int32_t share = (int32_t)((double)in->send[e] / (double)limit * ONE / n);
    p->receiver[e] = share * (int32_t)n;
    p->price[pin[0]] -= p->receiver[e];
    for (uint32_t i = 1; i <= n; i++) p->price[pin[i]] += share;
  }
}

/* What all clusters are worth by valid prices as above, rounded down, and the next prices. */
static int64_t step(const psplit_i_prices *given, int64_t largest, receiver_price_search *p) {
  int64_t sum = 0;
  for (uint32_t v = 0; v < p->n; v++) largest = p->most[v] > largest ? p->most[v] : largest;
  for (uint32_t v = 0; v < p->n; v++) {
    const int64_t w = given->price[v], room = ONE - (int64_t)p->most[v];
    if (p->most[v] < 0) return given->needed + 1; /* no stage within the limit has v */
    sum += p->price[v] + (largest - p->most[v]) * w / ONE;
    p->price[v] += (int32_t)(room * w / ONE);
  }
  return sum > 0 ? sum * ONE / largest : 0;
}

psplit_code psplit_i_prices_of_receivers(const psplit_i_prices *prices, psplit_i_pricing *pricing,
                                         const psplit_i_instance *instance, int64_t limit,
                                         uint32_t n_rounds, psplit_i_budget *budget,
                                         int64_t *inout_sum) {
  receiver_price_search p = {.n = prices->n, .n_nets = instance->n_nets};
  psplit_i_arena arena;
  psplit_code code = PSPLIT_OK;
  bool any = false;
  for (uint32_t e = 0; e < instance->n_nets && !any; e++) any = is_priced(instance, e, limit);
  if (!any || !instance->p2p) return PSPLIT_OK;
  psplit_i_arena_init(&arena, 0);
  p.price = PSPLIT_NEW(&arena, int32_t, p.n);
  p.most = PSPLIT_NEW(&arena, int32_t, p.n);
  p.receiver = PSPLIT_NEW(&arena, int32_t, instance->n_nets);
  PSPLIT_TRY(arena.failed ? PSPLIT_NOMEM : PSPLIT_OK);
  memcpy(p.price, prices->price, p.n * sizeof *p.price);
  begin(instance, limit, &p);
  int64_t before = 0;
  for (uint32_t k = 0; k < n_rounds && *inout_sum <= prices->needed && are_small(&p); k++) {
    int64_t most;
    bool done;
    PSPLIT_TRY(psplit_i_pricing_most(pricing, limit, PARTS, p.price, p.receiver, budget, &most,
                                     p.most, &done));
    if (!done) break;
    const int64_t sum = step(prices, most > ONE ? most : ONE, &p);
    if (sum > *inout_sum) *inout_sum = sum;
    if (k > 0 && (sum - before) * (n_rounds - k) < prices->needed - sum) break;
    before = sum;
  }
out:
  psplit_i_arena_fini(&arena);
  return code;
}
