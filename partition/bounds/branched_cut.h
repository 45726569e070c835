/* A lower bound on the cost of crossing a downset whose weight lies in a range, by branch and
 * bound. */
#ifndef PSPLIT_PARTITION_BRANCHED_CUT_H
#define PSPLIT_PARTITION_BRANCHED_CUT_H

#include "budget.h"
#include "closure.h"

typedef struct psplit_i_branched_query {
  const psplit_i_instance *instance;
  const psplit_i_closure *closure;
  const int64_t *weight; /* [n] */
  const int64_t *cost;   /* [n_nets] of crossing; 0: it is not counted */
  int64_t low, high;     /* the downset's weight */
  uint32_t n_branches;   /* at most */
} psplit_i_branched_query;

/* *out_least: no downset of such a weight is crossed by nets that cost less together; INF where
 * there is no such downset. A spent budget leaves less, in the end 0. A few minimum cuts a branch.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_branched_cut(const psplit_i_branched_query *query,
                                                  psplit_i_budget *budget, int64_t *out_least);

#endif
