#include "dim_table.h"

#include <stdlib.h>
#include <string.h>

psplit_i_dims *psplit_i_dims_create(void) {
  psplit_i_dims *dims = calloc(1, sizeof *dims);
  if (!dims) return NULL;
  psplit_i_arena_init(&dims->arena, 0);
  psplit_i_intern_init(&dims->names);
  dims->n_slots = 1024;
  dims->slots = calloc(dims->n_slots, sizeof *dims->slots);
  /* Ids 0 and 1 are the constants 0 and 1; a failed maker returns 0. */
  if (!dims->slots || psplit_i_dim_const(dims, 0) != 0 || psplit_i_dim_const(dims, 1) != 1 ||
      dims->failed) {
    psplit_i_dims_destroy(dims);
    return NULL;
  }
  return dims;
}

void psplit_i_dims_destroy(psplit_i_dims *dims) {
  if (!dims) return;
  psplit_i_vec_fini(&dims->exprs);
  psplit_i_vec_fini(&dims->operands);
  psplit_i_vec_fini(&dims->coefs);
  psplit_i_vec_fini(&dims->symbols);
  psplit_i_vec_fini(&dims->symbol_expr);
  psplit_i_vec_fini(&dims->named);
  psplit_i_intern_fini(&dims->names);
  psplit_i_arena_fini(&dims->arena);
  free(dims->slots);
  free(dims);
}

uint32_t psplit_i_dims_count(const psplit_i_dims *dims) { return (uint32_t)dims->exprs.n; }
bool psplit_i_dims_failed(const psplit_i_dims *dims) { return dims->failed; }
uint32_t psplit_i_dims_n_symbols(const psplit_i_dims *dims) { return (uint32_t)dims->symbols.n; }

const char *psplit_i_dims_symbol_name(const psplit_i_dims *dims, uint32_t symbol) {
  return dims->symbols.items[symbol];
}

bool psplit_i_dim_is_const(const psplit_i_dims *dims, psplit_dim a, int64_t *out) {
  if (psplit_i_dim_at(dims, a)->kind != PSPLIT_DIM_CONST) return false;
  *out = psplit_i_dim_at(dims, a)->constant;
  return true;
}

const char *psplit_i_dim_name(const psplit_i_dims *dims, psplit_dim a) {
  const psplit_i_dim_expr *e = psplit_i_dim_at(dims, a);
  return e->kind == PSPLIT_DIM_SYMBOL ? dims->symbols.items[e->constant] : NULL;
}

bool psplit_i_dim_is_anonymous(const psplit_i_dims *dims, psplit_dim a) {
  const psplit_i_dim_expr *e = psplit_i_dim_at(dims, a);
  return e->kind == PSPLIT_DIM_SYMBOL && e->anonymous;
}

uint32_t psplit_i_dim_symbol_number(const psplit_i_dims *dims, psplit_dim a) {
  const psplit_i_dim_expr *e = psplit_i_dim_at(dims, a);
  return e->kind == PSPLIT_DIM_SYMBOL ? (uint32_t)e->constant : PSPLIT_NONE;
}

bool psplit_i_dim_has_anonymous(const psplit_i_dims *dims, psplit_dim a) {
  return psplit_i_dim_at(dims, a)->anonymous;
}

int64_t psplit_i_dim_low(const psplit_i_dims *dims, psplit_dim a) {
  return psplit_i_dim_at(dims, a)->low;
}
int64_t psplit_i_dim_high(const psplit_i_dims *dims, psplit_dim a) {
  return psplit_i_dim_at(dims, a)->high;
}

/* Bounds: INT64_MIN and INT64_MAX stand for "none" and swallow what is added to them. */
static int64_t low_scaled(const psplit_i_dim_expr *e, int64_t coef) {
  const int64_t from = coef > 0 ? e->low : e->high;
  int64_t result;
  if (from == INT64_MIN || from == INT64_MAX || !psplit_i_mul_i64(from, coef, &result))
    return INT64_MIN;
  return result;
}

static int64_t high_scaled(const psplit_i_dim_expr *e, int64_t coef) {
  const int64_t from = coef > 0 ? e->high : e->low;
  int64_t result;
  if (from == INT64_MIN || from == INT64_MAX || !psplit_i_mul_i64(from, coef, &result))
    return INT64_MAX;
  return result;
}

static void bound_sum(const psplit_i_dims *dims, psplit_i_dim_expr *e, const psplit_dim *operands,
                      const int64_t *coefs) {
  int64_t low = e->constant, high = e->constant;
  for (uint32_t i = 0; i < e->n; i++) {
    const psplit_i_dim_expr *operand = psplit_i_dim_at(dims, operands[i]);
    const int64_t l = low_scaled(operand, coefs[i]), h = high_scaled(operand, coefs[i]);
    if (low == INT64_MIN || l == INT64_MIN || !psplit_i_add_i64(low, l, &low)) low = INT64_MIN;
    if (high == INT64_MAX || h == INT64_MAX || !psplit_i_add_i64(high, h, &high)) high = INT64_MAX;
  }
  e->low = low;
  e->high = high;
}

static void bound_product(const psplit_i_dims *dims, psplit_i_dim_expr *e,
                          const psplit_dim *operands) {
  int64_t low = 1, high = 1;
  for (uint32_t i = 0; i < e->n; i++) {
    const psplit_i_dim_expr *operand = psplit_i_dim_at(dims, operands[i]);
    if (operand->low < 0) {
      e->low = INT64_MIN;
      e->high = INT64_MAX;
      return;
    }
    if (!psplit_i_mul_i64(low, operand->low, &low)) low = INT64_MAX - 1;
    if (high == INT64_MAX || operand->high == INT64_MAX ||
        !psplit_i_mul_i64(high, operand->high, &high))
      high = INT64_MAX;
  }
  e->low = low;
  e->high = high;
}

static void bound(const psplit_i_dims *dims, psplit_i_dim_expr *e, const psplit_dim *operands,
                  const int64_t *coefs) {
  const psplit_i_dim_expr *a = e->n > 0 ? psplit_i_dim_at(dims, operands[0]) : NULL;
  const psplit_i_dim_expr *b = e->n > 1 ? psplit_i_dim_at(dims, operands[1]) : NULL;
  e->low = INT64_MIN;
  e->high = INT64_MAX;
  switch ((psplit_i_dim_kind)e->kind) {
    case PSPLIT_DIM_CONST: e->low = e->high = e->constant; break;
    case PSPLIT_DIM_SUM: bound_sum(dims, e, operands, coefs); break;
    case PSPLIT_DIM_PRODUCT: bound_product(dims, e, operands); break;
    case PSPLIT_DIM_FLOOR_DIV:
    case PSPLIT_DIM_TRUNC_DIV:
      if (b->kind == PSPLIT_DIM_CONST && b->constant > 0) {
        const bool floor = e->kind == PSPLIT_DIM_FLOOR_DIV;
        if (a->low != INT64_MIN)
          e->low = floor ? psplit_i_floor_div_i64(a->low, b->constant) : a->low / b->constant;
        if (a->high != INT64_MAX)
          e->high = floor ? psplit_i_floor_div_i64(a->high, b->constant) : a->high / b->constant;
      } else if (a->low >= 0 && b->low >= 0) {
        e->low = 0;
        e->high = a->high;
      }
      break;
    case PSPLIT_DIM_MAX:
    case PSPLIT_DIM_MIN:
    case PSPLIT_DIM_BROADCAST:
      e->low = a->low;
      e->high = a->high;
      for (uint32_t i = 1; i < e->n; i++) {
        const psplit_i_dim_expr *operand = psplit_i_dim_at(dims, operands[i]);
        const bool up = e->kind == PSPLIT_DIM_MAX, down = e->kind == PSPLIT_DIM_MIN;
        if (up ? operand->low > e->low : operand->low < e->low) e->low = operand->low;
        if (down ? operand->high < e->high : operand->high > e->high) e->high = operand->high;
      }
      break;
    case PSPLIT_DIM_BOX:
      e->low = a->low;
      e->high = a->high;
      break;
    case PSPLIT_DIM_REAL:
    case PSPLIT_DIM_SYMBOL:
    case PSPLIT_DIM_RATIO: break;
  }
}

static bool grow_slots(psplit_i_dims *dims) {
  if (dims->n_slots > UINT32_MAX / 4) return false;
  const uint32_t n = dims->n_slots * 2;
  uint32_t *slots = calloc(n, sizeof *slots);
  if (!slots) return false;
  for (uint32_t id = 0; id < dims->exprs.n; id++) {
    uint32_t at = dims->exprs.items[id].hash & (n - 1);
    while (slots[at]) at = (at + 1) & (n - 1);
    slots[at] = id + 1;
  }
  free(dims->slots);
  dims->slots = slots;
  dims->n_slots = n;
  return true;
}

static bool same(const psplit_i_dims *dims, const psplit_i_dim_expr *e, psplit_i_dim_kind kind,
                 int64_t constant, const psplit_dim *operands, const int64_t *coefs, uint32_t n) {
  if (e->kind != kind || e->constant != constant || e->n != n) return false;
  if (n == 0) return true;
  if (memcmp(&dims->operands.items[e->operand_off], operands, n * sizeof *operands) != 0)
    return false;
  return kind != PSPLIT_DIM_SUM ||
         memcmp(&dims->coefs.items[e->coef_off], coefs, n * sizeof *coefs) == 0;
}

psplit_dim psplit_i_dim_make(psplit_i_dims *dims, psplit_i_dim_kind kind, int64_t constant,
                             const psplit_dim *operands, const int64_t *coefs, uint32_t n) {
  uint64_t hash = psplit_i_mix64((uint64_t)constant * 31 + (uint64_t)kind);
  for (uint32_t i = 0; i < n; i++) {
    hash = psplit_i_mix64(hash ^ operands[i]);
    if (kind == PSPLIT_DIM_SUM) hash = psplit_i_mix64(hash ^ (uint64_t)coefs[i]);
  }
  uint32_t at = (uint32_t)hash & (dims->n_slots - 1);
  for (; dims->slots[at]; at = (at + 1) & (dims->n_slots - 1)) {
    const psplit_i_dim_expr *e = &dims->exprs.items[dims->slots[at] - 1];
    if (e->hash == (uint32_t)hash && same(dims, e, kind, constant, operands, coefs, n))
      return dims->slots[at] - 1;
  }
  if (dims->failed) return 0; /* nothing is added any more: the table may be full */
  psplit_i_dim_expr e = {.kind = (uint8_t)kind,
                         .n = (uint16_t)n,
                         .hash = (uint32_t)hash,
                         .constant = constant,
                         .operand_off = (uint32_t)dims->operands.n,
                         .coef_off = (uint32_t)dims->coefs.n};
  bound(dims, &e, operands, coefs);
  for (uint32_t i = 0; i < n; i++) e.anonymous |= psplit_i_dim_at(dims, operands[i])->anonymous;
  if (kind == PSPLIT_DIM_SYMBOL) e.anonymous = dims->symbols.items[constant] == NULL;
  if (dims->exprs.n >= UINT32_MAX / 4 || dims->operands.n > UINT32_MAX - n ||
      !psplit_i_vec_reserve(&dims->operands, n) ||
      (kind == PSPLIT_DIM_SUM && !psplit_i_vec_reserve(&dims->coefs, n)) ||
      !psplit_i_vec_push(&dims->exprs, e)) {
    dims->failed = true;
    return 0;
  }
  for (uint32_t i = 0; i < n; i++) dims->operands.items[dims->operands.n++] = operands[i];
  if (kind == PSPLIT_DIM_SUM)
    for (uint32_t i = 0; i < n; i++) dims->coefs.items[dims->coefs.n++] = coefs[i];
  const psplit_dim id = (psplit_dim)(dims->exprs.n - 1);
  dims->slots[at] = id + 1;
  if (dims->exprs.n > dims->n_slots - dims->n_slots / 4 && !grow_slots(dims)) dims->failed = true;
  return id;
}

psplit_dim psplit_i_dim_const(psplit_i_dims *dims, int64_t value) {
  return psplit_i_dim_make(dims, PSPLIT_DIM_CONST, value, NULL, NULL, 0);
}

static psplit_dim new_symbol(psplit_i_dims *dims, const char *name, int64_t low) {
  if (!psplit_i_vec_reserve(&dims->symbol_expr, 1) || !psplit_i_vec_push(&dims->symbols, name)) {
    dims->failed = true;
    return 0;
  }
  const psplit_dim id =
    psplit_i_dim_make(dims, PSPLIT_DIM_SYMBOL, (int64_t)dims->symbols.n - 1, NULL, NULL, 0);
  if (!dims->failed) dims->exprs.items[id].low = low;
  dims->symbol_expr.items[dims->symbol_expr.n++] = id;
  return id;
}

psplit_dim psplit_i_dim_symbol(psplit_i_dims *dims, const char *name) {
  const uint32_t found = psplit_i_intern_find(&dims->names, name);
  if (found != PSPLIT_NONE) return dims->symbol_expr.items[dims->named.items[found]];
  const char *copy = psplit_i_arena_strndup(&dims->arena, name, strlen(name));
  /* Room for all parts first, so that a name never stands without its symbol. */
  if (dims->failed || !copy || !psplit_i_vec_reserve(&dims->named, 1) ||
      !psplit_i_vec_reserve(&dims->symbols, 1) || !psplit_i_vec_reserve(&dims->symbol_expr, 1) ||
      psplit_i_intern_add(&dims->names, copy) == PSPLIT_NONE) {
    dims->failed = true;
    return 0;
  }
  dims->named.items[dims->named.n++] = (uint32_t)dims->symbols.n;
  return new_symbol(dims, copy, 0);
}

psplit_dim psplit_i_dim_fresh(psplit_i_dims *dims) { return new_symbol(dims, NULL, 0); }
psplit_dim psplit_i_dim_fresh_value(psplit_i_dims *dims) {
  return new_symbol(dims, NULL, INT64_MIN);
}
