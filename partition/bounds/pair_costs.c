/* Costs of pairs: each net is shared out among the pairs of its pins, so that pairs in different
 * stages never cost more than is paid.
 *
 * A net with k pins in t stages is paid for by its producer and by t - 1 receivers. Each two of its
 * pins get the same cost, the least of what is paid over the pairs that are apart, which are most
 * where pins are shared evenly. */
#include "pair_costs.h"

#include <float.h>
#include <math.h>

#include "instance.h"
#include "problem.h"

enum {
  MOST_PINS = 24,       /* of a net that counts */
  LEAST_BY_SIDES = 3,   /* pins of a net whose pairs are limited together, by sides */
  MOST_BY_SIDES = 4,    /* the same, at most */
  MOST_WEIGHT_BITS = 52 /* doubles hold such weights exactly */
};

typedef struct work {
  const psplit_i_bound_query *query;
  uint32_t *off, *to, *net;
  double *weight, *cost, *alone, *sides;
  double unit_cost; /* a power of two */
  uint32_t n_small; /* nets that have sides */
} work;

/* What is paid for a net that is in so many stages, at least. */
static double paid(const psplit_i_instance *in, uint32_t e, uint32_t n_stages) {
  const double send = (double)in->send[e], recv = (double)in->recv[e];
  const uint32_t n = in->net_forward[e] ? n_stages - 1 : 1;
  return (in->p2p ? send * n : send) + recv * n;
}

/* Of each two of k pins, rounded down. */
static double cost_of_pair(const psplit_i_instance *in, uint32_t e) {
  const uint32_t k = in->net_off[e + 1] - in->net_off[e];
  double least = DBL_MAX;
  for (uint32_t t = 2; t <= k; t++) {
    const uint32_t low = k / t, n_high = k % t;
    const uint32_t within = (t - n_high) * low * (low - 1) / 2 + n_high * (low + 1) * low / 2;
    const uint32_t apart = k * (k - 1) / 2 - within;
    const double each = paid(in, e, t) / apart;
    if (each < least) least = each;
  }
  return least * (1 - 4 * DBL_EPSILON);
}

/* Of each two of k pins, what a stage that holds some of them, and not all, pays: its part of the
 * net is sent or received, and most pairs are apart where it holds half of the pins. */
static double alone_of_pair(const psplit_i_instance *in, uint32_t e) {
  const uint32_t k = in->net_off[e + 1] - in->net_off[e], half = k / 2;
  const int64_t least = in->send[e] < in->recv[e] ? in->send[e] : in->recv[e];
  if (!in->net_forward[e]) return 0; /* not every stage pays */
  return (double)least / (half * (k - half)) * (1 - 4 * DBL_EPSILON);
}

static bool counts(const psplit_i_instance *in, uint32_t e) {
  const uint32_t k = in->net_off[e + 1] - in->net_off[e];
  return k >= 2 && k <= MOST_PINS && in->send[e] < PSPLIT_I_INF && in->recv[e] < PSPLIT_I_INF &&
         in->send[e] + in->recv[e] > 0;
}

/* Whether the net is small, and parts pay so much that its pairs have room for what two sides pay,
 * however its pins are divided into sides. See ball_sides.c. */
static bool pays_by_sides(const psplit_i_instance *in, uint32_t e) {
  const uint32_t k = in->net_off[e + 1] - in->net_off[e];
  return counts(in, e) && k >= LEAST_BY_SIDES && k <= MOST_BY_SIDES &&
         paid(in, e, 3) >= paid(in, e, 2) * (2 - 0.5) &&
         paid(in, e, 4) >= paid(in, e, 2) * (2 - 0.25);
}

/* The power of two that is next below. */
static double power_below(double x) { return x > 0 ? ldexp(1, ilogb(x)) : 1; }

/* Counts pairs in off[i + 1], or puts them in their places. */
static void add_pairs(work *x, bool places) {
  const psplit_i_instance *in = x->query->instance;
  x->n_small = 0;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    if (!counts(in, e)) continue;
    const bool small = x->net && pays_by_sides(in, e);
    if (small && places)
      x->sides[x->n_small] = paid(in, e, 2) / x->unit_cost * (1 - 4 * DBL_EPSILON);
    const double cost = places ? cost_of_pair(in, e) / x->unit_cost : 0;
    const double alone = places ? alone_of_pair(in, e) / x->unit_cost : 0;
    for (uint32_t k = in->net_off[e]; k < in->net_off[e + 1]; k++)
      for (uint32_t l = in->net_off[e]; l < in->net_off[e + 1]; l++) {
        const uint32_t i = in->net_pin[k], j = in->net_pin[l];
        if (i == j) continue;
        if (places) {
          x->to[x->off[i]] = j;
          if (x->net) x->net[x->off[i]] = small ? x->n_small : PSPLIT_NONE;
          x->alone[x->off[i]] = alone;
          x->cost[x->off[i]++] = cost;
        } else {
          x->off[i + 1]++;
        }
      }
    x->n_small += small;
  }
}

bool psplit_i_pairs_suit(const psplit_i_bound_query *query) {
  const psplit_i_instance *in = query->instance;
  const psplit_i_automaton *m = query->automaton;
  return in->n > 1 && in->n_types == 1 && m->n_stages > 1 && query->value < PSPLIT_I_INF &&
         !m->adds_up && m->total_min_time > 0 && m->total_min_time >> MOST_WEIGHT_BITS == 0 &&
         !in->problem->devices[0].free_comm;
}

psplit_code psplit_i_pairs_make(const psplit_i_bound_query *query, int64_t limit, bool one_unit,
                                psplit_i_arena *arena, psplit_i_pairs *out,
                                psplit_i_pair_units *out_units) {
  const psplit_i_instance *in = query->instance;
  const psplit_i_automaton *m = query->automaton;
  const uint32_t n = in->n;
  work x = {.query = query};
  x.off = PSPLIT_NEW(arena, uint32_t, n + 1);
  x.weight = PSPLIT_NEW(arena, double, n);
  if (arena->failed) return PSPLIT_NOMEM;
  add_pairs(&x, false);
  for (uint32_t i = 0; i < n; i++) x.off[i + 1] += x.off[i];
  const uint32_t n_ends = x.off[n];
  double sum = 0;
  for (uint32_t e = 0; e < in->n_nets; e++)
    if (counts(in, e)) sum += paid(in, e, 2);
  x.unit_cost = power_below(sum / n);
  const double unit = one_unit ? x.unit_cost : power_below((double)m->total_min_time / n);
  for (uint32_t i = 0; i < n; i++) x.weight[i] = (double)m->min_time[i] / unit;
  if (one_unit) {
    x.net = PSPLIT_NEW(arena, uint32_t, n_ends);
    x.sides = PSPLIT_NEW(arena, double, in->n_nets);
  }
  x.to = PSPLIT_NEW(arena, uint32_t, n_ends);
  x.cost = PSPLIT_NEW(arena, double, n_ends);
  x.alone = PSPLIT_NEW(arena, double, n_ends);
  if (arena->failed) return PSPLIT_NOMEM;
  add_pairs(&x, true);
  for (uint32_t i = n; i > 0; i--) x.off[i] = x.off[i - 1]; /* places were moved on */
  x.off[0] = 0;
  *out_units = (psplit_i_pair_units){.weight = unit, .cost = x.unit_cost};
  *out = (psplit_i_pairs){.n = n,
                          .weight = x.weight,
                          .most = (double)limit / unit,
                          .off = x.off,
                          .to = x.to,
                          .cost = x.cost,
                          .alone = x.alone,
                          .n_nets = x.n_small,
                          .net = x.net,
                          .sides = x.sides};
  return PSPLIT_OK;
}
