/* Device types: device entries that no solver needs to distinguish are merged, and split again in
 * the answer. */
#ifndef PSPLIT_PARTITION_DEVICE_MERGE_H
#define PSPLIT_PARTITION_DEVICE_MERGE_H

#include "problem.h"

/* *out_problem: the same with entries of devices that are alike as one, adjacent ones only where
 * the order is fixed. out_merged[problem->n_devices]: the new entry of an old one, NONE where that
 * has no devices; not filled in where pairs of devices have links of their own (pair_links.h).
 * Without effect when stages may have copies. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_devices_merge(const psplit_problem *problem,
                                                   const psplit_partition_options *options,
                                                   psplit_i_arena *arena,
                                                   psplit_problem *out_problem,
                                                   uint32_t *out_merged);
/* The way back: inout_device[n_stages] from merged entries to those of `problem`, in stage order.
 * stage[n_nodes] tells which stages hold something. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_devices_tell_apart(const psplit_problem *problem,
                                                        const uint32_t *merged,
                                                        const uint32_t *stage,
                                                        psplit_i_arena *arena,
                                                        uint32_t *inout_device);

/* Where the solver chooses the order of devices: inout_device[n_stages], entries of `problem` in
 * stage order, become the lexicographically first of those with no load above `limit` that send as
 * little as any. `types` and `merged` are of psplit_i_devices_merge. Without effect where there are
 * none, or too many types. O(types * (pins + states)). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_devices_first(const psplit_problem *problem,
                                                   const psplit_problem *types,
                                                   const uint32_t *merged, const uint32_t *stage,
                                                   int64_t limit, psplit_i_arena *arena,
                                                   uint32_t *inout_device);

#endif
