/* Sets of clusters that may be stages, by labels: 0 is before the set, 1 in it, 2 behind it. */
#ifndef PSPLIT_TESTS_LABELLED_H
#define PSPLIT_TESTS_LABELLED_H

#include "bed.h"

/* One type of device and no backward pass: what prices of clusters are for. */
bool has_prices(const bed *b);
/* The load of what is labelled 1; -1: a tensor runs back. */
int64_t labelled_load(const psplit_i_instance *instance, const int *label);
/* The next of all ways to label the clusters, from all 0 on; false: that was the last. */
bool next_labels(const psplit_i_instance *instance, int *label);

#endif
