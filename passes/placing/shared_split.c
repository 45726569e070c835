/* Splits through shared memory: each stage sends its tensors in at most one message, and receives
 * them in one. Solved as a problem of its own, and evaluated with the routes that are best for
 * it. */
#include "shared_split.h"

#include <string.h>

#include "any_route.h"
#include "builder.h"
#include "message_routes.h"
#include "methods.h"
#include "order_by_memory.h"
#include "plan_budget.h"
#include "record.h"

enum {
  LARGE = 512,       /* supernodes: more are not solved exactly soon */
  MOST_FOLLOWED = 2, /* splits that follow routes */
};

/* Shares of the time limit of the split: for shared memory, where the exact program is fast or
 * relays matter more (DECIDED), and where it is a search (SEARCHED); for all routes; and for shared
 * memory again if it is still open. */
static const double DECIDED = 0.15, SEARCHED = 0.3, ANY_WAY = 0.3, AGAIN = 0.45;
/* Shares for direct messages, which have a bound by then, after each of the above. */
static const double BEHIND_ONE = 0.5, BEHIND_TWO = 0.4, BEHIND_ALL = 0.1;
/* Relative gap above which the exact program with all routes would not get far. */
static const double WIDE = 0.01;
/* Share of the time for splits that follow the routes of others, and the gap at which none are
 * tried. */
static const double FOLLOWED = 0.05, NEAR = 0.001;

void psplit_i_shared_split_fini(psplit_i_shared_split *shared) {
  psplit_solution_destroy(shared->solution);
  *shared = (psplit_i_shared_split){0};
}

/* Evaluates splits of supernodes one after the other. */
typedef struct trial {
  psplit_planner *planner;
  bool reorder; /* other orders of devices are permitted, since the split is to be the plan */
  psplit_i_shared_split *best;
  const uint32_t *group;  /* [n_nodes] */
  size_t n_bare;          /* nodes of the bare problem */
  uint32_t *stage, *next; /* of the current split */
} trial;

/* A psplit_i_measure: the value with the best routes that are found, if stages fit. Keeps the best
 * split so far. */
static psplit_code measure_split(void *with, const uint32_t *group_stage, psplit_diag *diag,
                                 int64_t *out_ns) {
  trial *t = with;
  psplit_code code;
  psplit_i_route_cost found;
  bool fits;
  uint32_t *order;
  psplit_planner *planner = t->planner;
  psplit_i_shared_split *best = t->best;
  const size_t n_nodes = planner->graph->n_nodes, n = planner->options.n_stages;
  for (size_t v = 0; v < n_nodes; v++)
    t->stage[v] = t->group[v] == PSPLIT_NONE ? 0 : group_stage[t->group[v]];
  PSPLIT_TRY(psplit_i_routes_adopt(planner, t->stage, NULL, diag));
  const int64_t direct_ns = planner->plan->bottleneck_ns;
  PSPLIT_TRY(psplit_i_routes_find(planner, diag, t->next, &found));
  PSPLIT_TRY(psplit_i_routes_adopt(planner, t->stage, t->next, diag));
  PSPLIT_TRY(psplit_i_fit_by_memory(planner, t->reorder, &fits, &order, diag));
  *out_ns = fits || order ? found.slowest_ns : INT64_MAX;
  psplit_i_pass_nothing_on(planner);
  if (*out_ns == INT64_MAX ||
      !psplit_i_route_cost_is_less(found, (psplit_i_route_cost){best->slowest_ns, best->sum_ns}))
    goto out;
  memcpy(best->stage, t->stage, n_nodes * sizeof *best->stage);
  memcpy(best->group_stage, group_stage, t->n_bare * sizeof *best->group_stage);
  memcpy(best->next, t->next, n * n * sizeof *best->next);
  best->slowest_ns = found.slowest_ns;
  best->sum_ns = found.sum_ns;
  best->direct_ns = direct_ns;
out:
  return code;
}

bool psplit_i_shared_split_is_within(const psplit_i_shared_split *shared, double open) {
  return (double)shared->slowest_ns <= (double)shared->solution->lower_bound_ns * (1 + open);
}

static void raise_bound(trial *t, const psplit_partition_options *options, int64_t bound_ns,
                        psplit_i_method by) {
  psplit_solution *solution = t->best->solution;
  if (bound_ns <= solution->lower_bound_ns) return;
  solution->lower_bound_ns = bound_ns;
  solution->bound = psplit_i_method_name(by);
  if (t->best->slowest_ns < INT64_MAX)
    psplit_i_record_any_route(t->planner, options, bound_ns, t->best->group_stage, t->best->next);
}

/* In shared memory a message reaches all receivers. Relays make more messages, which raises the
 * bound. */
static psplit_code raise_at_once(trial *t, const psplit_problem *problem, psplit_diag *diag) {
  psplit_code code;
  psplit_partition_options options;
  int64_t bound_ns = 0;
  psplit_i_partition_options(t->planner, 1, &options);
  PSPLIT_TRY(psplit_i_bound_any_route_at_once(problem, &options, &bound_ns, diag));
  raise_bound(t, &options, bound_ns, PSPLIT_I_BOUND_TOTAL);
out:
  return code;
}

/* Closes the gap between the bound by shared memory and the value of its split, with a program that
 * chooses which stages relay tensors. */
static psplit_code close_in(trial *t, const psplit_problem *problem, psplit_diag *diag) {
  psplit_code code;
  psplit_partition_options options;
  psplit_solution *solution = t->best->solution;
  psplit_i_optimum_range range = {solution->lower_bound_ns, t->best->slowest_ns};
  if (range.value_ns == INT64_MAX || range.value_ns <= range.bound_ns) return PSPLIT_OK;
  if (!solution->proved_optimal && t->best->n_groups > LARGE)
    return PSPLIT_OK; /* the program would not get far */
  psplit_i_partition_options(t->planner, ANY_WAY, &options);
  options.logger = NULL;
  uint64_t n_ops = 0;
  code = psplit_i_bound_any_route(problem, &options, measure_split, t, &range, &n_ops, diag);
  psplit_i_plan_spend(t->planner, n_ops);
  if (code == PSPLIT_OK) raise_bound(t, &options, range.bound_ns, PSPLIT_I_SOLVER_EXACT);
  return code;
}

/* Solves for the routes of the best split, as if the other links were missing. Then it is known
 * which stages relay, so these may compute less. Other routes may be best for the new split, and so
 * on. */
static psplit_code follow_routes(trial *t, const psplit_problem *problem, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_partition_options options;
  psplit_i_shared_split *best = t->best;
  psplit_problem linked = *problem;
  psplit_solution *found = NULL;
  int64_t before_ns = INT64_MAX, ns;
  psplit_i_partition_options(t->planner, FOLLOWED / MOST_FOLLOWED, &options);
  options.logger = NULL;
  options.solver = psplit_i_method_name(PSPLIT_I_SOLVER_ANNEAL);
  linked.comm = PSPLIT_COMM_P2P;
  linked.next_hop = best->next;
  for (uint32_t i = 0; i < MOST_FOLLOWED && best->slowest_ns < before_ns; i++) {
    psplit_diag why = {0};
    if (psplit_i_shared_split_is_within(best, NEAR)) break;
    before_ns = best->slowest_ns;
    code = psplit_i_plan_solve(t->planner, &linked, &options, &why, &found);
    options.seed++;
    if (code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED) PSPLIT_FAIL(psplit_i_fail_as(diag, &why));
    code = PSPLIT_OK;
    if (!found) break;
    PSPLIT_TRY(measure_split(t, found->stage, diag, &ns));
    psplit_solution_destroy(found);
    found = NULL;
  }
out:
  psplit_solution_destroy(found);
  return code;
}

static psplit_code make_room(psplit_planner *planner, psplit_i_shared_split *io, trial *out,
                             psplit_diag *diag) {
  const size_t n = planner->graph->n_nodes;
  io->stage = psplit_i_arena_array(&planner->arena, n, sizeof *io->stage);
  io->group_stage = psplit_i_arena_array(&planner->arena, out->n_bare, sizeof *io->group_stage);
  io->next = psplit_i_routes_new(planner);
  io->slowest_ns = io->sum_ns = io->direct_ns = INT64_MAX;
  out->stage = psplit_i_arena_array(&planner->arena, n, sizeof *out->stage);
  out->next = psplit_i_routes_new(planner);
  return planner->arena.failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}

/* Solves in a share of the time. Of two answers, the larger bound and the better split are kept. */
static psplit_code ask(trial *t, const psplit_problem *problem, double share, bool joined,
                       psplit_diag *diag) {
  psplit_code code;
  psplit_partition_options options;
  psplit_diag why = {0};
  psplit_planner *planner = t->planner;
  psplit_solution *found = NULL, **best = &t->best->solution;
  int64_t ns;
  psplit_i_partition_options(planner, share, &options);
  options.logger = NULL;
  code = psplit_i_plan_solve(planner, problem, &options, &why, &found);
  if (code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED) PSPLIT_FAIL(psplit_i_fail_as(diag, &why));
  code = PSPLIT_OK;
  if (!found) goto out;
  if (!joined) PSPLIT_TRY(psplit_i_record(planner, problem, &options, found, diag));
  PSPLIT_TRY(measure_split(t, found->stage, diag, &ns));
  if (*best && (*best)->lower_bound_ns > found->lower_bound_ns) goto out;
  psplit_solution_destroy(*best);
  *best = found;
  found = NULL;
out:
  psplit_solution_destroy(found);
  return code;
}

psplit_code psplit_i_shared_split_find(psplit_planner *planner, const psplit_i_tied_weights *ties,
                                       const uint8_t *joined, psplit_i_shared_split *io,
                                       psplit_diag *diag) {
  psplit_code code;
  psplit_i_arena arena; /* since plans are made while the problem is in use */
  psplit_i_builder b = {.planner = planner, .arena = &arena, .diag = diag};
  trial t = {.planner = planner, .reorder = !joined, .best = io};
  psplit_i_shared_split_fini(io);
  if (!joined) planner->any_route_bound_ns = 0;
  psplit_i_arena_init(&arena, 0);
  io->n_groups = planner->grouping.n_groups;
  PSPLIT_TRY(psplit_i_builder_number(&b));
  PSPLIT_TRY(psplit_i_builder_unlimited(&b));
  if (b.problem.n_link_classes || !b.problem.message_ns) goto out;
  b.problem.comm = PSPLIT_COMM_SHARED;
  if (joined) PSPLIT_TRY(psplit_i_tied_weights_join(&b, ties, joined));
  t.group = b.group;
  t.n_bare = b.problem.n_nodes;
  PSPLIT_TRY(make_room(planner, io, &t, diag));
  const bool large = b.n_groups > LARGE;
  PSPLIT_TRY(ask(&t, &b.problem, large ? SEARCHED : DECIDED, joined, diag));
  if (!io->solution || joined) goto out;
  io->left_frac = BEHIND_ONE;
  bool close = true;
  if (!large && !io->solution->proved_optimal && io->slowest_ns < INT64_MAX &&
      !psplit_i_shared_split_is_within(io, WIDE)) {
    PSPLIT_TRY(ask(&t, &b.problem, AGAIN, false, diag));
    close = io->solution->proved_optimal;
    io->left_frac = close ? BEHIND_ALL : BEHIND_TWO;
  }
  if (!large && io->slowest_ns < INT64_MAX) PSPLIT_TRY(follow_routes(&t, &b.problem, diag));
  PSPLIT_TRY(raise_at_once(&t, &b.problem, diag));
  if (close) PSPLIT_TRY(close_in(&t, &b.problem, diag));
out:
  if (code == PSPLIT_OK && io->solution && !joined)
    planner->any_route_bound_ns = io->solution->lower_bound_ns;
  psplit_i_arena_fini(&arena);
  psplit_i_arena_reset(&planner->scratch);
  return code;
}
