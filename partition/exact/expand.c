/* Expands a label: enumerates all sets of clusters that the next stage can hold. */
#include <string.h>

#include "automaton.h"
#include "bits.h"
#include "budget.h"
#include "exact_inside.h"
#include "instance.h"
#include "load_tracker.h"
#include "problem.h"

/* Clusters that are visited per step of work. */
enum { CLUSTERS_PER_STEP = 16 };

/* Whether every split through the stage sends more than the incumbent. Monotonicity: what is
 * received can only grow, and so can what is sent if all nets are forward. */
static bool sends_too_much(const psplit_i_expander *d, int64_t received) {
  const psplit_i_program *x = d->x;
  if (x->n_key_bytes == 0 || !x->all_pay[d->from->state]) return false;
  int64_t sent = PSPLIT_I_INF;
  for (uint32_t t = 0; t < x->automaton->n_types; t++)
    if (x->automaton->count[t] && d->tracker.send[t] < sent) sent = d->tracker.send[t];
  if (!x->instance->all_forward) sent = 0;
  return d->from->comm + received + sent > x->options->lexicographic->most_comm;
}

/* A lower bound on what the stage and every larger one sends, since the receivers are placed
 * already. */
static int64_t sent_for_good(const psplit_i_expander *d, uint32_t type) {
  const psplit_i_program *x = d->x;
  const psplit_i_load_tracker *tracker = &d->tracker;
  if (x->messages) return tracker->send[type] + psplit_i_messages_more_sent(d, type);
  const bool apart = tracker->n_messages[0] > 0 && tracker->n_on_trunk[0] == 0;
  return tracker->send[type] + (apart ? x->instance->least_message[type] : 0) +
         (x->bypasses ? psplit_i_bypasses_more_sent(d, type) : 0);
}

static int64_t received_for_good(const psplit_i_program *x, const psplit_i_passed *p) {
  return p->recv_ns + (p->message && !p->on_trunk ? x->least_message : 0);
}

/* Whether what the stage leaves may be left, if on type t it takes as much more as fits.
 * Monotonicity: larger stages leave less. */
static bool leaves_little(const psplit_i_expander *d, uint32_t t, int64_t more,
                          const psplit_i_passed *p) {
  const psplit_i_program *x = d->x;
  const size_t at = (size_t)d->from->state * x->automaton->n_types + t;
  const int64_t left = d->min_time - more;
  return left <= x->most_left[at] &&
         (double)left + (double)p->sent_ns * x->open_share <= x->most_room[at];
}

/* Whether the stage, or a larger one, can be within the limit, and the rest as well. Monotonicity:
 * compute and memory only grow, and so do sends if all nets are forward. */
static bool fits(const psplit_i_expander *d, const psplit_i_passed *p) {
  const psplit_i_program *x = d->x;
  const psplit_i_load_tracker *tracker = &d->tracker;
  const bool sends_grow = x->instance->all_forward && !x->instance->overlap;
  const int64_t received = received_for_good(x, p);
  if (d->n_barred_here > 0 || sends_too_much(d, p->recv_ns)) return false;
  if (x->bypasses && psplit_i_bypasses_sends_in_vain(d)) return false;
  for (uint32_t t = 0; t < x->automaton->n_types; t++) {
    if (!x->automaton->count[t] || tracker->n_forbidden[t]) continue;
    const int64_t more = x->reach - tracker->w[t] - (sends_grow ? sent_for_good(d, t) : 0) -
                         (x->instance->problem->devices[t].free_comm ? 0 : received);
    if (more >= 0 && leaves_little(d, t, more, p))
      return tracker->weight_bytes + tracker->act_bytes <= x->most_bytes;
  }
  return false;
}

/* Whether the cluster is pinned to another stage than the current clusters. */
static bool pins_clash(const psplit_i_expander *d, uint32_t cluster) {
  const uint32_t pin = d->x->instance->pin[cluster];
  return pin != PSPLIT_NONE && d->tracker.pin != PSPLIT_NONE && d->tracker.pin != pin;
}

void psplit_i_expander_load(psplit_i_expander *d, const psplit_i_label *from, uint32_t id,
                            const uint64_t *left, const uint8_t *keys, const uint32_t *counts,
                            uint32_t n_counts) {
  psplit_i_program *x = d->x;
  const psplit_i_instance *instance = x->instance;
  d->n_loads++;
  memcpy(d->left, left, x->words * sizeof *d->left);
  memset(d->tops, 0, x->words * sizeof *d->tops);
  if (x->n_key_bytes) memcpy(d->keys, keys, x->n_key_bytes);
  d->from = from;
  d->from_id = id;
  d->receivers = d->from->receivers;
  d->hash = d->from->hash ^ d->receivers;
  d->min_time = 0;
  d->price_left = 0;
  d->check = 0;
  for (uint32_t i = 0; i < instance->n; i++) {
    if (!(d->left[i / 64] >> (i % 64) & 1)) continue;
    d->min_time += x->automaton->min_time[i];
    if (x->options->price) d->price_left += x->options->price[i];
    d->check ^= x->zobrist2[i];
    uint32_t n_succ = 0;
    for (uint32_t l = instance->succ_off[i]; l < instance->succ_off[i + 1]; l++)
      n_succ += d->left[instance->succ[l] / 64] >> (instance->succ[l] % 64) & 1;
    d->n_succ[i] = n_succ;
    if (n_succ == 0 && !psplit_i_is_weightless(x, i)) d->tops[i / 64] |= UINT64_C(1) << (i % 64);
  }
  d->open = 0;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t *pins = instance->net_pin + instance->net_off[e];
    const uint32_t size = instance->net_off[e + 1] - instance->net_off[e];
    uint32_t placed = 0;
    for (uint32_t l = 0; l < size; l++) placed += !(d->left[pins[l] / 64] >> (pins[l] % 64) & 1);
    d->n_placed[e] = placed;
    if (d->left[pins[0] / 64] >> (pins[0] % 64) & 1)
      d->open += placed > 0 ? x->least_send[e] : 0;
    else
      d->open += placed < size ? x->least_recv[e] : 0;
  }
  psplit_i_receivers_load(d, counts, n_counts);
}

/* Adds the steps since the last call to the total. Returns false if the budget is spent. */
static bool may_go_on(psplit_i_expander *d) {
  psplit_i_program *x = d->x;
  atomic_fetch_add_explicit(&x->n_steps, d->n_steps - d->n_told, memory_order_relaxed);
  atomic_fetch_add_explicit(&x->n_loads, d->n_loads - d->n_loads_told, memory_order_relaxed);
  d->n_told = d->n_steps;
  d->n_loads_told = d->n_loads;
  const uint64_t n_ops =
    atomic_load_explicit(&x->n_steps, memory_order_relaxed) * PSPLIT_I_STEP_OPS +
    atomic_load_explicit(&x->n_loads, memory_order_relaxed) * x->load_ops;
  if (n_ops > x->most_ops ||
      atomic_load_explicit(&x->n_steps, memory_order_relaxed) > x->max_steps ||
      psplit_i_late(x->options->budget))
    atomic_store_explicit(&x->out_of_work, true, memory_order_relaxed);
  return !atomic_load_explicit(&x->out_of_work, memory_order_relaxed);
}

/* Enumerates all stages that can extend the label. */
static void try_stages(psplit_i_expander *d) {
  uint32_t below = d->x->instance->n;
  psplit_i_passed_start(d);
  for (;;) {
    uint32_t u = psplit_i_last_below(d->tops, below);
    psplit_i_passed *passed = &d->passed[d->n_taken];
    if (d->n_steps - d->n_told >= 1024 && !may_go_on(d)) {
      while (d->n_taken) psplit_i_expander_give_back(d);
      psplit_i_passed_end(d, passed);
      return;
    }
    if (u != PSPLIT_NONE) {
      d->n_steps += (below - u) / CLUSTERS_PER_STEP;
      psplit_i_passed_beside(d, u + 1, below, passed);
      if (passed->unseen && !fits(d, passed))
        u = PSPLIT_NONE; /* monotonicity: no stage that also takes lower clusters fits either */
      passed->unseen = false;
    }
    if (u == PSPLIT_NONE) {
      if (d->n_taken == 0) break;
      below = d->taken[d->n_taken - 1];
      psplit_i_expander_give_back(d);
      psplit_i_passed_undo(d, passed, passed - 1);
      psplit_i_passed_over(d, below, passed - 1);
      continue;
    }
    below = u;
    const bool clash = pins_clash(d, u);
    if (!clash) {
      psplit_i_expander_take(d, u);
      d->n_steps++;
      passed[1] = *passed;
      psplit_i_passed_take(d, u, &passed[1]);
    }
    if (clash || !fits(d, &passed[1])) {
      if (!clash) psplit_i_expander_give_back(d);
      if (!clash) psplit_i_passed_undo(d, &passed[1], passed);
      psplit_i_passed_over(d, u, passed);
      continue;
    }
    passed[1].unseen = false;
    d->n_stages++;
    psplit_i_expander_push_stage(d);
  }
  psplit_i_passed_end(d, &d->passed[0]);
}

static void expand_stage(psplit_i_expander *d) {
  psplit_i_program *x = d->x;
  const psplit_i_automaton *m = x->automaton;
  const psplit_i_instance *instance = x->instance;
  const uint32_t state = d->from->state;
  const bool weightless = psplit_i_last_below(d->tops, instance->n) == PSPLIT_NONE;
  if (weightless) { /* everything that is left */
    psplit_i_expander_push_stage(d);
    return;
  }
  bool last = instance->has_pins ? m->used[state] + 1 == m->n_stages : true;
  for (uint32_t k = m->move_off[state]; k < m->move_off[state + 1]; k++)
    last &= m->capacity[m->moves[k].next] == 0;
  if (last) { /* the last stage takes everything that is left */
    if (d->min_time > x->reach) return;
    bool clash = false;
    for (uint32_t u; (u = psplit_i_last_below(d->tops, instance->n)) != PSPLIT_NONE;) {
      clash |= pins_clash(d, u);
      psplit_i_expander_take(d, u);
      d->n_steps++;
    }
    if (!clash && fits(d, &(psplit_i_passed){0})) psplit_i_expander_push_stage(d);
    while (d->n_taken) psplit_i_expander_give_back(d);
    return;
  }
  try_stages(d);
}

void psplit_i_expander_expand(psplit_i_expander *d) {
  const psplit_i_program *x = d->x;
  d->n_steps += x->instance->n / CLUSTERS_PER_STEP; /* for loading the label */
  if (psplit_i_expander_less_is_left(d)) return;
  for (int bypassed = 0; bypassed < (x->bypasses ? 2 : 1); bypassed++) {
    d->bypassed = bypassed;
    if (!x->bypasses || psplit_i_bypasses_may(d, bypassed)) expand_stage(d);
  }
}

psplit_code psplit_i_expander_init(psplit_i_expander *d, psplit_i_program *x) {
  memset(d, 0, sizeof *d);
  d->x = x;
  psplit_i_arena_init(&d->arena, 0);
  const uint32_t n = x->instance->n;
  d->times_sent = PSPLIT_NEW(&d->arena, uint32_t, x->instance->n_nets);
  d->pairs = PSPLIT_NEW(&d->arena, uint32_t, 2 * (size_t)x->instance->n_nets);
  d->budgets = PSPLIT_NEW(&d->arena, psplit_i_receiver_budget, x->instance->n_nets);
  d->next_budgets = PSPLIT_NEW(&d->arena, psplit_i_receiver_budget, x->instance->n_nets);
  d->sources = PSPLIT_NEW(&d->arena, uint32_t, x->instance->n_nets);
  d->left = PSPLIT_NEW(&d->arena, uint64_t, x->words);
  d->tops = PSPLIT_NEW(&d->arena, uint64_t, x->words);
  d->n_succ = PSPLIT_NEW(&d->arena, uint32_t, n);
  d->taken = PSPLIT_NEW(&d->arena, uint32_t, n);
  d->keys = PSPLIT_NEW(&d->arena, uint8_t, x->n_key_bytes);
  /* Few clusters push few labels, and mapping a page for nothing takes longer than they do. */
  for (d->n_recent = 256; d->n_recent < PSPLIT_I_MOST_RECENT && d->n_recent < 64 * n;)
    d->n_recent *= 2;
  d->recent = PSPLIT_NEW(&d->arena, psplit_i_recent, d->n_recent);
  if (!d->recent) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < d->n_recent; i++) d->recent[i].state = PSPLIT_NONE;
  d->n_placed = PSPLIT_NEW(&d->arena, uint32_t, x->instance->n_nets);
  if (!d->keys || !d->budgets || !d->next_budgets || !d->sources || !d->times_sent || !d->pairs ||
      !d->left || !d->tops || !d->n_succ || !d->taken || !d->n_placed)
    return PSPLIT_NOMEM;
  if (psplit_i_passed_init(d) != PSPLIT_OK || psplit_i_groups_init(d) != PSPLIT_OK ||
      psplit_i_messages_init(d) != PSPLIT_OK)
    return PSPLIT_NOMEM;
  const psplit_code code = psplit_i_load_tracker_init(&d->tracker, x->instance, &d->arena);
  if (x->instance->p2p) d->tracker.times_sent = d->times_sent;
  d->tracker.sent_ns = d->sent_ns;
  return code;
}
