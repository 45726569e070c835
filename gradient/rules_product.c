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

void psplit_i_gradient_fused_gemm(psplit_i_at *at) {
  if (psplit_i_through_activation(at, NULL)) psplit_i_gradient_gemm(at);
}

/* ---- products of matrices that are turned first ---- */

/* An operand of the product: its axes in another order. */
typedef struct turned {
  uint32_t input;
  int32_t rank;
  bool flip, outer; /* the last two axes; the first one behind those between */
  int64_t perm[PSPLIT_MAX_RANK], back[PSPLIT_MAX_RANK];
} turned;

static bool read_turned(psplit_i_at *at, uint32_t input, const char *flip, const char *outer,
                        turned *t) {
  *t = (turned){.input = input, .rank = psplit_i_need_rank(at, input)};
  if (t->rank < 0) return false;
  t->flip = t->rank > 1 && psplit_i_int_or(at, flip, 0) != 0;
  t->outer = t->rank > 2 && psplit_i_int_or(at, outer, 0) != 0;
  const int32_t n = t->rank;
  for (int32_t i = 0; i < n; i++) t->perm[i] = i;
  for (int32_t i = 0; t->outer && i < n - 1; i++) t->perm[i] = i < n - 2 ? i + 1 : 0;
  if (t->flip) {
    const int64_t row = t->perm[n - 2];
    t->perm[n - 2] = t->perm[n - 1];
    t->perm[n - 1] = row;
  }
  for (int32_t i = 0; i < n; i++) t->back[t->perm[i]] = i;
  return true;
}

static ref turn(psplit_i_at *at, const turned *t) {
  const ref a = in(at, t->input);
  return t->flip || t->outer ? transposed(at, a, t->perm, (size_t)t->rank) : a;
}

/* A part of the operand as it was turned, with the product's batch axes: `rank` axes. */
static void give_turned(psplit_i_at *at, const turned *t, ref part, int32_t rank) {
  static const psplit_i_vtype any = {.rank = -1};
  const psplit_i_vtype *type = psplit_i_type_in(at, t->input);
  psplit_dim dims[PSPLIT_MAX_RANK];
  if (t->outer) {
    give(at, t->input, transposed(at, part, t->back, (size_t)t->rank));
    return;
  }
  if (t->flip) part = flipped(at, part, rank);
  const psplit_i_vtype wide = batched(psplit_i_type_out(at, 0), type, dims);
  give(at, t->input, psplit_i_sum_like(at, part, wide.rank == rank ? &wide : &any, t->input));
}

/* The right operand is one matrix, the left one not turned. */
static void turned_product_of_rows(psplit_i_at *at, const turned *b, ref g, int64_t k, int64_t n) {
  if (wanted(at, 0)) give(at, 0, product(at, g, b->flip ? in(at, 1) : flipped(at, in(at, 1), 2)));
  if (!wanted(at, 1)) return;
  const ref rows = reshaped(at, in(at, 0), ints(at, (int64_t[]){-1, b->flip ? n : k}, 2));
  const ref g_rows = reshaped(at, g, ints(at, (int64_t[]){-1, b->flip ? k : n}, 2));
  give(at, 1,
       b->flip ? product(at, flipped(at, g_rows, 2), rows)
               : product(at, flipped(at, rows, 2), g_rows));
}

void psplit_i_gradient_fused_mat_mul(psplit_i_at *at) {
  turned a, b;
  int64_t k, n;
  if (!read_turned(at, 0, "transA", "transBatchA", &a) ||
      !read_turned(at, 1, "transB", "transBatchB", &b))
    return;
  if (a.rank < 2 || b.rank < 2 || ((a.outer || b.outer) && a.rank != b.rank)) {
    psplit_i_refuse(at, "its operands are not matrices, or not of the same number");
    return;
  }
  const float alpha = psplit_i_float_or(at, "alpha", 1);
  const ref g = alpha == 1 ? grad(at) : mul(at, grad(at), number(at, (double)alpha));
  const psplit_i_vtype *b_type = psplit_i_type_in(at, 1);
  if (b.rank == 2 && !a.flip && !a.outer && psplit_i_size(at, b_type, 0, &k) &&
      psplit_i_size(at, b_type, 1, &n)) {
    turned_product_of_rows(at, &b, g, k, n);
    return;
  }
  const int32_t rank = a.rank > b.rank ? a.rank : b.rank;
  if (wanted(at, 0)) give_turned(at, &a, product(at, g, flipped(at, turn(at, &b), b.rank)), rank);
  if (wanted(at, 1)) give_turned(at, &b, product(at, flipped(at, turn(at, &a), a.rank), g), rank);
}

/* ---- Einsum ---- */

enum { MAX_TERMS = 8, MAX_LETTERS = 52 };

typedef struct equation {
  char term[MAX_TERMS][MAX_LETTERS + 1];
  char result[MAX_LETTERS + 2]; /* without an arrow, an ellipsis and each letter */
  uint32_t n;
} equation;

static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* Reads "...ij,jk->...ik", an ellipsis as '.'; false for a letter, or an ellipsis, twice in a term.
 */
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
    } else if (n - i >= 3 && memcmp(text + i, "...", 3) == 0 && length < MAX_LETTERS &&
               !strchr(term, '.')) {
      i += 2;
      term[length++] = '.';
      term[length] = '\0';
    } else if (letter(text[i]) && length < MAX_LETTERS && !strchr(term, text[i])) {
      term[length++] = text[i];
      term[length] = '\0';
    } else {
      return false;
    }
  }
  if (arrow) return true;
  /* Without an arrow: ellipses, then the letters that occur once, in alphabetical order. */
  length = 0;
  for (uint32_t t = 0; t < e->n && !length; t++)
    if (strchr(e->term[t], '.')) e->result[length++] = '.';
  for (int c = 'A'; c <= 'z'; c++) {
    uint32_t times = 0;
    for (uint32_t t = 0; letter((char)c) && t < e->n; t++) times += strchr(e->term[t], c) != NULL;
    if (times == 1) e->result[length++] = (char)c;
  }
  return true;
}

/* Puts letters in the place of an ellipsis. */
static void fill(char *term, const char *letters) {
  char rest[MAX_LETTERS + 1];
  char *at = strchr(term, '.');
  if (!at) return;
  strcpy(rest, at + 1);
  strcpy(at, letters);
  strcat(at, rest);
}

/* Letters that the equation does not use stand for the axes of ellipses, the last of them for the
 * last axis. Refuses where ranks do not tell how many there are. */
static void fill_ellipses(psplit_i_at *at, equation *e) {
  char spare[MAX_LETTERS + 1];
  int32_t axes[MAX_TERMS], most = 0, n_spare = 0;
  bool any = strchr(e->result, '.') != NULL;
  for (uint32_t t = 0; t < e->n; t++) {
    const int32_t rank = psplit_i_need_rank(at, t), letters = (int32_t)strlen(e->term[t]);
    if (rank < 0) return;
    const bool open = strchr(e->term[t], '.') != NULL;
    axes[t] = open ? rank - (letters - 1) : 0;
    if (open ? axes[t] < 0 : rank != letters) {
      psplit_i_refuse(at, "its equation is not for tensors of such ranks");
      return;
    }
    if (axes[t] > most) most = axes[t];
    any |= open;
  }
  if (!any) return;
  for (int c = 'A'; c <= 'z'; c++) {
    bool used = !letter((char)c) || strchr(e->result, c);
    for (uint32_t t = 0; t < e->n; t++) used |= strchr(e->term[t], c) != NULL;
    if (!used && n_spare < most) spare[n_spare++] = (char)c;
  }
  spare[n_spare] = '\0';
  bool fits = n_spare == most && (int32_t)strlen(e->result) + most <= MAX_LETTERS;
  for (uint32_t t = 0; t < e->n; t++) fits &= (int32_t)strlen(e->term[t]) + axes[t] <= MAX_LETTERS;
  if (!fits) {
    psplit_i_refuse(at, "its ellipses need more letters than there are");
    return;
  }
  fill(e->result, spare);
  for (uint32_t t = 0; t < e->n; t++) fill(e->term[t], spare + most - axes[t]);
}

/* The size that a letter of term i stands for once all terms are broadcast to each other, where it
 * is known; *out_same: the axis of term i surely has it already. */
static bool letter_size(const psplit_i_at *at, const equation *e, uint32_t i, int32_t axis,
                        psplit_dim *out, bool *out_same) {
  const psplit_i_vtype *type = psplit_i_type_in(at, i);
  int64_t here = -1, there;
  bool known = psplit_i_size(at, type, axis, &here);
  *out = type->dims[axis];
  *out_same = true;
  for (uint32_t t = 0; t < e->n; t++) {
    const char *same = strchr(e->term[t], e->term[i][axis]);
    const psplit_i_vtype *other = psplit_i_type_in(at, t);
    if (!same || t == i || other->dims[same - e->term[t]] == type->dims[axis]) continue;
    if (!psplit_i_size(at, other, (int32_t)(same - e->term[t]), &there)) {
      known = *out_same = false;
    } else if (there != here) {
      *out_same = false;
      if (there != 1) *out = other->dims[same - e->term[t]];
    }
  }
  return known || *out_same;
}

/* A part whose letters may have been broadcast, or may have to be, to the shape of input i. */
static ref fitted(psplit_i_at *at, const equation *e, uint32_t i, ref part) {
  psplit_dim dims[PSPLIT_MAX_RANK];
  const int32_t rank = psplit_i_type_in(at, i)->rank;
  psplit_i_vtype wide = {.rank = rank, .dims = dims};
  bool fits = true;
  for (int32_t axis = 0; axis < rank; axis++) {
    bool same;
    if (!letter_size(at, e, i, axis, &dims[axis], &same)) wide.rank = -1;
    fits &= same;
  }
  if (fits) return part;
  const ref shape = psplit_i_shape_in(at, i);
  return psplit_i_sum_like(at, expanded(at, part, shape), &wide, i);
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
    give(at, i, fitted(at, e, i, part));
  }
  psplit_i_text_fini(&text);
}

void psplit_i_gradient_einsum(psplit_i_at *at) {
  equation e;
  if (at->node->n_inputs > MAX_TERMS) {
    psplit_i_refuse(at, "its equation has over %d terms", MAX_TERMS);
    return;
  }
  if (!read_equation(at, &e) || e.n != at->node->n_inputs) {
    psplit_i_refuse(at, "its equation has a letter, or an ellipsis, twice in one term");
    return;
  }
  fill_ellipses(at, &e);
  for (uint32_t i = 0; i < e.n; i++)
    if (wanted(at, i) && at->pass->code == PSPLIT_OK) einsum_part(at, &e, i);
}
