/* Separators: clusters comparable with all others. What is between two neighbours is a block. */
#ifndef PSPLIT_PARTITION_SEPARATORS_H
#define PSPLIT_PARTITION_SEPARATORS_H

#include "instance.h"

/* out_ends[k]: where block k of consecutive clusters ends. All of a block come after all of those
 * before: a separator ends its block, and so do the last clusters, separator or not. Returns how
 * many there are. out_ends[n]; scratch[n] is zero on entry. O(n + edges). */
uint32_t psplit_i_separators(const psplit_i_instance *instance, uint32_t *scratch,
                             uint32_t *out_ends);

/* Clusters of the longest of these blocks. */
uint32_t psplit_i_longest_block(const uint32_t *ends, uint32_t n_blocks);

/* Whether the last cluster is a separator, of which psplit_i_separators left scratch[n]. */
bool psplit_i_ends_in_separator(const psplit_i_instance *instance, const uint32_t *scratch);

#endif
