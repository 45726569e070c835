/* The program: an elimination of variables (Bertele and Brioschi, 1972), with knapsacks as values.
 *
 * Variables are clusters, and one for each net with more than MOST_DIRECT pins: whether the stage
 * pays for it. That keeps tables narrow where a tensor goes to many. Parts are what costs or rules
 * out: nets, or pairs of such a variable with a pin. A table lists (load, price), both growing, and
 * what lies between two entries is taken for the better of both. The way back gives what is worth
 * most with each cluster. */
#include "stage_worth.h"

#include <stdlib.h>
#include <string.h>

enum {
  MOST_WIDTH = 6,
  MOST_DIRECT = 3, /* pins */
  BEFORE = 0,
  INSIDE = 1,
  BEHIND = 2,
  LABELS = 3,
  MOST_JOINED = 64, /* tables that one variable joins */
  JOINED_PART = 4,  /* of two long lists, one of so many pairs is looked at */
  WAYS = 3          /* in which two lists are joined, forth and back */
};

/* A part: `net` with all its pins (n_scope pins), or of a net with a variable of its own what that
 * costs (scope: producer, variable), or when it must (scope: producer, variable, consumer). */
typedef enum part_kind { WHOLE_NET, PAYS, MUST_PAY, TABLE } part_kind;

typedef struct part {
  part_kind kind;
  uint32_t of; /* net, or the step whose table it is */
  uint32_t n_scope;
  uint32_t scope[MOST_WIDTH];
  bool gone;
} part;

typedef struct entry {
  int32_t load, price;
} entry;

/* Of loads that are close: the least, and the largest price. */
typedef struct bin {
  int32_t load, price;
} bin;

typedef struct list {
  uint32_t first, n; /* of the pool */
} list;

/* Variable `var` goes: its parts, and what is left of them. Tables are indexed by the labels of
 * `scope`, the first fastest. */
typedef struct step {
  uint32_t var, n_scope, scope[MOST_WIDTH];
  uint32_t n_parts, n_tables; /* parts that are tables come first */
  uint32_t *parts;
  uint32_t first_list, n_lists;
} step;

typedef struct use {
  uint32_t part, next;
} use;

typedef struct pool {
  entry *entries;
  size_t n, most;
} pool;

struct psplit_i_worth {
  const psplit_i_instance *instance;
  psplit_i_arena arena;
  uint32_t n_vars, n_parts;
  part *parts;
  use *uses;
  uint32_t *first_use; /* by variable */
  uint32_t n_uses;
  step *steps;
  list *inside, *outside; /* by step and labels */
  uint32_t n_lists;
  pool pool;
  uint8_t *label; /* by variable */
  uint32_t shift, most_bins, n_bins;
  int32_t cap;    /* the limit; loads are shifted, and so rounded down */
  uint64_t scale; /* bin of a load: (load * scale) >> 32 */
  const int32_t *price;
  bin *bins, *child_bins;      /* of the list at work; of those outside the tables of a step */
  entry *row[MOST_JOINED + 2]; /* [n_bins] each */
  uint32_t loose;              /* table of what is not connected to the rest, or NONE */
  psplit_i_budget *budget;
  bool failed, late;
};

/* --- the order of elimination --- */

static void use_part(psplit_i_worth *p, uint32_t part_id) {
  const part *q = &p->parts[part_id];
  for (uint32_t i = 0; i < q->n_scope; i++) {
    p->uses[p->n_uses] = (use){part_id, p->first_use[q->scope[i]]};
    p->first_use[q->scope[i]] = p->n_uses++;
  }
}

static part *add_part(psplit_i_worth *p, part_kind kind, uint32_t of) {
  part *q = &p->parts[p->n_parts++];
  *q = (part){.kind = kind, .of = of};
  return q;
}

static void add_net(psplit_i_worth *p, uint32_t e, uint32_t *inout_var) {
  const psplit_i_instance *in = p->instance;
  const uint32_t *pin = in->net_pin + in->net_off[e];
  const uint32_t n = in->net_off[e + 1] - in->net_off[e];
  if (n <= MOST_DIRECT) {
    part *q = add_part(p, WHOLE_NET, e);
    q->n_scope = n;
    memcpy(q->scope, pin, n * sizeof *pin);
    use_part(p, p->n_parts - 1);
    return;
  }
  const uint32_t var = (*inout_var)++;
  for (uint32_t i = 0; i < n; i++) {
    part *q = add_part(p, i ? MUST_PAY : PAYS, e);
    q->n_scope = i ? 3 : 2;
    q->scope[0] = pin[0];
    q->scope[1] = var;
    q->scope[2] = pin[i];
    use_part(p, p->n_parts - 1);
  }
}

/* What the table of `var` would be indexed by, and how many tables it joins; false: too many. */
static bool scope_of(const psplit_i_worth *p, uint32_t var, uint32_t *scope, uint32_t *out_n,
                     uint32_t *out_tables) {
  uint32_t n = 0, tables = 0;
  for (uint32_t l = p->first_use[var]; l != PSPLIT_NONE; l = p->uses[l].next) {
    const part *q = &p->parts[p->uses[l].part];
    if (q->gone) continue;
    tables += q->kind == TABLE;
    for (uint32_t i = 0; i < q->n_scope; i++) {
      uint32_t k = 0;
      if (q->scope[i] == var) continue;
      while (k < n && scope[k] != q->scope[i]) k++;
      if (k < n) continue;
      if (n == MOST_WIDTH) return false;
      scope[n++] = q->scope[i];
    }
  }
  *out_n = n;
  *out_tables = tables;
  return tables < MOST_JOINED;
}

static uint32_t power(uint32_t n) {
  uint32_t all = 1;
  while (n-- > 0) all *= LABELS;
  return all;
}

static bool eliminate(psplit_i_worth *p, uint32_t k, uint32_t var) {
  step *s = &p->steps[k];
  uint32_t n_tables, n = 0;
  s->var = var;
  if (!scope_of(p, var, s->scope, &s->n_scope, &n_tables)) return false;
  for (uint32_t l = p->first_use[var]; l != PSPLIT_NONE; l = p->uses[l].next)
    n += !p->parts[p->uses[l].part].gone;
  s->parts = PSPLIT_NEW(&p->arena, uint32_t, n + 1);
  if (!s->parts) return !(p->failed = true);
  if (p->loose != PSPLIT_NONE) {
    s->parts[s->n_parts++] = p->loose;
    s->n_tables++;
    p->loose = PSPLIT_NONE;
  }
  for (int tables = 1; tables >= 0; tables--)
    for (uint32_t l = p->first_use[var]; l != PSPLIT_NONE; l = p->uses[l].next) {
      part *q = &p->parts[p->uses[l].part];
      if (q->gone || (q->kind == TABLE) != (tables == 1)) continue;
      s->parts[s->n_parts++] = p->uses[l].part;
      s->n_tables += tables == 1;
      q->gone = true;
    }
  s->first_list = p->n_lists;
  s->n_lists = power(s->n_scope);
  p->n_lists += s->n_lists;
  part *q = add_part(p, TABLE, k);
  q->n_scope = s->n_scope;
  memcpy(q->scope, s->scope, s->n_scope * sizeof *s->scope);
  use_part(p, p->n_parts - 1);
  if (s->n_scope == 0) p->loose = p->n_parts - 1;
  return true;
}

/* Fewest neighbours first, of those the one behind a single table: chains are eaten from an end. */
static uint32_t rank_of(const psplit_i_worth *p, uint32_t var) {
  uint32_t scope[MOST_WIDTH], n, tables;
  if (!scope_of(p, var, scope, &n, &tables)) return PSPLIT_NONE;
  return 4 * n + (tables == 1 ? 0 : tables == 0 ? 1 : tables == 2 ? 2 : 3);
}

static bool order(psplit_i_worth *p) {
  uint32_t *rank = PSPLIT_NEW(&p->arena, uint32_t, p->n_vars);
  bool *gone = PSPLIT_NEW(&p->arena, bool, p->n_vars);
  if (p->arena.failed) return !(p->failed = true);
  for (uint32_t v = 0; v < p->n_vars; v++) rank[v] = rank_of(p, v);
  for (uint32_t k = 0; k < p->n_vars; k++) {
    uint32_t best = PSPLIT_NONE;
    for (uint32_t v = 0; v < p->n_vars; v++)
      if (!gone[v] && rank[v] != PSPLIT_NONE && (best == PSPLIT_NONE || rank[v] < rank[best]))
        best = v;
    psplit_i_spend(p->budget, p->n_vars / 4);
    if (best == PSPLIT_NONE || !eliminate(p, k, best)) return false;
    gone[best] = true;
    for (uint32_t i = 0; i < p->steps[k].n_scope; i++)
      rank[p->steps[k].scope[i]] = rank_of(p, p->steps[k].scope[i]);
  }
  return true;
}

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

/* Nets with more pins than `most_pins` are left out. */
static bool build(psplit_i_worth *p, uint32_t most_pins) {
  const psplit_i_instance *in = p->instance;
  size_t n_parts = 0;
  uint32_t var = in->n;
  p->n_vars = in->n;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const uint32_t n = in->net_off[e + 1] - in->net_off[e];
    if (n > most_pins) continue;
    p->n_vars += n > MOST_DIRECT;
    n_parts += n > MOST_DIRECT ? n : 1;
  }
  p->loose = PSPLIT_NONE;
  p->parts = PSPLIT_NEW(&p->arena, part, n_parts + p->n_vars);
  p->uses = PSPLIT_NEW(&p->arena, use, 3 * n_parts + (size_t)MOST_WIDTH * p->n_vars);
  p->first_use = PSPLIT_NEW(&p->arena, uint32_t, p->n_vars);
  p->steps = PSPLIT_NEW(&p->arena, step, p->n_vars);
  p->label = PSPLIT_NEW(&p->arena, uint8_t, p->n_vars);
  p->n_parts = p->n_uses = p->n_lists = 0;
  if (p->arena.failed) return !(p->failed = true);
  memset(p->first_use, 0xff, p->n_vars * sizeof *p->first_use);
  for (uint32_t e = 0; e < in->n_nets; e++)
    if (in->net_off[e + 1] - in->net_off[e] <= most_pins) add_net(p, e, &var);
  if (!order(p)) return false;
  p->inside = PSPLIT_NEW(&p->arena, list, p->n_lists);
  p->outside = PSPLIT_NEW(&p->arena, list, p->n_lists);
  return !(p->failed = p->arena.failed);
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
    ok = build(p, most_pins);
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
  for (uint32_t b = 0; b < p->n_bins; b++) bins[b] = (bin){INT32_MAX, -1};
}

static inline void put(const psplit_i_worth *p, bin *bins, int32_t load, int32_t price) {
  bin *b = &bins[((uint64_t)(uint32_t)load * p->scale) >> 32];
  if (load < b->load) b->load = load;
  if (price > b->price) b->price = price;
}

/* What bins hold, without what takes more and is worth no more. */
static uint32_t take(const psplit_i_worth *p, const bin *bins, entry *out) {
  uint32_t n = 0;
  int32_t last = -1;
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
  if (!psplit_i_spend(p->budget, ops / 2)) p->late = true;
}

static uint32_t sums(psplit_i_worth *p, const entry *a, uint32_t n_a, const entry *b, uint32_t n_b,
                     entry *out) {
  clear(p, p->bins);
  put_sums(p, p->bins, a, n_a, b, n_b, (entry){0, 0});
  return take(p, p->bins, out);
}

static list keep(psplit_i_worth *p, const bin *bins) {
  if (p->pool.most - p->pool.n < p->n_bins) {
    const size_t most = 2 * p->pool.most + 1024 * (size_t)p->n_bins;
    entry *more = realloc(p->pool.entries, most * sizeof *more);
    if (!more) {
      p->failed = p->late = true;
      return (list){0, 0};
    }
    p->pool.entries = more;
    p->pool.most = most;
  }
  const list l = {(uint32_t)p->pool.n, take(p, bins, p->pool.entries + p->pool.n)};
  p->pool.n += l.n;
  return l;
}

/* --- costs --- */

static int64_t net_cost(const psplit_i_worth *p, uint32_t e, bool pays, uint8_t producer) {
  if (!pays || producer == BEHIND) return 0;
  return (producer == INSIDE ? p->instance->send : p->instance->recv)[e];
}

/* What a part costs with labels as they are; -1: it rules them out. */
static int64_t cost_of(const psplit_i_worth *p, const part *q) {
  const uint8_t producer = p->label[q->scope[0]];
  bool pays = false;
  if (q->kind == PAYS) return net_cost(p, q->of, p->label[q->scope[1]] == 1, producer);
  for (uint32_t i = q->kind == MUST_PAY ? 2 : 1; i < q->n_scope; i++) {
    const uint8_t consumer = p->label[q->scope[i]];
    if (consumer < producer) return -1;
    /* A net from before is received by consumers inside; one from inside is sent behind. */
    pays = pays || consumer == producer + 1;
  }
  if (q->kind == MUST_PAY) return pays && p->label[q->scope[1]] == 0 ? -1 : 0;
  return net_cost(p, q->of, pays, producer);
}

/* Load and price of the variable of `s` and of its parts that are no tables; false: ruled out. */
static bool own_of(const psplit_i_worth *p, const step *s, entry *out) {
  int64_t load = 0;
  *out = (entry){0, 0};
  for (uint32_t i = s->n_tables; i < s->n_parts; i++) {
    const int64_t cost = cost_of(p, &p->parts[s->parts[i]]);
    if (cost < 0) return false;
    load += cost >> p->shift;
    if (load > p->cap) return false;
  }
  if (s->var < p->instance->n && p->label[s->var] == INSIDE) {
    load += p->instance->w[s->var] >> p->shift;
    out->price = p->price ? p->price[s->var] : 0;
  }
  if (load > p->cap) return false;
  out->load = (int32_t)load;
  return true;
}

static void set_labels(psplit_i_worth *p, const step *s, uint32_t index) {
  for (uint32_t i = 0; i < s->n_scope; i++, index /= LABELS)
    p->label[s->scope[i]] = (uint8_t)(index % LABELS);
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

static uint8_t labels_of(const psplit_i_worth *p, uint32_t var) {
  return var < p->instance->n ? LABELS : 2;
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

static void go_forth(psplit_i_worth *p, const step *s) {
  entry own;
  for (uint32_t index = 0; index < s->n_lists && !p->late; index++) {
    set_labels(p, s, index);
    clear(p, p->child_bins);
    for (uint8_t x = 0; x < labels_of(p, s->var); x++) {
      p->label[s->var] = x;
      if (own_of(p, s, &own)) put_joined(p, s, own, p->child_bins);
    }
    p->inside[s->first_list + index] = keep(p, p->child_bins);
    if (!psplit_i_spend(p->budget, LABELS * s->n_parts + p->n_bins / 2)) p->late = true;
  }
}

/* --- and back --- */

/* The most that an entry of a and one of b are worth within the limit, or -1. */
static int32_t best_of(const psplit_i_worth *p, const entry *a, uint32_t n_a, const entry *b,
                       uint32_t n_b) {
  int32_t best = -1;
  for (uint32_t i = 0, j = n_b; i < n_a; i++) {
    while (j > 0 && a[i].load + b[j - 1].load > p->cap) j--;
    if (j == 0) break;
    if (a[i].price + b[j - 1].price > best) best = a[i].price + b[j - 1].price;
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
  if (s->var < p->instance->n && p->label[s->var] == INSIDE) {
    const int32_t best = best_of(p, p->row[0], n_row[0], behind, n);
    if (best > most[s->var]) most[s->var] = best;
  }
}

static void go_back(psplit_i_worth *p, const step *s, int32_t *most) {
  size_t first_bin[MOST_JOINED + 1] = {0};
  entry own;
  for (uint32_t t = 0; t < s->n_tables; t++)
    first_bin[t + 1] = first_bin[t] + (size_t)step_of(p, s, t)->n_lists * p->n_bins;
  for (size_t b = 0; b < first_bin[s->n_tables]; b += p->n_bins) clear(p, p->child_bins + b);
  for (uint32_t index = 0; index < s->n_lists && !p->late; index++) {
    const list outside = p->outside[s->first_list + index];
    if (outside.n == 0) continue;
    set_labels(p, s, index);
    for (uint8_t x = 0; x < labels_of(p, s->var); x++) {
      p->label[s->var] = x;
      if (own_of(p, s, &own)) put_outside(p, s, own, outside, first_bin, most);
    }
    if (!psplit_i_spend(p->budget, LABELS * s->n_parts)) p->late = true;
  }
  for (uint32_t t = 0; t < s->n_tables; t++) {
    const step *of = step_of(p, s, t);
    for (uint32_t i = 0; i < of->n_lists; i++)
      p->outside[of->first_list + i] =
        keep(p, p->child_bins + first_bin[t] + (size_t)i * p->n_bins);
  }
  if (!psplit_i_spend(p->budget, first_bin[s->n_tables] / 2)) p->late = true;
}

/* Operations of a step, about: list lengths are at most the products and sums of those they are
 * made of, and kept in `inside`. */
static uint64_t step_ops(psplit_i_worth *p, const step *s) {
  uint64_t ops = 0;
  entry own;
  for (uint32_t index = 0; index < s->n_lists; index++) {
    uint64_t all = 0;
    set_labels(p, s, index);
    for (uint8_t x = 0; x < labels_of(p, s->var); x++) {
      p->label[s->var] = x;
      if (!own_of(p, s, &own)) continue;
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
  worth->price = NULL;
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

psplit_code psplit_i_worth_most(psplit_i_worth *worth, int64_t limit, uint32_t n_parts,
                                const int32_t *price, psplit_i_budget *budget, int64_t *out_most,
                                int32_t *most, bool *out_done) {
  psplit_i_worth *p = worth;
  if (!make_room(p, n_parts)) return PSPLIT_NOMEM;
  p->shift = 0;
  while (limit >> p->shift >= 1 << 28) p->shift++;
  p->cap = (int32_t)(limit >> p->shift);
  p->scale = ((uint64_t)p->n_bins << 32) / ((uint64_t)p->cap + 1);
  p->price = price;
  p->budget = budget;
  p->late = false;
  p->pool.n = 0;
  for (uint32_t k = 0; k < p->n_vars && !p->late; k++) go_forth(p, &p->steps[k]);
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

void psplit_i_worth_free(psplit_i_worth *worth) {
  if (!worth) return;
  free(worth->pool.entries);
  psplit_i_arena_fini(&worth->arena);
  free(worth);
}
