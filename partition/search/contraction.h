/* An instance whose items are clusters of items. */
#ifndef PSPLIT_PARTITION_CONTRACTION_H
#define PSPLIT_PARTITION_CONTRACTION_H

#include "instance.h"

/* Core of clusters of `core`'s items. cluster[n] < n_clusters, and never decreases along an edge:
 * clusters are numbered topologically. Splits of it are splits of `core` with the same loads.
 * O((n + pins) log pins). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_contract(const psplit_core *core, const uint32_t *cluster,
                                              uint32_t n_clusters, psplit_core *out_core);

#endif
