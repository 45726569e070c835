/* A bound on latency: chains of stages that wait for one another. */
#ifndef PSPLIT_PARTITION_LATENCY_CHAIN_H
#define PSPLIT_PARTITION_LATENCY_CHAIN_H

#include "automaton.h"
#include "budget.h"

/* Raises *inout_bound to the time that a chain of clusters takes one after the other: a bound on
 * the latency of contiguous splits of `instance`, which has edges. `pool`: the type of a device
 * without stages, such as CPUs with a core for each node, which runs any number of nodes at once
 * (calls/schedule.h); NONE: there is none. A spent budget leaves the bound weaker. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_latency_chain_bound(const psplit_i_instance *instance,
                                                         const psplit_i_automaton *automaton,
                                                         uint32_t pool, psplit_i_budget *budget,
                                                         int64_t *inout_bound);

#endif
