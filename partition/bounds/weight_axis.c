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
#include "weight_axis.h"
#include "weight_axis_inside.h"

enum {
  MAX_CLUSTERS = 1 << 14, /* for which windows are made, or ancestors counted exactly */
  MAX_BUCKETS = 1 << 12,
  MAX_CELLS = 1 << 24,
  WEIGHED_BUCKETS = 512
};

typedef struct stage_bound {
  int64_t omega, in, out;
} stage_bound;

static int64_t load_bound(const psplit_i_weight_axis_build *x, const psplit_i_transition *move,
                          stage_bound part) {
  int64_t in = part.in, out = part.out;
  const int64_t omega = part.omega;
  const bool free_comm = x->instance->problem->devices[move->type].free_comm;
  int64_t w = omega;
  if (x->automaton->ratio[move->type] > 1)
    w = (int64_t)((double)omega * x->automaton->ratio[move->type] * (1 - 1e-12));
  if (w < omega) w = omega;
  if (free_comm) in = out = 0;
  const int64_t load = psplit_i_load(x->instance, w, in, out);
  return move->replicas > 1 ? (load + move->replicas - 1) / move->replicas : load;
}

/* Stages from a downset in bucket q1 to one in q2. */
static void relax(const psplit_i_weight_axis_build *x, uint32_t q1, uint32_t q2,
                  const uint32_t *states, uint32_t n_active, stage_bound part) {
  const psplit_i_automaton *m = x->automaton;
  const int64_t *before = x->out->before + (size_t)q1 * m->n_states;
  int64_t *here = x->out->before + (size_t)q2 * m->n_states;
  for (uint32_t i = 0; i < n_active; i++)
    for (uint32_t k = m->move_off[states[i]]; k < m->move_off[states[i] + 1]; k++) {
      const int64_t rest = before[m->moves[k].next];
      if (rest >= here[states[i]]) continue;
      int64_t load = load_bound(x, &m->moves[k], part);
      if (load < rest) load = rest;
      if (load <= x->limit && load < here[states[i]]) here[states[i]] = load;
    }
}

/* Unfinished tables bound nothing: then the bound is 0, and *out_done false. */
static psplit_code run_program(psplit_i_weight_axis_build *x, bool *out_done) {
  psplit_i_weight_axis *axis = x->out;
  const psplit_i_automaton *m = x->automaton;
  const uint32_t n_buckets = axis->n_buckets, n_states = m->n_states;
  const size_t cells = (size_t)n_buckets * n_states;
  *out_done = false;
  axis->n_states = n_states;
  axis->before = psplit_i_arena_array(&axis->arena, cells, sizeof *axis->before);
  uint32_t *states = psplit_i_arena_array(&x->arena, n_states, sizeof *states);
  psplit_i_weight_axis_reader reader = {.x = x, .at_in = PSPLIT_NEW(&x->arena, uint8_t, n_buckets)};
  if (!axis->before || !states || !reader.at_in) return PSPLIT_NOMEM;
  for (size_t k = 0; k < cells; k++) axis->before[k] = PSPLIT_I_INF;
  for (uint32_t c = 0; c < n_states; c++)
    if (psplit_i_automaton_final(m, c)) axis->before[c] = 0;
  const double limit = (double)x->limit * (1 + 1e-9);
  for (uint32_t q2 = 1; q2 < n_buckets; q2++) {
    /* States that leave enough devices for what is before, and used enough for what is behind. */
    uint32_t n_active = 0;
    for (uint32_t c = n_states; c-- > 0;)
      if ((double)axis->low[q2] <= limit * m->capacity[c] &&
          (double)(m->total_omega - axis->high[q2]) <= limit * m->taken[c])
        states[n_active++] = c;
    if (n_active == 0) continue;
    const uint64_t ops = 2 + 2 * (uint64_t)n_active * m->move_off[n_states] / n_states;
    psplit_i_weight_axis_turn(&reader, q2);
    for (uint32_t q1 = q2; q1-- > 0;) {
      const int64_t omega = axis->low[q2] - axis->high[q1];
      if (omega > x->reach) break;
      int64_t in, out;
      if (!psplit_i_spend(x->budget, ops)) return PSPLIT_OK;
      psplit_i_weight_axis_read(&reader, q1, &in, &out);
      relax(x, q1, q2, states, n_active, (stage_bound){omega > 0 ? omega : 0, in, out});
    }
    /* Last, and more used up first: stages within one bucket build on each other. */
    if (q2 + 1 < n_buckets) relax(x, q2, q2, states, n_active, (stage_bound){0, 0, 0});
  }
  const int64_t bound = axis->before[(size_t)(n_buckets - 1) * n_states];
  axis->bound = bound > x->limit ? x->limit + 1 : bound;
  *out_done = true;
  return PSPLIT_OK;
}

/* Enough for the programs' time and memory; few where the graph is very large. */
static uint32_t count_cells(const psplit_i_weight_axis_build *x) {
  const uint32_t n_stages = x->automaton->n_stages;
  uint32_t n_cells = MAX_BUCKETS;
  if (x->instance->n > MAX_CLUSTERS)
    n_cells = n_stages < 64 ? 1024 : n_stages < 1024 ? n_stages * 16 : 1 << 14;
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
  if (limit >= PSPLIT_I_INF || automaton->total_omega == 0) return PSPLIT_OK;
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
  uint32_t copies = 1;
  find_least_messages(&x);
  for (uint32_t k = 0; k < automaton->move_off[automaton->n_states]; k++)
    if (automaton->moves[k].replicas > copies) copies = automaton->moves[k].replicas;
  x.reach = limit > PSPLIT_I_INF / copies ? PSPLIT_I_INF : limit * copies;
  PSPLIT_TRY(psplit_i_weight_axis_rank(&x));
  if (instance->n > MAX_CLUSTERS && psplit_i_expired(budget)) goto out;
  PSPLIT_TRY(psplit_i_weight_axis_divide(&x, count_cells(&x)));
  if (out_axis->n_buckets == 0) goto out;
  PSPLIT_TRY(psplit_i_weight_axis_cut(&x, psplit_i_budget_team(budget, 0, n_threads)));
  PSPLIT_TRY(run_program(&x, &done));
  if (out_axis->bound <= limit) PSPLIT_TRY(psplit_i_weight_axis_reach(&x, &out_axis->bound));
  if (!done || instance->n > MAX_CLUSTERS) out_axis->n_buckets = 0; /* no exact program to prune */
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

int64_t psplit_i_weight_axis_before(const psplit_i_weight_axis *axis, int64_t omega,
                                    uint32_t state) {
  if (axis->n_buckets == 0) return 0;
  if (axis->n_buckets < 3) return PSPLIT_I_INF;
  const size_t last = axis->n_buckets - 1; /* neither the first nor the last holds anything */
  const size_t bucket = 1 + psplit_i_first_at_least(axis->high + 1, 1, last - 1, omega);
  if (bucket >= last || axis->low[bucket] > omega) return PSPLIT_I_INF;
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
