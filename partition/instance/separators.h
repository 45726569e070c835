/* Separators: clusters that are comparable with all others. The clusters between two neighbouring
 * separators are a block. */
#ifndef PSPLIT_PARTITION_SEPARATORS_H
#define PSPLIT_PARTITION_SEPARATORS_H

#include "instance.h"

/* out_ends[k]: end of block k of consecutive clusters. All clusters of a block are successors of
 * all clusters of the blocks before it: a separator ends its block, and the last clusters end
 * theirs, even if they are not a separator. Returns the number of blocks. out_ends[n]; scratch[n]
 * is zero on entry. O(n + edges). */
uint32_t psplit_i_separators(const psplit_i_instance *instance, uint32_t *scratch,
                             uint32_t *out_ends);

/* Number of clusters of the longest of these blocks. */
uint32_t psplit_i_longest_block(const uint32_t *ends, uint32_t n_blocks);

/* Whether the last cluster is a separator; scratch[n] as psplit_i_separators left it. */
bool psplit_i_ends_in_separator(const psplit_i_instance *instance, const uint32_t *scratch);

#endif
