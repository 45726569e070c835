/* Rules: attention of com.microsoft beyond the plain kinds of infer_contrib.c: packed, paged,
 * sparse, one token at a time, and linear. */
#include "infer.h"

enum { FLOAT = 1 };

/* Width of the values that queries of this width attend to, where keys and values are packed with
 * them. */
static psplit_dim unpacked(psplit_i_site *at, psplit_dim width, int64_t heads, int64_t kv) {
  if (heads <= 0 || kv <= 0 || heads > INT32_MAX || kv > INT32_MAX)
    return psplit_i_dim_fresh(at->dims);
  const psplit_dim size =
    psplit_i_dim_floor_div(at->dims, width, psplit_i_dim_const(at->dims, heads + 2 * kv));
  return psplit_i_dim_mul_const(at->dims, size, heads);
}

/* PackedAttention: input [tokens, in], weights [in, q + k + v]. */
void psplit_i_infer_packed_attention(psplit_i_site *at) {
  size_t n;
  const int64_t *sizes = psplit_i_int_list(at, "qkv_hidden_sizes", &n);
  const psplit_dim third =
    psplit_i_dim_floor_div(at->dims, psplit_i_dim_of(at, 1, -1), psplit_i_dim_const(at->dims, 3));
  const psplit_dim dims[2] = {psplit_i_dim_of(at, 0, 0), sizes && n == 3 && sizes[2] > 0
                                                           ? psplit_i_dim_const(at->dims, sizes[2])
                                                           : third};
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 2, dims);
}

/* PackedMultiHeadAttention: query [tokens, hidden], or [tokens, heads, 3, size] with the others. */
void psplit_i_infer_packed_multi_head_attention(psplit_i_site *at) {
  psplit_dim width = psplit_i_dim_of(at, 2, 1);
  if (!psplit_i_has(at, 2))
    width = psplit_i_rank(at, 0) == 4
              ? psplit_i_dim_mul(at->dims, psplit_i_dim_of(at, 0, 1), psplit_i_dim_of(at, 0, 3))
              : psplit_i_dim_fresh(at->dims);
  const psplit_dim dims[2] = {psplit_i_dim_of(at, 0, 0), width};
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 2, dims);
}

/* PagedAttention: query [tokens, width]; the caches, inputs 3 and 4, are changed where they are. */
void psplit_i_infer_paged_attention(psplit_i_site *at) {
  const psplit_dim width = psplit_i_dim_of(at, 0, 1);
  const psplit_dim dims[2] = {
    psplit_i_dim_of(at, 0, 0),
    psplit_i_has(at, 1)
      ? width
      : unpacked(at, width, psplit_i_int(at, "num_heads", 0), psplit_i_int(at, "kv_num_heads", 0))};
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 2, dims);
  for (uint32_t o = 1; o < 3; o++) psplit_i_out_like(at, o, 2 + o, psplit_i_elem(at, 2 + o));
}

/* SparseAttention: query [batch, seq, width]; past and present are one buffer. */
void psplit_i_infer_sparse_attention(psplit_i_site *at) {
  const psplit_dim width = psplit_i_dim_of(at, 0, 2);
  const psplit_dim dims[3] = {
    psplit_i_dim_of(at, 0, 0), psplit_i_dim_of(at, 0, 1),
    psplit_i_has(at, 1)
      ? width
      : unpacked(at, width, psplit_i_int(at, "num_heads", 0), psplit_i_int(at, "kv_num_heads", 0))};
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 3, dims);
  for (uint32_t o = 1; o < 3; o++) psplit_i_out_like(at, o, 2 + o, psplit_i_elem(at, 2 + o));
}

/* DecoderMaskedMultiHeadAttention: query [batch, 1, hidden], past at inputs 5 and 6. */
void psplit_i_infer_decoder_masked_attention(psplit_i_site *at) {
  psplit_i_dims *d = at->dims;
  const psplit_i_vtype *values = psplit_i_in(at, 2);
  const int64_t heads = psplit_i_int(at, "num_heads", 0);
  psplit_dim width = psplit_i_dim_of(at, 0, 2);
  if (values->rank == 3) width = values->dims[2];
  if (values->rank == 4) width = psplit_i_dim_mul(d, values->dims[1], values->dims[3]);
  const psplit_dim y[3] = {psplit_i_dim_of(at, 0, 0), psplit_i_dim_of(at, 0, 1), width};
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 3, y);
  const bool shared = psplit_i_int(at, "past_present_share_buffer", 0) != 0;
  for (uint32_t o = 1; o < 3; o++) {
    if (psplit_i_rank(at, 4 + o) != 4) {
      const psplit_dim present[4] = {y[0], psplit_i_number_or_fresh(at, heads),
                                     psplit_i_dim_fresh(d), psplit_i_dim_fresh(d)};
      psplit_i_out(at, o, psplit_i_elem(at, 0), 4, present);
      continue;
    }
    psplit_dim present[4];
    for (int32_t axis = 0; axis < 4; axis++) present[axis] = psplit_i_dim_of(at, 4 + o, axis);
    if (!shared) present[2] = psplit_i_dim_add_const(d, present[2], 1);
    psplit_i_out(at, o, psplit_i_elem(at, 4 + o), 4, present);
  }
}

/* DecoderAttention: query [seq, batch, hidden]; the caches have what lengths they have. */
void psplit_i_infer_decoder_attention(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 0));
  const int64_t heads = psplit_i_int(at, "num_heads", 0);
  const psplit_dim dims[4] = {psplit_i_dim_of(at, 0, 1), psplit_i_number_or_fresh(at, heads),
                              psplit_i_dim_fresh(at->dims),
                              psplit_i_dim_floor_div(at->dims, psplit_i_dim_of(at, 0, 2),
                                                     psplit_i_number_or_fresh(at, heads))};
  for (uint32_t o = 1; o < 3; o++) psplit_i_out(at, o, psplit_i_elem(at, 0), 4, dims);
}

/* GatedRelativePositionBias: a bias for each head and pair of positions. */
void psplit_i_infer_gated_position_bias(psplit_i_site *at) {
  const bool packed = psplit_i_has(at, 6);
  const uint32_t of = packed ? 6 : 0; /* token_offset [batch, seq] */
  const psplit_dim seq = psplit_i_dim_of(at, of, 1);
  const psplit_dim dims[4] = {psplit_i_dim_of(at, of, 0),
                              psplit_i_number_or_fresh(at, psplit_i_int(at, "num_heads", 0)), seq,
                              seq};
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 4, dims);
}

/* RelativePositionBias: table [buckets, heads], then the two lengths. */
void psplit_i_infer_relative_position_bias(psplit_i_site *at) {
  psplit_dim dims[4] = {psplit_i_dim_const(at->dims, 1), psplit_i_dim_of(at, 0, 1)};
  for (uint32_t i = 1; i < 3; i++) dims[i + 1] = psplit_i_element_or_fresh(at, i);
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 4, dims);
}

/* LinearAttention: query, key [batch, seq, heads * size], value [batch, seq, kv heads * size]. */
void psplit_i_infer_linear_attention(psplit_i_site *at) {
  psplit_i_dims *d = at->dims;
  const int64_t q = psplit_i_int(at, "q_num_heads", 0), kv = psplit_i_int(at, "kv_num_heads", 0);
  const int64_t window = psplit_i_int(at, "state_window", 0);
  const psplit_dim heads = psplit_i_number_or_fresh(at, kv);
  const psplit_dim k_size = psplit_i_dim_floor_div(d, psplit_i_dim_of(at, 1, 2), heads);
  const psplit_dim v_size = psplit_i_dim_floor_div(d, psplit_i_dim_of(at, 2, 2), heads);
  const psplit_dim y[3] = {
    psplit_i_dim_of(at, 0, 0), psplit_i_dim_of(at, 0, 1),
    psplit_i_dim_mul(d, psplit_i_number_or_fresh(at, q > kv ? q : kv), v_size)};
  const psplit_dim state[5] = {psplit_i_number_or_fresh(at, window), y[0], heads, k_size, v_size};
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 3, y);
  psplit_i_out(at, 1, psplit_i_has(at, 3) ? psplit_i_elem(at, 3) : psplit_i_elem(at, 0),
               window > 0 ? 5 : 4, window > 0 ? state : state + 1);
}

/* GatedDeltaNet: query, key, value [tokens, heads, size] or [batch, seq, heads, size]. */
void psplit_i_infer_gated_delta_net(psplit_i_site *at) {
  const psplit_i_vtype *q = psplit_i_in(at, 0);
  const int32_t rank = q->rank == 3 || q->rank == 4 ? q->rank : -1;
  psplit_dim dims[4];
  for (int32_t i = 0; i < rank; i++) dims[i] = q->dims[i];
  if (rank > 0) {
    dims[rank - 2] = psplit_i_dim_max(at->dims, dims[rank - 2], psplit_i_dim_of(at, 2, -2));
    dims[rank - 1] = psplit_i_dim_of(at, 2, -1);
  }
  psplit_i_out(at, 0, q->elem, rank, dims);
  const psplit_dim state[4] = {psplit_i_dim_of(at, 6, 0), psplit_i_dim_of(at, 2, -2),
                               psplit_i_dim_of(at, 2, -1), psplit_i_dim_of(at, 0, -1)};
  psplit_i_out(at, 1, FLOAT, 4, state);
  const psplit_dim update[2] = {state[0], psplit_i_dim_fresh(at->dims)};
  psplit_i_out(at, 2, FLOAT, 2, update);
}

/* LinearAttentionGate: a decay like `a`, a rate like `b`. */
void psplit_i_infer_linear_attention_gate(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 0));
  psplit_i_out_like(at, 1, 3, psplit_i_elem(at, 3));
}

/* CausalConvWithState: the state is what the kernel reaches back to. */
void psplit_i_infer_causal_conv(psplit_i_site *at) {
  psplit_i_dims *d = at->dims;
  const psplit_i_vtype *data = psplit_i_in(at, 0), *weights = psplit_i_in(at, 1);
  psplit_i_out_like(at, 0, 0, data->elem);
  if (psplit_i_has(at, 3)) {
    psplit_i_out_like(at, 1, 3, psplit_i_elem(at, 3));
    return;
  }
  if (data->rank != 3 || weights->rank != 3 || psplit_i_int(at, "state_window", 0)) {
    psplit_i_out(at, 1, data->elem, -1, NULL);
    return;
  }
  const int64_t dilation = psplit_i_int(at, "dilation", 1);
  const bool last = psplit_i_int(at, "channels_last", 0) != 0;
  psplit_dim state[3] = {data->dims[0], data->dims[1], data->dims[2]};
  state[last ? 1 : 2] = psplit_i_dim_mul_const(d, psplit_i_dim_add_const(d, weights->dims[2], -1),
                                               dilation > 0 ? dilation : 1);
  psplit_i_out(at, 1, data->elem, 3, state);
}

/* The packed kind: a state for each request, as it was given. */
void psplit_i_infer_varlen_causal_conv(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 0));
}
