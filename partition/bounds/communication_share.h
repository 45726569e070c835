/* A bound on any placement: each cluster adds its time and a share of the communication. */
#ifndef PSPLIT_PARTITION_COMMUNICATION_SHARE_H
#define PSPLIT_PARTITION_COMMUNICATION_SHARE_H

#include "automaton.h"
#include "budget.h"

/* Raises *inout_bound to what the devices need at least when every cluster's time counts with its
 * share of the communication (see there); valid for any placement, at most `limit`, the value of
 * one. A few minimum cuts for each cluster, over the threads; the same for any number. Errors:
 * NOMEM.
 */
PSPLIT_MUST_USE psplit_code psplit_i_communication_share_bound(
  const psplit_i_instance *instance, const psplit_i_automaton *automaton, int64_t limit,
  const psplit_partition_options *options, psplit_i_budget *budget, int64_t *inout_bound);

#endif
