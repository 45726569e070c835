/* Rules: the same elements in another shape or order, and parts of tensors. */
#include "rule.h"

enum { MAX_PARTS = 4096 };

void psplit_i_gradient_reshape(psplit_i_at *at) {
  give(at, 0, psplit_i_reshape_like(at, grad(at), 0));
}

/* Where each axis of the result comes from, as places in the result: the inverse of perm[n]. False
 * where perm does not name each of n axes once. */
static bool inverse_of(const int64_t *perm, size_t n, int64_t *out) {
  bool named[PSPLIT_MAX_RANK] = {false};
  if (n > PSPLIT_MAX_RANK) return false;
  for (size_t i = 0; i < n; i++) {
    const int64_t axis = perm[i] < 0 ? perm[i] + (int64_t)n : perm[i];
    if (axis < 0 || axis >= (int64_t)n || named[axis]) return false;
    named[axis] = true;
    out[axis] = (int64_t)i;
  }
  return true;
}

void psplit_i_gradient_transpose(psplit_i_at *at) {
  const int64_t *perm;
  size_t n;
  const int32_t rank = psplit_i_type_in(at, 0)->rank;
  int64_t back[PSPLIT_MAX_RANK];
  if (!psplit_i_attr_ints(at->node, "perm", &perm, &n))
    give(at, 0, op1(at, "Transpose", grad(at)));
  else if ((rank >= 0 && n != (size_t)rank) || !inverse_of(perm, n, back))
    psplit_i_refuse(at, "its perm is not a permutation of its axes");
  else
    give(at, 0, transposed(at, grad(at), back, n));
}

void psplit_i_gradient_expand(psplit_i_at *at) {
  give(at, 0, psplit_i_sum_like(at, grad(at), psplit_i_type_out(at, 0), 0));
}

/* Size of input i along an axis, as int64[1]. */
static ref size_in(psplit_i_at *at, uint32_t i, int32_t axis) {
  int64_t size;
  if (psplit_i_size(at, psplit_i_type_in(at, i), axis, &size)) return int1(at, size);
  return psplit_i_shape_element(at, psplit_i_shape_in(at, i), axis);
}

void psplit_i_gradient_concat(psplit_i_at *at) {
  const uint32_t n = at->node->n_inputs;
  const int32_t rank = psplit_i_type_out(at, 0)->rank;
  if (rank < 0) {
    psplit_i_refuse_rank(at, "its rank");
    return;
  }
  const int32_t axis = psplit_i_axis_of(at, psplit_i_int_or(at, "axis", 1), rank);
  if (n == 1) {
    give(at, 0, grad(at));
    return;
  }
  if (n > MAX_PARTS) {
    psplit_i_refuse(at, "it has over %d inputs", MAX_PARTS);
    return;
  }
  ref sizes[MAX_PARTS];
  int64_t known[MAX_PARTS];
  bool all_known = true;
  for (uint32_t i = 0; i < n; i++)
    all_known &= psplit_i_size(at, psplit_i_type_in(at, i), axis, &known[i]);
  if (!all_known)
    for (uint32_t i = 0; i < n; i++) sizes[i] = size_in(at, i, axis);
  const ref split = all_known ? ints(at, known, n) : concat(at, sizes, n, 0);
  with_int(at, "axis", axis);
  const ref parts = psplit_i_backward_node(at->b, "Split", 2, (ref[]){grad(at), split}, n);
  for (uint32_t i = 0; i < n && parts != PSPLIT_NONE; i++) give(at, i, parts + i);
}

void psplit_i_gradient_split(psplit_i_at *at) {
  const uint32_t n = at->node->n_outputs;
  const int32_t rank = psplit_i_need_rank(at, 0);
  ref parts[MAX_PARTS];
  if (rank < 0) return;
  const int32_t axis = psplit_i_axis_of(at, psplit_i_int_or(at, "axis", 0), rank);
  if (n > MAX_PARTS) {
    psplit_i_refuse(at, "it has over %d outputs", MAX_PARTS);
    return;
  }
  for (uint32_t o = 0; o < n; o++) {
    parts[o] = psplit_i_gradient_at(at, o);
    if (parts[o] == PSPLIT_NONE && at->node->outputs[o] == PSPLIT_NONE) {
      psplit_i_refuse(at, "its output %u is left out", (unsigned)o);
      return;
    }
    if (parts[o] == PSPLIT_NONE) parts[o] = psplit_i_zeros(at, psplit_i_shape_out(at, o));
  }
  give(at, 0, concat(at, parts, n, axis));
}

/* ---- selections by index: the operator itself, applied to 0, 1, 2 ..., tells where each element
 * came from ---- */

/* Input 0's shape filled with 0, 1, 2 ... */
static ref positions(psplit_i_at *at) {
  const ref shape = psplit_i_shape_in(at, 0);
  const ref count = reduced(at, "ReduceProd", shape, NULL, 0, false);
  const ref line =
    op3(at, "Range", psplit_i_backward_int(at->b, 0), count, psplit_i_backward_int(at->b, 1));
  return reshaped(at, line, shape);
}

/* Adds each element of g to the place of input 0 that `from` names. */
static void scatter_back(psplit_i_at *at, ref from, ref g) {
  const ref shape = psplit_i_shape_in(at, 0), flat = int1(at, -1);
  const ref count = reduced(at, "ReduceProd", shape, NULL, 0, true);
  const ref where = reshaped(at, from, flat), what = reshaped(at, g, flat);
  give(at, 0, psplit_i_reshape_like(at, psplit_i_scattered(at, count, where, what, 0), 0));
}

/* An input of a node that older opsets have as an attribute. */
static ref ints_or_input(psplit_i_at *at, const char *name, uint32_t input) {
  const int64_t *list;
  size_t n;
  if (psplit_i_attr_ints(at->node, name, &list, &n)) return ints(at, list, (uint32_t)n);
  return in(at, input);
}

static bool known_list(psplit_i_at *at, const char *name, uint32_t input, int64_t *out,
                       uint32_t *out_n) {
  const int64_t *list;
  size_t n;
  if (psplit_i_attr_ints(at->node, name, &list, &n)) {
    if (n > PSPLIT_MAX_RANK) return false;
    for (size_t i = 0; i < n; i++) out[i] = list[i];
    *out_n = (uint32_t)n;
    return true;
  }
  return psplit_i_given(at, input) && psplit_i_known_ints(at, input, out, PSPLIT_MAX_RANK, out_n) &&
         *out_n > 0;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

/* Zeros before and behind each axis that put a slice of steps 1 back into its place; PSPLIT_NONE
 * where that cannot be told. */
static ref slice_pads(psplit_i_at *at, int32_t rank) {
  const psplit_i_vtype *x = psplit_i_type_in(at, 0), *y = psplit_i_type_out(at, 0);
  int64_t starts[PSPLIT_MAX_RANK], ends[PSPLIT_MAX_RANK], axes[PSPLIT_MAX_RANK],
    steps[PSPLIT_MAX_RANK], begin[PSPLIT_MAX_RANK] = {0};
  uint32_t n, n_ends, n_axes, n_steps;
  if (!known_list(at, "starts", 1, starts, &n) || !known_list(at, "ends", 2, ends, &n_ends) ||
      n != n_ends || y->rank != rank)
    return PSPLIT_NONE;
  if (!known_list(at, "axes", 3, axes, &n_axes)) {
    if (psplit_i_given(at, 3)) return PSPLIT_NONE;
    for (n_axes = 0; n_axes < n; n_axes++) axes[n_axes] = n_axes;
  }
  if (psplit_i_given(at, 4)) {
    if (!known_list(at, "steps", 4, steps, &n_steps)) return PSPLIT_NONE;
    for (uint32_t i = 0; i < n_steps; i++)
      if (steps[i] != 1) return PSPLIT_NONE;
  }
  if (n_axes != n) return PSPLIT_NONE;
  bool sliced[PSPLIT_MAX_RANK] = {false}, all_known = true;
  for (uint32_t i = 0; i < n; i++) {
    const int32_t axis = psplit_i_axis_of(at, axes[i], rank);
    int64_t size = INT64_MAX;
    const bool known = psplit_i_size(at, x, axis, &size);
    if (starts[i] < 0 && !known) return PSPLIT_NONE;
    begin[axis] = clamp(starts[i] < 0 ? starts[i] + size : starts[i], 0, size);
    sliced[axis] = true;
    int64_t y_size;
    all_known &= known && psplit_i_size(at, y, axis, &y_size);
  }
  if (all_known) {
    int64_t pads[2 * PSPLIT_MAX_RANK] = {0};
    for (int32_t axis = 0; axis < rank; axis++) {
      int64_t size, y_size;
      if (!sliced[axis] || !psplit_i_size(at, x, axis, &size) ||
          !psplit_i_size(at, y, axis, &y_size))
        continue;
      pads[axis] = clamp(begin[axis], 0, size - y_size);
      pads[axis + rank] = size - y_size - pads[axis];
    }
    return ints(at, pads, 2 * (uint32_t)rank);
  }
  const ref before = ints(at, begin, (uint32_t)rank);
  const ref rest = sub(at, sub(at, psplit_i_shape_in(at, 0), psplit_i_shape_out(at, 0)), before);
  return concat(at, (ref[]){before, rest}, 2, 0);
}

void psplit_i_gradient_slice(psplit_i_at *at) {
  const int32_t rank = psplit_i_need_rank(at, 0);
  if (rank < 0) return;
  const ref pads = slice_pads(at, rank);
  if (pads != PSPLIT_NONE) {
    give(at, 0, op2(at, "Pad", grad(at), pads));
    return;
  }
  const ref inputs[] = {positions(at), ints_or_input(at, "starts", 1), ints_or_input(at, "ends", 2),
                        ints_or_input(at, "axes", 3), in(at, 4)};
  const ref places = psplit_i_backward_node(at->b, "Slice", 5, inputs, 1);
  scatter_back(at, places, grad(at));
}

void psplit_i_gradient_pad(psplit_i_at *at) {
  const char *mode;
  size_t n;
  const ref pads =
    at->node->opset < 2 ? ints_or_input(at, "paddings", 1) : ints_or_input(at, "pads", 1);
  const ref axes = in(at, 3);
  if (psplit_i_attr_string(at->node, "mode", &mode, &n) &&
      !psplit_i_text_equals(at, "mode", "constant") && n > 0) {
    const ref all = positions(at);
    psplit_i_give_nothing(at, 2);
    with_text(at, "mode",
              psplit_i_text_equals(at, "mode", "edge")   ? "edge"
              : psplit_i_text_equals(at, "mode", "wrap") ? "wrap"
                                                         : "reflect");
    if (psplit_i_text_equals(at, "mode", "wrap")) {
      psplit_i_refuse(at, "it pads by wrapping around, which opset 18 does not have");
      return;
    }
    const ref places =
      psplit_i_backward_node(at->b, "Pad", 4, (ref[]){all, pads, PSPLIT_NONE, axes}, 1);
    scatter_back(at, places, grad(at));
    return;
  }
  /* What was added goes, what was cut off gets zeros. */
  const ref inputs[] = {grad(at), neg(at, pads), PSPLIT_NONE, axes};
  const ref x = psplit_i_backward_node(at->b, "Pad", 4, inputs, 1);
  give(at, 0, x);
  if (wanted(at, 2)) {
    const ref rest =
      sub(at, sum_over(at, grad(at), NULL, 0, false), sum_over(at, x, NULL, 0, false));
    give(at, 2, psplit_i_reshape_like(at, rest, 2));
  }
}

void psplit_i_gradient_tile(psplit_i_at *at) {
  const int32_t rank = psplit_i_need_rank(at, 0);
  if (rank == 0) give(at, 0, grad(at));
  if (rank <= 0 || 2 * rank > PSPLIT_MAX_RANK) return;
  ref sizes[PSPLIT_MAX_RANK];
  int64_t axes[PSPLIT_MAX_RANK];
  const ref repeats = in(at, 1);
  for (int32_t axis = 0; axis < rank; axis++) {
    sizes[2 * axis] = gathered(at, repeats, int1(at, axis), 0);
    sizes[2 * axis + 1] = size_in(at, 0, axis);
    axes[axis] = 2 * axis;
  }
  const ref parts = reshaped(at, grad(at), concat(at, sizes, 2 * (uint32_t)rank, 0));
  give(at, 0, sum_over(at, parts, axes, (uint32_t)rank, false));
}

/* [n, c b b, h, w] <-> [n, c, h b, w b]; by blocks first (DCR) or channels first (CRD). */
static void space_and_depth(psplit_i_at *at, bool to_space, bool channels_first) {
  const int64_t b = psplit_i_int_or(at, "blocksize", 1);
  static const int64_t dcr[] = {0, 3, 5, 1, 2, 4}, crd[] = {0, 1, 3, 5, 2, 4};
  static const int64_t dcr_back[] = {0, 3, 4, 1, 5, 2};
  if (psplit_i_need_rank(at, 0) != 4) return;
  if (to_space) {
    /* gradient [n, c, h b, w b] as [n, c, h, b, w, b] */
    const ref sizes[] = {size_in(at, 0, 0), int1(at, -1),      size_in(at, 0, 2),
                         int1(at, b),       size_in(at, 0, 3), int1(at, b)};
    const ref parts = reshaped(at, grad(at), concat(at, sizes, 6, 0));
    give(at, 0, psplit_i_reshape_like(at, transposed(at, parts, channels_first ? crd : dcr, 6), 0));
  } else {
    /* gradient [n, b b c, h, w] as [n, b, b, c, h, w] */
    const ref shape = psplit_i_shape_out(at, 0);
    const ref sizes[] = {psplit_i_shape_element(at, shape, 0),
                         int1(at, b),
                         int1(at, b),
                         size_in(at, 0, 1),
                         psplit_i_shape_element(at, shape, 2),
                         psplit_i_shape_element(at, shape, 3)};
    const ref parts = reshaped(at, grad(at), concat(at, sizes, 6, 0));
    give(at, 0, psplit_i_reshape_like(at, transposed(at, parts, dcr_back, 6), 0));
  }
}

void psplit_i_gradient_depth_to_space(psplit_i_at *at) {
  space_and_depth(at, true, psplit_i_text_equals(at, "mode", "CRD"));
}
void psplit_i_gradient_space_to_depth(psplit_i_at *at) { space_and_depth(at, false, false); }

void psplit_i_gradient_trilu(psplit_i_at *at) {
  const ref k = in(at, 1);
  with_int(at, "upper", psplit_i_int_or(at, "upper", 1));
  give(at, 0, op2(at, "Trilu", grad(at), k));
}

void psplit_i_gradient_compress(psplit_i_at *at) {
  int64_t axis;
  const ref all = positions(at), condition = in(at, 1);
  if (psplit_i_attr_int(at->node, "axis", &axis)) with_int(at, "axis", axis);
  const ref places = op2(at, "Compress", all, condition);
  scatter_back(at, places, grad(at));
}

void psplit_i_gradient_cum_sum(psplit_i_at *at) {
  const ref axis = in(at, 1);
  with_int(at, "exclusive", psplit_i_int_or(at, "exclusive", 0));
  with_int(at, "reverse", !psplit_i_int_or(at, "reverse", 0));
  give(at, 0, op2(at, "CumSum", grad(at), axis));
}

void psplit_i_gradient_reverse_sequence(psplit_i_at *at) {
  const ref lengths = in(at, 1);
  with_int(at, "batch_axis", psplit_i_int_or(at, "batch_axis", 1));
  with_int(at, "time_axis", psplit_i_int_or(at, "time_axis", 0));
  give(at, 0, op2(at, "ReverseSequence", grad(at), lengths));
}

/* ---- Gather ---- */

static ref scatter_nd(psplit_i_at *at, ref shape, ref indices, ref what) {
  return psplit_i_scattered(at, shape, indices, what, PSPLIT_BY_INDEX);
}

/* Gather with one constant index along an axis of known size: pads the gradient with zeros on both
 * sides. Returns false if this is another case. */
static bool gather_one(psplit_i_at *at, int32_t axis, int32_t rank) {
  int64_t index, size, pads[2 * PSPLIT_MAX_RANK] = {0};
  uint32_t n;
  const int32_t index_rank = psplit_i_type_in(at, 1)->rank;
  if (!psplit_i_known_ints(at, 1, &index, 1, &n) || n != 1 || index_rank < 0 || index_rank > 1 ||
      !psplit_i_size(at, psplit_i_type_in(at, 0), axis, &size))
    return false;
  if (index < 0) index += size;
  if (index < 0 || index >= size) return false;
  pads[axis] = index;
  pads[axis + rank] = size - index - 1;
  const int64_t axes = axis;
  const ref g = index_rank == 0 ? unsqueezed(at, grad(at), &axes, 1) : grad(at);
  give(at, 0, op2(at, "Pad", g, ints(at, pads, 2 * (uint32_t)rank)));
  return true;
}

void psplit_i_gradient_gather(psplit_i_at *at) {
  const int32_t rank = psplit_i_need_rank(at, 0), index_rank = psplit_i_need_rank(at, 1);
  if (rank < 1 || index_rank < 0) return;
  const int32_t axis = psplit_i_axis_of(at, psplit_i_int_or(at, "axis", 0), rank);
  if (gather_one(at, axis, rank)) return;
  const int64_t last = -1;
  const bool wide = psplit_i_type_in(at, 1)->elem == PSPLIT_ELEM_INT64;
  const ref named = wide ? in(at, 1) : cast(at, in(at, 1), PSPLIT_ELEM_INT64); /* for ScatterND */
  const ref indices = unsqueezed(at, named, &last, 1);
  if (axis == 0) {
    const ref shape = psplit_i_shape_in(at, 0);
    give(at, 0, scatter_nd(at, shape, indices, grad(at)));
    return;
  }
  /* Moves the axes of the indices to the front, and afterwards back. */
  int64_t g_perm[PSPLIT_MAX_RANK], to_front[PSPLIT_MAX_RANK], back[PSPLIT_MAX_RANK];
  int32_t n = 0;
  if (rank + index_rank - 1 > PSPLIT_MAX_RANK) return;
  for (int32_t i = 0; i < index_rank; i++) g_perm[n++] = axis + i;
  for (int32_t i = 0; i < rank - 1 + index_rank; i++)
    if (i < axis || i >= axis + index_rank) g_perm[n++] = i;
  to_front[0] = axis;
  for (int32_t i = 0; i < rank - 1; i++) to_front[i + 1] = i < axis ? i : i + 1;
  for (int32_t i = 0; i < rank; i++) back[to_front[i]] = i;
  const ref shape = gathered(at, psplit_i_shape_in(at, 0), ints(at, to_front, (uint32_t)rank), 0);
  const ref g = transposed(at, grad(at), g_perm, (size_t)n);
  give(at, 0, transposed(at, scatter_nd(at, shape, indices, g), back, (size_t)rank));
}

void psplit_i_gradient_gather_elements(psplit_i_at *at) {
  const ref shape = psplit_i_shape_in(at, 0), indices = in(at, 1);
  give(at, 0, psplit_i_scattered(at, shape, indices, grad(at), psplit_i_int_or(at, "axis", 0)));
}

void psplit_i_gradient_gather_nd(psplit_i_at *at) {
  const int64_t batch_dims = psplit_i_int_or(at, "batch_dims", 0);
  if (batch_dims == 0) {
    const ref shape = psplit_i_shape_in(at, 0), indices = in(at, 1);
    give(at, 0, scatter_nd(at, shape, indices, grad(at)));
    return;
  }
  const ref all = positions(at), indices = in(at, 1);
  with_int(at, "batch_dims", batch_dims);
  const ref places = op2(at, "GatherND", all, indices);
  scatter_back(at, places, grad(at));
}

/* TopK: each value goes back to its index, which is in the second output. */
void psplit_i_gradient_top_k(psplit_i_at *at) {
  const ref shape = psplit_i_shape_in(at, 0), indices = out(at, 1);
  give(at, 0, psplit_i_scattered(at, shape, indices, grad(at), psplit_i_int_or(at, "axis", -1)));
}
