/* Rules: pools. */
#include "separable.h"
#include "window.h"

static uint32_t spatial_axes(int32_t rank, int64_t *axes) {
  uint32_t n = 0;
  for (int32_t i = 2; i < rank; i++) axes[n++] = i;
  return n;
}

void psplit_i_gradient_global_average_pool(psplit_i_at *at) {
  int64_t axes[PSPLIT_MAX_RANK];
  const int32_t rank = psplit_i_need_rank(at, 0);
  if (rank < 3) return;
  const uint32_t n = spatial_axes(rank, axes);
  psplit_i_widen(at);
  const ref share = quotient(at, wide_grad(at), psplit_i_count_of_axes(at, axes, n));
  psplit_i_give_narrowed(at, 0, expanded(at, share, psplit_i_shape_in(at, 0)));
}

void psplit_i_gradient_global_max_pool(psplit_i_at *at) {
  int64_t axes[PSPLIT_MAX_RANK];
  const int32_t rank = psplit_i_need_rank(at, 0);
  if (rank < 3) return;
  const uint32_t n = spatial_axes(rank, axes);
  psplit_i_widen(at);
  const ref is = indicator(at, op2(at, "Equal", in(at, 0), out(at, 0)));
  const ref count = sum_over(at, is, axes, n, true);
  psplit_i_give_narrowed(at, 0, mul(at, quotient(at, wide_grad(at), count), is));
}

/* Copies what tells a pool's windows to the next node. */
static void like_pool(psplit_i_at *at) {
  static const char *const lists[] = {"kernel_shape", "strides", "pads", "dilations"};
  const int64_t *list;
  const char *text;
  size_t n;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    if (psplit_i_attr_ints(at->node, lists[i], &list, &n)) with_ints(at, lists[i], list, n);
  if (psplit_i_attr_string(at->node, "auto_pad", &text, &n) && n)
    with_text(at, "auto_pad",
              psplit_i_text_equals(at, "auto_pad", "SAME_UPPER")   ? "SAME_UPPER"
              : psplit_i_text_equals(at, "auto_pad", "SAME_LOWER") ? "SAME_LOWER"
              : psplit_i_text_equals(at, "auto_pad", "VALID")      ? "VALID"
                                                                   : "NOTSET");
  with_int(at, "ceil_mode", psplit_i_int_or(at, "ceil_mode", 0));
}

/* The pool again, for the indices of its maxima in the flat input; windows may share one. */
void psplit_i_gradient_max_pool(psplit_i_at *at) {
  ref where;
  const bool by_rows = !psplit_i_int_or(at, "storage_order", 0); /* how the node's indices count */
  if (by_rows && at->node->n_outputs > 1 && at->node->outputs[1] != PSPLIT_NONE) {
    where = out(at, 1);
  } else {
    const ref x = in(at, 0);
    like_pool(at);
    const ref both = psplit_i_backward_node(at->b, "MaxPool", 1, &x, 2);
    where = both == PSPLIT_NONE ? PSPLIT_NONE : both + 1;
  }
  const ref count = reduced(at, "ReduceProd", psplit_i_shape_in(at, 0), NULL, 0, true);
  const ref flat = int1(at, -1);
  const ref indices = reshaped(at, where, flat), parts = reshaped(at, grad(at), flat);
  give(at, 0, psplit_i_reshape_like(at, psplit_i_scattered(at, count, indices, parts, 0), 0));
}

/* Every window gives its share to all that it covers, padding included. */
static void spread_windows(psplit_i_at *at, const psplit_i_window *w, const int64_t *x_size,
                           const int64_t *y_size) {
  int64_t more[PSPLIT_MAX_SPATIAL],
    kernel[PSPLIT_MAX_SPATIAL + 2] = {1, 1}, y_shape[PSPLIT_MAX_SPATIAL + 2] = {-1, 1};
  double share = 1;
  bool any = false;
  for (int32_t i = 0; i < w->n; i++) {
    kernel[i + 2] = w->kernel[i];
    y_shape[i + 2] = y_size[i];
    share /= (double)w->kernel[i];
    more[i] = x_size[i] + w->begin[i] + w->end[i] - w->dilation[i] * (w->kernel[i] - 1) - 1 -
              (y_size[i] - 1) * w->stride[i];
    any |= more[i] != 0;
  }
  const uint32_t rank = (uint32_t)w->n + 2;
  const ref g = reshaped(at, grad(at), ints(at, y_shape, rank));
  const ref ones = expanded(at, number(at, share), ints(at, kernel, rank));
  psplit_i_with_window(at, w, true);
  if (any) with_ints(at, "output_padding", more, (size_t)w->n);
  give(at, 0, psplit_i_reshape_like(at, op2(at, "ConvTranspose", g, ones), 0));
}

/* The pool of unit vectors along an axis with dilations, which it has from opset 19 on only: as a
 * convolution that sums, over the number of elements in each window. */
static ref dilated_axis(psplit_i_at *at, ref units, int32_t axis, const psplit_i_window *w) {
  const int32_t i = axis - 2;
  const bool ceils = psplit_i_int_or(at, "ceil_mode", 0) != 0;
  const int64_t more = ceils ? w->stride[i] - 1 : 0;
  const int64_t kernel[] = {1, 1, w->kernel[i], 1}, strides[] = {w->stride[i], 1},
                dilations[] = {w->dilation[i], 1}, pads[] = {w->begin[i], 0, w->end[i] + more, 0};
  static const int64_t perm[] = {1, 0, 2, 3};
  const ref rows = transposed(at, units, perm, 4);
  const ref ones = expanded(at, number(at, 1), ints(at, kernel, 4));
  with_ints(at, "strides", strides, 2);
  with_ints(at, "dilations", dilations, 2);
  with_ints(at, "pads", pads, 4);
  ref sums = op2(at, "Conv", rows, ones);
  if (ceils) {
    const ref size = psplit_i_shape_element(at, psplit_i_shape_out(at, 0), axis);
    const ref inputs[] = {sums, int1(at, 0), size, int1(at, 2)};
    sums = psplit_i_backward_node(at->b, "Slice", 4, inputs, 1);
  }
  const ref count = psplit_i_int_or(at, "count_include_pad", 0)
                      ? number(at, (double)w->kernel[i])
                      : sum_over(at, sums, (int64_t[]){0}, 1, true);
  return transposed(at, quotient(at, sums, count), perm, 4);
}

/* The pool along one axis, of unit vectors. */
static ref pool_axis(psplit_i_at *at, ref units, int32_t axis, void *data) {
  const psplit_i_window *w = data;
  const int32_t i = axis - 2;
  if (w->dilation[i] != 1 && w->kernel[i] != 1) return dilated_axis(at, units, axis, w);
  const int64_t kernel[] = {w->kernel[i], 1}, strides[] = {w->stride[i], 1},
                pads[] = {w->begin[i], 0, w->end[i], 0};
  with_ints(at, "kernel_shape", kernel, 2);
  with_ints(at, "strides", strides, 2);
  with_ints(at, "pads", pads, 4);
  with_int(at, "ceil_mode", psplit_i_int_or(at, "ceil_mode", 0));
  with_int(at, "count_include_pad", psplit_i_int_or(at, "count_include_pad", 0));
  return op1(at, "AveragePool", units);
}

void psplit_i_gradient_average_pool(psplit_i_at *at) {
  psplit_i_window w;
  int64_t x_size[PSPLIT_MAX_SPATIAL], y_size[PSPLIT_MAX_SPATIAL];
  if (!psplit_i_read_window(at, NULL, false, &w)) return;
  bool padded = false;
  for (int32_t i = 0; i < w.n; i++) padded |= w.begin[i] || w.end[i];
  const psplit_i_vtype *x = psplit_i_type_in(at, 0), *y = psplit_i_type_out(at, 0);
  const bool plain = !psplit_i_int_or(at, "ceil_mode", 0) &&
                     (!padded || psplit_i_int_or(at, "count_include_pad", 0));
  if (plain && psplit_i_spatial(at, x, x_size) && psplit_i_spatial(at, y, y_size)) {
    spread_windows(at, &w, x_size, y_size);
    return;
  }
  bool dilated = false;
  for (int32_t i = 0; i < w.n; i++) dilated |= w.dilation[i] != 1 && w.kernel[i] != 1;
  if (dilated && padded && psplit_i_int_or(at, "ceil_mode", 0) &&
      psplit_i_int_or(at, "count_include_pad", 0)) {
    psplit_i_refuse(at, "it counts padding of dilated windows that end beyond it");
    return;
  }
  ref g = grad(at);
  for (int32_t i = 0; i < w.n; i++)
    if (w.kernel[i] != 1 || w.stride[i] != 1 || w.begin[i] || w.end[i])
      g = psplit_i_separable(at, g, i + 2, w.n + 2, pool_axis, &w);
  give(at, 0, g);
}
