/* Sets of clusters as bits: cluster i is bit i % 64 of word i / 64. */
#ifndef PSPLIT_PARTITION_BITS_H
#define PSPLIT_PARTITION_BITS_H

#include <psplit/base.h>
#include <stdbool.h>
#include <stdint.h>

static inline bool psplit_i_holds(const uint64_t *bits, uint32_t cluster) {
  return bits[cluster / 64] >> (cluster % 64) & 1;
}

/* The last cluster of the set that is before `limit`, or PSPLIT_NONE. */
static inline uint32_t psplit_i_last_below(const uint64_t *bits, uint32_t limit) {
  if (limit == 0) return PSPLIT_NONE;
  uint32_t word = (limit - 1) / 64;
  uint64_t left = bits[word] & (UINT64_MAX >> (63 - (limit - 1) % 64));
  while (left == 0) {
    if (word == 0) return PSPLIT_NONE;
    left = bits[--word];
  }
  return word * 64 + 63 - (uint32_t)__builtin_clzll(left);
}

#endif
