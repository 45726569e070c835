/* The heavy clusters of an instance alone, as a problem: a relaxation.
 *
 * Every split of the instance, read for those clusters only, is a split of the problem in which no
 * stage takes longer. So no split of the instance is faster than the best one of the problem; and
 * as a few clusters often do most of the work, that is soon found. */
#ifndef PSPLIT_PARTITION_HEAVY_H
#define PSPLIT_PARTITION_HEAVY_H

#include "closure.h"

typedef struct psplit_i_heavy {
  psplit_problem problem;
  uint32_t n_kept;   /* the first nodes of the problem are clusters that are left, ascending */
  uint32_t *cluster; /* [n_kept] of the instance */
  int64_t slack;     /* no split of the instance is faster than the best of the problem by more */
} psplit_i_heavy;

/* Leaves out the lightest clusters, with at most the part `light` (0 to 1) of all that is computed;
 * with `take_over` some of that stays with others, where tensors pay for it, and for light = 0 all
 * clusters are left out whose work others may take over whole.
 * What is known of the others is kept: the order that leads through what is left out, and of
 * tensors that lead through it no more than what any split pays. Work that is left out between the
 * same heaviest clusters is a fluid: a row of small nodes behind those that are kept. For instances
 * all of whose nets run ahead, over links that are alike and without messages. `arena` owns the
 * problem, but for its devices' names. O((edges + n) * n / 64 + nets * n / 64). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_heavy_make(const psplit_i_instance *instance,
                                                const psplit_i_closure *closure, double light,
                                                bool take_over, psplit_i_arena *arena,
                                                psplit_i_budget *budget, psplit_i_heavy *out);

#endif
