/* Forward pass: for each combination of labels of the scope of a step, the list over all labels of
 * its variable, combined from the tables of earlier steps that contain the variable. */
#include "pricing_inside.h"

static void put_joined(psplit_i_pricing *p, const step *s, entry own, shelf *out) {
  if (s->n_tables == 0) {
    psplit_i_pricing_put(p, out, own.load, own.price);
    return;
  }
  const entry none = {0, 0};
  list l = p->inside[psplit_i_pricing_place_of(p, s, 0)];
  const entry *so_far = psplit_i_pricing_at(p, l);
  uint32_t n = l.n;
  for (uint32_t t = 1; t + 1 < s->n_tables && n > 0; t++) {
    l = p->inside[psplit_i_pricing_place_of(p, s, t)];
    n = psplit_i_pricing_sums(p, so_far, n, psplit_i_pricing_at(p, l), l.n, p->row[t % 2]);
    so_far = p->row[t % 2];
  }
  l = p->inside[psplit_i_pricing_place_of(p, s, s->n_tables - 1)];
  if (s->n_tables == 1)
    psplit_i_pricing_put_sums(p, out, so_far, n, &none, 1, own);
  else
    psplit_i_pricing_put_sums(p, out, so_far, n, psplit_i_pricing_at(p, l), l.n, own);
}

/* Where the step's variable has one permitted label and at most one of its tables has several
 * entries, its list is a copy of that table's list, shifted. Returns false if this is not the
 * case. */
static bool move_list(psplit_i_pricing *p, const step *s, uint8_t label, list *out) {
  list longest = {0, 0};
  entry moved;
  *out = (list){0, 0};
  if (!psplit_i_pricing_set_own(p, s, label, &moved)) return true;
  for (uint32_t t = 0; t < s->n_tables; t++) {
    const list l = p->inside[psplit_i_pricing_place_of(p, s, t)];
    if (l.n == 0) return true;
    if (l.n > 1 && longest.n > 1) return false;
    if (l.n > 1) longest = l;
    if (l.n > 1) continue;
    moved.load += psplit_i_pricing_at(p, l)->load;
    moved.price += psplit_i_pricing_at(p, l)->price;
    if (moved.load > p->cap) return true;
  }
  if (!psplit_i_pricing_more_room(p)) return true;
  entry *to = p->pool.entries + p->pool.n;
  *out = (list){(uint32_t)p->pool.n, 0};
  if (longest.n == 0) to[out->n++] = moved;
  for (uint32_t i = 0; i < longest.n; i++) {
    const entry e = psplit_i_pricing_at(p, longest)[i];
    if (e.load + moved.load > p->cap) break;
    to[out->n++] = (entry){e.load + moved.load, e.price + moved.price};
  }
  p->pool.n += out->n;
  if (!psplit_i_spend(p->budget, out->n / 4)) p->late = true;
  return true;
}

static void go_forth(psplit_i_pricing *p, const step *s) {
  const uint8_t only = psplit_i_pricing_only_label(p, s->var);
  entry own, ways[MOST_OWN];
  for (uint32_t index = 0; index < s->n_lists && !p->late; index++) {
    list *l = &p->inside[s->first_list + index];
    *l = (list){0, 0};
    if (!psplit_i_pricing_set_labels(p, s, index)) continue;
    if (!psplit_i_spend(p->budget, LABELS * s->n_parts / 2)) p->late = true;
    if (only < LABELS && move_list(p, s, only, l)) continue;
    psplit_i_pricing_clear(&p->outer[0]);
    for (int label = 0; label < LABELS; label++) {
      const uint8_t x = (uint8_t)label;
      const uint32_t n = psplit_i_pricing_set_own(p, s, x, &own)
                           ? psplit_i_pricing_ways_of(p, s, own, ways, NULL)
                           : 0;
      for (uint32_t i = 0; i < n; i++) put_joined(p, s, ways[i], &p->outer[0]);
    }
    *l = psplit_i_pricing_keep(p, &p->outer[0]);
    if (!psplit_i_spend(p->budget, (p->outer[0].end - p->outer[0].first) / 8)) p->late = true;
  }
}

/* Makes room for lists of n_bins bins. */
static bool make_room(psplit_i_pricing *p, uint32_t n_bins) {
  p->n_bins = n_bins;
  if (n_bins <= p->most_bins) return true;
  size_t most = 1;
  for (uint32_t k = 0; k < p->n_vars && !p->wide; k++) {
    size_t n = 0;
    for (uint32_t t = 0; t < p->steps[k].n_tables; t++)
      n += psplit_i_pricing_step_of(p, &p->steps[k], t)->n_lists;
    if (n > most) most = n;
  }
  p->at_work.bins = PSPLIT_NEW(&p->arena, bin, n_bins);
  p->outer = PSPLIT_NEW(&p->arena, shelf, most);
  bin *bins = PSPLIT_NEW(&p->arena, bin, most * n_bins);
  for (uint32_t r = 0; r < MOST_JOINED + 2; r++) p->row[r] = PSPLIT_NEW(&p->arena, entry, n_bins);
  if (p->arena.failed) return false;
  for (size_t i = 0; i < most; i++) p->outer[i].bins = bins + i * n_bins;
  p->most_bins = n_bins;
  return true;
}

bool psplit_i_pricing_begin(psplit_i_pricing *p, int64_t limit, uint32_t n_parts,
                            const int32_t *price, const uint8_t *sides, psplit_i_budget *budget) {
  if (!make_room(p, n_parts)) return false;
  p->shift = 0;
  while (limit >> p->shift >= 1 << 28) p->shift++;
  p->cap = (int32_t)(limit >> p->shift);
  p->scale = ((uint64_t)p->n_bins << 32) / ((uint64_t)p->cap + 1);
  p->price = price;
  p->sides = sides;
  p->budget = budget;
  p->late = false;
  p->pool.n = 0;
  p->above.on = false;
  return psplit_i_pricing_more_room(p);
}

psplit_code psplit_i_pricing_fill(psplit_i_pricing *p, int64_t limit, uint32_t n_parts,
                                  const int32_t *price, const uint8_t *sides,
                                  psplit_i_budget *budget) {
  if (!psplit_i_pricing_begin(p, limit, n_parts, price, sides, budget)) return PSPLIT_NOMEM;
  for (uint32_t k = 0; k < p->n_vars && !p->late; k++) go_forth(p, &p->steps[k]);
  return p->failed ? PSPLIT_NOMEM : PSPLIT_OK;
}
