/* Iterated local search over topological orders. */
#ifndef PSPLIT_PARTITION_LOCAL_SEARCH_H
#define PSPLIT_PARTITION_LOCAL_SEARCH_H

#include "assignment.h"
#include "budget.h"

typedef struct psplit_i_local_search_options {
  uint64_t seed;
  uint32_t n_threads, n_rounds, n_steps; /* rounds of n_steps per chain */
  uint32_t n_chains;                     /* 0: eight, the most */
  int64_t target;                        /* stop when value <= target */
  psplit_i_budget *budget;               /* NULL: no limit */
  uint64_t *out_orders;                  /* orders tried, at most; may be NULL */
} psplit_i_local_search_options;

/* Iterated local search over topological orders, from *assignment when it has a value. Improves
 * *assignment. The same for any number of threads. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_local_search(const psplit_i_instance *instance,
                                                  const psplit_i_automaton *automaton,
                                                  const psplit_i_local_search_options *options,
                                                  psplit_i_assignment *assignment);

#endif
