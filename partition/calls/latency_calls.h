/* Latency as a problem of calls (schedule.h) in which CPUs are called like all devices, and
 * computes one node after the other: a stage is a call. */
#ifndef PSPLIT_PARTITION_CALLS_LATENCY_CALLS_H
#define PSPLIT_PARTITION_CALLS_LATENCY_CALLS_H

#include "automaton.h"
#include "result.h"

/* A split by node: stages in order, and the entry of each stage's device. */
typedef struct psplit_i_latency_split {
  int64_t value;          /* INF: there is none */
  uint32_t *stage, *type; /* [nodes], [stages] */
} psplit_i_latency_split;

/* Raises *inout_bound to what no split of request->problem takes less than, at most the latency of
 * the best one so far (INF: there is none; stage NULL: no more is known of it); out_split: what was
 * found on the way that takes less, where the order of devices is free, without pins and stashes.
 * Nothing happens where the rule does not take the problem, or it has more nodes than are told
 * apart. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_latency_calls(const psplit_i_solver_request *request,
                                                   const psplit_i_automaton *automaton,
                                                   const psplit_i_latency_split *best,
                                                   int64_t *inout_bound,
                                                   psplit_i_latency_split *out_split);

#endif
