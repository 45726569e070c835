#include "counter_random.h"

#include <math.h>

/* Both halves of a product of 32 bits. */
static uint32_t multiply(uint32_t a, uint32_t b, uint32_t *high) {
  const uint64_t product = (uint64_t)a * b;
  *high = (uint32_t)(product >> 32);
  return (uint32_t)product;
}

void psplit_i_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
  uint32_t k[2] = {key[0], key[1]};
  for (int round = 0; round < 10; round++) {
    uint32_t high0, high1;
    const uint32_t low0 = multiply(UINT32_C(0xD2511F53), c[0], &high0);
    const uint32_t low1 = multiply(UINT32_C(0xCD9E8D57), c[2], &high1);
    c[0] = high1 ^ c[1] ^ k[0];
    c[1] = low1;
    c[2] = high0 ^ c[3] ^ k[1];
    c[3] = low0;
    k[0] += UINT32_C(0x9E3779B9);
    k[1] += UINT32_C(0xBB67AE85);
  }
  for (int i = 0; i < 4; i++) out[i] = c[i];
}

uint64_t psplit_i_random_bits(const psplit_i_random_stream *stream, uint64_t n) {
  /* A block holds two numbers. */
  const uint64_t block = n >> 1;
  const uint32_t counter[4] = {(uint32_t)block, stream->use, stream->major, stream->minor};
  const uint32_t key[2] = {(uint32_t)stream->seed, (uint32_t)(stream->seed >> 32)};
  uint32_t out[4];
  psplit_i_philox(counter, key, out);
  const int half = (int)(n & 1) * 2;
  return (uint64_t)out[half + 1] << 32 | out[half];
}

double psplit_i_random_uniform(const psplit_i_random_stream *stream, uint64_t n) {
  return (double)(psplit_i_random_bits(stream, n) >> 11) * 0x1p-53;
}

/* Wichura's rational functions: near the middle, in the tails, and far out. */
static double middle(double r) {
  return (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
         (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0);
}

static double tail(double r) {
  return (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
         ((0.12021132975 * r + 0.73700164250) * r + 1.0);
}

static double far_tail(double r) {
  return (((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150) /
         ((0.012258202635 * r + 0.24197894225) * r + 1.0);
}

double psplit_i_normal_quantile(double p) {
  const double q = p - 0.5;
  if (fabs(q) <= 0.425) return q * middle(0.180625 - q * q);
  const double r = sqrt(-log(q < 0 ? p : 1 - p));
  const double size = r <= 5 ? tail(r - 1.6) : far_tail(r - 5);
  return q < 0 ? -size : size;
}

double psplit_i_random_normal(const psplit_i_random_stream *stream, uint64_t n) {
  /* Half a step up: never 0 or 1, and symmetric about 1/2. */
  return psplit_i_normal_quantile(((double)(psplit_i_random_bits(stream, n) >> 12) + 0.5) *
                                  0x1p-52);
}

/* The high half of a product of 64 bits. */
static uint64_t multiply_high(uint64_t a, uint64_t b) {
  const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  const uint64_t mid = a1 * b0 + (a0 * b0 >> 32);
  const uint64_t mid2 = a0 * b1 + (uint32_t)mid;
  return a1 * b1 + (mid >> 32) + (mid2 >> 32);
}

uint64_t psplit_i_random_below(const psplit_i_random_stream *stream, uint64_t n, uint64_t below) {
  return multiply_high(psplit_i_random_bits(stream, n), below);
}

/* A Feistel network over the least even number of bits that holds all rows, walked until it comes
 * back into them: fewer than four times on average. Source: Black, Rogaway, "Ciphers with arbitrary
 * finite domains", CT-RSA 2002. */
uint64_t psplit_i_random_permuted(const psplit_i_random_stream *stream, uint64_t i,
                                  uint64_t n_rows) {
  unsigned half = 1;
  while (half < 32 && (n_rows - 1) >> (2 * half)) half++;
  const uint64_t mask = (UINT64_C(1) << half) - 1;
  const uint32_t key[2] = {(uint32_t)stream->seed, (uint32_t)(stream->seed >> 32)};
  do {
    uint64_t left = i >> half, right = i & mask;
    for (uint32_t round = 0; round < 8; round++) {
      const uint32_t counter[4] = {(uint32_t)right, stream->use | (round + 1) << 16, stream->major,
                                   stream->minor};
      uint32_t out[4];
      psplit_i_philox(counter, key, out);
      const uint64_t mixed = left ^ (out[0] & mask);
      left = right;
      right = mixed;
    }
    i = left << half | right;
  } while (i >= n_rows);
  return i;
}
