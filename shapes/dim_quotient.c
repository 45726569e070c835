/* Quotients, maxima, minima and broadcasts of dimensions. */
#include <string.h>

#include "dim_table.h"

static psplit_dim make2(psplit_i_dims *dims, psplit_i_dim_kind kind, psplit_dim a, psplit_dim b) {
  return psplit_i_dim_make(dims, kind, 0, (const psplit_dim[]){a, b}, NULL, 2);
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

static uint32_t degree(const psplit_i_dims *dims, psplit_dim mono) {
  const psplit_i_dim_expr *e = psplit_i_dim_at(dims, mono);
  return e->kind == PSPLIT_DIM_PRODUCT ? e->n : 1;
}

static psplit_dim factor_at(const psplit_i_dims *dims, psplit_dim mono, uint32_t i) {
  const psplit_i_dim_expr *e = psplit_i_dim_at(dims, mono);
  return e->kind == PSPLIT_DIM_PRODUCT ? dims->operands.items[e->operand_off + i] : mono;
}

/* Graded lexicographic order, which a product respects: a < b gives a*c < b*c. */
static int compare_monos(const psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  const uint32_t da = degree(dims, a), db = degree(dims, b);
  if (da != db) return da < db ? -1 : 1;
  for (uint32_t i = 0; i < da; i++) {
    const psplit_dim fa = factor_at(dims, a, i), fb = factor_at(dims, b, i);
    if (fa != fb) return fa > fb ? -1 : 1;
  }
  return 0;
}

/* Index of the leading term; poly->n > 0. */
static uint32_t lead(const psplit_i_dims *dims, const psplit_i_dim_poly *poly) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < poly->n; i++)
    if (compare_monos(dims, poly->terms[best].mono, poly->terms[i].mono) < 0) best = i;
  return best;
}

/* Polynomial division without remainder. */
static bool divide_exactly(psplit_i_dims *dims, const psplit_i_dim_poly *a,
                           const psplit_i_dim_poly *b, psplit_dim *out) {
  psplit_i_dim_poly rest = *a, quotient = {0};
  if (b->n == 0) return false;
  const psplit_i_dim_term b_lead = b->terms[lead(dims, b)];
  for (int step = 0; step < 2 * PSPLIT_DIM_TERMS; step++) {
    if (rest.n == 0) {
      if (rest.constant != 0) return false;
      *out = psplit_i_dim_from_poly(dims, &quotient);
      return true;
    }
    const psplit_i_dim_term a_lead = rest.terms[lead(dims, &rest)];
    psplit_dim mono;
    if (b_lead.coef == 0 || a_lead.coef == INT64_MIN || a_lead.coef % b_lead.coef != 0 ||
        !psplit_i_dim_mono_div(dims, a_lead.mono, b_lead.mono, &mono))
      return false;
    const int64_t coef = a_lead.coef / b_lead.coef;
    int64_t c;
    if (mono == PSPLIT_NONE ? !psplit_i_add_i64(quotient.constant, coef, &quotient.constant)
                            : !psplit_i_dim_poly_add(&quotient, coef, mono))
      return false;
    for (uint32_t i = 0; i < b->n; i++) {
      const psplit_dim part = mono == PSPLIT_NONE
                                ? b->terms[i].mono
                                : psplit_i_dim_mono_mul(dims, b->terms[i].mono, mono);
      if (part == PSPLIT_NONE || !psplit_i_mul_i64(b->terms[i].coef, coef, &c) || c == INT64_MIN ||
          !psplit_i_dim_poly_add(&rest, -c, part))
        return false;
    }
    if (!psplit_i_mul_i64(b->constant, coef, &c) || c == INT64_MIN) return false;
    if (mono == PSPLIT_NONE ? !psplit_i_add_i64(rest.constant, -c, &rest.constant)
                            : !psplit_i_dim_poly_add(&rest, -c, mono))
      return false;
  }
  return false;
}

/* floor(a / b) for b > 1: multiples of b leave the quotient, the rest is reduced by the common
 * factor and to a constant in [0, b), and a quotient of a quotient is one quotient. */
static psplit_dim floor_div_const(psplit_i_dims *dims, psplit_dim a, int64_t b) {
  psplit_i_dim_poly whole = {0}, rest = {0}, all;
  psplit_i_dim_to_poly(dims, a, &all);
  int64_t common = b;
  for (uint32_t i = 0; i < all.n; i++) {
    psplit_i_dim_term term = all.terms[i];
    if (term.coef % b == 0) {
      term.coef /= b;
      whole.terms[whole.n++] = term;
    } else {
      rest.terms[rest.n++] = term;
      common = gcd(common, term.coef);
    }
  }
  const int64_t constant = psplit_i_floor_div_i64(all.constant, common);
  b /= common;
  for (uint32_t i = 0; i < rest.n; i++) rest.terms[i].coef /= common;
  whole.constant = psplit_i_floor_div_i64(constant, b);
  rest.constant = constant - whole.constant * b;
  if (rest.n == 0) return psplit_i_dim_from_poly(dims, &whole);

  if (rest.n == 1 && rest.terms[0].coef == 1) {
    const psplit_i_dim_expr *inner = psplit_i_dim_at(dims, rest.terms[0].mono);
    int64_t divisor, product, offset;
    if (inner->kind == PSPLIT_DIM_FLOOR_DIV) {
      const psplit_dim dividend = dims->operands.items[inner->operand_off];
      if (psplit_i_dim_is_const(dims, dims->operands.items[inner->operand_off + 1], &divisor) &&
          divisor > 0 && psplit_i_mul_i64(divisor, b, &product) &&
          psplit_i_mul_i64(divisor, rest.constant, &offset))
        return psplit_i_dim_add(
          dims, psplit_i_dim_from_poly(dims, &whole),
          floor_div_const(dims, psplit_i_dim_add_const(dims, dividend, offset), product));
    }
  }
  const psplit_dim dividend = psplit_i_dim_from_poly(dims, &rest);
  const int64_t low = psplit_i_dim_low(dims, dividend), high = psplit_i_dim_high(dims, dividend);
  if (low != INT64_MIN && high != INT64_MAX &&
      psplit_i_floor_div_i64(low, b) == psplit_i_floor_div_i64(high, b))
    return psplit_i_dim_add_const(dims, psplit_i_dim_from_poly(dims, &whole),
                                  psplit_i_floor_div_i64(low, b));
  const psplit_dim quotient =
    make2(dims, PSPLIT_DIM_FLOOR_DIV, dividend, psplit_i_dim_const(dims, b));
  return psplit_i_dim_add(dims, psplit_i_dim_from_poly(dims, &whole), quotient);
}

psplit_dim psplit_i_dim_floor_div(psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  int64_t divisor;
  if (psplit_i_dim_is_const(dims, b, &divisor)) {
    if (divisor == 0 || divisor == INT64_MIN) return psplit_i_dim_fresh_value(dims);
    if (divisor == 1) return a;
    if (divisor < 0)
      return psplit_i_dim_floor_div(dims, psplit_i_dim_mul_const(dims, a, -1),
                                    psplit_i_dim_const(dims, -divisor));
    return floor_div_const(dims, a, divisor);
  }
  if (a == b) return psplit_i_dim_const(dims, 1);
  psplit_i_dim_poly pa, pb;
  psplit_i_dim_to_poly(dims, a, &pa);
  psplit_i_dim_to_poly(dims, b, &pb);
  psplit_dim quotient;
  if (pa.n == 0 && pa.constant == 0) return psplit_i_dim_const(dims, 0);
  if (divide_exactly(dims, &pa, &pb, &quotient)) return quotient;
  return make2(dims, PSPLIT_DIM_FLOOR_DIV, a, b);
}

psplit_dim psplit_i_dim_ceil_div(psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  return psplit_i_dim_floor_div(dims,
                                psplit_i_dim_add_const(dims, psplit_i_dim_add(dims, a, b), -1), b);
}

psplit_dim psplit_i_dim_trunc_div(psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  int64_t x, y;
  if (psplit_i_dim_is_const(dims, b, &y)) {
    if (y == 0) return psplit_i_dim_fresh_value(dims);
    if (psplit_i_dim_is_const(dims, a, &x))
      return x == INT64_MIN && y == -1 ? psplit_i_dim_fresh_value(dims)
                                       : psplit_i_dim_const(dims, x / y);
  }
  if (psplit_i_dim_low(dims, a) >= 0 && psplit_i_dim_low(dims, b) >= 0)
    return psplit_i_dim_floor_div(dims, a, b);
  psplit_i_dim_poly pa, pb;
  psplit_i_dim_to_poly(dims, a, &pa);
  psplit_i_dim_to_poly(dims, b, &pb);
  psplit_dim quotient;
  if (divide_exactly(dims, &pa, &pb, &quotient)) return quotient;
  if (pb.n == 0 && pb.constant != 0) {
    bool exact = pb.constant != -1 && pa.constant % pb.constant == 0;
    for (uint32_t i = 0; i < pa.n && exact; i++) exact = pa.terms[i].coef % pb.constant == 0;
    if (exact) {
      pa.constant /= pb.constant;
      for (uint32_t i = 0; i < pa.n; i++) pa.terms[i].coef /= pb.constant;
      return psplit_i_dim_from_poly(dims, &pa);
    }
  }
  return make2(dims, PSPLIT_DIM_TRUNC_DIV, a, b);
}

psplit_dim psplit_i_dim_mod(psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  int64_t y;
  if (psplit_i_dim_is_const(dims, b, &y) && (y == 0 || y == INT64_MIN))
    return psplit_i_dim_fresh_value(dims);
  return psplit_i_dim_sub(dims, a, psplit_i_dim_mul(dims, b, psplit_i_dim_floor_div(dims, a, b)));
}

/* Operands of `a` if it is of `kind`, else `a` itself, added to list[n]; 0 if too many. */
static uint32_t gather(const psplit_i_dims *dims, psplit_i_dim_kind kind, psplit_dim a,
                       psplit_dim *list, uint32_t n) {
  const psplit_i_dim_expr *e = psplit_i_dim_at(dims, a);
  const uint32_t more = e->kind == kind ? e->n : 1;
  if (n + more > PSPLIT_DIM_ARGS) return 0;
  for (uint32_t i = 0; i < more; i++) {
    const psplit_dim operand = e->kind == kind ? dims->operands.items[e->operand_off + i] : a;
    uint32_t at = 0;
    while (at < n && list[at] < operand) at++;
    if (at < n && list[at] == operand) continue;
    memmove(&list[at + 1], &list[at], (n - at) * sizeof *list);
    list[at] = operand;
    n++;
  }
  return n;
}

/* max (up) or min (not up). */
static psplit_dim extreme(psplit_i_dims *dims, psplit_dim a, psplit_dim b, bool up) {
  if (a == b) return a;
  const psplit_dim larger = up ? a : b, smaller = up ? b : a;
  if (psplit_i_dim_low(dims, a) >= psplit_i_dim_high(dims, b)) return larger;
  if (psplit_i_dim_high(dims, a) <= psplit_i_dim_low(dims, b)) return smaller;
  const psplit_dim difference = psplit_i_dim_sub(dims, a, b);
  if (psplit_i_dim_low(dims, difference) >= 0) return larger;
  if (psplit_i_dim_high(dims, difference) <= 0) return smaller;
  const psplit_i_dim_kind kind = up ? PSPLIT_DIM_MAX : PSPLIT_DIM_MIN;
  psplit_dim list[PSPLIT_DIM_ARGS + 1];
  uint32_t n = gather(dims, kind, a, list, 0);
  if (n > 0) n = gather(dims, kind, b, list, n);
  if (n == 1) return list[0];
  if (n > 1) return psplit_i_dim_make(dims, kind, 0, list, NULL, n);
  return make2(dims, kind, a < b ? a : b, a < b ? b : a);
}

psplit_dim psplit_i_dim_max(psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  return extreme(dims, a, b, true);
}
psplit_dim psplit_i_dim_min(psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  return extreme(dims, a, b, false);
}

psplit_dim psplit_i_dim_broadcast(psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  if (a == b) return a;
  int64_t x = 0, y = 0;
  const bool a_const = psplit_i_dim_is_const(dims, a, &x);
  const bool b_const = psplit_i_dim_is_const(dims, b, &y);
  if (a_const && x == 1) return b;
  if (b_const && y == 1) return a;
  if (a_const && b_const) return PSPLIT_NONE;
  /* The other side can only be 1 or the same. */
  if (a_const || psplit_i_dim_low(dims, a) > 1) return a;
  if (b_const || psplit_i_dim_low(dims, b) > 1) return b;
  psplit_dim list[PSPLIT_DIM_ARGS + 1];
  uint32_t n = gather(dims, PSPLIT_DIM_BROADCAST, a, list, 0);
  if (n > 0) n = gather(dims, PSPLIT_DIM_BROADCAST, b, list, n);
  if (n == 1) return list[0];
  if (n == 0) return make2(dims, PSPLIT_DIM_BROADCAST, a < b ? a : b, a < b ? b : a);
  return psplit_i_dim_make(dims, PSPLIT_DIM_BROADCAST, 0, list, NULL, n);
}

psplit_dim psplit_i_dim_real(psplit_i_dims *dims, double value) {
  if (value > -9007199254740992.0 && value < 9007199254740992.0 && (double)(int64_t)value == value)
    return psplit_i_dim_const(dims, (int64_t)value);
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return psplit_i_dim_make(dims, PSPLIT_DIM_REAL, bits, NULL, NULL, 0);
}

psplit_dim psplit_i_dim_ratio(psplit_i_dims *dims, psplit_dim a, int64_t divisor) {
  if (divisor == 1) return a;
  psplit_i_dim_poly poly;
  psplit_i_dim_to_poly(dims, a, &poly);
  int64_t common = gcd(divisor, poly.constant);
  for (uint32_t i = 0; i < poly.n; i++) common = gcd(common, poly.terms[i].coef);
  if (common > 1) {
    poly.constant /= common;
    for (uint32_t i = 0; i < poly.n; i++) poly.terms[i].coef /= common;
    return psplit_i_dim_ratio(dims, psplit_i_dim_from_poly(dims, &poly), divisor / common);
  }
  return make2(dims, PSPLIT_DIM_RATIO, a, psplit_i_dim_const(dims, divisor));
}

bool psplit_i_dim_is_real(const psplit_i_dims *dims, psplit_dim a, double *out) {
  const psplit_i_dim_expr *e = psplit_i_dim_at(dims, a);
  if (e->kind == PSPLIT_DIM_CONST)
    *out = (double)e->constant;
  else if (e->kind == PSPLIT_DIM_REAL)
    memcpy(out, &e->constant, sizeof *out);
  else
    return false;
  return true;
}

bool psplit_i_dim_is_ratio(const psplit_i_dims *dims, psplit_dim a, psplit_dim *out_dividend,
                           int64_t *out_divisor) {
  const psplit_i_dim_expr *e = psplit_i_dim_at(dims, a);
  if (e->kind != PSPLIT_DIM_RATIO) return false;
  *out_dividend = dims->operands.items[e->operand_off];
  return psplit_i_dim_is_const(dims, dims->operands.items[e->operand_off + 1], out_divisor);
}

bool psplit_i_dim_is_integer(const psplit_i_dims *dims, psplit_dim a) {
  const psplit_i_dim_kind kind = (psplit_i_dim_kind)psplit_i_dim_at(dims, a)->kind;
  return kind != PSPLIT_DIM_REAL && kind != PSPLIT_DIM_RATIO;
}
