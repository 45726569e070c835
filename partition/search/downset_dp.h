/* The best split whose stages lie between downsets of a given set, by dynamic programming. */
#ifndef PSPLIT_PARTITION_DOWNSET_DP_H
#define PSPLIT_PARTITION_DOWNSET_DP_H

#include "downsets.h"

/* Of splits each stage of which is I \ J, for downsets J in I of the set, with no load above
 * `limit`, one with a small bottleneck, and among these with a small sum of high powers of loads;
 * value INF: none was found, or the budget is spent. No split of up to four stages from the set has
 * a smaller bottleneck, where tensors have one receiver or are sent to all at once; else a stage
 * counts the receivers of the best that was found behind it. Of more stages none may compute much
 * less than the mean. Devices alike or not, in their order or in any; not with pins, memory,
 * replicas, messages, links between pairs, or nets that run back. scratch[n_stages * 5]. Errors:
 * NOMEM. O(pairs of downsets between which a stage may lie * (words + nets that leave them)). */
PSPLIT_MUST_USE psplit_code psplit_i_downset_dp(const psplit_i_instance *instance,
                                                const psplit_i_automaton *automaton,
                                                const psplit_i_downsets *set, int64_t limit,
                                                psplit_i_budget *budget, int64_t *scratch,
                                                psplit_i_assignment *out_assignment);

#endif
