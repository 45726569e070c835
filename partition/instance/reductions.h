/* Lossless reductions of an instance. */
#ifndef PSPLIT_PARTITION_REDUCTIONS_H
#define PSPLIT_PARTITION_REDUCTIONS_H

#include "automaton.h"

/* Rebuilds *core with items united that share a stage in some optimal solution:
 * rule M - an item moves to its only neighbour on one side when the tensor between them costs at
 * least what the item brings along (without an order: any neighbour, when sender and receiver pay
 * the same); and, for bottlenecks up to `limit` (INF: unknown), items that share more nets than a
 * stage with one of them and without the other can afford. `parent[n_nodes]` is union-find over
 * nodes, in and out. Every split of the kernel is a split of the problem with the same loads; some
 * best split of the problem is one of the kernel (any split <= limit, for the second rule).
 * O(rounds * pins log nodes). Errors: NOMEM, INFEASIBLE. */
PSPLIT_MUST_USE psplit_code psplit_i_kernel(psplit_core *core, const psplit_machine *machine,
                                            int64_t limit, uint32_t *parent, psplit_diag *diag);
/* The same; stage[n_nodes] (may be NULL), a split with no load above `limit`, makes the moves as
 * well: no stage gets slower. `keep_first`: the first of the splits up to `limit` that send least
 * (psplit_first) is one of the kernel. */
PSPLIT_MUST_USE psplit_code psplit_i_kernel_carrying(psplit_core *core,
                                                     const psplit_machine *machine, int64_t limit,
                                                     bool keep_first, uint32_t *parent,
                                                     uint32_t *stage, psplit_diag *diag);

#endif
