/* Counter-based random numbers: a number is a function of a seed and of where it is used, without
 * state between draws. A number for step 7, micro-batch 3 and row 12 does not depend on previous
 * draws, nor on the thread or rank: recomputation and resumed runs draw the same numbers.
 *
 * Philox 4x32 with 10 rounds. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy
 * as 1, 2, 3", SC 2011. */
#ifndef PSPLIT_BASE_COUNTER_RANDOM_H
#define PSPLIT_BASE_COUNTER_RANDOM_H

#include <stdint.h>

/* Purpose of a stream. Streams of one seed with different purposes are independent. Values are part
 * of the reproducibility of runs, so none must be reused. */
typedef enum psplit_i_random_use {
  PSPLIT_I_RANDOM_TEST = 0,
  PSPLIT_I_RANDOM_SHUFFLE = 1,   /* the order of rows in an epoch */
  PSPLIT_I_RANDOM_MASK = 2,      /* masks of Dropout */
  PSPLIT_I_RANDOM_SMOOTHING = 3, /* perturbed weights of randomized smoothing */
  PSPLIT_I_RANDOM_DIRECTION = 4, /* directions in which gradients are checked */
  PSPLIT_I_RANDOM_SAMPLE = 5,    /* tokens of a generated sequence */
  PSPLIT_I_RANDOM_POLICY = 6,    /* weights of a new policy, and its decisions */
} psplit_i_random_use;

/* A stream: `seed`, purpose, and two coordinates, such as step and micro-batch. */
typedef struct psplit_i_random_stream {
  uint64_t seed;
  uint32_t use; /* psplit_i_random_use */
  uint32_t major, minor;
} psplit_i_random_stream;

/* One block: 128 bits from a counter and a key. */
void psplit_i_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* The n-th number of a stream, 64 bits. Streams have 2^33 of them. */
uint64_t psplit_i_random_bits(const psplit_i_random_stream *stream, uint64_t n);

/* The n-th number of a stream in [0, 1), a multiple of 2^-53. */
double psplit_i_random_uniform(const psplit_i_random_stream *stream, uint64_t n);

/* The n-th number of a stream from the standard normal distribution, within 1e-6 of its inverse
 * distribution function. Source: Wichura, algorithm AS 241 (PPND7), Applied Statistics 37, 1988. */
double psplit_i_random_normal(const psplit_i_random_stream *stream, uint64_t n);

/* Quantile of the standard normal distribution, 0 < p < 1; the same source and error. */
double psplit_i_normal_quantile(double p);

/* The n-th number of a stream in 0 .. below - 1; below > 0. Its bias is at most below / 2^64. */
uint64_t psplit_i_random_below(const psplit_i_random_stream *stream, uint64_t n, uint64_t below);

/* Position of row `i` of `n_rows` in a random permutation of 0 .. n_rows - 1, computed in O(1)
 * without a table. i < n_rows. */
uint64_t psplit_i_random_permuted(const psplit_i_random_stream *stream, uint64_t i,
                                  uint64_t n_rows);

#endif
