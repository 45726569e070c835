/* Iterated local search over topological orders. Theorem: every contiguous split is a division of
 * some topological order into stages. So perturbing the order, and dividing it again by dynamic
 * programming (order_dp.h), can reach all of them. */
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "branch_order.h"
#include "budget.h"
#include "instance.h"
#include "link_guess.h"
#include "local_search.h"
#include "min_heap.h"
#include "node_cut.h"
#include "order_dp.h"
#include "problem.h"
#include "team.h"

enum {
  N_CHAINS = 8,
  DEPTH_FIRST = 1,
  KEY_UNIT = 1 << 10,
  COARSER = 4,
  FEW = 256,
  CLOSE = 4,        /* the first limit: above the least load by one of so many parts of it */
  FEW_NUMBERS = 64, /* with many stages, so close that about so many of their numbers fit */
  LONG = 800,
  MOST_DIVISIONS = 8
};

/* For each attempt to divide the first order, when less is left. */
static const double LEAST_SECONDS = 0.1;

/* One chain: its current assignment and the state of its random generator. */
typedef struct chain {
  psplit_i_assignment now, best;
  uint64_t seed, n_drawn;
  bool tight;  /* an order had no split at all: memory or pins rule out more than loads do */
  bool failed; /* out of memory */
  const uint32_t *place;    /* see find_places(); NULL: every cluster may be at every stage */
  const uint32_t *branches; /* the first order of the depth-first chain; NULL: it draws one */
  psplit_i_budget budget;   /* of a round */
} chain;

/* Scratch of one thread. */
typedef struct worker {
  psplit_i_order_dp dp;
  psplit_i_arena arena;
  psplit_i_assignment trial;
  uint32_t *order, *indegree, *ready;
  uint64_t *heap;
  int64_t *loads; /* [n_stages * 5] */
} worker;

static uint64_t draw(chain *c) { return psplit_i_splitmix64(c->seed, c->n_drawn++); }

static psplit_code worker_init(worker *w, const psplit_i_instance *instance,
                               const psplit_i_automaton *automaton) {
  psplit_i_arena_init(&w->arena, 0);
  w->order = PSPLIT_NEW(&w->arena, uint32_t, instance->n);
  w->indegree = PSPLIT_NEW(&w->arena, uint32_t, instance->n);
  w->heap = PSPLIT_NEW(&w->arena, uint64_t, instance->n);
  w->ready = PSPLIT_NEW(&w->arena, uint32_t, instance->n);
  w->loads = PSPLIT_NEW(&w->arena, int64_t, (size_t)instance->n_stages * 5);
  if (!w->loads || !w->order || !w->indegree || !w->heap || !w->ready ||
      psplit_i_assignment_init(&w->trial, instance, &w->arena) != PSPLIT_OK)
    return PSPLIT_NOMEM;
  return psplit_i_order_dp_init(&w->dp, instance, automaton);
}

static void worker_fini(worker *w) {
  psplit_i_order_dp_fini(&w->dp);
  psplit_i_arena_fini(&w->arena);
}

/* How an order is drawn: from the sources or, reversed, from the sinks. The key of a cluster is its
 * stage or place in `base` (or 0) plus noise. Ties go to the cluster that became ready last (depth
 * first) or first. */
typedef struct drawing {
  const uint32_t *base;
  uint32_t noise, grain;
  bool depth_first, reversed;
  uint32_t first, last; /* stages whose clusters get noise */
} drawing;

static void make_ready(const psplit_i_instance *instance, chain *c, worker *w, const drawing *how,
                       uint32_t cluster, uint32_t *size, uint32_t *n_ready) {
  uint64_t key = 0;
  if (how->base)
    key =
      (uint64_t)(how->reversed ? 2 * instance->n_stages - how->base[cluster] : how->base[cluster]) *
      KEY_UNIT;
  if (how->noise &&
      (!how->base || (how->base[cluster] >= how->first && how->base[cluster] <= how->last)))
    key += draw(c) % how->noise / how->grain * how->grain;
  w->ready[*n_ready] = cluster;
  psplit_i_heap_push(w->heap, size,
                     key << 32 | (how->depth_first ? UINT32_MAX - *n_ready : *n_ready));
  ++*n_ready;
}

static void draw_order(const psplit_i_instance *instance, chain *c, worker *w, const drawing *how) {
  const uint32_t n = instance->n;
  const uint32_t *in = how->reversed ? instance->succ_off : instance->pred_off;
  const uint32_t *out_off = how->reversed ? instance->pred_off : instance->succ_off;
  const uint32_t *out = how->reversed ? instance->pred : instance->succ;
  uint32_t size = 0, n_ready = 0;
  for (uint32_t i = 0; i < n; i++) {
    w->indegree[i] = in[i + 1] - in[i];
    if (w->indegree[i] == 0) make_ready(instance, c, w, how, i, &size, &n_ready);
  }
  for (uint32_t at = 0; size > 0; at++) {
    const uint32_t tie = (uint32_t)psplit_i_heap_pop(w->heap, &size);
    const uint32_t cluster = w->ready[how->depth_first ? UINT32_MAX - tie : tie];
    w->order[how->reversed ? n - 1 - at : at] = cluster;
    for (uint32_t k = out_off[cluster]; k < out_off[cluster + 1]; k++)
      if (--w->indegree[out[k]] == 0) make_ready(instance, c, w, how, out[k], &size, &n_ready);
  }
}

/* The largest message cost of a stage: one message sent, and one received. */
static int64_t largest_message(const psplit_i_instance *instance) {
  int64_t most = 0;
  for (uint32_t t = 0; instance->makes_message && t < instance->n_types; t++) {
    const int64_t both = psplit_i_sat_add_i64(instance->least_message[t],
                                              instance->least_message[instance->n_types + t]);
    if (both > most) most = both;
  }
  return most;
}

/* An upper bound on all loads: every cluster on its slowest device, and every tensor sent to
 * all. */
static int64_t largest_load(const psplit_i_instance *instance) {
  int64_t sum = psplit_i_sat_add_i64(1, largest_message(instance));
  for (uint32_t i = 0; i < instance->n; i++) {
    int64_t most = 0;
    for (uint32_t t = 0; t < instance->n_types; t++) {
      const int64_t w = instance->w[(size_t)t * instance->n + i];
      if (w < PSPLIT_I_INF && w > most) most = w;
    }
    sum = psplit_i_sat_add_i64(sum, most);
  }
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const int64_t fan = instance->p2p ? instance->net_off[e + 1] - instance->net_off[e] - 1 : 1;
    int64_t most = 0;
    for (uint32_t c = 0; instance->link && c < instance->n_link_classes; c++) {
      const int64_t all = instance->link[(size_t)c * instance->n_nets + e] * (1 + fan);
      if (all > most) most = all;
    }
    for (uint32_t t = 0; t < instance->n_types; t++) {
      const size_t cell = (size_t)t * instance->n_nets + e;
      const int64_t both = instance->recv[cell] + instance->send[cell] * fan;
      if (both > most) most = both;
    }
    sum = psplit_i_sat_add_i64(sum, most);
  }
  return sum < PSPLIT_I_INF / 4 ? sum : PSPLIT_I_INF / 4;
}

/* The value of the best division of w->order with few positions for cuts, or `most` if there is
 * none. It is an upper bound on the best division's value, and much faster to compute than a
 * division with too high a limit. */
static int64_t coarse_value(chain *c, worker *w, int64_t limit, int64_t most) {
  const uint32_t grain = w->dp.grain;
  w->dp.grain = grain * COARSER * COARSER;
  for (w->trial.value = PSPLIT_I_INF; w->trial.value >= PSPLIT_I_INF && limit < most;) {
    limit = psplit_i_sat_mul_i64(limit, 4) < most ? limit * 4 : most;
    c->failed |= !psplit_i_order_dp_run(&w->dp, w->order, NULL, limit, &c->budget, &w->trial);
    if (c->failed || psplit_i_expired(&c->budget)) break;
  }
  w->dp.grain = grain;
  return w->trial.value < most ? w->trial.value : most;
}

/* Divides w->order without prior knowledge. Considering all stages up to the largest load would
 * take quadratic time. A tight limit usually suffices, and the tighter it is, the fewer stage
 * counts are feasible behind a position. Every limit that is not too low gives the same
 * division. */
static void divide_anew(const psplit_i_instance *instance, chain *c, worker *w) {
  const int64_t least = psplit_i_simple_bound(instance, w->dp.automaton);
  const int64_t largest = largest_load(instance);
  int64_t part = instance->n_stages / FEW_NUMBERS, most = largest;
  bool looked = instance->n < FEW; /* for an upper bound; few clusters are soon divided */
  if (part < CLOSE) part = CLOSE;
  int64_t limit = c->tight ? most : least + least / part + 1;
  for (;;) {
    if (limit > most) limit = most;
    c->failed |= !psplit_i_order_dp_run(&w->dp, w->order, NULL, limit, &c->budget, &w->trial);
    if (w->trial.value < PSPLIT_I_INF || limit == most || c->failed) return;
    if (part > CLOSE) {
      part = part / 2 > CLOSE ? part / 2 : CLOSE;
      limit = least + least / part + 1;
      continue;
    }
    if (!looked) {
      most = coarse_value(c, w, limit, largest);
      w->trial.value = PSPLIT_I_INF;
      looked = true;
    }
    if (c->failed || psplit_i_expired(&c->budget)) return;
    /* Raises the limit in small steps up to a value that is known to suffice, and in large steps if
     * none is known. */
    limit = most < largest ? limit + limit / 2 + 1 : psplit_i_sat_mul_i64(limit, 4);
  }
}

/* Divides w->order into stages, and keeps the result in c->now if it is not worse. `guess`: where
 * links differ by pair, uses the links of neighbours in c->now instead of the least costs. */
static void try_order(const psplit_i_instance *instance, chain *c, worker *w, bool guess) {
  w->dp.use_guess = guess && instance->link && instance->p2p;
  if (w->dp.use_guess)
    psplit_i_link_guess_make(&w->dp.guess, instance, c->now.value < PSPLIT_I_INF ? &c->now : NULL,
                             w->dp.mark);
  if (c->now.value >= PSPLIT_I_INF) {
    divide_anew(instance, c, w);
  } else {
    if (instance->p2p)
      psplit_i_assignment_times_sent(&c->now, instance, w->dp.times_sent, w->dp.mark);
    c->failed |= !psplit_i_order_dp_run(&w->dp, w->order, instance->p2p ? w->dp.times_sent : NULL,
                                        c->now.value, &c->budget, &w->trial);
  }
  c->tight |= w->trial.value >= PSPLIT_I_INF && !psplit_i_expired(&c->budget);
  if (w->trial.value > c->now.value || w->trial.value >= PSPLIT_I_INF) return;
  if (psplit_i_assignment_better(&w->trial, &c->best, instance))
    psplit_i_assignment_copy(&c->best, &w->trial, instance);
  psplit_i_assignment_copy(&c->now, &w->trial, instance);
}

/* Sets w->loads to those of c->now. */
static void load_stages(const psplit_i_instance *instance, chain *c, worker *w) {
  const int64_t value = c->now.value, comm = c->now.comm;
  psplit_i_assignment_evaluate(&c->now, instance, w->dp.automaton, w->loads);
  c->now.value = value;
  c->now.comm = comm;
}

/* A long order that is perturbed everywhere is seldom better everywhere, so half of the orders
 * change only around the slowest stage. */
static void draw_near_slowest(const psplit_i_instance *instance, chain *c, worker *w, uint64_t coin,
                              drawing *how) {
  enum { NEAR = 4 };
  if (instance->n < LONG || instance->n_stages <= 2 * NEAR || (coin & 1)) return;
  if (c->now.value >= PSPLIT_I_INF) return;
  load_stages(instance, c, w);
  const uint32_t slowest = psplit_i_slowest_stage(instance, w->loads);
  const uint32_t reach = 1 + (uint32_t)(coin >> 1) % NEAR;
  psplit_i_spend(&c->budget, instance->net_off[instance->n_nets]);
  how->first = slowest > reach ? slowest - reach : 0;
  how->last = slowest + reach;
}

static const drawing FIRST_ORDERS[N_CHAINS] = {
  {NULL, 0, 1, false, false, 0, 0},    {NULL, 0, 1, true, false, 0, 0},
  {NULL, 0, 1, true, true, 0, 0},      {NULL, 0, 1, false, true, 0, 0},
  {NULL, 1024, 1, false, false, 0, 0}, {NULL, 1024, 256, true, false, 0, 0},
  {NULL, 1024, 256, true, true, 0, 0}, {NULL, 1024, 1, false, true, 0, 0},
};

/* Divides the first order regardless of the budget, so that a time limit of 0 still gives a split.
 * If that takes more than half of the budget, it is tried again with fewer positions for cuts, and
 * then, from that result, with more. If memory or pins permit no such split, the last attempt is
 * unlimited. */
static void divide_first(const psplit_i_instance *instance, chain *c, worker *w) {
  const psplit_i_budget own = c->budget;
  bool cut_short = true;
  uint32_t grain = 1;
  for (; cut_short && grain <= instance->n; grain *= COARSER) {
    w->dp.grain = grain;
    psplit_i_budget_hold_back(&c->budget, 2);
    psplit_i_budget_extend(&c->budget, LEAST_SECONDS);
    try_order(instance, c, w, true);
    cut_short = !c->failed && c->now.value >= PSPLIT_I_INF && psplit_i_expired(&c->budget);
    c->budget.most = own.most;
    c->budget.end = own.end;
  }
  const bool coarse = grain > COARSER, found = c->now.value < PSPLIT_I_INF;
  if (coarse && !found && !c->failed) c->budget.most = UINT64_MAX / 2, c->budget.end = -1;
  for (w->dp.grain = grain / COARSER; coarse && w->dp.grain > 1 && !c->failed;) {
    w->dp.grain = found ? w->dp.grain / COARSER : 1;
    if (psplit_i_expired(&c->budget)) break;
    try_order(instance, c, w, true);
  }
  w->dp.grain = 1;
  c->budget.most = own.most;
  c->budget.end = own.end;
}

/* Whether a device whose place is given cannot run some cluster. */
static bool forbids(const psplit_i_instance *instance, const psplit_i_automaton *automaton) {
  if (automaton->any_order || instance->n_types == 1) return false;
  for (size_t k = 0; k < (size_t)instance->n_types * instance->n; k++)
    if (instance->w[k] >= PSPLIT_I_INF) return true;
  return false;
}

static bool may_be_at(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                      uint32_t cluster, uint32_t stage) {
  if (instance->pin[cluster] != PSPLIT_NONE) return instance->pin[cluster] == stage;
  if (automaton->any_order) return true;
  return instance->w[(size_t)automaton->stage_type[stage] * instance->n + cluster] < PSPLIT_I_INF;
}

/* out_place[n]: the first stage that pins, and devices that cannot run everything, leave a cluster
 * and its predecessors. With the latter, the last stage that they leave it and its successors is
 * added, so that what must be early is before what need not. Neither decreases along an edge: an
 * order sorted by it has a division that obeys the pins, if loads and memory permit one. In another
 * order, clusters with different pins may alternate. */
static psplit_code find_places(const psplit_i_instance *instance,
                               const psplit_i_automaton *automaton, psplit_i_arena *arena,
                               const uint32_t *order, uint32_t *out_place) {
  const uint32_t n = instance->n, n_stages = instance->n_stages;
  uint32_t *last = PSPLIT_NEW(arena, uint32_t, n);
  if (!last) return PSPLIT_NOMEM;
  for (uint32_t at = 0; at < n; at++) {
    const uint32_t i = order[at];
    uint32_t *first = &out_place[i];
    *first = 0;
    while (*first + 1 < n_stages && !may_be_at(instance, automaton, i, *first)) ++*first;
    for (uint32_t k = instance->pred_off[i]; k < instance->pred_off[i + 1]; k++)
      if (out_place[instance->pred[k]] > *first) *first = out_place[instance->pred[k]];
  }
  if (!forbids(instance, automaton)) return PSPLIT_OK;
  for (uint32_t at = n; at-- > 0;) {
    const uint32_t i = order[at];
    last[i] = n_stages - 1;
    while (last[i] > 0 && !may_be_at(instance, automaton, i, last[i])) last[i]--;
    for (uint32_t k = instance->succ_off[i]; k < instance->succ_off[i + 1]; k++)
      if (last[instance->succ[k]] < last[i]) last[i] = last[instance->succ[k]];
  }
  for (uint32_t i = 0; i < n; i++) out_place[i] += last[i];
  return PSPLIT_OK;
}

static psplit_code keep_places(const psplit_i_instance *instance,
                               const psplit_i_automaton *automaton, psplit_i_arena *arena,
                               worker *scratch, chain *chains, uint32_t n_chains) {
  uint32_t *place = PSPLIT_NEW(arena, uint32_t, instance->n);
  if (!place) return PSPLIT_NOMEM;
  draw_order(instance, &chains[0], scratch, &FIRST_ORDERS[0]);
  for (uint32_t i = 0; i < n_chains; i++) chains[i].place = place;
  return find_places(instance, automaton, arena, scratch->order, place);
}

/* If the branches between separators differ, the order of branches is used first, since a
 * depth-first order leaves to chance which branch ends a stage. */
static psplit_code keep_branches(const psplit_i_instance *instance,
                                 const psplit_i_automaton *automaton, psplit_i_arena *arena,
                                 chain *chains) {
  bool any;
  uint32_t *order = PSPLIT_NEW(arena, uint32_t, instance->n);
  if (!order) return PSPLIT_NOMEM;
  const psplit_code code = psplit_i_branch_order(instance, automaton, 0, order, &any);
  if (any) chains[DEPTH_FIRST].branches = order;
  return code;
}

/* Divides w->order repeatedly while that improves. With point-to-point transfers each division
 * charges what the last split sends, which counts twice where a net has receivers in two other
 * stages. */
static void divide_repeatedly(const psplit_i_instance *instance, chain *c, worker *w) {
  for (uint32_t k = 0; k < MOST_DIVISIONS && !psplit_i_expired(&c->budget); k++) {
    const int64_t before = c->now.value;
    try_order(instance, c, w, false);
    if (c->now.value >= before || !instance->p2p) break;
  }
}

/* Whether some stage takes more than half of the value to send. */
static bool sends_most(const psplit_i_instance *instance, chain *c, worker *w) {
  const int64_t half = c->now.value / 2;
  if (!instance->p2p || instance->has_pins || c->now.value >= PSPLIT_I_INF) return false;
  load_stages(instance, c, w);
  for (uint32_t s = 0; s < instance->n_stages; s++)
    if (w->loads[2 * instance->n_stages + s] > half) return true;
  return false;
}

/* How many branches of an order are in two rows, in parts, and the value of its split. */
typedef struct rows_tried {
  uint32_t part;
  int64_t value;
} rows_tried;

/* Divides the order of branches with `part` of them in two rows as the first order is divided: the
 * last split may send more often than a better one can. */
static void divide_part(const psplit_i_instance *instance, chain *c, worker *w, uint32_t part,
                        rows_tried *best) {
  bool any;
  if (part > PSPLIT_I_ROW_PARTS || c->failed || psplit_i_expired(&c->budget)) return;
  c->now.value = c->now.comm = PSPLIT_I_INF;
  c->failed |= psplit_i_branch_order(instance, w->dp.automaton, part, w->order, &any) != PSPLIT_OK;
  if (!c->failed && any) divide_repeatedly(instance, c, w);
  if (c->now.value < best->value) *best = (rows_tried){part, c->now.value};
}

/* How many branches in two rows are best, roughly, then more closely around that. */
static void divide_rows(const psplit_i_instance *instance, chain *c, worker *w) {
  enum { FIRST_STEP = PSPLIT_I_ROW_PARTS / 8 };
  rows_tried best = {0, PSPLIT_I_INF};
  divide_part(instance, c, w, FIRST_STEP, &best);
  if (best.value < PSPLIT_I_INF) { /* else there are no rows */
    for (uint32_t part = 2 * FIRST_STEP; part <= PSPLIT_I_ROW_PARTS; part += FIRST_STEP)
      divide_part(instance, c, w, part, &best);
    for (uint32_t step = FIRST_STEP / 2; step > 0; step /= 2) {
      const uint32_t middle = best.part;
      divide_part(instance, c, w, middle - step, &best);
      divide_part(instance, c, w, middle + step, &best);
    }
  }
  psplit_i_assignment_copy(&c->now, &c->best, instance);
}

static void run_chain(const psplit_i_instance *instance,
                      const psplit_i_local_search_options *options, chain *c, worker *w,
                      uint32_t index, bool first) {
  static const uint32_t noises[] = {KEY_UNIT / 4, KEY_UNIT, KEY_UNIT + KEY_UNIT / 2, KEY_UNIT * 3};
  /* The first order is always tried, so a time limit of 0 still gives a split. */
  if (first && (index == 0 || !psplit_i_expired(&c->budget))) {
    drawing how = FIRST_ORDERS[index];
    how.base = c->place;
    how.last = UINT32_MAX;
    if (c->branches) {
      memcpy(w->order, c->branches, instance->n * sizeof *w->order);
      divide_repeatedly(instance, c, w);
    } else {
      draw_order(instance, c, w, &how);
      if (index == 0)
        divide_first(instance, c, w);
      else
        try_order(instance, c, w, index % 2 == 0);
    }
    if (index == DEPTH_FIRST && sends_most(instance, c, w)) divide_rows(instance, c, w);
  }
  for (uint32_t step = 0; step < options->n_steps; step++) {
    if (c->best.value <= options->target || psplit_i_expired(&c->budget)) return;
    const uint64_t coin = draw(c);
    const bool fresh = c->now.value >= PSPLIT_I_INF;
    drawing how = {fresh ? c->place : c->now.stage,
                   noises[coin & 3],
                   coin >> 2 & 1 ? 1 : KEY_UNIT / 4,
                   (coin >> 3 & 1) != 0,
                   (coin >> 4 & 1) != 0,
                   0,
                   UINT32_MAX};
    draw_near_slowest(instance, c, w, coin >> 7, &how);
    psplit_i_spend(&c->budget, 8 * (uint64_t)instance->n + instance->succ_off[instance->n]);
    draw_order(instance, c, w, &how);
    try_order(instance, c, w, (coin >> 5 & 3) != 0);
  }
}

static uint32_t count_chains(const psplit_i_local_search_options *options) {
  return options->n_chains ? options->n_chains : N_CHAINS;
}

/* A rough estimate of the cost of a round. */
static uint64_t work_of_round(const psplit_i_instance *instance,
                              const psplit_i_local_search_options *options) {
  const uint64_t pins = (uint64_t)instance->net_off[instance->n_nets] + instance->n;
  const uint64_t order =
    psplit_i_sat_mul_u64(pins, (uint64_t)instance->n_stages * instance->n_stages);
  return psplit_i_sat_mul_u64(order, count_chains(options) * (uint64_t)options->n_steps);
}

typedef struct chains_round {
  const psplit_i_instance *instance;
  const psplit_i_local_search_options *options;
  chain *chains;
  worker *workers; /* of each thread */
  bool divides_first;
} chains_round;

static void run_one(void *with, size_t i, int thread) {
  const chains_round *all = with;
  run_chain(all->instance, all->options, &all->chains[i], &all->workers[thread], (uint32_t)i,
            all->divides_first);
}

psplit_code psplit_i_local_search(const psplit_i_instance *instance,
                                  const psplit_i_automaton *automaton,
                                  const psplit_i_local_search_options *options,
                                  psplit_i_assignment *assignment) {
  psplit_code code = PSPLIT_OK;
  const uint32_t n_chains = count_chains(options);
  const int n_threads = psplit_i_team_size(options->n_threads);
  const int n_workers = n_threads < (int)n_chains ? n_threads : (int)n_chains;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  chain *chains = PSPLIT_NEW(&arena, chain, n_chains);
  worker *workers = PSPLIT_NEW(&arena, worker, (size_t)n_workers);
  if (!chains || !workers) {
    code = PSPLIT_NOMEM;
    goto out;
  }
  for (uint32_t i = 0; i < n_chains; i++) {
    chains[i].seed = psplit_i_mix64(options->seed * 0x10001 + i + 1);
    PSPLIT_TRY(psplit_i_assignment_init(&chains[i].now, instance, &arena));
    PSPLIT_TRY(psplit_i_assignment_init(&chains[i].best, instance, &arena));
    if (assignment->value < PSPLIT_I_INF)
      psplit_i_assignment_copy(&chains[i].now, assignment, instance);
  }
  for (int i = 0; i < n_workers; i++) PSPLIT_TRY(worker_init(&workers[i], instance, automaton));
  if (instance->has_pins || forbids(instance, automaton))
    PSPLIT_TRY(keep_places(instance, automaton, &arena, &workers[0], chains, n_chains));
  const bool fresh = assignment->value >= PSPLIT_I_INF;
  if (fresh && !instance->has_pins) PSPLIT_TRY(keep_branches(instance, automaton, &arena, chains));
  const uint64_t work = work_of_round(instance, options);
  for (uint32_t round = 0; round < options->n_rounds; round++) {
    const int64_t before = assignment->value;
    if (options->out_orders) *options->out_orders += n_chains * (uint64_t)options->n_steps;
    const bool divides_first = fresh && round == 0; /* which the first chain gets half for */
    for (uint32_t i = 0; i < n_chains; i++)
      chains[i].budget = psplit_i_budget_beside(options->budget, !divides_first ? n_chains
                                                                 : i == 0       ? 2
                                                                          : 2 * (n_chains - 1));
    const int team = psplit_i_budget_team(options->budget, work, options->n_threads);
    chains_round all = {instance, options, chains, workers, divides_first};
    psplit_i_team_for(team < n_workers ? team : n_workers, 0, n_chains, run_one, &all);
    for (uint32_t i = 0; i < n_chains; i++) psplit_i_spend(options->budget, chains[i].budget.spent);
    for (uint32_t i = 0; i < n_chains; i++) PSPLIT_TRY(chains[i].failed ? PSPLIT_NOMEM : PSPLIT_OK);
    for (uint32_t i = 0; i < n_chains; i++)
      if (psplit_i_assignment_better(&chains[i].best, assignment, instance))
        psplit_i_assignment_copy(assignment, &chains[i].best, instance);
    /* Half of the chains continue from the best split, and the others from their own. */
    for (uint32_t i = 0; i < n_chains; i += 2)
      if (assignment->value < chains[i].now.value)
        psplit_i_assignment_copy(&chains[i].now, assignment, instance);
    if (assignment->value <= options->target || psplit_i_expired(options->budget)) break;
    /* A round without improvement is the last one. */
    if (round > 0 && assignment->value >= before && assignment->value < PSPLIT_I_INF) break;
  }
out:
  for (int i = 0; workers && i < n_workers; i++) worker_fini(&workers[i]);
  psplit_i_arena_fini(&arena);
  return code;
}
