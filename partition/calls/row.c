#include "row.h"

#include <string.h>

enum {
  KINDS = PSPLIT_I_CALLS_TYPES + 2,
  MOST_STATES = 4096,
  MOST_FRONTS = 1 << 18, /* that are kept to find a placement */
  FIRST_PRICE = 32,      /* part of the limit that prices begin to change by */
  LAST_PRICE = 4096      /* the least one */
};

typedef psplit_i_calls_side label;
typedef psplit_i_calls_sides front;

static bool is_call(const psplit_i_calls_row *r, uint32_t kind) { return kind < r->x->n_types; }

static int64_t time_of(const psplit_i_calls_row *r, uint32_t k, uint32_t kind) {
  const uint32_t v = r->x->separator[k];
  return is_call(r, kind) ? r->x->time[(size_t)kind * r->x->n + v] : r->x->alone[v];
}

static uint64_t bytes_of(const psplit_i_calls_row *r, uint32_t k, uint32_t kind) {
  return is_call(r, kind) ? r->x->bytes[r->x->separator[k]] : 0;
}

static uint64_t memory_of(const psplit_i_calls_row *r, uint32_t kind) {
  return is_call(r, kind) ? r->x->memory[kind] : UINT64_MAX;
}

static int64_t least_with(const front *f, uint64_t bytes) {
  return psplit_i_calls_least_with(f, bytes);
}

static void insert(psplit_i_calls_row *r, front *f, label l) {
  const size_t at = psplit_i_calls_more_than(f, l.bytes);
  if (at > 0 && f->items[at - 1].cost <= l.cost) return;
  const size_t first = at > 0 && f->items[at - 1].bytes == l.bytes ? at - 1 : at;
  size_t end = first;
  while (end < f->n && f->items[end].cost >= l.cost) end++;
  if (end == first) {
    if (!psplit_i_vec_push(f, l)) {
      r->failed = true;
      return;
    }
    memmove(f->items + first + 1, f->items + first, (f->n - 1 - first) * sizeof l);
  } else {
    memmove(f->items + first + 1, f->items + end, (f->n - end) * sizeof l);
    f->n -= end - first - 1;
  }
  f->items[first] = l;
}

/* Time and bytes of all of block k in one call. */
static label whole(const psplit_i_calls_row *r, uint32_t k, uint32_t kind) {
  label all = {0};
  for (int64_t v = r->block[k].first + 1; v < r->block[k].last; v++) {
    all.cost = psplit_i_sum_or_inf(all.cost, r->x->time[(size_t)kind * r->x->n + (size_t)v]);
    all.bytes = psplit_i_sat_add_u64(all.bytes, r->x->bytes[v]);
  }
  return all;
}

/* Adds separator k, on a device of that kind, to what its call has in the block beside it. */
static bool add_separator(const psplit_i_calls_row *r, uint32_t k, uint32_t kind, label *l) {
  l->cost = psplit_i_sum_or_inf(l->cost, time_of(r, k, kind));
  l->bytes = is_call(r, kind) ? psplit_i_sat_add_u64(l->bytes, bytes_of(r, k, kind)) : 0;
  return l->cost < r->limit + r->all_price && l->bytes <= memory_of(r, kind);
}

static void charge(psplit_i_calls_row *r, uint64_t n_ops) {
  if (!psplit_i_spend(r->budget, n_ops)) r->spent = true;
}

/* What a crossing costs by what its calls and the one that begins behind it are priced at. */
static int64_t priced(const psplit_i_calls_row *r, const psplit_i_calls_crossing *c,
                      uint32_t kind) {
  int64_t cost = c->cost;
  for (uint32_t t = 0; t < r->x->n_types; t++)
    cost = psplit_i_sum_or_inf(cost, (c->calls[t] + (kind == t)) * r->price[t]);
  return cost;
}

/* From one side, without counting accelerators: of separator k from that of its neighbour `from`
 * (NONE: there is none) over block `k_block`. */
static void reach(psplit_i_calls_row *r, uint32_t k, uint32_t k_block, uint32_t from, bool forwards,
                  front *fronts) {
  const uint32_t outside = psplit_i_calls_outside(r->x);
  for (uint32_t kind = 0; kind < outside; kind++) {
    front *to = &fronts[(size_t)k * KINDS + kind];
    to->n = 0;
    for (uint32_t other = 0; other <= outside; other++) {
      const psplit_i_calls_crossings *list =
        forwards ? &r->block[k_block].list[other][kind] : &r->block[k_block].list[kind][other];
      for (size_t i = 0; i < list->n; i++) {
        const psplit_i_calls_crossing *c = &list->items[i];
        label l = {forwards ? c->right : c->left, priced(r, c, kind)};
        const uint64_t there = forwards ? c->left : c->right, memory = memory_of(r, other);
        if (from != PSPLIT_NONE)
          l.cost = there > memory
                     ? PSPLIT_I_INF
                     : psplit_i_sum_or_inf(
                         l.cost, least_with(&fronts[(size_t)from * KINDS + other], memory - there));
        if (add_separator(r, k, kind, &l)) insert(r, to, l);
      }
      charge(r, 8 * list->n + 1);
    }
    const front *same = from == PSPLIT_NONE ? NULL : &fronts[(size_t)from * KINDS + kind];
    if (!same || !is_call(r, kind)) continue;
    const label all = whole(r, k_block, kind);
    for (size_t i = 0; i < same->n; i++) {
      label l = {psplit_i_sat_add_u64(same->items[i].bytes, all.bytes),
                 psplit_i_sum_or_inf(same->items[i].cost, all.cost)};
      if (add_separator(r, k, kind, &l)) insert(r, to, l);
    }
    charge(r, 8 * same->n);
  }
}

static void look_ahead(psplit_i_calls_row *r) {
  for (uint32_t k = 0; k < r->n; k++) reach(r, k, k, k ? k - 1 : PSPLIT_NONE, true, r->ahead);
}

void psplit_i_calls_row_look(psplit_i_calls_row *r) {
  look_ahead(r);
  for (uint32_t k = r->n; k-- > 0;)
    reach(r, k, k + 1, k + 1 < r->n ? k + 1 : PSPLIT_NONE, false, r->behind);
}

void psplit_i_calls_row_set_sides(const psplit_i_calls_row *r, uint32_t k) {
  r->block[k].limit = r->limit + r->all_price;
  memcpy(r->block[k].price, r->price, sizeof r->price);
  r->block[k].before = k > 0 ? &r->ahead[(size_t)(k - 1) * KINDS] : NULL;
  r->block[k].behind = k < r->n ? &r->behind[(size_t)k * KINDS] : NULL;
}

/* The least of all at the prices as they are, less what all accelerators cost at those. */
static int64_t value_of_prices(psplit_i_calls_row *r) {
  const uint32_t outside = psplit_i_calls_outside(r->x);
  int64_t best = PSPLIT_I_INF;
  r->all_price = 0;
  for (uint32_t t = 0; t < r->x->n_types; t++) r->all_price += r->price[t] * r->x->count[t];
  look_ahead(r);
  for (uint32_t kind = 0; kind < outside; kind++) {
    const front *f = &r->ahead[(size_t)(r->n - 1) * KINDS + kind];
    const psplit_i_calls_crossings *list = &r->block[r->n].list[kind][outside];
    for (size_t i = 0; i < list->n; i++) {
      const psplit_i_calls_crossing *c = &list->items[i];
      if (c->left > memory_of(r, kind)) continue;
      const int64_t cost =
        psplit_i_sum_or_inf(priced(r, c, outside), least_with(f, memory_of(r, kind) - c->left));
      if (cost < best) best = cost;
    }
  }
  return best >= PSPLIT_I_INF ? -1 : best - r->all_price;
}

/* Whether a price changed by so much is better; if not, it stays. */
static bool try_price(psplit_i_calls_row *r, uint32_t type, int64_t more, int64_t *inout_best) {
  const int64_t before = r->price[type];
  if (before + more < 0 || before + more > r->limit) return false;
  r->price[type] = before + more;
  const int64_t value = value_of_prices(r);
  const bool better = value > *inout_best;
  if (better)
    *inout_best = value;
  else
    r->price[type] = before;
  return better;
}

void psplit_i_calls_row_set_prices(psplit_i_calls_row *r) {
  if (r->n_states == 1 || r->limit >= PSPLIT_I_INF / MOST_STATES / 2) return;
  int64_t best = value_of_prices(r);
  for (int64_t step = r->limit / FIRST_PRICE; step > r->limit / LAST_PRICE && !r->spent;) {
    bool any = false;
    for (uint32_t t = 0; t < r->x->n_types; t++)
      any |= try_price(r, t, step, &best) || try_price(r, t, -step, &best);
    if (!any) step /= 2;
  }
  (void)value_of_prices(r);
}

/* The state with one more accelerator of a type; n_states: there are no more. */
static uint32_t state_with(const psplit_i_calls_row *r, uint32_t state, uint32_t type) {
  uint32_t power = 1;
  if (r->n_states == 1) return state; /* they are not counted */
  for (uint32_t t = 0; t < type; t++) power *= r->x->count[t] + 1;
  const uint32_t used = state / power % (r->x->count[type] + 1);
  return used < r->x->count[type] ? state + power : r->n_states;
}

/* The state behind a crossing: with the calls inside and what begins behind it. */
static uint32_t state_behind(const psplit_i_calls_row *r, uint32_t state, uint32_t kind,
                             const psplit_i_calls_crossing *c) {
  for (uint32_t t = 0; t < r->x->n_types; t++)
    for (uint32_t i = 0; i < c->calls[t] && state < r->n_states; i++)
      state = state_with(r, state, t);
  return state < r->n_states && is_call(r, kind) ? state_with(r, state, kind) : state;
}

static int64_t cost_of(const psplit_i_calls_row *r, const psplit_i_calls_crossing *c) {
  if (!r->own) return c->cost;
  return c->parts.known && (c->told || !r->told) ? c->own_cost : PSPLIT_I_INF;
}

static uint64_t left_of(const psplit_i_calls_row *r, const psplit_i_calls_crossing *c) {
  return r->own ? c->own_left : c->left;
}

static uint64_t right_of(const psplit_i_calls_row *r, const psplit_i_calls_crossing *c) {
  return r->own ? c->own_right : c->right;
}

/* Of separator k, by state and kind. */
static front *fronts_of(const psplit_i_calls_row *r, uint32_t k) {
  return r->keeps ? r->row + (size_t)k * r->n_states * KINDS : r->turn[k % 2];
}

/* What the accelerators that are not used are priced at. */
static int64_t price_of_unused(const psplit_i_calls_row *r, uint32_t state) {
  int64_t price = 0;
  for (uint32_t t = 0; t < r->x->n_types && r->n_states > 1; t++) {
    price += r->price[t] * (r->x->count[t] - state % (r->x->count[t] + 1));
    state /= r->x->count[t] + 1;
  }
  return price;
}

/* Keeps separator k on, if it can end below the limit. */
static void keep(psplit_i_calls_row *r, uint32_t k, uint32_t state, uint32_t kind, label l) {
  if (state >= r->n_states || !add_separator(r, k, kind, &l)) return;
  const uint64_t room = memory_of(r, kind) - l.bytes + bytes_of(r, k, kind);
  const int64_t rest = least_with(&r->behind[(size_t)k * KINDS + kind],
                                  memory_of(r, kind) == UINT64_MAX ? UINT64_MAX : room);
  const int64_t unused = price_of_unused(r, state) + (is_call(r, kind) ? r->price[kind] : 0);
  if (psplit_i_sum_or_inf(l.cost - time_of(r, k, kind), rest) >= r->limit + unused) return;
  insert(r, &fronts_of(r, k)[(size_t)state * KINDS + kind], l);
}

/* Crosses block k from a label of a kind (outside: from nothing). */
static void cross(psplit_i_calls_row *r, uint32_t k, uint32_t state, uint32_t kind, label from) {
  for (uint32_t to = 0; to < psplit_i_calls_outside(r->x); to++) {
    const psplit_i_calls_crossings *list = &r->block[k].list[kind][to];
    const front *rest = &r->behind[(size_t)k * KINDS + to];
    const int64_t least = rest->n ? rest->items[rest->n - 1].cost : PSPLIT_I_INF;
    const int64_t sofar = psplit_i_sum_or_inf(from.cost, least);
    size_t i = 0;
    for (; i < list->n; i++) {
      const psplit_i_calls_crossing *c = &list->items[i];
      if (psplit_i_sum_or_inf(sofar, c->cost) >= r->limit + r->all_price) break;
      if (psplit_i_sat_add_u64(from.bytes, left_of(r, c)) > memory_of(r, kind)) continue;
      keep(r, k, state_behind(r, state, to, c), to,
           (label){right_of(r, c), psplit_i_sum_or_inf(from.cost, cost_of(r, c))});
    }
    charge(r, 16 * i + 1);
  }
}

static void clear_row(psplit_i_calls_row *r, uint32_t k) {
  front *fronts = fronts_of(r, k);
  for (size_t i = 0; i < (size_t)r->n_states * KINDS; i++) fronts[i].n = 0;
}

static void step(psplit_i_calls_row *r, uint32_t k) {
  const uint32_t outside = psplit_i_calls_outside(r->x);
  clear_row(r, k);
  for (uint32_t state = 0; state < r->n_states; state++)
    for (uint32_t kind = 0; kind < outside; kind++) {
      const front *f = &fronts_of(r, k - 1)[(size_t)state * KINDS + kind];
      const label all = is_call(r, kind) ? whole(r, k, kind) : (label){0};
      for (size_t i = 0; i < f->n && !r->spent && !r->failed; i++) {
        cross(r, k, state, kind, f->items[i]);
        if (is_call(r, kind))
          keep(r, k, state, kind,
               (label){psplit_i_sat_add_u64(f->items[i].bytes, all.bytes),
                       psplit_i_sum_or_inf(f->items[i].cost, all.cost)});
      }
    }
}

/* The least of all, with accelerators counted. */
static int64_t end_row(psplit_i_calls_row *r, psplit_i_calls_ending *out_end) {
  const uint32_t outside = psplit_i_calls_outside(r->x);
  int64_t best = r->limit;
  for (uint32_t state = 0; state < r->n_states; state++)
    for (uint32_t kind = 0; kind < outside; kind++) {
      const front *f = &fronts_of(r, r->n - 1)[(size_t)state * KINDS + kind];
      const psplit_i_calls_crossings *list = &r->block[r->n].list[kind][outside];
      for (size_t i = 0; i < list->n; i++) {
        const psplit_i_calls_crossing *c = &list->items[i];
        if (left_of(r, c) > memory_of(r, kind) || state_behind(r, state, outside, c) >= r->n_states)
          continue;
        const size_t at = psplit_i_calls_more_than(f, memory_of(r, kind) - left_of(r, c));
        const int64_t cost =
          at ? psplit_i_sum_or_inf(cost_of(r, c), f->items[at - 1].cost) : PSPLIT_I_INF;
        if (cost >= best) continue;
        best = cost;
        *out_end = (psplit_i_calls_ending){state, kind, f->items[at - 1], c};
      }
    }
  return best;
}

static int64_t add_up(psplit_i_calls_row *r, psplit_i_calls_ending *out_end) {
  clear_row(r, 0);
  cross(r, 0, 0, psplit_i_calls_outside(r->x), (label){0});
  for (uint32_t k = 1; k < r->n; k++) step(r, k);
  return end_row(r, out_end);
}

/* Whether a label of the separator in front leads to that of *io over block k: by the call of both
 * separators, or by a crossing, which *out_choice and *io are then. */
static bool leads_to(const psplit_i_calls_row *r, uint32_t k, uint32_t state, uint32_t kind,
                     label from, psplit_i_calls_choice *out_choice, psplit_i_calls_ending *io) {
  const psplit_i_calls_crossings *list = &r->block[k].list[kind][io->kind];
  const label all = is_call(r, kind) ? whole(r, k, kind) : (label){0};
  label l = {psplit_i_sat_add_u64(from.bytes, all.bytes), psplit_i_sum_or_inf(from.cost, all.cost)};
  *out_choice = (psplit_i_calls_choice){.right = kind};
  if (is_call(r, kind) && kind == io->kind && state == io->state && add_separator(r, k, kind, &l) &&
      l.cost == io->from.cost && l.bytes == io->from.bytes) {
    *io = (psplit_i_calls_ending){state, kind, from, NULL};
    return true;
  }
  for (size_t i = 0; i < list->n; i++) {
    const psplit_i_calls_crossing *c = &list->items[i];
    l = (label){right_of(r, c), psplit_i_sum_or_inf(from.cost, cost_of(r, c))};
    if (!add_separator(r, k, io->kind, &l) || l.cost != io->from.cost ||
        l.bytes != io->from.bytes || state_behind(r, state, io->kind, c) != io->state ||
        psplit_i_sat_add_u64(from.bytes, left_of(r, c)) > memory_of(r, kind))
      continue;
    *out_choice = (psplit_i_calls_choice){.right = io->kind, .crossing = c};
    *io = (psplit_i_calls_ending){state, kind, from, c};
    return true;
  }
  return false;
}

/* Where a label of separator k, on a device of a kind, comes from over block k; sets the choice of
 * that block. */
static bool find_before(const psplit_i_calls_row *r, uint32_t k, psplit_i_calls_ending *io) {
  for (uint32_t state = 0; state < r->n_states; state++)
    for (uint32_t kind = 0; kind < psplit_i_calls_outside(r->x); kind++) {
      const front *f = &fronts_of(r, k - 1)[(size_t)state * KINDS + kind];
      for (size_t j = 0; j < f->n; j++)
        if (leads_to(r, k, state, kind, f->items[j], &r->choice[k], io)) return true;
    }
  return false;
}

/* Cuts the first block. */
static bool find_first(const psplit_i_calls_row *r, const psplit_i_calls_ending *from) {
  const psplit_i_calls_crossings *list =
    &r->block[0].list[psplit_i_calls_outside(r->x)][from->kind];
  for (size_t i = 0; i < list->n; i++) {
    const psplit_i_calls_crossing *c = &list->items[i];
    label l = {right_of(r, c), cost_of(r, c)};
    if (!add_separator(r, 0, from->kind, &l) || l.cost != from->from.cost ||
        l.bytes != from->from.bytes || state_behind(r, 0, from->kind, c) != from->state)
      continue;
    r->choice[0] = (psplit_i_calls_choice){.right = from->kind, .crossing = c};
    return true;
  }
  return false;
}

int64_t psplit_i_calls_row_bound(psplit_i_calls_row *r) {
  psplit_i_calls_ending end;
  return add_up(r, &end);
}

bool psplit_i_calls_row_choose(psplit_i_calls_row *r, psplit_i_calls_what what, int64_t *out_cost) {
  psplit_i_calls_ending end = {0};
  bool found = false;
  *out_cost = 0;
  if (!r->row || r->spent || r->failed) return false;
  r->keeps = true;
  r->own = what != PSPLIT_I_CALLS_BOUND;
  r->told = what == PSPLIT_I_CALLS_OWN_TOLD;
  const int64_t cost = add_up(r, &end);
  if (!r->spent && !r->failed) {
    *out_cost = cost;
    found = cost < r->limit;
  }
  if (found) {
    r->choice[r->n] =
      (psplit_i_calls_choice){.right = psplit_i_calls_outside(r->x), .crossing = end.crossing};
    for (uint32_t k = r->n - 1; k > 0 && found; k--) found = find_before(r, k, &end);
    found = found && find_first(r, &end);
  }
  r->keeps = r->own = false;
  return found;
}

bool psplit_i_calls_row_init(psplit_i_calls_row *r, const psplit_i_calls_clusters *x,
                             psplit_i_budget *budget, int64_t limit, psplit_i_arena *arena) {
  *r = (psplit_i_calls_row){
    .x = x, .budget = budget, .n = x->n_separators, .n_states = 1, .limit = limit};
  for (uint32_t t = 0; t < x->n_types && r->n_states <= MOST_STATES; t++)
    r->n_states *= x->count[t] < MOST_STATES ? x->count[t] + 1 : MOST_STATES + 1;
  if (r->n_states > MOST_STATES) r->n_states = 1;
  r->block = PSPLIT_NEW(arena, psplit_i_calls_block, (size_t)r->n + 1);
  r->ahead = PSPLIT_NEW(arena, front, (size_t)r->n * KINDS);
  r->behind = PSPLIT_NEW(arena, front, (size_t)r->n * KINDS);
  r->choice = PSPLIT_NEW(arena, psplit_i_calls_choice, (size_t)r->n + 1);
  const size_t n_fronts = (size_t)r->n_states * KINDS;
  if (r->n * n_fronts <= MOST_FRONTS) r->row = PSPLIT_NEW(arena, front, r->n * n_fronts);
  for (int i = 0; i < 2; i++) r->turn[i] = PSPLIT_NEW(arena, front, n_fronts);
  if (!r->block || !r->ahead || !r->behind || !r->choice || !r->turn[0] || !r->turn[1] ||
      (r->n * n_fronts <= MOST_FRONTS && !r->row))
    return false;
  for (uint32_t k = 0; k <= r->n; k++) {
    r->block[k].first = k > 0 ? (int64_t)x->separator[k - 1] : -1;
    r->block[k].last = k < r->n ? (int64_t)x->separator[k] : (int64_t)x->n;
  }
  return true;
}

static void clear(front *fronts, size_t n) {
  for (size_t i = 0; fronts && i < n; i++) psplit_i_vec_fini(&fronts[i]);
}

void psplit_i_calls_row_fini(psplit_i_calls_row *r) {
  for (uint32_t k = 0; r->block && k <= r->n; k++)
    for (uint32_t i = 0; i < KINDS * KINDS; i++)
      psplit_i_vec_fini(&r->block[k].list[i / KINDS][i % KINDS]);
  clear(r->ahead, (size_t)r->n * KINDS);
  clear(r->behind, (size_t)r->n * KINDS);
  clear(r->turn[0], (size_t)r->n_states * KINDS);
  clear(r->turn[1], (size_t)r->n_states * KINDS);
  clear(r->row, (size_t)r->n * r->n_states * KINDS);
}
