/* Random items, as the partitioner would show them, without a partitioner. */
#ifndef PSPLIT_TESTS_MAKE_ITEMS_H
#define PSPLIT_TESTS_MAKE_ITEMS_H

#include <psplit/proposer.h>

#include "arena.h"

enum {
  ITEMS_BACKWARD = 1, /* nets that run back */
  ITEMS_TYPES = 2,    /* two types of devices, some items forbidden on one */
  ITEMS_ANY_ORDER = 4,
  ITEMS_SHARED = 8, /* nets are sent once */
  ITEMS_OVERLAP = 16,
  ITEMS_MEMORY = 32, /* limits, groups of weights */
  ITEMS_FEATURES = 64
};

/* Deterministic in all of its arguments. Ends the program when out of memory. */
psplit_items make_items(uint32_t seed, uint32_t n, uint32_t n_stages, unsigned features,
                        psplit_i_arena *arena);

/* Loads of stages from their definition, item by item and net by net: the largest. out_bytes (may
 * be NULL) gets the memory of each stage. type[n_stages] may be NONE where nothing is. */
int64_t bottleneck_of(const psplit_items *items, const uint32_t *stage, const uint32_t *type,
                      uint64_t *out_bytes);

#endif
