/* A bound on any placement: each cluster adds its time and a share of the communication. */
#ifndef PSPLIT_PARTITION_COMMUNICATION_SHARE_H
#define PSPLIT_PARTITION_COMMUNICATION_SHARE_H

#include "automaton.h"
#include "budget.h"

/* Raises *inout_bound, up to `limit` (the value of a placement), to the least load with which the
 * devices can take all clusters, where each cluster's time is increased by its share of the
 * communication. Valid for any placement. A few minimum cuts per cluster, in parallel; the same
 * result for any number of threads. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_communication_share_bound(
  const psplit_i_instance *instance, const psplit_i_automaton *automaton, int64_t limit,
  const psplit_partition_options *options, psplit_i_budget *budget, int64_t *inout_bound);

#endif
