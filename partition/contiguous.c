/* Contiguous throughput: search and bounds in turn until bound and value meet.
 *
 *   1. Lossless reductions.
 *   2. A first split, by local search over orders; on large graphs by multilevel search.
 *   3. Reductions again, by the limit rule with the value of that split.
 *   4. The weight-axis bound, and the windows that the exact program reads.
 *   5. The exact program, for few steps, behind a few orders; what it does not decide gets the
 *      whole search, and 3 and 4 again.
 *   6. The exact program with a limit just below the best value: NO proves that value, YES improves
 *      it. When it runs out of steps: stages by worth, recombination, more search, annealing, then
 *      limits between bound and value.
 *
 * Budgets are counted in steps, so the answer does not depend on the computer unless the time limit
 * strikes first. docs/partitioning/method.md states the theorems. */
#include <math.h>

#include "assignment.h"
#include "baselines.h"
#include "budget.h"
#include "chain.h"
#include "check_merged.h"
#include "contiguous.h"
#include "exact.h"
#include "feasible.h"
#include "fill_stages.h"
#include "heavy_nodes.h"
#include "messages.h"
#include "multilevel.h"
#include "pair_links.h"
#include "problem.h"
#include "proposals.h"
#include "result.h"
#include "solver_state.h"
#include "span_row.h"
#include "tie_breaking.h"

#define VERY_LARGE_GAP 5e-4

enum {
  VERY_LARGE = 1 << 14,
  MOST_IDLE = 4,    /* rounds of search that bring nothing */
  MOST_PARTS = 16,  /* of the gap, the first of which is asked for a limit */
  FEW_PARTS = 4,    /* the same in between */
  WIDE_GAP = 50,    /* is more than one of so many parts of the value, */
  SMALL_GAIN = 16,  /* and a small gain less than one of so many parts of the gap */
  PRICED_STEPS = 2, /* times as many for labels that prices may rule out, */
  FAR_STEPS = 4,    /* times as many for an exact program that gets far */
  LITTLE = 1000,    /* a gap of more than one of so many parts of the value is halved */
  FEW_GAINS = 4,    /* close what is not worth half a step: just below the value again */
  FEW_IMPROVED = 3, /* runs of the exact program that may improve the value by little each */
  BOUNDS_PART = 16, /* of the time that annealing leaves to them where it comes first */
  SOON = 1 << 16    /* steps of the exact program behind the first few orders */
};

/* A solver's steps in the table: each may be NULL. */
typedef struct solver_steps {
  psplit_code (*first)(psplit_i_solver_state *);                 /* a split, before any bound */
  psplit_code (*turn)(psplit_i_solver_state *, psplit_i_turn *); /* again and again */
  psplit_code (*late)(psplit_i_solver_state *, psplit_i_turn *); /* when turns did not help */
  psplit_code (*last)(psplit_i_solver_state *, psplit_i_turn *); /* when they never will */
  uint32_t turns_alone; /* of a solver that users ask for; ALL_IN_TURN: it is with all others */
} solver_steps;

enum { ALL_IN_TURN = UINT16_MAX };

typedef psplit_code exact_run(psplit_i_solver_state *a, int64_t limit, uint64_t budget,
                              psplit_i_verdict *out_verdict);

/* Narrows the gap by exact runs with limits between bound and value: the middle first, then closer
 * to the bound, where fewer labels fit and the program is faster. */
static psplit_code narrow(psplit_i_solver_state *a, exact_run *run, int64_t most_parts) {
  psplit_code code = PSPLIT_OK;
  for (int64_t part = 2; part <= most_parts && !psplit_i_state_done(a); part *= 2) {
    const int64_t limit = a->result->bound + (a->best.value - a->result->bound) / part;
    psplit_i_verdict verdict;
    if (limit >= a->best.value - 1) break;
    PSPLIT_TRY(run(a, limit, a->budget, &verdict));
    if (verdict == PSPLIT_I_YES) break; /* a run just below the new value may be quick now */
    if (verdict == PSPLIT_I_NO) part = 1;
    if (a->spent > a->most) break;
  }
out:
  return code;
}

static bool is_open(const psplit_i_solver_state *a, int64_t part) {
  return a->best.value - a->result->bound > a->best.value / part;
}

/* Where little is open, the exact program closes it best by itself, a little at a time. */
static bool is_wide(const psplit_i_solver_state *a) { return is_open(a, WIDE_GAP); }

/* Whether a limit in the middle of the gap says more than one just below the value. */
static bool may_halve(const psplit_i_solver_state *a) { return is_open(a, LITTLE); }

/* By halves of the gap, where prices of clusters rule out labels. */
static psplit_code halve(psplit_i_solver_state *a) {
  psplit_i_verdict verdict = PSPLIT_I_NO;
  while (verdict != PSPLIT_I_UNKNOWN && may_halve(a) && !psplit_i_state_done(a)) {
    const int64_t limit = a->result->bound + (a->best.value - a->result->bound) / 2;
    const psplit_code code =
      psplit_i_state_exact_priced(a, limit, PRICED_STEPS * a->budget, &verdict);
    if (code != PSPLIT_OK) return code;
  }
  return PSPLIT_OK;
}

static psplit_code bisect(psplit_i_solver_state *a, psplit_i_turn *turn) {
  (void)turn;
  if (a->by_price) return narrow(a, psplit_i_state_exact_priced, MOST_PARTS);
  const psplit_code code = narrow(a, psplit_i_state_exact, MOST_PARTS);
  return code == PSPLIT_OK && a->by_apart ? narrow(a, psplit_i_state_exact_apart, MOST_PARTS)
                                          : code;
}

/* Whether a better split took many steps and closes little of the gap. */
static bool gains_little(const psplit_i_solver_state *a, int64_t before) {
  return is_wide(a) && a->last_steps > a->budget / 2 &&
         before - a->best.value < (before - a->result->bound) / SMALL_GAIN;
}

/* The bounds that take longest, once. */
static psplit_code ask_stuck(psplit_i_solver_state *a) {
  if (a->stuck_asked || a->request->relaxed || !is_wide(a) || psplit_i_state_done(a))
    return PSPLIT_OK;
  a->stuck_asked = true;
  return psplit_i_state_ask_all(a, PSPLIT_I_WHERE_STUCK);
}

/* Where the exact program is undecided, or dear: bounds that take longer. Where it gets far and
 * much is open, limits between bound and value as well, once, and more steps from now on. */
static psplit_code go_deeper(psplit_i_solver_state *a) {
  psplit_code code = psplit_i_state_ask_late(a);
  if (code == PSPLIT_OK && psplit_i_state_stuck(a)) return ask_stuck(a);
  if (code != PSPLIT_OK || a->gets_far || !is_wide(a) || psplit_i_state_done(a)) return code;
  a->gets_far = true;
  if (a->decides) code = halve(a); /* else prices and steps would be for nothing, mostly */
  if (code != PSPLIT_OK || a->by_price) return code;
  return narrow(a, a->by_apart ? psplit_i_state_exact_apart : psplit_i_state_exact, FEW_PARTS);
}

/* How far below the value just under the best one the next limit is, behind a run that was `leap`
 * below it: not at all until better splits by little are found again and again, then by leaps that
 * double; or, where one took many steps, by half of what is open, as long as that is much more than
 * a better split closes. */
static int64_t next_leap(psplit_i_solver_state *a, psplit_i_verdict verdict, int64_t before,
                         int64_t leap) {
  const int64_t open = a->best.value - a->result->bound, gained = before - a->best.value;
  if (verdict == PSPLIT_I_YES) {
    const bool dear = a->last_steps > a->budget / 2;
    a->n_improved++;
    a->gained = dear && gained < open / SMALL_GAIN ? gained : a->gained;
  } else if (verdict == PSPLIT_I_UNKNOWN || leap == 0) {
    a->gained = 0;
  }
  if (a->gained > 0 && open > FEW_GAINS * a->gained) return open / 2;
  if (verdict != PSPLIT_I_YES) a->n_improved = 0;
  return a->n_improved < FEW_IMPROVED ? 0 : 2 * leap + gained;
}

/* A limit below the best value. */
static psplit_code decide(psplit_i_solver_state *a, psplit_i_turn *turn) {
  const int64_t before = a->best.value, leap = a->leap;
  const int64_t half = (before - a->result->bound) / 2;
  const int64_t limit = a->by_price && may_halve(a) ? before - half : before - 1 - leap;
  psplit_i_verdict verdict;
  if (psplit_i_state_stuck(a)) return psplit_i_state_ask_late(a);
  exact_run *run = a->by_price ? psplit_i_state_exact_priced : psplit_i_state_exact;
  psplit_code code = run(a, limit > a->result->bound ? limit : a->result->bound,
                         a->gets_far ? FAR_STEPS * a->budget : a->budget, &verdict);
  const bool dear = verdict == PSPLIT_I_YES && !a->gets_far && gains_little(a, before);
  turn->again = (verdict != PSPLIT_I_UNKNOWN && !dear) || leap > 0;
  a->leap = next_leap(a, verdict, before, leap);
  if (code == PSPLIT_OK && !turn->again && !psplit_i_state_done(a)) {
    code = go_deeper(a);
    turn->again = dear && !a->gets_far; /* those bounds may have left little open */
  }
  return code;
}

static psplit_code search_on(psplit_i_solver_state *a, psplit_i_turn *turn) {
  return psplit_i_state_search(a, 8, psplit_i_state_affords(a, PSPLIT_I_SEARCH_WORK, 8, 40),
                               turn->salt);
}

static bool proposals_alone(const psplit_i_solver_state *a) {
  return a->asked == PSPLIT_I_SOLVER_DRLPP || a->asked == PSPLIT_I_SOLVER_DRLPP_SLICE;
}

/* Proposals that the checker refused leave nothing: then one order is divided, as with "slice". */
static psplit_code drlpp_first(psplit_i_solver_state *a) {
  if (a->asked != PSPLIT_I_SOLVER_DRLPP) return PSPLIT_OK;
  return psplit_i_propose(a, false);
}

static psplit_code drlpp_slice_first(psplit_i_solver_state *a) {
  if (a->asked == PSPLIT_I_SOLVER_DRLPP || a->asked == PSPLIT_I_SOLVER_SLICE ||
      a->asked == PSPLIT_I_SOLVER_MULTILEVEL)
    return PSPLIT_OK;
  return psplit_i_propose(a, true);
}

static psplit_code multilevel_first(psplit_i_solver_state *a) {
  if (a->instance.n <= PSPLIT_I_LARGE && a->asked != PSPLIT_I_SOLVER_MULTILEVEL) return PSPLIT_OK;
  if (proposals_alone(a) && a->best.value < PSPLIT_I_INF) return PSPLIT_OK;
  const psplit_code code = psplit_i_multilevel(&a->instance, &a->automaton, a->request, &a->trial);
  if (code == PSPLIT_OK && a->trial.value < PSPLIT_I_INF)
    psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_MULTILEVEL);
  return code;
}

/* Annealing where pairs count: small moves, valued truly, see skips that the division of an order
 * can only guess. Where asked, what the relaxation came to is annealed as well as the best split:
 * that has less in the slowest stage, but is more often one that annealing does not get out of.
 * Some time is left for the bounds then. */
static psplit_code anneal_pairs(psplit_i_solver_state *a, psplit_i_assignment *start) {
  psplit_i_budget *budget = a->request->budget;
  const psplit_i_budget whole = *budget;
  psplit_i_turn turn = {.before = a->best.value};
  if (a->anneals_start && start->value > a->best.value) {
    turn.start = start;
    psplit_i_budget_hold_back(budget, BOUNDS_PART);
  }
  const psplit_code code = psplit_i_state_anneal(a, &turn);
  budget->most = whole.most;
  budget->end = whole.end;
  return code;
}

static psplit_code divide_orders(psplit_i_solver_state *a, uint32_t n_steps) {
  psplit_code code = PSPLIT_OK;
  psplit_i_assignment start;
  if (a->instance.n > PSPLIT_I_LARGE && a->best.value < PSPLIT_I_INF) return PSPLIT_OK;
  /* Over links between pairs the start is of the least links: not all searches begin there. */
  const bool pairs = psplit_i_pairs_count(&a->instance) && a->best.value < PSPLIT_I_INF;
  if (pairs) {
    PSPLIT_TRY(psplit_i_assignment_init(&start, &a->instance, &a->arena));
    psplit_i_assignment_copy(&start, &a->best, &a->instance);
    if (!psplit_i_state_done(a)) PSPLIT_TRY(psplit_i_state_search_anew(a, 1, n_steps, 0));
  }
  PSPLIT_TRY(psplit_i_state_search(a, 1, n_steps, 0));
  if (pairs && a->asked == PSPLIT_I_SOLVER_AUTO) PSPLIT_TRY(anneal_pairs(a, &start));
out:
  return code;
}

/* Orders that each chain of the first search draws. */
static uint32_t first_steps(const psplit_i_solver_state *a) {
  return a->instance.n > 1000 ? 4 : 12;
}

/* Whether a few orders are tried first, as the exact program may decide at once: most problems are
 * proved from there, in less time than more orders take. */
static bool soon_proved(const psplit_i_solver_state *a) {
  const bool all = a->asked == PSPLIT_I_SOLVER_AUTO || a->asked == PSPLIT_I_SOLVER_EXACT;
  return all && a->instance.n <= PSPLIT_I_LARGE && !psplit_i_pairs_count(&a->instance);
}

static psplit_code slice_first(psplit_i_solver_state *a) {
  return a->asked == PSPLIT_I_SOLVER_SLICE ? divide_orders(a, 0) : PSPLIT_OK;
}

static psplit_code search_first(psplit_i_solver_state *a) {
  if (a->asked == PSPLIT_I_SOLVER_SLICE) return PSPLIT_OK;
  if (proposals_alone(a)) return a->best.value < PSPLIT_I_INF ? PSPLIT_OK : divide_orders(a, 0);
  return divide_orders(a, soon_proved(a) ? 1 : first_steps(a));
}

static psplit_code chain_first(psplit_i_solver_state *a) {
  const bool all = a->asked == PSPLIT_I_SOLVER_AUTO || a->asked == PSPLIT_I_SOLVER_EXACT;
  return all ? psplit_i_state_cut_chain(a) : PSPLIT_OK;
}

static const solver_steps STEPS[PSPLIT_I_N_METHODS] = {
#define STRIP(...) __VA_ARGS__
#define PSPLIT_I_BOUND(...)
#define PSPLIT_I_SOLVER(id, name, may_be_asked, does, stages, placement) \
  [PSPLIT_I_SOLVER_##id] = {STRIP stages},
#define PSPLIT_I_NAME(...)
#define PSPLIT_I_RULE(...)
#include "methods.def"
#undef PSPLIT_I_BOUND
#undef PSPLIT_I_SOLVER
#undef PSPLIT_I_NAME
#undef PSPLIT_I_RULE
#undef STRIP
};

/* --- the portfolio --- */

static psplit_code first_split(psplit_i_solver_state *a) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < PSPLIT_I_N_METHODS; i++) {
    if (STEPS[i].first) PSPLIT_TRY(STEPS[i].first(a));
    if (a->best.value <= a->result->bound) break;
  }
  if (a->best.value >= PSPLIT_I_INF) PSPLIT_TRY(psplit_i_state_find_any(a));
out:
  return code;
}

static psplit_code bounds(psplit_i_solver_state *a) {
  if (a->instance.n > PSPLIT_I_LARGE && psplit_i_state_done(a)) return PSPLIT_OK;
  /* Very large graphs are hardly ever proved to the last bit: for a smaller gap than this, the
   * seconds that the bound takes would be lost. */
  if (a->instance.n > VERY_LARGE &&
      (double)(a->best.value - a->result->bound) <= VERY_LARGE_GAP * (double)a->best.value)
    return PSPLIT_OK;
  const psplit_code code = psplit_i_state_ask_all(a, PSPLIT_I_WITH_A_SPLIT);
  /* No solver behind them decides large graphs, or would be asked before those. */
  const bool late = a->instance.n > PSPLIT_I_LARGE && !psplit_i_state_done(a);
  return code == PSPLIT_OK && late ? psplit_i_state_ask_late(a) : code;
}

/* All solvers in turn. */
static psplit_code improve(psplit_i_solver_state *a) {
  psplit_code code = PSPLIT_OK;
  uint32_t n_idle = 0;
  /* Over links between pairs the exact program seldom decides, and few nodes are soon tried. */
  if (psplit_i_pairs_count(&a->instance)) PSPLIT_TRY(psplit_i_state_brute(a, NULL));
  for (uint64_t salt = 1; !psplit_i_state_done(a) && a->spent < a->most; salt++) {
    psplit_i_turn turn = {.salt = salt, .before = a->best.value};
    if (a->axis.limit != a->best.value)
      PSPLIT_TRY(psplit_i_state_ask(a, PSPLIT_I_BOUND_WEIGHT_AXIS));
    if (psplit_i_state_done(a)) break;
    for (uint32_t i = 0; i < PSPLIT_I_N_METHODS && !turn.again; i++)
      if (STEPS[i].turn) PSPLIT_TRY(STEPS[i].turn(a, &turn));
    if (turn.again || a->best.value < turn.before) continue;
    for (uint32_t i = 0; i < PSPLIT_I_N_METHODS; i++)
      if (STEPS[i].late) PSPLIT_TRY(STEPS[i].late(a, &turn));
    if (a->best.value < turn.before) continue;
    /* More steps would not help; over links between pairs more search may. */
    if (a->undercounted && (!psplit_i_pairs_count(&a->instance) || ++n_idle == MOST_IDLE)) break;
    a->budget *= 4;
  }
  for (uint32_t i = 0; i < PSPLIT_I_N_METHODS; i++)
    if (STEPS[i].last) PSPLIT_TRY(STEPS[i].last(a, NULL));
out:
  return code;
}

/* What a few orders came to may be the optimum; if that is not soon decided, the search that was
 * cut short is made, and what follows from its limit. parent NULL: nothing is reduced. */
static psplit_code search_in_full(psplit_i_solver_state *a, uint32_t *parent) {
  const int64_t before = a->best.value;
  psplit_i_verdict verdict;
  psplit_code code;
  PSPLIT_TRY(psplit_i_state_exact(a, a->best.value - 1, SOON, &verdict));
  if (psplit_i_state_done(a)) return PSPLIT_OK;
  PSPLIT_TRY(psplit_i_state_search_anew(a, 1, first_steps(a), 0));
  if (a->best.value == before || psplit_i_state_done(a)) return PSPLIT_OK;
  if (parent) PSPLIT_TRY(psplit_i_state_reduce(a, a->best.value, false, parent));
  PSPLIT_TRY(bounds(a));
out:
  return code;
}

/* Runs the solver that the caller asked for, or all of them in turn. */
static psplit_code close_gap(psplit_i_solver_state *a) {
  const solver_steps *asked = &STEPS[a->asked];
  psplit_code code = PSPLIT_OK;
  if (a->axis.n_buckets == 0 && a->instance.n > PSPLIT_I_LARGE) return code; /* no windows */
  if (asked->turns_alone == ALL_IN_TURN) return improve(a);
  for (uint64_t salt = 1; salt <= asked->turns_alone && !psplit_i_state_done(a); salt++)
    PSPLIT_TRY(asked->turn(a, &(psplit_i_turn){.salt = salt, .before = a->best.value}));
out:
  return code;
}

/* What keeps value and bound apart in the end. */
static const char *why_open(const psplit_i_solver_state *a) {
  const uint32_t features = a->automaton.features;
  if (STEPS[a->asked].turns_alone != ALL_IN_TURN) return "the solver asked for proves nothing";
  if (a->axis.n_buckets == 0 && a->instance.n > PSPLIT_I_LARGE)
    return "too large for the exact program";
  if (!psplit_i_takes(PSPLIT_I_SOLVER_EXACT, features))
    return "the exact program does not take replicas with pins or stashes on several kinds of "
           "device";
  if (a->undercounted && !psplit_i_takes(PSPLIT_I_RULE_WHOLE_LOADS, features))
    return "the exact program counts neither what stages pass on nor who sends to whom, and branch "
           "and bound has spent its steps or takes no more than a few nodes";
  if (a->full) return "the exact program has no memory left";
  if (psplit_i_expired(a->request->budget) || a->spent >= a->most) return "the time is spent";
  return "the gap that was asked for is reached";
}

/* What the run that allows no empty stages takes over from the one that allowed them. */
typedef struct carry_over {
  int64_t value;
  uint64_t spent;
  bool anneals_start; /* its split as well as the best one */
} carry_over;

/* One run of steps 1 to 5. With `from`, what an earlier run left: it starts from that and makes no
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
  PSPLIT_TRY(psplit_i_state_ask_all(&a, PSPLIT_I_AT_ONCE));
  PSPLIT_TRY(first_split(&a));
  if (strict && !psplit_i_all_stages_used(request, result)) {
    int64_t value;
    PSPLIT_TRY(psplit_i_fill_stages(strict, a.best.value, false, result, &value));
    *out_stopped = value >= PSPLIT_I_INF;
  }
  if (!*out_stopped) {
    const bool late = a.instance.n > PSPLIT_I_LARGE && psplit_i_expired(request->budget);
    if ((!from || psplit_i_pairs_count(&a.instance)) && !late)
      PSPLIT_TRY(psplit_i_state_reduce(&a, a.best.value, false, parent));
    PSPLIT_TRY(bounds(&a));
    if (soon_proved(&a) && !psplit_i_state_done(&a))
      PSPLIT_TRY(search_in_full(&a, from ? NULL : parent));
    PSPLIT_TRY(close_gap(&a));
    /* Smaller problems have ties broken from their own clusters: tie_breaking.c. */
    if (request->problem->n_nodes > PSPLIT_I_TIE_NODES)
      PSPLIT_TRY(psplit_i_ties_descend(
        &a, strict || a.automaton.all_used, 1,
        2 * (uint64_t)(a.instance.n + a.instance.net_off[a.instance.n_nets])));
  }
out:
  if (code == PSPLIT_INFEASIBLE && request->diag->code == PSPLIT_OK)
    code = psplit_i_state_explain(&a);
  else if (code == PSPLIT_UNSUPPORTED && request->diag->code == PSPLIT_OK)
    code = psplit_i_fail_about(request->diag, PSPLIT_INFEASIBLE, PSPLIT_I_HELPS(TIME_LIMIT),
                               "no split was found that satisfies memory limits and pins (that "
                               "there is none was not proved)");
  if (code == PSPLIT_OK) result->unproved = why_open(&a);
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
 * links if they matter, for one part in `share` of what is left of the budget. */
static psplit_code solve_relaxed(const psplit_i_solver_request *request,
                                 const psplit_problem *problem, bool links_matter, uint32_t share,
                                 psplit_i_result *out_result) {
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
  code = solve_relaxed(&quiet, &other, links_matter, SHARE, &result);
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
  if (code == PSPLIT_OK) code = psplit_i_state_ask_all(&a, PSPLIT_I_AT_ONCE);
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
  psplit_code code = solve_relaxed(request, request->problem, links_matter, 2, out_result);
  if (code == PSPLIT_OK && request->problem->message_ns) code = bound_at_once(request, &at_once);
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
  if (code != PSPLIT_OK || request->relaxed || STEPS[asked].turns_alone != ALL_IN_TURN) return code;
  return psplit_i_ties_break(request, out_result);
}
