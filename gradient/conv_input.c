/* The gradient of a convolution's input. Which form is taken was measured with ONNX Runtime 1.30 on
 * a CPU: docs/training.md. */
#include "conv.h"

/* Output positions from which turning the kernel beats ConvTranspose. */
enum { TURN_AREA = 400 };

/* Whether a convolution over dy, padded to the full overlap, can give dx. */
static bool can_turn(const psplit_i_conv *conv) {
  const psplit_i_window *w = &conv->window;
  for (int32_t i = 0; i < w->n; i++) {
    const int64_t reach = w->dilation[i] * (w->kernel[i] - 1);
    if (w->stride[i] != 1 || w->begin[i] > reach || w->end[i] > reach) return false;
  }
  if (!conv->y_known || conv->groups == conv->c) return true;
  int64_t area = 1;
  for (int32_t i = 0; i < w->n && area < TURN_AREA; i++) area *= conv->y_size[i];
  return area >= TURN_AREA;
}

/* w [o, c/g, k...] to [c, o/g, k...], every spatial axis reversed. */
static ref turned_kernel(psplit_i_at *at, const psplit_i_conv *conv, ref w) {
  const int32_t n = conv->window.n;
  int64_t axes[PSPLIT_MAX_SPATIAL], starts[PSPLIT_MAX_SPATIAL], ends[PSPLIT_MAX_SPATIAL],
    perm[PSPLIT_MAX_SPATIAL + 3], shape[PSPLIT_MAX_SPATIAL + 3];
  for (int32_t i = 0; i < n; i++) {
    axes[i] = i + 2;
    starts[i] = -1;
    ends[i] = INT64_MIN;
  }
  const uint32_t count = (uint32_t)n;
  const ref inputs[] = {w, ints(at, starts, count), ints(at, ends, count), ints(at, axes, count),
                        ints(at, starts, count)};
  w = psplit_i_backward_node(at->b, "Slice", 5, inputs, 1);
  const int64_t groups = conv->groups, o_each = conv->o / groups, c_each = conv->c / groups;
  if (groups > 1 && o_each == 1 && c_each == 1) return w;
  if (groups == 1) {
    perm[0] = 1;
    perm[1] = 0;
    for (int32_t i = 0; i < n; i++) perm[i + 2] = i + 2;
    return transposed(at, w, perm, (size_t)n + 2);
  }
  shape[0] = groups;
  shape[1] = o_each;
  shape[2] = c_each;
  for (int32_t i = 0; i < n; i++) shape[i + 3] = conv->window.kernel[i];
  w = reshaped(at, w, ints(at, shape, count + 3));
  perm[0] = 0;
  perm[1] = 2;
  perm[2] = 1;
  for (int32_t i = 0; i < n; i++) perm[i + 3] = i + 3;
  w = transposed(at, w, perm, (size_t)n + 3);
  shape[1] = conv->c;
  shape[2] = o_each;
  return reshaped(at, w, ints(at, shape + 1, count + 2));
}

static ref by_turned_kernel(psplit_i_at *at, const psplit_i_conv *conv, ref w, ref dy) {
  psplit_i_window back = conv->window;
  for (int32_t i = 0; i < back.n; i++) {
    const int64_t reach = back.dilation[i] * (back.kernel[i] - 1);
    back.begin[i] = reach - conv->window.begin[i];
    back.end[i] = reach - conv->window.end[i];
  }
  const ref kernel = turned_kernel(at, conv, w);
  psplit_i_with_window(at, &back, true);
  if (conv->groups != 1) with_int(at, "group", conv->groups);
  return op2(at, "Conv", dy, kernel);
}

/* How far x goes beyond what the windows cover; false where that depends on the run. */
static bool uncovered(const psplit_i_conv *conv, int64_t *out) {
  const psplit_i_window *w = &conv->window;
  for (int32_t i = 0; i < w->n; i++) {
    out[i] = 0;
    if (w->stride[i] == 1) continue;
    if (!conv->x_known || !conv->y_known) return false;
    out[i] = conv->x_size[i] + w->begin[i] + w->end[i] - w->dilation[i] * (w->kernel[i] - 1) - 1 -
             (conv->y_size[i] - 1) * w->stride[i];
  }
  return true;
}

static ref conv_transpose(psplit_i_at *at, const psplit_i_conv *conv, const psplit_i_window *w,
                          const int64_t *more, ref kernel, ref dy) {
  psplit_i_with_window(at, w, true);
  if (conv->groups != 1) with_int(at, "group", conv->groups);
  if (more) with_ints(at, "output_padding", more, (size_t)w->n);
  return op2(at, "ConvTranspose", dy, kernel);
}

/* What every window covers, some zeros behind it, and of that the part that x is. */
static ref cut_out(psplit_i_at *at, const psplit_i_conv *conv, ref kernel, ref dy, ref x_shape) {
  psplit_i_window full = conv->window, room = conv->window;
  int64_t axes[PSPLIT_MAX_SPATIAL];
  const uint32_t n = (uint32_t)full.n;
  for (int32_t i = 0; i < full.n; i++) {
    full.begin[i] = full.end[i] = room.begin[i] = 0;
    room.end[i] = full.stride[i] - 1;
    axes[i] = i + 2;
  }
  const ref all = conv_transpose(at, conv, &full, NULL, kernel, dy);
  const ref wide = psplit_i_padded(at, all, &room, 2, full.n + 2);
  const ref begin = ints(at, conv->window.begin, n), axis_list = ints(at, axes, n);
  const ref end = add(at, gathered(at, x_shape, axis_list, 0), begin);
  return psplit_i_backward_node(at->b, "Slice", 4, (ref[]){wide, begin, end, axis_list}, 1);
}

psplit_i_ref psplit_i_conv_input(psplit_i_at *at, const psplit_i_conv *conv, psplit_i_ref w,
                                 psplit_i_ref dy, uint32_t x_input) {
  if (psplit_i_conv_is_point(conv)) {
    const ref matrix = reshaped(at, w, ints(at, (int64_t[]){conv->o, conv->c}, 2));
    const ref rows = reshaped(at, dy, ints(at, (int64_t[]){0, conv->o, -1}, 3));
    const ref dx = product(at, transposed(at, matrix, (int64_t[]){1, 0}, 2), rows);
    return psplit_i_reshape_like(at, dx, x_input);
  }
  int64_t more[PSPLIT_MAX_SPATIAL];
  bool any = false;
  if (can_turn(conv)) return by_turned_kernel(at, conv, w, dy);
  if (!uncovered(conv, more)) return cut_out(at, conv, w, dy, psplit_i_shape_in(at, x_input));
  for (int32_t i = 0; i < conv->window.n; i++) any |= more[i] != 0;
  return conv_transpose(at, conv, &conv->window, any ? more : NULL, w, dy);
}
