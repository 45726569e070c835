/* Inline binary search, without calls for each comparison. */
#ifndef PSPLIT_BASE_BISECT_H
#define PSPLIT_BASE_BISECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The least x in [low, high) with holds(of, x), `high` if there is none. `holds` must be monotone;
 * it is called O(log(high - low)) times, never for `high`. */
static inline int64_t psplit_i_bisect(int64_t low, int64_t high,
                                      bool (*holds)(const void *of, int64_t x), const void *of) {
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (holds(of, middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* Index of the first of n ascending keys that is at least `value`, n if there is none; keys are
 * `stride` elements apart. */
static inline size_t psplit_i_first_at_least(const int64_t *key, size_t stride, size_t n,
                                             int64_t value) {
  size_t low = 0;
  for (size_t high = n; low < high;) {
    const size_t middle = low + (high - low) / 2;
    if (key[middle * stride] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

#endif
