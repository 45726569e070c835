/* Runs the solver on a planner's problem. */
#include "request.h"

#include <inttypes.h>
#include <string.h>

#include "plan_budget.h"
#include "record.h"
#include "solve.h"

#define COARSE_GAP 0.005

/* Share of the time for a problem that lacks layout prices, before one that counts them. */
static const double FIRST_SHARE = 0.7;

bool psplit_i_request_joins_any(const psplit_i_request *r) {
  bool any = false;
  for (size_t w = 0; w < r->ties->weights.n; w++) any |= r->joined[w] != 0;
  return any;
}

const char *psplit_i_request_solver(const psplit_planner *planner, const psplit_i_request *r) {
  if (strcmp(r->solver, "auto") != 0) return r->solver;
  return planner->options.solver ? planner->options.solver : "auto";
}

static psplit_code join_tied(psplit_i_builder *b, const psplit_i_request *r) {
  if (!psplit_i_request_joins_any(r)) return PSPLIT_OK;
  return psplit_i_tied_weights_join(b, r->ties, r->joined);
}

psplit_partition_options psplit_i_request_options(const psplit_planner *planner,
                                                  const psplit_i_request *r, double share) {
  psplit_partition_options options;
  psplit_i_partition_options(planner, share, &options);
  options.solver = psplit_i_request_solver(planner, r);
  if (r->time_limit_s >= 0) {
    options.time_limit_s = r->time_limit_s * share;
    options.limit_by_work = false;
  }
  if (r->quick) options.time_limit_s = 0;
  options.gap_frac = r->gap_frac;
  /* The loss by coarsening is unknown, so an exact proof would say nothing about the model. */
  if (planner->coarsened && options.gap_frac < COARSE_GAP) options.gap_frac = COARSE_GAP;
  return options;
}

psplit_code psplit_i_request_run(psplit_planner *planner, const psplit_i_request *r,
                                 const psplit_problem *problem,
                                 const psplit_partition_options *options, psplit_diag *diag,
                                 uint64_t *io_n_ops, psplit_solution **out_solution) {
  uint64_t n_ops = 0;
  const psplit_code code = psplit_i_partition_solve(problem, options, diag, &n_ops, out_solution);
  if (r->time_limit_s < 0) psplit_i_plan_spend(planner, n_ops);
  if (io_n_ops) *io_n_ops = psplit_i_sat_add_u64(*io_n_ops, n_ops);
  return code;
}

/* Applies the stages of a solution, and assigns free nodes. The builder must be numbered again
 * afterwards. */
static psplit_code give_stages(psplit_i_builder *b, const psplit_solution *solution) {
  psplit_planner *planner = b->planner;
  planner->copies.n = 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (b->group[n] != PSPLIT_NONE) planner->stage[n] = solution->stage[b->group[n]];
  return psplit_i_builder_place_free(b);
}

/* The bottleneck of the planner's stages according to the plan, which has no bound yet. */
static psplit_code planned_ns(psplit_planner *planner, psplit_diag *diag, int64_t *out_ns) {
  psplit_solution *solution = planner->solution;
  planner->solution = NULL;
  const psplit_code code = psplit_i_plan_make(planner, diag);
  planner->solution = solution;
  if (code == PSPLIT_OK) *out_ns = planner->plan->bottleneck_ns;
  return code;
}

psplit_code psplit_i_request_plan_ns(psplit_planner *planner, const psplit_solution *solution,
                                     psplit_diag *diag, int64_t *out_ns) {
  psplit_code code;
  psplit_i_builder b = {.planner = planner, .arena = &planner->scratch, .diag = diag};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  PSPLIT_TRY(give_stages(&b, solution));
  PSPLIT_TRY(planned_ns(planner, diag, out_ns));
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

psplit_code psplit_i_request_try(psplit_planner *planner, const psplit_i_request *r,
                                 const psplit_i_solver_run *run, psplit_diag *diag,
                                 uint64_t *io_n_ops, bool *out_lacks_layouts,
                                 psplit_solution **out_solution) {
  psplit_code code;
  psplit_solution *solution = NULL;
  const bool alone = run->with_layouts && planner->options.overlap;
  const bool best = run->with_layouts && !alone;
  psplit_i_builder b = {.planner = planner,
                        .arena = &planner->scratch,
                        .diag = diag,
                        .any_order = run->any_order,
                        .layouts_alone = alone,
                        .link_model = best ? PSPLIT_I_LINKS_BEST : PSPLIT_I_LINKS_AS_THEY_ARE};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  PSPLIT_TRY(psplit_i_builder_build(&b, run->memory_bytes));
  PSPLIT_TRY(psplit_i_builder_lacks_layouts(&b, out_lacks_layouts));
  PSPLIT_TRY(join_tied(&b, r));
  const double part = run->with_layouts ? 1 - FIRST_SHARE : *out_lacks_layouts ? FIRST_SHARE : 1;
  psplit_partition_options options = psplit_i_request_options(planner, r, part * run->share);
  options.logger = NULL;
  PSPLIT_TRY(psplit_i_request_run(planner, r, &b.problem, &options, diag, io_n_ops, &solution));
  if (run->any_order) PSPLIT_TRY(psplit_i_record(planner, &b.problem, &options, solution, diag));
  *out_solution = solution;
  solution = NULL;
out:
  psplit_solution_destroy(solution);
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

/* Sets the planned value of the better of two solutions, and the better bound, which holds for all
 * plans. */
static void take_better_bound(psplit_solution *to, const psplit_solution *other, int64_t ns) {
  if (other->lower_bound_ns > to->lower_bound_ns) {
    to->lower_bound_ns = other->lower_bound_ns;
    to->bound = other->bound;
  }
  to->objective_ns = ns;
  to->proved_optimal = to->lower_bound_ns == ns;
}

/* Whether the plan of `planner->solution` is slower than in its problem, which ignores layout
 * prices. */
static psplit_code has_layouts(psplit_planner *planner, psplit_diag *diag, bool *out) {
  int64_t ns = 0;
  const psplit_code code = planned_ns(planner, diag, &ns);
  *out = code == PSPLIT_OK && ns > planner->solution->objective_ns;
  return code;
}

/* Solves `b`, a problem with layout prices, and takes its split instead of `planner->solution` if
 * its plan is faster, and its bound if `bounds`. Resets the builder's scratch. */
static psplit_code try_layouts(psplit_i_builder *b, const psplit_i_request *r,
                               const uint64_t *memory_bytes, double share, bool bounds) {
  psplit_code code;
  psplit_planner *planner = b->planner;
  psplit_solution *other = NULL;
  psplit_diag why = {0};
  int64_t first_ns, other_ns;
  PSPLIT_TRY(planned_ns(planner, b->diag, &first_ns));
  PSPLIT_TRY(psplit_i_builder_number(b));
  PSPLIT_TRY(psplit_i_builder_build(b, memory_bytes));
  PSPLIT_TRY(join_tied(b, r));
  const psplit_partition_options options = psplit_i_request_options(planner, r, share);
  code = psplit_i_request_run(planner, r, &b->problem, &options, &why, NULL, &other);
  if (code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED)
    PSPLIT_FAIL(psplit_i_fail_as(b->diag, &why));
  if (code != PSPLIT_OK) {
    code = PSPLIT_OK;
    goto out;
  }
  if (bounds)
    PSPLIT_TRY(psplit_i_record(planner, &b->problem, &options, other, b->diag));
  else
    other->lower_bound_ns = 0;
  PSPLIT_TRY(give_stages(b, other));
  PSPLIT_TRY(planned_ns(planner, b->diag, &other_ns));
  if (other_ns < first_ns) {
    psplit_solution *first = planner->solution;
    planner->solution = other;
    other = first;
  } else {
    psplit_i_builder again = {.planner = planner, .arena = &planner->scratch, .diag = b->diag};
    PSPLIT_TRY(psplit_i_builder_number(&again));
    PSPLIT_TRY(give_stages(&again, planner->solution));
  }
  take_better_bound(planner->solution, other, other_ns < first_ns ? other_ns : first_ns);
out:
  psplit_solution_destroy(other);
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

/* With overlap: solves the problem of computation with layout prices and free tensors. */
static psplit_code try_layouts_alone(psplit_planner *planner, const psplit_i_request *r,
                                     const uint64_t *memory_bytes, double share,
                                     psplit_diag *diag) {
  psplit_i_builder b = {
    .planner = planner, .arena = &planner->scratch, .diag = diag, .layouts_alone = true};
  bool some = false;
  const psplit_code code = has_layouts(planner, diag, &some);
  return code != PSPLIT_OK || !some ? code : try_layouts(&b, r, memory_bytes, share, true);
}

/* With links that differ: solves with the best link of each stage, and with links to its
 * neighbours. */
static psplit_code try_layouts_with_links(psplit_planner *planner, const psplit_i_request *r,
                                          const uint64_t *memory_bytes, double share,
                                          psplit_diag *diag) {
  psplit_code code;
  bool some = false;
  const psplit_i_link_model models[] = {PSPLIT_I_LINKS_BEST, PSPLIT_I_LINKS_BESIDE};
  PSPLIT_TRY(has_layouts(planner, diag, &some));
  for (int m = 0; some && m < 2; m++) {
    psplit_i_builder b = {
      .planner = planner, .arena = &planner->scratch, .diag = diag, .link_model = models[m]};
    PSPLIT_TRY(try_layouts(&b, r, memory_bytes, share, models[m] == PSPLIT_I_LINKS_BEST));
    some = !planner->solution->proved_optimal;
  }
out:
  return code;
}

psplit_code psplit_i_request_solve(psplit_planner *planner, const psplit_i_request *r,
                                   const uint64_t *memory_bytes, double share, psplit_diag *diag) {
  static const double SECOND_SHARE = 0.1;
  psplit_code code;
  psplit_solution *solution = NULL;
  const bool overlap = planner->options.overlap && !r->quick;
  bool lacks_layouts = false;
  psplit_i_builder b = {.planner = planner, .arena = &planner->scratch, .diag = diag};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  planner->copies.n = 0;
  planner->copies_bound_ns = 0;
  planner->copies_tried = false;
  if (b.n_groups == 0) { /* constants only: all of them in the one stage */
    PSPLIT_TRY(psplit_i_builder_place_free(&b));
    goto out;
  }
  PSPLIT_TRY(psplit_i_builder_build(&b, memory_bytes));
  PSPLIT_TRY(join_tied(&b, r));
  if (!r->quick) PSPLIT_TRY(psplit_i_builder_lacks_layouts(&b, &lacks_layouts));
  const psplit_partition_options options =
    psplit_i_request_options(planner, r, overlap ? FIRST_SHARE * share : share);
  PSPLIT_TRY(psplit_i_request_run(planner, r, &b.problem, &options, diag, NULL, &solution));
  if (!r->quick) PSPLIT_TRY(psplit_i_record(planner, &b.problem, &options, solution, diag));
  psplit_solution_destroy(planner->solution);
  planner->solution = solution;
  solution = NULL;
  PSPLIT_TRY(give_stages(&b, planner->solution));
  psplit_i_arena_reset(&planner->scratch);
  if (overlap)
    PSPLIT_TRY(try_layouts_alone(planner, r, memory_bytes, (1 - FIRST_SHARE) * share, diag));
  else if (lacks_layouts)
    PSPLIT_TRY(try_layouts_with_links(planner, r, memory_bytes, SECOND_SHARE * share, diag));
out:
  psplit_solution_destroy(solution);
  psplit_i_arena_reset(&planner->scratch);
  return code;
}
