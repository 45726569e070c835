/* The optimal plan with copied nodes for models of few nodes, by exhaustive search. */
#ifndef PSPLIT_PASSES_ALL_COPIES_H
#define PSPLIT_PASSES_ALL_COPIES_H

#include "planner.h"

typedef struct psplit_i_all_copies {
  int64_t bound_ns;     /* lower bound on plans that send tensors directly; 0: unknown */
  int64_t any_bound_ns; /* lower bound on all plans, with any routes; 0: unknown */
  /* of the best plan below the limit that sends directly; INT64_MAX: none is known */
  int64_t value_ns;
  /* [n_nodes] its stages; PSPLIT_NONE for nodes that are functions of constants */
  uint32_t *stage;
  psplit_plan_copy *copies; /* its copies, without those nodes */
  size_t n_copies;
} psplit_i_all_copies;

/* Whether there are few enough nodes, and the exact program supports the planner's options. */
bool psplit_i_all_copies_apply(const psplit_planner *planner);

/* Looks for plans below `below_ns`, ignoring memory limits, in two runs that each get `share` of
 * the planner's time. Leaves the bounds unknown if the program does not apply, if links are of
 * several kinds, or if there are too many tensors. Arrays live in planner->arena. Resets
 * planner->scratch. Errors: NOMEM, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_all_copies_find(psplit_planner *planner, int64_t below_ns,
                                                     double share, psplit_diag *diag,
                                                     psplit_i_all_copies *out);

#endif
