/* Sets of clusters as bits: cluster i is bit i % 64 of word i / 64. */
#ifndef PSPLIT_PARTITION_BITS_H
#define PSPLIT_PARTITION_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline bool psplit_i_holds(const uint64_t *bits, uint32_t cluster) {
  return bits[cluster / 64] >> (cluster % 64) & 1;
}

#endif
