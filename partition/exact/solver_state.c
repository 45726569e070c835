/* Operations on a solver state: take a split, raise the bound, and run one solver or bound within
 * the budget. */
#include "solver_state.h"
#include "assignment.h"
#include "automaton.h"
#include "boundary_annealing.h"
#include "branch_and_bound.h"
#include "budget.h"
#include "exact.h"
#include "instance.h"
#include "label_annealing.h"
#include "local_search.h"
#include "pair_links.h"
#include "prices.h"
#include "problem.h"
#include "recombine.h"
#include "reductions.h"
#include "result.h"
#include "stages_by_worth.h"
#include "weight_axis.h"

enum {
  ANNEAL_STEPS = 500000,
  ANNEAL_TIMES = 3, /* as many where branch and bound does not decide: that needs the time */
  BRUTE_CLUSTERS = 40,
  BRUTE_STEPS = 1000000,
  WIDE_GAP = 50,       /* is more than one of so many parts of the value */
  FEW_STAGES = 8,      /* recombination found worse than annealing there */
  RECOMBINED_PART = 5, /* the first split is within one of so many parts above the bound */
  /* Rates between budgets: steps of the exact program that take as long as ANNEAL_STEPS, and
   * clusters added to load trackers in the time of one step. */
  STEPS_PER_ANNEAL = 3750000,
  STUCK_PART = 8,    /* a run is stuck where it has not tried one of so many parts of all stages, */
  LESS_STUCK = 2,    /* and stays so until the gap is one of so many parts */
  TO_THE_END = 2,    /* times its steps: what the exact program may take where little seems left */
  PRICE_ROUNDS = 10, /* in which prices grow, */
  PRICE_AGAIN = 4,   /* and where they begin as those of another limit, */
  PRICE_SHARE = 4,   /* for no more than one of so many parts of the budget */
  ADDED_PER_STEP = 32,
  WINDOW_PART = 2, /* windows, where the gap is wide, have one of so many parts of the steps each */
  LITTLE_GAIN = 8, /* annealing brought little where it closed one of so many parts of the gap */
  FEW_ANEW = 4,    /* searches that may each find a better split than it has, */
  ROUNDS_ANEW = 4, /* of so many rounds, */
  MOST_ANEW = 40,  /* and orders in each, at most, */
  ANEW_TIMES = 3   /* for so many times what annealing took of the budget */
};

static psplit_i_bound_query query_of(psplit_i_solver_state *a) {
  return (psplit_i_bound_query){.request = a->request,
                                .instance = &a->instance,
                                .automaton = &a->automaton,
                                .variant = PSPLIT_I_STAGES,
                                .value = a->best.value,
                                .axis = &a->axis};
}

psplit_code psplit_i_state_ask(psplit_i_solver_state *a, psplit_i_method bound) {
  const psplit_i_bound_query query = query_of(a);
  if (psplit_i_bound_ask(bound, &query, a->result) != PSPLIT_OK)
    return psplit_i_nomem(a->request->diag);
  return PSPLIT_OK;
}

psplit_code psplit_i_state_ask_all(psplit_i_solver_state *a, psplit_i_bound_time when) {
  const psplit_i_bound_query query = query_of(a);
  for (uint32_t i = 0; i < PSPLIT_I_N_METHODS; i++) {
    if (!psplit_i_bound_is_due(i, &query, when)) continue;
    const psplit_code code = psplit_i_state_ask(a, i);
    if (code != PSPLIT_OK || psplit_i_state_done(a)) return code;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_state_ask_late(psplit_i_solver_state *a) {
  if (a->late) return PSPLIT_OK;
  const int64_t before = a->result->bound;
  const psplit_code code = psplit_i_state_ask_all(a, PSPLIT_I_AFTER_SEARCH);
  a->late = true;
  a->by_apart = a->result->bound > before && a->result->bound_by == PSPLIT_I_BOUND_APART;
  if (code != PSPLIT_OK || psplit_i_state_done(a)) return code;
  return psplit_i_state_ask_all(a, PSPLIT_I_LATE);
}

void psplit_i_state_charge(psplit_i_solver_state *a, uint64_t n_steps) { a->spent += n_steps; }

bool psplit_i_state_done(const psplit_i_solver_state *a) {
  if (a->best.value >= PSPLIT_I_INF) return psplit_i_expired(a->request->budget);
  return a->result->bound >= a->best.value ||
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
  psplit_i_downsets_fini(&a->set);
  psplit_i_downsets_init(&a->set, &a->instance);
  const psplit_code code =
    psplit_i_automaton_init(&a->automaton, &a->instance, request->options, request->diag);
  if (code != PSPLIT_OK) return code;
  a->scratch = PSPLIT_NEW(&a->arena, int64_t, (size_t)a->instance.n_stages * 5);
  if (!a->scratch || psplit_i_assignment_init(&a->best, &a->instance, &a->arena) != PSPLIT_OK ||
      psplit_i_assignment_init(&a->trial, &a->instance, &a->arena) != PSPLIT_OK)
    return psplit_i_nomem(request->diag);
  return PSPLIT_OK;
}

psplit_code psplit_i_state_reduce(psplit_i_solver_state *a, int64_t limit, bool keep_first,
                                  uint32_t *parent) {
  const uint32_t before = a->instance.n;
  const bool have = a->best.value < PSPLIT_I_INF;
  psplit_code code =
    psplit_i_reduce_carrying(&a->instance, &a->automaton, limit, keep_first, parent,
                             have ? a->result->stage : NULL, a->request->budget, a->request->diag);
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
  if (work / ADDED_PER_STEP > a->most) work = a->most * ADDED_PER_STEP;
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

psplit_code psplit_i_state_search_anew(psplit_i_solver_state *a, uint32_t n_rounds,
                                       uint32_t n_steps, uint64_t salt) {
  forget_trial(a);
  return search_from_trial(a, n_rounds, n_steps, seed_of(a, salt));
}

/* Whether a run that ended undecided got anywhere. */
static void note_progress(psplit_i_solver_state *a, uint64_t max_steps, uint32_t rounds) {
  a->stuck_steps = rounds * STUCK_PART < a->instance.n_stages ? max_steps : 0;
  a->stuck_gap = a->best.value - a->result->bound;
}

bool psplit_i_state_stuck(const psplit_i_solver_state *a) {
  return a->budget <= a->stuck_steps &&
         a->best.value - a->result->bound > a->stuck_gap / LESS_STUCK;
}

/* One run of the exact program; fills in the options that are the same for all runs. `apart`: of
 * the instance in which receivers are apart, which it may be within the limit; or NULL. */
static psplit_code run_exact(psplit_i_solver_state *a, psplit_i_exact_options options,
                             const psplit_i_apart *apart, const psplit_i_weight_axis *axis,
                             psplit_i_verdict *out_verdict) {
  uint64_t steps = 0;
  uint32_t rounds = 0;
  const uint64_t cap = a->request->options->memory_cap_bytes;
  options.memory_bytes = cap ? cap : UINT64_C(1) << 30;
  options.max_steps_behind = psplit_i_sat_mul_u64(options.max_steps, TO_THE_END);
  options.n_threads = a->request->options->n_threads;
  options.budget = a->request->budget;
  options.out_steps = &steps;
  options.out_full = &a->full;
  options.out_rounds = &rounds;
  const psplit_code code = psplit_i_exact(apart ? &apart->instance : &a->instance,
                                          apart ? &apart->automaton : &a->automaton, axis, &options,
                                          &a->trial, out_verdict);
  psplit_i_state_charge(a, steps);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->request->diag);
  a->last_steps = steps;
  if (!apart && !options.price && *out_verdict == PSPLIT_I_UNKNOWN)
    note_progress(a, options.max_steps, rounds);
  a->decides = a->decides || *out_verdict != PSPLIT_I_UNKNOWN;
  if (*out_verdict == PSPLIT_I_YES && apart)
    psplit_i_assignment_evaluate(&a->trial, &a->instance, &a->automaton, a->scratch);
  if (*out_verdict == PSPLIT_I_YES) psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_EXACT);
  return PSPLIT_OK;
}

/* The exact program with a limit, of the instance or of that in which receivers are apart. */
static psplit_code decide(psplit_i_solver_state *a, int64_t limit, uint64_t budget,
                          const psplit_i_apart *apart, const psplit_i_weight_axis *axis,
                          psplit_i_verdict *out_verdict) {
  psplit_i_exact_options options = {
    .limit = limit, .max_steps = budget, .send_once = a->instance.p2p};
  psplit_code code = run_exact(a, options, apart, axis, out_verdict);
  /* Relaxation: point to point, counting receivers multiplies the labels. Without it NO holds all
   * the same, and a YES often does. */
  if (code == PSPLIT_OK && options.send_once && *out_verdict == PSPLIT_I_YES &&
      a->trial.value > limit) {
    options.send_once = false;
    code = run_exact(a, options, apart, axis, out_verdict);
  }
  return code;
}

/* The closure is made when that is first asked for. */
static psplit_code take_apart(psplit_i_solver_state *a, int64_t limit, psplit_i_apart *out_apart) {
  *out_apart = (psplit_i_apart){0};
  if (a->closure.n != a->instance.n) {
    psplit_i_closure_fini(&a->closure);
    if (psplit_i_closure_make(&a->instance, a->request->budget, &a->closure) != PSPLIT_OK)
      return psplit_i_nomem(a->request->diag);
  }
  if (psplit_i_apart_make(&a->instance, &a->automaton, &a->closure, a->request->options, limit,
                          a->request->budget, out_apart) != PSPLIT_OK)
    return psplit_i_nomem(a->request->diag);
  return PSPLIT_OK;
}

psplit_code psplit_i_state_exact(psplit_i_solver_state *a, int64_t limit, uint64_t budget,
                                 psplit_i_verdict *out_verdict) {
  *out_verdict = PSPLIT_I_UNKNOWN;
  if (!psplit_i_takes(PSPLIT_I_SOLVER_EXACT, a->automaton.features)) {
    a->undercounted = true;
    return PSPLIT_OK;
  }
  const psplit_code code = decide(a, limit, budget, NULL, &a->axis, out_verdict);
  if (code != PSPLIT_OK) return code;
  if (*out_verdict == PSPLIT_I_NO)
    psplit_i_result_raise(a->result, limit + 1, PSPLIT_I_SOLVER_EXACT);
  /* Relays are counted only when a whole split is evaluated. */
  if (*out_verdict == PSPLIT_I_YES && a->trial.value > limit) {
    *out_verdict = PSPLIT_I_UNKNOWN;
    a->undercounted = true;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_state_exact_apart(psplit_i_solver_state *a, int64_t limit, uint64_t budget,
                                       psplit_i_verdict *out_verdict) {
  psplit_i_apart apart;
  psplit_i_weight_axis axis = {0};
  const uint64_t spent = a->spent;
  *out_verdict = PSPLIT_I_UNKNOWN;
  if (!psplit_i_takes(PSPLIT_I_SOLVER_EXACT, a->automaton.features)) return PSPLIT_OK;
  psplit_code code = take_apart(a, limit, &apart);
  if (code != PSPLIT_OK) return code;
  if (apart.impossible) *out_verdict = PSPLIT_I_NO;
  if (apart.impossible || !apart.changed) goto out;
  code = psplit_i_weight_axis_make(&apart.instance, &apart.automaton, limit,
                                   a->request->options->n_threads, a->request->budget, &axis);
  if (code != PSPLIT_OK)
    code = psplit_i_nomem(a->request->diag);
  else if (axis.bound > limit)
    *out_verdict = PSPLIT_I_NO;
  else
    code = decide(a, limit, budget, &apart, &axis, out_verdict);
out:
  psplit_i_weight_axis_fini(&axis);
  psplit_i_apart_fini(&apart);
  a->spent = spent; /* the time that is left bounds it, not the steps of the others */
  if (code != PSPLIT_OK) return code;
  if (*out_verdict == PSPLIT_I_NO)
    psplit_i_result_raise(a->result, limit + 1, PSPLIT_I_SOLVER_EXACT);
  if (*out_verdict == PSPLIT_I_YES && a->trial.value > limit) *out_verdict = PSPLIT_I_UNKNOWN;
  return PSPLIT_OK;
}

static bool may_price(const psplit_i_solver_state *a) {
  return !a->request->relaxed && psplit_i_prices_suit(&a->instance) &&
         psplit_i_takes(PSPLIT_I_RULE_PRICES, a->automaton.features);
}

/* Prices by which no stage of a split within the limit is worth more than ONE: of the instance in
 * which receivers are apart. NULL: they would take too long. *out_no: there is no such split, by
 * the prices alone. */
static psplit_code price_clusters(psplit_i_solver_state *a, int64_t limit,
                                  const int32_t **out_price, bool *out_no) {
  psplit_i_budget part = psplit_i_budget_share(a->request->budget, PRICE_SHARE);
  psplit_i_worth *worth = NULL;
  psplit_i_prices *prices = &a->prices;
  const bool again = prices->n == a->instance.n;
  psplit_i_apart apart;
  int64_t sum = 0;
  *out_price = NULL;
  psplit_code code = take_apart(a, limit, &apart);
  if (code != PSPLIT_OK) return code;
  *out_no = apart.impossible;
  if (apart.impossible) goto out;
  const psplit_i_instance *instance = apart.changed ? &apart.instance : &a->instance;
  PSPLIT_TRY(psplit_i_worth_make(instance, &part, &worth));
  if (!worth || psplit_i_worth_ops(worth, PSPLIT_I_WORTH_PARTS) > psplit_i_budget_left(&part))
    goto out;
  if (!again) PSPLIT_TRY(psplit_i_prices_init(instance, limit, &a->arena, prices));
  PSPLIT_TRY(psplit_i_prices_grow(prices, worth, limit, again ? PRICE_AGAIN : PRICE_ROUNDS, true,
                                  &part, &sum));
  if (sum > 0) *out_price = prices->price;
  *out_no = sum > prices->needed;
out:
  psplit_i_spend(a->request->budget, part.spent);
  psplit_i_worth_free(worth);
  psplit_i_apart_fini(&apart);
  return code == PSPLIT_OK ? code : psplit_i_nomem(a->request->diag);
}

psplit_code psplit_i_state_exact_priced(psplit_i_solver_state *a, int64_t limit, uint64_t budget,
                                        psplit_i_verdict *out_verdict) {
  const uint64_t spent = a->spent;
  const int32_t *price;
  bool no;
  *out_verdict = PSPLIT_I_UNKNOWN;
  if (!may_price(a)) return PSPLIT_OK;
  psplit_code code = price_clusters(a, limit, &price, &no);
  if (code == PSPLIT_OK && no) {
    *out_verdict = PSPLIT_I_NO;
    psplit_i_result_raise(a->result, limit + 1, PSPLIT_I_BOUND_PRICES);
  } else if (code == PSPLIT_OK && price) {
    /* Receivers are counted: what dominates is within the limit then, and so not ruled out. */
    const psplit_i_exact_options options = {.limit = limit, .price = price, .max_steps = budget};
    code = run_exact(a, options, NULL, &a->axis, out_verdict);
    if (*out_verdict == PSPLIT_I_NO)
      psplit_i_result_raise(a->result, limit + 1, PSPLIT_I_SOLVER_EXACT);
  }
  a->spent = spent; /* the time that is left bounds it, not the steps of the others */
  a->by_price = a->by_price || *out_verdict != PSPLIT_I_UNKNOWN;
  return code;
}

psplit_code psplit_i_state_least_comm(psplit_i_solver_state *a,
                                      const psplit_i_lexicographic *lexicographic, uint64_t budget,
                                      psplit_i_verdict *out_verdict) {
  return run_exact(a,
                   (psplit_i_exact_options){.limit = a->best.value,
                                            .least_comm = true,
                                            .lexicographic = lexicographic,
                                            .max_steps = budget},
                   NULL, &a->axis, out_verdict);
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

/* Whether annealing brought nothing, or little, from what search found; the time is branch and
 * bound's where that decides. */
static bool may_anneal_another(const psplit_i_solver_state *a) {
  const int64_t gained = a->best.value - a->trial.value;
  return !a->request->relaxed && a->instance.n > BRUTE_CLUSTERS &&
         a->result->solver == PSPLIT_I_SOLVER_SEARCH &&
         gained <= (a->best.value - a->result->bound) / LITTLE_GAIN && may_anneal_windows(a);
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
  const psplit_code code = psplit_i_anneal_boundaries(&a->instance, &a->automaton, a->request,
                                                      psplit_i_splitmix64(salt, 0), n_steps,
                                                      a->anneals_high, NULL, io_start);
  if (code == PSPLIT_OK && io_start->value < a->trial.value)
    psplit_i_assignment_copy(&a->trial, io_start, &a->instance);
  return code;
}

/* A split that most orders lead to, and that annealing leaves nearly as it is, is not the best for
 * that: another one is annealed. a->trial is the best of all. */
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
    PSPLIT_TRY(anneal_from(a, salt, n_steps, &other));
out:
  return code;
}

/* Over pairs, and for the start of a search there, a split with less in the slowest stage alone is
 * not a better one to go on from. */
static bool may_anneal_high(const psplit_i_solver_state *a) {
  return !a->request->is_start && !a->instance.makes_message && !psplit_i_pairs_count(&a->instance);
}

psplit_code psplit_i_state_anneal(psplit_i_solver_state *a, psplit_i_turn *turn) {
  if (!psplit_i_takes(PSPLIT_I_SOLVER_ANNEAL, a->automaton.features) || psplit_i_state_done(a))
    return PSPLIT_OK;
  /* As much of the budget as the exact program had. */
  uint64_t share = a->budget > STEPS_PER_ANNEAL ? a->budget : STEPS_PER_ANNEAL;
  if (share > a->most) share = a->most;
  psplit_i_state_charge(a, share);
  psplit_i_assignment_copy(&a->trial, &a->best, &a->instance);
  const uint64_t times = a->instance.n > BRUTE_CLUSTERS ? ANNEAL_TIMES : 1;
  const uint64_t n_steps = share * times * ANNEAL_STEPS / STEPS_PER_ANNEAL + 1;
  const uint64_t spent = a->request->budget->spent;
  bool low_won;
  psplit_code code = psplit_i_anneal_boundaries(&a->instance, &a->automaton, a->request, turn->salt,
                                                n_steps, a->anneals_high, &low_won, &a->trial);
  if (code == PSPLIT_OK && turn->start && may_anneal_windows(a))
    code = anneal_from(a, turn->salt, n_steps, turn->start);
  if (code == PSPLIT_OK && may_anneal_another(a))
    code = anneal_another(a, turn->salt, n_steps, ANEW_TIMES * (a->request->budget->spent - spent));
  if (code == PSPLIT_OK && may_anneal_windows(a))
    code = psplit_i_anneal_windows(&a->instance, &a->automaton, a->request, turn->salt,
                                   n_steps / WINDOW_PART, a->anneals_high, &a->trial);
  a->anneals_high |= !low_won && may_anneal_high(a); /* the same chains again would find nothing */
  if (code == PSPLIT_LIMIT)
    code = psplit_i_anneal_labels(&a->instance, 1, a->request, a->trial.device, turn->salt, n_steps,
                                  a->trial.stage, &a->trial.value);
  if (code == PSPLIT_LIMIT) return PSPLIT_OK;
  if (code != PSPLIT_OK) return code;
  if (a->trial.value >= a->best.value) return PSPLIT_OK;
  psplit_i_assignment_evaluate(&a->trial, &a->instance, &a->automaton, a->scratch);
  psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_ANNEAL);
  return PSPLIT_OK;
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

psplit_code psplit_i_state_by_worth(psplit_i_solver_state *a, psplit_i_turn *turn) {
  const int64_t before = a->best.value;
  (void)turn;
  if (a->by_worth || before >= PSPLIT_I_INF || a->request->relaxed ||
      a->instance.n > PSPLIT_I_BY_WORTH || a->instance.n_types > 1 ||
      a->instance.total_w[0] >= PSPLIT_I_INF || !a->instance.all_forward ||
      psplit_i_state_done(a) || before - a->result->bound <= before / WIDE_GAP ||
      !psplit_i_takes(PSPLIT_I_SOLVER_BY_WORTH, a->automaton.features))
    return PSPLIT_OK;
  a->by_worth = true;
  psplit_i_budget half = psplit_i_budget_share(a->request->budget, 2);
  psplit_i_assignment_copy(&a->trial, &a->best, &a->instance);
  const psplit_code code = psplit_i_stages_by_worth(&a->instance, &a->automaton, a->result->bound,
                                                    &half, a->scratch, &a->trial, &a->set);
  psplit_i_spend(a->request->budget, half.spent);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->request->diag);
  psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_BY_WORTH);
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
  const psplit_code code =
    psplit_i_branch_and_bound(&a->instance, 1, a->request, a->trial.device, BRUTE_STEPS,
                              a->trial.stage, &a->trial.value, &finished);
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
  a->budget = PSPLIT_I_FIRST_STEPS;
  a->asked = psplit_i_solver_asked(a->request->options->solver);
  psplit_i_spend_pass(a->request->budget, a->request->problem);
  a->most = seconds < 0 ? UINT64_MAX / 2 : (uint64_t)(seconds * PSPLIT_I_STEPS_PER_SECOND) + 1;
  const psplit_code code =
    psplit_i_instance_init(&a->instance, a->request->problem, NULL, a->request->diag);
  return code == PSPLIT_OK ? bind_instance(a) : code;
}

void psplit_i_state_fini(psplit_i_solver_state *a) {
  psplit_i_downsets_fini(&a->set);
  psplit_i_closure_fini(&a->closure);
  psplit_i_weight_axis_fini(&a->axis);
  psplit_i_automaton_fini(&a->automaton);
  psplit_i_instance_fini(&a->instance);
  psplit_i_arena_fini(&a->arena);
}
