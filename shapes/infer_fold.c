/* Arithmetic on single elements. */
#include "infer_fold.h"

#include <math.h>

enum { FLOAT = 1, DOUBLE = 11 };

/* Numbers that an element type holds; false for a constant that would wrap. */
static bool holds(int32_t elem, int64_t value) {
  static const struct {
    int32_t elem;
    int64_t low, high;
  } ranges[] = {
    {2, 0, UINT8_MAX},         {3, INT8_MIN, INT8_MAX},   {4, 0, UINT16_MAX},
    {5, INT16_MIN, INT16_MAX}, {6, INT32_MIN, INT32_MAX}, {9, 0, 1},
    {12, 0, UINT32_MAX},       {13, 0, INT64_MAX},
  };
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (ranges[i].elem == elem) return value >= ranges[i].low && value <= ranges[i].high;
  return true;
}

psplit_dim psplit_i_fold_settle(psplit_i_site *at, int32_t elem, psplit_dim result) {
  int64_t value;
  if (result == PSPLIT_NONE ||
      (psplit_i_dim_is_const(at->dims, result, &value) && !holds(elem, value)))
    return psplit_i_is_int_type(elem) ? psplit_i_dim_fresh_value(at->dims) : PSPLIT_NONE;
  return result;
}

psplit_dim psplit_i_fold_real(psplit_i_site *at, int32_t elem, double value) {
  if (elem == FLOAT)
    value = (double)(float)value;
  else if (elem != DOUBLE && value != floor(value))
    return PSPLIT_NONE;
  return psplit_i_dim_real(at->dims, value);
}

/* value = numerator / 2^k with a small k. */
static bool dyadic(double value, int64_t *out_numerator, int64_t *out_divisor) {
  if (!(fabs(value) < 1e6)) return false;
  for (int64_t divisor = 1; divisor <= 1024; divisor *= 2)
    if (value * (double)divisor == floor(value * (double)divisor)) {
      *out_numerator = (int64_t)(value * (double)divisor);
      *out_divisor = divisor;
      return true;
    }
  return false;
}

/* As an integer expression over a positive divisor. */
static bool fraction(psplit_i_site *at, psplit_dim a, psplit_dim *out, int64_t *out_divisor) {
  double value;
  int64_t numerator;
  if (psplit_i_dim_is_ratio(at->dims, a, out, out_divisor)) return true;
  if (psplit_i_dim_is_real(at->dims, a, &value)) {
    if (!dyadic(value, &numerator, out_divisor)) return false;
    *out = psplit_i_dim_const(at->dims, numerator);
    return true;
  }
  *out = a;
  *out_divisor = 1;
  return true;
}

static psplit_dim fold_fractions(psplit_i_site *at, psplit_i_folding op, psplit_dim a,
                                 psplit_dim b) {
  psplit_i_dims *dims = at->dims;
  psplit_dim x, y;
  int64_t p, q, value;
  if (!fraction(at, a, &x, &p) || !fraction(at, b, &y, &q) || p > 4096 || q > 4096)
    return PSPLIT_NONE;
  const psplit_dim left = psplit_i_dim_mul_const(dims, x, q);
  const psplit_dim right = psplit_i_dim_mul_const(dims, y, p);
  switch (op) {
    case PSPLIT_FOLD_ADD:
      return psplit_i_dim_ratio(dims, psplit_i_dim_add(dims, left, right), p * q);
    case PSPLIT_FOLD_SUB:
      return psplit_i_dim_ratio(dims, psplit_i_dim_sub(dims, left, right), p * q);
    case PSPLIT_FOLD_MUL: return psplit_i_dim_ratio(dims, psplit_i_dim_mul(dims, x, y), p * q);
    case PSPLIT_FOLD_DIV:
      if (x == y && p == q) return psplit_i_dim_const(dims, 1);
      if (!psplit_i_dim_is_const(dims, y, &value) || value <= 0 || value > 1000000 || p * value < 1)
        return PSPLIT_NONE;
      return psplit_i_dim_ratio(dims, left, p * value);
    case PSPLIT_FOLD_MIN: return p == 1 && q == 1 ? psplit_i_dim_min(dims, x, y) : PSPLIT_NONE;
    case PSPLIT_FOLD_MAX: return p == 1 && q == 1 ? psplit_i_dim_max(dims, x, y) : PSPLIT_NONE;
    default: return PSPLIT_NONE;
  }
}

static psplit_dim truth(psplit_i_site *at, bool value) {
  return psplit_i_dim_const(at->dims, value);
}

static psplit_dim compare(psplit_i_site *at, psplit_i_folding op, psplit_dim a, psplit_dim b) {
  psplit_i_dims *dims = at->dims;
  double x, y;
  if (psplit_i_dim_is_real(dims, a, &x) && psplit_i_dim_is_real(dims, b, &y))
    return truth(at, op == PSPLIT_FOLD_EQUAL        ? x == y
                     : op == PSPLIT_FOLD_LESS       ? x < y
                     : op == PSPLIT_FOLD_GREATER    ? x > y
                     : op == PSPLIT_FOLD_LESS_EQUAL ? x <= y
                                                    : x >= y);
  if (!psplit_i_dim_is_integer(dims, a) || !psplit_i_dim_is_integer(dims, b)) return PSPLIT_NONE;
  if (op == PSPLIT_FOLD_EQUAL)
    return a == b                            ? truth(at, true)
           : psplit_i_dim_differ(dims, a, b) ? truth(at, false)
                                             : PSPLIT_NONE;
  const bool swap = op == PSPLIT_FOLD_GREATER || op == PSPLIT_FOLD_GREATER_EQUAL;
  const psplit_dim d = swap ? psplit_i_dim_sub(dims, b, a) : psplit_i_dim_sub(dims, a, b);
  const int64_t low = psplit_i_dim_low(dims, d), high = psplit_i_dim_high(dims, d);
  const bool strict = op == PSPLIT_FOLD_LESS || op == PSPLIT_FOLD_GREATER;
  if (strict ? high < 0 : high <= 0) return truth(at, true);
  if (strict ? low >= 0 : low > 0) return truth(at, false);
  return PSPLIT_NONE;
}

static psplit_dim fold_logic(psplit_i_site *at, psplit_i_folding op, psplit_dim a, psplit_dim b) {
  int64_t x, y;
  const bool x_known = psplit_i_dim_is_const(at->dims, a, &x);
  const bool y_known = psplit_i_dim_is_const(at->dims, b, &y);
  if (op == PSPLIT_FOLD_AND && ((x_known && !x) || (y_known && !y))) return truth(at, false);
  if (op == PSPLIT_FOLD_OR && ((x_known && x) || (y_known && y))) return truth(at, true);
  if (!x_known || !y_known) return PSPLIT_NONE;
  return truth(at, op == PSPLIT_FOLD_AND ? x && y : op == PSPLIT_FOLD_OR ? x || y : !x != !y);
}

static psplit_dim fold_ints(psplit_i_site *at, psplit_i_folding op, psplit_dim a, psplit_dim b) {
  psplit_i_dims *dims = at->dims;
  int64_t x, y;
  switch (op) {
    case PSPLIT_FOLD_ADD: return psplit_i_dim_add(dims, a, b);
    case PSPLIT_FOLD_SUB: return psplit_i_dim_sub(dims, a, b);
    case PSPLIT_FOLD_MUL: return psplit_i_dim_mul(dims, a, b);
    case PSPLIT_FOLD_DIV: return psplit_i_dim_trunc_div(dims, a, b);
    case PSPLIT_FOLD_MOD: return psplit_i_dim_mod(dims, a, b);
    case PSPLIT_FOLD_MIN: return psplit_i_dim_min(dims, a, b);
    case PSPLIT_FOLD_MAX: return psplit_i_dim_max(dims, a, b);
    case PSPLIT_FOLD_FMOD:
      if (!psplit_i_dim_is_const(dims, a, &x) || !psplit_i_dim_is_const(dims, b, &y) || y == 0 ||
          y == -1)
        return PSPLIT_NONE;
      return psplit_i_dim_const(dims, x % y);
    case PSPLIT_FOLD_POW:
      if (!psplit_i_dim_is_const(dims, b, &y) || y < 0 || y > 64) return PSPLIT_NONE;
      x = y;
      for (y = 0, b = psplit_i_dim_const(dims, 1); y < x; y++) b = psplit_i_dim_mul(dims, a, b);
      return b;
    default: return PSPLIT_NONE;
  }
}

static psplit_dim fold_reals(psplit_i_site *at, psplit_i_folding op, int32_t elem, psplit_dim a,
                             psplit_dim b) {
  double x, y;
  if (!psplit_i_dim_is_real(at->dims, a, &x) || !psplit_i_dim_is_real(at->dims, b, &y))
    return fold_fractions(at, op, a, b);
  switch (op) {
    case PSPLIT_FOLD_ADD: return psplit_i_fold_real(at, elem, x + y);
    case PSPLIT_FOLD_SUB: return psplit_i_fold_real(at, elem, x - y);
    case PSPLIT_FOLD_MUL: return psplit_i_fold_real(at, elem, x * y);
    case PSPLIT_FOLD_DIV: return psplit_i_fold_real(at, elem, x / y);
    case PSPLIT_FOLD_MIN: return psplit_i_fold_real(at, elem, x < y ? x : y);
    case PSPLIT_FOLD_MAX: return psplit_i_fold_real(at, elem, x > y ? x : y);
    case PSPLIT_FOLD_POW: return psplit_i_fold_real(at, elem, pow(x, y));
    default: return PSPLIT_NONE;
  }
}

psplit_dim psplit_i_fold(psplit_i_site *at, psplit_i_folding op, int32_t from, int32_t elem,
                         psplit_dim a, psplit_dim b) {
  if (op >= PSPLIT_FOLD_AND) return psplit_i_fold_settle(at, elem, fold_logic(at, op, a, b));
  if (op >= PSPLIT_FOLD_EQUAL) return psplit_i_fold_settle(at, elem, compare(at, op, a, b));
  if (psplit_i_is_int_type(from)) return psplit_i_fold_settle(at, elem, fold_ints(at, op, a, b));
  return fold_reals(at, op, elem, a, b);
}
