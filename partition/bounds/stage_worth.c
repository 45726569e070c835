/* The program: an elimination of variables (Bertele and Brioschi, 1972), with knapsacks as values.
 *
 * Variables are clusters, and one for each net with more than MOST_DIRECT pins: whether the stage
 * pays for it. That keeps tables narrow where a tensor goes to many. Parts are what costs or rules
 * out: nets, or pairs of such a variable with a pin. A table lists (load, price), both growing, and
 * what lies between two entries is taken for the better of both. The way back gives what is worth
 * most with each cluster. */
#include "stage_worth_inside.h"

#include <stdlib.h>
#include <string.h>

/* Whether nets with more pins are less than half of what all nets may cost. */
static bool few_above(const psplit_i_instance *in, uint32_t most_pins) {
  double above = 0, all = 0;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const double cost = (double)in->send[e] + (double)in->recv[e];
    all += cost;
    if (in->net_off[e + 1] - in->net_off[e] > most_pins) above += cost;
  }
  return above <= all / 2;
}

psplit_code psplit_i_worth_make(const psplit_i_instance *instance, psplit_i_budget *budget,
                                psplit_i_worth **out) {
  uint32_t most_pins = 2;
  *out = NULL;
  psplit_i_worth *p = calloc(1, sizeof *p);
  if (!p) return PSPLIT_NOMEM;
  psplit_i_arena_init(&p->arena, 0);
  p->instance = instance;
  p->budget = budget;
  for (uint32_t e = 0; e < instance->n_nets; e++)
    while (most_pins < instance->net_off[e + 1] - instance->net_off[e]) most_pins *= 2;
  bool ok = false;
  for (; most_pins >= 2 && !ok && !p->failed && few_above(instance, most_pins); most_pins /= 2) {
    psplit_i_arena_reset(&p->arena);
    ok = psplit_i_worth_build(p, most_pins);
  }
  const bool failed = p->failed;
  if (ok)
    *out = p;
  else
    psplit_i_worth_free(p);
  return failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

/* --- lists --- */

static void clear(const psplit_i_worth *p, bin *bins) {
  for (uint32_t b = 0; b < p->n_bins; b++) bins[b] = (bin){INT32_MAX, NO_PRICE};
}

static inline void put(const psplit_i_worth *p, bin *bins, int32_t load, int32_t price) {
  bin *b = &bins[((uint64_t)(uint32_t)load * p->scale) >> 32];
  if (load < b->load) b->load = load;
  if (price > b->price) b->price = price;
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

/* Puts each entry of a with each of b. */
static void put_sums(psplit_i_worth *p, bin *bins, const entry *a, uint32_t n_a, const entry *b,
                     uint32_t n_b, entry more) {
  uint64_t ops = n_a;
  for (uint32_t i = 0; i < n_a; i++) {
    const int32_t load = a[i].load + more.load, price = a[i].price + more.price;
    uint32_t j = 0;
    for (; j < n_b && load + b[j].load <= p->cap; j++)
      put(p, bins, load + b[j].load, price + b[j].price);
    if (j == 0) break;
    ops += j;
  }
  if (!psplit_i_spend(p->budget, ops / 3)) p->late = true;
}

static uint32_t sums(psplit_i_worth *p, const entry *a, uint32_t n_a, const entry *b, uint32_t n_b,
                     entry *out) {
  clear(p, p->bins);
  put_sums(p, p->bins, a, n_a, b, n_b, (entry){0, 0});
  return take(p, p->bins, out);
}

/* Room in the pool for one more list. */
static bool more_room(psplit_i_worth *p) {
  if (p->pool.most - p->pool.n >= p->n_bins) return true;
  const size_t most = 2 * p->pool.most + 1024 * (size_t)p->n_bins;
  entry *more = realloc(p->pool.entries, most * sizeof *more);
  if (!more) return !(p->failed = p->late = true);
  p->pool.entries = more;
  p->pool.most = most;
  return true;
}

static list keep(psplit_i_worth *p, const bin *bins) {
  if (!more_room(p)) return (list){0, 0};
  const list l = {(uint32_t)p->pool.n, take(p, bins, p->pool.entries + p->pool.n)};
  p->pool.n += l.n;
  return l;
}

/* --- costs --- */

static int64_t net_cost(const psplit_i_worth *p, uint32_t e, bool pays, uint8_t producer) {
  if (!pays || producer == PSPLIT_I_BEHIND) return 0;
  return (producer == PSPLIT_I_INSIDE ? p->instance->send : p->instance->recv)[e];
}

/* The same in prices of receivers: a stage that sends gets what one that receives pays. */
static int32_t net_price(const psplit_i_worth *p, uint32_t e, bool pays, uint8_t producer) {
  if (!p->receiver || !pays || producer == PSPLIT_I_BEHIND) return 0;
  return producer == PSPLIT_I_INSIDE ? p->receiver[e] : -p->receiver[e];
}

/* What a part costs with labels as they are; -1: it rules them out. Adds its price. */
static int64_t cost_of(const psplit_i_worth *p, const part *q, int32_t *inout_price) {
  const uint8_t producer = p->label[q->scope[0]];
  bool pays = q->kind == PAYS && p->label[q->scope[1]] == 1;
  if (q->kind == PAYS) {
    *inout_price += net_price(p, q->of, pays, producer);
    return net_cost(p, q->of, pays, producer);
  }
  for (uint32_t i = q->kind == MUST_PAY ? 2 : 1; i < q->n_scope; i++) {
    const uint8_t consumer = p->label[q->scope[i]];
    if (consumer < producer) return -1;
    /* A net from before is received by consumers inside; one from inside is sent behind. */
    pays = pays || consumer == producer + 1;
  }
  if (q->kind == MUST_PAY) return pays && p->label[q->scope[1]] == 0 ? -1 : 0;
  *inout_price += net_price(p, q->of, pays, producer);
  return net_cost(p, q->of, pays, producer);
}

/* Load and price of the variable of `s` and of its parts that are no tables; false: ruled out. */
static bool own_of(const psplit_i_worth *p, const step *s, entry *out) {
  int64_t load = 0;
  *out = (entry){0, 0};
  for (uint32_t i = s->n_tables; i < s->n_parts; i++) {
    const int64_t cost = cost_of(p, &p->parts[s->parts[i]], &out->price);
    if (cost < 0) return false;
    load += cost >> p->shift;
    if (load > p->cap) return false;
  }
  if (s->var < p->instance->n && p->label[s->var] == PSPLIT_I_INSIDE) {
    load += p->instance->w[s->var] >> p->shift;
    out->price += p->price ? p->price[s->var] : 0;
  }
  if (load > p->cap) return false;
  out->load = (int32_t)load;
  return true;
}

/* How many receivers, of a net that has a price for them, the stage may pay for with labels as they
 * are. */
static uint32_t most_receivers(const psplit_i_worth *p, const part *q) {
  if (q->kind != WHOLE_NET && q->kind != PAYS) return 1;
  if (p->receiver[q->of] == 0 || p->label[q->scope[0]] != PSPLIT_I_INSIDE) return 1;
  if (q->kind == PAYS && p->label[q->scope[1]] == 0) return 1;
  const psplit_i_instance *in = p->instance;
  if (q->kind == PAYS) return in->net_off[q->of + 1] - in->net_off[q->of] - 1;
  uint32_t n = 0;
  for (uint32_t i = 1; i < q->n_scope; i++) n += p->label[q->scope[i]] == PSPLIT_I_BEHIND;
  return n > 1 ? n : 1;
}

/* What own_of() says of one receiver for each net, for every number of them. Where these are too
 * many ways, more receivers of a net are worth their price and take nothing. */
static uint32_t ways_of(const psplit_i_worth *p, const step *s, entry own, entry *out) {
  uint32_t n = 1;
  out[0] = own;
  if (!p->receiver) return 1;
  for (uint32_t i = s->n_tables; i < s->n_parts; i++) {
    const part *q = &p->parts[s->parts[i]];
    const uint32_t most = most_receivers(p, q), before = n;
    if (most == 1) continue;
    const int32_t price = p->receiver[q->of];
    const int64_t load = p->instance->send[q->of] >> p->shift;
    if (n * most > MOST_OWN) {
      for (uint32_t k = 0; k < n; k++) out[k].price += (int32_t)(most - 1) * price;
      continue;
    }
    for (uint32_t m = 1; m < most; m++)
      for (uint32_t k = 0; k < before; k++)
        if (out[k].load + m * load <= p->cap)
          out[n++] = (entry){(int32_t)(out[k].load + m * load), out[k].price + (int32_t)m * price};
  }
  return n;
}

static const step *step_of(const psplit_i_worth *p, const step *s, uint32_t table) {
  return &p->steps[p->parts[s->parts[table]].of];
}

/* The place of a table of a step among the lists, with labels as they are. */
static uint32_t place_of(const psplit_i_worth *p, const step *s, uint32_t table) {
  const step *of = step_of(p, s, table);
  uint32_t index = 0;
  for (uint32_t i = of->n_scope; i-- > 0;) index = index * LABELS + p->label[of->scope[i]];
  return of->first_list + index;
}

static bool may_be(const psplit_i_worth *p, uint32_t var, uint8_t label) {
  if (var >= p->instance->n) return label < 2;
  return !p->sides || (p->sides[var] >> label & 1) == 1;
}

/* Sets the labels of the scope; false: some variable may not have its own. */
static bool set_labels(psplit_i_worth *p, const step *s, uint32_t index) {
  bool all = true;
  for (uint32_t i = 0; i < s->n_scope; i++, index /= LABELS) {
    p->label[s->scope[i]] = (uint8_t)(index % LABELS);
    all = all && may_be(p, s->scope[i], p->label[s->scope[i]]);
  }
  return all;
}

/* Sets the label of the step's own variable; false: it may not have it, or nothing fits with it. */
static bool set_own(psplit_i_worth *p, const step *s, uint8_t label, entry *out_own) {
  if (!may_be(p, s->var, label)) return false;
  p->label[s->var] = label;
  return own_of(p, s, out_own);
}

/* --- forth --- */

static const entry *at(const psplit_i_worth *p, list l) { return p->pool.entries + l.first; }

static void put_joined(psplit_i_worth *p, const step *s, entry own, bin *out) {
  if (s->n_tables == 0) {
    put(p, out, own.load, own.price);
    return;
  }
  const entry none = {0, 0};
  list l = p->inside[place_of(p, s, 0)];
  const entry *so_far = at(p, l);
  uint32_t n = l.n;
  for (uint32_t t = 1; t + 1 < s->n_tables && n > 0; t++) {
    l = p->inside[place_of(p, s, t)];
    n = sums(p, so_far, n, at(p, l), l.n, p->row[t % 2]);
    so_far = p->row[t % 2];
  }
  l = p->inside[place_of(p, s, s->n_tables - 1)];
  if (s->n_tables == 1)
    put_sums(p, out, so_far, n, &none, 1, own);
  else
    put_sums(p, out, so_far, n, at(p, l), l.n, own);
}

/* The only label that the variable may have; LABELS: there are several. */
static uint8_t only_label(const psplit_i_worth *p, uint32_t var) {
  uint8_t only = LABELS, n = 0;
  for (uint8_t x = 0; x < LABELS; x++)
    if (may_be(p, var, x)) {
      only = x;
      n++;
    }
  return n == 1 ? only : LABELS;
}

/* Where one label is left to a step's variable and one of its tables at most has several entries,
 * its list is that table's, moved. false: it is not so. */
static bool move_list(psplit_i_worth *p, const step *s, uint8_t label, list *out) {
  list longest = {0, 0};
  entry moved;
  *out = (list){0, 0};
  if (!set_own(p, s, label, &moved)) return true;
  for (uint32_t t = 0; t < s->n_tables; t++) {
    const list l = p->inside[place_of(p, s, t)];
    if (l.n == 0) return true;
    if (l.n > 1 && longest.n > 1) return false;
    if (l.n > 1) longest = l;
    if (l.n > 1) continue;
    moved.load += at(p, l)->load;
    moved.price += at(p, l)->price;
    if (moved.load > p->cap) return true;
  }
  if (!more_room(p)) return true;
  entry *to = p->pool.entries + p->pool.n;
  *out = (list){(uint32_t)p->pool.n, 0};
  if (longest.n == 0) to[out->n++] = moved;
  for (uint32_t i = 0; i < longest.n; i++) {
    const entry e = at(p, longest)[i];
    if (e.load + moved.load > p->cap) break;
    to[out->n++] = (entry){e.load + moved.load, e.price + moved.price};
  }
  p->pool.n += out->n;
  if (!psplit_i_spend(p->budget, out->n / 4)) p->late = true;
  return true;
}

static void go_forth(psplit_i_worth *p, const step *s) {
  const uint8_t only = only_label(p, s->var);
  entry own, ways[MOST_OWN];
  for (uint32_t index = 0; index < s->n_lists && !p->late; index++) {
    list *l = &p->inside[s->first_list + index];
    *l = (list){0, 0};
    if (!set_labels(p, s, index)) continue;
    if (!psplit_i_spend(p->budget, LABELS * s->n_parts / 2)) p->late = true;
    if (only < LABELS && move_list(p, s, only, l)) continue;
    clear(p, p->child_bins);
    for (uint8_t x = 0; x < LABELS; x++) {
      const uint32_t n = set_own(p, s, x, &own) ? ways_of(p, s, own, ways) : 0;
      for (uint32_t i = 0; i < n; i++) put_joined(p, s, ways[i], p->child_bins);
    }
    *l = keep(p, p->child_bins);
    if (!psplit_i_spend(p->budget, p->n_bins / 8)) p->late = true;
  }
}

/* --- and back --- */

/* An entry of one list and one of another. */
typedef struct pick {
  int32_t price, load_a, load_b;
} pick;

/* Of those with no larger load than `room` the one that is worth most; NO_PRICE: there is none. */
static pick best_of(int32_t room, const entry *a, uint32_t n_a, const entry *b, uint32_t n_b) {
  pick best = {.price = NO_PRICE};
  for (uint32_t i = 0, j = n_b; i < n_a; i++) {
    while (j > 0 && a[i].load + b[j - 1].load > room) j--;
    if (j == 0) break;
    if (a[i].price + b[j - 1].price > best.price)
      best = (pick){a[i].price + b[j - 1].price, a[i].load, b[j - 1].load};
  }
  return best;
}

/* With labels as they are: row t becomes what is outside the step, its own, and its tables before
 * t. false: nothing fits. */
static bool join_from_outside(psplit_i_worth *p, const step *s, entry own, list outside,
                              uint32_t *n_row) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < outside.n; i++) {
    const entry e = at(p, outside)[i];
    if (e.load + own.load > p->cap) break;
    p->row[0][n++] = (entry){e.load + own.load, e.price + own.price};
  }
  n_row[0] = n;
  for (uint32_t t = 0; t + 1 < s->n_tables && n > 0; t++) {
    const list l = p->inside[place_of(p, s, t)];
    n_row[t + 1] = n = sums(p, p->row[t], n, at(p, l), l.n, p->row[t + 1]);
  }
  return n > 0;
}

/* With labels as they are: what is outside each table of `s`, and the most with its variable. */
static void put_outside(psplit_i_worth *p, const step *s, entry own, list outside,
                        const size_t *first_bin, int32_t *most) {
  uint32_t n_row[MOST_JOINED + 1], n = 1;
  if (!join_from_outside(p, s, own, outside, n_row)) return;
  entry *behind = p->row[MOST_JOINED], *other = p->row[MOST_JOINED + 1];
  behind[0] = (entry){0, 0};
  for (uint32_t t = s->n_tables; t-- > 0;) {
    const uint32_t place = place_of(p, s, t);
    const size_t index = place - step_of(p, s, t)->first_list;
    const list l = p->inside[place];
    put_sums(p, p->child_bins + first_bin[t] + index * p->n_bins, p->row[t], n_row[t], behind, n,
             (entry){0, 0});
    n = sums(p, behind, n, at(p, l), l.n, other);
    entry *const joined = other;
    other = behind;
    behind = joined;
  }
  if (s->var < p->instance->n && p->label[s->var] == PSPLIT_I_INSIDE) {
    const pick best = best_of(p->cap, p->row[0], n_row[0], behind, n);
    const int32_t worth = best.price > 0 ? best.price : 0;
    if (best.price != NO_PRICE && worth > most[s->var]) most[s->var] = worth;
  }
}

static void go_back(psplit_i_worth *p, const step *s, int32_t *most) {
  size_t first_bin[MOST_JOINED + 1] = {0};
  entry own, ways[MOST_OWN];
  for (uint32_t t = 0; t < s->n_tables; t++)
    first_bin[t + 1] = first_bin[t] + (size_t)step_of(p, s, t)->n_lists * p->n_bins;
  for (size_t b = 0; b < first_bin[s->n_tables]; b += p->n_bins) clear(p, p->child_bins + b);
  for (uint32_t index = 0; index < s->n_lists && !p->late; index++) {
    const list outside = p->outside[s->first_list + index];
    if (outside.n == 0) continue;
    set_labels(p, s, index);
    for (uint8_t x = 0; x < LABELS; x++) {
      const uint32_t n = set_own(p, s, x, &own) ? ways_of(p, s, own, ways) : 0;
      for (uint32_t i = 0; i < n; i++) put_outside(p, s, ways[i], outside, first_bin, most);
    }
    if (!psplit_i_spend(p->budget, LABELS * s->n_parts)) p->late = true;
  }
  for (uint32_t t = 0; t < s->n_tables; t++) {
    const step *of = step_of(p, s, t);
    for (uint32_t i = 0; i < of->n_lists; i++)
      p->outside[of->first_list + i] =
        keep(p, p->child_bins + first_bin[t] + (size_t)i * p->n_bins);
  }
  if (!psplit_i_spend(p->budget, first_bin[s->n_tables] / 8)) p->late = true;
}

/* Operations of a step, about: list lengths are at most the products and sums of those they are
 * made of, and kept in `inside`. */
static uint64_t step_ops(psplit_i_worth *p, const step *s) {
  uint64_t ops = 0;
  entry own;
  for (uint32_t index = 0; index < s->n_lists; index++) {
    uint64_t all = 0;
    if (!set_labels(p, s, index)) continue;
    for (uint8_t x = 0; x < LABELS; x++) {
      if (!set_own(p, s, x, &own)) continue;
      uint64_t n = 1;
      for (uint32_t t = 0; t < s->n_tables; t++) {
        n *= p->inside[place_of(p, s, t)].n;
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

uint64_t psplit_i_worth_ops(psplit_i_worth *worth, uint32_t n_parts) {
  uint64_t ops = 0;
  worth->cap = INT32_MAX;
  worth->shift = 62; /* what is ruled out is, whatever it takes */
  worth->price = worth->receiver = NULL;
  worth->sides = NULL;
  worth->n_bins = n_parts;
  for (uint32_t k = 0; k < worth->n_vars; k++) ops += step_ops(worth, &worth->steps[k]);
  return ops;
}

/* Room for lists of that many bins. */
static bool make_room(psplit_i_worth *p, uint32_t n_bins) {
  p->n_bins = n_bins;
  if (n_bins <= p->most_bins) return true;
  size_t most = 1;
  for (uint32_t k = 0; k < p->n_vars; k++) {
    size_t n = 0;
    for (uint32_t t = 0; t < p->steps[k].n_tables; t++) n += step_of(p, &p->steps[k], t)->n_lists;
    if (n > most) most = n;
  }
  p->bins = PSPLIT_NEW(&p->arena, bin, n_bins);
  p->child_bins = PSPLIT_NEW(&p->arena, bin, most * n_bins);
  for (uint32_t r = 0; r < MOST_JOINED + 2; r++) p->row[r] = PSPLIT_NEW(&p->arena, entry, n_bins);
  p->most_bins = n_bins;
  return !p->arena.failed;
}

/* Makes all tables. */
static psplit_code fill(psplit_i_worth *p, int64_t limit, uint32_t n_parts, const int32_t *price,
                        const uint8_t *sides, psplit_i_budget *budget) {
  if (!make_room(p, n_parts)) return PSPLIT_NOMEM;
  p->shift = 0;
  while (limit >> p->shift >= 1 << 28) p->shift++;
  p->cap = (int32_t)(limit >> p->shift);
  p->scale = ((uint64_t)p->n_bins << 32) / ((uint64_t)p->cap + 1);
  p->price = price;
  p->sides = sides;
  p->budget = budget;
  p->late = false;
  p->pool.n = 0;
  for (uint32_t k = 0; k < p->n_vars && !p->late; k++) go_forth(p, &p->steps[k]);
  return p->failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

psplit_code psplit_i_worth_most(psplit_i_worth *worth, int64_t limit, uint32_t n_parts,
                                const int32_t *price, const int32_t *receiver,
                                psplit_i_budget *budget, int64_t *out_most, int32_t *most,
                                bool *out_done) {
  psplit_i_worth *p = worth;
  p->receiver = receiver;
  const psplit_code code = fill(p, limit, n_parts, price, NULL, budget);
  if (code != PSPLIT_OK) return code;
  const step *last = &p->steps[p->n_vars - 1];
  if (!p->late) {
    const list l = p->inside[last->first_list];
    *out_most = l.n ? at(p, l)[l.n - 1].price : 0;
  }
  if (most && !p->late) {
    for (uint32_t v = 0; v < p->instance->n; v++) most[v] = -1;
    clear(p, p->bins);
    put(p, p->bins, 0, 0);
    p->outside[last->first_list] = keep(p, p->bins);
    for (uint32_t k = p->n_vars; k-- > 0 && !p->late;) go_back(p, &p->steps[k], most);
  }
  *out_done = !p->late;
  return p->failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

/* --- a stage --- */

/* Row t becomes what the first tables of a step, up to t and but for the last one, bring together,
 * with labels as they are. */
static void join_inside(psplit_i_worth *p, const step *s, uint32_t *n_row) {
  for (uint32_t t = 0; t + 1 < s->n_tables; t++) {
    const list l = p->inside[place_of(p, s, t)];
    n_row[t] = l.n;
    if (t == 0 && l.n > 0) memcpy(p->row[0], at(p, l), l.n * sizeof(entry));
    if (t > 0) n_row[t] = sums(p, p->row[t - 1], n_row[t - 1], at(p, l), l.n, p->row[t]);
  }
}

/* What table t brings at best with those before it, within `room`. */
static pick best_at(const psplit_i_worth *p, const step *s, uint32_t t, const uint32_t *n_row,
                    int32_t room) {
  static const entry none = {0, 0};
  const list l = p->inside[place_of(p, s, t)];
  return best_of(room, t ? p->row[t - 1] : &none, t ? n_row[t - 1] : 1, at(p, l), l.n);
}

/* The label of the step's variable with which most is worth while within its room. */
static bool choose_label(psplit_i_worth *p, const step *s, int32_t room, uint8_t *out_label,
                         int32_t *out_rest) {
  uint32_t n_row[MOST_JOINED];
  int32_t most = -1;
  entry own;
  for (uint8_t x = 0; x < LABELS; x++) {
    if (!set_own(p, s, x, &own) || own.load > room) continue;
    pick best = {0, 0, 0};
    join_inside(p, s, n_row);
    if (s->n_tables > 0) best = best_at(p, s, s->n_tables - 1, n_row, room - own.load);
    if (best.price < 0 || best.price + own.price <= most) continue;
    most = best.price + own.price;
    *out_label = x;
    *out_rest = room - own.load;
  }
  return most >= 0;
}

/* Shares out among the tables of a step what load its own leaves. Lists say a little less than what
 * is needed, so what is too much is shared as well. */
static bool share_out(psplit_i_worth *p, const step *s, int32_t rest) {
  uint32_t n_row[MOST_JOINED];
  join_inside(p, s, n_row);
  for (uint32_t t = s->n_tables; t-- > 0;) {
    const pick best = best_at(p, s, t, n_row, rest);
    if (best.price < 0) return false;
    const int32_t more = t ? (rest - best.load_a - best.load_b) / 2 : rest - best.load_b;
    p->room[step_of(p, s, t) - p->steps] = best.load_b + more;
    rest -= best.load_b + more;
  }
  return true;
}

/* Labels of a stage that is worth about the most within a load, from the last step on. */
static bool trace(psplit_i_worth *p, int32_t load) {
  p->room[p->n_vars - 1] = load;
  for (uint32_t k = p->n_vars; k-- > 0;) {
    const step *s = &p->steps[k];
    uint8_t label = 0;
    int32_t rest = 0;
    if (!choose_label(p, s, p->room[k], &label, &rest)) return false;
    p->label[s->var] = label;
    if (!share_out(p, s, rest)) return false;
  }
  return true;
}

/* Takes along what nets that are left out say; false: it is on another side for certain. */
static bool take_along(psplit_i_worth *p) {
  const psplit_i_instance *in = p->instance;
  for (uint32_t v = 0; v < in->n; v++)
    for (uint32_t l = in->succ_off[v]; l < in->succ_off[v + 1]; l++) {
      const uint32_t w = in->succ[l];
      if (p->label[w] >= p->label[v]) continue;
      p->label[w] = p->label[v];
      if (!may_be(p, w, p->label[w])) return false;
    }
  return true;
}

/* The load of the stage by the instance. */
static int64_t load_of(const psplit_i_worth *p) {
  const psplit_i_instance *in = p->instance;
  int64_t load = 0;
  for (uint32_t v = 0; v < in->n; v++) load += p->label[v] == PSPLIT_I_INSIDE ? in->w[v] : 0;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const uint8_t producer = p->label[in->net_pin[in->net_off[e]]];
    bool pays = false;
    for (uint32_t q = in->net_off[e] + 1; q < in->net_off[e + 1]; q++)
      pays = pays || p->label[in->net_pin[q]] == producer + 1;
    load += net_cost(p, e, pays, producer);
  }
  return load;
}

psplit_code psplit_i_worth_stage(psplit_i_worth *worth, int64_t limit, uint32_t n_parts,
                                 const int32_t *price, const uint8_t *sides,
                                 psplit_i_budget *budget, uint8_t *out_side, bool *out_found) {
  psplit_i_worth *p = worth;
  p->receiver = NULL;
  *out_found = false;
  const psplit_code code = fill(p, limit, n_parts, price, sides, budget);
  if (code != PSPLIT_OK || p->late) return code;
  for (int64_t cap = limit, k = 0; k < MOST_TRACES && cap >= 0 && !*out_found; k++) {
    if (!trace(p, (int32_t)(cap >> p->shift)) || !take_along(p)) break;
    const int64_t load = load_of(p);
    *out_found = load <= limit;
    cap -= load - limit;
  }
  if (*out_found) memcpy(out_side, p->label, p->instance->n * sizeof *out_side);
  return PSPLIT_OK;
}

void psplit_i_worth_free(psplit_i_worth *worth) {
  if (!worth) return;
  free(worth->pool.entries);
  psplit_i_arena_fini(&worth->arena);
  free(worth);
}
