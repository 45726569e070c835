/* The pricing problem of column generation: the largest total price of a stage whose load is within
 * a limit, where every cluster has a price. Solved by dynamic programming over an elimination
 * order of the clusters, since the graphs of most models have small treewidth.
 *
 * A stage is what lies between two downsets, so each cluster is before it, in it or behind it, and
 * no consumer of a tensor comes before its producer. The cluster with the fewest neighbours is
 * eliminated first; a table keeps, for each placement of the neighbours that remain, which loads
 * reach which total prices. */
#ifndef PSPLIT_PARTITION_PRICING_H
#define PSPLIT_PARTITION_PRICING_H

#include "budget.h"
#include "instance.h"

/* a price of 1 in fixed point; the sum of all prices is below 2^31 */
enum { PSPLIT_I_PRICING_ONE = 1 << 22 };

/* sides: where a cluster lies relative to a stage */
enum { PSPLIT_I_BEFORE, PSPLIT_I_INSIDE, PSPLIT_I_BEHIND };

typedef struct psplit_i_pricing psplit_i_pricing;

/* The largest number of receivers of the net for which a stage may pay; 1 if its receivers have no
 * price. */
uint32_t psplit_i_pricing_receivers(const psplit_i_instance *instance, uint32_t net);

/* Prepares the problem, for instances whose nets are all forward and whose devices are alike. *out
 * is NULL if the graph is too wide. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pricing_make(const psplit_i_instance *instance,
                                                  psplit_i_budget *budget, psplit_i_pricing **out);
/* The same for psplit_i_pricing_above() and its traces only. Counts more of the nets with many
 * pins, which psplit_i_pricing_make() leaves out to keep complete tables small. */
PSPLIT_MUST_USE psplit_code psplit_i_pricing_make_wide(const psplit_i_instance *instance,
                                                       psplit_i_budget *budget,
                                                       psplit_i_pricing **out);
/* A generous estimate of the operations that psplit_i_pricing_most() charges if `most` is given. */
uint64_t psplit_i_pricing_ops(psplit_i_pricing *pricing, uint32_t n_parts);
void psplit_i_pricing_free(psplit_i_pricing *pricing);

/* *out_most is an upper bound on the value (total price) of a stage of load <= limit. It is exact
 * except that loads are rounded down to n_parts units per limit where lists grow long. receiver[e],
 * or NULL, is added to the value for each receiver of net e that the stage pays for, and subtracted
 * if the stage receives e; without it a net counts as one receiver. most[v], or NULL, is the same
 * bound for the stages that contain v: 0 where that is negative, and -1 if there is none. *out_done
 * is false if the budget ran out, and the other outputs are undefined then. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pricing_most(psplit_i_pricing *pricing, int64_t limit,
                                                  uint32_t n_parts, const int32_t *price,
                                                  const int32_t *receiver, psplit_i_budget *budget,
                                                  int64_t *out_most, int32_t *most, bool *out_done);

/* The same where values below `least` are of no interest: *out_most is at least `least`. The tables
 * are much smaller, since entries that cannot reach `least` are pruned. Prices of receivers may be
 * negative. */
PSPLIT_MUST_USE psplit_code psplit_i_pricing_above(psplit_i_pricing *pricing, int64_t limit,
                                                   uint32_t n_parts, const int32_t *price,
                                                   const int32_t *receiver, int64_t least,
                                                   psplit_i_budget *budget, int64_t *out_most,
                                                   bool *out_done);

/* Traces a stage after psplit_i_pricing_most() or psplit_i_pricing_above(): one of value *out_most
 * or, with nth > 0, the nth of the smaller values. out_side[v] is the side of each cluster.
 * out_paid[e], or NULL, is the number of receivers of net e that the stage pays for, or -1 if it
 * receives e; 0 for nets whose receivers have no price. The load may exceed the limit by rounding,
 * and nets that were left out may run backwards. Returns false if there is no such stage. */
bool psplit_i_pricing_trace(psplit_i_pricing *pricing, uint32_t nth, uint8_t *out_side,
                            int8_t *out_paid);

/* The load of a stage in the instance, including the nets that were left out. Of side[v] only
 * matters whether v is inside. */
int64_t psplit_i_pricing_load(const psplit_i_pricing *pricing, const uint8_t *side);

/* Finds a stage of load <= limit of about the largest value, where the side of each cluster v is
 * one of the bits of sides[v]. out_side[v] is its side. Work and tensors count as in the instance.
 * *out_found is false if none was found, or if the budget ran out. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pricing_stage(psplit_i_pricing *pricing, int64_t limit,
                                                   uint32_t n_parts, const int32_t *price,
                                                   const uint8_t *sides, psplit_i_budget *budget,
                                                   uint8_t *out_side, bool *out_found);

#endif
