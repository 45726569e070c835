/* Enumerates all splits of a few clusters; every receiver of a tensor is counted. */
#ifndef PSPLIT_PARTITION_DIRECTIONS_FEW_SPLITS_H
#define PSPLIT_PARTITION_DIRECTIONS_FEW_SPLITS_H

#include "two_limits.h"

/* Whether there are few enough of them, on devices whose order is given. */
bool psplit_i_splits_are_few(const psplit_i_directions *d);

/* The best split below *io_limit, which becomes its value; *out_complete: all were tried, so that
 * no split is below *io_limit. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_few_splits(const psplit_i_directions *d,
                                                psplit_i_budget *budget, int64_t *io_limit,
                                                psplit_i_assignment *out_split, bool *out_complete);

#endif
