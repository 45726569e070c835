/* One run of the solver on a planner's problem. */
#include "request.h"

#include <inttypes.h>
#include <string.h>

#include "methods.h"
#include "pairs.h"

#define COARSE_GAP 0.005

bool psplit_i_request_joins_any(const psplit_i_request *r) {
  bool any = false;
  for (size_t w = 0; w < r->ties->weights.n; w++) any |= r->joined[w] != 0;
  return any;
}

static psplit_code join_tied(psplit_i_builder *b, const psplit_i_request *r) {
  if (!psplit_i_request_joins_any(r)) return PSPLIT_OK;
  if (!psplit_i_tied_weights_join(r->ties, r->joined, b->group, b->n_groups, b->planner->n_together,
                                  b->arena, b->together))
    return psplit_i_nomem(b->diag);
  b->problem.together = b->together;
  return PSPLIT_OK;
}

static psplit_partition_options options_of(const psplit_planner *planner, const psplit_i_request *r,
                                           double share) {
  psplit_partition_options options;
  psplit_i_partition_options(planner, &options);
  options.solver = strcmp(r->solver, "auto") != 0 ? r->solver
                   : planner->options.solver      ? planner->options.solver
                                                  : "auto";
  if (r->time_limit_s >= 0) {
    options.time_limit_s = r->time_limit_s;
    options.limit_by_work = false;
  }
  options.time_limit_s *= share; /* no limit, which is below 0, stays none */
  if (r->quick) options.time_limit_s = 0;
  options.gap_frac = r->gap_frac;
  /* What coarsening lost is not known: proofs to the last bit say nothing about the model. */
  if (planner->coarsened && options.gap_frac < COARSE_GAP) options.gap_frac = COARSE_GAP;
  return options;
}

/* What a split takes that was solved for with the nearest links; *inout_stage and *inout_value_ns
 * become its own if it is better. */
static psplit_code try_nearest(psplit_i_builder *b, psplit_i_pairs *pairs,
                               const psplit_i_request *r, const uint64_t *memory_bytes,
                               const psplit_partition_options *options, const char **inout_solver,
                               uint32_t *inout_stage, int64_t *inout_value_ns) {
  psplit_code code;
  psplit_solution *solution = NULL;
  psplit_diag ignored = {0};
  psplit_i_builder nearest = {.planner = b->planner,
                              .arena = b->arena,
                              .diag = b->diag,
                              .group = b->group,
                              .n_groups = b->n_groups,
                              .choice = PSPLIT_I_LINKS_NEAREST};
  PSPLIT_TRY(psplit_i_builder_build(&nearest, memory_bytes));
  PSPLIT_TRY(join_tied(&nearest, r));
  code = psplit_partition_solve(&nearest.problem, options, &ignored, &solution);
  if (code == PSPLIT_NOMEM) PSPLIT_TRY(psplit_i_nomem(b->diag));
  if (code == PSPLIT_OK) {
    const int64_t value_ns = psplit_i_pairs_value_ns(pairs, solution->stage);
    if (value_ns < *inout_value_ns) {
      memcpy(inout_stage, solution->stage, b->n_groups * sizeof *inout_stage);
      *inout_value_ns = value_ns;
      *inout_solver = solution->solver;
    }
  }
  code = PSPLIT_OK; /* without it there is still the other split */
out:
  psplit_solution_destroy(solution);
  return code;
}

/* Where links differ between pairs: solution is of the least links, whose bound holds. Finds a
 * split that is good in truth, and says of it what is true. */
static psplit_code settle_pairs(psplit_i_builder *b, const psplit_i_request *r,
                                const uint64_t *memory_bytes,
                                const psplit_partition_options *options,
                                psplit_solution *solution) {
  static const double STEPS_PER_SECOND = 5e6;
  psplit_code code;
  psplit_i_pairs pairs;
  const char *solver = solution->solver;
  const int64_t bound_ns = solution->lower_bound_ns;
  PSPLIT_TRY(psplit_i_pairs_init(b->planner, &b->problem, b->arena, b->diag, &pairs));
  int64_t value_ns = psplit_i_pairs_value_ns(&pairs, solution->stage);
  if (value_ns > bound_ns && !r->quick) {
    PSPLIT_TRY(
      try_nearest(b, &pairs, r, memory_bytes, options, &solver, solution->stage, &value_ns));
    const int64_t before_ns = value_ns;
    const double seconds = options->time_limit_s;
    PSPLIT_TRY(psplit_i_pairs_improve(
      &pairs, options, bound_ns,
      (uint64_t)(STEPS_PER_SECOND * (seconds < 0 || seconds > 10 ? 10 : seconds)), b->diag,
      solution->stage));
    value_ns = psplit_i_pairs_value_ns(&pairs, solution->stage);
    if (value_ns < before_ns) solver = psplit_i_method_name(PSPLIT_I_SOLVER_PAIR_LINKS);
  }
  if (value_ns < bound_ns)
    return psplit_i_fail(b->diag, PSPLIT_INTERNAL,
                         "a split of %" PRId64 " ns is below the bound of %" PRId64
                         " ns (%s, least links)",
                         value_ns, bound_ns, solution->bound);
  const size_t n = strlen(solution->bound);
  char *bound = psplit_i_arena_array(&b->planner->arena, n + sizeof ", least links", 1);
  if (!bound) return psplit_i_nomem(b->diag);
  memcpy(bound, solution->bound, n);
  memcpy(bound + n, ", least links", sizeof ", least links");
  solution->solver = solver;
  solution->bound = bound;
  solution->objective_ns = value_ns;
  solution->gap_frac = value_ns > 0 ? (double)(value_ns - bound_ns) / (double)value_ns : 0;
  solution->proved_optimal = value_ns == bound_ns;
  solution->ties_proved = false;
out:
  return code;
}

psplit_code psplit_i_request_solve(psplit_planner *planner, const psplit_i_request *r,
                                   const uint64_t *memory_bytes, double share, psplit_diag *diag) {
  psplit_code code;
  psplit_solution *solution = NULL;
  psplit_i_builder b = {.planner = planner, .arena = &planner->scratch, .diag = diag};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  planner->copies.n = 0;
  planner->copies_bound_ns = 0;
  if (b.n_groups == 0) { /* constants alone: all of them in the one stage */
    PSPLIT_TRY(psplit_i_builder_place_free(&b));
    goto out;
  }
  PSPLIT_TRY(psplit_i_builder_build(&b, memory_bytes));
  PSPLIT_TRY(join_tied(&b, r));
  const psplit_partition_options options =
    options_of(planner, r, b.links.exact ? share : share / 2);
  PSPLIT_TRY(psplit_partition_solve(&b.problem, &options, diag, &solution));
  if (!b.links.exact) PSPLIT_TRY(settle_pairs(&b, r, memory_bytes, &options, solution));
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (b.group[n] != PSPLIT_NONE) planner->stage[n] = solution->stage[b.group[n]];
  psplit_solution_destroy(planner->solution);
  planner->solution = solution;
  solution = NULL;
  PSPLIT_TRY(psplit_i_builder_place_free(&b));
out:
  psplit_solution_destroy(solution);
  psplit_i_arena_reset(&planner->scratch);
  return code;
}
