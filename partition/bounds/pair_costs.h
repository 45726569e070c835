/* A problem's nets as costs of pairs of clusters that share a net; no split pays less than the
 * costs of its cut pairs. */
#ifndef PSPLIT_PARTITION_PAIR_COSTS_H
#define PSPLIT_PARTITION_PAIR_COSTS_H

#include "bounds.h"
#include "cluster_vectors.h"

/* Powers of two: what 1 stands for. */
typedef struct psplit_i_pair_units {
  double weight, cost;
} psplit_i_pair_units;

/* Whether costs of pairs give a bound for the query: devices are alike and pay for transfers. */
bool psplit_i_pairs_suit(const psplit_i_bound_query *query);
/* Pairs in the arena, with limit as the most that a part may weigh; weights and costs may be of one
 * unit, and small nets are told then. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_make(const psplit_i_bound_query *query, int64_t limit,
                                                bool one_unit, psplit_i_arena *arena,
                                                psplit_i_pairs *out,
                                                psplit_i_pair_units *out_units);

#endif
