/* Rules: windows that slide over spatial axes, and images. */
#include <math.h>
#include <string.h>

#include "infer.h"

enum { INT32 = 6, INT64 = 7, UINT8 = 2, MAX_SPATIAL = PSPLIT_MAX_RANK - 2 };

/* A window: what Conv and the pools share. One entry per spatial axis. */
typedef struct window {
  int32_t n;
  psplit_dim kernel[MAX_SPATIAL];
  int64_t stride[MAX_SPATIAL], dilation[MAX_SPATIAL], begin[MAX_SPATIAL], end[MAX_SPATIAL];
  bool same; /* output = ceil(input / stride) */
  bool ceil_mode;
} window;

static bool small(int64_t value) { return value > -(INT64_C(1) << 40) && value < INT64_C(1) << 40; }

/* Reads the attributes for n spatial axes; kernels from kernel_shape, else from weights. */
static bool read_window(psplit_i_site *at, int32_t n, const psplit_i_vtype *weights, window *w) {
  size_t n_kernel, n_stride, n_dilation, n_pads;
  const int64_t *kernel = psplit_i_int_list(at, "kernel_shape", &n_kernel);
  const int64_t *stride = psplit_i_int_list(at, "strides", &n_stride);
  const int64_t *dilation = psplit_i_int_list(at, "dilations", &n_dilation);
  const int64_t *pads = psplit_i_int_list(at, "pads", &n_pads);
  const Onnx__AttributeProto *auto_pad = psplit_i_attribute(at, "auto_pad");
  const bool notset =
    !auto_pad || auto_pad->s.len == 0 || psplit_i_text_is(at, "auto_pad", "NOTSET", true);
  w->n = n;
  w->same = psplit_i_text_is(at, "auto_pad", "SAME_UPPER", false) ||
            psplit_i_text_is(at, "auto_pad", "SAME_LOWER", false);
  w->ceil_mode = psplit_i_int(at, "ceil_mode", 0) != 0;
  if (n < 0 || n > MAX_SPATIAL) return false;
  for (int32_t i = 0; i < n; i++) {
    const size_t s = (size_t)i, s_end = (size_t)i + (size_t)n;
    w->stride[i] = stride && s < n_stride ? stride[i] : 1;
    w->dilation[i] = dilation && s < n_dilation ? dilation[i] : 1;
    w->begin[i] = notset && pads && s < n_pads ? pads[i] : 0;
    w->end[i] = notset && pads && s_end < n_pads ? pads[s_end] : 0;
    if (w->stride[i] < 1 || !small(w->stride[i]) || !small(w->dilation[i]) || !small(w->begin[i]) ||
        !small(w->end[i]))
      return false;
    if (kernel && s < n_kernel)
      w->kernel[i] = psplit_i_dim_const(at->dims, kernel[i]);
    else if (weights && weights->rank == n + 2)
      w->kernel[i] = weights->dims[i + 2];
    else
      return false;
  }
  return true;
}

/* Positions of the window on spatial axis i of size `in`. */
static psplit_dim positions(psplit_i_site *at, const window *w, int32_t i, psplit_dim in) {
  psplit_i_dims *d = at->dims;
  const psplit_dim stride = psplit_i_dim_const(d, w->stride[i]);
  /* For dilated windows, the specification and ONNX Runtime differ about SAME. */
  if (w->same)
    return w->dilation[i] == 1 ? psplit_i_dim_ceil_div(d, in, stride) : psplit_i_dim_fresh(d);
  /* in + pads - dilation * (kernel - 1) - 1 */
  psplit_dim room = psplit_i_dim_add_const(d, in, w->begin[i] + w->end[i] + w->dilation[i] - 1);
  room = psplit_i_dim_sub(d, room, psplit_i_dim_mul_const(d, w->kernel[i], w->dilation[i]));
  if (!w->ceil_mode) {
    /* ONNX says nothing of a window that does not fit; runtimes round to zero then. */
    int64_t number;
    const psplit_dim last = psplit_i_dim_is_const(d, room, &number)
                              ? psplit_i_dim_trunc_div(d, room, stride)
                              : psplit_i_dim_floor_div(d, room, stride);
    return psplit_i_dim_add_const(d, last, 1);
  }
  const psplit_dim up = psplit_i_dim_add_const(d, psplit_i_dim_ceil_div(d, room, stride), 1);
  /* The last window has to start inside the input or its leading padding. */
  const psplit_dim inside = psplit_i_dim_add_const(
    d, psplit_i_dim_floor_div(d, psplit_i_dim_add_const(d, in, w->begin[i] - 1), stride), 1);
  return psplit_i_dim_min(d, up, inside);
}

static void conv(psplit_i_site *at, uint32_t weight_input, int32_t elem) {
  const psplit_i_vtype *data = psplit_i_in(at, 0), *weights = psplit_i_in(at, weight_input);
  psplit_dim dims[PSPLIT_MAX_RANK];
  window w;
  const int32_t rank = data->rank >= 0 ? data->rank : weights->rank;
  if (rank < 2) {
    psplit_i_out(at, 0, elem, -1, NULL);
    return;
  }
  psplit_i_fresh_dims(at, rank, dims);
  if (data->rank == rank) dims[0] = data->dims[0];
  if (weights->rank == rank) dims[1] = weights->dims[0];
  const int64_t group = psplit_i_int(at, "group", 1);
  if (data->rank == rank && weights->rank == rank && small(group))
    psplit_i_must_agree(at, data->dims[1],
                        psplit_i_dim_mul_const(at->dims, weights->dims[1], group));
  if (data->rank == rank && read_window(at, rank - 2, weights, &w))
    for (int32_t i = 0; i < w.n; i++) dims[i + 2] = positions(at, &w, i, data->dims[i + 2]);
  psplit_i_out(at, 0, elem, rank, dims);
}

void psplit_i_infer_conv(psplit_i_site *at) { conv(at, 1, psplit_i_elem(at, 0)); }
void psplit_i_infer_conv_integer(psplit_i_site *at) { conv(at, 1, INT32); }
void psplit_i_infer_qlinear_conv(psplit_i_site *at) {
  conv(at, 3, psplit_i_elem(at, 7) ? psplit_i_elem(at, 7) : psplit_i_elem(at, 0));
}

void psplit_i_infer_conv_transpose(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0), *weights = psplit_i_in(at, 1);
  psplit_i_dims *d = at->dims;
  psplit_dim dims[PSPLIT_MAX_RANK];
  window w;
  if (data->rank < 2) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  psplit_i_fresh_dims(at, data->rank, dims);
  dims[0] = data->dims[0];
  const int64_t group = psplit_i_int(at, "group", 1);
  if (weights->rank == data->rank && small(group))
    dims[1] = psplit_i_dim_mul_const(d, weights->dims[1], group);
  size_t n_shape, n_extra;
  const int64_t *shape = psplit_i_int_list(at, "output_shape", &n_shape);
  const int64_t *extra = psplit_i_int_list(at, "output_padding", &n_extra);
  if (shape && n_shape >= (size_t)(data->rank - 2)) {
    const size_t skip = n_shape - (size_t)(data->rank - 2);
    for (int32_t i = 2; i < data->rank; i++)
      if (shape[skip + (size_t)i - 2] >= 0)
        dims[i] = psplit_i_dim_const(d, shape[skip + (size_t)i - 2]);
  } else if (read_window(at, data->rank - 2, weights, &w)) {
    for (int32_t i = 0; i < w.n; i++) {
      const psplit_dim in = data->dims[i + 2];
      const int64_t more = extra && (size_t)i < n_extra && small(extra[i]) ? extra[i] : 0;
      /* stride * (in - 1) + extra + dilation * (kernel - 1) + 1 - pads */
      psplit_dim size = psplit_i_dim_add(d, psplit_i_dim_mul_const(d, in, w.stride[i]),
                                         psplit_i_dim_mul_const(d, w.kernel[i], w.dilation[i]));
      size = psplit_i_dim_add_const(d, size,
                                    more - w.stride[i] - w.dilation[i] + 1 - w.begin[i] - w.end[i]);
      /* SAME cuts what is more than stride * in; what is less, under a small kernel, stays less. */
      dims[i + 2] =
        w.same ? psplit_i_dim_min(d, size, psplit_i_dim_mul_const(d, in, w.stride[i])) : size;
    }
  }
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}

void psplit_i_infer_pool(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  window w;
  if (data->rank < 2) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    psplit_i_out(at, 1, INT64, -1, NULL);
    return;
  }
  psplit_i_fresh_dims(at, data->rank, dims);
  dims[0] = data->dims[0];
  dims[1] = data->dims[1];
  if (read_window(at, data->rank - 2, NULL, &w))
    for (int32_t i = 0; i < w.n; i++) dims[i + 2] = positions(at, &w, i, data->dims[i + 2]);
  psplit_i_out(at, 0, data->elem, data->rank, dims);
  psplit_i_out(at, 1, INT64, data->rank, dims);
}

void psplit_i_infer_global_pool(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  for (int32_t i = 0; i < data->rank; i++)
    dims[i] = i < 2 ? data->dims[i] : psplit_i_dim_const(at->dims, 1);
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}

void psplit_i_infer_max_unpool(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_i_dims *d = at->dims;
  psplit_dim dims[PSPLIT_MAX_RANK];
  window w;
  uint32_t n;
  if (data->rank < 2) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  psplit_i_fresh_dims(at, data->rank, dims);
  const psplit_dim *shape = psplit_i_elements(at, 2, &n);
  if (shape && (int32_t)n == data->rank) {
    memcpy(dims, shape, n * sizeof *dims);
  } else if (!psplit_i_has(at, 2) && read_window(at, data->rank - 2, NULL, &w)) {
    dims[0] = data->dims[0];
    dims[1] = data->dims[1];
    for (int32_t i = 0; i < w.n; i++) {
      const psplit_dim size =
        psplit_i_dim_add(d, psplit_i_dim_mul_const(d, data->dims[i + 2], w.stride[i]), w.kernel[i]);
      dims[i + 2] = psplit_i_dim_add_const(d, size, -w.stride[i] - w.begin[i] - w.end[i]);
    }
  }
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}

/* [rois, channels, height, width]; the regions are input 1. */
static void rois(psplit_i_site *at, int64_t height, int64_t width) {
  const psplit_dim dims[4] = {
    psplit_i_dim_of(at, 1, 0), psplit_i_dim_of(at, 0, 1),
    height < 0 ? psplit_i_dim_fresh(at->dims) : psplit_i_dim_const(at->dims, height),
    width < 0 ? psplit_i_dim_fresh(at->dims) : psplit_i_dim_const(at->dims, width)};
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 4, dims);
}

void psplit_i_infer_roi_align(psplit_i_site *at) {
  rois(at, psplit_i_int(at, "output_height", 1), psplit_i_int(at, "output_width", 1));
}

void psplit_i_infer_max_roi_pool(psplit_i_site *at) {
  size_t n;
  const int64_t *shape = psplit_i_int_list(at, "pooled_shape", &n);
  rois(at, shape && n == 2 ? shape[0] : -1, shape && n == 2 ? shape[1] : -1);
}

/* [n, c * block, l] -> [n, c, image...]. */
void psplit_i_infer_col2im(psplit_i_site *at) {
  uint32_t n_image, n_block;
  const psplit_dim *image = psplit_i_elements(at, 1, &n_image);
  const psplit_dim *block = psplit_i_elements(at, 2, &n_block);
  psplit_dim dims[PSPLIT_MAX_RANK];
  if (!image || n_image > MAX_SPATIAL) {
    psplit_i_out(at, 0, psplit_i_elem(at, 0), -1, NULL);
    return;
  }
  dims[0] = psplit_i_dim_of(at, 0, 0);
  dims[1] = psplit_i_dim_of(at, 0, 1);
  for (uint32_t i = 0; block && i < n_block; i++)
    dims[1] = psplit_i_dim_floor_div(at->dims, dims[1], block[i]);
  if (!block) dims[1] = psplit_i_dim_fresh(at->dims);
  memcpy(&dims[2], image, n_image * sizeof *dims);
  psplit_i_out(at, 0, psplit_i_elem(at, 0), (int32_t)n_image + 2, dims);
}

/* X [n, c, in...], grid [n, out..., r] -> [n, c, out...]. */
void psplit_i_infer_grid_sample(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0), *grid = psplit_i_in(at, 1);
  psplit_dim dims[PSPLIT_MAX_RANK];
  const int32_t rank = data->rank >= 0 ? data->rank : grid->rank;
  if (rank < 3) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  psplit_i_fresh_dims(at, rank, dims);
  if (data->rank == rank) {
    dims[0] = data->dims[0];
    dims[1] = data->dims[1];
  }
  if (grid->rank == rank)
    for (int32_t i = 2; i < rank; i++) dims[i] = grid->dims[i - 1];
  psplit_i_out(at, 0, data->elem, rank, dims);
}

/* size [n, c, out...] -> [n, out..., r]. */
void psplit_i_infer_affine_grid(psplit_i_site *at) {
  uint32_t n;
  const psplit_dim *size = psplit_i_elements(at, 1, &n);
  psplit_dim dims[PSPLIT_MAX_RANK];
  if (!size || n < 3 || n > MAX_SPATIAL) {
    psplit_i_out(at, 0, psplit_i_elem(at, 0), -1, NULL);
    return;
  }
  dims[0] = size[0];
  for (uint32_t i = 2; i < n; i++) dims[i - 1] = size[i];
  dims[n - 1] = psplit_i_dim_const(at->dims, (int64_t)n - 2);
  psplit_i_out(at, 0, psplit_i_elem(at, 0), (int32_t)n, dims);
}

/* floor(size * scale). */
static psplit_dim scaled(psplit_i_site *at, psplit_dim size, psplit_dim scale) {
  double factor, whole;
  psplit_dim dividend;
  int64_t divisor;
  if (psplit_i_dim_is_ratio(at->dims, scale, &dividend, &divisor))
    return psplit_i_dim_floor_div(at->dims, psplit_i_dim_mul(at->dims, size, dividend),
                                  psplit_i_dim_const(at->dims, divisor));
  if (!psplit_i_dim_is_real(at->dims, scale, &factor))
    return psplit_i_dim_is_integer(at->dims, scale) ? psplit_i_dim_mul(at->dims, size, scale)
                                                    : psplit_i_dim_fresh(at->dims);
  if (psplit_i_dim_is_real(at->dims, size, &whole)) {
    const float product = (float)whole * (float)factor;
    return product >= 0 && product < 1e15f ? psplit_i_dim_const(at->dims, (int64_t)floorf(product))
                                           : psplit_i_dim_fresh(at->dims);
  }
  for (int64_t q = 1; q <= 1024 && factor > 0 && factor < 1e6; q *= 2)
    if (factor * (double)q == floor(factor * (double)q))
      return psplit_i_dim_floor_div(
        at->dims, psplit_i_dim_mul_const(at->dims, size, (int64_t)(factor * (double)q)),
        psplit_i_dim_const(at->dims, q));
  return psplit_i_dim_fresh(at->dims);
}

/* Sizes under keep_aspect_ratio_policy: one scale for all axes; numbers only. */
static void keep_aspect(psplit_i_site *at, const psplit_i_vtype *data, const int32_t *axes,
                        uint32_t n, const psplit_dim *sizes, bool larger, psplit_dim *dims) {
  float scale = 0;
  double in, out;
  for (uint32_t i = 0; i < n; i++) {
    if (!psplit_i_dim_is_real(at->dims, data->dims[axes[i]], &in) ||
        !psplit_i_dim_is_real(at->dims, sizes[i], &out) || !(in > 0)) {
      for (uint32_t k = 0; k < n; k++) dims[axes[k]] = psplit_i_dim_fresh(at->dims);
      return;
    }
    const float own = (float)out / (float)in;
    if (i == 0 || (larger ? own > scale : own < scale)) scale = own;
  }
  for (uint32_t i = 0; i < n; i++) {
    psplit_i_dim_is_real(at->dims, data->dims[axes[i]], &in);
    const float size = roundf(scale * (float)in);
    dims[axes[i]] = size >= 0 && size < 1e15f ? psplit_i_dim_const(at->dims, (int64_t)size)
                                              : psplit_i_dim_fresh(at->dims);
  }
}

/* Resize and Upsample: scales or sizes from inputs (-1: none). */
static void resize(psplit_i_site *at, int scales_input, int sizes_input) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t axes[PSPLIT_MAX_RANK];
  if (data->rank < 0) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  size_t n_axes;
  const int64_t *list = psplit_i_int_list(at, "axes", &n_axes);
  uint32_t n = list ? (uint32_t)n_axes : (uint32_t)data->rank, n_scales = 0, n_sizes = 0;
  for (uint32_t i = 0; i < n; i++)
    if (n > (uint32_t)data->rank ||
        !psplit_i_axis(list ? list[i] : (int64_t)i, data->rank, &axes[i]))
      n = 0;
  memcpy(dims, data->dims, (size_t)data->rank * sizeof *dims);
  const psplit_dim *scales =
    scales_input >= 0 ? psplit_i_known_elements(at, (uint32_t)scales_input, &n_scales) : NULL;
  const psplit_dim *sizes =
    sizes_input >= 0 ? psplit_i_elements(at, (uint32_t)sizes_input, &n_sizes) : NULL;
  const bool larger = psplit_i_text_is(at, "keep_aspect_ratio_policy", "not_smaller", false);
  const bool smaller = psplit_i_text_is(at, "keep_aspect_ratio_policy", "not_larger", false);
  if (sizes && n_sizes == n && n > 0) {
    if (larger || smaller)
      keep_aspect(at, data, axes, n, sizes, larger, dims);
    else
      for (uint32_t i = 0; i < n; i++) dims[axes[i]] = sizes[i];
  } else if (scales && n_scales == n && n > 0 &&
             !psplit_i_text_is(at, "coordinate_transformation_mode", "tf_crop_and_resize", false)) {
    for (uint32_t i = 0; i < n; i++) dims[axes[i]] = scaled(at, dims[axes[i]], scales[i]);
  } else {
    for (uint32_t i = 0; i < (n ? n : (uint32_t)data->rank); i++)
      dims[n ? axes[i] : (int32_t)i] = psplit_i_dim_fresh(at->dims);
  }
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}

void psplit_i_infer_resize10(psplit_i_site *at) { resize(at, 1, -1); }
void psplit_i_infer_resize(psplit_i_site *at) { resize(at, 2, 3); }
void psplit_i_infer_upsample(psplit_i_site *at) { resize(at, 1, -1); }

/* Scales are an attribute. */
void psplit_i_infer_upsample7(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  const Onnx__AttributeProto *scales = psplit_i_attribute(at, "scales");
  psplit_dim dims[PSPLIT_MAX_RANK];
  for (int32_t i = 0; i < data->rank; i++) {
    double factor = 0;
    if (scales && (size_t)i < scales->n_floats)
      factor = (double)scales->floats[i];
    else if (!scales && data->rank == 4)
      factor = i < 2 ? 1.0 : (double)psplit_i_float(at, i == 2 ? "height_scale" : "width_scale", 0);
    dims[i] = factor > 0 ? scaled(at, data->dims[i], psplit_i_dim_real(at->dims, factor))
                         : psplit_i_dim_fresh(at->dims);
  }
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}

void psplit_i_infer_image_decoder(psplit_i_site *at) {
  psplit_dim dims[3];
  psplit_i_fresh_dims(at, 2, dims);
  dims[2] =
    psplit_i_dim_const(at->dims, psplit_i_text_is(at, "pixel_format", "Grayscale", false) ? 1 : 3);
  psplit_i_out(at, 0, UINT8, 3, dims);
}
