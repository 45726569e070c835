/* The stage that grows behind a label: items in, items out. */
#include "exact_inside.h"

/* Keeps the nets that cross from what is left to what is placed: whoever takes what is left sends
 * or receives them. `item` moves across. */
static void cross(digger *d, uint32_t item, bool placed) {
  const exact *x = d->x;
  const psplit_core *core = x->core;
  int64_t open = 0;
  for (uint32_t k = core->inc_off[item]; k < core->inc_off[item + 1]; k++) {
    const uint32_t e = core->inc[k] >> 1, size = core->net_off[e + 1] - core->net_off[e];
    const uint32_t before = placed ? d->n_placed[e]++ : --d->n_placed[e];
    if (core->inc[k] & 1) {
      open += (before + 1 < size ? x->least_recv[e] : 0) - (before > 0 ? x->least_send[e] : 0);
      continue;
    }
    const uint32_t source = core->net_pin[core->net_off[e]];
    if (!(d->left[source / 64] >> (source % 64) & 1))
      open -= before + 1 == size ? x->least_recv[e] : 0;
    else if (before == 0)
      open += x->least_send[e];
  }
  d->open += placed ? open : -open;
}

void psplit_i_digger_take(digger *d, uint32_t item) {
  const psplit_core *core = d->x->core;
  const uint64_t bit = UINT64_C(1) << (item % 64);
  d->taken[d->n_taken++] = item;
  d->left[item / 64] &= ~bit;
  d->tops[item / 64] &= ~bit;
  d->hash ^= d->x->zobrist[item];
  d->check ^= d->x->zobrist2[item];
  d->omega -= d->x->machine->omega[item];
  psplit_i_walk_add(&d->walk, item);
  cross(d, item, true);
  if (d->x->count_receivers) psplit_i_receivers_take(d, item, true);
  for (uint32_t k = core->pred_off[item]; k < core->pred_off[item + 1]; k++) {
    const uint32_t p = core->pred[k];
    if (--d->n_succ[p] == 0 && !psplit_i_is_weightless(d->x, p))
      d->tops[p / 64] |= UINT64_C(1) << (p % 64);
  }
}

void psplit_i_digger_give_back(digger *d) {
  const psplit_core *core = d->x->core;
  const uint32_t item = d->taken[--d->n_taken];
  const uint64_t bit = UINT64_C(1) << (item % 64);
  for (uint32_t k = core->pred_off[item]; k < core->pred_off[item + 1]; k++) {
    const uint32_t p = core->pred[k];
    if (d->n_succ[p]++ == 0) d->tops[p / 64] &= ~(UINT64_C(1) << (p % 64));
  }
  psplit_i_walk_remove(&d->walk, item);
  cross(d, item, false);
  if (d->x->count_receivers) psplit_i_receivers_take(d, item, false);
  d->omega += d->x->machine->omega[item];
  if (d->x->n_numbers) d->numbers[d->x->options->first->place[item]] = 0;
  d->hash ^= d->x->zobrist[item];
  d->check ^= d->x->zobrist2[item];
  d->left[item / 64] |= bit;
  if (!psplit_i_is_weightless(d->x, item)) d->tops[item / 64] |= bit;
}
