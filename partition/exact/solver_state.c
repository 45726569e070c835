/* Operations on a solver state: adopt a split, raise the bound, and run a bound or solver within
 * the budget. Runs of the exact program are in state_exact.c. */
#include "solver_state.h"
#include "assignment.h"
#include "automaton.h"
#include "boundary_annealing.h"
#include "branch_and_bound.h"
#include "budget.h"
#include "instance.h"
#include "label_annealing.h"
#include "local_search.h"
#include "nested.h"
#include "problem.h"
#include "recombine.h"
#include "reductions.h"
#include "result.h"
#include "stages_by_price.h"
#include "weight_axis.h"

enum {
  ANNEAL_STEPS = 500000,
  ANNEAL_TIMES = 3, /* times as many steps where no branch and bound needs the time */
  /* Of a small limit: the first run of the exact program and one call of the search take no more
   * than one of so many parts, or nothing would be left for annealing and the later bounds. */
  FIRST_PART = 8,
  SEARCH_PART = 4,
  BRIEF_STEPS = 500, /* of a brief annealing, for each cluster */
  BRUTE_CLUSTERS = 40,
  BRUTE_STEPS = 1000000,
  WIDE_GAP = 50,       /* a wide gap is more than one of so many parts of the value */
  FEW_STAGES = 8,      /* up to here, recombination has found worse than annealing */
  RECOMBINED_PART = 5, /* recombination begins one of so many parts above the bound */
  /* Rates between budgets: steps of the exact program that take as long as ANNEAL_STEPS, and
   * clusters added to load trackers in the time of one step. */
  STEPS_PER_ANNEAL = 3750000,
  ADDED_PER_STEP = 32,
  WINDOW_PART = 2, /* windows, where the gap is wide, have one of so many parts of the steps each */
  /* Searches anew, each from orders of its own: */
  FEW_ANEW = 4,    /* of them, once one has found another split */
  ROUNDS_ANEW = 4, /* rounds of each */
  MOST_ANEW = 40,  /* orders of each, at most */
  ANEW_TIMES = 3,  /* what they may take together: times what annealing took of the budget */
  START_TIMES = 2  /* times that a start is annealed, with other chains each time */
};

static psplit_i_bound_query query_of(psplit_i_solver_state *a) {
  return (psplit_i_bound_query){.request = a->request,
                                .instance = &a->instance,
                                .automaton = &a->automaton,
                                .variant = PSPLIT_I_STAGES,
                                .value = a->best.value,
                                .axis = &a->axis};
}

psplit_code psplit_i_state_run_bound(psplit_i_solver_state *a, psplit_i_method bound) {
  const psplit_i_bound_query query = query_of(a);
  if (psplit_i_bound_run(bound, &query, a->result) != PSPLIT_OK)
    return psplit_i_nomem(a->request->diag);
  return PSPLIT_OK;
}

psplit_code psplit_i_state_run_bounds(psplit_i_solver_state *a, psplit_i_bound_time when) {
  const psplit_i_bound_query query = query_of(a);
  for (uint32_t i = 0; i < PSPLIT_I_N_METHODS; i++) {
    if (!psplit_i_bound_is_due(i, &query, when)) continue;
    const psplit_code code = psplit_i_state_run_bound(a, i);
    if (code != PSPLIT_OK || psplit_i_state_done(a)) return code;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_state_run_late_bounds(psplit_i_solver_state *a) {
  if (a->late) return PSPLIT_OK;
  const int64_t before = a->result->bound;
  const psplit_code code = psplit_i_state_run_bounds(a, PSPLIT_I_AFTER_SEARCH);
  a->late = true;
  a->by_apart = a->result->bound > before && a->result->bound_by == PSPLIT_I_BOUND_APART;
  if (code != PSPLIT_OK || psplit_i_state_done(a)) return code;
  return psplit_i_state_run_bounds(a, PSPLIT_I_LATE);
}

void psplit_i_state_charge(psplit_i_solver_state *a, uint64_t n_steps) { a->spent += n_steps; }

bool psplit_i_state_runs_all(const psplit_i_solver_state *a) {
  return a->asked == PSPLIT_I_SOLVER_AUTO || a->asked == PSPLIT_I_SOLVER_EXACT;
}

bool psplit_i_state_done(const psplit_i_solver_state *a) {
  if (a->best.value >= PSPLIT_I_INF) return psplit_i_expired(a->request->budget);
  return a->result->bound >= a->best.value || a->best.value <= a->request->enough ||
         (double)(a->best.value - a->result->bound) <=
           a->request->options->gap_frac * (double)a->best.value ||
         psplit_i_expired(a->request->budget);
}

void psplit_i_state_take(psplit_i_solver_state *a, const psplit_i_assignment *assignment,
                         psplit_i_method by) {
  if (!psplit_i_assignment_better(assignment, &a->best, &a->instance)) return;
  psplit_i_result_improve(a->result, assignment->value, by);
  psplit_i_assignment_copy(&a->best, assignment, &a->instance);
  psplit_i_result_take(a->result, &a->instance, assignment);
}

static psplit_code bind_instance(psplit_i_solver_state *a) {
  const psplit_i_solver_request *request = a->request;
  psplit_i_automaton_fini(&a->automaton);
  psplit_i_nested_destroy(a->nested);
  a->nested = NULL;
  psplit_i_downsets_fini(&a->set);
  psplit_i_downsets_init(&a->set, &a->instance);
  a->equal = (psplit_i_equal_branches){0};
  const psplit_code code =
    psplit_i_automaton_init(&a->automaton, &a->instance, request->options, request->diag);
  if (code != PSPLIT_OK) return code;
  a->scratch = PSPLIT_NEW(&a->arena, int64_t, (size_t)a->instance.n_stages * 5);
  if (!a->scratch || psplit_i_assignment_init(&a->best, &a->instance, &a->arena) != PSPLIT_OK ||
      psplit_i_assignment_init(&a->trial, &a->instance, &a->arena) != PSPLIT_OK ||
      psplit_i_assignment_init(&a->before_nested, &a->instance, &a->arena) != PSPLIT_OK)
    return psplit_i_nomem(request->diag);
  return PSPLIT_OK;
}

psplit_code psplit_i_state_reduce(psplit_i_solver_state *a, int64_t limit, bool keep_first,
                                  uint32_t *parent) {
  const uint32_t before = a->instance.n;
  const bool have = a->best.value < PSPLIT_I_INF;
  const psplit_i_reduction_request request = {.automaton = &a->automaton,
                                              .limit = limit,
                                              .keep_first = keep_first,
                                              .stage = have ? a->result->stage : NULL};
  psplit_code code =
    psplit_i_reduce_as(&a->instance, &request, parent, a->request->budget, a->request->diag);
  if (code != PSPLIT_OK || a->instance.n == before) return code;
  code = bind_instance(a);
  if (code == PSPLIT_OK && have)
    psplit_i_result_give(a->result, &a->instance, &a->automaton, &a->best, a->scratch);
  return code;
}

/* Clusters added to load trackers when one order is divided. */
static uint64_t work_of_order(const psplit_i_instance *instance) {
  const uint64_t pins = instance->net_off[instance->n_nets] + instance->n;
  return pins * (instance->n / instance->n_stages + 1);
}

uint32_t psplit_i_state_affords(const psplit_i_solver_state *a, uint64_t work, uint32_t n_rounds,
                                uint32_t most) {
  const uint64_t one = work_of_order(&a->instance);
  if (work / ADDED_PER_STEP > a->most / SEARCH_PART) work = a->most / SEARCH_PART * ADDED_PER_STEP;
  const uint64_t steps = work / one / 8 / n_rounds;
  return steps < 1 ? 1 : steps < most ? (uint32_t)steps : most;
}

static uint64_t seed_of(const psplit_i_solver_state *a, uint64_t salt) {
  return a->request->options->seed + salt * 0x9e37;
}

/* From a->trial on. */
static psplit_code search_from_trial(psplit_i_solver_state *a, uint32_t n_rounds, uint32_t n_steps,
                                     uint64_t seed) {
  uint64_t n_orders = 0;
  const psplit_i_local_search_options options = {
    .seed = seed,
    .n_threads = a->request->options->n_threads,
    .n_rounds = n_rounds,
    .n_steps = n_steps,
    .target = a->result->bound,
    .budget = a->request->budget,
    .out_orders = &n_orders,
  };
  const psplit_code code = psplit_i_local_search(&a->instance, &a->automaton, &options, &a->trial);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->request->diag);
  psplit_i_state_charge(a, n_orders * work_of_order(&a->instance) / ADDED_PER_STEP);
  if (a->trial.value < PSPLIT_I_INF) psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_SEARCH);
  return PSPLIT_OK;
}

psplit_code psplit_i_state_search(psplit_i_solver_state *a, uint32_t n_rounds, uint32_t n_steps,
                                  uint64_t salt) {
  psplit_i_assignment_copy(&a->trial, &a->best, &a->instance);
  return search_from_trial(a, n_rounds, n_steps, seed_of(a, salt));
}

static void forget_trial(psplit_i_solver_state *a) {
  a->trial.value = a->trial.comm = PSPLIT_I_INF;
}

psplit_code psplit_i_state_search_anew(psplit_i_solver_state *a, uint32_t n_steps) {
  forget_trial(a);
  return search_from_trial(a, 1, n_steps, seed_of(a, 0));
}

/* Whether splits may be put together from downsets. */
static bool may_recombine(const psplit_i_solver_state *a) {
  return a->instance.n <= PSPLIT_I_RECOMBINED && a->instance.n_stages > FEW_STAGES &&
         a->instance.all_forward &&
         psplit_i_takes(PSPLIT_I_SOLVER_RECOMBINATION, a->automaton.features);
}

/* Where splits are put together that takes the time that windows would, and finds more; so does the
 * exact program where it gets far. */
static bool may_anneal_windows(const psplit_i_solver_state *a) {
  return !a->gets_far && !may_recombine(a) &&
         a->trial.value - a->result->bound > a->trial.value / WIDE_GAP;
}

/* Whether another start is annealed, besides what search found; the time is branch and bound's
 * where that decides. */
static bool may_anneal_another(const psplit_i_solver_state *a) {
  return !a->request->relaxed && a->instance.n > BRUTE_CLUSTERS &&
         (a->result->solver == PSPLIT_I_SOLVER_SEARCH || a->melted) && may_anneal_windows(a);
}

/* Searches anew for no more than `most` of the budget, until one finds a better split, or a few
 * have found another one. *out_other: that, with no value where all came to the best one's. They do
 * not hang on the caller's seed, so that seeds differ less. */
static psplit_code search_another(psplit_i_solver_state *a, uint64_t salt, uint64_t most,
                                  psplit_i_assignment *out_other) {
  const int64_t before = a->best.value;
  const uint64_t spent = a->request->budget->spent;
  out_other->value = out_other->comm = PSPLIT_I_INF;
  for (uint64_t k = 1; a->best.value == before && !psplit_i_state_done(a) &&
                       a->request->budget->spent - spent < most &&
                       (k <= FEW_ANEW || out_other->value >= PSPLIT_I_INF);
       k++) {
    const uint32_t n_steps =
      psplit_i_state_affords(a, PSPLIT_I_SEARCH_WORK, ROUNDS_ANEW, MOST_ANEW);
    forget_trial(a);
    const psplit_code code =
      search_from_trial(a, ROUNDS_ANEW, n_steps, psplit_i_splitmix64(salt, k));
    if (code != PSPLIT_OK) return code;
    if (a->trial.value != before && a->trial.value < out_other->value)
      psplit_i_assignment_copy(out_other, &a->trial, &a->instance);
  }
  return PSPLIT_OK;
}

/* Another start is annealed; a->trial is what comes of it where that is better. */
static psplit_code anneal_from(psplit_i_solver_state *a, uint64_t salt, uint64_t n_steps,
                               psplit_i_assignment *io_start) {
  const psplit_code code = psplit_i_anneal_boundaries(
    &a->instance, &a->automaton, a->request,
    (psplit_i_boundary_run){salt, n_steps, a->anneals_high}, NULL, io_start);
  if (code == PSPLIT_OK && io_start->value < a->trial.value)
    psplit_i_assignment_copy(&a->trial, io_start, &a->instance);
  return code;
}

/* What chains end with hangs on where they start, and a split that most orders lead to is not the
 * best for that: another one is annealed. a->trial is the best of all. */
static psplit_code anneal_another(psplit_i_solver_state *a, uint64_t salt, uint64_t n_steps,
                                  uint64_t most) {
  psplit_code code;
  psplit_i_assignment annealed, other;
  PSPLIT_TRY(psplit_i_assignment_init(&annealed, &a->instance, &a->arena));
  PSPLIT_TRY(psplit_i_assignment_init(&other, &a->instance, &a->arena));
  psplit_i_assignment_copy(&annealed, &a->trial, &a->instance);
  PSPLIT_TRY(search_another(a, salt, most, &other));
  psplit_i_assignment_copy(&a->trial, a->best.value < annealed.value ? &a->best : &annealed,
                           &a->instance);
  if (other.value < PSPLIT_I_INF && !psplit_i_state_done(a))
    PSPLIT_TRY(anneal_from(a, psplit_i_splitmix64(salt, 0), n_steps, &other));
out:
  return code;
}

/* The caller's start, by more chains than one set. */
static psplit_code anneal_start(psplit_i_solver_state *a, uint64_t salt, uint64_t n_steps,
                                const psplit_i_assignment *start) {
  psplit_code code;
  psplit_i_assignment now;
  PSPLIT_TRY(psplit_i_assignment_init(&now, &a->instance, &a->arena));
  const uint64_t times = a->in_turns ? 1 : START_TIMES;
  for (uint64_t k = 0; k < times && may_anneal_windows(a); k++) {
    if (psplit_i_expired(a->request->budget)) break;
    psplit_i_assignment_copy(&now, start, &a->instance);
    PSPLIT_TRY(anneal_from(a, psplit_i_splitmix64(salt, k), n_steps, &now));
  }
out:
  return code;
}

/* Over pairs, and for the start of a search there, a split with less in the slowest stage alone is
 * not a better one to go on from. */
static bool may_anneal_high(const psplit_i_solver_state *a) {
  return !a->request->is_start && !a->instance.makes_message && !psplit_i_pairs_count(&a->instance);
}

/* a->trial is what annealing came to. */
static psplit_code take_annealed(psplit_i_solver_state *a, psplit_code code) {
  if (code == PSPLIT_LIMIT) return PSPLIT_OK;
  if (code != PSPLIT_OK || a->trial.value >= a->best.value) return code;
  psplit_i_assignment_evaluate(&a->trial, &a->instance, &a->automaton, a->scratch);
  psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_ANNEAL);
  return PSPLIT_OK;
}

psplit_code psplit_i_state_anneal(psplit_i_solver_state *a, psplit_i_turn *turn) {
  if (!psplit_i_takes(PSPLIT_I_SOLVER_ANNEAL, a->automaton.features) || psplit_i_state_done(a))
    return PSPLIT_OK;
  /* As much of the budget as the exact program had. */
  uint64_t share = a->budget > STEPS_PER_ANNEAL ? a->budget : STEPS_PER_ANNEAL;
  if (share > a->most) share = a->most;
  psplit_i_state_charge(a, share);
  psplit_i_assignment_copy(&a->trial, &a->best, &a->instance);
  const bool branches = a->instance.n <= BRUTE_CLUSTERS || a->in_turns;
  const uint64_t times = branches ? 1 : ANNEAL_TIMES;
  const uint64_t n_steps = share * times * ANNEAL_STEPS / STEPS_PER_ANNEAL + 1;
  const uint64_t spent = a->request->budget->spent;
  const psplit_i_assignment *start = a->in_turns ? &a->before_nested : turn->start;
  const psplit_i_placement_task task = {&a->instance, 1, a->request, a->trial.device};
  bool low_won;
  psplit_i_boundary_run run = {turn->salt, n_steps, a->anneals_high};
  psplit_code code =
    psplit_i_anneal_boundaries(&a->instance, &a->automaton, a->request, run, &low_won, &a->trial);
  if (code == PSPLIT_OK && start)
    code = anneal_start(a, turn->salt, n_steps, start);
  else if (code == PSPLIT_OK && may_anneal_another(a))
    code = anneal_another(a, turn->salt, n_steps, ANEW_TIMES * (a->request->budget->spent - spent));
  a->melted = false;
  run.n_steps /= WINDOW_PART;
  if (code == PSPLIT_OK && may_anneal_windows(a))
    code = psplit_i_anneal_windows(&a->instance, &a->automaton, a->request, run, &a->trial);
  a->anneals_high |= !low_won && may_anneal_high(a); /* the same chains again would find nothing */
  if (code == PSPLIT_LIMIT)
    code = psplit_i_anneal_labels(&task, turn->salt, n_steps, a->trial.stage, &a->trial.value);
  return take_annealed(a, code);
}

psplit_code psplit_i_state_anneal_briefly(psplit_i_solver_state *a) {
  if (!psplit_i_takes(PSPLIT_I_SOLVER_ANNEAL, a->automaton.features) || psplit_i_state_done(a))
    return PSPLIT_OK;
  const uint64_t n_steps = BRIEF_STEPS * (uint64_t)a->instance.n;
  psplit_i_state_charge(a, n_steps * (STEPS_PER_ANNEAL / ANNEAL_STEPS));
  psplit_i_assignment_copy(&a->trial, &a->best, &a->instance);
  return take_annealed(
    a, psplit_i_anneal_boundaries(&a->instance, &a->automaton, a->request,
                                  (psplit_i_boundary_run){.n_steps = n_steps}, NULL, &a->trial));
}

psplit_code psplit_i_state_anneal_melted(psplit_i_solver_state *a) {
  if (!psplit_i_takes(PSPLIT_I_SOLVER_ANNEAL, a->automaton.features) || psplit_i_state_done(a))
    return PSPLIT_OK;
  psplit_i_assignment_copy(&a->trial, &a->best, &a->instance);
  a->melted = a->result->solver == PSPLIT_I_SOLVER_SEARCH;
  return take_annealed(a,
                       psplit_i_anneal_melted(&a->instance, &a->automaton, a->request, &a->trial));
}

psplit_code psplit_i_state_recombine(psplit_i_solver_state *a, psplit_i_turn *turn) {
  if (a->recombined || a->request->relaxed || !may_recombine(a) || psplit_i_state_done(a))
    return PSPLIT_OK;
  a->recombined = true;
  const int64_t before = a->best.value;
  /* Not the best value, which hangs on the seed. */
  const int64_t limit = psplit_i_sat_add_i64(a->result->bound, a->result->bound / RECOMBINED_PART);
  psplit_i_assignment_copy(&a->trial, &a->best, &a->instance);
  const psplit_code code = psplit_i_recombine(&a->instance, &a->automaton, &a->set, limit,
                                              a->request->budget, a->scratch, &a->trial);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->request->diag);
  psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_RECOMBINATION);
  /* Little time is left, and little to change. */
  a->anneals_high |= a->best.value < before && may_anneal_high(a);
  turn->again = a->gets_far && a->best.value < before;
  return PSPLIT_OK;
}

psplit_code psplit_i_state_by_price(psplit_i_solver_state *a, psplit_i_turn *turn) {
  const int64_t before = a->best.value;
  (void)turn;
  if (a->stages_by_price || a->in_turns || before >= PSPLIT_I_INF || a->request->relaxed ||
      a->instance.n > PSPLIT_I_BY_PRICE || a->instance.n_types > 1 ||
      a->instance.total_w[0] >= PSPLIT_I_INF || !a->instance.all_forward ||
      psplit_i_state_done(a) || before - a->result->bound <= before / WIDE_GAP ||
      !psplit_i_takes(PSPLIT_I_SOLVER_BY_PRICE, a->automaton.features))
    return PSPLIT_OK;
  a->stages_by_price = true;
  psplit_i_budget half = psplit_i_budget_share(a->request->budget, 2);
  psplit_i_assignment_copy(&a->trial, &a->best, &a->instance);
  const psplit_code code = psplit_i_stages_by_price(&a->instance, &a->automaton, a->result->bound,
                                                    &half, a->scratch, &a->trial, &a->set);
  psplit_i_spend(a->request->budget, half.spent);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->request->diag);
  psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_BY_PRICE);
  a->anneals_high |= a->best.value < before && may_anneal_high(a);
  return PSPLIT_OK;
}

psplit_code psplit_i_state_brute(psplit_i_solver_state *a, psplit_i_turn *turn) {
  (void)turn;
  bool finished;
  if (a->result->bound >= a->best.value ||
      !psplit_i_takes(PSPLIT_I_SOLVER_BRANCH_AND_BOUND, a->automaton.features) ||
      a->instance.n > BRUTE_CLUSTERS || psplit_i_state_done(a))
    return PSPLIT_OK;
  psplit_i_assignment_copy(&a->trial, &a->best, &a->instance);
  const psplit_i_placement_task task = {&a->instance, 1, a->request, a->trial.device};
  const psplit_code code =
    psplit_i_branch_and_bound(&task, BRUTE_STEPS, a->trial.stage, &a->trial.value, &finished);
  if (code == PSPLIT_LIMIT) return PSPLIT_OK;
  if (code != PSPLIT_OK) return code;
  if (a->trial.value < a->best.value) {
    psplit_i_assignment_evaluate(&a->trial, &a->instance, &a->automaton, a->scratch);
    psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_BRANCH_AND_BOUND);
  }
  if (finished) psplit_i_result_raise(a->result, a->best.value, PSPLIT_I_SOLVER_BRANCH_AND_BOUND);
  return PSPLIT_OK;
}

psplit_code psplit_i_state_init(psplit_i_solver_state *a) {
  const double seconds = a->request->options->time_limit_s;
  psplit_i_arena_init(&a->arena, 0);
  a->best.value = PSPLIT_I_INF;
  a->asked = psplit_i_solver_asked(a->request->options->solver);
  psplit_i_spend_pass(a->request->budget, a->request->problem);
  a->most = seconds < 0 ? UINT64_MAX / 2 : (uint64_t)(seconds * PSPLIT_I_STEPS_PER_SECOND) + 1;
  a->budget = a->most / FIRST_PART + 1;
  if (a->budget > PSPLIT_I_FIRST_STEPS) a->budget = PSPLIT_I_FIRST_STEPS;
  const psplit_code code =
    psplit_i_instance_init(&a->instance, a->request->problem, NULL, a->request->diag);
  return code == PSPLIT_OK ? bind_instance(a) : code;
}

void psplit_i_state_fini(psplit_i_solver_state *a) {
  psplit_i_nested_destroy(a->nested);
  psplit_i_downsets_fini(&a->set);
  psplit_i_closure_fini(&a->closure);
  psplit_i_weight_axis_fini(&a->axis);
  psplit_i_automaton_fini(&a->automaton);
  psplit_i_instance_fini(&a->instance);
  psplit_i_arena_fini(&a->arena);
}
