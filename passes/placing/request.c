/* One run of the solver on a planner's problem. */
#include "request.h"

#include <inttypes.h>
#include <string.h>

#include "record.h"

#define COARSE_GAP 0.005

bool psplit_i_request_joins_any(const psplit_i_request *r) {
  bool any = false;
  for (size_t w = 0; w < r->ties->weights.n; w++) any |= r->joined[w] != 0;
  return any;
}

static psplit_code join_tied(psplit_i_builder *b, const psplit_i_request *r) {
  if (!psplit_i_request_joins_any(r)) return PSPLIT_OK;
  if (!psplit_i_tied_weights_join(r->ties, r->joined, b->group, b->n_groups,
                                  psplit_i_builder_n_together(b->planner), b->arena, b->together))
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

psplit_code psplit_i_request_try(psplit_planner *planner, const psplit_i_request *r,
                                 const uint64_t *memory_bytes, bool any_order, double share,
                                 psplit_diag *diag, psplit_solution **out_solution) {
  psplit_code code;
  psplit_solution *solution = NULL;
  psplit_i_builder b = {
    .planner = planner, .arena = &planner->scratch, .diag = diag, .any_order = any_order};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  PSPLIT_TRY(psplit_i_builder_build(&b, memory_bytes));
  PSPLIT_TRY(join_tied(&b, r));
  psplit_partition_options options = options_of(planner, r, share);
  options.logger = NULL;
  PSPLIT_TRY(psplit_partition_solve(&b.problem, &options, diag, &solution));
  if (any_order) PSPLIT_TRY(psplit_i_record(planner, &b.problem, &options, solution, diag));
  *out_solution = solution;
  solution = NULL;
out:
  psplit_solution_destroy(solution);
  psplit_i_arena_reset(&planner->scratch);
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
  const psplit_partition_options options = options_of(planner, r, share);
  PSPLIT_TRY(psplit_partition_solve(&b.problem, &options, diag, &solution));
  if (!r->quick) PSPLIT_TRY(psplit_i_record(planner, &b.problem, &options, solution, diag));
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
