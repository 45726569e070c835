/* Hashing for tables and for comparing content. Not for signatures. */
#ifndef PSPLIT_BASE_HASH_H
#define PSPLIT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* A bijective mixer with full avalanche (the finaliser of MurmurHash3, Appleby 2011). */
static inline uint64_t psplit_i_mix64(uint64_t x) {
  x ^= x >> 33;
  x *= UINT64_C(0xff51afd7ed558ccd);
  x ^= x >> 33;
  x *= UINT64_C(0xc4ceb9fe1a85ec53);
  return x ^ (x >> 33);
}

/* The n-th number of a SplitMix64 stream: deterministic randomness without state.
 * Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. */
static inline uint64_t psplit_i_splitmix64(uint64_t seed, uint64_t n) {
  uint64_t z = seed + (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Fast, but collisions can be constructed. */
uint64_t psplit_i_hash_bytes(const void *data, size_t bytes, uint64_t seed);

/* SipHash-1-3: with a secret random key, no file can be constructed whose names collide. Source:
 * Aumasson, Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012. */
uint64_t psplit_i_siphash(const void *data, size_t bytes, const uint64_t key[2]);

/* A 128-bit hash of a byte stream, independent of how it is divided into pieces. */
typedef struct psplit_i_hasher {
  uint64_t a, b;
  uint64_t total_bytes;
  unsigned char tail[16];
  unsigned n_tail;
} psplit_i_hasher;

void psplit_i_hasher_init(psplit_i_hasher *hasher);
void psplit_i_hasher_add(psplit_i_hasher *hasher, const void *data, size_t bytes);
void psplit_i_hasher_done(const psplit_i_hasher *hasher, uint64_t out[2]);

#endif
