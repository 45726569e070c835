/* Inside of psplit_i_dims, shared by dim.c (the table, symbols and bounds), dim_poly.c (sums and
 * products), dim_quotient.c and dim_eval.c. */
#ifndef PSPLIT_SHAPES_DIM_TABLE_H
#define PSPLIT_SHAPES_DIM_TABLE_H

#include "dim.h"

enum { PSPLIT_DIM_TERMS = 24, PSPLIT_DIM_FACTORS = 16, PSPLIT_DIM_ARGS = 8 };

typedef enum psplit_i_dim_kind {
  PSPLIT_DIM_CONST,     /* constant */
  PSPLIT_DIM_REAL,      /* constant holds the bits of a double; contents of float tensors only */
  PSPLIT_DIM_SYMBOL,    /* constant is its number */
  PSPLIT_DIM_SUM,       /* constant + sum of coefficient * operand, operands ascending */
  PSPLIT_DIM_PRODUCT,   /* of atoms, ascending, a power by repetition */
  PSPLIT_DIM_FLOOR_DIV, /* operands: dividend, divisor */
  PSPLIT_DIM_TRUNC_DIV,
  PSPLIT_DIM_RATIO, /* exact quotient by a positive constant; contents of float tensors only */
  PSPLIT_DIM_MAX,   /* operands ascending */
  PSPLIT_DIM_MIN,
  PSPLIT_DIM_BROADCAST,
  PSPLIT_DIM_BOX /* an expression taken as an atom, because it is long */
} psplit_i_dim_kind;

typedef struct psplit_i_dim_expr {
  uint8_t kind;
  bool anonymous;       /* an anonymous symbol is part of it */
  uint16_t n;           /* operands */
  uint32_t operand_off; /* into `operands` */
  uint32_t coef_off;    /* SUM: into `coefs` */
  uint32_t hash;
  int64_t constant;
  int64_t low, high;
} psplit_i_dim_expr;

struct psplit_i_dims {
  PSPLIT_VEC(psplit_i_dim_expr) exprs;
  PSPLIT_VEC(psplit_dim) operands;
  PSPLIT_VEC(int64_t) coefs;
  PSPLIT_VEC(const char *) symbols; /* names; NULL for anonymous ones */
  PSPLIT_VEC(psplit_dim) symbol_expr;
  PSPLIT_VEC(uint32_t) named; /* name id -> symbol number */
  psplit_i_intern names;
  psplit_i_arena arena;
  uint32_t *slots; /* open addressing, id + 1 */
  uint32_t n_slots;
  bool failed;
};

/* A polynomial taken apart. */
typedef struct psplit_i_dim_term {
  int64_t coef;
  psplit_dim mono; /* an atom or a PRODUCT */
} psplit_i_dim_term;

typedef struct psplit_i_dim_poly {
  int64_t constant;
  uint32_t n;
  psplit_i_dim_term terms[PSPLIT_DIM_TERMS]; /* ascending mono, coefficients not 0 */
} psplit_i_dim_poly;

void psplit_i_dim_to_poly(const psplit_i_dims *dims, psplit_dim a, psplit_i_dim_poly *out);
psplit_dim psplit_i_dim_from_poly(psplit_i_dims *dims, const psplit_i_dim_poly *poly);

/* Adds coef * mono; false when full or on overflow. */
bool psplit_i_dim_poly_add(psplit_i_dim_poly *poly, int64_t coef, psplit_dim mono);

/* An atom with the value of `a`. */
psplit_dim psplit_i_dim_atom(psplit_i_dims *dims, psplit_dim a);

/* Product of two monomials (atoms or PRODUCTs); PSPLIT_NONE when too long. */
psplit_dim psplit_i_dim_mono_mul(psplit_i_dims *dims, psplit_dim a, psplit_dim b);

/* a / b for monomials where b's factors are among a's; *out is PSPLIT_NONE for a quotient of 1. */
bool psplit_i_dim_mono_div(psplit_i_dims *dims, psplit_dim a, psplit_dim b, psplit_dim *out);

/* Finds or adds an expression. */
psplit_dim psplit_i_dim_make(psplit_i_dims *dims, psplit_i_dim_kind kind, int64_t constant,
                             const psplit_dim *operands, const int64_t *coefs, uint32_t n);

static inline const psplit_i_dim_expr *psplit_i_dim_at(const psplit_i_dims *dims, psplit_dim a) {
  return &dims->exprs.items[a];
}

static inline bool psplit_i_mul_i64(int64_t a, int64_t b, int64_t *out) {
  if (a != 0 && b != 0) {
    if ((a == -1 && b == INT64_MIN) || (b == -1 && a == INT64_MIN)) return false;
    if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)
              : (b > 0 ? a < INT64_MIN / b : a < INT64_MAX / b))
      return false;
  }
  *out = a * b;
  return true;
}

/* b > 0. */
static inline int64_t psplit_i_floor_div_i64(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

#endif
