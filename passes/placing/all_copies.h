/* The best plan with copies of a model of few nodes, by trying all. */
#ifndef PSPLIT_PASSES_ALL_COPIES_H
#define PSPLIT_PASSES_ALL_COPIES_H

#include "planner.h"

typedef struct psplit_i_all_copies {
  int64_t bound_ns;     /* no plan that sends directly is below; 0: it is not known */
  int64_t any_bound_ns; /* no plan is, whatever way tensors go; likewise */
  int64_t value_ns;     /* of the best that sends directly and is below; INT64_MAX: none is known */
  uint32_t *stage;      /* [n_nodes] of it; PSPLIT_NONE for nodes that are functions of constants */
  psplit_plan_copy *copies; /* without those nodes */
  size_t n_copies;
} psplit_i_all_copies;

/* Whether there are few enough nodes, and copies are asked for as the program has them. */
bool psplit_i_all_copies_apply(const psplit_planner *planner);

/* Plans that are below `below_ns`, without limits of memory, within a share of the planner's time
 * each. Finds nothing out where the program does not apply, or knows too little: links are of
 * several kinds, or there are many tensors. Arrays live in planner->arena; resets planner->scratch.
 * Errors: NOMEM, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_all_copies_find(psplit_planner *planner, int64_t below_ns,
                                                     double share, psplit_diag *diag,
                                                     psplit_i_all_copies *out);

#endif
