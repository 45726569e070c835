/* The weight-axis min-cut bound. Cut the weight axis into buckets; a stage is I \ J for downsets J
 * in one bucket and I in a later one, so its load is at least the least weight between the buckets
 * plus the cheapest crossing of each. A min-max program over buckets and devices bounds the split.
 */
#include <string.h>

#include "automaton.h"
#include "bisect.h"
#include "bounds.h"
#include "instance.h"
#include "message_floor.h"
#include "problem.h"
#include "separators.h"
#include "weight_axis.h"
#include "weight_axis_inside.h"

enum {
  MAX_CLUSTERS = 1 << 14,  /* for which windows are made, or ancestors counted exactly */
  MOST_CLUSTERS = 1 << 17, /* the same, if no more than CLOSE are between two separators */
  CLOSE = 1 << 12,
  MAX_BUCKETS = 1 << 12,
  MAX_CELLS = 17 << 20, /* 16 a stage for 1,024 stages */
  WEIGHED_BUCKETS = 512,
  BLOCK = 16 /* buckets that are passed over at once */
};

typedef struct stage_bound {
  int64_t min_time, in, out;
} stage_bound;

/* Of a stage on one device of the type. */
static int64_t load_bound(const psplit_i_weight_axis_build *x, uint32_t type, stage_bound part) {
  int64_t in = part.in, out = part.out;
  const int64_t min_time = part.min_time;
  int64_t w = min_time;
  if (x->automaton->ratio[type] > 1)
    w = (int64_t)((double)min_time * x->automaton->ratio[type] * (1 - 1e-12));
  if (w < min_time) w = min_time;
  if (x->instance->problem->devices[type].free_comm) in = out = 0;
  return psplit_i_load(x->instance, w, in, out);
}

/* The program over buckets, and what it knows while it fills the row of bucket q2. */
typedef struct program {
  const psplit_i_weight_axis_build *x;
  uint32_t q2, n_active;
  uint32_t *active; /* [n_active] states, more used up first */
  uint32_t *from;   /* [n_states] bucket where the best stage began at the last q2 */
  int64_t *load;    /* [n_types] of the stage at hand */
  int64_t *least;   /* [blocks][n_states] least value of the block's rows so far */
  psplit_i_weight_axis_reader reader;
} program;

static bool program_init(program *p, psplit_i_weight_axis_build *x) {
  const uint32_t n_states = x->automaton->n_states, n_buckets = x->out->n_buckets;
  const size_t n_least = (size_t)(n_buckets / BLOCK + 1) * n_states;
  *p = (program){.x = x,
                 .active = psplit_i_arena_array(&x->arena, n_states, sizeof *p->active),
                 .from = PSPLIT_NEW(&x->arena, uint32_t, n_states),
                 .load = psplit_i_arena_array(&x->arena, x->automaton->n_types, sizeof *p->load),
                 .least = psplit_i_arena_array(&x->arena, n_least, sizeof *p->least),
                 .reader = {.x = x, .at_in = PSPLIT_NEW(&x->arena, uint8_t, n_buckets)}};
  if (!p->active || !p->from || !p->load || !p->least || !p->reader.at_in) return false;
  for (size_t k = 0; k < n_least; k++) p->least[k] = PSPLIT_I_INF;
  return true;
}

/* Turns to a bucket, and to the states that leave enough devices for what is before it, and used
 * enough for what is behind. */
static void turn(program *p, uint32_t q2) {
  const psplit_i_automaton *m = p->x->automaton;
  const psplit_i_weight_axis *axis = p->x->out;
  const double limit = (double)p->x->limit * (1 + 1e-9);
  p->q2 = q2;
  p->n_active = 0;
  for (uint32_t c = m->n_states; c-- > 0;)
    if ((double)axis->low[q2] <= limit * m->capacity[c] &&
        (double)(m->total_min_time - axis->high[q2]) <= limit * m->taken[c])
      p->active[p->n_active++] = c;
  psplit_i_weight_axis_turn(&p->reader, q2);
}

/* Least weight of a stage from a downset in bucket q1. */
static int64_t weight_from(const program *p, uint32_t q1) {
  return p->x->out->low[p->q2] - p->x->out->high[q1];
}

/* Least loads of stages from a downset in bucket q1 to one in q2, into p->load. */
static void find_loads(program *p, uint32_t q1) {
  const int64_t min_time = weight_from(p, q1);
  stage_bound part = {.min_time = min_time > 0 ? min_time : 0};
  psplit_i_weight_axis_read(&p->reader, q1, &part.in, &part.out);
  for (uint32_t t = 0; t < p->x->automaton->n_types; t++) p->load[t] = load_bound(p->x, t, part);
}

/* One of these stages before what is behind in the state. */
static void relax(program *p, uint32_t q1, uint32_t state) {
  const psplit_i_weight_axis_build *x = p->x;
  const psplit_i_automaton *m = x->automaton;
  const int64_t *before = x->out->before + (size_t)q1 * m->n_states;
  int64_t *here = x->out->before + (size_t)p->q2 * m->n_states;
  for (uint32_t k = m->move_off[state]; k < m->move_off[state + 1]; k++) {
    const psplit_i_transition *move = &m->moves[k];
    const int64_t rest = before[move->next];
    if (rest >= here[state]) continue;
    int64_t load = p->load[move->type];
    if (move->replicas > 1) load = (load + move->replicas - 1) / move->replicas;
    if (load < rest) load = rest;
    if (load > x->limit || load >= here[state]) continue;
    here[state] = load;
    p->from[state] = q1;
  }
}

static void relax_all(program *p, uint32_t q1) {
  for (uint32_t i = 0; i < p->n_active; i++) relax(p, q1, p->active[i]);
}

/* Of each state the stage from where its best one began at the last bucket: nearly the best value
 * of this one, by which most blocks are passed over. */
static void relax_likely(program *p) {
  for (uint32_t i = 0; i < p->n_active; i++) {
    const uint32_t state = p->active[i], q1 = p->from[state];
    if (q1 >= p->q2 || weight_from(p, q1) > p->x->reach) continue;
    find_loads(p, q1);
    psplit_i_weight_axis_turn(&p->reader, p->q2);
    relax(p, q1, state);
  }
}

/* Whether no stage from the block [a, b) betters a state: by its weight, or what is before it. */
static bool no_better(program *p, uint32_t a, uint32_t b) {
  const psplit_i_automaton *m = p->x->automaton;
  const int64_t *least = p->least + (size_t)(a / BLOCK) * m->n_states;
  const int64_t *here = p->x->out->before + (size_t)p->q2 * m->n_states;
  const int64_t min_time = weight_from(p, b - 1);
  const stage_bound part = {min_time > 0 ? min_time : 0, 0, 0};
  for (uint32_t t = 0; t < m->n_types; t++) p->load[t] = load_bound(p->x, t, part) / m->most_copies;
  for (uint32_t i = 0; i < p->n_active; i++) {
    const uint32_t state = p->active[i];
    const int64_t value = here[state] <= p->x->limit ? here[state] : p->x->limit + 1;
    for (uint32_t k = m->move_off[state]; k < m->move_off[state + 1]; k++)
      if (least[m->moves[k].next] < value && p->load[m->moves[k].type] < value) return false;
  }
  return true;
}

/* The row of p->q2; false: the budget is spent. Charged as if no block were passed over: what there
 * is time for does not hang on it. */
static bool fill_row(program *p) {
  const psplit_i_weight_axis_build *x = p->x;
  const psplit_i_automaton *m = x->automaton;
  const uint64_t ops = 2 + 2 * (uint64_t)p->n_active * m->move_off[m->n_states] / m->n_states;
  relax_likely(p);
  for (uint32_t b = p->q2; b > 0;) {
    const uint32_t a = (b - 1) / BLOCK * BLOCK;
    if (weight_from(p, a) <= x->reach && no_better(p, a, b)) {
      if (!psplit_i_spend(x->budget, ops * (b - a))) return false;
      b = a;
      continue;
    }
    for (; b > a; b--) {
      if (weight_from(p, b - 1) > x->reach) return true;
      if (!psplit_i_spend(x->budget, ops)) return false;
      find_loads(p, b - 1);
      relax_all(p, b - 1);
    }
  }
  return true;
}

/* Unfinished tables bound nothing: then the bound is 0, and *out_done false. */
static psplit_code run_program(psplit_i_weight_axis_build *x, bool *out_done) {
  psplit_i_weight_axis *axis = x->out;
  const uint32_t n_buckets = axis->n_buckets, n_states = x->automaton->n_states;
  const size_t cells = (size_t)n_buckets * n_states;
  program p;
  *out_done = false;
  axis->n_states = n_states;
  axis->before = psplit_i_arena_array(&axis->arena, cells, sizeof *axis->before);
  if (!axis->before || !program_init(&p, x)) return PSPLIT_NOMEM;
  for (size_t k = 0; k < cells; k++) axis->before[k] = PSPLIT_I_INF;
  for (uint32_t c = 0; c < n_states; c++)
    if (psplit_i_automaton_final(x->automaton, c)) axis->before[c] = p.least[c] = 0;
  for (uint32_t q2 = 1; q2 < n_buckets; q2++) {
    turn(&p, q2);
    if (p.n_active == 0) continue;
    if (!fill_row(&p)) return PSPLIT_OK;
    /* Last, and more used up first: stages within one bucket build on each other. */
    memset(p.load, 0, x->automaton->n_types * sizeof *p.load);
    if (q2 + 1 < n_buckets) relax_all(&p, q2);
    int64_t *least = p.least + (size_t)(q2 / BLOCK) * n_states;
    const int64_t *row = axis->before + (size_t)q2 * n_states;
    for (uint32_t c = 0; c < n_states; c++)
      if (row[c] < least[c]) least[c] = row[c];
  }
  const int64_t bound = axis->before[(size_t)(n_buckets - 1) * n_states];
  axis->bound = bound > x->limit ? x->limit + 1 : bound;
  *out_done = true;
  return PSPLIT_OK;
}

/* Where no more than so many clusters are between two separators. */
static bool has_windows(const psplit_i_instance *instance, uint32_t most_close) {
  return instance->n <= MAX_CLUSTERS || (instance->n <= MOST_CLUSTERS && most_close <= CLOSE);
}

psplit_code psplit_i_weight_axis_has_windows(const psplit_i_instance *instance, bool *out) {
  const uint32_t n = instance->n;
  *out = n <= MAX_CLUSTERS;
  if (*out || n > MOST_CLUSTERS) return PSPLIT_OK;
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  uint32_t *sinks = PSPLIT_NEW(&scratch, uint32_t, n);
  uint32_t *ends = PSPLIT_NEW(&scratch, uint32_t, n);
  const bool failed = scratch.failed;
  if (!failed)
    *out = has_windows(instance,
                       psplit_i_longest_block(ends, psplit_i_separators(instance, sinks, ends)));
  psplit_i_arena_fini(&scratch);
  return failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

/* Enough for the programs' time and memory; few where the graph is very large, and no windows are
 * asked for. */
static uint32_t count_cells(const psplit_i_weight_axis_build *x, bool windows) {
  const uint32_t n_stages = x->automaton->n_stages;
  uint32_t n_cells = MAX_BUCKETS;
  if (x->instance->n > MAX_CLUSTERS) {
    n_cells = n_stages < 64 ? 1024 : n_stages < 1024 ? n_stages * 16 : 1 << 14;
    if (windows && n_cells < MAX_BUCKETS) n_cells = MAX_BUCKETS;
  }
  if (x->weighed) n_cells = WEIGHED_BUCKETS;
  while ((uint64_t)n_cells * x->automaton->n_states > MAX_CELLS) n_cells /= 2;
  return n_cells;
}

/* With one root, what is left by a stage with something before it has none (message_floor.h); with
 * one leaf likewise. */
static void find_least_messages(psplit_i_weight_axis_build *x) {
  const psplit_i_message_floor floor = psplit_i_message_floor_of(x->instance, x->automaton);
  for (uint32_t e = 0; x->instance->on_trunk && e < x->instance->n_nets; e++)
    x->has_trunk |= x->instance->on_trunk[e];
  if (x->instance->n_roots == 1) x->least_in = floor.recv;
  if (x->instance->n_leaves == 1) x->least_out = floor.send;
}

static psplit_code make(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                        int64_t limit, bool weighed, uint32_t n_threads, psplit_i_budget *budget,
                        psplit_i_weight_axis *out_axis) {
  memset(out_axis, 0, sizeof *out_axis);
  out_axis->limit = limit;
  if (limit >= PSPLIT_I_INF || automaton->total_min_time == 0) return PSPLIT_OK;
  psplit_i_arena_init(&out_axis->arena, 0);
  psplit_i_weight_axis_build x = {.instance = instance,
                                  .automaton = automaton,
                                  .out = out_axis,
                                  .budget = budget,
                                  .limit = limit,
                                  .weighed = weighed,
                                  .most_exact = MAX_CLUSTERS};
  psplit_i_arena_init(&x.arena, 0);
  psplit_code code;
  bool done;
  find_least_messages(&x);
  x.reach = psplit_i_automaton_reach(automaton, limit);
  PSPLIT_TRY(psplit_i_weight_axis_rank(&x));
  const bool windows = has_windows(instance, x.most_close);
  if (instance->n > MAX_CLUSTERS && psplit_i_expired(budget)) goto out;
  PSPLIT_TRY(psplit_i_weight_axis_divide(&x, count_cells(&x, windows)));
  if (out_axis->n_buckets == 0) goto out;
  PSPLIT_TRY(psplit_i_weight_axis_cut(&x, psplit_i_budget_team(budget, 0, n_threads)));
  PSPLIT_TRY(run_program(&x, &done));
  if (out_axis->bound <= limit) PSPLIT_TRY(psplit_i_weight_axis_reach(&x, &out_axis->bound));
  if (!done || !windows) out_axis->n_buckets = 0; /* no exact program to prune */
out:
  psplit_i_arena_fini(&x.arena);
  if (code != PSPLIT_OK) psplit_i_weight_axis_fini(out_axis);
  return code;
}

psplit_code psplit_i_weight_axis_make(const psplit_i_instance *instance,
                                      const psplit_i_automaton *automaton, int64_t limit,
                                      uint32_t n_threads, psplit_i_budget *budget,
                                      psplit_i_weight_axis *out_axis) {
  return make(instance, automaton, limit, false, n_threads, budget, out_axis);
}

psplit_code psplit_i_weight_axis_weighed(const psplit_i_instance *instance,
                                         const psplit_i_automaton *automaton, int64_t limit,
                                         uint32_t n_threads, psplit_i_budget *budget,
                                         int64_t *inout_bound) {
  psplit_i_weight_axis axis;
  if (instance->n > MAX_CLUSTERS) return PSPLIT_OK;
  const psplit_code code = make(instance, automaton, limit, true, n_threads, budget, &axis);
  if (code == PSPLIT_OK && axis.bound > *inout_bound) *inout_bound = axis.bound;
  psplit_i_weight_axis_fini(&axis);
  return code;
}

void psplit_i_weight_axis_fini(psplit_i_weight_axis *axis) {
  psplit_i_arena_fini(&axis->arena);
  memset(axis, 0, sizeof *axis);
}

int64_t psplit_i_weight_axis_before(const psplit_i_weight_axis *axis, int64_t min_time,
                                    uint32_t state) {
  if (axis->n_buckets == 0) return 0;
  if (axis->n_buckets < 3) return PSPLIT_I_INF;
  const size_t last = axis->n_buckets - 1; /* neither the first nor the last holds anything */
  const size_t bucket = 1 + psplit_i_first_at_least(axis->high + 1, 1, last - 1, min_time);
  if (bucket >= last || axis->low[bucket] > min_time) return PSPLIT_I_INF;
  return axis->before[bucket * axis->n_states + state];
}

psplit_code psplit_i_bound_weight_axis(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                       int64_t *inout_bound) {
  psplit_i_weight_axis_fini(query->axis);
  const psplit_code code =
    psplit_i_weight_axis_make(query->instance, query->automaton, query->value,
                              query->request->options->n_threads, budget, query->axis);
  if (code == PSPLIT_OK && query->axis->bound > *inout_bound) *inout_bound = query->axis->bound;
  return code;
}
