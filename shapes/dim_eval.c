/* Reading dimension expressions: numbers, symbols, text. */
#include <string.h>

#include "dim_table.h"

static bool eval_sum(const psplit_i_dims *dims, const psplit_i_dim_expr *e, const int64_t *value,
                     const bool *known, int64_t *out) {
  int64_t sum = e->constant, part;
  for (uint32_t i = 0; i < e->n; i++) {
    const psplit_dim operand = dims->operands.items[e->operand_off + i];
    if (!known[operand] ||
        !psplit_i_mul_i64(value[operand], dims->coefs.items[e->coef_off + i], &part) ||
        !psplit_i_add_i64(sum, part, &sum))
      return false;
  }
  *out = sum;
  return true;
}

static bool eval_product(const psplit_i_dims *dims, const psplit_i_dim_expr *e,
                         const int64_t *value, const bool *known, int64_t *out) {
  int64_t product = 1;
  for (uint32_t i = 0; i < e->n; i++) {
    const psplit_dim operand = dims->operands.items[e->operand_off + i];
    if (!known[operand] || !psplit_i_mul_i64(product, value[operand], &product)) return false;
  }
  *out = product;
  return true;
}

static bool eval_extreme(const psplit_i_dims *dims, const psplit_i_dim_expr *e,
                         const int64_t *value, const bool *known, int64_t *out) {
  int64_t best = 0;
  for (uint32_t i = 0; i < e->n; i++) {
    const psplit_dim operand = dims->operands.items[e->operand_off + i];
    if (!known[operand]) return false;
    const int64_t x = value[operand];
    if (i == 0)
      best = x;
    else if (e->kind == PSPLIT_DIM_MAX)
      best = x > best ? x : best;
    else if (e->kind == PSPLIT_DIM_MIN)
      best = x < best ? x : best;
    else if (best == 1)
      best = x;
    else if (x != 1 && x != best)
      return false;
  }
  *out = best;
  return true;
}

static bool eval_quotient(const psplit_i_dims *dims, const psplit_i_dim_expr *e,
                          const int64_t *value, const bool *known, int64_t *out) {
  const psplit_dim a = dims->operands.items[e->operand_off];
  const psplit_dim b = dims->operands.items[e->operand_off + 1];
  if (!known[a] || !known[b] || value[b] == 0) return false;
  int64_t x = value[a], y = value[b];
  if (y < 0) {
    if (x == INT64_MIN || y == INT64_MIN) return false;
    x = -x;
    y = -y;
  }
  if (e->kind == PSPLIT_DIM_RATIO && x % y != 0) return false;
  *out = e->kind == PSPLIT_DIM_FLOOR_DIV ? psplit_i_floor_div_i64(x, y) : x / y;
  return true;
}

void psplit_i_dims_eval(const psplit_i_dims *dims, const int64_t *symbol_value,
                        const bool *symbol_known, int64_t *out_value, bool *out_known) {
  for (uint32_t id = 0; id < dims->exprs.n; id++) {
    const psplit_i_dim_expr *e = &dims->exprs.items[id];
    bool known = false;
    int64_t value = 0;
    switch ((psplit_i_dim_kind)e->kind) {
      case PSPLIT_DIM_CONST:
        known = true;
        value = e->constant;
        break;
      case PSPLIT_DIM_REAL: break;
      case PSPLIT_DIM_SYMBOL:
        known = symbol_known[e->constant];
        value = known ? symbol_value[e->constant] : 0;
        break;
      case PSPLIT_DIM_SUM: known = eval_sum(dims, e, out_value, out_known, &value); break;
      case PSPLIT_DIM_PRODUCT: known = eval_product(dims, e, out_value, out_known, &value); break;
      case PSPLIT_DIM_FLOOR_DIV:
      case PSPLIT_DIM_TRUNC_DIV:
      case PSPLIT_DIM_RATIO: known = eval_quotient(dims, e, out_value, out_known, &value); break;
      case PSPLIT_DIM_MAX:
      case PSPLIT_DIM_MIN:
      case PSPLIT_DIM_BROADCAST: known = eval_extreme(dims, e, out_value, out_known, &value); break;
      case PSPLIT_DIM_BOX:
        known = out_known[dims->operands.items[e->operand_off]];
        value = out_value[dims->operands.items[e->operand_off]];
        break;
    }
    out_known[id] = known;
    out_value[id] = known ? value : 0;
  }
}

bool psplit_i_dim_mark_symbols(const psplit_i_dims *dims, psplit_dim a, unsigned char *visited,
                               bool *mark) {
  if (visited[a]) return true;
  /* Depth is bounded in practice by nesting of quotients; an explicit stack bounds it always. */
  PSPLIT_VEC(psplit_dim) stack = {0};
  visited[a] = 1;
  bool ok = psplit_i_vec_push(&stack, a);
  while (ok && stack.n > 0) {
    const psplit_i_dim_expr *e = psplit_i_dim_at(dims, stack.items[--stack.n]);
    if (e->kind == PSPLIT_DIM_SYMBOL) mark[e->constant] = true;
    for (uint32_t i = 0; ok && i < e->n; i++) {
      const psplit_dim operand = dims->operands.items[e->operand_off + i];
      if (visited[operand]) continue;
      visited[operand] = 1;
      ok = psplit_i_vec_push(&stack, operand);
    }
  }
  psplit_i_vec_fini(&stack);
  return ok;
}

enum { PRINT_BYTES = 200, PRINT_DEPTH = 12 };

static void print(const psplit_i_dims *dims, psplit_dim a, size_t limit, int depth,
                  psplit_i_text *out);

static void print_sum(const psplit_i_dims *dims, const psplit_i_dim_expr *e, size_t limit,
                      int depth, psplit_i_text *out) {
  /* Positive terms first, so that a leading minus is rare. */
  bool first = true;
  for (int sign = 0; sign < 2; sign++) {
    for (uint32_t i = 0; i < e->n; i++) {
      const int64_t coef = dims->coefs.items[e->coef_off + i];
      if ((coef < 0) != (sign == 1)) continue;
      if (coef < 0)
        psplit_i_text_puts(out, "-");
      else if (!first)
        psplit_i_text_puts(out, "+");
      first = false;
      const uint64_t magnitude = coef < 0 ? 0 - (uint64_t)coef : (uint64_t)coef;
      if (magnitude != 1) psplit_i_text_addf(out, "%llu*", (unsigned long long)magnitude);
      print(dims, dims->operands.items[e->operand_off + i], limit, depth, out);
    }
  }
  if (e->constant != 0) psplit_i_text_addf(out, first ? "%lld" : "%+lld", (long long)e->constant);
}

static void print_call(const psplit_i_dims *dims, const psplit_i_dim_expr *e, const char *name,
                       const char *separator, size_t limit, int depth, psplit_i_text *out) {
  psplit_i_text_puts(out, name);
  psplit_i_text_puts(out, "(");
  for (uint32_t i = 0; i < e->n; i++) {
    const psplit_dim operand = dims->operands.items[e->operand_off + i];
    if (i > 0) psplit_i_text_puts(out, separator);
    const psplit_i_dim_kind kind = (psplit_i_dim_kind)psplit_i_dim_at(dims, operand)->kind;
    const bool group = *separator == '/' && (kind == PSPLIT_DIM_SUM || kind == PSPLIT_DIM_PRODUCT);
    if (group) psplit_i_text_puts(out, "(");
    print(dims, operand, limit, depth, out);
    if (group) psplit_i_text_puts(out, ")");
  }
  psplit_i_text_puts(out, ")");
}

static void print(const psplit_i_dims *dims, psplit_dim a, size_t limit, int depth,
                  psplit_i_text *out) {
  if (depth == 0 || out->n > limit) {
    if (out->n < 3 || !out->bytes || strcmp(out->bytes + out->n - 3, "...") != 0)
      psplit_i_text_puts(out, "...");
    return;
  }
  const psplit_i_dim_expr *e = psplit_i_dim_at(dims, a);
  depth--;
  switch ((psplit_i_dim_kind)e->kind) {
    case PSPLIT_DIM_CONST: psplit_i_text_addf(out, "%lld", (long long)e->constant); break;
    case PSPLIT_DIM_REAL: {
      double value;
      memcpy(&value, &e->constant, sizeof value);
      psplit_i_text_addf(out, "%g", value);
      break;
    }
    case PSPLIT_DIM_SYMBOL:
      if (e->anonymous)
        psplit_i_text_addf(out, "?%lld", (long long)e->constant);
      else
        psplit_i_text_puts(out, dims->symbols.items[e->constant]);
      break;
    case PSPLIT_DIM_SUM: print_sum(dims, e, limit, depth, out); break;
    case PSPLIT_DIM_PRODUCT:
      for (uint32_t i = 0; i < e->n; i++) {
        if (i > 0) psplit_i_text_puts(out, "*");
        print(dims, dims->operands.items[e->operand_off + i], limit, depth, out);
      }
      break;
    case PSPLIT_DIM_FLOOR_DIV: print_call(dims, e, "floor", "/", limit, depth, out); break;
    case PSPLIT_DIM_TRUNC_DIV: print_call(dims, e, "trunc", "/", limit, depth, out); break;
    case PSPLIT_DIM_RATIO: print_call(dims, e, "", "/", limit, depth, out); break;
    case PSPLIT_DIM_MAX: print_call(dims, e, "max", ", ", limit, depth, out); break;
    case PSPLIT_DIM_MIN: print_call(dims, e, "min", ", ", limit, depth, out); break;
    case PSPLIT_DIM_BROADCAST: print_call(dims, e, "broadcast", ", ", limit, depth, out); break;
    case PSPLIT_DIM_BOX: print_call(dims, e, "", "", limit, depth, out); break;
  }
}

void psplit_i_dim_print(const psplit_i_dims *dims, psplit_dim a, psplit_i_text *out) {
  print(dims, a, out->n + PRINT_BYTES, PRINT_DEPTH, out);
}
