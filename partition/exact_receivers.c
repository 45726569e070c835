/* Who receives what, point to point.
 *
 * Stages are formed from the last one. A tensor whose producer is still left has been received by
 * so many stages, which the label counts: the producer's stage pays for each. Consumers of a
 * backward node's tensor may be formed after the producer's stage: that stage then chooses how many
 * more receive it and pays for so many, and the label carries the *ration*, which every stage with
 * a consumer takes one from. A ration that is as large as what could still use it up binds nobody
 * and is left out of the label. */
#include "exact.h"

/* In the pairs of a label: the count is a ration. */
#define RATION (UINT32_C(1) << 31)

static uint64_t count_key(uint32_t net, uint32_t count) {
  return psplit_i_splitmix64(net, (UINT64_C(1) << 32) + count);
}

static bool is_left(const digger *d, uint32_t item) {
  return d->left[item / 64] >> (item % 64) & 1;
}

static uint32_t producer(const psplit_core *core, uint32_t net) {
  return core->net_pin[core->net_off[net]];
}

/* Pins of a net that are neither placed nor in the stage. */
static uint32_t pins_left(const digger *d, uint32_t net) {
  const psplit_core *core = d->x->core;
  return core->net_off[net + 1] - core->net_off[net] - d->n_placed[net];
}

/* Receivers of a net that a choice must tell apart: as many as items and devices in front allow. */
static uint32_t most_receivers(const digger *d, uint32_t net, uint32_t next) {
  const psplit_machine *m = d->x->machine;
  const uint32_t items = pins_left(d, net), stages = m->n_stages - m->used[next];
  return items < stages ? items : stages;
}

void psplit_i_receivers_load(digger *d, const uint32_t *pairs, uint32_t n_pairs) {
  const exact *x = d->x;
  d->n_rations = 0;
  d->n_sources = 0;
  if (!x->core->p2p) return;
  /* Default: one receiving stage as soon as a consumer is placed. */
  for (uint32_t e = 0; e < x->core->n_nets; e++)
    d->times_sent[e] = x->counted[e] && d->n_placed[e] == 0 ? 0 : 1;
  for (uint32_t i = 0; i < n_pairs; i += 2) {
    const uint32_t net = pairs[i] & ~RATION;
    if (pairs[i] & RATION) {
      d->receivers ^= count_key(pairs[i], pairs[i + 1]);
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
      if (count >= 2) d->receivers ^= count_key(e, count);
      if (x->mixed[e] && add) d->sources[d->n_sources++] = e;
      if (x->mixed[e] && !add) d->n_sources--;
    } else if (others == 0 && is_left(d, producer(core, e))) {
      if (d->times_sent[e] >= 2) d->receivers ^= count_key(e, d->times_sent[e]);
      if (d->times_sent[e] >= 1) d->receivers ^= count_key(e, d->times_sent[e] + 1);
    }
  }
}

bool psplit_i_receivers_open(const digger *d) {
  for (uint32_t i = 0; i < d->n_sources; i++)
    if (pins_left(d, d->sources[i]) > 0) return true;
  return false;
}

/* Adds a ration to the next label's. */
static void pass_on(digger *d, uint32_t net, uint32_t most, uint32_t count) {
  if (count < most) d->next_rations[d->n_next_rations++] = (ration){net, count};
}

static int64_t load_with(digger *d, const psplit_move *move, int64_t more_sent) {
  int64_t *send = &d->walk.send[move->type];
  *send += more_sent;
  const int64_t load = psplit_i_walk_load(&d->walk, d->x->machine, move);
  *send -= more_sent;
  return load;
}

/* Chooses receivers in front for the sources from `at` on. A choice that could be larger is left
 * out unless less communication is asked for: the larger one allows all that it does. */
static void choose(digger *d, const psplit_move *move, uint32_t at, int64_t more_sent) {
  const exact *x = d->x;
  const psplit_core *core = x->core;
  if (load_with(d, move, more_sent) > x->options->limit) return;
  while (at < d->n_sources && pins_left(d, d->sources[at]) == 0) at++;
  if (at == d->n_sources) {
    d->n_steps++;
    if (d->could_send < PSPLIT_I_INF &&
        load_with(d, move, more_sent + d->could_send) <= x->options->limit)
      return;
    uint64_t receivers = d->receivers;
    for (uint32_t i = 0; i < d->n_next_rations; i++)
      receivers ^= count_key(d->next_rations[i].net | RATION, d->next_rations[i].count);
    psplit_i_exact_offer(d, move, receivers, more_sent);
    return;
  }
  const uint32_t e = d->sources[at], most = most_receivers(d, e, move->next);
  const int64_t send = core->send[(size_t)move->type * core->n_nets + e];
  for (uint32_t count = send > 0 ? 1 : most; count <= most; count++) {
    const uint32_t n_before = d->n_next_rations;
    const int64_t could = d->could_send;
    if (count < most && send < d->could_send && !x->options->least_comm) d->could_send = send;
    pass_on(d, e, most, count);
    choose(d, move, at + 1, more_sent + count * send);
    d->n_next_rations = n_before;
    d->could_send = could;
  }
}

void psplit_i_receivers_offer(digger *d, const psplit_move *move) {
  d->n_next_rations = 0;
  d->could_send = PSPLIT_I_INF;
  for (uint32_t i = 0; i < d->n_rations; i++) {
    const ration r = d->rations[i];
    const uint32_t most = most_receivers(d, r.net, move->next);
    const uint32_t count = r.count - (d->walk.n_in[r.net] > 0);
    if (pins_left(d, r.net) == 0) continue;
    if (count == 0) return; /* nobody pays for those that are left */
    pass_on(d, r.net, most, count);
  }
  choose(d, move, 0, 0);
}

uint32_t psplit_i_receivers_list(const digger *d, uint32_t *pairs) {
  const exact *x = d->x;
  uint32_t n = 0;
  for (uint32_t e = 0; e < x->core->n_nets; e++) {
    if (!x->counted[e] || !is_left(d, producer(x->core, e))) continue;
    const uint32_t count = d->times_sent[e] + (d->walk.n_in[e] > 0);
    if (count < 2) continue;
    pairs[n++] = e;
    pairs[n++] = count;
  }
  for (uint32_t i = 0; i < d->n_next_rations; i++) {
    pairs[n++] = d->next_rations[i].net | RATION;
    pairs[n++] = d->next_rations[i].count;
  }
  return n;
}
