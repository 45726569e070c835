/* Decides by dynamic programming over downsets whether every load <= limit is possible.
 *
 * A label (left, state, receivers) consists of the downset of clusters not yet placed, the devices
 * used behind it, and the number of stages that already receive each tensor still to be sent.
 * Labels are expanded in rounds by the number of devices used, and the labels of a round are
 * independent. From a label, the last stage of what is left grows cluster by cluster in decreasing
 * topological order, which visits every sub-downset exactly once. Compute and memory are monotone:
 * the stage stops growing where either exceeds the limit.
 *
 * The set of labels of a round does not depend on threads: a label is dropped only if an equal one
 * exists or, between rounds, if one of an earlier round dominates it (the same downset and
 * receivers with no more of any device used). Steps and bytes are counted in total, so running out
 * of either is deterministic as well. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "exact.h"
#include "exact_inside.h"
#include "instance.h"
#include "problem.h"
#include "team.h"
#include "weight_axis.h"

/* Copies the labels of round `used` that are not dominated. */
static psplit_code gather(psplit_i_program *x, uint32_t used, psplit_i_round *round) {
  size_t n = 0, n_counts = 0;
  for (int pass = 0; pass < 2; pass++) {
    if (pass == 1) {
      round->labels = malloc((n + 1) * sizeof *round->labels);
      round->counts = malloc((n_counts + 1) * sizeof *round->counts);
      x->round_ids = malloc((n + 1) * sizeof *x->round_ids);
      x->round_bits = malloc((n + 1) * x->words * sizeof *x->round_bits);
      x->round_keys = malloc((n + 1) * x->n_key_bytes + 1);
      if (!round->labels || !round->counts || !x->round_ids || !x->round_bits || !x->round_keys)
        return PSPLIT_NOMEM;
      n = n_counts = 0;
    }
    for (uint32_t i = 0; i < PSPLIT_I_N_SHARDS; i++) {
      psplit_i_shard *s = &x->shards[i];
      for (uint32_t k = s->round_head[used]; k != PSPLIT_NONE;
           k = s->labels.items[k].next_of_round) {
        const uint32_t from = k ? s->counts_at.items[k - 1] : 0, to = s->counts_at.items[k];
        if (pass == 0) {
          n++;
          n_counts += to - from;
          continue;
        }
        if (psplit_i_exact_dominated(x, s, k)) continue;
        x->round_ids[n] = k * PSPLIT_I_N_SHARDS + i;
        memcpy(x->round_bits + n * x->words, s->bits.items + (size_t)k * x->words,
               x->words * sizeof *x->round_bits);
        if (x->n_key_bytes)
          memcpy(x->round_keys + n * x->n_key_bytes, s->keys.items + (size_t)k * x->n_key_bytes,
                 x->n_key_bytes);
        round->labels[n] = (psplit_i_round_label){s->labels.items[k], (uint32_t)n_counts,
                                                  (uint32_t)(n_counts + to - from)};
        if (to > from)
          memcpy(round->counts + n_counts, s->counts.items + from,
                 (to - from) * sizeof *round->counts);
        n_counts += to - from;
        n++;
      }
    }
  }
  x->n_round = (uint32_t)n;
  return PSPLIT_OK;
}

enum {
  LARGE_ROUND = 1000, /* this many labels are expanded by several threads in any case */
  NARROW_PART = 2     /* a round with fewer labels than this part of the largest round is narrow */
};

typedef struct exact_round {
  psplit_i_program *x;
  const psplit_i_round *round;
  psplit_i_expander *expanders; /* for each thread */
} exact_round;

static void expand_one(void *with, size_t k, int thread) {
  const exact_round *all = with;
  psplit_i_program *x = all->x;
  if (atomic_load_explicit(&x->out_of_work, memory_order_relaxed) ||
      atomic_load_explicit(&x->out_of_memory, memory_order_relaxed))
    return;
  psplit_i_expander *d = &all->expanders[thread];
  const psplit_i_round_label *l = &all->round->labels[k];
  psplit_i_expander_load(d, &l->head, x->round_ids[k], x->round_bits + k * x->words,
                         x->round_keys + k * x->n_key_bytes, all->round->counts + l->counts_from,
                         l->counts_to - l->counts_from);
  if (d->min_time > 0 || l->head.hash != l->head.receivers) psplit_i_expander_expand(d);
}

/* After the widest round, few steps are left. */
static void allow_steps(psplit_i_program *x) {
  const psplit_i_exact_options *options = x->options;
  if (x->n_round > x->n_widest) x->n_widest = x->n_round;
  x->max_steps = options->max_steps;
  if (x->n_round < x->n_widest / NARROW_PART && options->max_steps_behind > x->max_steps)
    x->max_steps = options->max_steps_behind;
}

/* Expands on `team` threads, or on n_threads if there are many labels. */
static psplit_code run_round(psplit_i_program *x, uint32_t used, psplit_i_expander *expanders,
                             int team, int n_threads) {
  psplit_i_round round = {0};
  psplit_code code = gather(x, used, &round);
  if (code == PSPLIT_OK) code = psplit_i_exact_drop_dominated(&expanders[0], &round);
  allow_steps(x);
  if (code == PSPLIT_OK && x->n_round > 0) {
    if (x->n_round >= LARGE_ROUND) team = n_threads;
    exact_round all = {x, &round, expanders};
    psplit_i_team_for(team, 0, x->n_round, expand_one, &all);
  }
  free(round.labels);
  free(round.counts);
  free(x->round_ids);
  free(x->round_bits);
  free(x->round_keys);
  x->round_ids = NULL;
  x->round_bits = NULL;
  x->round_keys = NULL;
  return code;
}

/* Whether label a, of two final labels, is the better split: less communication, then the smaller
 * key. */
static bool comes_before(const psplit_i_program *x, uint32_t a, const psplit_i_label *at_a,
                         uint32_t b, const psplit_i_label *at_b) {
  if (at_a->comm != at_b->comm) return at_a->comm < at_b->comm;
  return x->n_key_bytes ? psplit_i_lexicographic_before(x, a, at_a, b, at_b)
                        : at_a->state < at_b->state;
}

/* The best final label with nothing left, or NONE. */
static uint32_t final_label(const psplit_i_program *x, uint32_t from_round) {
  uint32_t best = PSPLIT_NONE;
  const psplit_i_label *least = NULL;
  for (uint32_t used = from_round; used <= x->automaton->n_stages; used++)
    for (uint32_t i = 0; i < PSPLIT_I_N_SHARDS; i++) {
      const psplit_i_shard *s = &x->shards[i];
      for (uint32_t k = s->round_head[used]; k != PSPLIT_NONE;
           k = s->labels.items[k].next_of_round) {
        const psplit_i_label *l = &s->labels.items[k];
        bool empty = true;
        for (uint32_t w = 0; w < x->words && empty; w++)
          empty = s->bits.items[(size_t)k * x->words + w] == 0;
        if (!empty || !psplit_i_automaton_final(x->automaton, l->state)) continue;
        const uint32_t id = k * PSPLIT_I_N_SHARDS + i;
        if (least && !comes_before(x, id, l, best, least)) continue;
        least = l;
        best = id;
      }
    }
  return best;
}

/* The split of a label, from the chain of its parents. */
static void follow(const psplit_i_program *x, uint32_t id, psplit_i_assignment *assignment) {
  const psplit_i_automaton *m = x->automaton;
  const psplit_i_instance *instance = x->instance;
  for (uint32_t k = 0; k < m->n_stages; k++) {
    assignment->device[k] = PSPLIT_NONE;
    assignment->replicas[k] = 1;
  }
  for (;;) {
    const psplit_i_shard *s = &x->shards[id % PSPLIT_I_N_SHARDS];
    const psplit_i_label *l = &s->labels.items[id / PSPLIT_I_N_SHARDS];
    if (l->parent == PSPLIT_NONE) return;
    const psplit_i_shard *up = &x->shards[l->parent % PSPLIT_I_N_SHARDS];
    const psplit_i_label *from = &up->labels.items[l->parent / PSPLIT_I_N_SHARDS];
    const uint64_t *bits = s->bits.items + (size_t)(id / PSPLIT_I_N_SHARDS) * x->words;
    const uint64_t *all = up->bits.items + (size_t)(l->parent / PSPLIT_I_N_SHARDS) * x->words;
    uint32_t pin = PSPLIT_NONE;
    for (uint32_t i = 0; i < instance->n; i++)
      if (((all[i / 64] & ~bits[i / 64]) >> (i % 64) & 1) && instance->pin[i] != PSPLIT_NONE)
        pin = instance->pin[i];
    const psplit_i_transition move = psplit_i_automaton_between(m, from->state, l->state, pin);
    for (uint32_t i = 0; i < instance->n; i++)
      if ((all[i / 64] & ~bits[i / 64]) >> (i % 64) & 1) assignment->stage[i] = move.stage;
    assignment->device[move.stage] = move.type;
    assignment->replicas[move.stage] = move.replicas;
    id = l->parent;
  }
}

static psplit_code trace(psplit_i_program *x, uint32_t id, psplit_i_assignment *assignment) {
  int64_t *scratch = PSPLIT_NEW(&x->arena, int64_t, (size_t)x->instance->n_stages * 5);
  if (!scratch) return PSPLIT_NOMEM;
  if (x->n_key_bytes)
    psplit_i_lexicographic_write(
      x, id, &x->shards[id % PSPLIT_I_N_SHARDS].labels.items[id / PSPLIT_I_N_SHARDS], assignment);
  else
    follow(x, id, assignment);
  psplit_i_automaton_name_devices(x->automaton, assignment->replicas, assignment->device);
  psplit_i_assignment_evaluate(assignment, x->instance, x->automaton, scratch);
  return PSPLIT_OK;
}

/* A lower bound on the cost of a net on any device. */
static void least_costs(psplit_i_program *x) {
  const psplit_i_instance *instance = x->instance;
  const psplit_i_automaton *m = x->automaton;
  bool any_pays = false, all_pay = true;
  double slowest = 1;
  for (uint32_t t = 0; t < instance->n_types && !instance->overlap; t++) {
    if (m->count[t] == 0) continue;
    if (instance->problem->devices[t].free_comm) {
      all_pay = false;
      continue;
    }
    const int64_t message = x->messages ? psplit_i_message_ns(instance, t, t, true) : 0;
    for (uint32_t e = 0; e < instance->n_nets; e++) {
      const int64_t send = instance->send[(size_t)t * instance->n_nets + e];
      const int64_t recv = instance->recv[(size_t)t * instance->n_nets + e];
      const int64_t apart = x->messages && instance->on_trunk[e] ? message : 0;
      if (!any_pays || send - apart < x->least_send[e]) x->least_send[e] = send - apart;
      if (!any_pays || recv < x->least_recv[e]) x->least_recv[e] = recv;
    }
    if (instance->makes_message) {
      const int64_t received = instance->least_message[instance->n_types + t];
      if (!any_pays || received < x->least_message) x->least_message = received;
    }
    if (m->ratio[t] > slowest) slowest = m->ratio[t];
    any_pays = true;
  }
  x->open_share = any_pays && all_pay ? 1 / slowest : 0;
}

/* Windows: the range of weights that a downset left in a state may have in a split within the
 * limit. */
static void find_windows(psplit_i_program *x) {
  const psplit_i_automaton *m = x->automaton;
  const int64_t limit = x->options->limit;
  for (uint32_t c = 0; c < m->n_states; c++) {
    x->room[c] = (double)limit * m->capacity[c] * (1 + 1e-9);
    x->low[c] = 0;
    x->high[c] = x->room[c] < (double)m->total_min_time ? (int64_t)x->room[c] : m->total_min_time;
    if (x->axis->n_buckets == 0) continue;
    int64_t low = PSPLIT_I_INF, high = -1;
    for (uint32_t q = 0; q < x->axis->n_buckets; q++)
      if (x->axis->before[(size_t)q * m->n_states + c] <= limit) {
        if (x->axis->low[q] < low) low = x->axis->low[q];
        if (x->axis->high[q] > high) high = x->axis->high[q];
      }
    if (low > x->low[c]) x->low[c] = low;
    if (high < x->high[c]) x->high[c] = high;
  }
}

/* The maximum over the transitions of a state. Pins lead to other states than these. */
static void find_most_left(psplit_i_program *x) {
  const psplit_i_automaton *m = x->automaton;
  for (uint32_t i = 0; i < m->n_states * m->n_types; i++) {
    x->most_left[i] = x->instance->has_pins ? PSPLIT_I_INF : -PSPLIT_I_INF;
    x->most_room[i] = x->instance->has_pins ? INFINITY : 0;
  }
  for (uint32_t c = 0; c < m->n_states; c++)
    for (uint32_t k = m->move_off[c]; k < m->move_off[c + 1]; k++) {
      const psplit_i_transition *move = &m->moves[k];
      const size_t at = (size_t)c * m->n_types + move->type;
      if (x->high[move->next] > x->most_left[at]) x->most_left[at] = x->high[move->next];
      if (x->room[move->next] > x->most_room[at]) x->most_room[at] = x->room[move->next];
    }
}

static void find_who_pays(psplit_i_program *x) {
  const psplit_i_automaton *m = x->automaton;
  for (uint32_t c = 0; c < m->n_states; c++) {
    x->all_pay[c] = !x->instance->overlap;
    for (uint32_t t = 0; t < m->n_types; t++)
      if (x->instance->problem->devices[t].free_comm && psplit_i_automaton_has(m, c, t))
        x->all_pay[c] = false;
  }
}

static psplit_code allocate(psplit_i_program *x) {
  const psplit_i_instance *instance = x->instance;
  const size_t n_states = x->automaton->n_states, n_types = x->automaton->n_types;
  x->zobrist = psplit_i_arena_array(&x->arena, instance->n, sizeof *x->zobrist);
  x->zobrist2 = psplit_i_arena_array(&x->arena, instance->n, sizeof *x->zobrist2);
  x->counted = PSPLIT_NEW(&x->arena, bool, instance->n_nets);
  x->mixed = PSPLIT_NEW(&x->arena, bool, instance->n_nets);
  x->low = psplit_i_arena_array(&x->arena, n_states, sizeof *x->low);
  x->high = psplit_i_arena_array(&x->arena, n_states, sizeof *x->high);
  x->all_pay = PSPLIT_NEW(&x->arena, bool, n_states);
  x->room = psplit_i_arena_array(&x->arena, n_states, sizeof *x->room);
  x->most_left = psplit_i_arena_array(&x->arena, n_states * n_types, sizeof *x->most_left);
  x->most_room = psplit_i_arena_array(&x->arena, n_states * n_types, sizeof *x->most_room);
  x->least_send = PSPLIT_NEW(&x->arena, int64_t, instance->n_nets);
  x->least_recv = PSPLIT_NEW(&x->arena, int64_t, instance->n_nets);
  return x->zobrist && x->zobrist2 && x->counted && x->mixed && x->low && x->high && x->all_pay &&
             x->room && x->most_left && x->most_room && x->least_send && x->least_recv
           ? PSPLIT_OK
           : PSPLIT_NOMEM;
}

/* Which nets count their receivers. */
static void find_counted(psplit_i_program *x) {
  const psplit_i_instance *instance = x->instance;
  for (uint32_t e = 0; instance->p2p && !x->options->send_once && e < instance->n_nets; e++) {
    bool costs = false;
    for (uint32_t c = 0; x->alike && c < instance->n_link_classes; c++)
      costs |= instance->link[(size_t)c * instance->n_nets + e] > 0;
    for (uint32_t t = 0; t < instance->n_types; t++)
      costs |= instance->send[(size_t)t * instance->n_nets + e] > 0;
    x->counted[e] = costs && (x->alike || instance->net_off[e + 1] - instance->net_off[e] > 2);
    x->mixed[e] = x->counted[e] && !instance->net_forward[e];
    x->count_receivers |= x->counted[e];
    x->receiver_budget |= x->mixed[e];
  }
}

static psplit_code prepare(psplit_i_program *x) {
  const uint32_t n = x->instance->n;
  x->words = (n + 63) / 64;
  x->n_key_bytes = x->options->lexicographic ? n + x->instance->n_stages : 0;
  if (allocate(x) != PSPLIT_OK) return PSPLIT_NOMEM;
  x->messages = psplit_i_messages_apply(x);
  x->floor = psplit_i_message_floor_of(x->instance, x->automaton);
  least_costs(x);
  for (uint32_t i = 0; i < n; i++) {
    x->zobrist[i] = psplit_i_splitmix64(0x5eed, i);
    x->zobrist2[i] = psplit_i_splitmix64(0xfeed, i);
  }
  if (psplit_i_groups_apply(x) && !psplit_i_groups_prepare(x)) return PSPLIT_NOMEM;
  find_counted(x);
  x->bypasses = x->options->bypasses && psplit_i_exact_counts_bypasses(x->instance, x->automaton);
  x->floor.by_pairs |= x->bypasses;
  x->count_receivers |= x->messages || x->bypasses;
  if (psplit_i_exact_follow(x, 0, 0) != PSPLIT_OK) return PSPLIT_NOMEM;
  x->reach = psplit_i_automaton_reach(x->automaton, x->options->limit);
  x->most_bytes = psplit_i_automaton_most_memory(x->automaton, x->instance);
  find_windows(x);
  find_most_left(x);
  find_who_pays(x);
  return psplit_i_lexicographic_prepare(x);
}

/* The first label, with everything left. */
static void begin(psplit_i_expander *d) {
  const psplit_i_program *x = d->x;
  for (uint32_t i = 0; i < x->instance->n; i++) {
    d->left[i / 64] |= UINT64_C(1) << (i % 64);
    d->hash ^= x->zobrist[i];
  }
  if (x->n_key_bytes) psplit_i_lexicographic_start(d);
  const psplit_i_label all = {
    .hash = d->hash, .min_time = x->automaton->total_min_time, .parent = PSPLIT_NONE};
  psplit_i_exact_insert(d, &all);
}

/* Work of the expanders, in all rounds and in the last one. */
typedef struct exact_work {
  uint64_t steps, loads;
  uint64_t stages, pushed; /* in the last one */
} exact_work;

static exact_work take_work(const psplit_i_program *x, psplit_i_expander *expanders,
                            int n_threads) {
  exact_work work = {0};
  for (int i = 0; i < n_threads; i++) {
    work.steps += expanders[i].n_steps;
    work.loads += expanders[i].n_loads;
    work.stages += expanders[i].n_stages;
    work.pushed += expanders[i].n_pushed;
    expanders[i].n_stages = expanders[i].n_pushed = 0;
  }
  for (uint32_t i = 0; i < PSPLIT_I_N_SHARDS; i++)
    work.steps += x->shards[i].labels.n * PSPLIT_I_STEPS_PER_LABEL;
  return work;
}

static uint64_t ops_of(const psplit_i_program *x, const exact_work *work) {
  return work->steps * PSPLIT_I_STEP_OPS + work->loads * x->load_ops;
}

/* The counts of a run that is interrupted within a round; `last`, n_bytes: its work and memory
 * before. How far each thread gets until all stop differs between runs. So the run counts as if it
 * had gone on at the same rate up to the first limit: of steps, of the budget, or of memory. */
static exact_work work_at_limit(const psplit_i_program *x, const exact_work *last,
                                uint64_t n_bytes) {
  if (last->steps == 0) {
    const uint64_t most = x->most_ops / PSPLIT_I_STEP_OPS;
    return (exact_work){.steps = x->max_steps < most ? x->max_steps : most, .loads = x->n_round};
  }
  const double by_steps = (double)x->max_steps / (double)last->steps;
  const double by_ops = (double)x->most_ops / (double)ops_of(x, last);
  const double by_memory =
    n_bytes ? (double)x->options->memory_bytes / 2 / (double)n_bytes : INFINITY;
  const double part = fmax(1, fmin(by_steps, fmin(by_ops, by_memory)));
  const double loads = (double)last->loads * part, most_loads = (double)(last->loads + x->n_round);
  return (exact_work){.steps = (uint64_t)((double)last->steps * part),
                      .loads = (uint64_t)fmin(loads, most_loads)};
}

psplit_code psplit_i_exact(const psplit_i_instance *instance, const psplit_i_automaton *automaton,
                           const psplit_i_weight_axis *axis, const psplit_i_exact_options *options,
                           psplit_i_assignment *out_assignment, psplit_i_verdict *out_verdict) {
  *out_verdict = PSPLIT_I_UNKNOWN;
  psplit_code code = PSPLIT_NOMEM;
  exact_work work = {0};
  const int n_threads = psplit_i_team_size(options->n_threads);
  assert(n_threads > 0);
  psplit_i_program *x = calloc(1, sizeof *x);
  psplit_i_expander *expanders = calloc((size_t)n_threads, sizeof *expanders);
  if (!x || !expanders) goto out_early;
  x->instance = instance;
  x->automaton = automaton;
  x->axis = axis;
  x->options = options;
  PSPLIT_TRY(psplit_i_labels_init(x));
  PSPLIT_TRY(prepare(x));
  for (int i = 0; i < n_threads; i++) PSPLIT_TRY(psplit_i_expander_init(&expanders[i], x));
  begin(&expanders[0]);
  uint32_t found = PSPLIT_NONE;
  x->load_ops =
    ((uint64_t)instance->net_off[instance->n_nets] + instance->succ_off[instance->n]) / 2;
  x->most_ops = psplit_i_budget_left(options->budget);
  psplit_i_budget so_far =
    /* charged after each round */
    options->budget ? *options->budget : psplit_i_budget_unlimited();
  const uint64_t before = so_far.spent;
  uint64_t n_ops = 0; /* of the previous round */
  for (uint32_t used = 0; used < automaton->n_stages; used++) {
    const int team = psplit_i_budget_team(&so_far, n_ops, options->n_threads);
    const exact_work last = work;
    const uint64_t n_bytes = atomic_load(&x->n_bytes);
    PSPLIT_TRY(run_round(x, used, expanders, team, n_threads));
    if (options->out_rounds) *options->out_rounds = used;
    if (atomic_load(&x->out_of_memory)) PSPLIT_TRY(PSPLIT_NOMEM);
    /* no new labels; there may be many more stages than clusters */
    if (x->n_round == 0) continue;
    work = take_work(x, expanders, n_threads);
    n_ops = ops_of(x, &work) - ops_of(x, &last);
    PSPLIT_TRY(psplit_i_exact_follow(x, work.stages, work.pushed));
    const bool stopped =
      atomic_load(&x->out_of_work) || work.steps > x->max_steps || ops_of(x, &work) > x->most_ops;
    if (stopped && !psplit_i_late(options->budget)) work = work_at_limit(x, &last, n_bytes);
    so_far.spent = before + ops_of(x, &work);
    if (options->out_steps) *options->out_steps = work.steps;
    if (stopped) goto out;
    if (!options->least_comm && !options->least_front) found = final_label(x, used + 1);
    if (found != PSPLIT_NONE) break;
  }
  if (options->least_comm || options->least_front) found = final_label(x, 1);
  *out_verdict = found == PSPLIT_NONE ? PSPLIT_I_NO : PSPLIT_I_YES;
  if (found != PSPLIT_NONE) PSPLIT_TRY(trace(x, found, out_assignment));
out:
  if (options->out_full && atomic_load(&x->full)) *options->out_full = true;
  psplit_i_spend(options->budget, ops_of(x, &work));
  psplit_i_labels_fini(x);
  psplit_i_closure_fini(&x->closure);
  for (int i = 0; i < n_threads; i++) psplit_i_arena_fini(&expanders[i].arena);
  psplit_i_arena_fini(&x->arena);
out_early:
  free(x);
  free(expanders);
  return code;
}
