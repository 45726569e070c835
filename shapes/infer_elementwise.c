/* Rules: element by element, with broadcasting; contents of small tensors are computed. */
#include "infer_fold.h"

#include <math.h>
#include <string.h>

enum { BOOL = 9, REAL_ELEMENTS = 64 };

/* Position in input `type` of position `at_out` in an output of `rank` dims[]; all numbers. */
static int64_t source(const psplit_i_site *at, const psplit_i_vtype *type, int32_t rank,
                      const psplit_dim *dims, int64_t at_out) {
  int64_t position = 0, stride = 1;
  for (int32_t axis = rank - 1; axis >= 0; axis--) {
    int64_t size = 1, own = 1;
    psplit_i_dim_is_const(at->dims, dims[axis], &size);
    const int64_t coordinate = at_out % size;
    at_out /= size;
    if (axis < rank - type->rank) continue;
    psplit_i_dim_is_const(at->dims, type->dims[axis - (rank - type->rank)], &own);
    if (own != 1) position += coordinate * stride;
    stride *= own;
  }
  return position;
}

/* Whether contents of the output may be worth computing; its element count. */
static bool foldable(psplit_i_site *at, int32_t elem, int32_t rank, const psplit_dim *dims,
                     int64_t *out_n) {
  const psplit_i_vtype type = {.kind = PSPLIT_TYPE_TENSOR, .rank = rank, .dims = dims};
  if (!psplit_i_is_int_type(elem) && !psplit_i_is_real_type(elem)) return false;
  if (!psplit_i_count(at->dims, &type, out_n)) return false;
  return *out_n <= (psplit_i_is_int_type(elem) ? PSPLIT_MAX_ELEMENTS : REAL_ELEMENTS);
}

static void binary(psplit_i_site *at, psplit_i_folding op, int32_t elem) {
  psplit_dim dims[PSPLIT_MAX_RANK];
  if (at->node->opset > 0 && at->node->opset < 7) { /* one-way broadcast to the first input */
    psplit_i_out_like(at, 0, 0, elem);
    return;
  }
  const int32_t rank = psplit_i_broadcast(at, 2, dims);
  psplit_i_out(at, 0, elem, rank, dims);
  int64_t n;
  uint32_t na, nb;
  if (rank < 0 || !foldable(at, elem, rank, dims, &n)) return;
  const psplit_dim *a = psplit_i_elements(at, 0, &na);
  const psplit_dim *b = a ? psplit_i_elements(at, 1, &nb) : NULL;
  psplit_dim *out = b ? psplit_i_new_elements(at, n) : NULL;
  if (!out) return;
  const int32_t from = psplit_i_elem(at, 0);
  for (int64_t i = 0; i < n; i++) {
    const int64_t ia = source(at, psplit_i_in(at, 0), rank, dims, i);
    const int64_t ib = source(at, psplit_i_in(at, 1), rank, dims, i);
    if (ia >= na || ib >= nb) return;
    out[i] = psplit_i_fold(at, op, from, elem, a[ia], b[ib]);
    if (out[i] == PSPLIT_NONE) return;
  }
  psplit_i_out_elements(at, 0, out, (uint32_t)n);
}

#define BINARY(name, op) \
  void psplit_i_infer_##name(psplit_i_site *at) { binary(at, op, psplit_i_elem(at, 0)); }
#define COMPARE(name, op) \
  void psplit_i_infer_##name(psplit_i_site *at) { binary(at, op, BOOL); }

BINARY(add, PSPLIT_FOLD_ADD)
BINARY(sub, PSPLIT_FOLD_SUB)
BINARY(mul, PSPLIT_FOLD_MUL)
BINARY(div, PSPLIT_FOLD_DIV)
BINARY(pow, PSPLIT_FOLD_POW)
COMPARE(equal, PSPLIT_FOLD_EQUAL)
COMPARE(less, PSPLIT_FOLD_LESS)
COMPARE(greater, PSPLIT_FOLD_GREATER)
COMPARE(less_equal, PSPLIT_FOLD_LESS_EQUAL)
COMPARE(greater_equal, PSPLIT_FOLD_GREATER_EQUAL)
COMPARE(and, PSPLIT_FOLD_AND)
COMPARE(or, PSPLIT_FOLD_OR)
COMPARE(xor, PSPLIT_FOLD_XOR)

void psplit_i_infer_mod(psplit_i_site *at) {
  binary(at, psplit_i_int(at, "fmod", 0) ? PSPLIT_FOLD_FMOD : PSPLIT_FOLD_MOD,
         psplit_i_elem(at, 0));
}

/* Broadcast of all inputs, type of the first; nothing computed. */
void psplit_i_infer_broadcast(psplit_i_site *at) {
  psplit_dim dims[PSPLIT_MAX_RANK];
  if (at->node->opset > 0 && at->node->opset < 7 && !*at->node->domain) {
    psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 0));
    return;
  }
  const int32_t rank = psplit_i_broadcast(at, at->node->n_inputs, dims);
  psplit_i_out(at, 0, psplit_i_elem(at, 0), rank, dims);
}

/* Min, Max, Sum, Mean of any number of inputs. */
static void variadic(psplit_i_site *at, psplit_i_folding op, bool folds) {
  if (at->node->n_inputs == 2 && folds && (at->node->opset == 0 || at->node->opset >= 8)) {
    binary(at, op, psplit_i_elem(at, 0));
    return;
  }
  if (at->node->n_inputs == 1) {
    psplit_i_out_type(at, 0, psplit_i_in(at, 0));
    return;
  }
  if (at->node->opset > 0 && at->node->opset < 8)
    psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 0));
  else
    psplit_i_infer_broadcast(at);
}

void psplit_i_infer_min(psplit_i_site *at) { variadic(at, PSPLIT_FOLD_MIN, true); }
void psplit_i_infer_max(psplit_i_site *at) { variadic(at, PSPLIT_FOLD_MAX, true); }
void psplit_i_infer_sum(psplit_i_site *at) { variadic(at, PSPLIT_FOLD_ADD, true); }
void psplit_i_infer_mean(psplit_i_site *at) { variadic(at, PSPLIT_FOLD_ADD, false); }

void psplit_i_infer_same(psplit_i_site *at) { psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 0)); }
void psplit_i_infer_same_bool(psplit_i_site *at) { psplit_i_out_like(at, 0, 0, BOOL); }
void psplit_i_infer_identity(psplit_i_site *at) {
  psplit_i_out_type(at, 0, psplit_i_in(at, 0));
  /* Contents of a weight are looked up by its own name, so they are passed on here. */
  uint32_t n;
  const psplit_dim *elements = psplit_i_known_elements(at, 0, &n);
  psplit_i_out_elements(at, 0, elements, n);
}

typedef psplit_dim (*unary_fn)(psplit_i_site *at, int32_t elem, psplit_dim a);

static void unary(psplit_i_site *at, int32_t elem, unary_fn fn) {
  psplit_i_out_like(at, 0, 0, elem);
  uint32_t n;
  const psplit_dim *a = psplit_i_known_elements(at, 0, &n);
  psplit_dim *out = a ? psplit_i_new_elements(at, n) : NULL;
  if (!out) return;
  for (uint32_t i = 0; i < n; i++) {
    out[i] = fn(at, elem, a[i]);
    if (out[i] == PSPLIT_NONE && psplit_i_is_int_type(elem))
      out[i] = psplit_i_dim_fresh_value(at->dims);
    if (out[i] == PSPLIT_NONE) return;
  }
  psplit_i_out_elements(at, 0, out, n);
}

static psplit_dim neg(psplit_i_site *at, int32_t elem, psplit_dim a) {
  double value;
  (void)elem;
  if (psplit_i_dim_is_integer(at->dims, a)) return psplit_i_dim_mul_const(at->dims, a, -1);
  return psplit_i_dim_is_real(at->dims, a, &value) ? psplit_i_dim_real(at->dims, -value)
                                                   : PSPLIT_NONE;
}

static psplit_dim absolute(psplit_i_site *at, int32_t elem, psplit_dim a) {
  double value;
  (void)elem;
  if (psplit_i_dim_is_real(at->dims, a, &value)) return psplit_i_dim_real(at->dims, fabs(value));
  return psplit_i_dim_is_integer(at->dims, a) && psplit_i_dim_low(at->dims, a) >= 0 ? a
                                                                                    : PSPLIT_NONE;
}

static psplit_dim not(psplit_i_site * at, int32_t elem, psplit_dim a) {
  int64_t value;
  (void)elem;
  return psplit_i_dim_is_const(at->dims, a, &value) ? psplit_i_dim_const(at->dims, !value)
                                                    : PSPLIT_NONE;
}

static psplit_dim sign(psplit_i_site *at, int32_t elem, psplit_dim a) {
  double value;
  (void)elem;
  return psplit_i_dim_is_real(at->dims, a, &value) ? psplit_i_dim_const(at->dims, value > 0   ? 1
                                                                                  : value < 0 ? -1
                                                                                              : 0)
                                                   : PSPLIT_NONE;
}

static psplit_dim root(psplit_i_site *at, int32_t elem, psplit_dim a) {
  double value;
  return psplit_i_dim_is_real(at->dims, a, &value) ? psplit_i_fold_real(at, elem, sqrt(value))
                                                   : PSPLIT_NONE;
}

static psplit_dim inverse(psplit_i_site *at, int32_t elem, psplit_dim a) {
  double value;
  return psplit_i_dim_is_real(at->dims, a, &value) ? psplit_i_fold_real(at, elem, 1.0 / value)
                                                   : PSPLIT_NONE;
}

/* Rounding: `how` turns a constant into an integer; a ratio goes by integer division. */
static psplit_dim rounded(psplit_i_site *at, psplit_dim a, double (*how)(double),
                          psplit_dim (*divide)(psplit_i_dims *, psplit_dim, psplit_dim)) {
  double value;
  psplit_dim dividend;
  int64_t divisor;
  if (psplit_i_dim_is_real(at->dims, a, &value)) return psplit_i_dim_real(at->dims, how(value));
  if (psplit_i_dim_is_integer(at->dims, a)) return a;
  if (!divide || !psplit_i_dim_is_ratio(at->dims, a, &dividend, &divisor)) return PSPLIT_NONE;
  return divide(at->dims, dividend, psplit_i_dim_const(at->dims, divisor));
}

static psplit_dim round_down(psplit_i_site *at, int32_t elem, psplit_dim a) {
  (void)elem;
  return rounded(at, a, floor, psplit_i_dim_floor_div);
}
static psplit_dim round_up(psplit_i_site *at, int32_t elem, psplit_dim a) {
  (void)elem;
  return rounded(at, a, ceil, psplit_i_dim_ceil_div);
}
static psplit_dim round_even(psplit_i_site *at, int32_t elem, psplit_dim a) {
  (void)elem;
  return rounded(at, a, nearbyint, NULL);
}

static psplit_dim cast(psplit_i_site *at, int32_t elem, psplit_dim a) {
  int64_t value;
  double number;
  if (elem == BOOL) {
    if (psplit_i_dim_is_const(at->dims, a, &value)) return psplit_i_dim_const(at->dims, value != 0);
    if (psplit_i_dim_is_integer(at->dims, a) && psplit_i_dim_low(at->dims, a) > 0)
      return psplit_i_dim_const(at->dims, true);
    return PSPLIT_NONE;
  }
  if (psplit_i_is_int_type(elem)) {
    if (psplit_i_dim_is_real(at->dims, a, &number) && !(fabs(number) < 9e18)) return PSPLIT_NONE;
    return psplit_i_fold_settle(at, elem, rounded(at, a, trunc, psplit_i_dim_trunc_div));
  }
  if (psplit_i_dim_is_real(at->dims, a, &number)) return psplit_i_fold_real(at, elem, number);
  return a;
}

static psplit_dim positive_part(psplit_i_site *at, int32_t elem, psplit_dim a) {
  return psplit_i_fold(at, PSPLIT_FOLD_MAX, elem, elem, a, psplit_i_dim_const(at->dims, 0));
}

void psplit_i_infer_relu(psplit_i_site *at) { unary(at, psplit_i_elem(at, 0), positive_part); }
void psplit_i_infer_neg(psplit_i_site *at) { unary(at, psplit_i_elem(at, 0), neg); }
void psplit_i_infer_abs(psplit_i_site *at) { unary(at, psplit_i_elem(at, 0), absolute); }
void psplit_i_infer_not(psplit_i_site *at) { unary(at, BOOL, not ); }
void psplit_i_infer_sign(psplit_i_site *at) { unary(at, psplit_i_elem(at, 0), sign); }
void psplit_i_infer_sqrt(psplit_i_site *at) { unary(at, psplit_i_elem(at, 0), root); }
void psplit_i_infer_reciprocal(psplit_i_site *at) { unary(at, psplit_i_elem(at, 0), inverse); }
void psplit_i_infer_floor(psplit_i_site *at) { unary(at, psplit_i_elem(at, 0), round_down); }
void psplit_i_infer_ceil(psplit_i_site *at) { unary(at, psplit_i_elem(at, 0), round_up); }
void psplit_i_infer_round(psplit_i_site *at) { unary(at, psplit_i_elem(at, 0), round_even); }

/* Type that a `to` attribute names: a number, or a word before opset 6. */
static int32_t target_type(const psplit_i_site *at) {
  const Onnx__AttributeProto *to = psplit_i_attribute(at, "to");
  if (!to) return 0;
  if (!to->has_s) return to->has_i && to->i > 0 && to->i < 64 ? (int32_t)to->i : 0;
  static const char *const words[] = {
    "",       "FLOAT", "UINT8",   "INT8",   "UINT16", "INT16",  "INT32",     "INT64",
    "STRING", "BOOL",  "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128"};
  for (int32_t i = 1; i < (int32_t)(sizeof words / sizeof *words); i++)
    if (strlen(words[i]) == to->s.len && memcmp(words[i], to->s.data, to->s.len) == 0) return i;
  return 0;
}

void psplit_i_infer_cast(psplit_i_site *at) {
  const int32_t elem = target_type(at);
  if (psplit_i_is_int_type(elem) || psplit_i_is_real_type(elem)) {
    uint32_t n; /* a tiny integer of unknown contents keeps its identity through casts */
    if (psplit_i_is_int_type(psplit_i_elem(at, 0))) psplit_i_elements(at, 0, &n);
    unary(at, elem, cast);
  } else {
    psplit_i_out_like(at, 0, 0, elem);
  }
}

void psplit_i_infer_cast_like(psplit_i_site *at) {
  const int32_t elem = psplit_i_elem(at, 1);
  if (psplit_i_is_int_type(elem) || psplit_i_is_real_type(elem))
    unary(at, elem, cast);
  else
    psplit_i_out_like(at, 0, 0, elem);
}

void psplit_i_infer_bit_cast(psplit_i_site *at) { psplit_i_out_like(at, 0, 0, target_type(at)); }

void psplit_i_infer_clip(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 0));
  uint32_t n, n_low = 0, n_high = 0;
  const int32_t elem = psplit_i_elem(at, 0);
  const psplit_dim *a = psplit_i_known_elements(at, 0, &n);
  if (!a || (at->node->opset > 0 && at->node->opset < 11)) return;
  const psplit_dim *low = psplit_i_known_elements(at, 1, &n_low);
  const psplit_dim *high = psplit_i_known_elements(at, 2, &n_high);
  if ((psplit_i_has(at, 1) && n_low != 1) || (psplit_i_has(at, 2) && n_high != 1)) return;
  psplit_dim *out = psplit_i_new_elements(at, n);
  if (!out) return;
  for (uint32_t i = 0; i < n; i++) {
    out[i] = a[i];
    if (low) out[i] = psplit_i_fold(at, PSPLIT_FOLD_MAX, elem, elem, out[i], low[0]);
    if (high && out[i] != PSPLIT_NONE)
      out[i] = psplit_i_fold(at, PSPLIT_FOLD_MIN, elem, elem, out[i], high[0]);
    if (out[i] == PSPLIT_NONE) return;
  }
  psplit_i_out_elements(at, 0, out, n);
}

void psplit_i_infer_where(psplit_i_site *at) {
  psplit_dim dims[PSPLIT_MAX_RANK];
  const int32_t elem = psplit_i_elem(at, 1) ? psplit_i_elem(at, 1) : psplit_i_elem(at, 2);
  const int32_t rank = psplit_i_broadcast(at, 3, dims);
  psplit_i_out(at, 0, elem, rank, dims);
  int64_t n, choice;
  uint32_t nc, na, nb;
  if (rank < 0 || !foldable(at, elem, rank, dims, &n)) return;
  const psplit_dim *c = psplit_i_elements(at, 0, &nc);
  const psplit_dim *a = c ? psplit_i_elements(at, 1, &na) : NULL;
  const psplit_dim *b = a ? psplit_i_elements(at, 2, &nb) : NULL;
  psplit_dim *out = b ? psplit_i_new_elements(at, n) : NULL;
  if (!out) return;
  for (int64_t i = 0; i < n; i++) {
    const int64_t ic = source(at, psplit_i_in(at, 0), rank, dims, i);
    const int64_t ia = source(at, psplit_i_in(at, 1), rank, dims, i);
    const int64_t ib = source(at, psplit_i_in(at, 2), rank, dims, i);
    if (ic >= nc || ia >= na || ib >= nb) return;
    if (psplit_i_dim_is_const(at->dims, c[ic], &choice))
      out[i] = choice ? a[ia] : b[ib];
    else if (a[ia] == b[ib])
      out[i] = a[ia];
    else
      out[i] = psplit_i_fold_settle(at, elem, PSPLIT_NONE);
    if (out[i] == PSPLIT_NONE) return;
  }
  psplit_i_out_elements(at, 0, out, (uint32_t)n);
}

/* Same shape as input 0 and a type from the attribute, else that of input 0. */
void psplit_i_infer_typed_like(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem_named(at, "dtype", psplit_i_elem(at, 0)));
}

void psplit_i_infer_dropout(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 0));
  /* The mask had the data's type until opset 10. */
  psplit_i_out_like(at, 1, 0,
                    at->node->opset > 0 && at->node->opset < 10 ? psplit_i_elem(at, 0) : BOOL);
}
