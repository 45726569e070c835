/* Contracts nodes of a problem of calls that the bound need not distinguish. */
#ifndef PSPLIT_PARTITION_CALLS_CONTRACT_H
#define PSPLIT_PARTITION_CALLS_CONTRACT_H

#include "moves.h"

/* out_root[n]: the node at whose end the node's cluster ends on CPUs, where it takes what that node
 * takes. Members are kept together by the problem. No placement takes less for it, and clusters
 * form no circle. O(rounds * (nodes + edges)), rounds few. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_calls_contract(const psplit_i_calls *calls,
                                                    const psplit_i_calls_closure *closure,
                                                    psplit_i_arena *arena, uint32_t *out_root);

#endif
