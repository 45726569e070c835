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

enum { PSPLIT_I_PRICING_ONE = 1 << 22 }; /* a price of 1, in fixed point; their sum is below 2^31 */

enum { PSPLIT_I_BEFORE, PSPLIT_I_INSIDE, PSPLIT_I_BEHIND }; /* where a cluster is by a stage */

typedef struct psplit_i_pricing psplit_i_pricing;

/* How many receivers of a net a stage may pay for, where these have prices; 1: they have none. */
uint32_t psplit_i_pricing_receivers(const psplit_i_instance *instance, uint32_t net);

/* For instances whose nets are all forward and whose devices are alike. *out is NULL where the
 * graph is too wide. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pricing_make(const psplit_i_instance *instance,
                                                  psplit_i_budget *budget, psplit_i_pricing **out);
/* The same for psplit_i_pricing_above() and what may follow it alone: of nets with many pins, which
 * are left out where tables over all of their ways would be too many, more are counted. */
PSPLIT_MUST_USE psplit_code psplit_i_pricing_make_wide(const psplit_i_instance *instance,
                                                       psplit_i_budget *budget,
                                                       psplit_i_pricing **out);
/* A generous estimate of the operations that psplit_i_pricing_most() charges with `most`. */
uint64_t psplit_i_pricing_ops(psplit_i_pricing *pricing, uint32_t n_parts);
void psplit_i_pricing_free(psplit_i_pricing *pricing);

/* *out_most: an upper bound on the value (total price) of a stage of load <= limit. It is exact but
 * for loads, which are rounded down to `n_parts` parts of the limit where tables grow long.
 * receiver[e], or NULL: added to the value for each receiver of net e that the stage pays for, and
 * subtracted if it receives e; nets without it have one receiver. most[v], or NULL: the same bound
 * for stages with v, 0 where that is negative, and -1 if there is none. *out_done is false if the
 * budget ran out; the other outputs are undefined then. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pricing_most(psplit_i_pricing *pricing, int64_t limit,
                                                  uint32_t n_parts, const int32_t *price,
                                                  const int32_t *receiver, psplit_i_budget *budget,
                                                  int64_t *out_most, int32_t *most, bool *out_done);

/* The same where values below `least` do not matter: *out_most is at least `least`. The tables are
 * much smaller, since they keep only what can reach it. Prices of receivers may be negative. */
PSPLIT_MUST_USE psplit_code psplit_i_pricing_above(psplit_i_pricing *pricing, int64_t limit,
                                                   uint32_t n_parts, const int32_t *price,
                                                   const int32_t *receiver, int64_t least,
                                                   psplit_i_budget *budget, int64_t *out_most,
                                                   bool *out_done);

/* After psplit_i_pricing_most(), or psplit_i_pricing_above(): a stage whose value is *out_most, or
 * with nth > 0 the nth of those with smaller values. out_side[v]: before it, inside or behind.
 * out_paid[e], or NULL: receivers of net e that it pays for, or -1 if it is one; 0 of nets without
 * a price for them. Its load may be above the limit by what rounding hides, and nets that were left
 * out may run backwards. Returns false if there is no such stage. */
bool psplit_i_pricing_trace(psplit_i_pricing *pricing, uint32_t nth, uint8_t *out_side,
                            int8_t *out_paid);

/* The load of a stage in the instance, with the nets that the program leaves out. side[v]: whether
 * v is inside; of the others it need not be known on which side they are. */
int64_t psplit_i_pricing_load(const psplit_i_pricing *pricing, const uint8_t *side);

/* A stage of load <= limit of about the largest value, with each cluster v on one of the sides that
 * the bits of sides[v] name; out_side[v]: where it is. Work and tensors count as in the instance.
 * *out_found is false if none was found, or the budget ran out. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pricing_stage(psplit_i_pricing *pricing, int64_t limit,
                                                   uint32_t n_parts, const int32_t *price,
                                                   const uint8_t *sides, psplit_i_budget *budget,
                                                   uint8_t *out_side, bool *out_found);

#endif
