/* Topological orders, and their division into segments of even weight, by which graphs of any size
 * become small ones. */
#ifndef PSPLIT_PARTITION_SEGMENTS_H
#define PSPLIT_PARTITION_SEGMENTS_H

#include "instance.h"

/* Kinds of topological orders. */
enum {
  PSPLIT_I_BY_ID = 0,        /* ids are one */
  PSPLIT_I_FROM_SOURCES = 1, /* depth first */
  PSPLIT_I_FROM_SINKS = 2    /* depth first against the edges, from the last place on */
};

/* out_order[n]: a topological order of that kind. The depth-first ones keep branches together: of
 * the clusters that may come next, the one that became ready last does. left[n] and stack[n]:
 * scratch. O(n + edges). */
void psplit_i_topological_order(const psplit_i_instance *instance, uint32_t kind, uint32_t *left,
                                uint32_t *stack, uint32_t *out_order);

/* Cuts an order into about n_segments of equal weight; weight[n] >= 1 sums to `total`. A cluster
 * with a pin is a segment of its own. out_segment[n] is the number of a cluster's segment; returns
 * how many there are. O(n). */
uint32_t psplit_i_even_segments(const psplit_i_instance *instance, const uint32_t *order,
                                const int64_t *weight, int64_t total, uint32_t n_segments,
                                uint32_t *out_segment);

#endif
