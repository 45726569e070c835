/* What a stage within a limit is worth at most, where every cluster has a price: a program over the
 * graph's own structure, which is narrow in most models.
 *
 * A stage is what lies between two downsets, so each cluster is before it, in it or behind it, and
 * no consumer of a tensor comes before its producer. Clusters are eliminated one after the other,
 * each where its neighbours are fewest; of what has been eliminated, a table keeps for each way to
 * place the neighbours that are left which loads bring which prices. */
#ifndef PSPLIT_PARTITION_STAGE_WORTH_H
#define PSPLIT_PARTITION_STAGE_WORTH_H

#include "budget.h"
#include "instance.h"

enum { PSPLIT_I_WORTH_ONE = 1 << 22 }; /* what prices are parts of; all together below 2^31 */

enum { PSPLIT_I_BEFORE, PSPLIT_I_INSIDE, PSPLIT_I_BEHIND }; /* where a cluster is by a stage */

typedef struct psplit_i_worth psplit_i_worth;

/* For instances whose nets are all forward and whose devices are alike. *out is NULL where the
 * graph is too wide. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_worth_make(const psplit_i_instance *instance,
                                                psplit_i_budget *budget, psplit_i_worth **out);
/* The same for psplit_i_worth_above() and what may follow it alone: of nets with many pins, which
 * are left out where tables over all of their ways would be too many, more are counted. */
PSPLIT_MUST_USE psplit_code psplit_i_worth_make_wide(const psplit_i_instance *instance,
                                                     psplit_i_budget *budget, psplit_i_worth **out);
/* An estimate, rather too high, of the operations that psplit_i_worth_most() charges with
 * `most`. */
uint64_t psplit_i_worth_ops(psplit_i_worth *worth, uint32_t n_parts);
void psplit_i_worth_free(psplit_i_worth *worth);

/* The most that a stage of load <= limit is worth at these prices, or more: loads are rounded down
 * to `n_parts` parts of the limit where tables grow long. receiver[e], if any: what a stage is
 * worth more for each receiver of net e that it pays for, and less if it receives e; nets without
 * it have one receiver. most[v], if any: the same of stages with v, but 0 where that is negative
 * (-1: there is none). *out_done is false where the budget did not do; then nothing is said.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_worth_most(psplit_i_worth *worth, int64_t limit,
                                                uint32_t n_parts, const int32_t *price,
                                                const int32_t *receiver, psplit_i_budget *budget,
                                                int64_t *out_most, int32_t *most, bool *out_done);

/* The same without receivers, where what is worth less than `least` need not be told: *out_most is
 * that at least. Tables of what may be worth more are much smaller. */
PSPLIT_MUST_USE psplit_code psplit_i_worth_above(psplit_i_worth *worth, int64_t limit,
                                                 uint32_t n_parts, const int32_t *price,
                                                 int64_t least, psplit_i_budget *budget,
                                                 int64_t *out_most, bool *out_done);

/* After psplit_i_worth_most() without receivers, or psplit_i_worth_above(): a stage that is worth
 * what was said, or with nth > 0 the nth of those that are worth and take less. out_side[v]: where
 * clusters are by it. Its load may be above the limit by what rounding hides, and nets that were
 * left out may run back. false: there is none. */
bool psplit_i_worth_trace(psplit_i_worth *worth, uint32_t nth, uint8_t *out_side);

/* The load of a stage in the instance, with the nets that the program leaves out. side[v]: whether
 * v is inside; of the others it need not be known on which side they are. */
int64_t psplit_i_worth_load(const psplit_i_worth *worth, const uint8_t *side);

/* A stage of load <= limit that is worth about the most of those with each cluster v on one of the
 * sides whose bits sides[v] has; out_side[v]: where it is. Work and tensors count as the instance
 * has them. *out_found is false where none was found, or the budget did not do. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_worth_stage(psplit_i_worth *worth, int64_t limit,
                                                 uint32_t n_parts, const int32_t *price,
                                                 const uint8_t *sides, psplit_i_budget *budget,
                                                 uint8_t *out_side, bool *out_found);

#endif
