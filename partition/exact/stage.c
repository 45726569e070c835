/* The stage that grows behind a label: adds clusters and takes them out again. */
#include "exact_inside.h"

/* Updates d->open, the least cost of nets that cross between what is left and what is placed, for a
 * cluster that moves from one to the other. */
static void cross(psplit_i_expander *d, uint32_t cluster, bool placed) {
  const psplit_i_program *x = d->x;
  const psplit_i_instance *instance = x->instance;
  int64_t open = 0;
  for (uint32_t k = instance->inc_off[cluster]; k < instance->inc_off[cluster + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1,
                   size = instance->net_off[e + 1] - instance->net_off[e];
    const uint32_t before = placed ? d->n_placed[e]++ : --d->n_placed[e];
    if (instance->inc[k] & 1) {
      open += (before + 1 < size ? x->least_recv[e] : 0) - (before > 0 ? x->least_send[e] : 0);
      continue;
    }
    const uint32_t source = instance->net_pin[instance->net_off[e]];
    if (!(d->left[source / 64] >> (source % 64) & 1))
      open -= before + 1 == size ? x->least_recv[e] : 0;
    else if (before == 0)
      open += x->least_send[e];
  }
  d->open += placed ? open : -open;
}

void psplit_i_expander_take(psplit_i_expander *d, uint32_t cluster) {
  const psplit_i_instance *instance = d->x->instance;
  const uint64_t bit = UINT64_C(1) << (cluster % 64);
  d->taken[d->n_taken++] = cluster;
  d->left[cluster / 64] &= ~bit;
  d->tops[cluster / 64] &= ~bit;
  d->hash ^= d->x->zobrist[cluster];
  d->check ^= d->x->zobrist2[cluster];
  d->min_time -= d->x->automaton->min_time[cluster];
  if (d->x->options->price) d->price_left -= d->x->options->price[cluster];
  psplit_i_load_tracker_add(&d->tracker, cluster);
  cross(d, cluster, true);
  if (d->x->count_receivers) psplit_i_receivers_take(d, cluster, true);
  for (uint32_t k = instance->pred_off[cluster]; k < instance->pred_off[cluster + 1]; k++) {
    const uint32_t p = instance->pred[k];
    if (--d->n_succ[p] == 0 && !psplit_i_is_weightless(d->x, p))
      d->tops[p / 64] |= UINT64_C(1) << (p % 64);
  }
}

void psplit_i_expander_give_back(psplit_i_expander *d) {
  const psplit_i_instance *instance = d->x->instance;
  const uint32_t cluster = d->taken[--d->n_taken];
  const uint64_t bit = UINT64_C(1) << (cluster % 64);
  for (uint32_t k = instance->pred_off[cluster]; k < instance->pred_off[cluster + 1]; k++) {
    const uint32_t p = instance->pred[k];
    if (d->n_succ[p]++ == 0) d->tops[p / 64] &= ~(UINT64_C(1) << (p % 64));
  }
  psplit_i_load_tracker_remove(&d->tracker, cluster);
  cross(d, cluster, false);
  if (d->x->count_receivers) psplit_i_receivers_take(d, cluster, false);
  d->min_time += d->x->automaton->min_time[cluster];
  if (d->x->options->price) d->price_left += d->x->options->price[cluster];
  if (d->x->n_key_bytes) d->keys[d->x->options->lexicographic->position[cluster]] = 0;
  d->hash ^= d->x->zobrist[cluster];
  d->check ^= d->x->zobrist2[cluster];
  d->left[cluster / 64] |= bit;
  if (!psplit_i_is_weightless(d->x, cluster)) d->tops[cluster / 64] |= bit;
}
