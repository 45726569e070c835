/* What stages of limited weight cut at least, whatever order they are in: a semidefinite program
 * over pairs of clusters that share a net. All loads together are the work and what is paid for
 * nets, and their average bounds the largest.
 *
 * A net with k pins in t stages is paid for by its producer and by t - 1 receivers. Each two of its
 * pins get the same cost, so that pairs in different stages, of which there are most where pins are
 * shared evenly, never cost more than is paid. */
#include <float.h>
#include <math.h>

#include "bounds.h"
#include "cluster_vectors.h"
#include "cut_proof.h"
#include "instance.h"
#include "problem.h"

enum {
  MOST_CLUSTERS = 2048,
  MOST_STAGES = 128,
  MOST_PINS = 24, /* of a net that counts */
  ROUNDS = 120,
  LEAST_ROUNDS = 60,
  MOST_WEIGHT_BITS = 52 /* doubles hold such weights exactly */
};

typedef struct work {
  const psplit_i_bound_query *query;
  psplit_i_arena arena;
  psplit_i_pairs pairs;
  uint32_t *off, *to;
  double *weight, *cost;
  double unit_cost; /* a power of two */
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
    const double each = paid(in, e, t) / (k * (k - 1) / 2 - within);
    if (each < least) least = each;
  }
  return least * (1 - 4 * DBL_EPSILON);
}

static bool counts(const psplit_i_instance *in, uint32_t e) {
  const uint32_t k = in->net_off[e + 1] - in->net_off[e];
  return k >= 2 && k <= MOST_PINS && in->send[e] < PSPLIT_I_INF && in->recv[e] < PSPLIT_I_INF &&
         in->send[e] + in->recv[e] > 0;
}

/* The power of two that is next below. */
static double power_below(double x) { return x > 0 ? ldexp(1, ilogb(x)) : 1; }

/* Counts pairs in off[i + 1], or, with `to`, puts them in their places. */
static void add_pairs(work *x, bool places) {
  const psplit_i_instance *in = x->query->instance;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    if (!counts(in, e)) continue;
    const double cost = places ? cost_of_pair(in, e) / x->unit_cost : 0;
    for (uint32_t k = in->net_off[e]; k < in->net_off[e + 1]; k++)
      for (uint32_t l = in->net_off[e]; l < in->net_off[e + 1]; l++) {
        const uint32_t i = in->net_pin[k], j = in->net_pin[l];
        if (i == j) continue;
        if (places) {
          x->to[x->off[i]] = j;
          x->cost[x->off[i]++] = cost;
        } else {
          x->off[i + 1]++;
        }
      }
  }
}

static psplit_code make_pairs(work *x, int64_t limit) {
  const psplit_i_instance *in = x->query->instance;
  const psplit_i_automaton *m = x->query->automaton;
  const uint32_t n = in->n;
  x->off = PSPLIT_NEW(&x->arena, uint32_t, n + 1);
  x->weight = PSPLIT_NEW(&x->arena, double, n);
  if (x->arena.failed) return PSPLIT_NOMEM;
  const double unit = power_below((double)m->total_omega / n);
  for (uint32_t i = 0; i < n; i++) x->weight[i] = (double)m->omega[i] / unit;
  add_pairs(x, false);
  for (uint32_t i = 0; i < n; i++) x->off[i + 1] += x->off[i];
  const uint32_t n_ends = x->off[n];
  double sum = 0;
  for (uint32_t e = 0; e < in->n_nets; e++)
    if (counts(in, e)) sum += paid(in, e, 2);
  x->unit_cost = power_below(sum / n);
  x->to = PSPLIT_NEW(&x->arena, uint32_t, n_ends);
  x->cost = PSPLIT_NEW(&x->arena, double, n_ends);
  if (x->arena.failed) return PSPLIT_NOMEM;
  add_pairs(x, true);
  for (uint32_t i = n; i > 0; i--) x->off[i] = x->off[i - 1]; /* places were moved on */
  x->off[0] = 0;
  x->pairs = (psplit_i_pairs){.n = n,
                              .weight = x->weight,
                              .most = (double)limit / unit,
                              .off = x->off,
                              .to = x->to,
                              .cost = x->cost};
  return PSPLIT_OK;
}

static bool suits(const psplit_i_bound_query *query) {
  const psplit_i_instance *in = query->instance;
  const psplit_i_automaton *m = query->automaton;
  return in->n > 1 && in->n <= MOST_CLUSTERS && in->n_types == 1 && m->n_stages > 1 &&
         m->n_stages <= MOST_STAGES && query->value < PSPLIT_I_INF && !m->adds_up &&
         m->total_omega > 0 && m->total_omega >> MOST_WEIGHT_BITS == 0 &&
         !in->problem->devices[0].free_comm;
}

/* Rounds that the budget has, with a proof behind them; 0: too few. */
static uint32_t affordable(const work *x, uint32_t n_dims, const psplit_i_budget *budget) {
  const uint64_t left = psplit_i_budget_left(budget);
  const uint64_t proof = 2 * psplit_i_cut_proof_ops(x->pairs.n, n_dims);
  const uint64_t round = psplit_i_vector_ops(&x->pairs, n_dims, 1);
  if (left <= proof) return 0;
  const uint64_t n = (left - proof) / (round + 1);
  if (n < LEAST_ROUNDS) return 0;
  return n < ROUNDS ? (uint32_t)n : ROUNDS;
}

psplit_code psplit_i_bound_vectors(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                   int64_t *inout_bound) {
  const psplit_i_automaton *m = query->automaton;
  const int64_t limit = query->value - 1;
  work x = {.query = query};
  psplit_i_multipliers multipliers;
  double about, proved;
  psplit_code code;
  if (!suits(query) || limit <= *inout_bound) return PSPLIT_OK;
  psplit_i_arena_init(&x.arena, 0);
  PSPLIT_TRY(make_pairs(&x, limit));
  const uint32_t n_dims = psplit_i_vector_dims(x.pairs.n, m->n_stages);
  const uint32_t n_rounds = affordable(&x, n_dims, budget);
  if (n_rounds == 0) goto out;
  /* What is cut has to cost more than that, or nothing is gained. */
  const double least = (double)*inout_bound * m->n_stages - (double)m->total_omega;
  PSPLIT_TRY(psplit_i_cluster_vectors(&x.pairs, n_dims, n_rounds, least / x.unit_cost, budget,
                                      &x.arena, &multipliers, &about));
  if (!(about > 0)) goto out;
  PSPLIT_TRY(psplit_i_cut_proof(&x.pairs, &multipliers, budget, &proved));
  const double cut = proved * x.unit_cost;
  if (cut >= (double)PSPLIT_I_INF || !(cut > 0)) goto out;
  const int64_t loads = psplit_i_sat_add_i64(m->total_omega, (int64_t)cut);
  const int64_t bound = loads / m->n_stages + (loads % m->n_stages > 0);
  const int64_t next = bound > limit ? limit + 1 : bound;
  if (next > *inout_bound) *inout_bound = next;
out:
  psplit_i_arena_fini(&x.arena);
  return code;
}
