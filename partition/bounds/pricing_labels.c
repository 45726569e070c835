/* Load and price of the factors of a step for the current labels, and the numbers of receivers for
 * which such a stage may pay. */
#include "pricing_inside.h"

/* bound on the receivers of a net with a price, which must fit a byte */
enum { MOST_RECEIVERS = 100 };

uint32_t psplit_i_pricing_receivers(const psplit_i_instance *in, uint32_t net) {
  const uint32_t n = in->net_off[net + 1] - in->net_off[net] - 1;
  const uint32_t most = n < in->n_stages ? n : in->n_stages - 1;
  return most > 1 && most <= MOST_RECEIVERS && in->send[net] > 0 ? most : 1;
}

int64_t psplit_i_pricing_net_cost(const psplit_i_pricing *p, uint32_t e, bool pays,
                                  uint8_t producer) {
  if (!pays || producer == PSPLIT_I_BEHIND) return 0;
  return (producer == PSPLIT_I_INSIDE ? p->instance->send : p->instance->recv)[e];
}

uint8_t psplit_i_pricing_deal_of(const psplit_i_pricing *p, const part *q) {
  const uint8_t producer = p->label[q->scope[0]];
  if (producer == PSPLIT_I_BEHIND || (q->kind != PAYS && q->kind != WHOLE_NET)) return 0;
  if (q->kind == PAYS && p->label[q->scope[1]] == 0) return 0;
  if (q->kind == PAYS && producer == PSPLIT_I_BEFORE) return 1;
  if (q->kind == PAYS) return (uint8_t)(1 + psplit_i_pricing_receivers(p->instance, q->of));
  uint8_t n = 0;
  for (uint32_t i = 1; i < q->n_scope; i++)
    if (p->label[q->scope[i]] == producer + 1) n++;
  if (producer == PSPLIT_I_BEFORE) return n > 0;
  return n > 0 ? (uint8_t)(1 + n) : 0;
}

/* The cost of a factor for the current labels, or -1 if it excludes them. */
static int64_t cost_of(const psplit_i_pricing *p, const part *q) {
  const uint8_t producer = p->label[q->scope[0]];
  bool pays = q->kind == PAYS && p->label[q->scope[1]] == 1;
  if (q->kind == PAYS) return psplit_i_pricing_net_cost(p, q->of, pays, producer);
  for (uint32_t i = q->kind == MUST_PAY ? 2 : 1; i < q->n_scope; i++) {
    const uint8_t consumer = p->label[q->scope[i]];
    if (consumer < producer) return -1;
    /* A net from before the stage is received by consumers inside; one from inside is sent
     * behind. */
    pays = pays || consumer == producer + 1;
  }
  if (q->kind == MUST_PAY) return pays && p->label[q->scope[1]] == 0 ? -1 : 0;
  return psplit_i_pricing_net_cost(p, q->of, pays, producer);
}

/* Load and price of the variable of `s` and of its factors that are no tables. False:
 * infeasible. */
static bool own_of(const psplit_i_pricing *p, const step *s, entry *out) {
  int64_t load = 0;
  *out = (entry){0, 0};
  for (uint32_t i = s->n_tables; i < s->n_parts; i++) {
    const part *q = &p->parts[s->parts[i]];
    const int64_t cost = cost_of(p, q);
    if (cost < 0) return false;
    load += cost >> p->shift;
    if (load > p->cap) return false;
    if (p->receiver)
      out->price += psplit_i_pricing_deal_price(p, q->of, psplit_i_pricing_deal_of(p, q));
  }
  if (s->var < p->instance->n && p->label[s->var] == PSPLIT_I_INSIDE) {
    load += p->instance->w[s->var] >> p->shift;
    out->price += p->price ? p->price[s->var] : 0;
  }
  if (load > p->cap) return false;
  out->load = (int32_t)load;
  return true;
}

uint32_t psplit_i_pricing_ways(const psplit_i_pricing *p, const uint32_t *net, const uint8_t *deal,
                               uint32_t n_nets, entry own, entry *out, uint64_t *codes) {
  uint32_t n = 1;
  out[0] = own;
  if (codes) codes[0] = 0;
  for (uint32_t i = 0; i < n_nets; i++) {
    const uint32_t before = n;
    const int32_t price = p->receiver[net[i]];
    const int64_t load = p->instance->send[net[i]] >> p->shift;
    if (deal[i] < 3 || price <= 0) continue;
    const uint32_t most = deal[i] - 1u;
    if (n * most > MOST_OWN) {
      for (uint32_t k = 0; k < n; k++) out[k].price += (int32_t)(most - 1) * price;
      continue;
    }
    for (uint32_t m = 1; m < most; m++)
      for (uint32_t k = 0; k < before; k++) {
        if (out[k].load + m * load > p->cap) continue;
        if (codes) codes[n] = codes[k] + (i < CODED ? (uint64_t)m << (8 * i) : 0);
        out[n++] = (entry){(int32_t)(out[k].load + m * load), out[k].price + (int32_t)m * price};
      }
  }
  return n;
}

uint32_t psplit_i_pricing_deals_of(const psplit_i_pricing *p, const step *s) {
  uint32_t n = 0;
  for (uint32_t i = s->n_tables; i < s->n_parts; i++) {
    const part *q = &p->parts[s->parts[i]];
    if ((q->kind != PAYS && q->kind != WHOLE_NET) ||
        psplit_i_pricing_receivers(p->instance, q->of) < 2)
      continue;
    p->own_net[n] = q->of;
    p->own_deal[n++] = psplit_i_pricing_deal_of(p, q);
  }
  return n;
}

uint32_t psplit_i_pricing_ways_of(const psplit_i_pricing *p, const step *s, entry own, entry *out,
                                  uint64_t *codes) {
  const uint32_t n = p->receiver ? psplit_i_pricing_deals_of(p, s) : 0;
  return psplit_i_pricing_ways(p, p->own_net, p->own_deal, n, own, out, codes);
}

uint8_t psplit_i_pricing_only_label(const psplit_i_pricing *p, uint32_t var) {
  uint8_t only = LABELS, n = 0;
  for (uint32_t x = 0; x < LABELS; x++)
    if (psplit_i_pricing_may_be(p, var, (uint8_t)x)) {
      only = (uint8_t)x;
      n++;
    }
  return n == 1 ? only : LABELS;
}

bool psplit_i_pricing_set_labels(psplit_i_pricing *p, const step *s, uint32_t index) {
  bool all = true;
  for (uint32_t i = 0; i < s->n_scope; i++, index /= LABELS) {
    p->label[s->scope[i]] = (uint8_t)(index % LABELS);
    all = all && psplit_i_pricing_may_be(p, s->scope[i], p->label[s->scope[i]]);
  }
  return all;
}

bool psplit_i_pricing_set_own(psplit_i_pricing *p, const step *s, uint8_t label, entry *out_own) {
  if (!psplit_i_pricing_may_be(p, s->var, label)) return false;
  p->label[s->var] = label;
  return own_of(p, s, out_own);
}
