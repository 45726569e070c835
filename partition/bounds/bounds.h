/* The table of bounds: the query that each of them answers, and the one function that runs a bound
 * and raises the result with it. */
#ifndef PSPLIT_PARTITION_BOUNDS_H
#define PSPLIT_PARTITION_BOUNDS_H

#include "methods.h"
#include "result.h"
#include "weight_axis.h"

enum { PSPLIT_I_LARGE = 6000 }; /* clusters above which orders are too long to search whole */

/* What is split, as bits: bounds differ by it. */
typedef enum psplit_i_variant {
  PSPLIT_I_STAGES = 1,    /* throughput of contiguous stages, one of each device */
  PSPLIT_I_PLACEMENT = 2, /* throughput of chunks or of free placement */
  PSPLIT_I_LATENCY = 4
} psplit_i_variant;

typedef enum psplit_i_bound_time {
  PSPLIT_I_AT_ONCE = 1,  /* before any split is known */
  PSPLIT_I_WITH_A_SPLIT, /* when a first one is */
  PSPLIT_I_AFTER_SEARCH,
  PSPLIT_I_LATE,       /* when those are */
  PSPLIT_I_WHERE_STUCK /* where much is open when all solvers have had their turn */
} psplit_i_bound_time;

/* What is known when a bound is asked. */
typedef struct psplit_i_bound_query {
  const psplit_i_solver_request *request;
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  psplit_i_variant variant;
  int64_t value;              /* of the best split known; INF: none */
  int64_t throughput_bound;   /* of latency: on contiguous throughput; 0: unknown */
  psplit_i_weight_axis *axis; /* of stages: the weight axis' tables are made anew there */
} psplit_i_bound_query;

/* What the options ask for. */
psplit_i_variant psplit_i_variant_of(const psplit_partition_options *options);

/* Whether the method is a bound for the query's variant that is to run now. */
bool psplit_i_bound_is_due(psplit_i_method method, const psplit_i_bound_query *query,
                           psplit_i_bound_time when);
/* Runs a bound, charges the request's budget for it, and raises result->bound in its name. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_bound_run(psplit_i_method method,
                                               const psplit_i_bound_query *query,
                                               psplit_i_result *result);

/* Each raises *inout_bound to a lower bound on all splits, as far as the budget allows. Errors:
 * NOMEM. */
#define PSPLIT_I_BOUND(id, name, does, of, when, share, rate, run)                    \
  PSPLIT_MUST_USE psplit_code psplit_i_bound_##run(const psplit_i_bound_query *query, \
                                                   psplit_i_budget *budget, int64_t *inout_bound);
#include "methods.def"

#endif
