/* From a stage to labels: for each move of the automaton whose device can take the stage, a label
 * for what the stage leaves, unless a window, a bound or dominance rules it out. */
#include "exact_inside.h"

static void push_label(psplit_i_expander *d, const psplit_i_transition *move, uint64_t receivers,
                       int64_t more_sent) {
  const psplit_i_program *x = d->x;
  const uint32_t next = move->next;
  if (d->min_time < x->low[next] || d->min_time > x->high[next]) return;
  const uint32_t n_in_front = x->automaton->n_stages - x->automaton->used[next];
  if (d->price_left > (int64_t)n_in_front * PSPLIT_I_PRICING_ONE) return;
  if (x->open_share > 0) {
    const double needed = (double)d->min_time + (double)d->open * x->open_share;
    if (needed > x->room[next] || psplit_i_messages_exceed(d, move, x->room[next] - needed)) return;
  }
  bool empty = true;
  for (uint32_t k = 0; k < x->words && empty; k++) empty = d->left[k] == 0;
  if (empty) {
    if (!psplit_i_automaton_final(x->automaton, next)) return;
  } else if (psplit_i_weight_axis_before(x->axis, d->min_time, next) > x->options->limit) {
    return;
  }
  const int64_t comm =
    d->from->comm + d->tracker.recv[move->type] + d->tracker.send[move->type] + more_sent;
  /* The stages in front pay for what crosses, where all devices left pay. */
  if (x->n_key_bytes &&
      comm + (x->all_pay[next] ? d->open : 0) > x->options->lexicographic->most_comm)
    return;
  int64_t cost = x->options->least_comm ? comm : 0; /* of equal labels the least is kept */
  if (x->options->least_front && empty)
    cost = psplit_i_load_tracker_load(&d->tracker, x->automaton, move);
  const psplit_i_label fresh = {.hash = d->hash ^ receivers,
                                .receivers = receivers,
                                .parent_hash = psplit_i_mix64(d->from->hash ^ d->from->state),
                                .comm = cost,
                                .min_time = d->min_time,
                                .parent = d->from_id,
                                .state = next};
  d->n_pushed++;
  psplit_i_recent *r = &d->recent[psplit_i_mix64(fresh.hash + next) & (d->n_recent - 1)];
  const uint64_t check = d->check + psplit_i_mix64(receivers);
  if (r->hash == fresh.hash && r->check == check && r->state == next &&
      (r->comm < fresh.comm ||
       (r->comm == fresh.comm && r->parent_hash <= fresh.parent_hash && x->n_key_bytes == 0)))
    return; /* an equal label with a parent at least as good is in already */
  *r = (psplit_i_recent){fresh.hash, check, fresh.parent_hash, fresh.comm, next};
  if (x->n_key_bytes) psplit_i_lexicographic_number(d, move);
  psplit_i_exact_insert(d, &fresh);
  if (x->n_key_bytes) psplit_i_lexicographic_forget(d, move);
}

/* Adds a receiver budget to the next label, unless it is so large that it binds no stage. */
static void add_budget(psplit_i_expander *d, uint32_t net, uint32_t most, uint32_t count) {
  if (count < most) d->next_budgets[d->n_next_budgets++] = (psplit_i_receiver_budget){net, count};
}

static int64_t load_with(psplit_i_expander *d, const psplit_i_transition *move, int64_t more_sent) {
  int64_t *send = &d->tracker.send[move->type];
  *send += more_sent;
  const int64_t load = psplit_i_load_tracker_load(&d->tracker, d->x->automaton, move);
  *send -= more_sent;
  return load;
}

/* Chooses how many stages in front receive the sources from `at` on. Dominance: a choice that could
 * be larger within the limit is left out, since the larger one has every completion of the smaller;
 * not so where least communication is asked for. */
static void choose_budgets(psplit_i_expander *d, const psplit_i_transition *move, uint32_t at,
                           int64_t more_sent) {
  const psplit_i_program *x = d->x;
  const psplit_i_instance *instance = x->instance;
  if (load_with(d, move, more_sent) > x->options->limit) return;
  while (at < d->n_sources && psplit_i_pins_left(d, d->sources[at]) == 0) at++;
  if (at == d->n_sources) {
    d->n_steps++;
    if (d->could_send < PSPLIT_I_INF &&
        load_with(d, move, more_sent + d->could_send) <= x->options->limit)
      return;
    uint64_t receivers = d->receivers;
    for (uint32_t i = 0; i < d->n_next_budgets; i++)
      receivers ^= psplit_i_count_key(d->next_budgets[i].net | PSPLIT_I_RECEIVER_BUDGET,
                                      d->next_budgets[i].count);
    push_label(d, move, receivers, more_sent);
    return;
  }
  const uint32_t e = d->sources[at], most = psplit_i_most_receivers(d, e, move->next);
  const int64_t send = instance->send[(size_t)move->type * instance->n_nets + e];
  for (uint32_t count = send > 0 ? 1 : most; count <= most; count++) {
    const uint32_t n_before = d->n_next_budgets;
    const int64_t could = d->could_send;
    if (count < most && send < d->could_send && !x->options->least_comm) d->could_send = send;
    add_budget(d, e, most, count);
    choose_budgets(d, move, at + 1, more_sent + count * send);
    d->n_next_budgets = n_before;
    d->could_send = could;
  }
}

static void push_receivers(psplit_i_expander *d, const psplit_i_transition *move) {
  d->n_next_budgets = 0;
  d->could_send = PSPLIT_I_INF;
  for (uint32_t i = 0; i < d->n_budgets; i++) {
    const psplit_i_receiver_budget r = d->budgets[i];
    const uint32_t most = psplit_i_most_receivers(d, r.net, move->next);
    const uint32_t count = r.count - (d->tracker.n_in[r.net] > 0);
    if (psplit_i_pins_left(d, r.net) == 0) continue;
    if (count == 0) return; /* the budget is spent, and readers are left */
    add_budget(d, r.net, most, count);
  }
  choose_budgets(d, move, 0, 0);
}

/* One label for each way the stage in front may be, of those that the stage has time for. */
static void push_bypasses(psplit_i_expander *d, const psplit_i_transition *move) {
  psplit_i_bypass_way ways[PSPLIT_I_MOST_BYPASS_WAYS];
  const uint32_t n = psplit_i_bypasses_ways(d, move->type, ways);
  const int64_t load = psplit_i_load_tracker_load(&d->tracker, d->x->automaton, move);
  for (uint32_t i = 0; i < n; i++) {
    if (psplit_i_sat_add_i64(load, ways[i].more_ns) > d->x->options->limit) continue;
    d->next_beside = ways[i].beside;
    push_label(d, move, ways[i].key, 0);
  }
}

/* Gives the stage as it has grown the device of `move`, if its load is within the limit there. */
static void push_move(psplit_i_expander *d, const psplit_i_transition *move) {
  uint64_t receivers = d->receivers;
  if (d->x->receiver_budget)
    push_receivers(d, move);
  else if (d->x->bypasses)
    push_bypasses(d, move);
  else if (psplit_i_load_tracker_load(&d->tracker, d->x->automaton, move) <= d->x->options->limit &&
           (!d->x->alike || psplit_i_groups_bar(d, move, &receivers)) &&
           (!d->x->messages || psplit_i_messages_pass(d, move, &receivers)))
    push_label(d, move, receivers, 0);
}

static void push_stage(psplit_i_expander *d) {
  const psplit_i_program *x = d->x;
  const psplit_i_automaton *m = x->automaton;
  const psplit_i_load_tracker *tracker = &d->tracker;
  const uint32_t state = d->from->state;
  if (m->all_used && tracker->n_counted == 0) return;
  if (tracker->pin != PSPLIT_NONE) {
    psplit_i_transition move;
    for (uint32_t t = 0; t < m->n_types; t++)
      for (uint32_t r = 1; r <= m->most_copies; r++)
        if (psplit_i_automaton_pinned(m, state, tracker->pin, t, r, &move)) push_move(d, &move);
    return;
  }
  const psplit_i_transition *moves = m->moves + m->move_off[state];
  const uint32_t n_moves = m->move_off[state + 1] - m->move_off[state];
  uint64_t fitting = 0;
  for (uint32_t k = 0; k < n_moves && k < 64; k++)
    if (psplit_i_load_tracker_load(tracker, m, &moves[k]) <= x->options->limit)
      fitting |= UINT64_C(1) << k;
  if (fitting && !x->options->least_comm && n_moves <= 64 && !psplit_i_receivers_open(d))
    fitting = psplit_i_undominated_moves(d, moves, fitting);
  for (uint32_t k = 0; k < n_moves; k++)
    if (k >= 64 || fitting >> k & 1) push_move(d, &moves[k]);
}

void psplit_i_expander_push_stage(psplit_i_expander *d) {
  const psplit_i_program *x = d->x;
  const uint32_t n_before = d->n_taken;
  bool only_weightless = x->weightless;
  for (uint32_t word = 0; word < x->words && only_weightless; word++)
    only_weightless = (d->left[word] & ~x->weightless[word]) == 0;
  for (uint32_t i = x->instance->n; i-- > 0 && only_weightless;)
    if (d->left[i / 64] >> (i % 64) & 1) psplit_i_expander_take(d, i);
  push_stage(d);
  while (d->n_taken > n_before) psplit_i_expander_give_back(d);
}
