/* What the parts of a step cost with the labels of their variables as they are, and what such a
 * stage may pay for receivers. */
#include "pricing_inside.h"

int64_t psplit_i_pricing_net_cost(const psplit_i_pricing *p, uint32_t e, bool pays,
                                  uint8_t producer) {
  if (!pays || producer == PSPLIT_I_BEHIND) return 0;
  return (producer == PSPLIT_I_INSIDE ? p->instance->send : p->instance->recv)[e];
}

/* The same in prices of receivers: a stage that sends gets what one that receives pays. */
static int32_t net_price(const psplit_i_pricing *p, uint32_t e, bool pays, uint8_t producer) {
  if (!p->receiver || !pays || producer == PSPLIT_I_BEHIND) return 0;
  return producer == PSPLIT_I_INSIDE ? p->receiver[e] : -p->receiver[e];
}

/* What a part costs with labels as they are; -1: it rules them out. Adds its price. */
static int64_t cost_of(const psplit_i_pricing *p, const part *q, int32_t *inout_price) {
  const uint8_t producer = p->label[q->scope[0]];
  bool pays = q->kind == PAYS && p->label[q->scope[1]] == 1;
  if (q->kind == PAYS) {
    *inout_price += net_price(p, q->of, pays, producer);
    return psplit_i_pricing_net_cost(p, q->of, pays, producer);
  }
  for (uint32_t i = q->kind == MUST_PAY ? 2 : 1; i < q->n_scope; i++) {
    const uint8_t consumer = p->label[q->scope[i]];
    if (consumer < producer) return -1;
    /* A net from before is received by consumers inside; one from inside is sent behind. */
    pays = pays || consumer == producer + 1;
  }
  if (q->kind == MUST_PAY) return pays && p->label[q->scope[1]] == 0 ? -1 : 0;
  *inout_price += net_price(p, q->of, pays, producer);
  return psplit_i_pricing_net_cost(p, q->of, pays, producer);
}

/* Load and price of the variable of `s` and of its parts that are no tables; false: ruled out. */
static bool own_of(const psplit_i_pricing *p, const step *s, entry *out) {
  int64_t load = 0;
  *out = (entry){0, 0};
  for (uint32_t i = s->n_tables; i < s->n_parts; i++) {
    const int64_t cost = cost_of(p, &p->parts[s->parts[i]], &out->price);
    if (cost < 0) return false;
    load += cost >> p->shift;
    if (load > p->cap) return false;
  }
  if (s->var < p->instance->n && p->label[s->var] == PSPLIT_I_INSIDE) {
    load += p->instance->w[s->var] >> p->shift;
    out->price += p->price ? p->price[s->var] : 0;
  }
  if (load > p->cap) return false;
  out->load = (int32_t)load;
  return true;
}

/* How many receivers, of a net that has a price for them, the stage may pay for with labels as they
 * are. */
static uint32_t most_receivers(const psplit_i_pricing *p, const part *q) {
  if (q->kind != WHOLE_NET && q->kind != PAYS) return 1;
  if (p->receiver[q->of] == 0 || p->label[q->scope[0]] != PSPLIT_I_INSIDE) return 1;
  if (q->kind == PAYS && p->label[q->scope[1]] == 0) return 1;
  const psplit_i_instance *in = p->instance;
  if (q->kind == PAYS) return in->net_off[q->of + 1] - in->net_off[q->of] - 1;
  uint32_t n = 0;
  for (uint32_t i = 1; i < q->n_scope; i++) n += p->label[q->scope[i]] == PSPLIT_I_BEHIND;
  return n > 1 ? n : 1;
}

uint32_t psplit_i_pricing_ways_of(const psplit_i_pricing *p, const step *s, entry own, entry *out) {
  uint32_t n = 1;
  out[0] = own;
  if (!p->receiver) return 1;
  for (uint32_t i = s->n_tables; i < s->n_parts; i++) {
    const part *q = &p->parts[s->parts[i]];
    const uint32_t most = most_receivers(p, q), before = n;
    if (most == 1) continue;
    const int32_t price = p->receiver[q->of];
    const int64_t load = p->instance->send[q->of] >> p->shift;
    if (n * most > MOST_OWN) {
      for (uint32_t k = 0; k < n; k++) out[k].price += (int32_t)(most - 1) * price;
      continue;
    }
    for (uint32_t m = 1; m < most; m++)
      for (uint32_t k = 0; k < before; k++)
        if (out[k].load + m * load <= p->cap)
          out[n++] = (entry){(int32_t)(out[k].load + m * load), out[k].price + (int32_t)m * price};
  }
  return n;
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
