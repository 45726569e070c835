/* Schedules the branch and bound over nested boundaries, and its part of the budget. Its bounds say
 * little while the incumbent is a few percent above the optimum. So if the first run does not come
 * near, the search runs before it continues. */
#include "assignment.h"
#include "budget.h"
#include "nested.h"
#include "problem.h"
#include "result.h"

enum {
  /* Turns: one of so many parts of what is left of the budget. */
  SOON_PART = 16, /* the first turn */
  NEAR_PART = 4,  /* a second one at once, where the value is near and search may come next */
  ALONE_PART = 2, /* the same where search does not come next; and late, when no turn has helped */
  LOOK_PART = 8,  /* behind search, to see whether branches say more than all other bounds */
  LEAVE_PART = 3, /* where they do, the turn has all but this part */
  /* What is open: more than one of so many parts of the value. */
  NEAR_GAP = 20,      /* no more: the value is near */
  WIDE_GAP = 50,      /* more: search comes next, in turns with branches, */
  FAR_GAP = 5,        /* unless it is more than this by what branches alone say */
  MOST_CLUSTERS = 512 /* of a problem in which search may come next */
};

/* An n-th of the remaining budget. */
static psplit_i_budget part_of(const psplit_i_solver_state *a, uint32_t n) {
  return psplit_i_budget_share(a->request->budget, n);
}

/* The remaining budget without an n-th. */
static psplit_i_budget all_but(const psplit_i_solver_state *a, uint32_t n) {
  psplit_i_budget part = part_of(a, 1);
  psplit_i_budget_hold_back(&part, n);
  return part;
}

static psplit_code go_on(psplit_i_solver_state *a, psplit_i_budget part) {
  int64_t least;
  psplit_code code = PSPLIT_OK;
  if (!psplit_i_state_runs_all(a) || psplit_i_state_done(a) || a->best.value >= PSPLIT_I_INF ||
      !psplit_i_nested_takes(&a->instance, &a->automaton))
    return PSPLIT_OK;
  if (!a->nested) code = psplit_i_nested_create(&a->instance, &a->automaton, &part, &a->nested);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->request->diag);
  psplit_i_assignment_copy(&a->trial, &a->best, &a->instance);
  code = psplit_i_nested_run(a->nested, &a->automaton, a->request->options->gap_frac, &part,
                             a->scratch, &a->trial, &least);
  psplit_i_spend(a->request->budget, part.spent);
  if (code != PSPLIT_OK) return psplit_i_nomem(a->request->diag);
  psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_NESTED);
  a->nested_least = least;
  psplit_i_result_raise(a->result, least, PSPLIT_I_SOLVER_NESTED);
  return PSPLIT_OK;
}

/* Whether the gap between the value and a bound is more than a given part of the value. */
static bool is_open(const psplit_i_solver_state *a, int64_t bound, int64_t part) {
  return a->best.value - bound > a->best.value / part;
}

static bool says_most(const psplit_i_solver_state *a) {
  return a->result->bound_by == PSPLIT_I_SOLVER_NESTED;
}

/* If this method has not the best bound, others have their turns again. */
static psplit_code go_on_behind_search(psplit_i_solver_state *a) {
  psplit_code code = says_most(a) ? PSPLIT_OK : go_on(a, part_of(a, LOOK_PART));
  a->in_turns = says_most(a);
  return code == PSPLIT_OK && a->in_turns ? go_on(a, all_but(a, LEAVE_PART)) : code;
}

psplit_code psplit_i_nested_turn(psplit_i_solver_state *a, psplit_i_turn *turn) {
  if (turn->salt > 1) return a->in_turns ? go_on_behind_search(a) : PSPLIT_OK;
  psplit_i_assignment_copy(&a->before_nested, &a->best, &a->instance);
  psplit_code code = go_on(a, part_of(a, SOON_PART));
  const bool near = says_most(a) && !is_open(a, a->result->bound, NEAR_GAP);
  const bool may_wait = a->nested && !a->request->relaxed && a->stuck_asked &&
                        a->instance.n <= MOST_CLUSTERS && !is_open(a, a->nested_least, FAR_GAP);
  if (code == PSPLIT_OK && near) code = go_on(a, part_of(a, may_wait ? NEAR_PART : ALONE_PART));
  a->in_turns = may_wait && (near || is_open(a, a->result->bound, WIDE_GAP));
  return code;
}

psplit_code psplit_i_nested_late(psplit_i_solver_state *a, psplit_i_turn *turn) {
  (void)turn;
  return a->in_turns ? go_on_behind_search(a) : go_on(a, part_of(a, ALONE_PART));
}
