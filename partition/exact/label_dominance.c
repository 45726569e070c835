/* Dominance between the labels of a round. Let label A have less left than label B, in the same
 * state, and let X be what B has left and A has not. A completion of B, without X, completes A: no
 * stage of it computes or receives more. It may send more: a net that a cluster of X consumes has a
 * receiver behind A, and may have none behind B. Only a stage that holds all consumers that B has
 * left pays more for that, and so one of X, the first. Let what it pays flow into that cluster. A
 * cluster absorbs its own time at most; the rest flows on through the nets that it makes, each of
 * which takes no more than it costs to send once, to a consumer in X, or ends where B has receivers
 * of the net placed, as often as it has. If all is absorbed or ends, a stage without its part of X
 * is no worse off: what flows into that part is absorbed there or leaves it by nets that the stage
 * no longer sends. So A dominates B.
 *
 * By shared memory, where a stage sends one message for all, it may send that more, too, if nothing
 * that it sends made one before: then it flows into the first cluster as well. Where that cluster
 * makes a message for a receiver behind B, its stage sends one anyway.
 *
 * Where what stages pass on is counted, labels of one downset alone are compared: bypasses.c.
 *
 * No circle: a label is dropped for one that has less left, or as much and fewer devices used or
 * receivers counted, or that says more of the stage in front. */
#include <stdlib.h>
#include <string.h>

#include "exact_inside.h"

enum { /* work: a pin that is looked at, or a pair of labels that have no subset */
       WORK_A_LABEL = 256,     /* for each label of the round, */
       WORK_A_DROPPED = 65536, /* and for each that was dropped: where few are, little is spent */
       WORK_PER_STEP = 32
};

/* What two labels of a round are compared with. */
typedef struct comparison {
  const psplit_i_program *x;
  const uint64_t *a, *b;       /* bitsets: what is left */
  uint32_t *count_a, *count_b; /* [n_nets] of their lists; 0: not listed */
  int64_t *demand;             /* [n] what flows into a cluster of X */
  uint64_t work;
} comparison;

/* A label's place among those of the round: less left comes first, and of one downset, fewer
 * receivers. */
typedef struct rank {
  uint64_t downset, receivers; /* hashes */
  uint32_t n_left, n_receivers, at;
} rank;

static bool is_between(const comparison *c, uint32_t cluster) {
  return psplit_i_holds(c->b, cluster) && !psplit_i_holds(c->a, cluster);
}

/* Stages placed that receive net e. */
static uint32_t receivers(comparison *c, const uint64_t *left, const uint32_t *counts, uint32_t e) {
  const psplit_i_instance *instance = c->x->instance;
  if (counts[e]) return counts[e];
  c->work += instance->net_off[e + 1] - instance->net_off[e];
  for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++)
    if (!psplit_i_holds(left, instance->net_pin[k])) return 1;
  return 0;
}

static uint32_t first_between(comparison *c, uint32_t e) {
  const psplit_i_instance *instance = c->x->instance;
  uint32_t first = PSPLIT_NONE;
  c->work += instance->net_off[e + 1] - instance->net_off[e];
  for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++)
    if (instance->net_pin[k] < first && is_between(c, instance->net_pin[k]))
      first = instance->net_pin[k];
  return first;
}

static bool makes_message(const comparison *c, uint32_t e) {
  const bool *makes = c->x->instance->makes_message;
  return makes && makes[e];
}

/* Adds what flows into v, the first of X that consumes net e, from the producer of e. False: a
 * stage may pay more that does not hold v. */
static bool demand_of(comparison *c, uint32_t v, uint32_t e, int64_t send_ns, bool *io_makes_one) {
  const psplit_i_instance *instance = c->x->instance;
  const uint32_t of_a = receivers(c, c->a, c->count_a, e);
  const uint32_t of_b = receivers(c, c->b, c->count_b, e);
  if (of_a <= of_b) return true;
  if (c->x->counted[e]) {
    if (of_a > of_b + 1) return false;
    for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++)
      if (psplit_i_holds(c->a, instance->net_pin[k]))
        return false; /* one receiver more in any case */
  }
  c->demand[v] += send_ns;
  *io_makes_one |= of_b == 0 && makes_message(c, e);
  return true;
}

/* What flows into v besides: the message more that its stage may send, unless it sends one for v
 * anyway. */
static int64_t message_more(comparison *c, uint32_t v, uint32_t type) {
  const psplit_i_instance *instance = c->x->instance;
  for (uint32_t k = instance->inc_off[v]; k < instance->inc_off[v + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1;
    if ((instance->inc[k] & 1) && makes_message(c, e) && receivers(c, c->b, c->count_b, e) > 0)
      return 0;
  }
  return instance->least_message[type];
}

/* What flows on from v, a cluster of X that absorbs no more. Returns what does not find a way. */
static int64_t flow_on(comparison *c, uint32_t v, uint32_t type, int64_t rest) {
  const psplit_i_instance *instance = c->x->instance;
  const int64_t *send = instance->send + (size_t)type * instance->n_nets;
  for (uint32_t k = instance->inc_off[v]; rest > 0 && k < instance->inc_off[v + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1;
    if (!(instance->inc[k] & 1)) continue;
    const uint32_t of_b = receivers(c, c->b, c->count_b, e);
    const int64_t most = send[e] * (of_b > 1 ? of_b : 1), flow = rest < most ? rest : most;
    if (of_b == 0) c->demand[instance->net_pin[instance->net_off[e + 1] - 1]] += flow;
    rest -= flow;
  }
  return rest;
}

/* Whether all that flows into X on devices of a type is absorbed or ends. */
static bool all_flows(comparison *c, uint32_t type) {
  const psplit_i_instance *instance = c->x->instance;
  const int64_t *send = instance->send + (size_t)type * instance->n_nets;
  for (uint32_t word = 0; word < c->x->words; word++)
    for (uint64_t bits = c->b[word] & ~c->a[word]; bits; bits &= bits - 1)
      c->demand[word * 64 + (uint32_t)__builtin_ctzll(bits)] = 0;
  for (uint32_t word = 0; word < c->x->words; word++)
    for (uint64_t bits = c->b[word] & ~c->a[word]; bits; bits &= bits - 1) {
      const uint32_t v = word * 64 + (uint32_t)__builtin_ctzll(bits);
      bool makes_one = false;
      if (instance->pin[v] != PSPLIT_NONE) return false;
      for (uint32_t k = instance->inc_off[v]; k < instance->inc_off[v + 1]; k++) {
        const uint32_t e = instance->inc[k] >> 1;
        if (instance->inc[k] & 1 || !psplit_i_holds(c->a, psplit_i_net_producer(instance, e)) ||
            first_between(c, e) != v)
          continue;
        if (!demand_of(c, v, e, send[e], &makes_one)) return false;
      }
      if (makes_one) c->demand[v] += message_more(c, v, type);
      const int64_t absorbed = instance->overlap ? 0 : instance->w[(size_t)type * instance->n + v];
      if (c->demand[v] > absorbed && flow_on(c, v, type, c->demand[v] - absorbed) > 0) return false;
    }
  return true;
}

/* Nets that X does not consume must not have more receivers behind A. */
static bool counts_allow(comparison *c, const uint32_t *pairs, uint32_t n_pairs) {
  for (uint32_t i = 0; i < n_pairs; i += 2)
    if (pairs[i + 1] > receivers(c, c->b, c->count_b, pairs[i]) &&
        first_between(c, pairs[i]) == PSPLIT_NONE)
      return false;
  return true;
}

static void list_counts(uint32_t *counts, const uint32_t *pairs, uint32_t n_pairs, bool set) {
  for (uint32_t i = 0; i < n_pairs; i += 2) counts[pairs[i]] = set ? pairs[i + 1] : 0;
}

/* What a label says of the stage in front, where what stages pass on is counted. */
static uint32_t beside(const psplit_i_round *round, const psplit_i_round_label *l) {
  return l->counts_to > l->counts_from ? round->counts[l->counts_from] : 0;
}

static bool dominates(comparison *c, const psplit_i_round *round, uint32_t a, uint32_t b) {
  const psplit_i_program *x = c->x;
  const psplit_i_round_label *at_a = &round->labels[a], *at_b = &round->labels[b];
  c->work++;
  if (at_a->head.state != at_b->head.state) return false;
  c->a = x->round_bits + (size_t)a * x->words;
  c->b = x->round_bits + (size_t)b * x->words;
  for (uint32_t word = 0; word < x->words; word++)
    if (c->a[word] & ~c->b[word]) return false;
  if (x->bypasses)
    return memcmp(c->a, c->b, x->words * sizeof *c->a) == 0 &&
           psplit_i_bypasses_cover(beside(round, at_a), beside(round, at_b));
  const uint32_t *pairs_a = round->counts + at_a->counts_from;
  const uint32_t *pairs_b = round->counts + at_b->counts_from;
  const uint32_t n_a = at_a->counts_to - at_a->counts_from;
  const uint32_t n_b = at_b->counts_to - at_b->counts_from;
  list_counts(c->count_a, pairs_a, n_a, true);
  list_counts(c->count_b, pairs_b, n_b, true);
  bool all = counts_allow(c, pairs_a, n_a);
  for (uint32_t t = 0; t < x->instance->n_types && all; t++)
    all =
      x->automaton->count[t] == 0 || x->instance->problem->devices[t].free_comm || all_flows(c, t);
  list_counts(c->count_a, pairs_a, n_a, false);
  list_counts(c->count_b, pairs_b, n_b, false);
  return all;
}

static int by_left(const void *left, const void *right) {
  const rank *a = left, *b = right;
  if (a->n_left != b->n_left) return a->n_left < b->n_left ? -1 : 1;
  if (a->downset != b->downset) return a->downset < b->downset ? -1 : 1;
  if (a->n_receivers != b->n_receivers) return a->n_receivers < b->n_receivers ? -1 : 1;
  return a->receivers < b->receivers ? -1 : a->receivers > b->receivers;
}

static void rank_labels(const psplit_i_program *x, const psplit_i_round *round, rank *ranks) {
  for (uint32_t k = 0; k < x->n_round; k++) {
    const psplit_i_round_label *l = &round->labels[k];
    ranks[k] = (rank){l->head.hash ^ l->head.receivers, l->head.receivers, 0, 0, k};
    for (uint32_t word = 0; word < x->words; word++)
      ranks[k].n_left += (uint32_t)__builtin_popcountll(x->round_bits[(size_t)k * x->words + word]);
    if (x->bypasses) {
      ranks[k].n_receivers = UINT32_MAX - beside(round, l); /* what says more comes first */
      continue;
    }
    for (uint32_t i = l->counts_from; i < l->counts_to; i += 2)
      ranks[k].n_receivers += round->counts[i + 1];
  }
  qsort(ranks, x->n_round, sizeof *ranks, by_left);
}

/* Whether one of kept[from, to), the last first, dominates label b; false where the work is
 * spent. */
static bool one_dominates(comparison *c, const psplit_i_round *round, const uint32_t *kept,
                          uint32_t from, uint32_t to, uint32_t b, uint64_t most) {
  while (to > from && c->work < most)
    if (dominates(c, round, kept[--to], b)) return true;
  return false;
}

/* keep[]: by place in the round. Each is held against those kept of its downset, and then those
 * that have less left, the most of that first. */
static void find_dominated(comparison *c, const psplit_i_round *round, const rank *ranks,
                           uint32_t *kept, bool *keep) {
  uint64_t most = 0;
  uint32_t n_kept = 0, n_less = 0,
           n_before = 0; /* of those kept: with less left; before the downset */
  for (uint32_t i = 0; i < c->x->n_round; i++) {
    const uint32_t b = ranks[i].at;
    if (i > 0 && ranks[i].n_left > ranks[i - 1].n_left) n_less = n_kept;
    if (i > 0 && ranks[i].downset != ranks[i - 1].downset) n_before = n_kept;
    most += WORK_A_LABEL;
    keep[b] = !one_dominates(c, round, kept, n_before, n_kept, b, most) &&
              (c->x->bypasses || !one_dominates(c, round, kept, 0, n_less, b, most));
    if (keep[b])
      kept[n_kept++] = b;
    else
      most += WORK_A_DROPPED;
  }
}

static void drop(psplit_i_program *x, psplit_i_round *round, const bool *keep) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < x->n_round; k++) {
    if (!keep[k]) continue;
    round->labels[n] = round->labels[k];
    x->round_ids[n] = x->round_ids[k];
    for (uint32_t word = 0; word < x->words; word++)
      x->round_bits[(size_t)n * x->words + word] = x->round_bits[(size_t)k * x->words + word];
    n++;
  }
  x->n_round = n;
}

/* Messages to each: bounds that count them rule out more than the loads here, which do not. */
static bool applies(const psplit_i_program *x) {
  const psplit_i_instance *instance = x->instance;
  if (x->n_round <= 1 || x->options->keep_dominated || x->options->least_comm) return false;
  return x->bypasses ||
         (x->n_key_bytes == 0 && !x->alike && !x->receiver_budget && !x->automaton->all_used &&
          (!instance->makes_message || psplit_i_one_message(instance)) && instance->all_forward);
}

psplit_code psplit_i_exact_drop_dominated(psplit_i_expander *d, psplit_i_round *round) {
  psplit_i_program *x = d->x;
  const uint32_t n = x->n_round, n_nets = x->instance->n_nets;
  psplit_code code = PSPLIT_NOMEM;
  psplit_i_arena arena;
  if (!applies(x)) return PSPLIT_OK;
  psplit_i_arena_init(&arena, 0);
  comparison c = {.x = x,
                  .count_a = PSPLIT_NEW(&arena, uint32_t, n_nets),
                  .count_b = PSPLIT_NEW(&arena, uint32_t, n_nets),
                  .demand = PSPLIT_NEW(&arena, int64_t, x->instance->n)};
  rank *ranks = PSPLIT_NEW(&arena, rank, n);
  uint32_t *kept = PSPLIT_NEW(&arena, uint32_t, n);
  bool *keep = PSPLIT_NEW(&arena, bool, n);
  if (c.count_a && c.count_b && c.demand && ranks && kept && keep) {
    rank_labels(x, round, ranks);
    find_dominated(&c, round, ranks, kept, keep);
    d->n_steps += c.work / WORK_PER_STEP;
    drop(x, round, keep);
    code = PSPLIT_OK;
  }
  psplit_i_arena_fini(&arena);
  return code;
}
