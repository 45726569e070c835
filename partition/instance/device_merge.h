/* Device types: entries of devices that no solver needs to distinguish are merged, and separated
 * again in the result. */
#ifndef PSPLIT_PARTITION_DEVICE_MERGE_H
#define PSPLIT_PARTITION_DEVICE_MERGE_H

#include "problem.h"

/* *out_problem is the problem with one entry for all entries that are alike, or for adjacent ones
 * if the order is fixed. out_merged[problem->n_devices]: new entry of an old one, NONE if that has
 * no devices; not set if pairs of devices have links of their own (pair_links.h). Does nothing if
 * stages may have replicas. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_devices_merge(const psplit_problem *problem,
                                                   const psplit_partition_options *options,
                                                   psplit_i_arena *arena,
                                                   psplit_problem *out_problem,
                                                   uint32_t *out_merged);
/* The inverse: maps inout_device[n_stages] from merged entries to entries of `problem`, in stage
 * order. stage[n_nodes] tells which stages are empty. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_devices_tell_apart(const psplit_problem *problem,
                                                        const uint32_t *merged,
                                                        const uint32_t *stage,
                                                        psplit_i_arena *arena,
                                                        uint32_t *inout_device);

/* If the solver chooses the order of devices, replaces inout_device[n_stages], entries of `problem`
 * in stage order, by the lexicographically first of the orders that send least among those with no
 * load above `limit`. `types` and `merged` are results of psplit_i_devices_merge. Does nothing if
 * there is no such order, or if there are too many types. O(types * (pins + states)). Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_devices_first(const psplit_problem *problem,
                                                   const psplit_problem *types,
                                                   const uint32_t *merged, const uint32_t *stage,
                                                   int64_t limit, psplit_i_arena *arena,
                                                   uint32_t *inout_device);

#endif
