/* Dimensions as integer expressions over symbols, hash-consed: equal ids are equal expressions.
 *
 * An expression is a polynomial with integer coefficients over atoms: symbols, floor quotients,
 * maxima, minima, broadcasts. It is kept in a canonical form, so `seq+past` and `past+seq` have one
 * id, and so have floor((h-1)/2)+1 and floor((h+1)/2). Expressions that would grow past a limit are
 * boxed: they keep their value under evaluation and lose only simplification.
 *
 * A symbol is named (a dim_param; one symbol per name and model; stands for an integer >= 0) or
 * anonymous (a size or an integer that only a run can tell). An id is never reused, and an
 * expression's id is above the ids it is made of. Nothing here reads an unknown as a number. */
#ifndef PSPLIT_SHAPES_DIM_H
#define PSPLIT_SHAPES_DIM_H

#include "base.h"

typedef uint32_t psplit_dim;

typedef struct psplit_i_dims psplit_i_dims;

/* NULL when out of memory. One table, one thread while expressions are made; reading is free. */
psplit_i_dims *psplit_i_dims_create(void);
void psplit_i_dims_destroy(psplit_i_dims *dims);

/* Number of ids so far. */
uint32_t psplit_i_dims_count(const psplit_i_dims *dims);

/* True once an allocation failed; every maker returned some valid id since. Check it at the end. */
bool psplit_i_dims_failed(const psplit_i_dims *dims);

/* Makers. Integer overflow gives an anonymous symbol. */
psplit_dim psplit_i_dim_const(psplit_i_dims *dims, int64_t value);
psplit_dim psplit_i_dim_symbol(psplit_i_dims *dims, const char *name); /* copies the name */
psplit_dim psplit_i_dim_fresh(psplit_i_dims *dims);                    /* anonymous, >= 0: a size */
psplit_dim psplit_i_dim_fresh_value(psplit_i_dims *dims);              /* anonymous, any integer */
psplit_dim psplit_i_dim_add(psplit_i_dims *dims, psplit_dim a, psplit_dim b);
psplit_dim psplit_i_dim_sub(psplit_i_dims *dims, psplit_dim a, psplit_dim b);
psplit_dim psplit_i_dim_mul(psplit_i_dims *dims, psplit_dim a, psplit_dim b);
psplit_dim psplit_i_dim_add_const(psplit_i_dims *dims, psplit_dim a, int64_t b);
psplit_dim psplit_i_dim_mul_const(psplit_i_dims *dims, psplit_dim a, int64_t b);
psplit_dim psplit_i_dim_floor_div(psplit_i_dims *dims, psplit_dim a, psplit_dim b);
psplit_dim psplit_i_dim_ceil_div(psplit_i_dims *dims, psplit_dim a, psplit_dim b);
/* Rounds to zero, as integer Div does. */
psplit_dim psplit_i_dim_trunc_div(psplit_i_dims *dims, psplit_dim a, psplit_dim b);
/* a - b * floor(a / b): the sign of b, as Mod with fmod = 0. */
psplit_dim psplit_i_dim_mod(psplit_i_dims *dims, psplit_dim a, psplit_dim b);
psplit_dim psplit_i_dim_max(psplit_i_dims *dims, psplit_dim a, psplit_dim b);
psplit_dim psplit_i_dim_min(psplit_i_dims *dims, psplit_dim a, psplit_dim b);
/* Size of an axis on which a and b are broadcast; PSPLIT_NONE where they are known to clash. */
psplit_dim psplit_i_dim_broadcast(psplit_i_dims *dims, psplit_dim a, psplit_dim b);

/* Contents of float tensors: a constant (an integral one becomes dim_const), and an exact quotient
 * by divisor >= 1. No maker above takes them. */
psplit_dim psplit_i_dim_real(psplit_i_dims *dims, double value);
psplit_dim psplit_i_dim_ratio(psplit_i_dims *dims, psplit_dim a, int64_t divisor);

/* Readers. */
/* Of a constant, integer or real. */
bool psplit_i_dim_is_real(const psplit_i_dims *dims, psplit_dim a, double *out);
/* Of a ratio: its parts. */
bool psplit_i_dim_is_ratio(const psplit_i_dims *dims, psplit_dim a, psplit_dim *out_dividend,
                           int64_t *out_divisor);
/* Whether it is an integer expression (neither a fractional real nor a ratio). */
bool psplit_i_dim_is_integer(const psplit_i_dims *dims, psplit_dim a);
bool psplit_i_dim_is_const(const psplit_i_dims *dims, psplit_dim a, int64_t *out);
/* Name of a named symbol; NULL for everything else. */
const char *psplit_i_dim_name(const psplit_i_dims *dims, psplit_dim a);
/* A lone anonymous symbol. */
bool psplit_i_dim_is_anonymous(const psplit_i_dims *dims, psplit_dim a);
/* Number of a lone symbol, named or not (see below); PSPLIT_NONE for everything else. */
uint32_t psplit_i_dim_symbol_number(const psplit_i_dims *dims, psplit_dim a);
/* Whether an anonymous symbol is part of it. */
bool psplit_i_dim_has_anonymous(const psplit_i_dims *dims, psplit_dim a);
/* A sum of products: `a` as terms of a number times named symbols, a power by repetition; a
 * constant is a term without symbols, and 0 is no term. False where it is none: a quotient, an
 * anonymous symbol. */
enum { PSPLIT_DIM_MOST_TERMS = 25, PSPLIT_DIM_MOST_SYMBOLS = 16 };
typedef struct psplit_i_dim_product {
  int64_t factor;
  uint32_t n_symbols;
  const char *symbols[PSPLIT_DIM_MOST_SYMBOLS];
} psplit_i_dim_product;
bool psplit_i_dim_products(const psplit_i_dims *dims, psplit_dim a,
                           psplit_i_dim_product out[PSPLIT_DIM_MOST_TERMS], uint32_t *out_n);
/* Bounds that hold for every value of the symbols; INT64_MIN / INT64_MAX where there are none. */
int64_t psplit_i_dim_low(const psplit_i_dims *dims, psplit_dim a);
int64_t psplit_i_dim_high(const psplit_i_dims *dims, psplit_dim a);
/* Whether a and b can be told apart for sure (3 and 4, n and n+1). */
bool psplit_i_dim_differ(psplit_i_dims *dims, psplit_dim a, psplit_dim b);
/* "floor((h+1)/2)", "batch*12", "?3" for an anonymous symbol; cut at about 200 bytes with "...". */
void psplit_i_dim_print(const psplit_i_dims *dims, psplit_dim a, psplit_i_text *out);

/* Symbols by number, 0 .. count-1; name NULL for anonymous ones. */
uint32_t psplit_i_dims_n_symbols(const psplit_i_dims *dims);
const char *psplit_i_dims_symbol_name(const psplit_i_dims *dims, uint32_t symbol);

/* Evaluates every expression of the table, O(table). symbol_value[n_symbols] and symbol_known
 * [n_symbols] are the bindings; out_value[count] and out_known[count] are caller's memory. A result
 * that overflows int64, divides by zero or clashes in a broadcast is unknown. */
void psplit_i_dims_eval(const psplit_i_dims *dims, const int64_t *symbol_value,
                        const bool *symbol_known, int64_t *out_value, bool *out_known);

/* Sets mark[s] for each symbol s that `a` is made of. `visited` has count bytes, zeroed by the
 * caller before the first of a series of calls; the series is O(table). False when out of memory.
 */
PSPLIT_MUST_USE bool psplit_i_dim_mark_symbols(const psplit_i_dims *dims, psplit_dim a,
                                               unsigned char *visited, bool *mark);

#endif
