/* Traces a stage of exactly the value in the last table. Each step, from the last one on, finds the
 * label and the entries of its joined tables whose prices add up to that of its own entry. Some
 * stage has that price, although its load may have been rounded down. */
#include "pricing_inside.h"

#include <string.h>

/* Finds an entry of a and one of b that together with `own` make up `goal`. */
static bool part_entries(const psplit_i_pricing *p, entry goal, entry own, const entry *a,
                         uint32_t n_a, const entry *b, uint32_t n_b, entry *out_a, entry *out_b) {
  for (uint32_t i = 0, j = n_b; i < n_a; i++) {
    const int32_t price = a[i].price + own.price;
    while (j > 0 && price + b[j - 1].price > goal.price) j--;
    if (j == 0) return false;
    const int32_t load = a[i].load + own.load + b[j - 1].load;
    if (price + b[j - 1].price != goal.price || load > p->cap) continue;
    if (psplit_i_pricing_bin_of(p, load) != psplit_i_pricing_bin_of(p, goal.load)) continue;
    *out_a = a[i];
    *out_b = b[j - 1];
    return true;
  }
  return false;
}

/* The same for a step: finds the goals of its tables. Returns false if `goal` is not a combination
 * of them. */
static bool part_joined(psplit_i_pricing *p, const step *s, entry goal, entry own) {
  static const entry none = {0, 0};
  uint32_t n_row[MOST_JOINED];
  if (s->n_tables == 0) return own.price == goal.price;
  psplit_i_pricing_join_inside(p, s, own, n_row);
  for (uint32_t t = s->n_tables; t-- > 0; own = none) {
    const list l = p->inside[psplit_i_pricing_place_of(p, s, t)];
    entry *to = &p->goal[psplit_i_pricing_step_of(p, s, t) - p->steps];
    if (!part_entries(p, goal, own, t ? p->row[t - 1] : &none, t ? n_row[t - 1] : 1,
                      psplit_i_pricing_at(p, l), l.n, &goal, to))
      return false;
  }
  return true;
}

/* The same where at most one table has several entries, whose list was shifted instead of
 * binned. */
static bool part_moved(psplit_i_pricing *p, const step *s, entry goal, entry own) {
  uint32_t longest = PSPLIT_NONE;
  int32_t rest = goal.price - own.price;
  for (uint32_t t = 0; t < s->n_tables; t++) {
    const list l = p->inside[psplit_i_pricing_place_of(p, s, t)];
    if (l.n == 0 || (l.n > 1 && longest != PSPLIT_NONE)) return false;
    if (l.n > 1) longest = t;
    if (l.n > 1) continue;
    rest -= psplit_i_pricing_at(p, l)->price;
    p->goal[psplit_i_pricing_step_of(p, s, t) - p->steps] = *psplit_i_pricing_at(p, l);
  }
  if (longest == PSPLIT_NONE) return rest == 0;
  const list l = p->inside[psplit_i_pricing_place_of(p, s, longest)];
  for (uint32_t i = 0; i < l.n; i++)
    if (psplit_i_pricing_at(p, l)[i].price == rest) {
      p->goal[psplit_i_pricing_step_of(p, s, longest) - p->steps] = psplit_i_pricing_at(p, l)[i];
      return true;
    }
  return false;
}

/* Records how many receivers the step's nets pay for, for the current labels and the `code` of
 * additional receivers. */
static void note_paid(psplit_i_pricing *p, const step *s, uint64_t code) {
  const uint32_t n = psplit_i_pricing_deals_of(p, s);
  for (uint32_t i = 0; i < n; i++) {
    const uint8_t deal = p->own_deal[i];
    const uint64_t more = i < CODED ? code >> (8 * i) & 255 : 0;
    p->paid[p->own_net[i]] = deal < 2 ? (int8_t)-deal : (int8_t)(1 + more);
  }
}

/* Sets the label of the step's variable, and the goals of its tables. */
static bool follow(psplit_i_pricing *p, const step *s, entry goal) {
  entry own, ways[MOST_OWN];
  uint64_t codes[MOST_OWN];
  for (int moved = 1; moved >= 0; moved--)
    for (uint32_t x = 0; x < LABELS; x++) {
      if (!psplit_i_pricing_set_own(p, s, (uint8_t)x, &own)) continue;
      if (moved && psplit_i_pricing_only_label(p, s->var) == LABELS) continue;
      const uint32_t n = psplit_i_pricing_ways_of(p, s, own, ways, codes);
      for (uint32_t i = 0; i < n; i++)
        if (moved ? part_moved(p, s, goal, ways[i]) : part_joined(p, s, goal, ways[i])) {
          if (p->paid) note_paid(p, s, codes[i]);
          return true;
        }
    }
  return false;
}

bool psplit_i_pricing_trace(psplit_i_pricing *pricing, uint32_t nth, uint8_t *out_side,
                            int8_t *out_paid) {
  psplit_i_pricing *p = pricing;
  const list l = p->inside[p->steps[p->n_vars - 1].first_list];
  if (nth >= l.n) return false;
  p->paid = out_paid;
  if (out_paid) memset(out_paid, 0, p->instance->n_nets * sizeof *out_paid);
  p->goal[p->n_vars - 1] = psplit_i_pricing_at(p, l)[l.n - 1 - nth];
  for (uint32_t k = p->n_vars; k-- > 0;)
    if (!follow(p, &p->steps[k], p->goal[k])) return false;
  memcpy(out_side, p->label, p->instance->n * sizeof *out_side);
  return true;
}
