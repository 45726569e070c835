/* Many normal numbers, fast: a stream of its own for each perturbation, begun by a counter, so that
 * it can be drawn again. */
#ifndef PSPLIT_TESTS_PPRS_NORMAL_H
#define PSPLIT_TESTS_PPRS_NORMAL_H

#include "counter_random.h"

typedef struct lab_normal {
  uint64_t s[4];
} lab_normal;

/* Before the first of them, by one thread. */
void lab_normal_prepare(void);
lab_normal lab_normal_begin(const psplit_i_random_stream *stream);
/* Source: Marsaglia, Tsang, "The ziggurat method for generating random variables", J. Statistical
 * Software 5, 2000, with 128 layers; numbers of xoshiro256+ (Blackman, Vigna, 2018). */
double lab_normal_next(lab_normal *normal);

#endif
