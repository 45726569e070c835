/* Contiguous throughput: search and bounds in turn until bound and value meet.
 *
 *   1. Lossless reductions.
 *   2. A first split, by local search over orders; on large graphs by multilevel search.
 *   3. Reductions again, by the limit rule with the value of that split.
 *   4. The weight-axis bound, and the windows that the exact program reads.
 *   5. The exact program, for few steps, behind a few orders; what it does not decide gets the
 *      whole search, and 3 and 4 again.
 *   6. The exact program with a limit just below the best value: NO proves that value, YES improves
 *      it. When it runs out of steps: stages by price, recombination, more search, annealing, then
 *      limits between bound and value.
 *
 * Budgets are counted in steps, so the answer does not depend on the computer unless the time limit
 * strikes first. Steps 2 and 4 to 6 are in portfolio.c. docs/partitioning/method.md states the
 * theorems. */
#include <math.h>

#include "baselines.h"
#include "budget.h"
#include "check_merged.h"
#include "contiguous.h"
#include "feasible.h"
#include "fill_stages.h"
#include "messages.h"
#include "pair_links.h"
#include "portfolio.h"
#include "problem.h"
#include "result.h"
#include "solver_state.h"
#include "tie_breaking.h"

/* What the run that allows no empty stages takes over from the one that allowed them. */
typedef struct carry_over {
  int64_t value;
  uint64_t spent;
  bool anneals_start; /* its split as well as the best one */
} carry_over;

/* One run of steps 1 to 6. With `from`, what an earlier run left: it starts from that and makes no
 * reductions, which may empty a stage. `strict`, if any, is the request that allows no empty
 * stages: when the first split cannot be made to meet it, the run ends there, and *out_stopped says
 * so. */
static psplit_code run(const psplit_i_solver_request *request,
                       const psplit_i_solver_request *strict, const carry_over *from,
                       psplit_i_result *result, carry_over *out_left, bool *out_stopped) {
  psplit_i_solver_state a = {.request = request, .solve = psplit_i_contiguous, .result = result};
  psplit_code code;
  *out_stopped = false;
  result->value = PSPLIT_I_INF;
  if (!from || from->value >= PSPLIT_I_INF) result->solver = PSPLIT_I_SOLVER_SEARCH;
  if (!from) {
    result->bound = 0;
    result->bound_by = PSPLIT_I_N_METHODS;
  }
  PSPLIT_TRY(psplit_i_state_init(&a));
  uint32_t *parent = psplit_i_arena_array(&a.arena, request->problem->n_nodes, sizeof *parent);
  PSPLIT_TRY(parent ? PSPLIT_OK : psplit_i_nomem(request->diag));
  for (uint32_t v = 0; v < request->problem->n_nodes; v++) parent[v] = v;
  if (from) {
    a.spent = from->spent;
    a.anneals_start = from->anneals_start;
    if (from->value < PSPLIT_I_INF)
      psplit_i_result_give(result, &a.instance, &a.automaton, &a.best, a.scratch);
    result->value = a.best.value;
  }
  /* Over links between pairs: the rule that may empty a stage is out where none may be empty. */
  if (!from || psplit_i_pairs_count(&a.instance)) {
    PSPLIT_TRY(psplit_i_state_reduce(&a, PSPLIT_I_INF, false, parent));
  }
  PSPLIT_TRY(psplit_i_state_run_bounds(&a, PSPLIT_I_AT_ONCE));
  PSPLIT_TRY(psplit_i_portfolio_first(&a));
  if (strict && !psplit_i_all_stages_used(request, result)) {
    int64_t value;
    PSPLIT_TRY(psplit_i_fill_stages(strict, a.best.value, false, result, &value));
    *out_stopped = value >= PSPLIT_I_INF;
  }
  if (!*out_stopped) {
    const bool late = a.instance.n > PSPLIT_I_LARGE && psplit_i_expired(request->budget);
    if ((!from || psplit_i_pairs_count(&a.instance)) && !late)
      PSPLIT_TRY(psplit_i_state_reduce(&a, a.best.value, false, parent));
    PSPLIT_TRY(psplit_i_portfolio_close(&a, from ? NULL : parent));
    /* Smaller problems have ties broken from their own clusters: tie_breaking.c. */
    if (request->problem->n_nodes > PSPLIT_I_TIE_NODES)
      PSPLIT_TRY(psplit_i_ties_descend(
        &a, strict || a.automaton.all_used, 1,
        2 * (uint64_t)(a.instance.n + a.instance.net_off[a.instance.n_nets])));
  }
out:
  if (code == PSPLIT_INFEASIBLE && request->diag->code == PSPLIT_OK)
    code = psplit_i_state_explain(&a, !strict && !request->options->require_nonempty);
  else if (code == PSPLIT_UNSUPPORTED && request->diag->code == PSPLIT_OK)
    code = psplit_i_fail_about(
      request->diag, PSPLIT_INFEASIBLE, PSPLIT_I_HELPS(TIME_LIMIT),
      "no split was found that satisfies memory limits and pins (infeasibility was not proved)");
  if (code == PSPLIT_OK) result->unproved = psplit_i_portfolio_why_open(&a);
  *out_left = (carry_over){.value = a.best.value, .spent = a.spent};
  psplit_i_state_fini(&a);
  return code;
}

static psplit_code solve(const psplit_i_solver_request *request, psplit_i_result *out_result) {
  carry_over left;
  bool stopped;
  if (!request->options->require_nonempty)
    return run(request, NULL, NULL, out_result, &left, &stopped);
  /* Relaxation: without the demand the optimum is no larger, and reductions, which may empty a
   * stage, are allowed. Where that answer meets the demand, or can be made to at no cost, it is
   * proved for both. Empty stages rarely help, so that is the usual case. */
  psplit_partition_options relaxed = *request->options;
  relaxed.require_nonempty = false;
  psplit_i_solver_request easier = *request;
  easier.options = &relaxed;
  psplit_code code = run(&easier, request, NULL, out_result, &left, &stopped);
  if (code != PSPLIT_OK || (!stopped && psplit_i_all_stages_used(request, out_result))) return code;
  int64_t value;
  code = psplit_i_fill_stages(request, left.value, true, out_result, &value);
  if (code != PSPLIT_OK || value < PSPLIT_I_INF) return code;
  code = psplit_i_fill_stages(request, 2 * left.value, true, out_result, &left.value);
  if (code != PSPLIT_OK) return code;
  return run(request, NULL, &left, out_result, &left, &stopped);
}

enum { WITHOUT_LIMIT_S = 30 }; /* for the relaxation, where nothing limits the rest */

/* Solves the relaxation of `problem`, the request's own with another trunk perhaps, to the least
 * links if they matter, for one part in `share` of what is left of the budget; less where it does
 * not get to a bound that is known. */
static psplit_code solve_relaxed(const psplit_i_solver_request *request,
                                 const psplit_problem *problem, bool links_matter, uint32_t share,
                                 int64_t known, psplit_i_result *out_result) {
  psplit_problem least = *problem;
  psplit_code code = PSPLIT_OK;
  if (least.message_ns) code = psplit_i_messages_relax(problem, request->arena, &least);
  const psplit_problem alike = least;
  if (code == PSPLIT_OK && links_matter)
    code = psplit_i_pairs_relax(&alike, request->arena, &least);
  if (code != PSPLIT_OK) return psplit_i_nomem(request->diag);
  psplit_partition_options options = *request->options;
  if (request->budget->end >= 0) options.time_limit_s = request->budget->end - psplit_i_now();
  options.time_limit_s = options.time_limit_s < 0 && request->budget->end < 0
                           ? WITHOUT_LIMIT_S
                           : fmax(options.time_limit_s / share, 0);
  psplit_i_budget part = psplit_i_budget_inner(request->budget, &options);
  if (part.most > psplit_i_budget_left(request->budget) / share)
    part.most = psplit_i_budget_left(request->budget) / share;
  psplit_i_solver_request relaxed = *request;
  relaxed.problem = &least;
  relaxed.options = &options;
  relaxed.budget = &part;
  relaxed.is_start = true;
  relaxed.known = known;
  code = solve(&relaxed, out_result);
  psplit_i_spend(request->budget, part.spent);
  return code;
}

/* The nodes of the slowest stage in truth, and whether it is above the bound. Errors: NOMEM. */
static psplit_code slowest_stage(const psplit_i_solver_request *request,
                                 const psplit_i_result *result, bool *out_inside, bool *out_open) {
  psplit_solution *truth;
  psplit_diag ignored = {0};
  uint32_t slowest = 0;
  *out_open = false;
  const psplit_code code = psplit_i_check_merged(request, result->stage, result->device,
                                                 result->replicas, &ignored, &truth);
  if (code == PSPLIT_NOMEM) return psplit_i_nomem(request->diag);
  if (code != PSPLIT_OK) return PSPLIT_OK; /* stages that are empty, and may not be */
  for (uint32_t s = 1; s < truth->n_stages; s++)
    if (truth->stages[s].load_ns > truth->stages[slowest].load_ns) slowest = s;
  for (uint32_t v = 0; v < truth->n_nodes; v++) out_inside[v] = truth->stage[v] == slowest;
  *out_open = truth->objective_ns > result->bound;
  psplit_solution_destroy(truth);
  return PSPLIT_OK;
}

/* Another trunk, through the slowest stage, may tell more of it. */
static psplit_code ask_other_trunk(const psplit_i_solver_request *request, bool links_matter,
                                   psplit_i_result *io_result) {
  enum { SHARE = 4 };
  psplit_code code;
  psplit_problem other = *request->problem;
  psplit_i_result result;
  bool open, *inside = PSPLIT_NEW(request->arena, bool, other.n_nodes);
  PSPLIT_TRY(inside ? PSPLIT_OK : psplit_i_nomem(request->diag));
  PSPLIT_TRY(slowest_stage(request, io_result, inside, &open));
  if (!open) goto out;
  if (psplit_i_messages_mark(request->arena, inside, &other) != PSPLIT_OK)
    PSPLIT_FAIL(psplit_i_nomem(request->diag));
  PSPLIT_TRY(psplit_i_result_init(&result, request));
  psplit_diag ignored = {0}; /* that too little time finds no split says nothing */
  psplit_i_solver_request quiet = *request;
  quiet.diag = &ignored;
  code = solve_relaxed(&quiet, &other, links_matter, SHARE, 0, &result);
  if (code == PSPLIT_NOMEM) PSPLIT_FAIL(psplit_i_nomem(request->diag));
  if (code == PSPLIT_OK) psplit_i_result_raise(io_result, result.bound, result.bound_by);
  code = PSPLIT_OK;
out:
  return code;
}

/* The bounds of the problem itself that ask for no split. */
static psplit_code bound_at_once(const psplit_i_solver_request *request, int64_t *out_bound) {
  psplit_diag ignored = {0};
  psplit_i_result result;
  psplit_i_solver_request quiet = *request;
  quiet.diag = &ignored;
  psplit_i_solver_state a = {.request = &quiet, .result = &result};
  *out_bound = 0;
  psplit_code code = psplit_i_result_init(&result, request);
  if (code != PSPLIT_OK) return code;
  code = psplit_i_state_init(&a);
  if (code == PSPLIT_OK) code = psplit_i_state_run_bounds(&a, PSPLIT_I_AT_ONCE);
  if (code == PSPLIT_OK) *out_bound = result.bound;
  psplit_i_state_fini(&a);
  return code == PSPLIT_NOMEM ? psplit_i_nomem(request->diag) : PSPLIT_OK;
}

/* Over links between pairs of devices the relaxation to the least links comes first, with messages
 * that to the trunk, for half the budget: all reductions hold there, and the exact program decides.
 * Its bound is a bound, and its split a start. */
static psplit_code solve_pairs(const psplit_i_solver_request *request, bool links_matter,
                               psplit_i_result *out_result) {
  carry_over left = {0};
  bool stopped;
  int64_t at_once = 0;
  psplit_code code = PSPLIT_OK;
  if (request->problem->message_ns) code = bound_at_once(request, &at_once);
  if (code == PSPLIT_OK)
    code = solve_relaxed(request, request->problem, links_matter, 2, at_once, out_result);
  /* Where a trunk tells less than all devices together, another one hardly tells more: annealing
   * has that time. */
  left.anneals_start = at_once > out_result->bound;
  if (code == PSPLIT_OK && request->problem->message_ns && !left.anneals_start)
    code = ask_other_trunk(request, links_matter, out_result);
  if (code != PSPLIT_OK) return code;
  return run(request, NULL, &left, out_result, &left, &stopped);
}

psplit_code psplit_i_contiguous(const psplit_i_solver_request *request,
                                psplit_i_result *out_result) {
  const psplit_i_method asked = psplit_i_solver_asked(request->options->solver);
  bool pairs;
  if (psplit_i_is_baseline(asked)) return psplit_i_baseline(request, asked, out_result);
  psplit_code code = psplit_i_pairs_matter(request->problem, request->arena, &pairs);
  if (code != PSPLIT_OK) return psplit_i_nomem(request->diag);
  const bool by_pair = request->problem->message_ns && request->problem->comm == PSPLIT_COMM_P2P;
  code = pairs || by_pair ? solve_pairs(request, pairs, out_result) : solve(request, out_result);
  if (code != PSPLIT_OK || request->relaxed || !psplit_i_portfolio_proves(asked)) return code;
  return psplit_i_ties_break(request, out_result);
}
