/* Builds a placement of nodes from the devices that blocks gave their clusters. */
#ifndef PSPLIT_PARTITION_CALLS_BLOCK_PARTS_H
#define PSPLIT_PARTITION_CALLS_BLOCK_PARTS_H

#include "crossings.h"

/* How a block is placed, and what runs the separator behind it. */
typedef struct psplit_i_calls_choice {
  uint32_t right; /* kind of the separator behind, as crossings.h counts them */
  const psplit_i_calls_crossing *crossing; /* NULL: all is in the call of the separator before it */
} psplit_i_calls_choice;

/* Sets out_device[nodes]: calls of separators first come first served, and each piece inside a
 * block that hangs together a call of its own while there are accelerators to spare. Nodes without
 * a cluster are on CPUs, or with the node in front. *out_placed false: there are too few
 * accelerators. What it gives may not be allowed: it is to be valued. O(nodes + pins + accelerators
 * * blocks). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_calls_place_parts(const psplit_i_calls *calls,
                                                       const psplit_i_calls_clusters *clusters,
                                                       const psplit_i_calls_block *block,
                                                       const psplit_i_calls_choice *choice,
                                                       psplit_i_arena *arena, uint32_t *out_device,
                                                       bool *out_placed);

#endif
