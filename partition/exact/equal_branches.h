/* Symmetry: branches whose clusters can be exchanged without changing the load of any stage in any
 * split. Some best split has them in order, so the exact program need not try the other orders. */
#ifndef PSPLIT_PARTITION_EQUAL_BRANCHES_H
#define PSPLIT_PARTITION_EQUAL_BRANCHES_H

#include "automaton.h"
#include "budget.h"
#include "instance.h"

/* Order edges of an instance with those between equal branches. */
typedef struct psplit_i_equal_branches {
  uint32_t n;       /* clusters of the instance that it was asked for; 0: of none */
  uint32_t n_edges; /* between equal branches */
  uint32_t *pred_off, *pred, *succ_off, *succ;
} psplit_i_equal_branches;

/* Of `instance`, where links are alike, in the arena. n_edges stays 0 where the budget does not
 * suffice, too. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_equal_branches_make(const psplit_i_instance *instance,
                                                         psplit_i_budget *budget,
                                                         psplit_i_arena *arena,
                                                         psplit_i_equal_branches *out);
/* For a run of the exact program: *out is the instance with these edges, which owns nothing, or
 * `instance` as it is where that has many clusters, or no rule lets equal branches be in order.
 * *io_known: what was found before, or 0. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_equal_branches_apply(
  const psplit_i_instance *instance, const psplit_i_automaton *automaton, psplit_i_budget *budget,
  psplit_i_arena *arena, psplit_i_equal_branches *io_known, psplit_i_instance *out);

#endif
