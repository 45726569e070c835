/* Lists of (load, price). They are put together in bins of close loads, each of which keeps the
 * least load and the largest price of all that fell into it: so a list has no more entries than
 * there are bins, and says no less than what was put. */
#include "stage_worth_inside.h"

#include <stdlib.h>

void psplit_i_worth_clear(const psplit_i_worth *p, bin *bins) {
  for (uint32_t b = 0; b < p->n_bins; b++) bins[b] = (bin){INT32_MAX, NO_PRICE};
}

/* What bins hold, without what takes more and is worth no more. */
static uint32_t take(const psplit_i_worth *p, const bin *bins, entry *out) {
  uint32_t n = 0;
  int32_t last = NO_PRICE;
  for (uint32_t b = 0; b < p->n_bins; b++) {
    if (bins[b].price <= last) continue;
    last = bins[b].price;
    out[n++] = (entry){bins[b].load, last};
  }
  return n;
}

void psplit_i_worth_put_sums(psplit_i_worth *p, bin *bins, const entry *a, uint32_t n_a,
                             const entry *b, uint32_t n_b, entry more) {
  uint64_t ops = n_a;
  for (uint32_t i = 0; i < n_a; i++) {
    const int32_t load = a[i].load + more.load, price = a[i].price + more.price;
    uint32_t j = 0;
    for (; j < n_b && load + b[j].load <= p->cap; j++)
      psplit_i_worth_put(p, bins, load + b[j].load, price + b[j].price);
    if (j == 0) break;
    ops += j;
  }
  if (!psplit_i_spend(p->budget, ops / 3)) p->late = true;
}

uint32_t psplit_i_worth_sums(psplit_i_worth *p, const entry *a, uint32_t n_a, const entry *b,
                             uint32_t n_b, entry *out) {
  psplit_i_worth_clear(p, p->bins);
  psplit_i_worth_put_sums(p, p->bins, a, n_a, b, n_b, (entry){0, 0});
  return take(p, p->bins, out);
}

bool psplit_i_worth_more_room(psplit_i_worth *p) {
  if (p->pool.most - p->pool.n >= p->n_bins) return true;
  const size_t most = 2 * p->pool.most + 1024 * (size_t)p->n_bins;
  entry *more = realloc(p->pool.entries, most * sizeof *more);
  if (!more) return !(p->failed = p->late = true);
  p->pool.entries = more;
  p->pool.most = most;
  return true;
}

list psplit_i_worth_keep(psplit_i_worth *p, const bin *bins) {
  if (!psplit_i_worth_more_room(p)) return (list){0, 0};
  const list l = {(uint32_t)p->pool.n, take(p, bins, p->pool.entries + p->pool.n)};
  p->pool.n += l.n;
  return l;
}

pick psplit_i_worth_best_of(int32_t room, const entry *a, uint32_t n_a, const entry *b,
                            uint32_t n_b) {
  pick best = {.price = NO_PRICE};
  for (uint32_t i = 0, j = n_b; i < n_a; i++) {
    while (j > 0 && a[i].load + b[j - 1].load > room) j--;
    if (j == 0) break;
    if (a[i].price + b[j - 1].price > best.price)
      best = (pick){a[i].price + b[j - 1].price, a[i].load, b[j - 1].load};
  }
  return best;
}
