/* Latency of graphs that are blocks in a row: exact, or nearly so, at any number of blocks.
 *
 * A *separator* is a cluster that all others are before or behind, and that no edge jumps over.
 * What lies between two neighbouring ones is a *block*. A stage with a separator waits for all that
 * is before it, and all that is behind waits for it, so latency is the sum of such stages' loads
 * and, for each block that two of them share, of the longest chain of stages inside. Where a block
 * is cut, only the bytes on either side, the two types and the devices used inside matter
 * elsewhere. */
#ifndef PSPLIT_PARTITION_LATENCY_BLOCKS_H
#define PSPLIT_PARTITION_LATENCY_BLOCKS_H

#include "assignment.h"
#include "budget.h"

enum { PSPLIT_I_BLOCKS_EXACT_OPS = 4000000 };

/* Looks for splits of latency below `limit` (or INF). Raises *inout_bound to what none is below, at
 * most `limit`; out_split->value is that of a split below it by this model, which leaves pins,
 * shared weights and stashes out, or INF. Nothing happens where there is no separator, or where the
 * budget does not do. Errors: NOMEM.
 * Two passes over labels (device state, type, bytes) by block, each with the ways to cut it that no
 * other dominates; those are enumerated, exponential in a block's clusters, at most 64; of a
 * block that takes more than exact_ops operations, with bytes rounded to 64ths of the memory. */
PSPLIT_MUST_USE psplit_code psplit_i_blocks(const psplit_i_instance *instance,
                                            const psplit_i_automaton *automaton,
                                            psplit_i_budget *budget, uint64_t exact_ops,
                                            int64_t limit, psplit_i_assignment *out_split,
                                            int64_t *inout_bound);

#endif
