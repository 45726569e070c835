/* Sums and products of expressions, in their canonical form as polynomials. */
#include "dim_table.h"

#include <string.h>

void psplit_i_dim_to_poly(const psplit_i_dims *dims, psplit_dim a, psplit_i_dim_poly *out) {
  const psplit_i_dim_expr *e = psplit_i_dim_at(dims, a);
  out->constant = 0;
  out->n = 0;
  if (e->kind == PSPLIT_DIM_CONST) {
    out->constant = e->constant;
  } else if (e->kind == PSPLIT_DIM_SUM) {
    out->constant = e->constant;
    out->n = e->n;
    for (uint32_t i = 0; i < e->n; i++)
      out->terms[i] = (psplit_i_dim_term){dims->coefs.items[e->coef_off + i],
                                          dims->operands.items[e->operand_off + i]};
  } else {
    out->n = 1;
    out->terms[0] = (psplit_i_dim_term){1, a};
  }
}

/* A monomial of named symbols alone. */
static bool named_factors(const psplit_i_dims *dims, psplit_dim mono, psplit_i_dim_product *out) {
  const psplit_i_dim_expr *e = psplit_i_dim_at(dims, mono);
  const bool is_product = e->kind == PSPLIT_DIM_PRODUCT;
  const uint32_t n = is_product ? e->n : 1;
  if (n > PSPLIT_DIM_MOST_SYMBOLS) return false;
  for (uint32_t i = 0; i < n; i++) {
    const psplit_dim factor = is_product ? dims->operands.items[e->operand_off + i] : mono;
    out->symbols[i] = psplit_i_dim_name(dims, factor);
    if (!out->symbols[i]) return false;
  }
  out->n_symbols = n;
  return true;
}

bool psplit_i_dim_products(const psplit_i_dims *dims, psplit_dim a,
                           psplit_i_dim_product out[PSPLIT_DIM_MOST_TERMS], uint32_t *out_n) {
  _Static_assert((int)PSPLIT_DIM_MOST_TERMS > (int)PSPLIT_DIM_TERMS, "a constant beside all terms");
  psplit_i_dim_poly poly;
  psplit_i_dim_to_poly(dims, a, &poly);
  *out_n = 0;
  for (uint32_t i = 0; i < poly.n; i++) {
    out[i].factor = poly.terms[i].coef;
    if (!named_factors(dims, poly.terms[i].mono, &out[(*out_n)++])) return false;
  }
  if (poly.constant)
    out[(*out_n)++] = (psplit_i_dim_product){.factor = poly.constant, .n_symbols = 0};
  return true;
}

psplit_dim psplit_i_dim_from_poly(psplit_i_dims *dims, const psplit_i_dim_poly *poly) {
  if (poly->n == 0) return psplit_i_dim_const(dims, poly->constant);
  if (poly->n == 1 && poly->constant == 0 && poly->terms[0].coef == 1) return poly->terms[0].mono;
  psplit_dim operands[PSPLIT_DIM_TERMS];
  int64_t coefs[PSPLIT_DIM_TERMS];
  for (uint32_t i = 0; i < poly->n; i++) {
    operands[i] = poly->terms[i].mono;
    coefs[i] = poly->terms[i].coef;
  }
  return psplit_i_dim_make(dims, PSPLIT_DIM_SUM, poly->constant, operands, coefs, poly->n);
}

bool psplit_i_dim_poly_add(psplit_i_dim_poly *poly, int64_t coef, psplit_dim mono) {
  if (coef == 0) return true;
  uint32_t at = 0;
  while (at < poly->n && poly->terms[at].mono < mono) at++;
  if (at < poly->n && poly->terms[at].mono == mono) {
    int64_t sum;
    if (!psplit_i_add_i64(poly->terms[at].coef, coef, &sum)) return false;
    if (sum != 0) {
      poly->terms[at].coef = sum;
    } else {
      poly->n--;
      memmove(&poly->terms[at], &poly->terms[at + 1], (poly->n - at) * sizeof *poly->terms);
    }
    return true;
  }
  if (poly->n == PSPLIT_DIM_TERMS) return false;
  memmove(&poly->terms[at + 1], &poly->terms[at], (poly->n - at) * sizeof *poly->terms);
  poly->terms[at] = (psplit_i_dim_term){coef, mono};
  poly->n++;
  return true;
}

psplit_dim psplit_i_dim_atom(psplit_i_dims *dims, psplit_dim a) {
  const psplit_i_dim_kind kind = (psplit_i_dim_kind)psplit_i_dim_at(dims, a)->kind;
  if (kind != PSPLIT_DIM_SUM && kind != PSPLIT_DIM_PRODUCT && kind != PSPLIT_DIM_CONST) return a;
  return psplit_i_dim_make(dims, PSPLIT_DIM_BOX, 0, &a, NULL, 1);
}

/* coef_a * a + coef_b * b. */
static psplit_dim combine(psplit_i_dims *dims, psplit_dim a, int64_t coef_a, psplit_dim b,
                          int64_t coef_b) {
  psplit_i_dim_poly sum = {0}, part;
  const psplit_dim operands[2] = {a, b};
  const int64_t coefs[2] = {coef_a, coef_b};
  bool fits = true;
  for (int i = 0; i < 2 && fits; i++) {
    psplit_i_dim_to_poly(dims, operands[i], &part);
    int64_t scaled;
    fits = psplit_i_mul_i64(part.constant, coefs[i], &scaled) &&
           psplit_i_add_i64(sum.constant, scaled, &sum.constant);
    for (uint32_t t = 0; t < part.n && fits; t++)
      fits = psplit_i_mul_i64(part.terms[t].coef, coefs[i], &scaled) &&
             psplit_i_dim_poly_add(&sum, scaled, part.terms[t].mono);
  }
  if (fits) return psplit_i_dim_from_poly(dims, &sum);
  if (psplit_i_dim_at(dims, a)->kind == PSPLIT_DIM_CONST &&
      psplit_i_dim_at(dims, b)->kind == PSPLIT_DIM_CONST)
    return psplit_i_dim_fresh_value(dims);
  memset(&sum, 0, sizeof sum);
  if (!psplit_i_dim_poly_add(&sum, coef_a, psplit_i_dim_atom(dims, a)) ||
      !psplit_i_dim_poly_add(&sum, coef_b, psplit_i_dim_atom(dims, b)))
    return psplit_i_dim_fresh_value(dims);
  return psplit_i_dim_from_poly(dims, &sum);
}

psplit_dim psplit_i_dim_add(psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  return combine(dims, a, 1, b, 1);
}
psplit_dim psplit_i_dim_sub(psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  return combine(dims, a, 1, b, -1);
}
psplit_dim psplit_i_dim_add_const(psplit_i_dims *dims, psplit_dim a, int64_t b) {
  return b == 0 ? a : combine(dims, a, 1, psplit_i_dim_const(dims, b), 1);
}
psplit_dim psplit_i_dim_mul_const(psplit_i_dims *dims, psplit_dim a, int64_t b) {
  return b == 1 ? a : combine(dims, a, b, 0, 1);
}

/* Factors of a monomial. */
static uint32_t factors(const psplit_i_dims *dims, psplit_dim a, psplit_dim *out) {
  const psplit_i_dim_expr *e = psplit_i_dim_at(dims, a);
  if (e->kind != PSPLIT_DIM_PRODUCT) {
    out[0] = a;
    return 1;
  }
  memcpy(out, &dims->operands.items[e->operand_off], e->n * sizeof *out);
  return e->n;
}

psplit_dim psplit_i_dim_mono_mul(psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  psplit_dim fa[PSPLIT_DIM_FACTORS], fb[PSPLIT_DIM_FACTORS], merged[PSPLIT_DIM_FACTORS];
  const uint32_t na = factors(dims, a, fa), nb = factors(dims, b, fb);
  if (na + nb > PSPLIT_DIM_FACTORS) return PSPLIT_NONE;
  for (uint32_t i = 0, j = 0; i + j < na + nb;)
    if (j == nb || (i < na && fa[i] <= fb[j])) {
      merged[i + j] = fa[i];
      i++;
    } else {
      merged[i + j] = fb[j];
      j++;
    }
  return psplit_i_dim_make(dims, PSPLIT_DIM_PRODUCT, 0, merged, NULL, na + nb);
}

bool psplit_i_dim_mono_div(psplit_i_dims *dims, psplit_dim a, psplit_dim b, psplit_dim *out) {
  psplit_dim fa[PSPLIT_DIM_FACTORS], fb[PSPLIT_DIM_FACTORS], rest[PSPLIT_DIM_FACTORS];
  const uint32_t na = factors(dims, a, fa), nb = factors(dims, b, fb);
  uint32_t n = 0, j = 0;
  for (uint32_t i = 0; i < na; i++) {
    if (j < nb && fa[i] == fb[j])
      j++;
    else
      rest[n++] = fa[i];
  }
  if (j < nb) return false;
  *out = n == 0   ? PSPLIT_NONE
         : n == 1 ? rest[0]
                  : psplit_i_dim_make(dims, PSPLIT_DIM_PRODUCT, 0, rest, NULL, n);
  return true;
}

static psplit_dim mul_poly(psplit_i_dims *dims, const psplit_i_dim_poly *a,
                           const psplit_i_dim_poly *b, bool *fits) {
  psplit_i_dim_poly product = {0};
  int64_t c;
  *fits = psplit_i_mul_i64(a->constant, b->constant, &product.constant);
  for (uint32_t i = 0; i < a->n && *fits; i++)
    *fits = psplit_i_mul_i64(a->terms[i].coef, b->constant, &c) &&
            psplit_i_dim_poly_add(&product, c, a->terms[i].mono);
  for (uint32_t j = 0; j < b->n && *fits; j++)
    *fits = psplit_i_mul_i64(b->terms[j].coef, a->constant, &c) &&
            psplit_i_dim_poly_add(&product, c, b->terms[j].mono);
  for (uint32_t i = 0; i < a->n && *fits; i++)
    for (uint32_t j = 0; j < b->n && *fits; j++) {
      const psplit_dim mono = psplit_i_dim_mono_mul(dims, a->terms[i].mono, b->terms[j].mono);
      *fits = mono != PSPLIT_NONE && psplit_i_mul_i64(a->terms[i].coef, b->terms[j].coef, &c) &&
              psplit_i_dim_poly_add(&product, c, mono);
    }
  return *fits ? psplit_i_dim_from_poly(dims, &product) : 0;
}

psplit_dim psplit_i_dim_mul(psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  psplit_i_dim_poly pa, pb;
  psplit_i_dim_to_poly(dims, a, &pa);
  psplit_i_dim_to_poly(dims, b, &pb);
  bool fits;
  psplit_dim result = mul_poly(dims, &pa, &pb, &fits);
  if (fits) return result;
  if (pa.n == 0 && pb.n == 0) return psplit_i_dim_fresh_value(dims);
  /* Boxes leave one term and one factor on each side: only the coefficients can still overflow. */
  psplit_i_dim_to_poly(dims, pa.n == 0 ? a : psplit_i_dim_atom(dims, a), &pa);
  psplit_i_dim_to_poly(dims, pb.n == 0 ? b : psplit_i_dim_atom(dims, b), &pb);
  result = mul_poly(dims, &pa, &pb, &fits);
  return fits ? result : psplit_i_dim_fresh_value(dims);
}

bool psplit_i_dim_differ(psplit_i_dims *dims, psplit_dim a, psplit_dim b) {
  if (a == b) return false;
  if (psplit_i_dim_low(dims, a) > psplit_i_dim_high(dims, b) ||
      psplit_i_dim_high(dims, a) < psplit_i_dim_low(dims, b))
    return true;
  const psplit_dim d = psplit_i_dim_sub(dims, a, b);
  return psplit_i_dim_low(dims, d) > 0 || psplit_i_dim_high(dims, d) < 0;
}
