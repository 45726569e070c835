/* Narrows the intervals of stages that clusters may be in: no load may reach the value v of the
 * incumbent, and the loads of the k stages on one side of a boundary may not add up to k v. */
#include <string.h>

#include "nested_inside.h"

typedef struct sums {
  int64_t load[PSPLIT_I_NESTED_STAGES]; /* that each stage has for certain */
  int64_t comm;                         /* that all have, whichever */
} sums;

/* Applies the order of producers and consumers to the intervals. Returns false if an interval is
 * empty. */
static bool follow_order(psplit_i_nested_solver *d, psplit_i_nested_branch *b) {
  bool fits = true;
  for (uint32_t i = 0; i < d->n; i++)
    for (uint32_t l = d->pred_off[i]; l < d->pred_off[i + 1]; l++)
      if (b->lo[d->pred[l]] > b->lo[i]) b->lo[i] = b->lo[d->pred[l]];
  for (uint32_t i = d->n; i-- > 0;) {
    for (uint32_t l = d->pred_off[i]; l < d->pred_off[i + 1]; l++)
      if (b->hi[d->pred[l]] > b->hi[i]) b->hi[d->pred[l]] = b->hi[i];
    fits &= b->lo[i] <= b->hi[i];
  }
  psplit_i_spend(d->budget, (d->n + (uint64_t)d->pred_off[d->n]) / 2);
  return fits;
}

static sums sum_up(psplit_i_nested_solver *d, const psplit_i_nested_branch *b) {
  const psplit_i_instance *instance = d->instance;
  sums s = {0};
  for (uint32_t i = 0; i < d->n; i++)
    if (!psplit_i_nested_free(b, i)) s.load[b->lo[i]] += d->w[i];
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t first = instance->net_off[e], producer = instance->net_pin[first];
    uint32_t there = 0;
    bool crosses = false;
    for (uint32_t k = first + 1; k < instance->net_off[e + 1]; k++) {
      const uint32_t i = instance->net_pin[k];
      if (b->lo[i] <= b->hi[producer]) continue;
      crosses = true;
      if (!psplit_i_nested_free(b, i)) there |= 1U << b->lo[i];
    }
    if (!crosses) continue;
    for (int k = 0; k < d->n_stages; k++)
      if (there >> k & 1) s.load[k] += d->recv[e];
    const int64_t n_there = there ? (uint32_t)__builtin_popcount(there) : 1;
    const int64_t sent = d->send[e] * (instance->p2p ? n_there : 1);
    if (!psplit_i_nested_free(b, producer)) s.load[b->lo[producer]] += sent;
    s.comm += sent + d->recv[e] * n_there;
  }
  psplit_i_spend(d->budget, (d->n + psplit_i_nested_pins(d)) / 3);
  return s;
}

/* The loads of the stages up to each boundary, and of those behind it. */
typedef struct sides {
  int64_t front[PSPLIT_I_NESTED_STAGES], behind[PSPLIT_I_NESTED_STAGES];
} sides;

static sides sum_sides(const psplit_i_nested_solver *d, const psplit_i_nested_branch *b,
                       const sums *s) {
  sides out = {{0}, {0}};
  for (int j = 0; j < d->n_stages - 1; j++) {
    for (int k = 0; k < d->n_stages; k++) *(k <= j ? &out.front[j] : &out.behind[j]) += s->load[k];
    for (uint32_t i = 0; i < d->n; i++) {
      if (!psplit_i_nested_free(b, i)) continue;
      if (b->hi[i] <= j) out.front[j] += d->w[i];
      if (b->lo[i] > j) out.behind[j] += d->w[i];
    }
  }
  return out;
}

uint64_t psplit_i_nested_find_free(psplit_i_nested_solver *d, const psplit_i_nested_branch *b) {
  uint64_t n_free = 0;
  memset(d->free, 0, d->closure.words * sizeof *d->free);
  for (uint32_t i = 0; i < d->n; i++) {
    if (!psplit_i_nested_free(b, i)) continue;
    d->free[i / 64] |= UINT64_C(1) << (i % 64);
    n_free++;
  }
  return n_free;
}

void psplit_i_nested_along(const psplit_i_nested_solver *d, const psplit_i_nested_branch *b,
                           uint32_t cluster, bool ahead, int64_t out[PSPLIT_I_NESTED_STAGES],
                           int64_t *out_end) {
  const psplit_i_closure *closure = &d->closure;
  const uint64_t *bits =
    (ahead ? closure->before : closure->behind) + (size_t)cluster * closure->words;
  const int lo = b->lo[cluster], hi = b->hi[cluster];
  for (int j = lo; j < hi; j++) out[j] = 0;
  *out_end = 0;
  for (uint32_t q = 0; q < closure->words; q++)
    for (uint64_t rest = bits[q] & d->free[q]; rest; rest &= rest - 1) {
      const uint32_t i = 64 * q + (uint32_t)__builtin_ctzll(rest);
      for (int j = lo; j < hi; j++)
        if (ahead ? b->hi[i] > j : b->lo[i] <= j) out[j] += d->w[i];
      if (ahead ? b->lo[i] == lo : b->hi[i] == hi) *out_end += d->w[i];
    }
}

/* Narrows the interval of a cluster to stages where no load reaches the incumbent. Returns whether
 * it changed. */
static bool narrow(const psplit_i_nested_solver *d, psplit_i_nested_branch *b, uint32_t i,
                   const sums *s, const sides *both) {
  const int64_t most = d->known - 1;
  const int lo = b->lo[i], hi = b->hi[i];
  int64_t ahead[PSPLIT_I_NESTED_STAGES], behind[PSPLIT_I_NESTED_STAGES], in_first, in_last;
  int first = lo, last = hi;
  psplit_i_nested_along(d, b, i, true, ahead, &in_first);
  psplit_i_nested_along(d, b, i, false, behind, &in_last);
  for (int j = lo; j < hi; j++) {
    if (both->front[j] + ahead[j] > (j + 1) * most) first = j + 1;
    if (both->behind[j] + behind[j] > (d->n_stages - 1 - j) * most && j < last) last = j;
  }
  if (first == lo && s->load[lo] + in_first > most) first++;
  if (last == hi && s->load[hi] + in_last > most) last--;
  b->lo[i] = (uint8_t)first;
  b->hi[i] = (uint8_t)(last < 0 ? 0 : last);
  if (first >= last) d->free[i / 64] &= ~(UINT64_C(1) << (i % 64));
  return first != lo || last != hi;
}

bool psplit_i_nested_narrow(psplit_i_nested_solver *d, psplit_i_nested_branch *b) {
  for (bool again = true; again;) {
    if (!follow_order(d, b)) return false;
    const sums s = sum_up(d, b);
    const sides both = sum_sides(d, b, &s);
    again = false;
    if (d->work + s.comm > d->n_stages * (d->known - 1)) return false;
    for (int k = 0; k < d->n_stages; k++)
      if (s.load[k] >= d->known) return false;
    const uint64_t n_free = psplit_i_nested_find_free(d, b);
    for (uint32_t i = 0; i < d->n; i++) {
      if (!psplit_i_nested_free(b, i)) continue;
      again |= narrow(d, b, i, &s, &both);
      if (b->lo[i] > b->hi[i]) return false;
    }
    psplit_i_spend(d->budget, 2 * (uint64_t)d->n + n_free * (d->closure.words + n_free / 4) / 5);
  }
  return true;
}
