/* The gradient of a convolution's weight. Which form is taken was measured with ONNX Runtime 1.30
 * on a CPU: docs/training.md. */
#include "conv.h"

/* Below so many channels, exchanging batch and channels beats a product per kernel element; from so
 * many positions on, a product per sample beats one of all samples. */
enum { FEW_CHANNELS = 16, MANY_POSITIONS = 196, MAX_TAPS = 4096 };

static int64_t taps_of(const psplit_i_window *w) {
  int64_t taps = 1;
  for (int32_t i = 0; i < w->n && taps <= MAX_TAPS; i++) taps *= w->kernel[i];
  return taps;
}

static ref shaped_like_weight(psplit_i_at *at, const psplit_i_conv *conv, ref dw) {
  int64_t shape[PSPLIT_MAX_SPATIAL + 2] = {conv->o, conv->c / conv->groups};
  for (int32_t i = 0; i < conv->window.n; i++) shape[i + 2] = conv->window.kernel[i];
  return reshaped(at, dw, ints(at, shape, (uint32_t)conv->window.n + 2));
}

/* dy [n, o, positions] times x [n, positions, c]: per sample and summed, or all samples in one. */
static ref by_product(psplit_i_at *at, const psplit_i_conv *conv, ref x, ref dy) {
  const ref left = reshaped(at, dy, ints(at, (int64_t[]){0, conv->o, -1}, 3));
  const ref right = reshaped(at, x, ints(at, (int64_t[]){0, conv->c, -1}, 3));
  const ref flipped = transposed(at, right, (int64_t[]){0, 2, 1}, 3);
  int64_t positions = 1;
  for (int32_t i = 0; conv->y_known && i < conv->window.n; i++) positions *= conv->y_size[i];
  if (!conv->y_known || positions >= MANY_POSITIONS)
    return shaped_like_weight(at, conv,
                              sum_over(at, product(at, left, flipped), (int64_t[]){0}, 1, false));
  const ref rows = reshaped(at, transposed(at, left, (int64_t[]){1, 0, 2}, 3),
                            ints(at, (int64_t[]){conv->o, -1}, 2));
  const ref columns = reshaped(at, flipped, ints(at, (int64_t[]){-1, conv->c}, 2));
  return shaped_like_weight(at, conv, product(at, rows, columns));
}

/* The window of the convolution over x whose kernel is dy: stride and dilation change places. */
static psplit_i_window exchanged(const psplit_i_window *w) {
  psplit_i_window out = *w;
  for (int32_t i = 0; i < w->n; i++) {
    out.stride[i] = w->dilation[i];
    out.dilation[i] = w->stride[i];
  }
  return out;
}

/* The first kernel[i] positions on each spatial axis: there are more where windows did not cover
 * all of x. */
static ref kernel_part(psplit_i_at *at, const psplit_i_window *w, ref a) {
  int64_t axes[PSPLIT_MAX_SPATIAL], starts[PSPLIT_MAX_SPATIAL] = {0};
  const uint32_t n = (uint32_t)w->n;
  for (int32_t i = 0; i < w->n; i++) axes[i] = i + 2;
  const ref inputs[] = {a, ints(at, starts, n), ints(at, w->kernel, n), ints(at, axes, n)};
  return psplit_i_backward_node(at->b, "Slice", 4, inputs, 1);
}

static ref channels_first(psplit_i_at *at, const psplit_i_conv *conv, ref a) {
  int64_t perm[PSPLIT_MAX_SPATIAL + 2] = {1, 0};
  for (int32_t i = 0; i < conv->window.n; i++) perm[i + 2] = i + 2;
  return transposed(at, a, perm, (size_t)conv->window.n + 2);
}

/* Batch and channels exchanged: x [c, n, ...] convolved with dy [o, n, ...] is [c, o, kernel]. */
static ref by_exchange(psplit_i_at *at, const psplit_i_conv *conv, ref x, ref dy) {
  const psplit_i_window w = exchanged(&conv->window);
  const ref data = channels_first(at, conv, x), kernel = channels_first(at, conv, dy);
  psplit_i_with_window(at, &w, false);
  const ref all = op2(at, "Conv", data, kernel);
  return channels_first(at, conv, kernel_part(at, &conv->window, all));
}

/* One channel a group: each sample and channel becomes a group of its own. */
static ref by_groups(psplit_i_at *at, const psplit_i_conv *conv, int64_t batch, ref x, ref dy) {
  const psplit_i_window w = exchanged(&conv->window);
  const uint32_t n = (uint32_t)w.n;
  int64_t x_shape[PSPLIT_MAX_SPATIAL + 2] = {1, batch * conv->c};
  int64_t y_shape[PSPLIT_MAX_SPATIAL + 2] = {batch * conv->o, 1};
  int64_t w_shape[PSPLIT_MAX_SPATIAL + 3] = {batch, conv->o, 1};
  for (uint32_t i = 0; i < n; i++) {
    x_shape[i + 2] = conv->x_size[i];
    y_shape[i + 2] = conv->y_size[i];
    w_shape[i + 3] = w.kernel[i];
  }
  const ref data = reshaped(at, x, ints(at, x_shape, n + 2));
  const ref kernel = reshaped(at, dy, ints(at, y_shape, n + 2));
  psplit_i_with_window(at, &w, false);
  with_int(at, "group", batch * conv->c);
  const ref all = kernel_part(at, &conv->window, op2(at, "Conv", data, kernel));
  const ref each = reshaped(at, all, ints(at, w_shape, n + 3));
  return sum_over(at, each, (int64_t[]){0}, 1, false);
}

/* For each element of the kernel, what it met times dy, summed: an iterator over taps. */
typedef struct taps {
  int64_t index[PSPLIT_MAX_SPATIAL], n;
  const int64_t *sizes;
  ref size_refs[PSPLIT_MAX_SPATIAL];
} taps;

static void taps_start(psplit_i_at *at, const psplit_i_conv *conv, ref y_shape, taps *t) {
  *t = (taps){.n = taps_of(&conv->window), .sizes = conv->y_known ? conv->y_size : NULL};
  for (int32_t i = 0; !conv->y_known && i < conv->window.n; i++)
    t->size_refs[i] = psplit_i_shape_element(at, y_shape, i + 2);
}

static void taps_next(const psplit_i_window *w, taps *t) {
  for (int32_t i = w->n - 1; i >= 0; i--) {
    if (++t->index[i] < w->kernel[i]) return;
    t->index[i] = 0;
  }
}

/* One channel a group, sizes that only a run tells. */
static ref by_channel_taps(psplit_i_at *at, const psplit_i_conv *conv, ref x, ref dy, ref y_shape) {
  const psplit_i_window *w = &conv->window;
  ref sums[MAX_TAPS];
  int64_t axes[PSPLIT_MAX_SPATIAL + 1] = {0};
  taps t;
  taps_start(at, conv, y_shape, &t);
  for (int32_t i = 0; i < w->n; i++) axes[i + 1] = i + 2;
  const ref data = psplit_i_padded(at, x, w, 2, w->n + 2);
  for (int64_t k = 0; k < t.n; k++, taps_next(w, &t)) {
    const ref met = psplit_i_tap(at, data, w, t.index, 2, t.sizes, t.size_refs);
    const ref sum = sum_over(at, mul(at, met, dy), axes, (uint32_t)w->n + 1, false);
    sums[k] = unsqueezed(at, sum, (int64_t[]){1}, 1);
  }
  return shaped_like_weight(at, conv, concat(at, sums, (uint32_t)t.n, 1));
}

/* x with channels last; a product [o, positions] [positions, c] for each element of the kernel. */
static ref by_taps(psplit_i_at *at, const psplit_i_conv *conv, ref x, ref dy, ref y_shape) {
  const psplit_i_window *w = &conv->window;
  const int64_t groups = conv->groups, c_each = conv->c / groups, o_each = conv->o / groups;
  int64_t last[PSPLIT_MAX_SPATIAL + 2] = {0}, first[PSPLIT_MAX_SPATIAL + 2] = {1, 0};
  for (int32_t i = 0; i < w->n; i++) {
    last[i + 1] = i + 2;
    first[i + 2] = i + 2;
  }
  last[w->n + 1] = 1;
  const size_t rank = (size_t)w->n + 2;
  const ref data = psplit_i_padded(at, transposed(at, x, last, rank), w, 1, w->n + 2);
  const ref rows = transposed(at, dy, first, rank);
  const ref left = groups == 1 ? reshaped(at, rows, ints(at, (int64_t[]){conv->o, -1}, 2))
                               : reshaped(at, rows, ints(at, (int64_t[]){groups, o_each, -1}, 3));
  ref parts[MAX_TAPS];
  taps t;
  taps_start(at, conv, y_shape, &t);
  for (int64_t k = 0; k < t.n; k++, taps_next(w, &t)) {
    const ref met = psplit_i_tap(at, data, w, t.index, 1, t.sizes, t.size_refs);
    if (groups == 1) {
      parts[k] = product(at, left, reshaped(at, met, ints(at, (int64_t[]){-1, conv->c}, 2)));
      continue;
    }
    const ref grouped = reshaped(at, met, ints(at, (int64_t[]){-1, groups, c_each}, 3));
    const ref right = transposed(at, grouped, (int64_t[]){1, 0, 2}, 3);
    parts[k] = reshaped(at, product(at, left, right), ints(at, (int64_t[]){conv->o, c_each}, 2));
  }
  if (t.n == 1) return shaped_like_weight(at, conv, parts[0]);
  const ref all = reshaped(at, concat(at, parts, (uint32_t)t.n, 1),
                           ints(at, (int64_t[]){conv->o, t.n, c_each}, 3));
  return shaped_like_weight(at, conv, transposed(at, all, (int64_t[]){0, 2, 1}, 3));
}

psplit_i_ref psplit_i_conv_weight(psplit_i_at *at, const psplit_i_conv *conv, psplit_i_ref x,
                                  psplit_i_ref dy, psplit_i_ref y_shape) {
  int64_t batch;
  const bool depthwise = conv->groups > 1 && conv->groups == conv->c;
  if (psplit_i_conv_is_point(conv)) return by_product(at, conv, x, dy);
  if (depthwise && conv->x_known && conv->y_known && psplit_i_size(at, conv->x, 0, &batch))
    return by_groups(at, conv, batch, x, dy);
  if (conv->groups == 1 && conv->c < FEW_CHANNELS) return by_exchange(at, conv, x, dy);
  if (taps_of(&conv->window) > MAX_TAPS) {
    psplit_i_refuse(at, "its kernel has over %d elements", MAX_TAPS);
    return PSPLIT_NONE;
  }
  if (depthwise && conv->o == conv->c) return by_channel_taps(at, conv, x, dy, y_shape);
  return by_taps(at, conv, x, dy, y_shape);
}
