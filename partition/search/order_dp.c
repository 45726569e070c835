/* The best cut of one topological order, by dynamic programming from its end. */
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "instance.h"
#include "load_tracker.h"
#include "order_dp.h"
#include "problem.h"

psplit_code psplit_i_slicer_init(psplit_slicer *s, const psplit_core *core,
                                 const psplit_machine *machine) {
  memset(s, 0, sizeof *s);
  s->core = core;
  s->machine = machine;
  psplit_i_arena_init(&s->arena, 0);
  s->row = psplit_i_arena_array(&s->arena, (size_t)core->n + 2, sizeof *s->row);
  s->first = PSPLIT_NEW(&s->arena, uint32_t, (size_t)core->n + 1);
  s->active = PSPLIT_NEW(&s->arena, uint32_t, machine->n_states);
  s->scratch = PSPLIT_NEW(&s->arena, int64_t, (size_t)core->n_stages * 5);
  s->times_sent = PSPLIT_NEW(&s->arena, uint32_t, core->n_nets);
  s->mark = PSPLIT_NEW(&s->arena, uint32_t, core->n_stages);
  s->prefix = PSPLIT_NEW(&s->arena, int64_t, (size_t)core->n + 1);
  if (!s->row || !s->first || !s->active || !s->scratch || !s->times_sent || !s->mark ||
      !s->prefix || psplit_i_walk_init(&s->walk, core, &s->arena) != PSPLIT_OK) {
    psplit_i_slicer_fini(s);
    return PSPLIT_NOMEM;
  }
  return PSPLIT_OK;
}

void psplit_i_slicer_fini(psplit_slicer *s) {
  psplit_i_vec_fini(&s->cells);
  psplit_i_arena_fini(&s->arena);
}

/* The cell of a position and a state; NULL where no split within the limit passes. */
static psplit_slice_cell *cell_at(const psplit_slicer *s, uint32_t at, uint32_t state) {
  const size_t k = state - s->first[at]; /* wraps below the first */
  return state < s->first[at] || s->row[at] + k >= s->row[at + 1] ? NULL
                                                                  : &s->cells.items[s->row[at] + k];
}

/* States by position that leave enough devices for what is before and used enough for what is
 * behind. Many stages leave only a narrow band. False: out of memory. */
static bool make_rows(psplit_slicer *s, int64_t limit) {
  const psplit_machine *m = s->machine;
  const uint32_t n = s->core->n, n_states = m->n_states;
  const double most = (double)limit * (1 + 1e-9);
  size_t n_cells = 0;
  /* With a fixed order, capacity falls with the state, and both ends move back along the order. */
  uint32_t low = m->any_order ? 0 : n_states - 1, high = n_states;
  for (uint32_t at = 0; at <= n; at++) {
    const double before = (double)s->prefix[at], behind = (double)(s->prefix[n] - s->prefix[at]);
    if (!m->any_order) {
      while (low > 0 && behind <= most * m->taken[low - 1]) low--;
      while (high > 0 && before > most * m->capacity[high - 1]) high--;
    }
    s->row[at] = n_cells;
    s->first[at] = low;
    if (high > low) n_cells += high - low;
  }
  s->row[n + 1] = n_cells;
  s->cells.n = 0;
  if (!psplit_i_vec_reserve(&s->cells, n_cells)) return false;
  s->cells.n = n_cells;
  for (size_t k = 0; k < n_cells; k++) s->cells.items[k].value = PSPLIT_I_INF;
  return true;
}

/* What one slice [a, b) means for every state that can stand behind it. */
typedef struct slice_step {
  psplit_slicer *s;
  uint32_t a, b, n_active;
  int64_t limit;
} slice_step;

static void relax(const slice_step *step, uint32_t state, const psplit_move *move, int64_t load) {
  psplit_slicer *s = step->s;
  if (load > step->limit) return;
  const int64_t before = cell_at(s, step->b, state)->value;
  const int64_t value = s->machine->adds_up ? load + before : load > before ? load : before;
  psplit_slice_cell *cell = cell_at(s, step->a, move->next);
  if (!cell || value >= cell->value) return;
  if ((double)s->prefix[step->a] >
      (double)step->limit * s->machine->capacity[move->next] * (1 + 1e-9))
    return;
  *cell = (psplit_slice_cell){value, step->b, state};
}

static void relax_all(const slice_step *step) {
  const psplit_slicer *s = step->s;
  const psplit_machine *m = s->machine;
  const psplit_walk *walk = &s->walk;
  if (m->all_used && walk->n_counted == 0) return;
  /* One load per type is enough unless the stage's number or copies matter. */
  const bool by_type = !s->core->stash && !m->replicated;
  int64_t loads[16];
  if (by_type && m->n_types <= 16)
    for (uint32_t t = 0; t < m->n_types; t++)
      loads[t] = psplit_i_walk_load(walk, m, &(psplit_move){.type = t, .replicas = 1});
  for (uint32_t i = 0; i < step->n_active; i++) {
    const uint32_t state = s->active[i];
    if (walk->pin != PSPLIT_NONE) {
      psplit_move move;
      for (uint32_t t = 0; t < m->n_types; t++)
        if (psplit_i_machine_pinned(m, state, walk->pin, t, &move))
          relax(step, state, &move, psplit_i_walk_load(walk, m, &move));
      continue;
    }
    for (uint32_t k = m->move_off[state]; k < m->move_off[state + 1]; k++) {
      const psplit_move *move = &m->moves[k];
      relax(step, state, move,
            by_type && m->n_types <= 16 ? loads[move->type] : psplit_i_walk_load(walk, m, move));
    }
  }
}

/* Two different pins in one stage: nothing larger works either. */
static bool pins_clash(const psplit_core *core, uint32_t pin, uint32_t item) {
  return pin != PSPLIT_NONE && core->pin[item] != PSPLIT_NONE && core->pin[item] != pin;
}

static void trace(psplit_slicer *s, const uint32_t *order, uint32_t state, psplit_cut *cut) {
  const psplit_machine *m = s->machine;
  for (uint32_t k = 0; k < m->n_stages; k++) {
    cut->device[k] = PSPLIT_NONE;
    cut->replicas[k] = 1;
  }
  uint32_t a = 0;
  while (a < s->core->n) {
    const psplit_slice_cell *cell = cell_at(s, a, state);
    const uint32_t b = cell->from, from = cell->from_state;
    uint32_t pin = PSPLIT_NONE;
    for (uint32_t i = a; i < b; i++)
      if (s->core->pin[order[i]] != PSPLIT_NONE) pin = s->core->pin[order[i]];
    const psplit_move move = psplit_i_machine_between(m, from, state, pin);
    for (uint32_t i = a; i < b; i++) cut->stage[order[i]] = move.stage;
    cut->device[move.stage] = move.type;
    cut->replicas[move.stage] = move.replicas;
    a = b;
    state = from;
  }
  psplit_i_machine_name_devices(m, cut->replicas, cut->device);
}

bool psplit_i_slice(psplit_slicer *s, const uint32_t *order, const uint32_t *times_sent,
                    int64_t limit, psplit_cut *out_cut) {
  const psplit_core *core = s->core;
  const psplit_machine *m = s->machine;
  const uint32_t n = core->n, n_states = m->n_states;
  out_cut->value = out_cut->comm = PSPLIT_I_INF;
  if (limit > PSPLIT_I_INF - 1) limit = PSPLIT_I_INF - 1;
  for (uint32_t i = 0; i < n; i++) s->prefix[i + 1] = s->prefix[i] + m->omega[order[i]];
  if (!make_rows(s, limit)) return false;
  uint64_t most_bytes = 0;
  uint32_t most_copies = 1;
  for (uint32_t t = 0; t < m->n_types; t++) {
    const uint64_t bytes = core->problem->devices[t].memory_bytes;
    if (m->count[t] > 0 && most_bytes != UINT64_MAX)
      most_bytes = bytes == 0 ? UINT64_MAX : bytes > most_bytes ? bytes : most_bytes;
  }
  for (uint32_t k = 0; m->replicated && k < m->move_off[n_states]; k++)
    if (m->moves[k].replicas > most_copies) most_copies = m->moves[k].replicas;
  const double most_omega = (double)limit * most_copies;
  s->walk.times_sent = times_sent;
  psplit_slice_cell *end = cell_at(s, n, 0);
  if (!end) return true;
  end->value = 0;
  for (uint32_t b = n; b > 0; b--) {
    slice_step step = {s, b, b, 0, limit};
    for (size_t k = s->row[b]; k < s->row[b + 1]; k++)
      if (s->cells.items[k].value < PSPLIT_I_INF)
        s->active[step.n_active++] = s->first[b] + (uint32_t)(k - s->row[b]);
    if (step.n_active == 0) continue;
    uint32_t a = b;
    while (a > 0) {
      if (pins_clash(core, s->walk.pin, order[a - 1])) break;
      if ((double)(s->prefix[b] - s->prefix[a - 1]) > most_omega) break;
      psplit_i_walk_add(&s->walk, order[--a]);
      if (s->walk.weight_bytes + s->walk.act_bytes > most_bytes) break;
      step.a = a;
      relax_all(&step);
    }
    psplit_i_walk_clear(&s->walk, order + a, b - a);
  }
  int64_t value = PSPLIT_I_INF;
  uint32_t state = 0;
  for (uint32_t c = 0; c < n_states; c++) {
    const psplit_slice_cell *cell = cell_at(s, 0, c);
    if (!cell || !psplit_i_machine_final(m, c) || cell->value >= value) continue;
    value = cell->value;
    state = c;
  }
  if (value >= PSPLIT_I_INF) return true;
  trace(s, order, state, out_cut);
  psplit_i_cut_evaluate(out_cut, core, m, s->scratch);
  return true;
}
