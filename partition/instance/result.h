/* What a solver is asked for (the request) and what it returns (the result). */
#ifndef PSPLIT_PARTITION_RESULT_H
#define PSPLIT_PARTITION_RESULT_H

#include "assignment.h"
#include "budget.h"
#include "methods.h"

/* What a solver hands back, by node; checked and reported in solve.c. */
typedef struct psplit_i_result {
  uint32_t *stage, *chunk;     /* [n_nodes] */
  uint32_t *device, *replicas; /* [n_stages] */
  int64_t value, bound; /* of the best split so far, INF: none; no split is below the bound */
  psplit_i_method solver, bound_by; /* whose they are */
  const char *unproved; /* what stopped the solvers before value and bound met; static text */
  bool ties_proved;     /* if `bound` is reached, the split is the only one (tie_breaking.c) */
} psplit_i_result;

typedef struct psplit_i_solver_request {
  const psplit_problem *problem;
  const psplit_partition_options *options;
  psplit_i_budget *budget;
  psplit_i_arena *arena; /* owns the result */
  psplit_diag *diag;
  bool relaxed;  /* a relaxation of another: nothing is left out again, and ties stay as they are */
  bool is_start; /* its split is where another search begins, which counts more */
  int64_t enough; /* of a relaxation: a split of no more shows that it says nothing new; or 0 */
  int64_t known;  /* of a start: a bound that there is without it, or 0; below that only its split
                     counts */
} psplit_i_solver_request;

/* No split, and the bound 0. Arrays live in request->arena. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_result_init(psplit_i_result *result,
                                                 const psplit_i_solver_request *request);
/* The one place that raises a bound, in the name of who proved it. */
void psplit_i_result_raise(psplit_i_result *result, int64_t bound, psplit_i_method by);
/* The one place that says who found the best split: takes note of a value, if it is better; whether
 * it is. */
bool psplit_i_result_improve(psplit_i_result *result, int64_t value, psplit_i_method by);
/* Sets the result, by node, from an assignment of an instance of the request's problem. */
void psplit_i_result_take(psplit_i_result *result, const psplit_i_instance *instance,
                          const psplit_i_assignment *assignment);
/* Sets an assignment from the result, and evaluates it. The nodes of a cluster must share a
 * stage. */
void psplit_i_result_give(const psplit_i_result *result, const psplit_i_instance *instance,
                          const psplit_i_automaton *automaton, psplit_i_assignment *assignment,
                          int64_t *scratch);

/* Gives a checked solution the result's bound, and says whether that proves it. Errors: INTERNAL,
 * where the bound is above the value of this very split. That is tested in every build: else a bug
 * would look like a proof. */
PSPLIT_MUST_USE psplit_code psplit_i_result_prove(const psplit_i_result *result,
                                                  psplit_solution *io_solution, psplit_diag *diag);

#endif
