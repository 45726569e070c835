/* Rules: products of matrices, attention, recurrent layers. */
#include <string.h>

#include "infer.h"

enum { FLOAT = 1, INT32 = 6 };

/* An operand of a product; `swap` transposes its last two dimensions, `batch_inside` first moves
 * dimension 0 behind the batch: [m, b..., k] is [b..., m, k] (FusedMatMul's transBatch). */
typedef struct operand {
  uint32_t input;
  bool swap, batch_inside;
} operand;

static void arrange(const psplit_i_site *at, operand o, psplit_dim *dims) {
  const psplit_i_vtype *type = psplit_i_in(at, o.input);
  const int32_t n = type->rank;
  memcpy(dims, type->dims, (size_t)n * sizeof *dims);
  for (int32_t i = 0; o.batch_inside && n > 2 && i < n - 1; i++)
    dims[i] = i == n - 2 ? type->dims[0] : type->dims[i + 1];
  if (!o.swap || n < 2) return;
  const psplit_dim last = dims[n - 1];
  dims[n - 1] = dims[n - 2];
  dims[n - 2] = last;
}

/* Batch, rows and columns of a product. */
static void product(psplit_i_site *at, operand a, operand b, int32_t elem) {
  const int32_t left_rank = psplit_i_rank(at, a.input), right_rank = psplit_i_rank(at, b.input);
  psplit_dim left[PSPLIT_MAX_RANK], right[PSPLIT_MAX_RANK], dims[PSPLIT_MAX_RANK];
  if (left_rank < 1 || right_rank < 1) {
    psplit_i_out(at, 0, elem, -1, NULL);
    return;
  }
  arrange(at, a, left);
  arrange(at, b, right);
  const int32_t batch_a = left_rank > 2 ? left_rank - 2 : 0;
  const int32_t batch_b = right_rank > 2 ? right_rank - 2 : 0;
  int32_t rank = batch_a > batch_b ? batch_a : batch_b;
  for (int32_t i = 0; i < rank; i++) {
    const int32_t ia = i - (rank - batch_a), ib = i - (rank - batch_b);
    dims[i] = ia < 0   ? right[ib]
              : ib < 0 ? left[ia]
                       : psplit_i_dim_broadcast(at->dims, left[ia], right[ib]);
    if (dims[i] == PSPLIT_NONE) {
      psplit_i_sizes_differ(at, left[ia], right[ib]);
      dims[i] = psplit_i_dim_fresh(at->dims);
    }
  }
  psplit_i_must_agree(at, left[left_rank - 1], right[right_rank > 1 ? right_rank - 2 : 0]);
  if (left_rank > 1) dims[rank++] = left[left_rank - 2];
  if (right_rank > 1) dims[rank++] = right[right_rank - 1];
  psplit_i_out(at, 0, elem, rank, dims);
}

static void plain_product(psplit_i_site *at, uint32_t b, int32_t elem) {
  product(at, (operand){.input = 0}, (operand){.input = b}, elem);
}

void psplit_i_infer_mat_mul(psplit_i_site *at) { plain_product(at, 1, psplit_i_elem(at, 0)); }
void psplit_i_infer_mat_mul_integer(psplit_i_site *at) { plain_product(at, 1, INT32); }
void psplit_i_infer_mat_mul_integer_to_float(psplit_i_site *at) {
  plain_product(at, 1, psplit_i_elem(at, 2) ? psplit_i_elem(at, 2) : FLOAT);
}
void psplit_i_infer_qlinear_mat_mul(psplit_i_site *at) {
  plain_product(at, 3, psplit_i_elem(at, 7) ? psplit_i_elem(at, 7) : psplit_i_elem(at, 0));
}

void psplit_i_infer_fused_mat_mul(psplit_i_site *at) {
  const operand a = {0, psplit_i_int(at, "transA", 0) != 0,
                     psplit_i_int(at, "transBatchA", 0) != 0};
  const operand b = {1, psplit_i_int(at, "transB", 0) != 0,
                     psplit_i_int(at, "transBatchB", 0) != 0};
  product(at, a, b, psplit_i_elem(at, 0));
}

static void gemm(psplit_i_site *at, uint32_t b, int32_t elem) {
  const int32_t row = psplit_i_int(at, "transA", 0) ? 1 : 0;
  const int32_t column = psplit_i_int(at, "transB", 0) ? 0 : 1;
  const psplit_dim dims[2] = {psplit_i_dim_of(at, 0, row), psplit_i_dim_of(at, b, column)};
  psplit_i_must_agree(at, psplit_i_dim_of(at, 0, 1 - row), psplit_i_dim_of(at, b, 1 - column));
  psplit_i_out(at, 0, elem, 2, dims);
}

void psplit_i_infer_gemm(psplit_i_site *at) { gemm(at, 1, psplit_i_elem(at, 0)); }
void psplit_i_infer_qgemm(psplit_i_site *at) {
  /* Without a zero point for y the result is float. */
  gemm(at, 3, psplit_i_has(at, 8) ? psplit_i_elem(at, 8) : FLOAT);
}

/* MatMulNBits and relatives: A [..., K] and a packed weight of N columns. */
void psplit_i_infer_mat_mul_nbits(psplit_i_site *at) {
  const psplit_i_vtype *a = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  const int64_t n = psplit_i_int(at, "N", -1);
  if (a->rank < 1) {
    psplit_i_out(at, 0, a->elem, -1, NULL);
    return;
  }
  memcpy(dims, a->dims, (size_t)a->rank * sizeof *dims);
  dims[a->rank - 1] = n < 0 ? psplit_i_dim_fresh(at->dims) : psplit_i_dim_const(at->dims, n);
  psplit_i_out(at, 0, a->elem, a->rank, dims);
}

/* One term of an Einsum equation: letters of input `input` get their sizes. */
static bool einsum_term(psplit_i_site *at, uint32_t input, const char *text, size_t n,
                        psplit_dim *letter, psplit_dim *dots, int32_t *n_dots) {
  const psplit_i_vtype *type = psplit_i_in(at, input);
  int32_t letters = 0, axis = 0;
  bool has_dots = false, past_dots = false;
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '.')
      has_dots = true;
    else if (text[i] != ' ')
      letters++;
  }
  if (type->rank < letters || (!has_dots && type->rank != letters)) return false;
  const int32_t more = type->rank - letters;
  for (size_t i = 0; i < n; i++) {
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      /* They stand for all axes that letters leave, so there is nothing for others to stand for. */
      if (past_dots || i + 2 >= n || text[i + 1] != '.' || text[i + 2] != '.') return false;
      past_dots = true;
      i += 2;
      /* Dots of several inputs broadcast, aligned at the end. */
      psplit_dim merged[PSPLIT_MAX_RANK];
      const int32_t rank = more > *n_dots ? more : *n_dots;
      for (int32_t d = 0; d < rank; d++) {
        const int32_t own = d - (rank - more), old = d - (rank - *n_dots);
        merged[d] = own < 0   ? dots[old]
                    : old < 0 ? type->dims[axis + own]
                              : psplit_i_dim_broadcast(at->dims, dots[old], type->dims[axis + own]);
        if (merged[d] == PSPLIT_NONE) merged[d] = psplit_i_dim_fresh(at->dims);
      }
      if (rank) memcpy(dots, merged, (size_t)rank * sizeof *dots);
      *n_dots = rank;
      axis += more;
      continue;
    }
    const unsigned char c = (unsigned char)text[i];
    if (c >= 128 || axis >= type->rank) return false;
    const psplit_dim size = type->dims[axis++];
    const psplit_dim both =
      letter[c] == PSPLIT_NONE ? size : psplit_i_dim_broadcast(at->dims, letter[c], size);
    letter[c] = both == PSPLIT_NONE ? psplit_i_dim_fresh(at->dims) : both;
  }
  return true;
}

void psplit_i_infer_einsum(psplit_i_site *at) {
  const Onnx__AttributeProto *equation = psplit_i_attribute(at, "equation");
  psplit_dim letter[128], dots[PSPLIT_MAX_RANK], dims[PSPLIT_MAX_RANK];
  int32_t n_dots = 0, rank = 0;
  for (int i = 0; i < 128; i++) letter[i] = PSPLIT_NONE;
  const int32_t elem = psplit_i_elem(at, 0);
  psplit_i_out(at, 0, elem, -1, NULL);
  if (!equation || !equation->s.data) return;
  const char *text = (const char *)equation->s.data;
  const size_t n = equation->s.len;
  size_t start = 0, arrow = n;
  for (size_t i = 0; i + 1 < n; i++)
    if (text[i] == '-' && text[i + 1] == '>') {
      arrow = i;
      break;
    }
  uint32_t input = 0;
  for (size_t i = 0; i <= arrow; i++) {
    if (i < arrow && text[i] != ',') continue;
    if (!einsum_term(at, input++, &text[start], i - start, letter, dots, &n_dots)) return;
    start = i + 1;
  }
  if (arrow == n) {
    /* Implicit output: the letters that occur once, in alphabetical order, after the dots. */
    for (int32_t d = 0; d < n_dots; d++) dims[rank++] = dots[d];
    for (int c = 'A'; c <= 'z'; c++) {
      int count = 0;
      for (size_t i = 0; i < n; i++) count += text[i] == c;
      if (count == 1 && rank < PSPLIT_MAX_RANK) dims[rank++] = letter[c];
    }
  }
  for (size_t i = arrow + 2; i < n; i++) {
    const unsigned char c = (unsigned char)text[i];
    if (c == ' ') continue;
    if (c == '.') {
      if (i + 2 >= n || text[i + 1] != '.' || text[i + 2] != '.') return;
      i += 2;
      for (int32_t d = 0; d < n_dots && rank < PSPLIT_MAX_RANK; d++) dims[rank++] = dots[d];
      continue;
    }
    if (c >= 128 || letter[c] == PSPLIT_NONE || rank == PSPLIT_MAX_RANK) return;
    dims[rank++] = letter[c];
  }
  psplit_i_out(at, 0, elem, rank, dims);
}

static psplit_dim positive_or(psplit_i_site *at, int64_t value, psplit_dim fallback) {
  return value > 0 ? psplit_i_dim_const(at->dims, value) : fallback;
}

/* RNN, GRU, LSTM: X [seq, batch, in], R [directions, gates * hidden, hidden]; batch comes first
 * with layout = 1. */
static void recurrent(psplit_i_site *at, uint32_t n_states, int32_t hidden_axis) {
  const int32_t elem = psplit_i_elem(at, 0);
  const bool batch_first = psplit_i_int(at, "layout", 0) != 0;
  const bool two = psplit_i_text_is(at, "direction", "bidirectional", false);
  const psplit_dim directions = psplit_i_dim_const(at->dims, two ? 2 : 1);
  psplit_dim hidden = psplit_i_dim_of(at, 2, hidden_axis);
  hidden = positive_or(at, psplit_i_int(at, "hidden_size", 0), hidden);
  const psplit_dim seq = psplit_i_dim_of(at, 0, batch_first ? 1 : 0);
  const psplit_dim batch = psplit_i_dim_of(at, 0, batch_first ? 0 : 1);
  const psplit_dim y[2][4] = {{seq, directions, batch, hidden}, {batch, seq, directions, hidden}};
  const psplit_dim h[2][3] = {{directions, batch, hidden}, {batch, directions, hidden}};
  psplit_i_out(at, 0, elem, 4, y[batch_first]);
  for (uint32_t s = 0; s < n_states; s++) psplit_i_out(at, 1 + s, elem, 3, h[batch_first]);
}

void psplit_i_infer_rnn(psplit_i_site *at) { recurrent(at, 1, 2); }
void psplit_i_infer_lstm(psplit_i_site *at) { recurrent(at, 2, 2); }

/* The quantised weights are transposed: R [directions, hidden, gates * hidden]. */
void psplit_i_infer_dynamic_quantize_lstm(psplit_i_site *at) { recurrent(at, 2, 1); }

/* Present key or value: the past one and `added` (batch, heads, sequence, head size), one behind
 * the other. */
static void present(psplit_i_site *at, uint32_t output, uint32_t past_input,
                    const psplit_dim added[4], int32_t elem) {
  psplit_dim total = added[2];
  if (psplit_i_has(at, past_input)) {
    total = psplit_i_rank(at, past_input) == 4
              ? psplit_i_dim_add(at->dims, psplit_i_dim_of(at, past_input, 2), added[2])
              : psplit_i_dim_fresh(at->dims);
  }
  const psplit_dim dims[4] = {added[0], added[1], total, added[3]};
  psplit_i_out(at, output, elem, 4, dims);
}

/* ai.onnx Attention: Q, K, V as [b, heads, s, d] or [b, s, heads * d]. */
void psplit_i_infer_attention(psplit_i_site *at) {
  const psplit_i_vtype *q = psplit_i_in(at, 0), *k = psplit_i_in(at, 1), *v = psplit_i_in(at, 2);
  psplit_i_dims *d = at->dims;
  const int64_t q_heads = psplit_i_int(at, "q_num_heads", 0);
  const int64_t kv_heads = psplit_i_int(at, "kv_num_heads", 0);
  psplit_dim dims[4];
  if (q->rank == 4 && v->rank == 4 && k->rank == 4) {
    const psplit_dim y[4] = {q->dims[0], q->dims[1], q->dims[2], v->dims[3]};
    psplit_i_out(at, 0, q->elem, 4, y);
    present(at, 1, 4, k->dims, k->elem);
    present(at, 2, 5, v->dims, v->elem);
    const psplit_dim total =
      psplit_i_has(at, 4) ? psplit_i_dim_add(d, psplit_i_dim_of(at, 4, 2), k->dims[2]) : k->dims[2];
    const psplit_dim scores[4] = {q->dims[0], q->dims[1], q->dims[2], total};
    psplit_i_out(at, 3, q->elem, 4, scores);
  } else if (q->rank == 3 && k->rank == 3 && v->rank == 3 && q_heads > 0 && kv_heads > 0) {
    const psplit_dim heads = psplit_i_dim_const(d, kv_heads), many = psplit_i_dim_const(d, q_heads);
    const psplit_dim v_size = psplit_i_dim_floor_div(d, v->dims[2], heads);
    const psplit_dim k_size = psplit_i_dim_floor_div(d, k->dims[2], heads);
    const psplit_dim y[3] = {q->dims[0], q->dims[1], psplit_i_dim_mul(d, v_size, many)};
    psplit_i_out(at, 0, q->elem, 3, y);
    present(at, 1, 4, (psplit_dim[4]){k->dims[0], heads, k->dims[1], k_size}, k->elem);
    present(at, 2, 5, (psplit_dim[4]){v->dims[0], heads, v->dims[1], v_size}, v->elem);
    const psplit_dim total =
      psplit_i_has(at, 4) ? psplit_i_dim_add(d, psplit_i_dim_of(at, 4, 2), k->dims[1]) : k->dims[1];
    const psplit_dim scores[4] = {q->dims[0], many, q->dims[1], total};
    psplit_i_out(at, 3, q->elem, 4, scores);
  } else {
    if (q->rank > 0 && q->rank <= 4) psplit_i_fresh_dims(at, q->rank, dims);
    psplit_i_out(at, 0, q->elem, q->rank <= 4 ? q->rank : -1, dims);
    for (uint32_t o = 1; o < 4; o++) {
      psplit_i_fresh_dims(at, 4, dims);
      psplit_i_out(at, o, o == 1 ? k->elem : o == 2 ? v->elem : q->elem, 4, dims);
    }
  }
}
