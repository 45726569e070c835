#include "hash.h"

#include <string.h>

static uint64_t load64(const unsigned char *bytes) {
  uint64_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

static void absorb(psplit_i_hasher *hasher, const unsigned char *block) {
  hasher->a = (hasher->a ^ load64(block)) * UINT64_C(0x9e3779b97f4a7c15);
  hasher->a ^= hasher->a >> 29;
  hasher->b = (hasher->b ^ load64(block + 8)) * UINT64_C(0xc2b2ae3d27d4eb4f) + hasher->a;
  hasher->b ^= hasher->b >> 31;
}

void psplit_i_hasher_init(psplit_i_hasher *hasher) {
  *hasher = (psplit_i_hasher){.a = UINT64_C(0x243f6a8885a308d3), .b = UINT64_C(0x13198a2e03707344)};
}

void psplit_i_hasher_add(psplit_i_hasher *hasher, const void *data, size_t bytes) {
  if (bytes == 0) return;
  const unsigned char *next = data;
  hasher->total_bytes += bytes;
  if (hasher->n_tail) {
    const size_t room = sizeof hasher->tail - hasher->n_tail;
    const size_t take = bytes < room ? bytes : room;
    memcpy(hasher->tail + hasher->n_tail, next, take);
    hasher->n_tail += (unsigned)take;
    next += take;
    bytes -= take;
    if (hasher->n_tail < sizeof hasher->tail) return;
    absorb(hasher, hasher->tail);
    hasher->n_tail = 0;
  }
  for (; bytes >= sizeof hasher->tail; bytes -= sizeof hasher->tail, next += sizeof hasher->tail)
    absorb(hasher, next);
  if (bytes) memcpy(hasher->tail, next, bytes);
  hasher->n_tail = (unsigned)bytes;
}

void psplit_i_hasher_done(const psplit_i_hasher *hasher, uint64_t out[2]) {
  psplit_i_hasher last = *hasher;
  memset(last.tail + last.n_tail, 0, sizeof last.tail - last.n_tail);
  absorb(&last, last.tail);
  out[0] = psplit_i_mix64(last.a ^ last.total_bytes);
  out[1] = psplit_i_mix64(last.b + out[0]);
}

uint64_t psplit_i_hash_bytes(const void *data, size_t bytes, uint64_t seed) {
  const unsigned char *next = data;
  uint64_t h = seed ^ (bytes * UINT64_C(0x9e3779b97f4a7c15));
  for (; bytes >= 8; bytes -= 8, next += 8) {
    h = (h ^ load64(next)) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 32;
  }
  uint64_t tail = 0;
  if (bytes) memcpy(&tail, next, bytes);
  return psplit_i_mix64(h ^ tail);
}

static uint64_t rotated(uint64_t x, unsigned by) { return x << by | x >> (64 - by); }

static void sip_round(uint64_t v[4]) {
  v[0] += v[1];
  v[2] += v[3];
  v[1] = rotated(v[1], 13) ^ v[0];
  v[3] = rotated(v[3], 16) ^ v[2];
  v[0] = rotated(v[0], 32);
  v[2] += v[1];
  v[0] += v[3];
  v[1] = rotated(v[1], 17) ^ v[2];
  v[3] = rotated(v[3], 21) ^ v[0];
  v[2] = rotated(v[2], 32);
}

uint64_t psplit_i_siphash(const void *data, size_t bytes, const uint64_t key[2]) {
  const unsigned char *next = data;
  uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                   key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
  uint64_t last = (uint64_t)bytes << 56;
  for (; bytes >= 8; bytes -= 8, next += 8) {
    const uint64_t word = load64(next);
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
  }
  for (size_t i = 0; i < bytes; i++) last |= (uint64_t)next[i] << (8 * i);
  v[3] ^= last;
  sip_round(v);
  v[0] ^= last;
  v[2] ^= 0xff;
  for (unsigned i = 0; i < 3; i++) sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}
