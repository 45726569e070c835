/* Runs the solvers of contiguous throughput in turn, with the bounds between them. */
#include "portfolio.h"

#include "assignment.h"
#include "budget.h"
#include "chain.h"
#include "exact.h"
#include "feasible.h"
#include "heavy_nodes.h"
#include "multilevel.h"
#include "nested.h"
#include "problem.h"
#include "proposals.h"
#include "result.h"
#include "span_row.h"
#include "two_stages.h"
#include "weight_axis.h"

/* Of the value. */
static const double SMALL_GAP = 5e-4;

enum {
  MOST_IDLE = 4,    /* rounds of search that bring nothing */
  MOST_PARTS = 16,  /* of the gap: no limit is nearer to the bound than one of them */
  FEW_PARTS = 4,    /* the same the first time that an exact program gets far */
  WIDE_GAP = 50,    /* a wide gap is more than one of so many parts of the value */
  SMALL_GAIN = 16,  /* a small gain is less than one of so many parts of the gap */
  PRICED_STEPS = 2, /* times the steps of a run in which prices rule out labels */
  FAR_STEPS = 4,    /* times the steps of an exact program that gets far */
  LITTLE = 1000,    /* a gap of more than one of so many parts of the value is halved */
  FEW_GAINS = 4,    /* half of the gap is asked unless so many small gains would close it */
  FEW_IMPROVED = 3, /* runs of the exact program that may improve the value by little each */
  BOUNDS_PART = 16, /* of the time that annealing leaves to them where it comes first */
  SOON = 1 << 16,   /* steps of the exact program behind the first few orders */
  /* Where messages count, of so many clusters, it has up to so many times these steps for a run,
   * before the annealing: four times as many again and again, and up to so many runs of each. */
  FEW_CLUSTERS = 128,
  SOON_TIMES = 16,
  SOON_RUNS = 16,
  SOON_PART = 8, /* if it gets through more than one of so many parts of the stages */
  FEW_STAGES = 4 /* those that nested boundaries divide */
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
  return psplit_i_state_run_bounds(a, PSPLIT_I_WHERE_STUCK);
}

/* Where the exact program is undecided, or dear: bounds that take longer. Where it gets far and
 * much is open, limits between bound and value as well, once, and more steps from now on. */
static psplit_code go_deeper(psplit_i_solver_state *a) {
  psplit_code code = psplit_i_state_run_late_bounds(a);
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
  if (psplit_i_state_stuck(a)) return psplit_i_state_run_late_bounds(a);
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

/* What has just been put together has no better orders near it: there is most to gain from
 * annealing that, and little time is left. */
static psplit_code search_on(psplit_i_solver_state *a, psplit_i_turn *turn) {
  if (a->anneals_high && a->best.value < turn->before) return PSPLIT_OK;
  return psplit_i_state_search(a, 8, psplit_i_state_affords(a, PSPLIT_I_SEARCH_WORK, 8, 40),
                               turn->salt);
}

/* Where few clusters leave much open, annealing finds what no order near the best split has: it
 * comes before what puts whole stages together, which may take most of the time, and says more the
 * better the split is. Over pairs annealing was first. */
static psplit_code stages_by_price(psplit_i_solver_state *a, psplit_i_turn *turn) {
  psplit_code code = PSPLIT_OK;
  if (!a->stages_by_price && a->instance.n <= FEW_CLUSTERS && a->instance.n_stages > FEW_STAGES &&
      !psplit_i_pairs_count(&a->instance) && is_wide(a))
    PSPLIT_TRY(psplit_i_state_anneal_melted(a));
  PSPLIT_TRY(psplit_i_state_by_price(a, turn));
out:
  return code;
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

/* Where messages count, annealing takes seconds, and few steps of the exact program decide narrow
 * graphs, if they begin from a split that is good: that takes little annealing. */
static psplit_code decide_messages(psplit_i_solver_state *a) {
  psplit_code code = PSPLIT_OK;
  if (a->instance.n > FEW_CLUSTERS || a->request->is_start ||
      !psplit_i_exact_counts_messages(&a->instance, &a->automaton))
    return PSPLIT_OK;
  PSPLIT_TRY(psplit_i_state_anneal_briefly(a));
  for (uint64_t times = 1, runs = 0; times <= SOON_TIMES && !psplit_i_state_done(a); runs++) {
    psplit_i_verdict verdict; /* without windows, which would take longer */
    PSPLIT_TRY(psplit_i_state_exact(a, a->best.value - 1, times * SOON, &verdict));
    if (verdict == PSPLIT_I_YES && runs < SOON_RUNS) continue;
    if (a->last_rounds * SOON_PART <= a->instance.n_stages) break; /* more steps hardly end it */
    times *= 4;
    runs = 0;
  }
out:
  return code;
}

/* What is not decided so is annealed from where it was before: a split that little annealing leads
 * to is one that more of it does not get out of. The better of the two counts. */
static psplit_code decide_or_anneal(psplit_i_solver_state *a, psplit_i_assignment *start) {
  psplit_code code;
  psplit_i_assignment before, soon;
  const psplit_i_method before_by = a->result->solver;
  PSPLIT_TRY(psplit_i_assignment_init(&before, &a->instance, &a->arena));
  PSPLIT_TRY(psplit_i_assignment_init(&soon, &a->instance, &a->arena));
  psplit_i_assignment_copy(&before, &a->best, &a->instance);
  PSPLIT_TRY(decide_messages(a));
  if (psplit_i_state_done(a)) goto out;
  const psplit_i_method soon_by = a->result->solver;
  psplit_i_assignment_copy(&soon, &a->best, &a->instance);
  a->best.value = a->result->value = PSPLIT_I_INF; /* the split before is worse than the one now */
  psplit_i_state_take(a, &before, before_by);
  code = anneal_pairs(a, start);
  psplit_i_state_take(a, &soon, soon_by);
out:
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
    if (!psplit_i_state_done(a)) PSPLIT_TRY(psplit_i_state_search_anew(a, n_steps));
  }
  PSPLIT_TRY(psplit_i_state_search(a, 1, n_steps, 0));
  if (pairs && a->asked == PSPLIT_I_SOLVER_AUTO) PSPLIT_TRY(decide_or_anneal(a, &start));
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
  return psplit_i_state_runs_all(a) && a->instance.n <= PSPLIT_I_LARGE &&
         !psplit_i_pairs_count(&a->instance);
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
  return psplit_i_state_runs_all(a) ? psplit_i_state_cut_chain(a) : PSPLIT_OK;
}

static const solver_steps STEPS[PSPLIT_I_N_METHODS] = {
#define STRIP(...) __VA_ARGS__
#define PSPLIT_I_SOLVER(id, name, may_be_asked, does, stages, placement) \
  [PSPLIT_I_SOLVER_##id] = {STRIP stages},
#include "methods.def"
#undef STRIP
};

psplit_code psplit_i_portfolio_first(psplit_i_solver_state *a) {
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
  /* Without windows nothing is proved to the last bit: for a smaller gap than this, the seconds
   * that the bound takes would be lost. */
  bool windows;
  psplit_code code = psplit_i_weight_axis_has_windows(&a->instance, &windows);
  if (code != PSPLIT_OK ||
      (!windows && (double)(a->best.value - a->result->bound) <= SMALL_GAP * (double)a->best.value))
    return code;
  code = psplit_i_state_run_bounds(a, PSPLIT_I_WITH_A_SPLIT);
  /* No solver behind them decides large graphs, or would be asked before those. */
  const bool late = a->instance.n > PSPLIT_I_LARGE && !psplit_i_state_done(a);
  return code == PSPLIT_OK && late ? psplit_i_state_run_late_bounds(a) : code;
}

/* Of a start whose bounds say less than is known without it the split counts alone; and where
 * annealing gets to from that does not hang on how much search it had. Few clusters may be decided
 * yet. */
static bool is_good_enough(const psplit_i_solver_state *a) {
  return a->result->bound < a->request->known && a->instance.n > FEW_CLUSTERS;
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
      PSPLIT_TRY(psplit_i_state_run_bound(a, PSPLIT_I_BOUND_WEIGHT_AXIS));
    if (psplit_i_state_done(a)) break;
    for (uint32_t i = 0; i < PSPLIT_I_N_METHODS && !turn.again; i++) {
      if (STEPS[i].turn) PSPLIT_TRY(STEPS[i].turn(a, &turn));
      if (i == PSPLIT_I_SOLVER_EXACT && !turn.again && is_good_enough(a)) return PSPLIT_OK;
    }
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
  PSPLIT_TRY(psplit_i_state_search_anew(a, first_steps(a)));
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

psplit_code psplit_i_portfolio_close(psplit_i_solver_state *a, uint32_t *parent) {
  psplit_code code;
  PSPLIT_TRY(bounds(a));
  if (soon_proved(a) && !psplit_i_state_done(a)) PSPLIT_TRY(search_in_full(a, parent));
  code = close_gap(a);
out:
  return code;
}

bool psplit_i_portfolio_proves(psplit_i_method solver) {
  return STEPS[solver].turns_alone == ALL_IN_TURN;
}

const char *psplit_i_portfolio_why_open(const psplit_i_solver_state *a) {
  const uint32_t features = a->automaton.features;
  if (!psplit_i_portfolio_proves(a->asked)) return "the selected solver proves nothing";
  if (a->axis.n_buckets == 0 && a->instance.n > PSPLIT_I_LARGE)
    return "too large for the exact program";
  if (!psplit_i_takes(PSPLIT_I_SOLVER_EXACT, features))
    return "the exact program does not take replicas with pins or stashes on several kinds of "
           "device";
  if (a->undercounted && !psplit_i_takes(PSPLIT_I_RULE_WHOLE_LOADS, features))
    return "the exact program counts neither relays nor the sender of each message, and branch and "
           "bound has run out of steps or has too many nodes";
  if (a->full) return "the exact program has no memory left";
  if (psplit_i_expired(a->request->budget) || a->spent >= a->most) return "the time is spent";
  return "the requested gap is reached";
}
