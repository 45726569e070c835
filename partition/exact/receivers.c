/* Receivers of nets, point to point.
 *
 * Stages are formed from the last one. For a tensor whose producer is still left, a label counts
 * the stages that receive it so far: the producer's stage will pay for each. Consumers of a
 * backward node's tensor may be formed after the producer's stage: that stage then chooses how many
 * more receive it and pays for so many, and the label carries the *receiver budget*, which every
 * stage with a consumer takes one from. A receiver budget that is as large as what could still use
 * it up binds no stage and is left out of the label. */
#include "exact_inside.h"
#include "instance.h"

void psplit_i_receivers_load(psplit_i_expander *d, const uint32_t *pairs, uint32_t n_pairs) {
  const psplit_i_program *x = d->x;
  d->n_budgets = 0;
  d->n_sources = 0;
  if (x->alike) {
    d->receivers = 0; /* the groups are others now */
    psplit_i_groups_load(d, pairs, n_pairs);
    return;
  }
  if (x->bypasses) psplit_i_bypasses_load(d, pairs, n_pairs);
  if (!x->instance->p2p) return;
  /* Default: one receiving stage as soon as a consumer is placed. */
  for (uint32_t e = 0; e < x->instance->n_nets; e++)
    d->times_sent[e] = x->counted[e] && d->n_placed[e] == 0 ? 0 : 1;
  uint32_t i = 0;
  for (; i < n_pairs && !(x->messages && pairs[i] & PSPLIT_I_WAITING); i += 2) {
    const uint32_t net = pairs[i] & ~PSPLIT_I_RECEIVER_BUDGET;
    if (pairs[i] & PSPLIT_I_RECEIVER_BUDGET) {
      d->receivers ^= psplit_i_count_key(pairs[i], pairs[i + 1]);
      d->budgets[d->n_budgets++] = (psplit_i_receiver_budget){net, pairs[i + 1]};
    } else {
      d->times_sent[net] = pairs[i + 1];
    }
  }
  if (x->messages) psplit_i_messages_load(d, pairs + i, n_pairs - i);
}

void psplit_i_receivers_take(psplit_i_expander *d, uint32_t cluster, bool add) {
  const psplit_i_program *x = d->x;
  if (x->alike) {
    psplit_i_groups_take(d, cluster, add);
    return;
  }
  if (x->bypasses) {
    psplit_i_bypasses_take(d, cluster, add);
    return;
  }
  const psplit_i_instance *instance = x->instance;
  if (x->messages) psplit_i_messages_take(d, cluster, add);
  for (uint32_t k = instance->inc_off[cluster]; k < instance->inc_off[cluster + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1;
    if (!x->counted[e]) continue;
    const uint32_t others = d->tracker.n_in[e] - (add ? 1 : 0);
    if (instance->inc[k] & 1) { /* with the producer, the count so far is paid for */
      const uint32_t count = d->times_sent[e] + (others > 0);
      if (count >= 2) d->receivers ^= psplit_i_count_key(e, count);
      if (x->mixed[e] && add) d->sources[d->n_sources++] = e;
      if (x->mixed[e] && !add) d->n_sources--;
    } else if (others == 0 && psplit_i_is_left(d, psplit_i_net_producer(instance, e))) {
      if (d->times_sent[e] >= 2) d->receivers ^= psplit_i_count_key(e, d->times_sent[e]);
      if (d->times_sent[e] >= 1) d->receivers ^= psplit_i_count_key(e, d->times_sent[e] + 1);
    }
  }
}

bool psplit_i_receivers_open(const psplit_i_expander *d) {
  for (uint32_t i = 0; i < d->n_sources; i++)
    if (psplit_i_pins_left(d, d->sources[i]) > 0) return true;
  return false;
}

uint32_t psplit_i_receivers_list(const psplit_i_expander *d, uint32_t *pairs) {
  const psplit_i_program *x = d->x;
  if (x->alike) return psplit_i_groups_list(d, pairs);
  if (x->bypasses) return psplit_i_bypasses_list(d, pairs);
  uint32_t n = 0;
  for (uint32_t e = 0; e < x->instance->n_nets; e++) {
    if (!x->counted[e] || !psplit_i_is_left(d, psplit_i_net_producer(x->instance, e))) continue;
    const uint32_t count = d->times_sent[e] + (d->tracker.n_in[e] > 0);
    if (count < 2) continue;
    pairs[n++] = e;
    pairs[n++] = count;
  }
  for (uint32_t i = 0; i < d->n_next_budgets; i++) {
    pairs[n++] = d->next_budgets[i].net | PSPLIT_I_RECEIVER_BUDGET;
    pairs[n++] = d->next_budgets[i].count;
  }
  if (x->messages) n += psplit_i_messages_list(d, pairs + n);
  return n;
}
