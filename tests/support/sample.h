/* How much of a random sample a test runs. */
#ifndef PSPLIT_TESTS_SAMPLE_H
#define PSPLIT_TESTS_SAMPLE_H

#include <stdint.h>
#include <stdlib.h>

/* So many of `n` as PSPLIT_PROPERTY_PERCENT says, else as `usual_percent` does; one, where that
 * would be none of some: a sample of nothing holds nothing. */
static inline uint32_t sample_of(uint32_t n, uint32_t usual_percent) {
  const char *text = getenv("PSPLIT_PROPERTY_PERCENT");
  const uint32_t part = n * (text ? (uint32_t)strtoul(text, NULL, 10) : usual_percent) / 100;
  return part > 0 || n == 0 ? part : 1;
}

#endif
