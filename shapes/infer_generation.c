/* Rules: com.microsoft operators for generation (searches, padding, tokens, experts), signals,
 * optimizers, and the rest of its schema. */
#include <string.h>

#include "infer.h"

enum { FLOAT = 1, UINT8 = 2, INT8 = 3, INT32 = 6, INT64 = 7, STRING = 8, BOOL = 9, UINT32 = 12 };

/* BeamSearch, WhisperBeamSearch: max_length at input 1, num_return_sequences at 4. */
void psplit_i_infer_beam_search(psplit_i_site *at) {
  const psplit_dim dims[3] = {psplit_i_dim_of(at, 0, 0), psplit_i_element_or_fresh(at, 4),
                              psplit_i_element_or_fresh(at, 1)};
  psplit_i_out(at, 0, INT32, 3, dims);
  psplit_i_out(at, 1, FLOAT, 2, dims);
  psplit_dim scores[4];
  psplit_i_fresh_dims(at, 4, scores);
  psplit_i_out(at, 2, FLOAT, 4, scores);
}

/* GreedySearch, Sampling. */
void psplit_i_infer_greedy_search(psplit_i_site *at) {
  const psplit_dim dims[2] = {psplit_i_dim_of(at, 0, 0), psplit_i_element_or_fresh(at, 1)};
  psplit_i_out(at, 0, INT32, 2, dims);
}

/* Input [batch, seq, hidden] to [tokens, hidden], with where they were. */
void psplit_i_infer_remove_padding(psplit_i_site *at) {
  const psplit_dim batch = psplit_i_dim_of(at, 0, 0);
  const psplit_dim packed[2] = {psplit_i_dim_fresh(at->dims), psplit_i_dim_of(at, 0, 2)};
  const psplit_dim offset[2] = {batch, psplit_i_dim_of(at, 0, 1)};
  const psplit_dim sums = psplit_i_dim_add_const(at->dims, batch, 1);
  const psplit_dim one = psplit_i_dim_const(at->dims, 1);
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 2, packed);
  psplit_i_out(at, 1, INT32, 2, offset);
  psplit_i_out(at, 2, INT32, 1, &sums);
  psplit_i_out(at, 3, INT32, 1, &one);
}

/* And back, by token_offset [batch, seq]. */
void psplit_i_infer_restore_padding(psplit_i_site *at) {
  const psplit_dim dims[3] = {psplit_i_dim_of(at, 1, 0), psplit_i_dim_of(at, 1, 1),
                              psplit_i_dim_of(at, 0, 1)};
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 3, dims);
}

/* Strings [n] or [n, c] to tokens, one axis more. */
void psplit_i_infer_tokenizer(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[3];
  const int32_t rank = data->rank == 1 || data->rank == 2 ? data->rank + 1 : -1;
  for (int32_t i = 0; i + 1 < rank; i++) dims[i] = data->dims[i];
  if (rank > 0) dims[rank - 1] = psplit_i_dim_fresh(at->dims);
  psplit_i_out(at, 0, STRING, rank, dims);
}

/* Tokens merged, and where the suffix matched. */
void psplit_i_infer_bifurcation_detector(psplit_i_site *at) {
  const psplit_dim n = psplit_i_dim_fresh(at->dims);
  psplit_i_out(at, 0, INT64, 1, &n);
  psplit_i_out(at, 1, INT64, 0, NULL);
}

/* Scores, input 1, with some of them pressed down. */
void psplit_i_infer_ngram_repeat_block(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 1, psplit_i_elem(at, 1));
}

/* A head for each order of n-grams from 2 on. */
void psplit_i_infer_ngram_hash(psplit_i_site *at) {
  const psplit_i_vtype *ids = psplit_i_in(at, 0);
  const int64_t order = psplit_i_int(at, "max_ngram_size", 0);
  const int64_t heads = psplit_i_int(at, "n_head_per_ngram", 0);
  const bool sane = order > 1 && order < INT32_MAX && heads > 0 && heads < INT32_MAX;
  psplit_dim dims[PSPLIT_MAX_RANK];
  const int32_t rank = ids->rank >= 0 && ids->rank < 4 ? ids->rank + 1 : -1;
  for (int32_t i = 0; i + 1 < rank; i++) dims[i] = ids->dims[i];
  if (rank > 0)
    dims[rank - 1] =
      sane ? psplit_i_dim_const(at->dims, (order - 1) * heads) : psplit_i_dim_fresh(at->dims);
  psplit_i_out(at, 0, ids->elem, rank, dims);
  const psplit_dim past[2] = {psplit_i_dim_of(at, 0, 0), sane
                                                           ? psplit_i_dim_const(at->dims, order - 1)
                                                           : psplit_i_dim_fresh(at->dims)};
  psplit_i_out(at, 1, ids->elem, 2, past);
  psplit_i_out(at, 2, INT32, 2, past);
}

/* A [m, n], B [k, n]: distances [m, k]. */
void psplit_i_infer_cdist(psplit_i_site *at) {
  const psplit_dim dims[2] = {psplit_i_dim_of(at, 0, 0), psplit_i_dim_of(at, 1, 0)};
  psplit_i_must_agree(at, psplit_i_dim_of(at, 0, 1), psplit_i_dim_of(at, 1, 1));
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 2, dims);
}

/* Windows of `size` at every `step` along `dim`, on an axis of their own behind the others. */
void psplit_i_infer_unfold_tensor(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  const int64_t size = psplit_i_int(at, "size", 0), step = psplit_i_int(at, "step", 1);
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t axis;
  if (data->rank < 1 || data->rank >= PSPLIT_MAX_RANK || size < 1 || step < 1 || size > INT32_MAX ||
      step > INT32_MAX || !psplit_i_axis(psplit_i_int(at, "dim", -1), data->rank, &axis)) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  memcpy(dims, data->dims, (size_t)data->rank * sizeof *dims);
  dims[axis] = psplit_i_dim_add_const(
    at->dims,
    psplit_i_dim_floor_div(at->dims, psplit_i_dim_add_const(at->dims, dims[axis], -size),
                           psplit_i_dim_const(at->dims, step)),
    1);
  dims[data->rank] = psplit_i_dim_const(at->dims, size);
  psplit_i_out(at, 0, data->elem, data->rank + 1, dims);
}

/* One half of the last axis gates the other. */
void psplit_i_infer_bias_split_gelu(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  for (int32_t i = 0; i < data->rank; i++) dims[i] = data->dims[i];
  if (data->rank > 0)
    dims[data->rank - 1] =
      psplit_i_dim_floor_div(at->dims, dims[data->rank - 1], psplit_i_dim_const(at->dims, 2));
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}

/* The normalised, and the sum that was. */
void psplit_i_infer_skip_group_norm(psplit_i_site *at) {
  for (uint32_t o = 0; o < 2; o++) psplit_i_out_like(at, o, 0, psplit_i_elem(at, 0));
}

/* Outputs 0 and 1 like inputs 0 and, as a mask, 0. */
void psplit_i_infer_bias_dropout(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 0));
  psplit_i_out_like(at, 1, 0, BOOL);
}
/* The mask is packed, 32 to a number. */
void psplit_i_infer_bitmask_dropout(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_i_out_like(at, 0, 0, data->elem);
  const psplit_dim words =
    data->rank < 0 ? psplit_i_dim_fresh(at->dims)
                   : psplit_i_dim_ceil_div(at->dims, psplit_i_volume(at, data, 0, data->rank),
                                           psplit_i_dim_const(at->dims, 32));
  psplit_i_out(at, 1, UINT32, 1, &words);
}

/* Condition, X with scale and zero point, Y at input 4. */
void psplit_i_infer_qlinear_where(psplit_i_site *at) {
  static const uint32_t inputs[3] = {0, 1, 4};
  psplit_dim dims[PSPLIT_MAX_RANK];
  const int32_t rank = psplit_i_broadcast_of(at, inputs, 3, dims);
  psplit_i_out(at, 0, psplit_i_elem(at, 1), rank, dims);
}

/* A, its zero point, B: int32. */
void psplit_i_infer_mul_integer(psplit_i_site *at) {
  static const uint32_t inputs[2] = {0, 2};
  psplit_dim dims[PSPLIT_MAX_RANK];
  const int32_t rank = psplit_i_broadcast_of(at, inputs, 2, dims);
  psplit_i_out(at, 0, INT32, rank, dims);
}

/* A hash for each element. */
void psplit_i_infer_murmur_hash(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_int(at, "positive", 1) ? UINT32 : INT32);
}

void psplit_i_infer_is_all_finite(psplit_i_site *at) { psplit_i_out(at, 0, BOOL, 0, NULL); }

/* The least costly way through a matrix. */
void psplit_i_infer_time_warping(psplit_i_site *at) {
  const psplit_dim dims[2] = {psplit_i_dim_const(at->dims, 2), psplit_i_dim_fresh(at->dims)};
  psplit_i_out(at, 0, INT32, 2, dims);
}

/* Two linear projections of one input (MatMulNBitsMlp): as one; output 1 is the sum before. */
void psplit_i_infer_mat_mul_nbits_mlp(psplit_i_site *at) {
  psplit_i_infer_mat_mul_nbits(at);
  psplit_i_out_like(at, 1, 0, psplit_i_elem(at, 0));
}

static void columns(psplit_i_site *at, uint32_t output, psplit_dim n) {
  const psplit_i_vtype *a = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  for (int32_t i = 0; i < a->rank; i++) dims[i] = a->dims[i];
  if (a->rank > 0) dims[a->rank - 1] = n;
  psplit_i_out(at, output, a->elem, a->rank, dims);
}

/* Three: queries, keys and values. */
void psplit_i_infer_mat_mul_nbits_qkv(psplit_i_site *at) {
  const int64_t q = psplit_i_int(at, "Nq", -1), kv = psplit_i_int(at, "Nkv", -1);
  for (uint32_t o = 0; o < 3; o++) {
    const int64_t n = o ? kv : q;
    columns(at, o, n < 0 ? psplit_i_dim_fresh(at->dims) : psplit_i_dim_const(at->dims, n));
  }
  psplit_i_out_like(at, 3, 0, psplit_i_elem(at, 0));
}

/* A weight [columns, ...], packed or not. */
void psplit_i_infer_mat_mul_rows(psplit_i_site *at) { columns(at, 0, psplit_i_dim_of(at, 1, 0)); }

/* GemmFastGelu, SparseToDenseMatMul: a product of inputs 0 and 1. GemmFloat8's type is its own. */
void psplit_i_infer_gemm_float8(psplit_i_site *at) {
  const psplit_dim dims[2] = {psplit_i_dim_of(at, 0, psplit_i_int(at, "transA", 0) ? 1 : 0),
                              psplit_i_dim_of(at, 1, psplit_i_int(at, "transB", 0) ? 0 : 1)};
  psplit_i_out(at, 0, psplit_i_elem_named(at, "dtype", FLOAT), 2, dims);
}

/* Scales between the operands: A at input 0, B at 2. */
void psplit_i_infer_qordered_mat_mul(psplit_i_site *at) {
  columns(at, 0, psplit_i_dim_of(at, 2, -1));
}

/* QuantizeWithOrder, and back. */
void psplit_i_infer_quantize_with_order(psplit_i_site *at) { psplit_i_out_like(at, 0, 0, INT8); }
void psplit_i_infer_dequantize_with_order(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem_named(at, "to", FLOAT));
}

/* Blocks of bytes, with the shape and the strides that they are of. */
void psplit_i_infer_quantize_bfp(psplit_i_site *at) {
  const int32_t rank = psplit_i_rank(at, 0);
  const psplit_dim bytes = psplit_i_dim_fresh(at->dims);
  const psplit_dim n = rank < 0 ? psplit_i_dim_fresh(at->dims) : psplit_i_dim_const(at->dims, rank);
  psplit_i_out(at, 0, UINT8, 1, &bytes);
  psplit_i_out(at, 1, INT64, 1, &n);
  psplit_i_out(at, 2, INT64, 1, &n);
}
void psplit_i_infer_dequantize_bfp(psplit_i_site *at) {
  psplit_i_out(at, 0, psplit_i_elem_named(at, "dtype", FLOAT), -1, NULL);
}

/* Of n real samples on the last axis n / 2 + 1 complex ones, as pairs. */
void psplit_i_infer_rfft(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  const int32_t rank = data->rank;
  if (rank < 1 || rank >= PSPLIT_MAX_RANK || psplit_i_int(at, "signal_ndim", 1) != 1) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  for (int32_t i = 0; i < rank; i++) dims[i] = data->dims[i];
  dims[rank - 1] = psplit_i_dim_add_const(
    at->dims, psplit_i_dim_floor_div(at->dims, dims[rank - 1], psplit_i_dim_const(at->dims, 2)), 1);
  dims[rank] = psplit_i_dim_const(at->dims, 2);
  psplit_i_out(at, 0, data->elem, rank + 1, dims);
}
void psplit_i_infer_irfft(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  const int32_t rank = data->rank - 1;
  if (rank < 1 || psplit_i_int(at, "signal_ndim", 1) != 1) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  for (int32_t i = 0; i < rank; i++) dims[i] = data->dims[i];
  dims[rank - 1] =
    psplit_i_dim_mul_const(at->dims, psplit_i_dim_add_const(at->dims, dims[rank - 1], -1), 2);
  psplit_i_out(at, 0, data->elem, rank, dims);
}

/* X [n, c, h, w], rois [k, 4], crop_size: [k, c, height, width]. */
void psplit_i_infer_crop_and_resize(psplit_i_site *at) {
  uint32_t n;
  const psplit_dim *size = psplit_i_elements(at, 3, &n);
  psplit_dim dims[4] = {psplit_i_dim_of(at, 1, 0), psplit_i_dim_of(at, 0, 1)};
  for (uint32_t i = 0; i < 2; i++)
    dims[2 + i] = size && n == 2 ? size[i] : psplit_i_dim_fresh(at->dims);
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 4, dims);
}

/* X [n, h, w, c], W [out, ...]: channels come last. */
void psplit_i_infer_nhwc_conv(psplit_i_site *at) {
  psplit_dim dims[PSPLIT_MAX_RANK];
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_i_fresh_dims(at, data->rank, dims);
  if (data->rank > 2) {
    dims[0] = data->dims[0];
    dims[data->rank - 1] = psplit_i_dim_of(at, 1, 0);
  }
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}
void psplit_i_infer_nhwc_pool(psplit_i_site *at) {
  psplit_dim dims[PSPLIT_MAX_RANK];
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_i_fresh_dims(at, data->rank, dims);
  if (data->rank > 2) {
    dims[0] = data->dims[0];
    dims[data->rank - 1] = data->dims[data->rank - 1];
  }
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}

/* Pads come as an input. */
void psplit_i_infer_conv_transpose_pads(psplit_i_site *at) {
  psplit_dim dims[PSPLIT_MAX_RANK];
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  const int64_t group = psplit_i_int(at, "group", 1);
  psplit_i_fresh_dims(at, data->rank, dims);
  if (data->rank > 2) {
    dims[0] = data->dims[0];
    if (group > 0 && group < INT32_MAX)
      dims[1] = psplit_i_dim_mul_const(at->dims, psplit_i_dim_of(at, 1, 1), group);
  }
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}

/* GemmaRotaryEmbedding: the rotated of inputs 1 and 3. */
void psplit_i_infer_gemma_rotary(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 1, psplit_i_elem(at, 1));
  psplit_i_out_like(at, 1, 3, psplit_i_elem(at, 3));
}

/* EngramGate: keys' layout. */
void psplit_i_infer_engram_gate(psplit_i_site *at) {
  for (uint32_t o = 0; o < 2; o++) psplit_i_out_like(at, o, 0, psplit_i_elem(at, 0));
}

/* A vector for each word of a batch of sequences of characters. */
void psplit_i_infer_word_conv_embedding(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  const int64_t size = psplit_i_int(at, "embedding_size", 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  for (int32_t i = 0; i < data->rank; i++) dims[i] = data->dims[i];
  if (data->rank > 0)
    dims[data->rank - 1] =
      size > 0 ? psplit_i_dim_const(at->dims, size) : psplit_i_dim_of(at, 1, 0);
  psplit_i_out(at, 0, FLOAT, data->rank, dims);
}

/* com.microsoft.Unique: values, a place for each element, counts. */
void psplit_i_infer_contrib_unique(psplit_i_site *at) {
  const psplit_dim n = psplit_i_dim_fresh(at->dims), all = psplit_i_dim_of(at, 0, 0);
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 1, &n);
  psplit_i_out(at, 1, INT64, 1, &all);
  psplit_i_out(at, 2, INT64, 1, &n);
}

/* As EmbedLayerNormalization; the embeddings are quantised. */
void psplit_i_infer_qembed_layer_normalization(psplit_i_site *at) {
  const psplit_dim dims[3] = {psplit_i_dim_of(at, 0, 0), psplit_i_dim_of(at, 0, 1),
                              psplit_i_dim_of(at, 2, 1)};
  psplit_i_out(at, 0, FLOAT, 3, dims);
  psplit_i_out(at, 1, INT32, 1, dims);
}

void psplit_i_infer_reduce_sum_integer(psplit_i_site *at) {
  psplit_i_infer_reduce(at);
  if (psplit_i_wants(at, 0)) at->scope->types[at->node->outputs[0]].elem = INT32;
}

/* Optimizers of ai.onnx.preview.training: rate, step, then n of each kind of tensor (the first kind
 * is followed by gradients); results are n of each kind but gradients. */
static void optimizer(psplit_i_site *at, uint32_t kinds) {
  if (at->node->n_inputs < 2 || (at->node->n_inputs - 2) % kinds != 0) return;
  const uint32_t n = (at->node->n_inputs - 2) / kinds;
  for (uint32_t o = 0; o < n * (kinds - 1); o++) {
    const uint32_t input = 2 + o + (o < n ? 0 : n);
    psplit_i_out_like(at, o, input, psplit_i_elem(at, input));
  }
}
void psplit_i_infer_optimizer3(psplit_i_site *at) { optimizer(at, 3); }
void psplit_i_infer_optimizer4(psplit_i_site *at) { optimizer(at, 4); }

/* Gradient: one for each tensor of xs, which the first inputs are. */
void psplit_i_infer_gradient(psplit_i_site *at) {
  for (uint32_t o = 0; o < at->node->n_outputs && o < at->node->n_inputs; o++)
    psplit_i_out_like(at, o, o, psplit_i_elem(at, o));
}
