/* The device automaton: its states and moves, by the order of devices that the problem asks for. */
#include <inttypes.h>
#include <string.h>

#include "automaton.h"
#include "instance.h"
#include "problem.h"

enum {
  MAX_STATES = 1 << 16,
  MAX_NUMBERED = 1 << 12 /* states where stages are counted besides devices of one type */
};

static psplit_code measure(psplit_i_automaton *m, const psplit_i_instance *instance,
                           psplit_diag *diag) {
  const uint32_t n = instance->n;
  m->min_time = PSPLIT_NEW(&m->arena, int64_t, n);
  m->ratio = PSPLIT_NEW(&m->arena, double, m->n_types);
  if (!m->min_time || !m->ratio) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n; i++) {
    int64_t least = PSPLIT_I_INF;
    for (uint32_t t = 0; t < m->n_types; t++) {
      const int64_t w = instance->w[(size_t)t * n + i];
      if (m->count[t] > 0 && w < least) least = w;
    }
    if (least >= PSPLIT_I_INF) {
      uint32_t v = 0;
      while (instance->cluster_of_node[v] != i) v++;
      char name[32];
      return psplit_i_fail(diag, PSPLIT_INFEASIBLE,
                           "node %s (with the nodes it must stay with) can run on no device",
                           psplit_i_node_name(instance->problem, v, name));
    }
    m->min_time[i] = least;
    m->total_min_time += least;
  }
  for (uint32_t t = 0; t < m->n_types; t++) {
    double least = 0x1p60;
    for (uint32_t i = 0; i < n; i++) {
      const double w = (double)instance->w[(size_t)t * n + i], min_time = (double)m->min_time[i];
      if (min_time > 0 && w / min_time < least) least = w / min_time;
    }
    m->ratio[t] = least < 1 ? 1 : least;
  }
  return PSPLIT_OK;
}

static uint32_t max_replicas(const psplit_partition_options *options) {
  return options->max_replicas > 1 ? options->max_replicas : 1;
}

static psplit_code fixed_order(psplit_i_automaton *m, const psplit_partition_options *options,
                               psplit_diag *diag) {
  const uint32_t n_stages = m->n_stages, most = max_replicas(options);
  m->n_states = n_stages + 1;
  m->stage_type = PSPLIT_NEW(&m->arena, uint32_t, n_stages);
  m->used = PSPLIT_NEW(&m->arena, uint32_t, m->n_states);
  m->capacity = PSPLIT_NEW(&m->arena, double, m->n_states);
  m->taken = PSPLIT_NEW(&m->arena, double, m->n_states);
  m->move_off = PSPLIT_NEW(&m->arena, uint32_t, (size_t)m->n_states + 1);
  const size_t per_state = m->all_used ? most : (size_t)m->n_types * most;
  m->moves = PSPLIT_NEW(&m->arena, psplit_i_transition, per_state * m->n_states);
  m->first_stage = PSPLIT_NEW(&m->arena, uint32_t, m->n_types);
  if (!m->stage_type || !m->first_stage || !m->used || !m->capacity || !m->taken || !m->move_off ||
      !m->moves)
    return psplit_i_nomem(diag);
  uint32_t s = 0, n_moves = 0;
  for (uint32_t t = 0; t < m->n_types; t++) {
    m->first_stage[t] = s;
    for (uint32_t k = 0; k < m->count[t]; k++, s++) {
      m->stage_type[s] = t;
      m->capacity[n_stages - s - 1] = m->capacity[n_stages - s] + 1 / m->ratio[t];
    }
  }
  for (uint32_t j = 0; j <= n_stages; j++) {
    m->used[j] = j;
    if (j > 0) m->taken[j] = m->taken[j - 1] + 1 / m->ratio[m->stage_type[n_stages - j]];
    m->move_off[j] = n_moves;
    /* Dominance: of the free devices of a type the latest, since any other leaves a subset of what
     * it leaves for the stages in front. */
    for (uint32_t top = n_stages - j; top > 0;) {
      const uint32_t type = m->stage_type[top - 1], first = m->first_stage[type];
      for (uint32_t r = 1; r <= most && r <= top - first; r++)
        m->moves[n_moves++] = (psplit_i_transition){type, n_stages - (top - r), r, top - r};
      if (m->all_used) break;
      top = first;
    }
  }
  m->move_off[m->n_states] = n_moves;
  return PSPLIT_OK;
}

static psplit_code too_many_states(psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                       "too many kinds of devices for the solver to order (at most %d combinations "
                       "of counts, with pins times stages); give the devices in stage order",
                       MAX_STATES);
}

static psplit_code free_order(psplit_i_automaton *m, const psplit_i_instance *instance,
                              const psplit_partition_options *options, psplit_diag *diag) {
  m->radix = PSPLIT_NEW(&m->arena, uint32_t, m->n_types);
  if (!m->radix) return psplit_i_nomem(diag);
  uint64_t n_states = 1;
  for (uint32_t t = 0; t < m->n_types; t++) {
    m->radix[t] = (uint32_t)n_states;
    n_states *= (uint64_t)m->count[t] + 1;
    if (n_states > MAX_STATES) return too_many_states(diag);
  }
  /* With pins a stage's number matters, and any devices behind it may stay unused: the number of
   * stages passed is a part of the state. So it is where copies use up devices, but no numbers, and
   * activations count by number. */
  const uint32_t n_counts = (uint32_t)n_states;
  const bool numbered =
    instance->has_pins || (m->features & 1u << PSPLIT_I_FEATURE_NUMBERED_COPIES);
  if (numbered) n_states *= (uint64_t)m->n_stages + 1;
  if (n_states > MAX_STATES) return too_many_states(diag);
  m->stage_radix = numbered ? n_counts : 0;
  m->features &= ~(1u << PSPLIT_I_FEATURE_NUMBERED_COPIES);
  const uint32_t most = max_replicas(options);
  m->n_states = (uint32_t)n_states;
  m->used = PSPLIT_NEW(&m->arena, uint32_t, n_states);
  m->capacity = PSPLIT_NEW(&m->arena, double, n_states);
  m->taken = PSPLIT_NEW(&m->arena, double, n_states);
  m->move_off = PSPLIT_NEW(&m->arena, uint32_t, n_states + 1);
  m->moves = PSPLIT_NEW(&m->arena, psplit_i_transition, n_states * m->n_types * most);
  if (!m->used || !m->capacity || !m->taken || !m->move_off || !m->moves)
    return psplit_i_nomem(diag);
  uint32_t n_moves = 0;
  for (uint32_t c = 0; c < n_states; c++) {
    m->move_off[c] = n_moves;
    for (uint32_t t = 0; t < m->n_types; t++) {
      const uint32_t n_used = c / m->radix[t] % (m->count[t] + 1);
      m->used[c] += n_used;
      m->taken[c] += n_used / m->ratio[t];
    }
    if (m->stage_radix) m->used[c] = c / m->stage_radix;
    if (m->used[c] == m->n_stages) continue;
    for (uint32_t t = 0; t < m->n_types; t++) {
      const uint32_t left = m->count[t] - c / m->radix[t] % (m->count[t] + 1);
      m->capacity[c] += left / m->ratio[t];
      for (uint32_t r = 1;
           r <= most && r <= left && (m->stage_radix || m->used[c] + r <= m->n_stages); r++)
        m->moves[n_moves++] =
          (psplit_i_transition){t, c + r * m->radix[t] + m->stage_radix, r,
                                m->n_stages - m->used[c] - (m->stage_radix ? 1 : r)};
    }
  }
  m->move_off[n_states] = n_moves;
  return PSPLIT_OK;
}

psplit_code psplit_i_automaton_init(psplit_i_automaton *m, const psplit_i_instance *instance,
                                    const psplit_partition_options *options, psplit_diag *diag) {
  memset(m, 0, sizeof *m);
  psplit_i_arena_init(&m->arena, 0);
  const psplit_problem *p = instance->problem;
  psplit_code code = PSPLIT_NOMEM;
  m->n_types = instance->n_types;
  m->n_stages = instance->n_stages;
  m->features = psplit_i_features_of(p, options);
  m->all_used = options->require_nonempty;
  m->replicated = options->max_replicas > 1;
  if (m->replicated && options->sync_bytes_per_s > 0)
    m->sync_ns_per_byte =
      1e9 * p->ticks_per_unit / (options->micro_batches * options->sync_bytes_per_s);
  uint32_t n_types_used = 0;
  m->count = PSPLIT_NEW(&m->arena, uint32_t, m->n_types);
  if (!m->count) {
    code = psplit_i_nomem(diag);
    goto out;
  }
  for (uint32_t t = 0; t < m->n_types; t++) {
    m->count[t] = p->devices[t].count;
    n_types_used += m->count[t] > 0;
  }
  m->most_copies = max_replicas(options);
  m->any_order = p->any_device_order && n_types_used > 1;
  /* One type has every order; its devices and the stages are counted apart. */
  if ((m->features & 1u << PSPLIT_I_FEATURE_NUMBERED_COPIES) && n_types_used == 1)
    m->any_order |= ((uint64_t)m->n_stages + 1) * (m->n_stages + 1) <= MAX_NUMBERED;
  PSPLIT_TRY(measure(m, instance, diag));
  PSPLIT_TRY(m->any_order ? free_order(m, instance, options, diag) : fixed_order(m, options, diag));
out:
  if (code != PSPLIT_OK) psplit_i_automaton_fini(m);
  return code;
}

psplit_code psplit_i_automaton_number_freely(psplit_i_automaton *m) {
  const uint32_t n_stages = m->n_stages;
  const size_t per_state = (size_t)n_stages * (m->any_order ? m->n_types : 1);
  psplit_i_transition *moves = PSPLIT_NEW(&m->arena, psplit_i_transition, per_state * m->n_states);
  if (!moves) return PSPLIT_NOMEM;
  uint32_t n = 0;
  for (uint32_t c = 0; c < m->n_states; c++) {
    m->move_off[c] = n;
    for (uint32_t s = n_stages - m->used[c]; s-- > 0;) {
      if (!m->any_order) {
        moves[n++] = (psplit_i_transition){m->stage_type[s], n_stages - s, 1, s};
        continue;
      }
      for (uint32_t t = 0; t < m->n_types; t++)
        if (psplit_i_automaton_has(m, c, t))
          moves[n++] = (psplit_i_transition){
            t, c + m->radix[t] + (n_stages - m->used[c] - s) * m->stage_radix, 1, s};
    }
  }
  m->move_off[m->n_states] = n;
  m->moves = moves;
  return PSPLIT_OK;
}

void psplit_i_automaton_fini(psplit_i_automaton *m) { psplit_i_arena_fini(&m->arena); }

bool psplit_i_automaton_leq(const psplit_i_automaton *m, uint32_t a, uint32_t b) {
  if (!m->any_order) return a <= b;
  if (m->used[a] > m->used[b]) return false;
  for (uint32_t t = 0; t < m->n_types; t++)
    if (a / m->radix[t] % (m->count[t] + 1) > b / m->radix[t] % (m->count[t] + 1)) return false;
  return true;
}

bool psplit_i_automaton_has(const psplit_i_automaton *m, uint32_t state, uint32_t type) {
  if (m->any_order) return state / m->radix[type] % (m->count[type] + 1) < m->count[type];
  return m->count[type] > 0 && m->first_stage[type] < m->n_stages - m->used[state];
}

bool psplit_i_automaton_pinned(const psplit_i_automaton *m, uint32_t state, uint32_t pin,
                               uint32_t type, uint32_t copies, psplit_i_transition *out_move) {
  const uint32_t top = m->n_stages - m->used[state];
  if (pin >= top || (m->all_used && pin + 1 != top)) return false;
  uint32_t next = m->n_stages - pin;
  if (m->any_order) {
    if (state / m->radix[type] % (m->count[type] + 1) + copies > m->count[type]) return false;
    next = state + copies * m->radix[type] + (top - pin) * m->stage_radix;
  } else if (type != m->stage_type[pin] || copies > 1) { /* its copies have no numbers here */
    return false;
  }
  *out_move = (psplit_i_transition){type, next, copies, pin};
  return true;
}

psplit_i_transition psplit_i_automaton_between(const psplit_i_automaton *m, uint32_t from,
                                               uint32_t to, uint32_t pin) {
  psplit_i_transition move = {0};
  for (uint32_t t = 0; pin != PSPLIT_NONE && t < m->n_types; t++)
    for (uint32_t r = 1; r <= m->most_copies; r++)
      if (psplit_i_automaton_pinned(m, from, pin, t, r, &move) && move.next == to) return move;
  for (uint32_t k = m->move_off[from]; k < m->move_off[from + 1]; k++)
    if (m->moves[k].next == to) move = m->moves[k];
  return move;
}

void psplit_i_automaton_name_devices(const psplit_i_automaton *m, const uint32_t *replicas,
                                     uint32_t *device) {
  for (uint32_t s = 0; !m->any_order && s < m->n_stages; s++) device[s] = m->stage_type[s];
  for (uint32_t t = 0; m->any_order && t < m->n_types; t++) {
    uint32_t used = 0;
    for (uint32_t s = 0; s < m->n_stages; s++) used += device[s] == t ? replicas[s] : 0;
    for (uint32_t s = 0; s < m->n_stages; s++) {
      if (device[s] != PSPLIT_NONE) continue;
      if (used++ < m->count[t] || t + 1 == m->n_types) device[s] = t;
    }
  }
}

uint32_t psplit_i_automaton_most_replicas(const psplit_i_automaton *m) {
  uint32_t most = 1;
  for (uint32_t k = 0; m->replicated && k < m->move_off[m->n_states]; k++)
    if (m->moves[k].replicas > most) most = m->moves[k].replicas;
  return most;
}

int64_t psplit_i_automaton_reach(const psplit_i_automaton *m, int64_t limit) {
  const uint32_t replicas = psplit_i_automaton_most_replicas(m);
  return limit > PSPLIT_I_INF / replicas ? PSPLIT_I_INF : limit * replicas;
}

uint64_t psplit_i_automaton_most_memory(const psplit_i_automaton *m,
                                        const psplit_i_instance *instance) {
  uint64_t most = 0;
  for (uint32_t t = 0; t < m->n_types; t++) {
    const uint64_t bytes = instance->problem->devices[t].memory_bytes;
    if (m->count[t] > 0 && bytes == 0) return UINT64_MAX;
    if (m->count[t] > 0 && bytes > most) most = bytes;
  }
  return most;
}
