/* Arithmetic operations per operator. Formulas and sources: docs/costs/shapes.md. */
#include "work_inside.h"

static uint64_t mul(uint64_t a, uint64_t b) { return psplit_i_sat_mul_u64(a, b); }
static uint64_t add(uint64_t a, uint64_t b) { return psplit_i_sat_add_u64(a, b); }

static uint64_t log2_of(uint64_t n) {
  uint64_t bits = 1;
  while (n > 2) {
    n = (n + 1) / 2;
    bits++;
  }
  return bits;
}

static uint64_t in_elements(psplit_i_tally *t, const psplit_i_site *at, uint32_t input) {
  return psplit_i_tally_elements(t, psplit_i_in(at, input));
}

static uint64_t out_elements(psplit_i_tally *t, const psplit_i_site *at) {
  return psplit_i_tally_elements(t, psplit_i_site_output(at, 0));
}

/* Dimension of an input, from the back when negative. */
static uint64_t in_dim(psplit_i_tally *t, const psplit_i_site *at, uint32_t input, int32_t axis) {
  const psplit_i_vtype *type = psplit_i_in(at, input);
  if (axis < 0) axis += type->rank;
  if (type->rank < 0 || axis < 0 || axis >= type->rank) {
    t->unknown = true;
    return 0;
  }
  return psplit_i_tally_dim(t, type->dims[axis]);
}

/* Product of the dimensions of a weight from `axis` on. */
static uint64_t volume_from(psplit_i_tally *t, const psplit_i_site *at, uint32_t input,
                            int32_t axis) {
  const psplit_i_vtype *type = psplit_i_in(at, input);
  if (type->rank < axis) {
    t->unknown = true;
    return 0;
  }
  uint64_t volume = 1;
  for (int32_t i = axis; i < type->rank; i++)
    volume = mul(volume, psplit_i_tally_dim(t, type->dims[i]));
  return volume;
}

/* Every output element sums input channels of its group over the kernel. */
static uint64_t conv(psplit_i_tally *t, const psplit_i_site *at, uint32_t weights) {
  return mul(2, mul(out_elements(t, at), volume_from(t, at, weights, 1)));
}

static uint64_t deform_conv(psplit_i_tally *t, const psplit_i_site *at) {
  /* Each tap is interpolated from four neighbours. */
  const uint64_t taps = mul(in_elements(t, at, 2), in_dim(t, at, 0, 1));
  return add(conv(t, at, 1), mul(4, taps));
}

static uint64_t pool(psplit_i_tally *t, const psplit_i_site *at) {
  size_t n;
  const int64_t *kernel = psplit_i_int_list(at, "kernel_shape", &n);
  uint64_t volume = 1;
  for (size_t i = 0; kernel && i < n; i++)
    volume = mul(volume, kernel[i] > 0 ? (uint64_t)kernel[i] : 1);
  return mul(out_elements(t, at), volume);
}

static uint64_t mat_mul(psplit_i_tally *t, const psplit_i_site *at) {
  const bool swap = psplit_i_int(at, "transA", 0) != 0 && psplit_i_rank(at, 0) > 1;
  /* FusedMatMul may hold the rows in front of the batch. */
  const bool rows_first = psplit_i_int(at, "transBatchA", 0) != 0;
  return mul(2, mul(out_elements(t, at), in_dim(t, at, 0, !swap ? -1 : rows_first ? 0 : -2)));
}

static uint64_t gemm(psplit_i_tally *t, const psplit_i_site *at) {
  const uint64_t inner = in_dim(t, at, 0, psplit_i_int(at, "transA", 0) ? 0 : 1);
  const uint64_t out = out_elements(t, at);
  return add(mul(2, mul(out, inner)), psplit_i_has(at, 2) ? out : 0);
}

/* Product over all distinct letters: each is an index of one big sum. */
static uint64_t einsum(psplit_i_tally *t, const psplit_i_site *at) {
  const Onnx__AttributeProto *equation = psplit_i_attribute(at, "equation");
  bool seen[128] = {false};
  uint64_t product = 1;
  uint32_t input = 0;
  int32_t axis = 0;
  if (!equation) return 0;
  for (size_t i = 0; i < equation->s.len && equation->s.data[i] != '-'; i++) {
    const unsigned char c = equation->s.data[i];
    const psplit_i_vtype *type = psplit_i_in(at, input);
    if (c == ',') {
      input++;
      axis = 0;
    } else if (c == '.') {
      /* The dots' own axes are outputs: counted through the output instead. */
      return mul(2, mul(out_elements(t, at), in_dim(t, at, 0, -1)));
    } else if (c != ' ' && c < 128) {
      if (axis >= type->rank) {
        t->unknown = true;
        return 0;
      }
      if (!seen[c]) product = mul(product, psplit_i_tally_dim(t, type->dims[axis]));
      seen[c] = true;
      axis++;
    }
  }
  return mul(input > 0 ? 2 : 1, product);
}

/* Products with W and R for each step and sample, and the gates. */
static uint64_t rnn(psplit_i_tally *t, const psplit_i_site *at) {
  const psplit_i_vtype *x = psplit_i_in(at, 0);
  if (x->rank != 3) {
    t->unknown = true;
    return 0;
  }
  const uint64_t steps = mul(psplit_i_tally_dim(t, x->dims[0]), psplit_i_tally_dim(t, x->dims[1]));
  const uint64_t weights = add(in_elements(t, at, 1), in_elements(t, at, 2));
  const uint64_t gates = mul(in_dim(t, at, 2, 0), in_dim(t, at, 2, 1));
  return mul(steps, add(mul(2, weights), mul(10, gates)));
}

/* Length that queries attend to: what is new and what is past. */
static uint64_t attended(psplit_i_tally *t, const psplit_i_site *at) {
  const bool standard = !*at->node->domain;
  const bool grouped = at->node->op_type[0] == 'G';
  const psplit_i_vtype *keys = psplit_i_in(at, 1);
  const char first = at->node->op_type[0];
  const uint32_t past = standard ? 4 : grouped || first == 'S' ? 3 : first == 'D' ? 5 : 6;
  uint64_t length;
  if (keys->rank == 4)
    length = psplit_i_tally_dim(t, keys->dims[2]);
  else if (keys->rank == 3 || keys->rank == 5)
    length = psplit_i_tally_dim(t, keys->dims[1]);
  else
    length = in_dim(t, at, 0, 1); /* keys packed with the queries */
  if (psplit_i_has(at, past)) length = add(length, in_dim(t, at, past, 2));
  return length;
}

/* Scores and weighted values are products over the attended length; softmax on the scores. */
static uint64_t attention(psplit_i_tally *t, const psplit_i_site *at) {
  const psplit_i_vtype *q = psplit_i_in(at, 0);
  const uint64_t out = out_elements(t, at), length = attended(t, at);
  const int64_t heads = psplit_i_int(at, !*at->node->domain ? "q_num_heads" : "num_heads", 0);
  const uint64_t width = q->rank == 4 ? in_dim(t, at, 0, 3) : 1;
  const uint64_t rows = q->rank == 4 ? volume_from(t, at, 0, 0) / (width ? width : 1)
                                     : mul(mul(in_dim(t, at, 0, 0), in_dim(t, at, 0, 1)),
                                           heads > 0 ? (uint64_t)heads : 1);
  return add(mul(4, mul(out, length)), mul(10, mul(rows, length)));
}

static uint64_t attention_qkv(psplit_i_tally *t, const psplit_i_site *at) {
  const uint64_t batch = in_dim(t, at, 0, 0), seq = in_dim(t, at, 0, 1);
  const uint64_t projection =
    mul(2, mul(mul(batch, seq), mul(in_dim(t, at, 0, 2), in_dim(t, at, 1, -1))));
  const uint32_t past = at->node->op_type[0] == 'Q' ? 8 : 4;
  uint64_t length = seq;
  if (psplit_i_has(at, past)) length = add(length, in_dim(t, at, past, 3));
  const int64_t heads = psplit_i_int(at, "num_heads", 1);
  const uint64_t rows = mul(mul(batch, seq), heads > 0 ? (uint64_t)heads : 1);
  return add(projection, add(mul(4, mul(out_elements(t, at), length)), mul(10, mul(rows, length))));
}

/* Of sequences packed into rows: their length is that of token_offset, [batch, seq]; where there is
 * none, the caches tell it, which only a run can read. */
static uint64_t attention_packed(psplit_i_tally *t, const psplit_i_site *at) {
  const psplit_i_vtype *offset =
    psplit_i_in(at, psplit_i_rank(at, 1) == 2 && psplit_i_in(at, 1)->is_weight ? 3 : 4);
  if (offset->rank != 2 || psplit_i_rank(at, 0) < 2) {
    t->unknown = true;
    return 0;
  }
  const uint64_t length = psplit_i_tally_dim(t, offset->dims[1]);
  return mul(4, mul(out_elements(t, at), length));
}

/* Each token reads and changes a state of key size by value size for each head. */
static uint64_t attention_linear(psplit_i_tally *t, const psplit_i_site *at) {
  const psplit_i_vtype *state = psplit_i_site_output(at, 1);
  const psplit_i_vtype *q = psplit_i_in(at, 0);
  uint64_t tokens = 1;
  const int64_t heads = psplit_i_int(at, "kv_num_heads", 1);
  if (q->rank < 3) {
    t->unknown = true;
    return 0;
  }
  const int32_t n_leading = q->rank == 3 && heads > 1 ? 2 : q->rank - 2;
  for (int32_t i = 0; i < n_leading; i++) tokens = mul(tokens, psplit_i_tally_dim(t, q->dims[i]));
  if (state->rank < 4) return mul(8, out_elements(t, at));
  uint64_t per_token = 1;
  for (int32_t i = state->rank - 3; i < state->rank; i++)
    per_token = mul(per_token, psplit_i_tally_dim(t, state->dims[i]));
  return mul(8, mul(tokens, per_token));
}

/* Each row goes through k experts; weights [experts, ...] at inputs 2, 4, 6, or quantised 2, 5, 8.
 */
static uint64_t experts(psplit_i_tally *t, const psplit_i_site *at) {
  const bool quantised = at->node->op_type[0] == 'Q';
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  const int64_t k = psplit_i_int(at, "k", 1), bits = psplit_i_int(at, "expert_weight_bits", 4);
  uint64_t rows = 1, weights = 0;
  if (data->rank < 1) t->unknown = true;
  for (int32_t i = 0; i + 1 < data->rank; i++)
    rows = mul(rows, psplit_i_tally_dim(t, data->dims[i]));
  for (uint32_t i = 2; i < (quantised ? 9u : 7u); i += quantised ? 3 : 2)
    if (psplit_i_has(at, i)) weights = add(weights, volume_from(t, at, i, 1));
  if (quantised && bits > 0 && bits < 8) weights = mul(weights, (uint64_t)(8 / bits));
  return mul(2, mul(mul(rows, k > 0 ? (uint64_t)k : 1), weights));
}

/* Products with K columns each, of N (twice), or Nq and Nkv (twice). */
static uint64_t nbits_fused(psplit_i_tally *t, const psplit_i_site *at) {
  const psplit_i_vtype *a = psplit_i_in(at, 0);
  const int64_t n = psplit_i_int(at, "N", 0), q = psplit_i_int(at, "Nq", 0),
                kv = psplit_i_int(at, "Nkv", 0);
  if (a->rank < 1 || n < 0 || q < 0 || kv < 0) {
    t->unknown = true;
    return 0;
  }
  return mul(2, mul(psplit_i_tally_elements(t, a),
                    add(mul(2, add((uint64_t)n, (uint64_t)kv)), (uint64_t)q)));
}

static uint64_t resize(psplit_i_tally *t, const psplit_i_site *at) {
  if (psplit_i_text_is(at, "mode", "nearest", at->node->op_type[0] != 'G')) return 0;
  const bool cubic =
    psplit_i_text_is(at, "mode", "cubic", false) || psplit_i_text_is(at, "mode", "bicubic", false);
  return mul(cubic ? 40 : 8, out_elements(t, at));
}

static uint64_t dft(psplit_i_tally *t, const psplit_i_site *at) {
  const psplit_i_vtype *out = psplit_i_site_output(at, 0);
  if (out->rank < 2) {
    t->unknown = true;
    return 0;
  }
  const uint64_t length = psplit_i_tally_dim(t, out->dims[out->rank - 2]);
  return mul(5, mul(out_elements(t, at), log2_of(length)));
}

static uint64_t roi(psplit_i_tally *t, const psplit_i_site *at) {
  int64_t samples = psplit_i_int(at, "sampling_ratio", 0);
  if (samples < 1 || samples > 1024) samples = 2;
  return mul(mul(8, (uint64_t)(samples * samples)), out_elements(t, at));
}

static uint64_t sort(psplit_i_tally *t, const psplit_i_site *at) {
  const uint64_t n = in_elements(t, at, 0);
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  int32_t axis;
  uint64_t length = n;
  if (data->rank > 0 && psplit_i_axis(psplit_i_int(at, "axis", -1), data->rank, &axis))
    length = psplit_i_tally_dim(t, data->dims[axis]);
  return mul(n, log2_of(length));
}

/* Rows of what a model of ai.onnx.ml is asked about; a list is one row. */
static uint64_t rows(psplit_i_tally *t, const psplit_i_site *at) {
  return psplit_i_in(at, 0)->rank == 1 ? 1 : in_dim(t, at, 0, 0);
}

static uint64_t length_of(const psplit_i_site *at, const char *attribute) {
  const Onnx__AttributeProto *list = psplit_i_attribute(at, attribute);
  return list ? list->n_ints + list->n_floats : 0;
}

/* Each row goes down each tree, which counts as one that is as high on all sides, and adds up what
 * stands at the leaf. */
static uint64_t trees(psplit_i_tally *t, const psplit_i_site *at) {
  const uint64_t n_roots = length_of(at, "tree_roots"); /* since opset 5, of branches alone */
  size_t n_nodes;
  const int64_t *tree_of = psplit_i_int_list(at, "nodes_treeids", &n_nodes);
  uint64_t n_trees = n_roots ? n_roots : n_nodes > 0;
  for (size_t i = 1; i < n_nodes && !n_roots; i++) n_trees += tree_of[i] != tree_of[i - 1];
  if (!n_trees) {
    t->unknown = true;
    return 0;
  }
  const uint64_t n_leaves =
    n_roots ? add(n_roots, length_of(at, "nodes_featureids")) : (n_nodes + n_trees) / 2;
  const uint64_t n_weights = add(add(length_of(at, "class_ids"), length_of(at, "target_ids")),
                                 length_of(at, "leaf_targetids"));
  const uint64_t way = mul(2, log2_of(n_leaves / n_trees));
  return mul(mul(rows(t, at), n_trees), add(way, n_weights / n_leaves));
}

static uint64_t products(psplit_i_tally *t, const psplit_i_site *at, const char *numbers) {
  return mul(mul(2, rows(t, at)), length_of(at, numbers));
}

/* A linear one has no vectors. */
static uint64_t svm(psplit_i_tally *t, const psplit_i_site *at) {
  const uint64_t vectors = products(t, at, "support_vectors");
  return vectors ? add(vectors, mul(5, products(t, at, "coefficients")))
                 : products(t, at, "coefficients");
}

uint64_t psplit_i_count_flops(psplit_i_tally *t, const psplit_i_site *at, psplit_i_flops how) {
  switch (how) {
    case PSPLIT_FLOPS_NONE:
    case PSPLIT_FLOPS_PART:
    case PSPLIT_FLOPS_JOIN:
    case PSPLIT_FLOPS_PICK:
    case PSPLIT_FLOPS_SPREAD:
    case PSPLIT_FLOPS_CONTROL: return 0;
    case PSPLIT_FLOPS_OUT: return out_elements(t, at);
    case PSPLIT_FLOPS_OUT_FEW: return mul(4, out_elements(t, at));
    case PSPLIT_FLOPS_OUT_MANY: return mul(10, out_elements(t, at));
    case PSPLIT_FLOPS_INPUTS:
      return mul(at->node->n_inputs > 1 ? at->node->n_inputs - 1 : 0, out_elements(t, at));
    case PSPLIT_FLOPS_IN: return in_elements(t, at, 0);
    case PSPLIT_FLOPS_IN_FEW: return mul(4, in_elements(t, at, 0));
    case PSPLIT_FLOPS_NORM: return mul(8, in_elements(t, at, 0));
    case PSPLIT_FLOPS_SORT: return sort(t, at);
    case PSPLIT_FLOPS_CONV: return conv(t, at, 1);
    case PSPLIT_FLOPS_QCONV: return conv(t, at, 3);
    case PSPLIT_FLOPS_CONV_TRANSPOSE:
      return mul(2, mul(in_elements(t, at, 0), volume_from(t, at, 1, 1)));
    case PSPLIT_FLOPS_DEFORM_CONV: return deform_conv(t, at);
    case PSPLIT_FLOPS_POOL: return pool(t, at);
    case PSPLIT_FLOPS_MATMUL:
    case PSPLIT_FLOPS_QMATMUL:
    case PSPLIT_FLOPS_NBITS: return mat_mul(t, at);
    case PSPLIT_FLOPS_GEMM:
    case PSPLIT_FLOPS_QGEMM: return gemm(t, at);
    case PSPLIT_FLOPS_EINSUM: return einsum(t, at);
    case PSPLIT_FLOPS_RNN: return rnn(t, at);
    case PSPLIT_FLOPS_ATTENTION: return attention(t, at);
    case PSPLIT_FLOPS_ATTENTION_QKV: return attention_qkv(t, at);
    case PSPLIT_FLOPS_ATTENTION_PACKED: return attention_packed(t, at);
    case PSPLIT_FLOPS_ATTENTION_LINEAR: return attention_linear(t, at);
    case PSPLIT_FLOPS_CAUSAL_CONV: return mul(2, mul(out_elements(t, at), in_dim(t, at, 1, -1)));
    case PSPLIT_FLOPS_MOE: return experts(t, at);
    case PSPLIT_FLOPS_NBITS_FUSED: return nbits_fused(t, at);
    case PSPLIT_FLOPS_RESIZE: return resize(t, at);
    case PSPLIT_FLOPS_DFT: return dft(t, at);
    case PSPLIT_FLOPS_ROI: return roi(t, at);
    case PSPLIT_FLOPS_TREES: return trees(t, at);
    case PSPLIT_FLOPS_SVM: return svm(t, at);
    case PSPLIT_FLOPS_LINEAR: return products(t, at, "coefficients");
  }
  return 0;
}
