/* What stages of limited weight cut at least, whatever order they are in: a semidefinite program
 * over pairs of clusters that share a net. All loads together are the work and what is paid for
 * nets, and their average bounds the largest. */
#include "bounds.h"
#include "cluster_vectors.h"
#include "cut_proof.h"
#include "instance.h"
#include "pair_costs.h"

enum { MOST_CLUSTERS = 2048, MOST_STAGES = 128, ROUNDS = 120, LEAST_ROUNDS = 60 };

static bool suits(const psplit_i_bound_query *query) {
  return query->instance->n <= MOST_CLUSTERS && query->automaton->n_stages <= MOST_STAGES &&
         psplit_i_pairs_suit(query);
}

/* Rounds that the budget has, with a proof behind them; 0: too few. */
static uint32_t affordable(const psplit_i_pairs *pairs, uint32_t n_dims,
                           const psplit_i_budget *budget) {
  const uint64_t left = psplit_i_budget_left(budget);
  const uint64_t proof = 2 * psplit_i_cut_proof_ops(pairs->n, n_dims);
  const uint64_t round = psplit_i_vector_ops(pairs, n_dims);
  if (left <= proof) return 0;
  const uint64_t n = (left - proof) / (round + 1);
  if (n < LEAST_ROUNDS) return 0;
  return n < ROUNDS ? (uint32_t)n : ROUNDS;
}

psplit_code psplit_i_bound_vectors(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                   int64_t *inout_bound) {
  const psplit_i_automaton *m = query->automaton;
  const int64_t limit = query->value - 1;
  psplit_i_arena arena;
  psplit_i_pairs pairs;
  psplit_i_pair_units units;
  psplit_i_multipliers multipliers;
  double proved;
  psplit_code code;
  if (!suits(query) || limit <= *inout_bound) return PSPLIT_OK;
  psplit_i_arena_init(&arena, 0);
  PSPLIT_TRY(psplit_i_pairs_make(query, limit, false, &arena, &pairs, &units));
  const uint32_t n_dims = psplit_i_vector_dims(pairs.n, m->n_stages);
  const uint32_t n_rounds = affordable(&pairs, n_dims, budget);
  if (n_rounds == 0) goto out;
  /* What is cut has to cost more than that, or nothing is gained. */
  const double least = (double)*inout_bound * m->n_stages - (double)m->total_min_time;
  PSPLIT_TRY(psplit_i_cluster_vectors(&pairs, n_dims, n_rounds, least / units.cost, budget, &arena,
                                      &multipliers));
  if (!(multipliers.about > 0)) goto out;
  PSPLIT_TRY(psplit_i_cut_proof(&pairs, &multipliers, budget, &proved));
  const double cut = proved * units.cost;
  if (cut >= (double)PSPLIT_I_INF || !(cut > 0)) goto out;
  const int64_t loads = psplit_i_sat_add_i64(m->total_min_time, (int64_t)cut);
  const int64_t bound = loads / m->n_stages + (loads % m->n_stages > 0);
  const int64_t next = bound > limit ? limit + 1 : bound;
  if (next > *inout_bound) *inout_bound = next;
out:
  psplit_i_arena_fini(&arena);
  return code;
}
