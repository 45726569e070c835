/* Checked arithmetic for counts and sizes that come from a file. Each returns false on overflow
 * and leaves *out untouched then. */
#ifndef PSPLIT_BASE_CHECKED_H
#define PSPLIT_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool psplit_i_add_size(size_t a, size_t b, size_t *out) {
  if (a > SIZE_MAX - b) return false;
  *out = a + b;
  return true;
}

static inline bool psplit_i_mul_size(size_t a, size_t b, size_t *out) {
  if (b != 0 && a > SIZE_MAX / b) return false;
  *out = a * b;
  return true;
}

static inline bool psplit_i_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
  if (a > UINT64_MAX - b) return false;
  *out = a + b;
  return true;
}

static inline bool psplit_i_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
  if (b != 0 && a > UINT64_MAX / b) return false;
  *out = a * b;
  return true;
}

static inline bool psplit_i_add_i64(int64_t a, int64_t b, int64_t *out) {
  if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b)) return false;
  *out = a + b;
  return true;
}

/* Saturating arithmetic, for costs: the result is a lower bound. */
static inline int64_t psplit_i_sat_add_i64(int64_t a, int64_t b) {
  int64_t sum;
  if (psplit_i_add_i64(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}
/* Adds to a sum of times, saturating. */
static inline void psplit_i_add_ns(int64_t *sum, int64_t ns) {
  *sum = psplit_i_sat_add_i64(*sum, ns);
}

static inline uint64_t psplit_i_sat_add_u64(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t psplit_i_sat_mul_u64(uint64_t a, uint64_t b) {
  return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}
/* Truncates a number >= 0, saturating; 0 for NaN. */
static inline int64_t psplit_i_sat_i64(double a) {
  return a >= 0x1p63 ? INT64_MAX : a > 0 ? (int64_t)a : 0;
}

static inline uint64_t psplit_i_sat_u64(double a) {
  return a >= 0x1p64 ? UINT64_MAX : a > 0 ? (uint64_t)a : 0;
}

/* For numbers >= 0. */
static inline int64_t psplit_i_sat_mul_i64(int64_t a, int64_t b) {
  int64_t out;
  return __builtin_mul_overflow(a, b, &out) ? INT64_MAX : out;
}

#endif
