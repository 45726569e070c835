/* Lists of (load, price). A list is built in bins of similar loads. Each bin keeps the smallest
 * load and the largest price inserted into it, so a list has at most n_bins entries and remains an
 * upper bound on what was inserted. */
#include "pricing_inside.h"

#include <stdlib.h>

static void clear(bin *bins, uint32_t first, uint32_t end) {
  for (uint32_t b = first; b < end; b++) bins[b] = (bin){INT32_MAX, NO_PRICE};
}

/* Extends the bins in use to the given one, and clears the new ones. */
static void reach(shelf *x, uint32_t first, uint32_t end) {
  if (x->first == x->end) x->first = x->end = first;
  if (first < x->first) clear(x->bins, first, x->first);
  if (end > x->end) clear(x->bins, x->end, end);
  if (first < x->first) x->first = first;
  if (end > x->end) x->end = end;
}

static inline void put(bin *b, int32_t load, int32_t price) {
  if (load < b->load) b->load = load;
  if (price > b->price) b->price = price;
}

void psplit_i_pricing_put(const psplit_i_pricing *p, shelf *to, int32_t load, int32_t price) {
  const uint32_t at = psplit_i_pricing_bin_of(p, load);
  reach(to, at, at + 1);
  put(&to->bins[at], load, price);
}

/* Stores the bins as a list, without dominated entries. */
static uint32_t take(const shelf *from, entry *out) {
  uint32_t n = 0;
  int32_t last = NO_PRICE;
  for (uint32_t b = from->first; b < from->end; b++) {
    if (from->bins[b].price <= last) continue;
    last = from->bins[b].price;
    out[n++] = (entry){from->bins[b].load, last};
  }
  return n;
}

void psplit_i_pricing_put_sums(psplit_i_pricing *p, shelf *to, const entry *a, uint32_t n_a,
                               const entry *b, uint32_t n_b, entry more) {
  uint64_t ops = n_a;
  if (n_a == 0 || n_b == 0 || a[0].load + b[0].load + more.load > p->cap) return;
  const int32_t most = a[n_a - 1].load + b[n_b - 1].load + more.load;
  reach(to, psplit_i_pricing_bin_of(p, a[0].load + b[0].load + more.load),
        psplit_i_pricing_bin_of(p, most < p->cap ? most : p->cap) + 1);
  for (uint32_t i = 0; i < n_a; i++) {
    const int32_t load = a[i].load + more.load, price = a[i].price + more.price;
    uint32_t j = 0;
    for (; j < n_b && load + b[j].load <= p->cap; j++)
      put(&to->bins[psplit_i_pricing_bin_of(p, load + b[j].load)], load + b[j].load,
          price + b[j].price);
    if (j == 0) break;
    ops += j;
  }
  if (!psplit_i_spend(p->budget, ops / 3)) p->late = true;
}

uint32_t psplit_i_pricing_sums(psplit_i_pricing *p, const entry *a, uint32_t n_a, const entry *b,
                               uint32_t n_b, entry *out) {
  psplit_i_pricing_clear(&p->at_work);
  psplit_i_pricing_put_sums(p, &p->at_work, a, n_a, b, n_b, (entry){0, 0});
  return take(&p->at_work, out);
}

bool psplit_i_pricing_more_room(psplit_i_pricing *p) {
  if (p->pool.most - p->pool.n >= p->n_bins) return true;
  const size_t most = 2 * p->pool.most + 1024 * (size_t)p->n_bins;
  entry *more = realloc(p->pool.entries, most * sizeof *more);
  if (!more) return !(p->failed = p->late = true);
  p->pool.entries = more;
  p->pool.most = most;
  return true;
}

list psplit_i_pricing_keep(psplit_i_pricing *p, const shelf *from) {
  if (!psplit_i_pricing_more_room(p)) return (list){0, 0};
  const list l = {(uint32_t)p->pool.n, take(from, p->pool.entries + p->pool.n)};
  p->pool.n += l.n;
  return l;
}

pick psplit_i_pricing_best_of(int32_t room, const entry *a, uint32_t n_a, const entry *b,
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
