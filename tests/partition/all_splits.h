/* Enumeration of splits that shares nothing with solvers or checker: whoever asks says what one
 * takes. */
#ifndef PSPLIT_TESTS_ALL_SPLITS_H
#define PSPLIT_TESTS_ALL_SPLITS_H

#include <psplit/partition.h>

/* What the split takes; INT64_MAX: it is none. */
typedef int64_t split_value(const psplit_problem *p, const uint32_t *stage, const void *with);

/* The least value of all splits of at most 64 nodes, numbered topologically, into n_stages: no node
 * is in front of what it reads. INT64_MAX: there is none. */
int64_t least_of_all_splits(const psplit_problem *p, uint32_t n_stages, split_value *value_of,
                            const void *with);

#endif
