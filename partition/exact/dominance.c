/* Dominance. Let v be a maximal cluster of what is left, such that no stage in front that holds v
 * has a larger load without it. Every completion of a label with v left also completes, without v,
 * the label in which v is placed, and no load increases (exchange argument). So of two stages, or
 * two labels, that differ only in v, the one with v placed dominates. */
#include "exact_inside.h"

/* What a message may take such a stage more, once each way, besides what nets of the trunk have in
 * their times: where it sends v's stage something, or v sends what else is in it. */
static void more_messages(const psplit_i_expander *d, uint32_t v, uint32_t t, int64_t *io_send,
                          int64_t *io_recv) {
  const psplit_i_instance *instance = d->x->instance;
  bool sends = false, receives = false, sent = false, on_trunk = false;
  if (!instance->makes_message) return;
  for (uint32_t k = instance->inc_off[v]; k < instance->inc_off[v + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1;
    const uint32_t size = instance->net_off[e + 1] - instance->net_off[e];
    const uint32_t source = instance->net_pin[instance->net_off[e]];
    if (!instance->makes_message[e]) continue;
    if (source != v) {
      sends |= d->left[source / 64] >> (source % 64) & 1;
    } else {
      receives |= d->n_placed[e] + 1 < size;
      sent |= d->n_placed[e] > 0;
      on_trunk |= instance->on_trunk[e];
    }
  }
  /* A stage that sends one for v, which is not counted as a time of v, sends no more without v. */
  if (sends && (!sent || on_trunk)) *io_send += instance->least_message[t];
  if (receives) *io_recv += instance->least_message[instance->n_types + t];
}

/* At most this much more a stage in front, on type t, sends and receives when cluster v leaves it
 * for the stage that grows here. False: another stage may be worse off. */
static bool change_without(const psplit_i_expander *d, uint32_t v, uint32_t t, int64_t *out_send,
                           int64_t *out_recv) {
  const psplit_i_instance *instance = d->x->instance;
  int64_t send = 0, recv = 0;
  more_messages(d, v, t, &send, &recv);
  for (uint32_t k = instance->inc_off[v]; k < instance->inc_off[v + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1, placed = d->n_placed[e];
    const uint32_t size = instance->net_off[e + 1] - instance->net_off[e];
    if (d->x->mixed[e]) return false;
    const int64_t send_ns = instance->send[(size_t)t * instance->n_nets + e];
    const int64_t recv_ns = instance->recv[(size_t)t * instance->n_nets + e];
    if (instance->inc[k] & 1) {
      if (d->x->counted[e]) { /* all its consumers are placed */
        send -= send_ns * (d->times_sent[e] + (d->tracker.n_in[e] > 0));
      } else {
        if (placed + 1 < size) recv += recv_ns;
        if (placed > 0) send -= send_ns;
      }
      continue;
    }
    const uint32_t source = instance->net_pin[instance->net_off[e]];
    if (!(d->left[source / 64] >> (source % 64) & 1)) {
      if (placed + 1 == size) recv -= recv_ns;
    } else if (!d->x->counted[e]) {
      if (placed == 0) send += send_ns;
    } else if (d->tracker.n_in[e] == 0) { /* one stage more receives */
      if (placed + 2 < size) return false;
      send += send_ns;
    }
  }
  *out_send = send;
  *out_recv = recv;
  return true;
}

/* Whether no stage in front is worse off without the maximal cluster v. */
static bool none_needs(const psplit_i_expander *d, uint32_t v) {
  const psplit_i_program *x = d->x;
  const psplit_i_instance *instance = x->instance;
  if (instance->pin[v] != PSPLIT_NONE) return false;
  if (x->alike) return false;    /* its readers would receive it over other links */
  if (x->messages) return false; /* stages that wait for v would wait for another stage */
  if (x->bypasses) return false; /* stages in between would relay the inputs of v */
  if (x->automaton->all_used && instance->n_counted[v] > 0) return false;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    const int64_t w = instance->w[(size_t)t * instance->n + v];
    if (x->automaton->count[t] == 0 || w >= PSPLIT_I_INF) continue;
    int64_t send, recv;
    if (!change_without(d, v, t, &send, &recv)) return false;
    if (instance->problem->devices[t].free_comm) continue;
    if (instance->overlap ? send > 0 || recv > 0 : send + recv > w) return false;
  }
  return true;
}

/* The moves among those in `open` for which the stage with the maximal cluster v does not fit as
 * well. */
static uint64_t open_beside(psplit_i_expander *d, const psplit_i_transition *moves, uint64_t open,
                            uint32_t v) {
  const psplit_i_program *x = d->x;
  uint64_t left = open;
  if (!none_needs(d, v)) return open;
  psplit_i_load_tracker_add(&d->tracker, v);
  for (uint64_t bits = open; bits; bits &= bits - 1) {
    const uint32_t k = (uint32_t)__builtin_ctzll(bits);
    if (psplit_i_load_tracker_load(&d->tracker, x->automaton, &moves[k]) <= x->options->limit)
      left &= ~(UINT64_C(1) << k);
  }
  psplit_i_load_tracker_remove(&d->tracker, v);
  if (!left) d->dominator = v;
  return left;
}

uint64_t psplit_i_undominated_moves(psplit_i_expander *d, const psplit_i_transition *moves,
                                    uint64_t fitting) {
  const uint32_t first = d->dominator; /* a cluster that dominated last often does so again */
  uint64_t open = fitting;
  if (d->tops[first / 64] >> (first % 64) & 1) open = open_beside(d, moves, open, first);
  for (uint32_t word = 0; word < d->x->words && open; word++)
    for (uint64_t bits = d->tops[word]; bits && open; bits &= bits - 1) {
      const uint32_t v = word * 64 + (uint32_t)__builtin_ctzll(bits);
      if (v != first) open = open_beside(d, moves, open, v);
    }
  return open;
}

bool psplit_i_expander_less_is_left(psplit_i_expander *d) {
  psplit_i_program *x = d->x;
  if (x->options->least_comm || x->count_receivers) return false;
  for (uint32_t word = 0; word < x->words; word++)
    for (uint64_t bits = d->tops[word]; bits; bits &= bits - 1) {
      const uint32_t v = word * 64 + (uint32_t)__builtin_ctzll(bits);
      const uint64_t bit = UINT64_C(1) << (v % 64);
      const psplit_i_label like = {.hash = d->hash ^ x->zobrist[v],
                                   .min_time = d->min_time - x->automaton->min_time[v],
                                   .state = d->from->state};
      if (!none_needs(d, v)) continue;
      d->left[word] &= ~bit;
      const bool reached = psplit_i_exact_reached(x, &like, d->left);
      d->left[word] |= bit;
      if (reached) return true;
    }
  return false;
}
