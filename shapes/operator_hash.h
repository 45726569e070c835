/* The hash by which operators are found. It depends on names alone: the build computes it too. */
#ifndef PSPLIT_SHAPES_OPERATOR_HASH_H
#define PSPLIT_SHAPES_OPERATOR_HASH_H

#include <stdint.h>

/* FNV-1a of the domain, a zero byte and the type. */
static inline uint32_t psplit_i_operator_hash(const char *domain, const char *op_type) {
  uint32_t hash = UINT32_C(2166136261);
  while (*domain) hash = (hash ^ (unsigned char)*domain++) * UINT32_C(16777619);
  hash *= UINT32_C(16777619);
  while (*op_type) hash = (hash ^ (unsigned char)*op_type++) * UINT32_C(16777619);
  return hash;
}

#endif
