/* Rules: com.microsoft operators as exporters and optimisers write them. */
#include <string.h>

#include "infer.h"

enum { FLOAT = 1, INT32 = 6 };

static int32_t elem_or(int32_t elem, int32_t fallback) { return elem ? elem : fallback; }

/* Output like input 0, and output 3 the sum that is normalised. */
void psplit_i_infer_skip_layer_normalization(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  psplit_i_out_like(at, 0, 0, data->elem);
  psplit_i_out_like(at, 3, 0, data->elem);
  for (int32_t i = 0; i < data->rank; i++)
    dims[i] = i + 1 < data->rank ? data->dims[i] : psplit_i_dim_const(at->dims, 1);
  for (uint32_t o = 1; o < 3; o++) psplit_i_out(at, o, FLOAT, data->rank, dims);
}

/* input_ids [batch, seq], word_embedding [words, hidden] at input 2. */
void psplit_i_infer_embed_layer_normalization(psplit_i_site *at) {
  const psplit_dim dims[3] = {psplit_i_dim_of(at, 0, 0), psplit_i_dim_of(at, 0, 1),
                              psplit_i_dim_of(at, 2, 1)};
  psplit_i_out(at, 0, psplit_i_elem(at, 2), 3, dims);
  psplit_i_out(at, 1, INT32, 1, dims);
  psplit_i_out(at, 2, psplit_i_elem(at, 2), 3, dims);
}

/* Attention with the projection inside: input [b, s, in], weights [in, q + k + v]. */
static void attention_qkv(psplit_i_site *at, uint32_t past_input, int32_t elem) {
  psplit_i_dims *d = at->dims;
  const int64_t heads = psplit_i_int(at, "num_heads", 0);
  size_t n;
  const int64_t *sizes = psplit_i_int_list(at, "qkv_hidden_sizes", &n);
  psplit_dim v_hidden =
    psplit_i_dim_floor_div(d, psplit_i_dim_of(at, 1, -1), psplit_i_dim_const(d, 3));
  if (sizes && n == 3 && sizes[2] > 0) v_hidden = psplit_i_dim_const(d, sizes[2]);
  const psplit_dim y[3] = {psplit_i_dim_of(at, 0, 0), psplit_i_dim_of(at, 0, 1), v_hidden};
  psplit_i_out(at, 0, elem, 3, y);
  psplit_dim total = y[1];
  if (psplit_i_has(at, past_input))
    total = psplit_i_rank(at, past_input) == 5 && !psplit_i_int(at, "past_present_share_buffer", 0)
              ? psplit_i_dim_add(d, psplit_i_dim_of(at, past_input, 3), y[1])
              : psplit_i_dim_fresh(d);
  const psplit_dim present[5] = {
    psplit_i_dim_const(d, 2), y[0],
    heads > 0 ? psplit_i_dim_const(d, heads) : psplit_i_dim_fresh(d), total,
    heads > 0 ? psplit_i_dim_floor_div(d, v_hidden, psplit_i_dim_const(d, heads))
              : psplit_i_dim_fresh(d)};
  psplit_i_out(at, 1, elem, 5, present);
}

void psplit_i_infer_attention_qkv(psplit_i_site *at) { attention_qkv(at, 4, psplit_i_elem(at, 0)); }
void psplit_i_infer_qattention(psplit_i_site *at) {
  attention_qkv(at, 8, elem_or(psplit_i_elem(at, 3), FLOAT));
}

/* query [b, s, h] or packed [b, s, heads, 3, size]; key, value [b, t, h] or [b, heads, t, size]. */
void psplit_i_infer_multi_head_attention(psplit_i_site *at) {
  psplit_i_dims *d = at->dims;
  const psplit_i_vtype *q = psplit_i_in(at, 0), *k = psplit_i_in(at, 1), *v = psplit_i_in(at, 2);
  const int64_t n_heads = psplit_i_int(at, "num_heads", 0);
  const psplit_dim heads = psplit_i_number_or_fresh(at, n_heads);
  const psplit_dim batch = psplit_i_dim_of(at, 0, 0), seq = psplit_i_dim_of(at, 0, 1);
  psplit_dim k_size = psplit_i_dim_fresh(d), v_size = psplit_i_dim_fresh(d), added = seq;
  if (q->rank == 5) {
    k_size = v_size = q->dims[4];
  } else if (q->rank == 3) {
    k_size = v_size = psplit_i_dim_floor_div(d, q->dims[2], heads);
    if (v->rank == 3) v_size = psplit_i_dim_floor_div(d, v->dims[2], heads);
    if (v->rank == 4) v_size = v->dims[3];
    if (k->rank == 3) added = k->dims[1];
    if (k->rank == 4) added = k->dims[2];
    if (k->rank == 5) {
      added = k->dims[1];
      v_size = k->dims[4];
    }
  }
  const psplit_dim y[3] = {batch, seq, psplit_i_dim_mul(d, heads, v_size)};
  psplit_i_out(at, 0, q->elem, 3, y);
  for (uint32_t o = 1; o < 3; o++) {
    psplit_dim total = added;
    if (psplit_i_has(at, 5 + o))
      total = psplit_i_rank(at, 5 + o) == 4 && k->rank != 4 &&
                  !psplit_i_int(at, "past_present_share_buffer", 0)
                ? psplit_i_dim_add(d, psplit_i_dim_of(at, 5 + o, 2), added)
                : psplit_i_dim_fresh(d);
    const psplit_dim present[4] = {batch, heads, total, o == 1 ? k_size : v_size};
    psplit_i_out(at, o, q->elem, 4, present);
  }
}

/* query [b, s, heads * size], or packed with keys and values when input 1 is missing. */
void psplit_i_infer_group_query_attention(psplit_i_site *at) {
  psplit_i_dims *d = at->dims;
  const int64_t heads = psplit_i_int(at, "num_heads", 0), kv = psplit_i_int(at, "kv_num_heads", 0);
  const bool sane = heads > 0 && kv > 0 && heads < INT32_MAX && kv < INT32_MAX;
  psplit_dim hidden = psplit_i_dim_of(at, 0, 2), size = psplit_i_dim_fresh(d);
  if (sane) {
    const bool packed = !psplit_i_has(at, 1);
    size =
      psplit_i_dim_floor_div(d, hidden, psplit_i_dim_const(d, packed ? heads + 2 * kv : heads));
    if (packed) hidden = psplit_i_dim_mul_const(d, size, heads);
  }
  const psplit_dim y[3] = {psplit_i_dim_of(at, 0, 0), psplit_i_dim_of(at, 0, 1), hidden};
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 3, y);
  for (uint32_t o = 1; o < 3; o++) {
    /* A buffer of the longest length stays as it is, a cache that grows is as long as the total. */
    psplit_dim length = psplit_i_element_or_fresh(at, 6);
    if (psplit_i_rank(at, 2 + o) == 4)
      length = psplit_i_int(at, "sliding_window_cache", 0)
                 ? psplit_i_dim_of(at, 2 + o, 2)
                 : psplit_i_dim_max(d, psplit_i_dim_of(at, 2 + o, 2), length);
    const psplit_dim present[4] = {y[0], sane ? psplit_i_dim_const(d, kv) : psplit_i_dim_fresh(d),
                                   length, size};
    psplit_i_out(at, o, elem_or(psplit_i_elem(at, 2 + o), psplit_i_elem(at, 0)), 4, present);
  }
}

void psplit_i_infer_qlinear_binary(psplit_i_site *at) {
  static const uint32_t inputs[2] = {0, 3};
  psplit_dim dims[PSPLIT_MAX_RANK];
  const int32_t rank = psplit_i_broadcast_of(at, inputs, 2, dims);
  psplit_i_out(at, 0, psplit_i_elem(at, 0), rank, dims);
}

/* Inputs: scale and zero point of the result, then (tensor, scale, zero point) for each part. */
void psplit_i_infer_qlinear_concat(psplit_i_site *at) {
  const int32_t rank = psplit_i_rank(at, 2);
  const int32_t elem = psplit_i_elem(at, 2);
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t axis;
  if (rank < 0 || !psplit_i_axis(psplit_i_int(at, "axis", 0), rank, &axis)) {
    psplit_i_out(at, 0, elem, -1, NULL);
    return;
  }
  memcpy(dims, psplit_i_in(at, 2)->dims, (size_t)rank * sizeof *dims);
  for (uint32_t i = 5; i < at->node->n_inputs; i += 3)
    dims[axis] = psplit_i_dim_add(at->dims, dims[axis], psplit_i_dim_of(at, i, axis));
  psplit_i_out(at, 0, elem, rank, dims);
}

/* Global average over the axes between batch and channels, wherever those stand. */
void psplit_i_infer_qlinear_global_pool(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  const bool last = psplit_i_int(at, "channels_last", 0) != 0;
  psplit_dim dims[PSPLIT_MAX_RANK];
  for (int32_t i = 0; i < data->rank; i++)
    dims[i] =
      i == 0 || i == (last ? data->rank - 1 : 1) ? data->dims[i] : psplit_i_dim_const(at->dims, 1);
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}

/* Shape of input 0 known only by rank. */
void psplit_i_infer_same_rank(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  psplit_i_fresh_dims(at, data->rank, dims);
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}

/* QLinearAveragePool: as AveragePool unless channels come last. */
void psplit_i_infer_qlinear_pool(psplit_i_site *at) {
  if (psplit_i_int(at, "channels_last", 0))
    psplit_i_infer_same_rank(at);
  else
    psplit_i_infer_pool(at);
}

/* Rows of a table of packed weights picked by indices. */
void psplit_i_infer_gather_block_quantized(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0), *indices = psplit_i_in(at, 1);
  psplit_dim dims[PSPLIT_MAX_RANK];
  const int32_t rank = data->rank + indices->rank - 1;
  if (data->rank < 1 || indices->rank < 0 || rank > PSPLIT_MAX_RANK ||
      psplit_i_int(at, "gather_axis", 0) != 0) {
    psplit_i_out(at, 0, psplit_i_elem(at, 2), -1, NULL);
    return;
  }
  int32_t n = 0;
  for (int32_t i = 0; i < indices->rank; i++) dims[n++] = indices->dims[i];
  for (int32_t i = 1; i < data->rank; i++) dims[n++] = data->dims[i];
  /* uint8 data holds two elements a byte, or one. */
  const int64_t bits = psplit_i_int(at, "bits", 4);
  if (data->rank > 1 && data->elem == 2)
    dims[n - 1] = bits == 4 || bits == 8 ? psplit_i_dim_mul_const(at->dims, dims[n - 1], 8 / bits)
                                         : psplit_i_dim_fresh(at->dims);
  psplit_i_out(at, 0, psplit_i_elem(at, 2), n, dims);
}
