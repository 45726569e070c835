/* Shapes in the backward graph: constants where they are known, taken from tensors at hand where
 * sizes are symbolic, stashed otherwise. */
#include "rule.h"

/* Whether the shape is known, with at most one size that is not (-1, as Reshape takes it). A size
 * of 0 would mean "copy" to Reshape. */
static bool reshape_target(const psplit_i_at *at, const psplit_i_vtype *type, int64_t *out) {
  uint32_t unknown = 0;
  if (type->rank < 0) return false;
  for (int32_t axis = 0; axis < type->rank; axis++) {
    if (!psplit_i_size(at, type, axis, &out[axis])) {
      out[axis] = -1;
      unknown++;
    } else if (out[axis] <= 0) {
      return false;
    }
  }
  return unknown <= 1;
}

/* The forward value whose shape holds a symbolic size, among the outputs of the node at hand that
 * have a gradient; its axis in *out_axis. */
static psplit_i_ref find_size(psplit_i_at *at, psplit_dim size, int64_t *out_axis) {
  for (uint32_t o = 0; o < at->node->n_outputs; o++) {
    const psplit_i_ref g = psplit_i_gradient_at(at, o);
    const psplit_i_vtype *type = psplit_i_type_out(at, o);
    for (int32_t axis = 0; g != PSPLIT_NONE && axis < type->rank; axis++)
      if (type->dims[axis] == size) {
        *out_axis = axis;
        return g;
      }
  }
  return PSPLIT_NONE;
}

/* A shape put together from constants and sizes of the gradients at hand; PSPLIT_NONE where one is
 * not to be found there. Several sizes in sequence are one Slice. */
static psplit_i_ref assemble(psplit_i_at *at, const psplit_i_vtype *type) {
  psplit_i_ref from = PSPLIT_NONE, parts[PSPLIT_MAX_RANK], shape = PSPLIT_NONE;
  int64_t axes[PSPLIT_MAX_RANK], size;
  if (type->rank < 0) return PSPLIT_NONE;
  for (int32_t axis = 0; axis < type->rank; axis++) {
    axes[axis] = -1;
    if (psplit_i_size(at, type, axis, &size)) continue;
    const psplit_i_ref here = find_size(at, type->dims[axis], &axes[axis]);
    if (here == PSPLIT_NONE || (from != PSPLIT_NONE && from != here)) return PSPLIT_NONE;
    from = here;
  }
  shape = op1(at, "Shape", from);
  uint32_t n = 0;
  for (int32_t axis = 0; axis < type->rank; axis++)
    parts[n++] = psplit_i_size(at, type, axis, &size)
                   ? int1(at, size)
                   : gathered(at, shape, int1(at, axes[axis]), 0);
  return concat(at, parts, n, 0);
}

/* Whether the backward graph gets the value itself from outside anyway. */
static bool at_hand(const psplit_i_at *at, uint32_t value) {
  const psplit_i_value *v = &at->pass->graph->values[value];
  return v->input != PSPLIT_NONE || v->initializer != PSPLIT_NONE;
}

static psplit_i_ref shape_of(psplit_i_at *at, uint32_t value) {
  const psplit_i_vtype *type = psplit_i_shapes_type(at->pass->shapes, value);
  int64_t sizes[PSPLIT_MAX_RANK];
  if (psplit_i_sizes(at, type, sizes, NULL)) return ints(at, sizes, (uint32_t)type->rank);
  const psplit_i_ref assembled = assemble(at, type);
  if (assembled != PSPLIT_NONE) return assembled;
  if (at_hand(at, value)) return op1(at, "Shape", psplit_i_backward_forward(at->b, value));
  return psplit_i_backward_shape(at->b, value);
}

psplit_i_ref psplit_i_shape_in(psplit_i_at *at, uint32_t input) {
  if (at->b->failed) return PSPLIT_NONE;
  return shape_of(at, at->node->inputs[input]);
}

psplit_i_ref psplit_i_shape_out(psplit_i_at *at, uint32_t output) {
  if (at->b->failed) return PSPLIT_NONE;
  const psplit_i_vtype *type = psplit_i_type_out(at, output);
  int64_t sizes[PSPLIT_MAX_RANK];
  if (psplit_i_sizes(at, type, sizes, NULL)) return ints(at, sizes, (uint32_t)type->rank);
  const psplit_i_ref g = psplit_i_gradient_at(at, output);
  if (g != PSPLIT_NONE) return op1(at, "Shape", g);
  return shape_of(at, at->node->outputs[output]);
}

psplit_i_ref psplit_i_reshape_like(psplit_i_at *at, psplit_i_ref x, uint32_t input) {
  int64_t target[PSPLIT_MAX_RANK];
  const psplit_i_vtype *type = psplit_i_type_in(at, input);
  if (reshape_target(at, type, target))
    return reshaped(at, x, ints(at, target, (uint32_t)type->rank));
  const psplit_i_ref shape = psplit_i_shape_in(at, input);
  with_int(at, "allowzero", 1);
  return reshaped(at, x, shape);
}

psplit_i_ref psplit_i_shape_element(psplit_i_at *at, psplit_i_ref shape, int64_t axis) {
  return gathered(at, shape, int1(at, axis), 0);
}

psplit_i_ref psplit_i_zeros(psplit_i_at *at, psplit_i_ref shape) {
  return expanded(at, number(at, 0), shape);
}

psplit_i_ref psplit_i_scattered(psplit_i_at *at, psplit_i_ref shape, psplit_i_ref indices,
                                psplit_i_ref what, int64_t axis) {
  const int32_t elem = at->elem;
  psplit_i_widen(at);
  const psplit_i_ref zeros = psplit_i_zeros(at, shape), wide = psplit_i_wide(at, what, elem);
  if (axis != PSPLIT_BY_INDEX) with_int(at, "axis", axis);
  with_text(at, "reduction", "add");
  const psplit_i_ref sum =
    op3(at, axis == PSPLIT_BY_INDEX ? "ScatterND" : "ScatterElements", zeros, indices, wide);
  const bool widened = at->elem != elem;
  at->elem = elem;
  return widened ? cast(at, sum, elem) : sum;
}

psplit_i_ref psplit_i_count_in(psplit_i_at *at, uint32_t input) {
  int64_t sizes[PSPLIT_MAX_RANK], count;
  if (psplit_i_sizes(at, psplit_i_type_in(at, input), sizes, &count))
    return number(at, (double)count);
  const psplit_i_ref n = reduced(at, "ReduceProd", psplit_i_shape_in(at, input), NULL, 0, false);
  return cast(at, n, at->elem);
}

psplit_i_ref psplit_i_count_of_axes(psplit_i_at *at, const int64_t *axes, uint32_t n) {
  double count = 1;
  bool known = true;
  for (uint32_t i = 0; i < n; i++) {
    int64_t size = 1;
    known &= psplit_i_size(at, psplit_i_type_in(at, 0), (int32_t)axes[i], &size);
    count *= (double)size;
  }
  if (known) return number(at, count);
  const psplit_i_ref sizes = gathered(at, psplit_i_shape_in(at, 0), ints(at, axes, n), 0);
  return cast(at, reduced(at, "ReduceProd", sizes, NULL, 0, false), at->elem);
}

/* Summed to a shape of which nothing need be known before the run. */
static psplit_i_ref sum_by_shape(psplit_i_at *at, psplit_i_ref x, psplit_i_ref target) {
  const psplit_i_ref shape = op1(at, "Shape", x);
  const psplit_i_ref lead = sub(at, op1(at, "Shape", shape), op1(at, "Shape", target));
  const int64_t one = 1;
  const psplit_i_ref ones = expanded(at, psplit_i_backward_ints(at->b, &one, 1), lead);
  const psplit_i_ref padded = concat(at, (psplit_i_ref[]){ones, target}, 2, 0);
  const psplit_i_ref differ = op1(at, "Not", op2(at, "Equal", padded, shape));
  const psplit_i_ref axes = reshaped(at, op1(at, "NonZero", differ), int1(at, -1));
  with_int(at, "keepdims", 1);
  with_int(at, "noop_with_empty_axes", 1);
  const psplit_i_ref sum = op2(at, "ReduceSum", x, axes);
  return reshaped(at, sum, target);
}

/* Axes of `from` to sum over, first those that `to` lacks; false where that is not known. */
static bool broadcast_axes(const psplit_i_at *at, const psplit_i_vtype *from,
                           const psplit_i_vtype *to, int64_t *out, uint32_t *out_n,
                           uint32_t *out_lead) {
  if (from->rank < 0 || to->rank < 0 || from->rank < to->rank) return false;
  *out_lead = (uint32_t)(from->rank - to->rank);
  *out_n = 0;
  for (uint32_t i = 0; i < *out_lead; i++) out[(*out_n)++] = i;
  for (int32_t axis = 0; axis < to->rank; axis++) {
    const int32_t wide = axis + (int32_t)*out_lead;
    int64_t size, wide_size;
    if (to->dims[axis] == from->dims[wide]) continue;
    if (psplit_i_size(at, from, wide, &wide_size) && wide_size == 1) continue;
    if (!psplit_i_size(at, to, axis, &size)) return false;
    if (size == 1) out[(*out_n)++] = wide;
  }
  return true;
}

psplit_i_ref psplit_i_sum_like(psplit_i_at *at, psplit_i_ref x, const psplit_i_vtype *from,
                               uint32_t input) {
  if (at->b->failed || x == PSPLIT_NONE) return PSPLIT_NONE;
  const psplit_i_vtype *to = psplit_i_type_in(at, input);
  int64_t axes[PSPLIT_MAX_RANK];
  uint32_t n, lead;
  if (!broadcast_axes(at, from, to, axes, &n, &lead))
    return sum_by_shape(at, x, psplit_i_shape_in(at, input));
  if (n == 0) return x;
  if (n == lead) return sum_over(at, x, axes, n, false);
  x = sum_over(at, x, axes, n, true);
  return lead ? squeezed(at, x, axes, lead) : x;
}
