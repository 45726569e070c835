/* Latency of blocks in a row against enumeration: what no split is below must not be above the
 * optimum, and a split that it finds takes what it says. Small problems are solved by enumeration,
 * which hides both from the solver's own tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/sample.h"
#include "instance.h"
#include "latency_blocks.h"
#include "latency_calls.h"
#include "random_problem.h"

static uint32_t n_asked, n_tight, n_splits, n_calls_tight, n_calls_splits, n_known;

/* What the model counts whole: a split that it finds is one. */
static bool is_exact(unsigned features) {
  return !(features & (WITH_PINS | WITH_MEMORY | WITH_RELAYS | WITH_PAIRS | WITH_STASH));
}

/* The split by node, and what psplit_partition_check says it takes; -1: it is none. */
static int64_t latency_of(const psplit_problem *problem, const psplit_partition_options *o,
                          const psplit_i_instance *instance, const psplit_i_assignment *split) {
  uint32_t stage[MAX_NODES];
  psplit_solution *solution;
  for (uint32_t v = 0; v < problem->n_nodes; v++)
    stage[v] = split->stage[instance->cluster_of_node[v]];
  psplit_diag diag = {0};
  if (psplit_partition_check(problem, o, stage, NULL, split->device, NULL, &diag, &solution) !=
      PSPLIT_OK)
    return -1;
  const int64_t value = solution->objective_ns;
  psplit_solution_destroy(solution);
  return value;
}

/* The same of blocks of calls, of which stages are a special case. */
static void ask_calls(const psplit_problem *problem, const psplit_partition_options *o,
                      const psplit_i_automaton *automaton, psplit_i_arena *arena, int64_t best,
                      const psplit_i_latency_split *known, const char *what) {
  const int64_t limit = known->value;
  uint32_t stage[MAX_NODES], type[MAX_NODES];
  psplit_i_budget budget = psplit_i_budget_unlimited();
  psplit_diag diag = {0};
  psplit_solution *solution;
  const psplit_i_solver_request request = {
    .problem = problem, .options = o, .budget = &budget, .arena = arena, .diag = &diag};
  psplit_i_latency_split split = {.stage = stage, .type = type};
  int64_t bound = 0;
  assert_true(psplit_problem_n_stages(problem) <= MAX_NODES);
  assert_int_equal(psplit_i_latency_calls(&request, automaton, known, &bound, &split), PSPLIT_OK);
  if (bound > best)
    fail_msg("%s: bound of calls %lld, optimum %lld, limit %lld", what, (long long)bound,
             (long long)best, (long long)limit);
  n_calls_tight += bound == best;
  if (split.value >= PSPLIT_I_INF) return;
  n_calls_splits++;
  if (psplit_partition_check(problem, o, stage, NULL, type, NULL, &diag, &solution) != PSPLIT_OK) {
    if (problem->pin || problem->stash_1f1b) return; /* which a search for calls leaves out */
    fail_msg("%s: what calls found is not a split: %s", what, diag.message);
  }
  if (solution->objective_ns != split.value || split.value >= limit)
    fail_msg("%s: calls found %lld, which is %lld, limit %lld", what, (long long)split.value,
             (long long)solution->objective_ns, (long long)limit);
  psplit_solution_destroy(solution);
}

/* From a split that is known, all in the first stage: it may be annealed. */
static void ask_calls_from_one_stage(const psplit_problem *problem,
                                     const psplit_partition_options *o,
                                     const psplit_i_automaton *automaton, psplit_i_arena *arena,
                                     int64_t best, const char *what) {
  uint32_t stage[MAX_NODES] = {0}, type[MAX_NODES], n = 0;
  psplit_solution *solution;
  psplit_diag diag = {0};
  for (uint32_t d = 0; d < problem->n_devices; d++)
    for (uint32_t k = 0; k < problem->devices[d].count; k++) type[n++] = d;
  if (psplit_partition_check(problem, o, stage, NULL, type, NULL, &diag, &solution) != PSPLIT_OK)
    return;
  const psplit_i_latency_split known = {solution->objective_ns, stage, type};
  psplit_solution_destroy(solution);
  ask_calls(problem, o, automaton, arena, best, &known, what);
  n_known++;
}

static void ask(const psplit_problem *problem, const psplit_partition_options *o, unsigned features,
                int64_t best, const char *what) {
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_assignment split;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  if (psplit_i_instance_init(&instance, problem, NULL, NULL) != PSPLIT_OK) return;
  psplit_partition_options loose = *o;
  loose.require_nonempty = false;
  if (psplit_i_automaton_init(&automaton, &instance, &loose, NULL) != PSPLIT_OK) goto out;
  assert_int_equal(psplit_i_assignment_init(&split, &instance, &arena), PSPLIT_OK);
  const int64_t limits[] = {PSPLIT_I_INF, best, best + 1, best + best / 3 + 1};
  for (uint32_t i = 0; i < 8; i++) {
    const int64_t limit = limits[i / 2];
    const psplit_i_latency_split known = {.value = limit};
    if (i % 2) ask_calls(problem, o, &automaton, &arena, best, &known, what);
    psplit_i_budget budget = psplit_i_budget_unlimited();
    int64_t bound = 0;
    assert_int_equal(psplit_i_blocks(&instance, &automaton, &budget,
                                     i % 2 ? 0 : PSPLIT_I_BLOCKS_EXACT_OPS, limit, &split, &bound),
                     PSPLIT_OK);
    if (bound > best)
      fail_msg("%s: bound %lld, optimum %lld, limit %lld", what, (long long)bound, (long long)best,
               (long long)limit);
    n_asked++;
    n_tight += bound == best;
    if (split.value >= PSPLIT_I_INF || !is_exact(features)) continue;
    const int64_t value = latency_of(problem, o, &instance, &split);
    n_splits++;
    if (value != split.value || value >= limit)
      fail_msg("%s: found %lld, which is %lld, limit %lld", what, (long long)split.value,
               (long long)value, (long long)limit);
  }
  ask_calls_from_one_stage(problem, o, &automaton, &arena, best, what);
  psplit_i_automaton_fini(&automaton);
out:
  psplit_i_instance_fini(&instance);
  psplit_i_arena_fini(&arena);
}

static void bounds_and_splits_hold(void **state) {
  (void)state;
  static random_problem r;
  static const unsigned kFeatures[] = {0,
                                       WITH_CLASSES,
                                       WITH_CLASSES | WITH_FREE_COMM,
                                       WITH_CLASSES | WITH_FREE_COMM | WITH_MEMORY,
                                       WITH_CLASSES | WITH_MEMORY | WITH_STASH,
                                       WITH_TOGETHER | WITH_CLASSES | WITH_ALIKE,
                                       WITH_PINS | WITH_MEMORY,
                                       WITH_OVERLAP,
                                       WITH_PAIRS | WITH_CLASSES | WITH_FREE_COMM,
                                       WITH_RELAYS};
  const uint32_t n_seeds = sample_of(24, 50);
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.objective = PSPLIT_LATENCY;
  for (size_t f = 0; f < sizeof kFeatures / sizeof *kFeatures; f++)
    for (uint32_t seed = 0; seed < n_seeds; seed++)
      for (shape kind = 0; kind < N_SHAPES; kind++) {
        const uint32_t k = 1 + (seed + kind) % 4, n = 3 + seed % (k > 3 ? 4 : 6);
        make_random_problem(&r, seed, kind, n, k, kFeatures[f]);
        int64_t comm;
        const int64_t best = best_by_enumeration(&r.problem, &o, &comm, NULL);
        if (best == INT64_MAX) continue;
        char what[96];
        snprintf(what, sizeof what, "seed %u, shape %d, %u nodes, %u stages, features %u", seed,
                 (int)kind, n, k, kFeatures[f]);
        ask(&r.problem, &o, kFeatures[f], best, what);
      }
  /* What says nothing is never wrong. */
  if (n_tight < n_asked / 4 || n_splits < n_asked / 8)
    fail_msg("%u bounds met the optimum and %u splits were found, of %u", n_tight, n_splits,
             n_asked);
  assert_true(n_known > n_asked / 32);
  if (n_calls_tight < n_asked / 16 || n_calls_splits < n_asked / 64)
    fail_msg("%u bounds of calls met the optimum and %u splits were found, of %u", n_calls_tight,
             n_calls_splits, n_asked / 2);
  print_message("# %u asked, %u tight, %u splits; of calls %u, %u tight, %u splits\n", n_asked,
                n_tight, n_splits, n_asked / 2 + n_known, n_calls_tight, n_calls_splits);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(bounds_and_splits_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
