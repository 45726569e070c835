/* The request to a solver, and its result. */
#ifndef PSPLIT_PARTITION_RESULT_H
#define PSPLIT_PARTITION_RESULT_H

#include "assignment.h"
#include "budget.h"
#include "methods.h"

/* The result of a solver, by node; solve.c checks and reports it. */
typedef struct psplit_i_result {
  uint32_t *stage, *chunk;     /* [n_nodes] */
  uint32_t *device, *replicas; /* [n_stages] */
  /* value of the best split so far, INF: none; and a lower bound on all splits */
  int64_t value, bound;
  psplit_i_method solver, bound_by; /* the methods that found the split and proved the bound */
  const char *unproved; /* what stopped the solvers before bound and value met; static text */
  /* if the value equals the bound, the split is the only one (tie_breaking.c) */
  bool ties_proved;
} psplit_i_result;

typedef struct psplit_i_solver_request {
  const psplit_problem *problem;
  const psplit_partition_options *options;
  psplit_i_budget *budget;
  psplit_i_arena *arena; /* owns the result */
  psplit_diag *diag;
  /* a relaxation of another problem, which is not relaxed again, and whose ties are not broken */
  bool relaxed;
  /* the split is where another search starts, so a good split matters more than a bound */
  bool is_start;
  /* of a relaxation: a split of at most this value shows that the relaxation proves nothing new; or
   * 0 */
  int64_t enough;
  /* of a start: a bound that is known without it, or 0; below that only its split matters */
  int64_t known;
} psplit_i_solver_request;

/* No split, and bound 0. Arrays live in request->arena. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_result_init(psplit_i_result *result,
                                                 const psplit_i_solver_request *request);
/* The only function that raises a bound; `by` is the method that proved it. */
void psplit_i_result_raise(psplit_i_result *result, int64_t bound, psplit_i_method by);
/* The only function that records who found the best split: takes a value if it is better, and
 * returns whether it is. */
bool psplit_i_result_improve(psplit_i_result *result, int64_t value, psplit_i_method by);
/* Sets the result, by node, from an assignment of an instance of the request's problem. */
void psplit_i_result_take(psplit_i_result *result, const psplit_i_instance *instance,
                          const psplit_i_assignment *assignment);
/* Sets an assignment from the result, and evaluates it. The nodes of a cluster must share a
 * stage. */
void psplit_i_result_give(const psplit_i_result *result, const psplit_i_instance *instance,
                          const psplit_i_automaton *automaton, psplit_i_assignment *assignment,
                          int64_t *scratch);

/* Sets the bound of a checked solution, and whether it proves the solution optimal. Errors:
 * INTERNAL if the bound is above the value of this split. This is tested in every build, since such
 * a bug would otherwise look like a proof. */
PSPLIT_MUST_USE psplit_code psplit_i_result_prove(const psplit_i_result *result,
                                                  psplit_solution *io_solution, psplit_diag *diag);

#endif
