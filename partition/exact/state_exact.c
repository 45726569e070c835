/* Runs the exact program on a solver state: on the instance itself, on the instance in which
 * receivers are apart (bounds/apart.h), and with prices of clusters. */
#include "apart.h"
#include "assignment.h"
#include "budget.h"
#include "exact.h"
#include "prices.h"
#include "result.h"
#include "solver_state.h"
#include "weight_axis.h"

enum {
  STUCK_PART = 8,    /* a run is stuck where it has not tried one of so many parts of all stages */
  LESS_STUCK = 2,    /* it counts as stuck until the gap is one of so many parts of what it was */
  TO_THE_END = 2,    /* times its steps: what the exact program may take where little seems left */
  PRICE_ROUNDS = 10, /* in which prices grow */
  PRICE_AGAIN = 4,   /* the same where prices begin as those of another limit */
  PRICE_SHARE = 4,   /* prices take no more than one of so many parts of the budget */
};

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
  psplit_i_instance own = a->instance;
  if (!apart && !options.least_comm &&
      psplit_i_equal_branches_apply(&a->instance, &a->automaton, a->request->budget, &a->arena,
                                    &a->equal, &own) != PSPLIT_OK)
    return psplit_i_nomem(a->request->diag);
  options.memory_bytes = cap ? cap : UINT64_C(1) << 30;
  options.max_steps_behind = psplit_i_sat_mul_u64(options.max_steps, TO_THE_END);
  options.n_threads = a->request->options->n_threads;
  options.budget = a->request->budget;
  options.out_steps = &steps;
  options.out_full = &a->full;
  options.out_rounds = &rounds;
  const psplit_code code =
    psplit_i_exact(apart ? &apart->instance : &own, apart ? &apart->automaton : &a->automaton, axis,
                   &options, &a->trial, out_verdict);
  psplit_i_state_charge(a, steps);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->request->diag);
  a->last_steps = steps;
  a->last_rounds = rounds;
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
  psplit_i_pricing *pricing = NULL;
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
  PSPLIT_TRY(psplit_i_pricing_make(instance, &part, &pricing));
  if (!pricing ||
      psplit_i_pricing_ops(pricing, PSPLIT_I_PRICING_PARTS) > psplit_i_budget_left(&part))
    goto out;
  if (!again) PSPLIT_TRY(psplit_i_prices_init(instance, limit, &a->arena, prices));
  PSPLIT_TRY(psplit_i_prices_grow(prices, pricing, limit, again ? PRICE_AGAIN : PRICE_ROUNDS, true,
                                  &part, &sum));
  if (sum > 0) *out_price = prices->price;
  *out_no = sum > prices->needed;
out:
  psplit_i_spend(a->request->budget, part.spent);
  psplit_i_pricing_free(pricing);
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
