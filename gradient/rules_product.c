/* Rules: products of matrices. */
#include <string.h>

#include "rule.h"

/* Two matrices exchanged for their transposes: the last two axes. */
static ref flipped(psplit_i_at *at, ref a, int32_t rank) {
  int64_t perm[PSPLIT_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) perm[i] = i;
  perm[rank - 2] = rank - 1;
  perm[rank - 1] = rank - 2;
  return transposed(at, a, perm, (size_t)rank);
}

/* The type of a product whose batch axes are y's and whose matrices are those of `matrix`. */
static psplit_i_vtype batched(const psplit_i_vtype *y, const psplit_i_vtype *matrix,
                              psplit_dim *dims) {
  psplit_i_vtype type = {.rank = -1};
  if (y->rank < 2 || matrix->rank < 2) return type;
  for (int32_t i = 0; i < y->rank - 2; i++) dims[i] = y->dims[i];
  dims[y->rank - 2] = matrix->dims[matrix->rank - 2];
  dims[y->rank - 1] = matrix->dims[matrix->rank - 1];
  type.rank = y->rank;
  type.dims = dims;
  return type;
}

/* The right operand is one matrix: all rows of all left ones make one product. */
static void product_of_rows(psplit_i_at *at, int64_t k, int64_t n) {
  const int32_t rank = psplit_i_type_in(at, 0)->rank;
  const ref g = grad(at);
  if (wanted(at, 0)) give(at, 0, product(at, g, flipped(at, in(at, 1), 2)));
  if (!wanted(at, 1)) return;
  const ref rows = rank == 2 ? in(at, 0) : reshaped(at, in(at, 0), ints(at, (int64_t[]){-1, k}, 2));
  const ref g_rows = rank == 2 ? g : reshaped(at, g, ints(at, (int64_t[]){-1, n}, 2));
  give(at, 1, product(at, flipped(at, rows, 2), g_rows));
}

void psplit_i_gradient_mat_mul(psplit_i_at *at) {
  const int32_t a_rank = psplit_i_need_rank(at, 0), b_rank = psplit_i_need_rank(at, 1);
  const psplit_i_vtype *a_type = psplit_i_type_in(at, 0), *b_type = psplit_i_type_in(at, 1);
  int64_t k, n;
  psplit_dim dims[PSPLIT_MAX_RANK];
  if (a_rank < 1 || b_rank < 1) return;
  if (b_rank == 2 && a_rank >= 2 && psplit_i_size(at, b_type, 0, &k) &&
      psplit_i_size(at, b_type, 1, &n)) {
    product_of_rows(at, k, n);
    return;
  }
  ref a = in(at, 0), b = in(at, 1), g = grad(at);
  const int64_t last = -1, before_last = -2;
  if (a_rank == 1) a = unsqueezed(at, a, (int64_t[]){0}, 1);
  if (b_rank == 1) b = unsqueezed(at, b, (int64_t[]){1}, 1);
  if (b_rank == 1) g = unsqueezed(at, g, &last, 1);
  if (a_rank == 1) g = unsqueezed(at, g, b_rank == 1 ? (int64_t[]){0} : &before_last, 1);
  const int32_t a2 = a_rank == 1 ? 2 : a_rank, b2 = b_rank == 1 ? 2 : b_rank;
  const psplit_i_vtype *y = psplit_i_type_out(at, 0);
  if (wanted(at, 0)) {
    ref part = product(at, g, flipped(at, b, b2));
    if (a_rank == 1) {
      /* [..., 1, k]: all but the last axis are summed. */
      part = sum_over(
        at, reshaped(at, part, concat(at, (ref[]){int1(at, -1), psplit_i_shape_in(at, 0)}, 2, 0)),
        (int64_t[]){0}, 1, false);
    } else if (b_rank == 1) {
      part = psplit_i_reshape_like(at, part, 0);
    } else {
      const psplit_i_vtype type = batched(y, a_type, dims);
      part = psplit_i_sum_like(at, part, &type, 0);
    }
    give(at, 0, part);
  }
  if (wanted(at, 1)) {
    ref part = product(at, flipped(at, a, a2), g);
    if (b_rank == 1) {
      part = sum_over(
        at, reshaped(at, part, concat(at, (ref[]){int1(at, -1), psplit_i_shape_in(at, 1)}, 2, 0)),
        (int64_t[]){0}, 1, false);
    } else if (a_rank == 1) {
      part = psplit_i_reshape_like(at, part, 1);
    } else {
      const psplit_i_vtype type = batched(y, b_type, dims);
      part = psplit_i_sum_like(at, part, &type, 1);
    }
    give(at, 1, part);
  }
}

static ref gemm(psplit_i_at *at, ref a, bool flip_a, ref b, bool flip_b, float alpha) {
  if (alpha != 1) with_float(at, "alpha", alpha);
  if (flip_a) with_int(at, "transA", 1);
  if (flip_b) with_int(at, "transB", 1);
  return op2(at, "Gemm", a, b);
}

void psplit_i_gradient_gemm(psplit_i_at *at) {
  const float alpha = psplit_i_float_or(at, "alpha", 1), beta = psplit_i_float_or(at, "beta", 1);
  const bool flip_a = psplit_i_int_or(at, "transA", 0) != 0;
  const bool flip_b = psplit_i_int_or(at, "transB", 0) != 0;
  const ref g = grad(at);
  if (wanted(at, 0))
    give(at, 0,
         flip_a ? gemm(at, in(at, 1), flip_b, g, true, alpha)
                : gemm(at, g, false, in(at, 1), !flip_b, alpha));
  if (wanted(at, 1))
    give(at, 1,
         flip_b ? gemm(at, g, true, in(at, 0), flip_a, alpha)
                : gemm(at, in(at, 0), !flip_a, g, false, alpha));
  if (!wanted(at, 2)) return;
  const ref sum = psplit_i_sum_like(at, g, psplit_i_type_out(at, 0), 2);
  give(at, 2, beta == 1 ? sum : mul(at, sum, number(at, (double)beta)));
}

/* ---- Einsum ---- */

enum { MAX_TERMS = 8, MAX_LETTERS = 52 };

typedef struct equation {
  char term[MAX_TERMS][MAX_LETTERS + 1];
  char result[MAX_LETTERS + 1];
  uint32_t n;
} equation;

static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Reads "ij,jk->ik"; false for what is not handled: ellipses, a letter twice in a term. */
static bool read_equation(const psplit_i_at *at, equation *e) {
  const char *text;
  size_t n;
  *e = (equation){.n = 1};
  if (!psplit_i_attr_string(at->node, "equation", &text, &n)) return false;
  size_t length = 0;
  bool arrow = false;
  char *term = e->term[0];
  for (size_t i = 0; i < n; i++) {
    if (text[i] == ' ') continue;
    if (text[i] == '-' && i + 1 < n && text[i + 1] == '>' && !arrow) {
      arrow = true;
      i++;
      term = e->result;
      length = 0;
    } else if (text[i] == ',' && !arrow && e->n < MAX_TERMS) {
      term = e->term[e->n++];
      length = 0;
    } else if (letter(text[i]) && length < MAX_LETTERS && !strchr(term, text[i])) {
      term[length++] = text[i];
      term[length] = '\0';
    } else {
      return false;
    }
  }
  if (arrow) return true;
  /* Without an arrow: the letters that occur once, in alphabetical order. */
  length = 0;
  for (int c = 'A'; c <= 'z'; c++) {
    uint32_t times = 0;
    for (uint32_t t = 0; letter((char)c) && t < e->n; t++) times += strchr(e->term[t], c) != NULL;
    if (times == 1) e->result[length++] = (char)c;
  }
  return true;
}

/* Input i: the product of the gradient with all other terms, in its own letters. Letters that it
 * alone has were summed: the gradient is the same all along them. */
static void einsum_part(psplit_i_at *at, const equation *e, uint32_t i) {
  psplit_i_text text = {0};
  ref operands[MAX_TERMS];
  uint32_t n = 0;
  psplit_i_text_puts(&text, e->result);
  operands[n++] = grad(at);
  for (uint32_t t = 0; t < e->n; t++) {
    if (t == i) continue;
    psplit_i_text_addf(&text, ",%s", e->term[t]);
    operands[n++] = in(at, t);
  }
  psplit_i_text_puts(&text, "->");
  int64_t missing[MAX_LETTERS];
  uint32_t n_missing = 0;
  for (uint32_t a = 0; e->term[i][a]; a++) {
    bool found = strchr(e->result, e->term[i][a]) != NULL;
    for (uint32_t t = 0; t < e->n; t++) found |= t != i && strchr(e->term[t], e->term[i][a]);
    if (found)
      psplit_i_text_addf(&text, "%c", e->term[i][a]);
    else
      missing[n_missing++] = a;
  }
  if (text.failed) {
    at->b->failed = true;
  } else {
    with_text(at, "equation", text.bytes);
    ref part = psplit_i_backward_node(at->b, "Einsum", n, operands, 1);
    if (n_missing) {
      part = unsqueezed(at, part, missing, n_missing);
      part = expanded(at, part, psplit_i_shape_in(at, i));
    }
    give(at, i, part);
  }
  psplit_i_text_fini(&text);
}

/* Whether a letter stands for sizes that are surely one: an axis of size 1 that is broadcast would
 * need its gradient summed. */
static bool sizes_agree(const psplit_i_at *at, const equation *e) {
  for (uint32_t i = 0; i < e->n; i++) {
    const psplit_i_vtype *type = psplit_i_type_in(at, i);
    if (type->rank != (int32_t)strlen(e->term[i])) return false;
    for (int32_t a = 0; a < type->rank; a++)
      for (uint32_t t = 0; t < i; t++) {
        const char *same = strchr(e->term[t], e->term[i][a]);
        if (!same) continue;
        const psplit_dim x = type->dims[a], y = psplit_i_type_in(at, t)->dims[same - e->term[t]];
        int64_t p, q;
        const psplit_i_dims *dims = psplit_i_shapes_dims(at->pass->shapes);
        if (x != y && psplit_i_dim_is_const(dims, x, &p) != psplit_i_dim_is_const(dims, y, &q))
          continue;
        if (x != y && psplit_i_dim_is_const(dims, x, &p) && psplit_i_dim_is_const(dims, y, &q) &&
            p != q)
          return false;
      }
  }
  return true;
}

void psplit_i_gradient_einsum(psplit_i_at *at) {
  equation e;
  if (!read_equation(at, &e) || e.n != at->node->n_inputs) {
    psplit_i_refuse(at, "its equation has an ellipsis, or a letter twice in one term");
    return;
  }
  if (!sizes_agree(at, &e)) {
    psplit_i_refuse(at, "a letter of its equation stands for different sizes");
    return;
  }
  for (uint32_t i = 0; i < e.n; i++)
    if (wanted(at, i)) einsum_part(at, &e, i);
}
