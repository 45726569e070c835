/* The best division of one topological order into stages, by dynamic programming from its end. */
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "instance.h"
#include "link_guess.h"
#include "load_tracker.h"
#include "order_dp.h"
#include "problem.h"

psplit_code psplit_i_order_dp_init(psplit_i_order_dp *s, const psplit_i_instance *instance,
                                   const psplit_i_automaton *automaton) {
  memset(s, 0, sizeof *s);
  s->instance = instance;
  s->automaton = automaton;
  s->grain = 1;
  psplit_i_arena_init(&s->arena, 0);
  s->row = psplit_i_arena_array(&s->arena, (size_t)instance->n + 2, sizeof *s->row);
  s->first = PSPLIT_NEW(&s->arena, uint32_t, (size_t)instance->n + 1);
  s->active = PSPLIT_NEW(&s->arena, uint32_t, automaton->n_states);
  s->behind = PSPLIT_NEW(&s->arena, int64_t, automaton->n_states);
  s->loads = PSPLIT_NEW(&s->arena, int64_t, automaton->n_types);
  s->scratch = PSPLIT_NEW(&s->arena, int64_t, (size_t)instance->n_stages * 5);
  s->times_sent = PSPLIT_NEW(&s->arena, uint32_t, instance->n_nets);
  s->mark = PSPLIT_NEW(&s->arena, uint32_t, instance->n_stages);
  s->prefix = PSPLIT_NEW(&s->arena, int64_t, (size_t)instance->n + 1);
  s->work = PSPLIT_NEW(&s->arena, uint32_t, (size_t)instance->n + 1);
  s->least_next = PSPLIT_NEW(&s->arena, uint32_t, automaton->n_states);
  if (!s->row || !s->first || !s->active || !s->behind || !s->loads || !s->scratch ||
      !s->times_sent || !s->mark || !s->prefix || !s->work || !s->least_next ||
      psplit_i_load_tracker_init(&s->tracker, instance, &s->arena) != PSPLIT_OK) {
    psplit_i_order_dp_fini(s);
    return PSPLIT_NOMEM;
  }
  if (!instance->link && psplit_i_order_view_init(&s->view, instance, &s->arena) != PSPLIT_OK) {
    psplit_i_order_dp_fini(s);
    return PSPLIT_NOMEM;
  }
  if (instance->link && psplit_i_link_guess_init(&s->guess, instance, &s->arena) != PSPLIT_OK) {
    psplit_i_order_dp_fini(s);
    return PSPLIT_NOMEM;
  }
  for (uint32_t state = 0; state < automaton->n_states; state++) {
    uint32_t *least = &s->least_next[state];
    *least = PSPLIT_NONE;
    for (uint32_t k = automaton->move_off[state]; k < automaton->move_off[state + 1]; k++)
      if (automaton->moves[k].next < *least) *least = automaton->moves[k].next;
  }
  return PSPLIT_OK;
}

void psplit_i_order_dp_fini(psplit_i_order_dp *s) {
  psplit_i_vec_fini(&s->cells);
  psplit_i_arena_fini(&s->arena);
}

/* The cell of a position and a state, which must be one that a split within the limit may pass. */
static psplit_i_order_dp_cell *cell_of(const psplit_i_order_dp *s, uint32_t at, uint32_t state) {
  return &s->cells.items[s->row[at] + (state - s->first[at])];
}

/* The same for any state; NULL if no split within the limit passes it. */
static psplit_i_order_dp_cell *cell_at(const psplit_i_order_dp *s, uint32_t at, uint32_t state) {
  const bool passes = state >= s->first[at] && s->row[at] + (state - s->first[at]) < s->row[at + 1];
  return passes ? cell_of(s, at, state) : NULL;
}

/* The states per position that leave enough devices for what is before the position and used enough
 * for what is behind. With many stages this is a narrow band. Returns false if out of memory. */
static bool make_rows(psplit_i_order_dp *s, int64_t limit) {
  const psplit_i_automaton *m = s->automaton;
  const uint32_t n = s->instance->n, n_states = m->n_states;
  const double most = (double)limit * (1 + 1e-9);
  size_t n_cells = 0;
  /* With a fixed device order, capacity decreases with the state, so both ends move backwards along
   * the order. */
  uint32_t low = m->any_order ? 0 : n_states - 1, high = n_states;
  for (uint32_t at = 0; at <= n; at++) {
    const double before = (double)s->prefix[at], behind = (double)(s->prefix[n] - s->prefix[at]);
    if (!m->any_order) {
      while (low > 0 && behind <= most * m->taken[low - 1]) low--;
      while (high > 0 && before > most * m->capacity[high - 1]) high--;
    }
    s->row[at] = n_cells;
    s->first[at] = low;
    if (high > low && (at == n || at % s->grain == 0)) n_cells += high - low;
  }
  s->row[n + 1] = n_cells;
  s->cells.n = 0;
  if (!psplit_i_vec_reserve(&s->cells, n_cells)) return false;
  s->cells.n = n_cells;
  for (size_t k = 0; k < n_cells; k++) s->cells.items[k].value = PSPLIT_I_INF;
  return true;
}

/* The range [a, b) of the order as a stage, for every state that may stand behind it. */
typedef struct range_step {
  psplit_i_order_dp *s;
  uint32_t a, b, n_active;
  int64_t limit;
  psplit_i_order_dp_cell *cells; /* [n_cells] of a, from the state `first` on */
  size_t first, n_cells;
} range_step;

static void begin_at(range_step *step, uint32_t a) {
  const psplit_i_order_dp *s = step->s;
  step->a = a;
  step->cells = s->cells.items + s->row[a];
  step->first = s->first[a];
  step->n_cells = s->row[a + 1] - s->row[a];
}

/* The reached states behind step->b, and their values. */
static void find_active(range_step *step) {
  psplit_i_order_dp *s = step->s;
  const uint32_t b = step->b;
  step->n_active = 0;
  for (size_t k = s->row[b]; k < s->row[b + 1]; k++) {
    if (s->cells.items[k].value >= PSPLIT_I_INF) continue;
    s->behind[step->n_active] = s->cells.items[k].value;
    s->active[step->n_active++] = s->first[b] + (uint32_t)(k - s->row[b]);
  }
}

/* The cell to which a stage before the i-th active state leads, or NULL if it cannot be
 * improved. */
static inline psplit_i_order_dp_cell *better_by(const range_step *step, uint32_t i, uint32_t next) {
  const size_t k = next - step->first; /* wraps below the first */
  if (k >= step->n_cells) return NULL;
  return step->s->behind[i] < step->cells[k].value ? &step->cells[k] : NULL;
}

static inline void relax(const range_step *step, uint32_t i, uint32_t next, int64_t load,
                         psplit_i_order_dp_cell *cell) {
  const psplit_i_order_dp *s = step->s;
  if (load > step->limit) return;
  const int64_t before = s->behind[i];
  const int64_t value = s->automaton->adds_up ? load + before : load > before ? load : before;
  if (value >= cell->value) return;
  if ((double)s->prefix[step->a] > (double)step->limit * s->automaton->capacity[next] * (1 + 1e-9))
    return;
  *cell = (psplit_i_order_dp_cell){value, step->b, s->active[i]};
}

static void relax_move(const range_step *step, uint32_t i, const psplit_i_transition *move) {
  psplit_i_order_dp_cell *cell = better_by(step, i, move->next);
  if (!cell) return;
  const psplit_i_order_dp *s = step->s;
  relax(step, i, move->next, psplit_i_load_tracker_load(&s->tracker, s->automaton, move), cell);
}

/* Relaxes the transitions of a stage with a pinned cluster. */
static void relax_pinned(const range_step *step) {
  const psplit_i_order_dp *s = step->s;
  const psplit_i_automaton *m = s->automaton;
  psplit_i_transition move;
  for (uint32_t i = 0; i < step->n_active; i++)
    for (uint32_t t = 0; t < m->n_types; t++)
      for (uint32_t r = 1; r <= m->most_copies; r++)
        if (psplit_i_automaton_pinned(m, s->active[i], s->tracker.pin, t, r, &move))
          relax_move(step, i, &move);
}

/* If neither the stage number nor its copies matter, one load per type suffices. */
static void relax_by_type(const range_step *step) {
  const psplit_i_order_dp *s = step->s;
  const psplit_i_automaton *m = s->automaton;
  for (uint32_t t = 0; t < m->n_types; t++) s->loads[t] = -1;
  for (uint32_t i = 0; i < step->n_active; i++) {
    for (uint32_t k = m->move_off[s->active[i]]; k < m->move_off[s->active[i] + 1]; k++) {
      const uint32_t next = m->moves[k].next, t = m->moves[k].type;
      psplit_i_order_dp_cell *cell = better_by(step, i, next);
      if (!cell) continue;
      if (s->loads[t] < 0)
        s->loads[t] = psplit_i_load_tracker_load(&s->tracker, m,
                                                 &(psplit_i_transition){.type = t, .replicas = 1});
      relax(step, i, next, s->loads[t], cell);
    }
  }
}

static void relax_all(const range_step *step) {
  const psplit_i_order_dp *s = step->s;
  const psplit_i_automaton *m = s->automaton;
  if (m->all_used && s->tracker.n_counted == 0) return;
  if (s->tracker.pin != PSPLIT_NONE) {
    relax_pinned(step);
    return;
  }
  if (!s->instance->stash && !m->replicated && !s->use_guess) {
    relax_by_type(step);
    return;
  }
  for (uint32_t i = 0; i < step->n_active; i++) {
    const uint32_t state = s->active[i];
    for (uint32_t k = m->move_off[state]; k < m->move_off[state + 1]; k++)
      relax_move(step, i, &m->moves[k]);
  }
}

/* Two different pins in one stage. Larger stages contain both, so they are invalid as well. */
static bool pins_clash(const psplit_i_instance *instance, uint32_t pin, uint32_t cluster) {
  return pin != PSPLIT_NONE && instance->pin[cluster] != PSPLIT_NONE &&
         instance->pin[cluster] != pin;
}

static void trace(psplit_i_order_dp *s, const uint32_t *order, uint32_t state,
                  psplit_i_assignment *assignment) {
  const psplit_i_automaton *m = s->automaton;
  for (uint32_t k = 0; k < m->n_stages; k++) {
    assignment->device[k] = PSPLIT_NONE;
    assignment->replicas[k] = 1;
  }
  uint32_t a = 0;
  while (a < s->instance->n) {
    const psplit_i_order_dp_cell *cell = cell_of(s, a, state);
    const uint32_t b = cell->from, from = cell->from_state;
    uint32_t pin = PSPLIT_NONE;
    for (uint32_t i = a; i < b; i++)
      if (s->instance->pin[order[i]] != PSPLIT_NONE) pin = s->instance->pin[order[i]];
    const psplit_i_transition move = psplit_i_automaton_between(m, from, state, pin);
    for (uint32_t i = a; i < b; i++) assignment->stage[order[i]] = move.stage;
    assignment->device[move.stage] = move.type;
    assignment->replicas[move.stage] = move.replicas;
    a = b;
    state = from;
  }
  psplit_i_automaton_name_devices(m, assignment->replicas, assignment->device);
}

/* Makes the tracker hold [a, b) of the order. Keeps what it already holds of that, if this is
 * cheaper than starting over. */
static void hold(psplit_i_order_dp *s, const uint32_t *order, uint32_t a, uint32_t b) {
  const uint32_t from = s->held_a, to = s->held_b;
  const bool shares = a < to && from < b;
  const uint32_t moved = (to > b ? to - b : b - to) + (from > a ? from - a : a - from);
  if (!shares || moved > b - a + (to - from) / 2) {
    psplit_i_load_tracker_clear(&s->tracker, order + from, to - from);
    for (uint32_t i = b; i > a; i--) psplit_i_load_tracker_add(&s->tracker, order[i - 1]);
  } else {
    for (uint32_t i = to; i > b; i--) psplit_i_load_tracker_remove(&s->tracker, order[i - 1]);
    for (uint32_t i = from; i < a; i++) psplit_i_load_tracker_remove(&s->tracker, order[i]);
    for (uint32_t i = to; i < b; i++) psplit_i_load_tracker_add(&s->tracker, order[i]);
    for (uint32_t i = from; i > a; i--) psplit_i_load_tracker_add(&s->tracker, order[i - 1]);
  }
  s->held_a = a;
  s->held_b = b;
}

/* The operations for adding a cluster to the tracker and removing it, for each of its nets. */
static uint64_t ops_of_net(const psplit_i_instance *instance) {
  enum { NET_BYTES = 32 }; /* what the tracker and the instance hold of a net */
  return psplit_i_look_ops((uint64_t)instance->n_nets * NET_BYTES);
}

/* Work is charged in portions of about a millisecond, since one stage may be as long as the
 * order. */
static bool spend_some(psplit_i_budget *budget, uint64_t *n_ops) {
  enum { SOME = 1 << 17 };
  if (*n_ops < SOME) return true;
  const uint64_t done = *n_ops;
  *n_ops = 0;
  return psplit_i_spend(budget, done);
}

/* How ranges are charged, and where they end. `affords`: the budget has sufficed so far. */
typedef struct sweep {
  psplit_i_budget *budget;
  uint64_t n_ops, n_relaxed; /* not yet charged; of a position */
  double largest_min_time;
  uint64_t most_bytes;
  bool skips, affords;
} sweep;

/* The last position before step->b where a stage that ends there may begin: where there is a cell
 * for a state that it leads to. With few ways through the order most positions have none, and what
 * lies between the tracker knows from the range before. step->b: there is none. Charged as if all
 * between had been looked at: how much of the search there is time for does not hang on it. */
static uint32_t last_begin(const range_step *step, sweep *w) {
  const psplit_i_order_dp *s = step->s;
  uint32_t least = PSPLIT_NONE;
  for (uint32_t i = 0; i < step->n_active; i++)
    if (s->least_next[s->active[i]] < least) least = s->least_next[s->active[i]];
  for (uint32_t a = step->b; a > 0 && w->affords;) {
    if ((double)(s->prefix[step->b] - s->prefix[a - 1]) > w->largest_min_time) break;
    w->n_ops += s->work[--a];
    w->affords = spend_some(w->budget, &w->n_ops);
    if (a % s->grain != 0) continue;
    w->n_ops += w->n_relaxed;
    const size_t n_cells = s->row[a + 1] - s->row[a];
    if (n_cells && s->first[a] + n_cells > least) return a;
  }
  return step->b;
}

/* Evaluates all stages that end at step->b. */
static void sweep_back(range_step *step, const uint32_t *order, sweep *w) {
  psplit_i_order_dp *s = step->s;
  const psplit_i_instance *instance = s->tracker.instance;
  uint32_t a = w->skips ? last_begin(step, w) : step->b;
  if (w->skips && a == step->b) return;
  hold(s, order, a, step->b);
  begin_at(step, a);
  if (a < step->b) relax_all(step);
  while (a > 0 && w->affords) {
    if (pins_clash(instance, s->tracker.pin, order[a - 1])) break;
    if ((double)(s->prefix[step->b] - s->prefix[a - 1]) > w->largest_min_time) break;
    psplit_i_load_tracker_add(&s->tracker, order[--a]);
    s->held_a = a;
    w->n_ops += s->work[a];
    if (s->tracker.weight_bytes + s->tracker.act_bytes > w->most_bytes) break;
    w->affords = spend_some(w->budget, &w->n_ops);
    if (a % s->grain != 0) continue;
    w->n_ops += w->n_relaxed;
    begin_at(step, a);
    relax_all(step);
  }
}

/* Fills the cells from the end of the order to its beginning. Returns false if the budget is
 * spent. */
static bool fill(psplit_i_order_dp *s, const uint32_t *order, int64_t limit,
                 psplit_i_budget *budget) {
  const psplit_i_instance *instance = s->tracker.instance;
  const psplit_i_automaton *m = s->automaton;
  const uint64_t net_ops = ops_of_net(instance),
                 most_bytes = psplit_i_automaton_most_memory(m, instance);
  sweep w = {.budget = budget,
             .largest_min_time = (double)limit * psplit_i_automaton_most_replicas(m),
             .most_bytes = most_bytes,
             /* Pins and memory may end a range at any position. */
             .skips = !instance->has_pins && most_bytes == UINT64_MAX,
             .affords = true};
  for (uint32_t i = 0; i < instance->n; i++) {
    const uint32_t v = order[i];
    s->work[i] = 1 + (uint32_t)net_ops * (instance->inc_off[v + 1] - instance->inc_off[v]);
  }
  s->held_a = s->held_b = instance->n;
  for (uint32_t b = instance->n; b > 0 && w.affords; b--) {
    if (b < instance->n && b % s->grain != 0) continue;
    range_step step = {.s = s, .a = b, .b = b, .limit = limit};
    find_active(&step);
    if (step.n_active == 0) continue;
    w.n_ops = 2;
    w.n_relaxed = 1 + step.n_active * (uint64_t)m->move_off[m->n_states] / m->n_states;
    sweep_back(&step, order, &w);
    w.affords = w.affords && psplit_i_spend(budget, w.n_ops);
  }
  psplit_i_load_tracker_clear(&s->tracker, order + s->held_a, s->held_b - s->held_a);
  return w.affords;
}

/* The clusters of the order as the tracker reads them: renumbered by position, except where links
 * differ by pair, since guesses are per net. */
static const uint32_t *take_order(psplit_i_order_dp *s, const uint32_t *order,
                                  const uint32_t *times_sent) {
  s->tracker.times_sent = times_sent;
  if (s->instance->link) return order;
  psplit_i_order_view_set(&s->view, s->instance, order, times_sent);
  s->tracker.instance = &s->view.instance;
  if (times_sent) s->tracker.times_sent = s->view.times_sent;
  return s->view.cluster;
}

bool psplit_i_order_dp_run(psplit_i_order_dp *s, const uint32_t *order, const uint32_t *times_sent,
                           int64_t limit, psplit_i_budget *budget,
                           psplit_i_assignment *out_assignment) {
  const psplit_i_instance *instance = s->instance;
  const psplit_i_automaton *m = s->automaton;
  const uint32_t n = instance->n, n_states = m->n_states;
  out_assignment->value = out_assignment->comm = PSPLIT_I_INF;
  if (limit > PSPLIT_I_INF - 1) limit = PSPLIT_I_INF - 1;
  for (uint32_t i = 0; i < n; i++) s->prefix[i + 1] = s->prefix[i] + m->min_time[order[i]];
  if (!make_rows(s, limit)) return false;
  if (!psplit_i_spend(budget, n + s->cells.n)) return true;
  s->tracker.guess = s->use_guess ? &s->guess : NULL;
  psplit_i_order_dp_cell *end = cell_at(s, n, 0);
  if (!end) return true;
  end->value = 0;
  if (!fill(s, take_order(s, order, times_sent), limit, budget)) return true;
  int64_t value = PSPLIT_I_INF;
  uint32_t state = 0;
  for (uint32_t c = 0; c < n_states; c++) {
    const psplit_i_order_dp_cell *cell = cell_at(s, 0, c);
    if (!cell || !psplit_i_automaton_final(m, c) || cell->value >= value) continue;
    value = cell->value;
    state = c;
  }
  if (value >= PSPLIT_I_INF) return true;
  trace(s, order, state, out_assignment);
  psplit_i_assignment_evaluate(out_assignment, instance, m, s->scratch);
  return true;
}
