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

/* *out_least: a lower bound on the cost of the nets that cross a downset of such a weight; INF if
 * there is no such downset. The less budget, the lower the bound, at least 0. A few minimum cuts
 * per branch. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_branched_cut(const psplit_i_branched_query *query,
                                                  psplit_i_budget *budget, int64_t *out_least);

#endif
