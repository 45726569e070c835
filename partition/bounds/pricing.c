/* The pricing problem as non-serial dynamic programming (Bertele and Brioschi, 1972), where the
 * value of a table cell is a knapsack list.
 *
 * There is a variable for each cluster, and one for each net with more than MOST_DIRECT pins, which
 * tells whether the stage pays for the net. That keeps tables narrow where a tensor has many
 * consumers. The factors (parts) are nets, or pairs of such a variable with a pin. A list holds
 * (load, price) entries, both increasing. Where loads are merged, an entry has the smallest load
 * and the largest price of its bin. A backward pass computes the largest total price with each
 * cluster. */
#include "pricing_inside.h"

#include <math.h>
#include <stdlib.h>

enum {
  MORE_NETS = 8,  /* wide tables try to count up to so many more nets, the most expensive first */
  TIMES_LISTS = 4 /* and may have up to so many times as many lists */
};

static uint32_t pins_of(const psplit_i_instance *in, uint32_t e) {
  return in->net_off[e + 1] - in->net_off[e];
}

/* Whether nets with more than most_pins pins account for at most half of the possible costs. */
static bool few_above(const psplit_i_instance *in, uint32_t most_pins) {
  double above = 0, all = 0;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const double cost = (double)in->send[e] + (double)in->recv[e];
    all += cost;
    if (pins_of(in, e) > most_pins) above += cost;
  }
  return above <= all / 2;
}

static bool build(psplit_i_pricing *p) {
  psplit_i_arena_reset(&p->arena);
  return psplit_i_pricing_build(p);
}

/* Builds the steps for the nets with the fewest pins, as many as the width permits. Returns false
 * if the graph is too wide, or p->failed. */
static bool build_full(psplit_i_pricing *p) {
  const psplit_i_instance *in = p->instance;
  uint32_t most_pins = 2;
  for (uint32_t e = 0; e < in->n_nets; e++)
    while (most_pins < pins_of(in, e)) most_pins *= 2;
  p->most_width = FULL_WIDTH;
  p->most_lists = UINT32_MAX;
  for (; most_pins >= 2 && !p->failed && few_above(in, most_pins); most_pins /= 2) {
    for (uint32_t e = 0; e < in->n_nets; e++) p->counted[e] = pins_of(in, e) <= most_pins;
    if (build(p)) return true;
  }
  return false;
}

/* Among the nets that are not counted and cost less than `below`, the most expensive one for the
 * stages; NONE if there is none. */
static uint32_t dearest_out(const psplit_i_pricing *p, double below, double *out_cost) {
  const psplit_i_instance *in = p->instance;
  uint32_t best = PSPLIT_NONE;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const double cost = ((double)in->send[e] + (double)in->recv[e]) * pins_of(in, e);
    if (p->counted[e] || cost >= below || (best != PSPLIT_NONE && cost <= *out_cost)) continue;
    best = e;
    *out_cost = cost;
  }
  return best;
}

/* Adds the most expensive nets that were left out, one by one, as long as the number of lists stays
 * within the limit. */
static bool build_wide(psplit_i_pricing *p) {
  double cost = HUGE_VAL;
  bool ok = true;
  p->wide = true;
  p->most_width = MOST_WIDTH;
  p->most_lists = p->n_lists < UINT32_MAX / TIMES_LISTS ? TIMES_LISTS * p->n_lists : UINT32_MAX;
  for (uint32_t k = 0; k < MORE_NETS; k++) {
    const uint32_t e = dearest_out(p, cost, &cost);
    if (e == PSPLIT_NONE) break;
    p->counted[e] = true;
    ok = build(p);
    if (p->failed) return false;
    if (!ok) p->counted[e] = false;
  }
  return ok || build(p);
}

static psplit_code make(const psplit_i_instance *instance, bool wide, psplit_i_budget *budget,
                        psplit_i_pricing **out) {
  *out = NULL;
  psplit_i_pricing *p = calloc(1, sizeof *p);
  if (!p) return PSPLIT_NOMEM;
  psplit_i_arena_init(&p->arena, 0);
  p->instance = instance;
  p->budget = budget;
  p->counted = calloc((size_t)instance->n_nets + 1, sizeof *p->counted);
  p->failed = !p->counted;
  const bool ok = !p->failed && build_full(p) && (!wide || build_wide(p));
  const bool failed = p->failed;
  if (ok)
    *out = p;
  else
    psplit_i_pricing_free(p);
  return failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

psplit_code psplit_i_pricing_make(const psplit_i_instance *instance, psplit_i_budget *budget,
                                  psplit_i_pricing **out) {
  return make(instance, false, budget, out);
}

psplit_code psplit_i_pricing_make_wide(const psplit_i_instance *instance, psplit_i_budget *budget,
                                       psplit_i_pricing **out) {
  return make(instance, true, budget, out);
}

/* For the current labels, row t becomes the combination of what is outside the step, the step's own
 * entry, and its tables before t. Returns false if no entry is within the limit. */
static bool join_from_outside(psplit_i_pricing *p, const step *s, entry own, list outside,
                              uint32_t *n_row) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < outside.n; i++) {
    const entry e = psplit_i_pricing_at(p, outside)[i];
    if (e.load + own.load > p->cap) break;
    p->row[0][n++] = (entry){e.load + own.load, e.price + own.price};
  }
  n_row[0] = n;
  for (uint32_t t = 0; t + 1 < s->n_tables && n > 0; t++) {
    const list l = p->inside[psplit_i_pricing_place_of(p, s, t)];
    n_row[t + 1] = n =
      psplit_i_pricing_sums(p, p->row[t], n, psplit_i_pricing_at(p, l), l.n, p->row[t + 1]);
  }
  return n > 0;
}

/* For the current labels, adds to the outside lists of each table of `s`, and updates the largest
 * price with the step's variable. */
static void put_outside(psplit_i_pricing *p, const step *s, entry own, list outside,
                        const uint32_t *first, int32_t *most) {
  uint32_t n_row[MOST_JOINED + 1], n = 1;
  if (!join_from_outside(p, s, own, outside, n_row)) return;
  entry *behind = p->row[MOST_JOINED], *other = p->row[MOST_JOINED + 1];
  behind[0] = (entry){0, 0};
  for (uint32_t t = s->n_tables; t-- > 0;) {
    const uint32_t place = psplit_i_pricing_place_of(p, s, t);
    const uint32_t index = place - psplit_i_pricing_step_of(p, s, t)->first_list;
    const list l = p->inside[place];
    psplit_i_pricing_put_sums(p, &p->outer[first[t] + index], p->row[t], n_row[t], behind, n,
                              (entry){0, 0});
    n = psplit_i_pricing_sums(p, behind, n, psplit_i_pricing_at(p, l), l.n, other);
    entry *const joined = other;
    other = behind;
    behind = joined;
  }
  if (s->var < p->instance->n && p->label[s->var] == PSPLIT_I_INSIDE) {
    const pick best = psplit_i_pricing_best_of(p->cap, p->row[0], n_row[0], behind, n);
    const int32_t value = best.price > 0 ? best.price : 0;
    if (best.price != NO_PRICE && value > most[s->var]) most[s->var] = value;
  }
}

static void go_back(psplit_i_pricing *p, const step *s, int32_t *most) {
  /* index into `outer` of the outside lists of each table */
  uint32_t first[MOST_JOINED + 1] = {0};
  entry own, ways[MOST_OWN];
  for (uint32_t t = 0; t < s->n_tables; t++)
    first[t + 1] = first[t] + psplit_i_pricing_step_of(p, s, t)->n_lists;
  for (uint32_t i = 0; i < first[s->n_tables]; i++) psplit_i_pricing_clear(&p->outer[i]);
  for (uint32_t index = 0; index < s->n_lists && !p->late; index++) {
    const list outside = p->outside[s->first_list + index];
    if (outside.n == 0) continue;
    psplit_i_pricing_set_labels(p, s, index);
    for (int label = 0; label < LABELS; label++) {
      const uint8_t x = (uint8_t)label;
      const uint32_t n = psplit_i_pricing_set_own(p, s, x, &own)
                           ? psplit_i_pricing_ways_of(p, s, own, ways, NULL)
                           : 0;
      for (uint32_t i = 0; i < n; i++) put_outside(p, s, ways[i], outside, first, most);
    }
    if (!psplit_i_spend(p->budget, LABELS * s->n_parts)) p->late = true;
  }
  for (uint32_t t = 0; t < s->n_tables; t++) {
    const step *of = psplit_i_pricing_step_of(p, s, t);
    for (uint32_t i = 0; i < of->n_lists; i++)
      p->outside[of->first_list + i] = psplit_i_pricing_keep(p, &p->outer[first[t] + i]);
  }
  uint64_t ops = first[s->n_tables];
  for (uint32_t i = 0; i < first[s->n_tables]; i++) ops += p->outer[i].end - p->outer[i].first;
  if (!psplit_i_spend(p->budget, ops / 8)) p->late = true;
}

/* Estimates the operations of a step. The length of a list is at most the number of bins, and at
 * most the product over the joined tables, summed over labels. Lengths are kept in `inside`. */
static uint64_t step_ops(psplit_i_pricing *p, const step *s) {
  uint64_t ops = 0;
  entry own;
  for (uint32_t index = 0; index < s->n_lists; index++) {
    uint64_t all = 0;
    if (!psplit_i_pricing_set_labels(p, s, index)) continue;
    for (int label = 0; label < LABELS; label++) {
      const uint8_t x = (uint8_t)label;
      if (!psplit_i_pricing_set_own(p, s, x, &own)) continue;
      uint64_t n = 1;
      for (uint32_t t = 0; t < s->n_tables; t++) {
        n *= p->inside[psplit_i_pricing_place_of(p, s, t)].n;
        ops += t ? WAYS * n / JOINED_PART : n;
        n = n < p->n_bins ? n : p->n_bins;
      }
      all += n;
    }
    p->inside[s->first_list + index].n = (uint32_t)(all < p->n_bins ? all : p->n_bins);
  }
  psplit_i_spend(p->budget, (uint64_t)s->n_lists * LABELS * s->n_parts);
  return ops;
}

uint64_t psplit_i_pricing_ops(psplit_i_pricing *pricing, uint32_t n_parts) {
  uint64_t ops = 0;
  pricing->cap = INT32_MAX;
  /* with loads shifted to 0, only infeasible combinations of labels are excluded */
  pricing->shift = 62;
  pricing->price = pricing->receiver = NULL;
  pricing->sides = NULL;
  pricing->n_bins = n_parts;
  for (uint32_t k = 0; k < pricing->n_vars; k++) ops += step_ops(pricing, &pricing->steps[k]);
  return ops;
}

psplit_code psplit_i_pricing_most(psplit_i_pricing *pricing, int64_t limit, uint32_t n_parts,
                                  const int32_t *price, const int32_t *receiver,
                                  psplit_i_budget *budget, int64_t *out_most, int32_t *most,
                                  bool *out_done) {
  psplit_i_pricing *p = pricing;
  p->receiver = receiver;
  const psplit_code code = psplit_i_pricing_fill(p, limit, n_parts, price, NULL, budget);
  if (code != PSPLIT_OK) return code;
  const step *last = &p->steps[p->n_vars - 1];
  if (!p->late) {
    const list l = p->inside[last->first_list];
    *out_most = l.n ? psplit_i_pricing_at(p, l)[l.n - 1].price : 0;
  }
  if (most && !p->late) {
    for (uint32_t v = 0; v < p->instance->n; v++) most[v] = -1;
    psplit_i_pricing_clear(&p->at_work);
    psplit_i_pricing_put(p, &p->at_work, 0, 0);
    p->outside[last->first_list] = psplit_i_pricing_keep(p, &p->at_work);
    for (uint32_t k = p->n_vars; k-- > 0 && !p->late;) go_back(p, &p->steps[k], most);
  }
  *out_done = !p->late;
  return p->failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

void psplit_i_pricing_free(psplit_i_pricing *pricing) {
  if (!pricing) return;
  free(pricing->counted);
  free(pricing->pool.entries);
  psplit_i_arena_fini(&pricing->arena);
  free(pricing);
}
