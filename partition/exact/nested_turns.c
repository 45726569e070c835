/* When nested boundaries are asked, and for how much of the budget. Branches say little as long as
 * the best value known is a few percent above the best there is: where the first turn does not come
 * near, search has its turn before they go on. */
#include "assignment.h"
#include "budget.h"
#include "nested.h"
#include "problem.h"
#include "result.h"

enum {
  SOON_PART = 16,     /* of the budget, one of so many parts in the first turn, */
  NEAR = 20,          /* then, where one of so many parts of the value or less is open, */
  NEAR_PART = 4,      /* so much of what is left, if search may come next, */
  NEXT_PART = 2,      /* else so much; or late */
  LOOK_PART = 8,      /* behind search, and, where that says more than all other bounds, */
  LEAVE_PART = 3,     /* all but one of so many parts */
  WIDE_GAP = 50,      /* search comes first where more than one of so many parts is open, */
  FAR = 5,            /* but by the branches themselves no more than so much, */
  MOST_CLUSTERS = 512 /* of so many clusters at most */
};

/* One of so many parts of what is left. */
static psplit_i_budget part_of(const psplit_i_solver_state *a, uint32_t n) {
  return psplit_i_budget_share(a->request->budget, n);
}

/* All but one of so many parts. */
static psplit_i_budget all_but(const psplit_i_solver_state *a, uint32_t n) {
  psplit_i_budget part = part_of(a, 1);
  psplit_i_budget_hold_back(&part, n);
  return part;
}

static psplit_code go_on(psplit_i_solver_state *a, psplit_i_budget part) {
  int64_t least;
  psplit_code code = PSPLIT_OK;
  if (!psplit_i_state_asks_all(a) || psplit_i_state_done(a) || a->best.value >= PSPLIT_I_INF ||
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

/* Whether more than one of so many parts of the value is above a bound. */
static bool is_open(const psplit_i_solver_state *a, int64_t bound, int64_t part) {
  return a->best.value - bound > a->best.value / part;
}

static bool says_most(const psplit_i_solver_state *a) {
  return a->result->bound_by == PSPLIT_I_SOLVER_NESTED;
}

/* Where that does not say most, others have their turns again. */
static psplit_code go_on_behind_search(psplit_i_solver_state *a) {
  psplit_code code = says_most(a) ? PSPLIT_OK : go_on(a, part_of(a, LOOK_PART));
  a->in_turns = says_most(a);
  return code == PSPLIT_OK && a->in_turns ? go_on(a, all_but(a, LEAVE_PART)) : code;
}

psplit_code psplit_i_nested_turn(psplit_i_solver_state *a, psplit_i_turn *turn) {
  if (turn->salt > 1) return a->in_turns ? go_on_behind_search(a) : PSPLIT_OK;
  psplit_i_assignment_copy(&a->before_nested, &a->best, &a->instance);
  psplit_code code = go_on(a, part_of(a, SOON_PART));
  const bool near = says_most(a) && !is_open(a, a->result->bound, NEAR);
  const bool may_wait = a->nested && !a->request->relaxed && a->stuck_asked &&
                        a->instance.n <= MOST_CLUSTERS && !is_open(a, a->nested_least, FAR);
  if (code == PSPLIT_OK && near) code = go_on(a, part_of(a, may_wait ? NEAR_PART : NEXT_PART));
  a->in_turns = may_wait && (near || is_open(a, a->result->bound, WIDE_GAP));
  return code;
}

psplit_code psplit_i_nested_late(psplit_i_solver_state *a, psplit_i_turn *turn) {
  (void)turn;
  return a->in_turns ? go_on_behind_search(a) : go_on(a, part_of(a, NEXT_PART));
}
