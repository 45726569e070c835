/* Who receives what, point to point.
 *
 * Stages are formed from the last one. A tensor whose producer is still left has been received by
 * so many stages, which the label counts: the producer's stage pays for each. Consumers of a
 * backward node's tensor may be formed after the producer's stage: that stage then chooses how many
 * more receive it and pays for so many, and the label carries the *ration*, which every stage with
 * a consumer takes one from. A ration that is as large as what could still use it up binds nobody
 * and is left out of the label. */
#include "exact_inside.h"
#include "instance.h"

void psplit_i_receivers_load(digger *d, const uint32_t *pairs, uint32_t n_pairs) {
  const exact *x = d->x;
  d->n_rations = 0;
  d->n_sources = 0;
  if (!x->core->p2p) return;
  /* Default: one receiving stage as soon as a consumer is placed. */
  for (uint32_t e = 0; e < x->core->n_nets; e++)
    d->times_sent[e] = x->counted[e] && d->n_placed[e] == 0 ? 0 : 1;
  for (uint32_t i = 0; i < n_pairs; i += 2) {
    const uint32_t net = pairs[i] & ~PSPLIT_I_RATION;
    if (pairs[i] & PSPLIT_I_RATION) {
      d->receivers ^= psplit_i_count_key(pairs[i], pairs[i + 1]);
      d->rations[d->n_rations++] = (ration){net, pairs[i + 1]};
    } else {
      d->times_sent[net] = pairs[i + 1];
    }
  }
}

void psplit_i_receivers_take(digger *d, uint32_t item, bool add) {
  const exact *x = d->x;
  const psplit_core *core = x->core;
  for (uint32_t k = core->inc_off[item]; k < core->inc_off[item + 1]; k++) {
    const uint32_t e = core->inc[k] >> 1;
    if (!x->counted[e]) continue;
    const uint32_t others = d->walk.n_in[e] - (add ? 1 : 0);
    if (core->inc[k] & 1) { /* the producer settles who has received the net so far */
      const uint32_t count = d->times_sent[e] + (others > 0);
      if (count >= 2) d->receivers ^= psplit_i_count_key(e, count);
      if (x->mixed[e] && add) d->sources[d->n_sources++] = e;
      if (x->mixed[e] && !add) d->n_sources--;
    } else if (others == 0 && psplit_i_is_left(d, psplit_i_net_producer(core, e))) {
      if (d->times_sent[e] >= 2) d->receivers ^= psplit_i_count_key(e, d->times_sent[e]);
      if (d->times_sent[e] >= 1) d->receivers ^= psplit_i_count_key(e, d->times_sent[e] + 1);
    }
  }
}

bool psplit_i_receivers_open(const digger *d) {
  for (uint32_t i = 0; i < d->n_sources; i++)
    if (psplit_i_pins_left(d, d->sources[i]) > 0) return true;
  return false;
}

uint32_t psplit_i_receivers_list(const digger *d, uint32_t *pairs) {
  const exact *x = d->x;
  uint32_t n = 0;
  for (uint32_t e = 0; e < x->core->n_nets; e++) {
    if (!x->counted[e] || !psplit_i_is_left(d, psplit_i_net_producer(x->core, e))) continue;
    const uint32_t count = d->times_sent[e] + (d->walk.n_in[e] > 0);
    if (count < 2) continue;
    pairs[n++] = e;
    pairs[n++] = count;
  }
  for (uint32_t i = 0; i < d->n_next_rations; i++) {
    pairs[n++] = d->next_rations[i].net | PSPLIT_I_RATION;
    pairs[n++] = d->next_rations[i].count;
  }
  return n;
}
