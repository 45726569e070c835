/* What the nets of an instance are, and the work of those that stay, when clusters are left out one
 * at a time, from the last on.
 *
 * The nets that a cluster v sends go with it; those that it receives may take their place. Who
 * receives and who sends a net are looked at apart, each side with its own consumers and cost, and
 * no load of either side rises in any split:
 *
 *   Receiving. Nets j to v, of together no more cost than a net i from v to S, go to S in its
 *   place. A stage without v and with some of S paid for i, and pays for those j. The stage of v
 *   paid for each j that it does not send itself, and pays no more. Where nobody else received j, a
 *   part of its cost may go on.
 *
 *   Sending. The producer of j sends it to the stage of v, once. Where nobody else received j, it
 *   may send it to one cluster of S instead: once, too. If v is in its own stage, that paid for i
 *   if that cluster is elsewhere, and pays for those j.
 *
 * Each j takes the place of one i, or it would count twice.
 *
 *   Work. Of the time of v others may take over some, if a net pays for it: the producer of j,
 *   where nobody but v receives it, as much as j takes to send; one cluster of S as much as i takes
 *   to receive; and these nets cost as much less. A stage with those, and without v, paid for the
 *   net. The stage of v has that time itself, and all together take over no more. With overlap a
 *   load is the largest of what is computed, sent and received, and nothing is taken over.
 *
 * Source: this project. */
#include <string.h>

#include "heavy_inside.h"

/* The cluster that leaves, and one side of a net i from it. */
typedef struct leaving {
  psplit_i_heavy_build *x;
  uint32_t v, i;
  psplit_i_net_side side;
  int64_t *left;  /* [n_types] of what i costs */
  bool *moved_on; /* [n_nets] this side of a net to v has taken some place */
} leaving;

static uint64_t *consumers(const psplit_i_heavy_build *x, psplit_i_net_side side, uint32_t e) {
  return x->to[side] + (size_t)e * x->words;
}

static int64_t *cost(const psplit_i_heavy_build *x, psplit_i_net_side side, uint32_t type,
                     uint32_t e) {
  return &x->cost[side][(size_t)type * x->instance->n_nets + e];
}

/* Whether nobody but v is left to receive net j; smaller clusters are still to come. */
static bool only_consumer(const leaving *l, uint32_t j) {
  const psplit_i_instance *in = l->x->instance;
  return in->net_pin[in->net_off[j] + 1] == l->v &&
         psplit_i_no_bits(consumers(l->x, l->side, j), l->x->words);
}

/* To the last of them, which is the most likely to be in another stage. */
static void send_to_last(uint64_t *to, const uint64_t *of, uint32_t words) {
  uint32_t k = words - 1;
  while (of[k] == 0) k--;
  to[k] |= UINT64_C(1) << (63 - (uint32_t)__builtin_clzll(of[k]));
}

/* Net j to v takes the place of net i from v, as far as l->left allows. */
static void move_on(leaving *l, uint32_t j) {
  const psplit_i_heavy_build *x = l->x;
  uint64_t *to = consumers(x, l->side, j);
  const uint64_t *of = consumers(x, l->side, l->i);
  bool whole = true, some = false;
  for (uint32_t t = 0; t < x->instance->n_types; t++) {
    const int64_t paid = *cost(x, l->side, t, j);
    whole &= paid <= l->left[t];
    some |= paid > 0 && l->left[t] > 0;
  }
  if (!some || (!only_consumer(l, j) && (!whole || l->side == PSPLIT_I_SENDS))) return;
  for (uint32_t t = 0; t < x->instance->n_types; t++) {
    int64_t *paid = cost(x, l->side, t, j);
    if (*paid > l->left[t]) *paid = l->left[t];
    l->left[t] -= *paid;
  }
  l->moved_on[j] = true;
  if (l->side == PSPLIT_I_SENDS) send_to_last(to, of, x->words);
  for (uint32_t k = 0; l->side == PSPLIT_I_RECEIVES && k < x->words; k++) to[k] |= of[k];
}

/* First those that v alone receives: the others are received elsewhere as well. */
static void move_all_on(leaving *l) {
  const psplit_i_instance *in = l->x->instance;
  for (int alone = 1; alone >= 0; alone--)
    for (uint32_t m = in->inc_off[l->v]; m < in->inc_off[l->v + 1]; m++) {
      const uint32_t j = in->inc[m] >> 1;
      if (!(in->inc[m] & 1) && !l->moved_on[j] && only_consumer(l, j) == (alone == 1))
        move_on(l, j);
    }
}

static uint32_t first_of(const uint64_t *row) {
  uint32_t k = 0;
  while (row[k] == 0) k++;
  return k * 64 + (uint32_t)__builtin_ctzll(row[k]);
}

/* Leaves time to cluster `to` for which a net pays: paid[t * stride] of device type t. */
static void leave_time(const leaving *l, uint32_t to, int64_t *paid, size_t stride) {
  const psplit_i_heavy_build *x = l->x;
  const uint32_t n = x->instance->n;
  if (!x->take_over) return;
  for (uint32_t t = 0; t < x->instance->n_types; t++) {
    int64_t *from = &x->time[(size_t)t * n + l->v], *more = &x->time[(size_t)t * n + to];
    if (*from >= PSPLIT_I_INF || *more >= PSPLIT_I_INF) continue;
    const int64_t time = *from < paid[t * stride] ? *from : paid[t * stride];
    *from -= time;
    *more += time;
    paid[t * stride] -= time;
  }
}

/* To those that send to v alone. */
static void leave_to_producers(const leaving *l) {
  const psplit_i_instance *in = l->x->instance;
  for (uint32_t m = in->inc_off[l->v]; m < in->inc_off[l->v + 1]; m++) {
    const uint32_t j = in->inc[m] >> 1;
    if (!(in->inc[m] & 1) && only_consumer(l, j))
      leave_time(l, in->net_pin[in->net_off[j]], cost(l->x, l->side, 0, j), in->n_nets);
  }
}

static void leave_side(leaving *l) {
  psplit_i_heavy_build *x = l->x;
  const psplit_i_instance *in = x->instance;
  const uint32_t first = in->inc_off[l->v], end = in->inc_off[l->v + 1];
  if (l->side == PSPLIT_I_SENDS) leave_to_producers(l);
  for (uint32_t k = first; k < end; k++) {
    l->i = in->inc[k] >> 1;
    uint64_t *of = consumers(x, l->side, l->i);
    if (!(in->inc[k] & 1) || psplit_i_no_bits(of, x->words)) continue;
    for (uint32_t t = 0; t < in->n_types; t++) l->left[t] = *cost(x, l->side, t, l->i);
    if (l->side == PSPLIT_I_RECEIVES) leave_time(l, x->cluster[first_of(of)], l->left, 1);
    move_all_on(l);
    memset(of, 0, x->words * sizeof *of);
    psplit_i_spend(x->budget, (end - first) * (in->n_types + x->words / 8));
  }
  for (uint32_t m = first; m < end; m++) l->moved_on[in->inc[m] >> 1] = false;
}

static void stay(psplit_i_heavy_build *x, uint32_t v) {
  const psplit_i_instance *in = x->instance;
  const uint32_t at = x->number[v];
  for (uint32_t k = in->inc_off[v]; k < in->inc_off[v + 1]; k++)
    for (int side = 0; side < PSPLIT_I_N_SIDES && !(in->inc[k] & 1); side++)
      x->to[side][(size_t)(in->inc[k] >> 1) * x->words + at / 64] |= UINT64_C(1) << (at % 64);
}

static int64_t least_left(const psplit_i_heavy_build *x, uint32_t v) {
  int64_t least = PSPLIT_I_INF;
  for (uint32_t t = 0; t < x->instance->n_types; t++)
    if (x->time[(size_t)t * x->instance->n + v] < least)
      least = x->time[(size_t)t * x->instance->n + v];
  return least;
}

psplit_code psplit_i_heavy_nets(psplit_i_heavy_build *x) {
  const psplit_i_instance *in = x->instance;
  const size_t n_costs = (size_t)in->n_types * in->n_nets, n_times = (size_t)in->n_types * in->n;
  x->words = (x->n_kept + 63) / 64;
  for (int side = 0; side < PSPLIT_I_N_SIDES; side++) {
    x->to[side] = PSPLIT_NEW(&x->scratch, uint64_t, (size_t)in->n_nets * x->words);
    x->cost[side] = PSPLIT_NEW(&x->scratch, int64_t, n_costs);
  }
  x->time = PSPLIT_NEW(&x->scratch, int64_t, n_times);
  x->rest = PSPLIT_NEW(&x->scratch, int64_t, in->n);
  x->cluster = PSPLIT_NEW(&x->scratch, uint32_t, x->n_kept);
  leaving l = {.x = x,
               .left = PSPLIT_NEW(&x->scratch, int64_t, in->n_types),
               .moved_on = PSPLIT_NEW(&x->scratch, bool, in->n_nets)};
  if (x->scratch.failed) return PSPLIT_NOMEM;
  memcpy(x->time, in->w, n_times * sizeof *in->w);
  for (uint32_t i = 0; i < in->n; i++)
    if (psplit_i_is_kept(x, i)) x->cluster[x->number[i]] = i;
  memcpy(x->cost[PSPLIT_I_RECEIVES], in->recv, n_costs * sizeof *in->recv);
  memcpy(x->cost[PSPLIT_I_SENDS], in->send, n_costs * sizeof *in->send);
  for (l.v = in->n; l.v-- > 0;) {
    if (psplit_i_is_kept(x, l.v)) {
      stay(x, l.v);
      continue;
    }
    for (l.side = 0; l.side < PSPLIT_I_N_SIDES; l.side++) leave_side(&l);
    x->rest[l.v] = least_left(x, l.v);
  }
  /* Where types differ much, what was little for one may be left to those that run on another. */
  x->total = 0;
  for (uint32_t i = 0; i < in->n; i++) x->total += (double)least_left(x, i);
  return PSPLIT_OK;
}
