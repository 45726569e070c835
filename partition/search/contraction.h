/* Contracts an instance: each cluster of the result stands for several clusters. */
#ifndef PSPLIT_PARTITION_CONTRACTION_H
#define PSPLIT_PARTITION_CONTRACTION_H

#include "instance.h"

/* Instance of aggregates of `instance`'s clusters. aggregate[n] < n_aggregates, and never decreases
 * along an edge: aggregates are numbered topologically. Splits of it are splits of `instance` with
 * the same loads. O((n + pins) log pins). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_contract(const psplit_i_instance *instance,
                                              const uint32_t *aggregate, uint32_t n_aggregates,
                                              psplit_i_instance *out_instance);

#endif
