/* The weight-axis min-cut bound. Cut the weight axis into buckets; a stage is I \ J for downsets J
 * in one bucket and I in a later one, so its load is at least the least weight between the buckets
 * plus the cheapest crossing of each. A min-max program over buckets and devices bounds the split.
 */
#include <string.h>

#include "automaton.h"
#include "instance.h"
#include "problem.h"
#include "team.h"
#include "weight_axis.h"
#include "weight_axis_inside.h"

enum {
  MAX_ITEMS = 1 << 14, /* for which windows are made, or ancestors counted exactly */
  MAX_BUCKETS = 1 << 12,
  MAX_CELLS = 1 << 24
};

typedef struct stage_bound {
  int64_t omega, in, out;
} stage_bound;

static int64_t load_bound(const psplit_axis *x, const psplit_move *move, stage_bound part) {
  int64_t in = part.in, out = part.out;
  const int64_t omega = part.omega;
  const bool free_comm = x->core->problem->devices[move->type].free_comm;
  int64_t w = omega;
  if (x->machine->ratio[move->type] > 1)
    w = (int64_t)((double)omega * x->machine->ratio[move->type] * (1 - 1e-12));
  if (w < omega) w = omega;
  if (free_comm) in = out = 0;
  const int64_t load = psplit_i_load(x->core, w, in, out);
  return move->replicas > 1 ? (load + move->replicas - 1) / move->replicas : load;
}

/* Stages from a downset in bucket q1 to one in q2. */
static void relax(const psplit_axis *x, uint32_t q1, uint32_t q2, const uint32_t *states,
                  uint32_t n_active, stage_bound part) {
  const psplit_machine *m = x->machine;
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

static psplit_code run_program(psplit_axis *x) {
  psplit_wamc *wamc = x->out;
  const psplit_machine *m = x->machine;
  const uint32_t n_buckets = wamc->n_buckets, n_states = m->n_states;
  const size_t cells = (size_t)n_buckets * n_states;
  wamc->n_states = n_states;
  wamc->before = psplit_i_arena_array(&wamc->arena, cells, sizeof *wamc->before);
  uint32_t *states = psplit_i_arena_array(&x->arena, n_states, sizeof *states);
  psplit_axis_reader reader = {.x = x, .at_in = PSPLIT_NEW(&x->arena, uint8_t, n_buckets)};
  if (!wamc->before || !states || !reader.at_in) return PSPLIT_NOMEM;
  for (size_t k = 0; k < cells; k++) wamc->before[k] = PSPLIT_I_INF;
  for (uint32_t c = 0; c < n_states; c++)
    if (psplit_i_machine_final(m, c)) wamc->before[c] = 0;
  const double limit = (double)x->limit * (1 + 1e-9);
  for (uint32_t q2 = 1; q2 < n_buckets; q2++) {
    /* States that leave enough devices for what is before, and used enough for what is behind. */
    uint32_t n_active = 0;
    for (uint32_t c = n_states; c-- > 0;)
      if ((double)wamc->low[q2] <= limit * m->capacity[c] &&
          (double)(m->total_omega - wamc->high[q2]) <= limit * m->taken[c])
        states[n_active++] = c;
    if (n_active == 0) continue;
    psplit_i_axis_turn(&reader, q2);
    for (uint32_t q1 = q2; q1-- > 0;) {
      const int64_t omega = wamc->low[q2] - wamc->high[q1];
      if (omega > x->reach) break;
      int64_t in, out;
      psplit_i_axis_read(&reader, q1, &in, &out);
      relax(x, q1, q2, states, n_active, (stage_bound){omega > 0 ? omega : 0, in, out});
    }
    /* Last, and more used up first: stages within one bucket build on each other. */
    if (q2 + 1 < n_buckets) relax(x, q2, q2, states, n_active, (stage_bound){0, 0, 0});
  }
  const int64_t bound = wamc->before[(size_t)(n_buckets - 1) * n_states];
  wamc->bound = bound > x->limit ? x->limit + 1 : bound;
  return PSPLIT_OK;
}

/* Enough for the programs' time and memory; few where the graph is very large. */
static uint32_t count_cells(const psplit_axis *x) {
  const uint32_t n_stages = x->machine->n_stages;
  uint32_t n_cells = MAX_BUCKETS;
  if (x->core->n > MAX_ITEMS)
    n_cells = n_stages < 64 ? 1024 : n_stages < 1024 ? n_stages * 16 : 1 << 14;
  while ((uint64_t)n_cells * x->machine->n_states > MAX_CELLS) n_cells /= 2;
  return n_cells;
}

psplit_code psplit_i_wamc(const psplit_core *core, const psplit_machine *machine, int64_t limit,
                          uint32_t n_threads, psplit_wamc *out_wamc) {
  memset(out_wamc, 0, sizeof *out_wamc);
  if (limit >= PSPLIT_I_INF || machine->total_omega == 0) return PSPLIT_OK;
  psplit_i_arena_init(&out_wamc->arena, 0);
  psplit_axis x = {
    .core = core, .machine = machine, .out = out_wamc, .limit = limit, .most_exact = MAX_ITEMS};
  psplit_i_arena_init(&x.arena, 0);
  psplit_code code;
  uint32_t copies = 1;
  for (uint32_t k = 0; k < machine->move_off[machine->n_states]; k++)
    if (machine->moves[k].replicas > copies) copies = machine->moves[k].replicas;
  x.reach = limit > PSPLIT_I_INF / copies ? PSPLIT_I_INF : limit * copies;
  PSPLIT_TRY(psplit_i_axis_rank(&x));
  PSPLIT_TRY(psplit_i_axis_divide(&x, count_cells(&x)));
  if (out_wamc->n_buckets == 0) goto out;
  PSPLIT_TRY(psplit_i_axis_cut(&x, psplit_i_team_size(n_threads)));
  PSPLIT_TRY(run_program(&x));
  if (out_wamc->bound <= limit) PSPLIT_TRY(psplit_i_axis_reach(&x, &out_wamc->bound));
  if (core->n > MAX_ITEMS) out_wamc->n_buckets = 0; /* no exact program to prune */
out:
  psplit_i_arena_fini(&x.arena);
  if (code != PSPLIT_OK) psplit_i_wamc_fini(out_wamc);
  return code;
}

void psplit_i_wamc_fini(psplit_wamc *wamc) {
  psplit_i_arena_fini(&wamc->arena);
  memset(wamc, 0, sizeof *wamc);
}

int64_t psplit_i_wamc_before(const psplit_wamc *wamc, int64_t omega, uint32_t state) {
  uint32_t low = 1, high = wamc->n_buckets - 1;
  if (wamc->n_buckets == 0) return 0;
  while (low < high) { /* the first bucket that ends at or after omega */
    const uint32_t middle = low + (high - low) / 2;
    if (wamc->high[middle] < omega)
      low = middle + 1;
    else
      high = middle;
  }
  if (low >= wamc->n_buckets - 1 || wamc->low[low] > omega) return PSPLIT_I_INF;
  return wamc->before[(size_t)low * wamc->n_states + state];
}
