/* Pricing tables that keep only entries of stages whose value may reach `least`. A Lagrangian
 * relaxation of the limit gives each unit of load a price. Then no lists are needed to bound the
 * best completion of an entry: one number for each combination of labels of a table, inside it and
 * outside. An entry is pruned if even with the best completion outside it does not reach `least`,
 * and so are whole combinations of labels. A stage of value `least` or more keeps its entry in
 * every list, so bounds remain valid above `least`. */
#include "pricing_inside.h"

#include <string.h>

enum {
  BITS = 20,      /* fractional bits of the price of load */
  FIRST = 12,     /* prices of load that are tried for a new limit */
  LARGE_TURN = 3, /* the price of load changes by a fraction of 2^-LARGE_TURN */
  SMALL_TURN = 9, /* the smallest fraction, once the price oscillates */
  MOST_SLOPE = 4  /* upper bound on the price of load, as a multiple of ONE per limit */
};

static const int64_t NO_VALUE = INT64_MIN / 2;

/* For a step: the list of each table while its own variable has label 0, and the stride of that
 * label. */
typedef struct lookup {
  const uint32_t *place;
  uint32_t stride[MOST_JOINED];
} lookup;

static uint32_t stride_of(const psplit_i_pricing *p, const step *s, uint32_t table) {
  const step *of = psplit_i_pricing_step_of(p, s, table);
  uint32_t stride = 1;
  for (uint32_t i = 0; i < of->n_scope; i++, stride *= LABELS)
    if (of->scope[i] == s->var) return stride;
  return 0;
}

static lookup lookup_of(const psplit_i_pricing *p, const step *s) {
  lookup l = {.place = p->above.place + p->above.first_place[s - p->steps]};
  for (uint32_t t = 0; t < s->n_tables; t++) l.stride[t] = stride_of(p, s, t);
  return l;
}

static bool make_place(psplit_i_pricing *p) {
  above_tables *x = &p->above;
  size_t n = 0;
  for (uint32_t k = 0; k < p->n_vars; k++) n += (size_t)p->steps[k].n_lists * p->steps[k].n_tables;
  x->place = PSPLIT_NEW(&p->arena, uint32_t, n + 1);
  x->first_place = PSPLIT_NEW(&p->arena, size_t, p->n_vars);
  x->own_load = PSPLIT_NEW(&p->arena, int32_t, (size_t)p->n_lists * LABELS);
  x->inside = PSPLIT_NEW(&p->arena, relaxed, p->n_lists);
  x->outside = PSPLIT_NEW(&p->arena, int64_t, p->n_lists);
  if (p->arena.failed) return false;
  size_t at = 0;
  for (uint32_t k = 0; k < p->n_vars; k++) {
    const step *s = &p->steps[k];
    x->first_place[k] = at;
    for (uint32_t index = 0; index < s->n_lists; index++) {
      psplit_i_pricing_set_labels(p, s, index);
      p->label[s->var] = 0;
      for (uint32_t t = 0; t < s->n_tables; t++)
        x->place[at++] = psplit_i_pricing_place_of(p, s, t);
    }
  }
  psplit_i_spend(p->budget, 2 * n);
  x->limit = -1;
  return true;
}

/* Stores the role of the stage in each net whose receivers have prices. Roles do not depend on the
 * prices. */
static bool make_deals(psplit_i_pricing *p) {
  above_tables *x = &p->above;
  uint32_t n = 0;
  size_t n_deals = 0;
  x->first_net = PSPLIT_NEW(&p->arena, uint32_t, p->n_vars + 1);
  x->first_deal = PSPLIT_NEW(&p->arena, size_t, p->n_vars);
  x->net = PSPLIT_NEW(&p->arena, uint32_t, p->instance->n_nets);
  if (p->arena.failed) return false;
  for (uint32_t k = 0; k < p->n_vars; k++) {
    const uint32_t m = psplit_i_pricing_deals_of(p, &p->steps[k]);
    x->first_net[k] = n;
    x->first_deal[k] = n_deals;
    if (m > 0) memcpy(x->net + n, p->own_net, m * sizeof *x->net);
    n += m;
    n_deals += (size_t)p->steps[k].n_lists * LABELS * m;
  }
  x->first_net[p->n_vars] = n;
  x->deal = PSPLIT_NEW(&p->arena, uint8_t, n_deals + 1);
  if (p->arena.failed) return false;
  for (uint32_t k = 0; k < p->n_vars; k++) {
    const step *s = &p->steps[k];
    const uint32_t m = x->first_net[k + 1] - x->first_net[k];
    uint8_t *to = x->deal + x->first_deal[k];
    for (uint32_t index = 0; index < s->n_lists && m > 0; index++) {
      psplit_i_pricing_set_labels(p, s, index);
      for (uint32_t l = 0; l < LABELS; l++, to += m) {
        p->label[s->var] = (uint8_t)l;
        psplit_i_pricing_deals_of(p, s);
        memcpy(to, p->own_deal, m);
      }
    }
  }
  psplit_i_spend(p->budget, n_deals);
  return true;
}

/* The nets with receiver prices of a list of a step and a label, with the role of the stage in
 * each. */
static uint32_t deals_at(const psplit_i_pricing *p, const step *s, uint32_t index, uint32_t l,
                         const uint32_t **out_net, const uint8_t **out_deal) {
  const above_tables *x = &p->above;
  *out_net = NULL;
  *out_deal = NULL;
  if (!p->receiver) return 0;
  const size_t k = (size_t)(s - p->steps);
  const uint32_t m = x->first_net[k + 1] - x->first_net[k];
  *out_net = x->net + x->first_net[k];
  *out_deal = x->deal + x->first_deal[k] + ((size_t)index * LABELS + l) * m;
  return m;
}

/* The load of each step's own factors, which does not depend on the prices. */
static void weigh_own(psplit_i_pricing *p, int64_t limit) {
  above_tables *x = &p->above;
  const int32_t *price = p->price;
  entry own;
  p->price = NULL;
  for (uint32_t k = 0; k < p->n_vars; k++) {
    const step *s = &p->steps[k];
    for (uint32_t index = 0; index < s->n_lists; index++) {
      psplit_i_pricing_set_labels(p, s, index);
      int32_t *to = x->own_load + (size_t)(s->first_list + index) * LABELS;
      for (uint32_t l = 0; l < LABELS; l++)
        to[l] = psplit_i_pricing_set_own(p, s, (uint8_t)l, &own) ? own.load : -1;
    }
    psplit_i_spend(p->budget, (uint64_t)s->n_lists * LABELS * (s->n_parts - s->n_tables + 1));
  }
  p->price = price;
  x->limit = limit;
}

static int32_t own_price(const psplit_i_pricing *p, const step *s, uint32_t label) {
  return s->var < p->instance->n && label == PSPLIT_I_INSIDE ? p->price[s->var] : 0;
}

static entry own_at(const psplit_i_pricing *p, const step *s, uint32_t index, uint32_t l) {
  const uint32_t *net;
  const uint8_t *deal;
  entry own = {p->above.own_load[(size_t)(s->first_list + index) * LABELS + l], own_price(p, s, l)};
  const uint32_t m = deals_at(p, s, index, l, &net, &deal);
  for (uint32_t i = 0; i < m; i++) own.price += psplit_i_pricing_deal_price(p, net[i], deal[i]);
  return own;
}

static int64_t reduced(const psplit_i_pricing *p, entry e) {
  return (int64_t)e.price * (1 << BITS) - p->above.slope * e.load;
}

/* The relaxed value of a step's own factors, with all receivers whose price exceeds that of their
 * load. */
static relaxed relaxed_own(const psplit_i_pricing *p, const step *s, uint32_t index, uint32_t l) {
  const uint32_t *net;
  const uint8_t *deal;
  const entry own = own_at(p, s, index, l);
  relaxed x = {reduced(p, own), own.load};
  const uint32_t m = deals_at(p, s, index, l, &net, &deal);
  for (uint32_t i = 0; i < m; i++) {
    const entry more = {(int32_t)(p->instance->send[net[i]] >> p->shift), p->receiver[net[i]]};
    if (deal[i] < 3 || more.price <= 0) continue;
    const int64_t each = reduced(p, more);
    if (each <= 0) continue;
    x.value += (deal[i] - 2) * each;
    x.load += (int64_t)(deal[i] - 2) * more.load;
  }
  return x;
}

/* Forward pass of the relaxation: for each list, the largest value by prices of clusters and of
 * load. */
static void relax_inside(psplit_i_pricing *p) {
  above_tables *x = &p->above;
  uint64_t ops = 0;
  for (uint32_t k = 0; k < p->n_vars; k++) {
    const step *s = &p->steps[k];
    const lookup at = lookup_of(p, s);
    for (uint32_t index = 0; index < s->n_lists; index++) {
      relaxed best = {NO_VALUE, 0};
      const int32_t *own = x->own_load + (size_t)(s->first_list + index) * LABELS;
      const uint32_t *place = at.place + (size_t)index * s->n_tables;
      for (uint32_t l = 0; l < LABELS; l++) {
        if (own[l] < 0) continue;
        relaxed sum = relaxed_own(p, s, index, l);
        for (uint32_t t = 0; t < s->n_tables && sum.value > NO_VALUE; t++) {
          const relaxed of = x->inside[place[t] + l * at.stride[t]];
          sum.value = of.value > NO_VALUE ? sum.value + of.value : NO_VALUE;
          sum.load += of.load;
        }
        if (sum.value > best.value) best = sum;
      }
      x->inside[s->first_list + index] = best;
    }
    ops += (uint64_t)s->n_lists * (2 + s->n_tables);
  }
  if (!psplit_i_spend(p->budget, ops / 3)) p->late = true;
}

/* Backward pass: for each list, the largest value outside it. */
static void relax_outside(psplit_i_pricing *p) {
  above_tables *x = &p->above;
  uint64_t ops = 0;
  for (uint32_t i = 0; i < p->n_lists; i++) x->outside[i] = NO_VALUE;
  x->outside[p->steps[p->n_vars - 1].first_list] = 0;
  for (uint32_t k = p->n_vars; k-- > 0;) {
    const step *s = &p->steps[k];
    const lookup at = lookup_of(p, s);
    for (uint32_t index = 0; index < s->n_lists; index++) {
      const int64_t outside = x->outside[s->first_list + index];
      const int32_t *own = x->own_load + (size_t)(s->first_list + index) * LABELS;
      const uint32_t *place = at.place + (size_t)index * s->n_tables;
      if (outside <= NO_VALUE) continue;
      for (uint32_t l = 0; l < LABELS; l++) {
        if (own[l] < 0) continue;
        int64_t sum = outside + relaxed_own(p, s, index, l).value;
        for (uint32_t t = 0; t < s->n_tables && sum > NO_VALUE; t++) {
          const int64_t of = x->inside[place[t] + l * at.stride[t]].value;
          sum = of > NO_VALUE ? sum + of : NO_VALUE;
        }
        for (uint32_t t = 0; t < s->n_tables && sum > NO_VALUE; t++) {
          const uint32_t list_at = place[t] + l * at.stride[t];
          const int64_t rest = sum - x->inside[list_at].value;
          if (rest > x->outside[list_at]) x->outside[list_at] = rest;
        }
      }
    }
    ops += (uint64_t)s->n_lists * (2 + 2 * s->n_tables);
  }
  if (!psplit_i_spend(p->budget, ops / 3)) p->late = true;
}

/* One step of the subgradient method on the price of load, which minimises the relaxed value: the
 * price grows where the relaxed solution exceeds the limit. */
static void turn_slope(psplit_i_pricing *p) {
  above_tables *x = &p->above;
  const bool up = x->inside[p->steps[p->n_vars - 1].first_list].load > p->cap;
  if (up != x->went_up && x->turn < SMALL_TURN) x->turn++;
  if (up == x->went_up && x->turn > LARGE_TURN) x->turn--;
  x->went_up = up;
  const int64_t by = (x->slope >> x->turn) + 1,
                most = ((int64_t)PSPLIT_I_PRICING_ONE << BITS) / ((int64_t)p->cap + 1) * MOST_SLOPE;
  x->slope += up ? by : -by;
  if (x->slope > most) x->slope = most;
  if (x->slope < 0) x->slope = 0;
}

static bool relax(psplit_i_pricing *p, int64_t limit, int64_t least) {
  above_tables *x = &p->above;
  if (!x->place && !make_place(p)) return false;
  if (p->receiver && !x->deal && !make_deals(p)) return false;
  const bool first = x->limit != limit;
  if (first) {
    x->slope = ((int64_t)PSPLIT_I_PRICING_ONE << BITS) / ((int64_t)p->cap + 1);
    x->turn = LARGE_TURN;
    weigh_own(p, limit);
  } else {
    turn_slope(p);
  }
  relax_inside(p);
  for (uint32_t i = 1; i < FIRST && first && !p->late; i++) {
    turn_slope(p);
    relax_inside(p);
  }
  relax_outside(p);
  x->floor = least * (1 << BITS) - x->slope * p->cap;
  return true;
}

bool psplit_i_pricing_floors(const psplit_i_pricing *p, const step *s, uint32_t place, entry own,
                             int64_t *out_floor) {
  const above_tables *x = &p->above;
  if (x->outside[place] <= NO_VALUE) return false;
  int64_t all = x->outside[place] + reduced(p, own);
  for (uint32_t t = 0; t < s->n_tables; t++) {
    const int64_t of = x->inside[psplit_i_pricing_place_of(p, s, t)].value;
    if (of <= NO_VALUE) return false;
    all += of;
  }
  for (uint32_t t = 0; t < s->n_tables; t++)
    out_floor[t] = x->floor - all + x->inside[psplit_i_pricing_place_of(p, s, t)].value;
  return all >= x->floor;
}

uint32_t psplit_i_pricing_reach(const psplit_i_pricing *p, list l, int64_t floor, entry *out) {
  const entry *from = psplit_i_pricing_at(p, l);
  uint32_t n = 0;
  for (uint32_t i = 0; i < l.n; i++) {
    out[n] = from[i];
    n += reduced(p, from[i]) >= floor;
  }
  return n;
}

/* Adds the entries for one label of a step's variable. place[t] are the lists of its tables, and
 * `rest` is the relaxed value that the whole list has to reach. */
static void put_label(psplit_i_pricing *p, const step *s, const uint32_t *place, entry own,
                      int64_t rest, shelf *out) {
  const above_tables *x = &p->above;
  const entry none = {0, 0};
  int64_t all = reduced(p, own);
  for (uint32_t t = 0; t < s->n_tables; t++) {
    if (x->inside[place[t]].value <= NO_VALUE || p->inside[place[t]].n == 0) return;
    all += x->inside[place[t]].value;
  }
  if (all < rest) return;
  if (s->n_tables == 0) {
    psplit_i_pricing_put(p, out, own.load, own.price);
    return;
  }
  entry *const others = p->row[3];
  const entry *so_far = p->row[2];
  uint32_t n = 0;
  for (uint32_t t = 0; t < s->n_tables; t++) {
    const list l = p->inside[place[t]];
    entry *const to = t == 0 ? p->row[2] : others;
    const uint32_t more = psplit_i_pricing_reach(p, l, rest - all + x->inside[place[t]].value, to);
    if (!psplit_i_spend(p->budget, l.n / 8)) p->late = true;
    if (t == 0) {
      n = more;
    } else if (t + 1 < s->n_tables) {
      n = psplit_i_pricing_sums(p, so_far, n, others, more, p->row[t % 2]);
      so_far = p->row[t % 2];
    } else {
      psplit_i_pricing_put_sums(p, out, so_far, n, others, more, own);
    }
  }
  if (s->n_tables == 1) psplit_i_pricing_put_sums(p, out, so_far, n, &none, 1, own);
}

static void go_forth(psplit_i_pricing *p, const step *s) {
  const above_tables *x = &p->above;
  const lookup at = lookup_of(p, s);
  uint32_t place[MOST_JOINED];
  entry ways[MOST_OWN];
  for (uint32_t index = 0; index < s->n_lists && !p->late; index++) {
    const uint32_t list_at = s->first_list + index;
    p->inside[list_at] = (list){0, 0};
    if (x->outside[list_at] <= NO_VALUE) continue;
    const int64_t rest = x->floor - x->outside[list_at];
    if (x->inside[list_at].value < rest) continue;
    psplit_i_pricing_clear(&p->outer[0]);
    for (uint32_t l = 0; l < LABELS; l++) {
      const int32_t load = x->own_load[(size_t)list_at * LABELS + l];
      if (load < 0) continue;
      for (uint32_t t = 0; t < s->n_tables; t++)
        place[t] = at.place[(size_t)index * s->n_tables + t] + l * at.stride[t];
      const uint32_t *net;
      const uint8_t *deal;
      const uint32_t m = deals_at(p, s, index, l, &net, &deal);
      const uint32_t n_ways =
        psplit_i_pricing_ways(p, net, deal, m, own_at(p, s, index, l), ways, NULL);
      for (uint32_t i = 0; i < n_ways; i++) put_label(p, s, place, ways[i], rest, &p->outer[0]);
    }
    list made = psplit_i_pricing_keep(p, &p->outer[0]);
    entry *const entries = p->pool.entries + made.first;
    made.n = psplit_i_pricing_reach(p, made, rest, entries);
    p->pool.n = made.first + made.n;
    p->inside[list_at] = made;
    if (!psplit_i_spend(p->budget, (p->outer[0].end - p->outer[0].first) / 8)) p->late = true;
  }
  if (!psplit_i_spend(p->budget, s->n_lists / 2)) p->late = true;
}

psplit_code psplit_i_pricing_above(psplit_i_pricing *pricing, int64_t limit, uint32_t n_parts,
                                   const int32_t *price, const int32_t *receiver, int64_t least,
                                   psplit_i_budget *budget, int64_t *out_most, bool *out_done) {
  psplit_i_pricing *p = pricing;
  p->receiver = receiver;
  if (!psplit_i_pricing_begin(p, limit, n_parts, price, NULL, budget)) return PSPLIT_NOMEM;
  if (!relax(p, limit, least)) return PSPLIT_NOMEM;
  p->above.on = true;
  for (uint32_t k = 0; k < p->n_vars && !p->late; k++) go_forth(p, &p->steps[k]);
  if (!p->late) {
    const list l = p->inside[p->steps[p->n_vars - 1].first_list];
    const int64_t most = l.n ? psplit_i_pricing_at(p, l)[l.n - 1].price : least;
    *out_most = most > least ? most : least;
  }
  *out_done = !p->late;
  return p->failed ? PSPLIT_NOMEM : PSPLIT_OK;
}
