/* Downsets on the lower convex hull of crossing communication over work, by minimum cuts: between
 * two downsets on the hull, the one furthest below their connecting line is a minimum cut in which
 * work has the slope of that line as its price. Source: Eisner, Severance, "Mathematical techniques
 * for efficient record segmentation in large shared databases", JACM 1976. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checked.h"
#include "cut_network.h"
#include "downset_cuts.h"
#include "problem.h"

enum {
  SOURCE = PSPLIT_I_SOURCE,
  SINK = PSPLIT_I_SINK,
  N_ENDS = 2,
  WHOLE_STEPS = 5,  /* minimum cuts for a part of all work */
  WINDOW_DEPTH = 4, /* halvings of a window's hull */
  OVERLAP = 2,      /* a window begins in the middle of the one before */
  RATE = 2          /* operations that take the time of one of the budget: a cache holds them */
};

static const int64_t WINDOWS[] = {32, 8, 2}; /* to a stage */

/* Order: those that are inside, free ones, those that are outside. */
typedef struct cutter {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  psplit_i_budget *budget;
  psplit_i_downsets *set;
  psplit_i_arena arena;
  psplit_i_cut_network network; /* its last sides are the downset that is taken */
  const uint32_t *order;
  uint32_t a, b; /* places of free clusters: from a on, before b */
  uint32_t *at;  /* [n] place of a cluster */
  int64_t *cost; /* [n_nets] of crossing, at both ends */
  double all_cost;
  uint32_t *seen; /* [n_nets] */
  uint32_t n_seen;
  uint64_t *bits; /* [words] */
} cutter;

/* The work of a downset in the free clusters, and what crosses it on their nets. */
typedef struct corner {
  int64_t work, cut;
} corner;

static psplit_code cutter_init(cutter *c) {
  const psplit_i_instance *instance = c->instance;
  const uint32_t n_nets = instance->n_nets;
  psplit_i_arena_init(&c->arena, 0);
  c->at = PSPLIT_NEW(&c->arena, uint32_t, instance->n);
  c->cost = PSPLIT_NEW(&c->arena, int64_t, n_nets);
  c->seen = PSPLIT_NEW(&c->arena, uint32_t, n_nets);
  c->bits = PSPLIT_NEW(&c->arena, uint64_t, c->set->words);
  if (!c->at || !c->cost || !c->seen || !c->bits) return PSPLIT_NOMEM;
  for (uint32_t e = 0; e < n_nets; e++) {
    for (uint32_t t = 0; t < instance->n_types; t++) {
      const size_t cell = (size_t)t * n_nets + e;
      const int64_t both = instance->send[cell] + instance->recv[cell];
      if (c->automaton->count[t] > 0 && both > c->cost[e]) c->cost[e] = both;
    }
    c->all_cost += (double)c->cost[e];
  }
  return PSPLIT_OK;
}

static void cutter_fini(cutter *c) {
  psplit_i_cut_network_fini(&c->network);
  psplit_i_arena_fini(&c->arena);
}

static uint32_t node_of(const cutter *c, uint32_t cluster) {
  const uint32_t at = c->at[cluster];
  return at < c->a ? SOURCE : at >= c->b ? SINK : N_ENDS + at - c->a;
}

static void arc(cutter *c, uint32_t from, uint32_t to, int64_t cap) {
  psplit_i_cut_network_arc(&c->network, from, to, cap);
}

static void add_net(cutter *c, uint32_t e, int64_t scale) {
  const uint32_t *pins = c->instance->net_pin + c->instance->net_off[e];
  const uint32_t n_pins = c->instance->net_off[e + 1] - c->instance->net_off[e];
  const uint32_t from = node_of(c, pins[0]);
  const int64_t cap = psplit_i_sat_mul_i64(c->cost[e], scale);
  bool leaves = false;
  for (uint32_t k = 1; k < n_pins; k++) leaves |= c->at[pins[k]] >= c->b;
  psplit_i_spend(c->budget, 2 * (uint64_t)n_pins);
  if (cap == 0 || (leaves && from == SOURCE)) return; /* paid whatever is cut, or by none */
  if (leaves) {
    arc(c, from, SINK, cap);
    return;
  }
  const uint32_t fan = psplit_i_cut_network_node(&c->network);
  arc(c, from, fan, cap);
  for (uint32_t k = 1; k < n_pins; k++) arc(c, fan, node_of(c, pins[k]), PSPLIT_I_INF);
}

/* The price of a free cluster's work, and the clusters that it requires inside. */
static void add_cluster(cutter *c, uint32_t i, int64_t price) {
  const psplit_i_instance *instance = c->instance;
  const uint32_t here = node_of(c, i);
  const int64_t all = psplit_i_sat_mul_i64(c->automaton->min_time[i], llabs(price));
  arc(c, price > 0 ? SOURCE : here, price > 0 ? here : SINK, all);
  for (uint32_t l = instance->pred_off[i]; l < instance->pred_off[i + 1]; l++)
    arc(c, here, node_of(c, instance->pred[l]), PSPLIT_I_INF);
}

/* Whether a net is visited for the first time since n_seen was incremented. */
static bool first_met(cutter *c, uint32_t e) {
  if (c->seen[e] == c->n_seen) return false;
  c->seen[e] = c->n_seen;
  return true;
}

/* Builds the network of the free clusters, where crossings are multiplied by `scale`, and work has
 * a price. */
static void make(cutter *c, int64_t scale, int64_t price) {
  const psplit_i_instance *instance = c->instance;
  psplit_i_cut_network_begin(&c->network);
  c->n_seen++;
  for (uint32_t k = c->a; k < c->b; k++) (void)psplit_i_cut_network_node(&c->network);
  for (uint32_t k = c->a; k < c->b; k++) {
    const uint32_t i = c->order[k];
    add_cluster(c, i, price);
    for (uint32_t l = instance->inc_off[i]; l < instance->inc_off[i + 1]; l++)
      if (first_met(c, instance->inc[l] >> 1)) add_net(c, instance->inc[l] >> 1, scale);
  }
}

static bool crosses(const cutter *c, uint32_t e) {
  const uint32_t *pins = c->instance->net_pin + c->instance->net_off[e];
  const uint32_t n_pins = c->instance->net_off[e + 1] - c->instance->net_off[e];
  if (!psplit_i_holds(c->bits, pins[0])) return false;
  for (uint32_t k = 1; k < n_pins; k++)
    if (!psplit_i_holds(c->bits, pins[k])) return true;
  return false;
}

/* Adds the source side of the network to the set, and measures it. */
static bool take(cutter *c, corner *out) {
  const psplit_i_instance *instance = c->instance;
  *out = (corner){0};
  memset(c->bits, 0, c->set->words * sizeof *c->bits);
  for (uint32_t k = 0; k < c->b; k++) {
    const uint32_t i = c->order[k];
    if (k >= c->a && !c->network.reached.items[N_ENDS + k - c->a]) continue;
    c->bits[i / 64] |= UINT64_C(1) << (i % 64);
    if (k >= c->a) out->work += c->automaton->min_time[i];
  }
  c->n_seen++;
  for (uint32_t k = c->a; k < c->b; k++) {
    const uint32_t i = c->order[k];
    for (uint32_t l = instance->inc_off[i]; l < instance->inc_off[i + 1]; l++) {
      const uint32_t e = instance->inc[l] >> 1;
      if (first_met(c, e) && crosses(c, e)) out->cut += c->cost[e];
    }
  }
  psplit_i_spend(c->budget, c->b / 2 + 8 * (uint64_t)(c->b - c->a));
  return psplit_i_downsets_add(c->set, c->bits);
}

static bool too_large(const cutter *c, int64_t scale, int64_t price) {
  const double most = (double)PSPLIT_I_INF / 4;
  return (double)scale * c->all_cost > most ||
         fabs((double)price) * (double)c->automaton->total_min_time > most;
}

/* Finds the downset furthest below the line between two corners. *out_below: there is one. */
static bool cut(cutter *c, const corner *low, const corner *high, corner *out, bool *out_below) {
  int64_t scale = high->work - low->work, price = high->cut - low->cut;
  int64_t value = 0;
  *out_below = false;
  if (scale <= 0 || psplit_i_expired(c->budget)) return true;
  /* Nearly the slope, where a cut could reach what keeps downsets downsets. */
  for (; too_large(c, scale, price); scale /= 2) price /= 2;
  if (scale == 0) return true;
  make(c, scale, price);
  if (!psplit_i_cut_network_run(&c->network, c->budget, &value)) return !c->network.failed;
  if (!take(c, out)) return false;
  const double line = (double)(out->cut - low->cut) * (double)(high->work - low->work) -
                      (double)(out->work - low->work) * (double)(high->cut - low->cut);
  *out_below = line < 0; /* perhaps at a corner's own work, of clusters without any */
  return true;
}

/* All free clusters, or none of them. */
static bool take_end(cutter *c, bool all, corner *out) {
  const size_t n = N_ENDS + c->b - c->a;
  c->network.reached.n = 0;
  if (!psplit_i_vec_reserve(&c->network.reached, n)) return false;
  memset(c->network.reached.items, all, n * sizeof *c->network.reached.items);
  return take(c, out);
}

/* Finds the hull between two corners, recursively. */
static bool cut_between(cutter *c, const corner *low, const corner *high, uint32_t depth) {
  corner middle;
  bool below;
  if (depth == WINDOW_DEPTH) return true;
  if (!cut(c, low, high, &middle, &below)) return false;
  if (!below) return true;
  return cut_between(c, low, &middle, depth + 1) && cut_between(c, &middle, high, depth + 1);
}

static bool cut_window(cutter *c) {
  corner low, high;
  if (c->b - c->a < 2) return true;
  return take_end(c, false, &low) && take_end(c, true, &high) && cut_between(c, &low, &high, 0);
}

/* Searches all windows of one length. */
static bool cut_windows(cutter *c, int64_t length) {
  const uint32_t n = c->instance->n;
  const int64_t *min_time = c->automaton->min_time;
  int64_t before = 0, next = 0;
  for (uint32_t a = 0; a < n && !psplit_i_expired(c->budget); before += min_time[c->order[a++]]) {
    int64_t inside = 0;
    if (before < next) continue;
    next = before + length / OVERLAP + 1;
    c->a = c->b = a;
    while (c->b < n && inside < length) inside += min_time[c->order[c->b++]];
    if (!cut_window(c)) return false;
  }
  return true;
}

psplit_code psplit_i_downset_cuts_near(const psplit_i_instance *instance,
                                       const psplit_i_automaton *automaton, const uint32_t *order,
                                       int64_t stage, psplit_i_budget *budget,
                                       psplit_i_downsets *io_set) {
  psplit_i_budget cached = psplit_i_budget_rated(budget, 1, RATE);
  cutter c = {
    .instance = instance, .automaton = automaton, .order = order, .budget = &cached, .set = io_set};
  psplit_code code = cutter_init(&c);
  if (code != PSPLIT_OK) goto out;
  for (uint32_t k = 0; k < instance->n; k++) c.at[order[k]] = k;
  for (size_t k = 0; k < sizeof WINDOWS / sizeof *WINDOWS; k++)
    PSPLIT_TRY(cut_windows(&c, stage / WINDOWS[k] + 1) ? PSPLIT_OK : PSPLIT_NOMEM);
out:
  cutter_fini(&c);
  psplit_i_spend_rated(budget, &cached, RATE);
  return code;
}

/* Sorts clusters into c->at and order: those in all downsets of the given work, those in some, and
 * those in none. Returns the work that is inside. */
static int64_t sort_by_work(cutter *c, const psplit_i_depths *depths, int64_t work,
                            uint32_t *order) {
  const int64_t total = c->automaton->total_min_time;
  int64_t inside = 0;
  uint32_t n = 0;
  for (uint32_t part = 0; part < 3; part++) {
    for (uint32_t i = 0; i < c->instance->n; i++) {
      const bool in = total - depths->behind[i]<work, out = depths->before[i]> work;
      if ((in ? 0 : out ? 2 : 1) != part) continue;
      if (in) inside += c->automaton->min_time[i];
      c->at[i] = n;
      order[n++] = i;
    }
    if (part == 0) c->a = n;
    if (part == 1) c->b = n;
  }
  psplit_i_spend(c->budget, 3 * (uint64_t)n);
  return inside;
}

/* Finds downsets on both sides of the given work, by bisection. */
static bool cut_at(cutter *c, int64_t work) {
  corner low, high, middle;
  if (c->b - c->a < 2) return true;
  if (!take_end(c, false, &low) || !take_end(c, true, &high)) return false;
  for (uint32_t k = 0; k < WHOLE_STEPS; k++) {
    bool below;
    if (!cut(c, &low, &high, &middle, &below)) return false;
    if (!below) return true;
    *(middle.work < work ? &low : &high) = middle;
  }
  return true;
}

psplit_code psplit_i_downset_cuts_whole(const psplit_i_instance *instance,
                                        const psplit_i_automaton *automaton,
                                        const psplit_i_depths *depths, uint32_t n_parts,
                                        psplit_i_budget *budget, psplit_i_downsets *io_set) {
  psplit_i_budget cached = psplit_i_budget_rated(budget, 1, RATE);
  cutter c = {.instance = instance, .automaton = automaton, .budget = &cached, .set = io_set};
  psplit_code code = cutter_init(&c);
  uint32_t *order = PSPLIT_NEW(&c.arena, uint32_t, instance->n);
  if (code == PSPLIT_OK && !order) code = PSPLIT_NOMEM;
  c.order = order;
  for (uint32_t k = 1; k < n_parts && code == PSPLIT_OK && !psplit_i_expired(&cached); k++) {
    const int64_t work = (int64_t)((double)automaton->total_min_time * k / n_parts);
    const int64_t inside = sort_by_work(&c, depths, work, order);
    if (!cut_at(&c, work - inside)) code = PSPLIT_NOMEM;
  }
  cutter_fini(&c);
  psplit_i_spend_rated(budget, &cached, RATE);
  return code;
}
