/* Comparison functions for qsort, ascending. */
#ifndef PSPLIT_BASE_COMPARE_H
#define PSPLIT_BASE_COMPARE_H

#include <stdint.h>

static inline int psplit_i_compare_u32(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static inline int psplit_i_compare_u64(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

#endif
