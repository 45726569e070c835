/* Binary search, inline: a search through an array costs no calls. */
#ifndef PSPLIT_BASE_BISECT_H
#define PSPLIT_BASE_BISECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The least x of [low, high) for which holds(of, x), `high` where there is none. What holds for x
 * must hold for all that are larger. `holds` is asked O(log(high - low)) times, not of `high`. */
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

/* The first of n ascending keys that is at least `value`, n where there is none; keys are `stride`
 * numbers apart. */
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
