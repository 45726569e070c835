#include "few_splits.h"

#include "load_tracker.h"

enum { MOST_TRIED = 1 << 17 };

typedef struct search {
  const psplit_i_directions *d;
  psplit_i_load_tracker tracker[PSPLIT_I_N_DIRECTIONS];
  psplit_i_arena arena;
  psplit_i_assignment now;
  uint32_t *times_sent, *mark;
} search;

bool psplit_i_splits_are_few(const psplit_i_directions *d) {
  const psplit_i_instance *instance = &d->instance[0];
  uint64_t n_all = 1;
  for (uint32_t i = 0; i < instance->n && n_all <= MOST_TRIED; i++) n_all *= instance->n_stages;
  return n_all <= MOST_TRIED && !d->automaton[0].any_order;
}

static psplit_code init(search *s, const psplit_i_directions *d) {
  const psplit_i_instance *instance = &d->instance[0];
  *s = (search){.d = d};
  psplit_i_arena_init(&s->arena, 0);
  for (int k = 0; k < PSPLIT_I_N_DIRECTIONS; k++)
    if (psplit_i_load_tracker_init(&s->tracker[k], &d->instance[k], &s->arena) != PSPLIT_OK)
      return PSPLIT_NOMEM;
  s->times_sent = PSPLIT_NEW(&s->arena, uint32_t, instance->n_nets);
  s->mark = PSPLIT_NEW(&s->arena, uint32_t, instance->n_stages);
  if (!s->times_sent || !s->mark) return PSPLIT_NOMEM;
  for (int k = 0; k < PSPLIT_I_N_DIRECTIONS; k++) s->tracker[k].times_sent = s->times_sent;
  const psplit_code code = psplit_i_assignment_init(&s->now, instance, &s->arena);
  for (uint32_t t = 0; code == PSPLIT_OK && t < instance->n_stages; t++) {
    s->now.device[t] = d->automaton[0].stage_type[t];
    s->now.replicas[t] = 1;
  }
  return code;
}

/* INF: the split breaks a limit. */
static int64_t value_of(search *s) {
  const psplit_i_instance *instance = &s->d->instance[0];
  int64_t most[PSPLIT_I_N_DIRECTIONS] = {0};
  psplit_i_assignment_times_sent(&s->now, instance, s->times_sent, s->mark);
  for (uint32_t t = 0; t < instance->n_stages; t++) {
    const psplit_i_transition move = {.type = s->now.device[t], .replicas = 1, .stage = t};
    bool counts = false;
    for (int k = 0; k < PSPLIT_I_N_DIRECTIONS; k++) {
      psplit_i_load_tracker *tracker = &s->tracker[k];
      for (uint32_t i = 0; i < instance->n; i++)
        if (s->now.stage[i] == t) psplit_i_load_tracker_add(tracker, i);
      const int64_t load = psplit_i_load_tracker_load(tracker, &s->d->automaton[k], &move);
      if (load > most[k]) most[k] = load;
      counts = tracker->n_counted > 0;
      for (uint32_t i = 0; i < instance->n; i++)
        if (s->now.stage[i] == t) psplit_i_load_tracker_remove(tracker, i);
    }
    if (s->d->automaton[0].all_used && !counts) return PSPLIT_I_INF;
  }
  return most[0] >= PSPLIT_I_INF || most[1] >= PSPLIT_I_INF ? PSPLIT_I_INF : most[0] + most[1];
}

/* The first stage that cluster i may have, given those before it. */
static uint32_t first_stage(const search *s, uint32_t i) {
  const psplit_i_instance *instance = &s->d->instance[0];
  uint32_t first = 0;
  for (uint32_t k = instance->pred_off[i]; k < instance->pred_off[i + 1]; k++)
    if (s->now.stage[instance->pred[k]] > first) first = s->now.stage[instance->pred[k]];
  return first;
}

/* The next split in lexicographic order from cluster `i` on, which moves on; false: it was the
 * last. */
static bool advance(search *s) {
  const psplit_i_instance *instance = &s->d->instance[0];
  uint32_t i = instance->n;
  while (i > 0 && s->now.stage[i - 1] + 1 >= instance->n_stages) i--;
  if (i == 0) return false;
  s->now.stage[i - 1]++;
  for (; i < instance->n; i++) s->now.stage[i] = first_stage(s, i);
  return true;
}

static bool keeps_pins(const search *s) {
  const psplit_i_instance *instance = &s->d->instance[0];
  for (uint32_t i = 0; instance->has_pins && i < instance->n; i++)
    if (instance->pin[i] != PSPLIT_NONE && instance->pin[i] != s->now.stage[i]) return false;
  return true;
}

psplit_code psplit_i_few_splits(const psplit_i_directions *d, psplit_i_budget *budget,
                                int64_t *io_limit, psplit_i_assignment *out_split,
                                bool *out_complete) {
  const psplit_i_instance *instance = &d->instance[0];
  search s;
  const psplit_code code = init(&s, d);
  *out_complete = code == PSPLIT_OK;
  for (bool more = code == PSPLIT_OK; more; more = advance(&s)) {
    const uint64_t ops = instance->n + 4 * (uint64_t)instance->net_off[instance->n_nets];
    *out_complete = psplit_i_spend(budget, ops);
    if (!*out_complete) break;
    const int64_t value = keeps_pins(&s) ? value_of(&s) : PSPLIT_I_INF;
    if (value >= *io_limit) continue;
    *io_limit = value;
    psplit_i_assignment_copy(out_split, &s.now, instance);
  }
  psplit_i_arena_fini(&s.arena);
  return code;
}
