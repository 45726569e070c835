/* Windows: attributes, padding, taps. */
#include "window.h"

bool psplit_i_spatial(const psplit_i_at *at, const psplit_i_vtype *type, int64_t *out) {
  if (type->rank < 2) return false;
  for (int32_t i = 0; i < type->rank - 2; i++)
    if (!psplit_i_size(at, type, i + 2, &out[i])) return false;
  return true;
}

static bool small(int64_t value) { return value > -(INT64_C(1) << 30) && value < INT64_C(1) << 30; }

/* One entry of an attribute with a number per axis. */
static int64_t entry(const int64_t *list, size_t n, size_t i, int64_t fallback) {
  return list && i < n ? list[i] : fallback;
}

/* Pads so that the output is ceil(in / stride): more at the end, or with `lower` at the front. */
static void pad_same(psplit_i_window *w, int32_t i, int64_t in_size, int64_t out_size, bool lower,
                     int64_t extent) {
  int64_t total = (out_size - 1) * w->stride[i] + extent - in_size;
  if (total < 0) total = 0;
  w->begin[i] = lower ? total - total / 2 : total / 2;
  w->end[i] = total - w->begin[i];
}

/* Sizes, too, are what the model says; what is reckoned of small ones fits. */
static bool refuse_range(psplit_i_at *at) {
  psplit_i_refuse(at, "its window is out of range");
  return false;
}

static bool auto_pads(psplit_i_at *at, psplit_i_window *w, bool lower) {
  for (int32_t i = 0; i < w->n; i++) {
    const int64_t extent = (w->kernel[i] - 1) * w->dilation[i] + 1;
    int64_t size = 0;
    const bool known = psplit_i_size(at, psplit_i_type_in(at, 0), i + 2, &size);
    if (!known && w->stride[i] != 1) {
      psplit_i_refuse(at, "its padding follows from a size that is not known");
      return false;
    }
    if (!small(size)) return refuse_range(at);
    pad_same(w, i, size, (size + w->stride[i] - 1) / w->stride[i], lower, extent);
  }
  return true;
}

/* ConvTranspose: what is cut off what the windows cover; more at the front, but with SAME_UPPER. */
static bool transposed_pads(psplit_i_at *at, psplit_i_window *w, bool upper, bool lower) {
  size_t n_shape = 0, n_extra = 0;
  const int64_t *shape = NULL, *extra = NULL;
  psplit_i_attr_ints(at->node, "output_shape", &shape, &n_shape);
  psplit_i_attr_ints(at->node, "output_padding", &extra, &n_extra);
  for (int32_t i = 0; i < w->n; i++) {
    const int64_t more = entry(extra, n_extra, (size_t)i, 0);
    const int64_t extent = (w->kernel[i] - 1) * w->dilation[i] + 1;
    int64_t in_size = 0, out_size = 0;
    const bool known = psplit_i_size(at, psplit_i_type_in(at, 0), i + 2, &in_size);
    if (shape && n_shape >= (size_t)w->n)
      out_size = shape[n_shape - (size_t)w->n + (size_t)i];
    else if (upper || lower)
      out_size = small(in_size) ? in_size * w->stride[i] : in_size;
    else
      return true;
    if (!known && shape) {
      psplit_i_refuse(at, "its padding follows from a size that is not known");
      return false;
    }
    if (!small(in_size) || !small(out_size) || !small(more)) return refuse_range(at);
    /* Independent of in_size where the output is stride times it. */
    int64_t total = (in_size - 1) * w->stride[i] + more + extent - out_size;
    if (total < 0) total = 0;
    w->begin[i] = upper ? total / 2 : total - total / 2;
    w->end[i] = total - w->begin[i];
  }
  return true;
}

bool psplit_i_read_window(psplit_i_at *at, const psplit_i_vtype *weights, bool is_transposed,
                          psplit_i_window *w) {
  const int64_t *kernel = NULL, *strides = NULL, *dilations = NULL, *pads = NULL;
  size_t n_kernel = 0, n_strides = 0, n_dilations = 0, n_pads = 0;
  const int32_t rank = psplit_i_need_rank(at, 0);
  w->n = rank - 2;
  if (rank < 2) return false;
  if (w->n < 1 || w->n > PSPLIT_MAX_SPATIAL) {
    psplit_i_refuse(at, "it has %d spatial axes", (int)w->n);
    return false;
  }
  psplit_i_attr_ints(at->node, "kernel_shape", &kernel, &n_kernel);
  psplit_i_attr_ints(at->node, "strides", &strides, &n_strides);
  psplit_i_attr_ints(at->node, "dilations", &dilations, &n_dilations);
  psplit_i_attr_ints(at->node, "pads", &pads, &n_pads);
  const bool upper = psplit_i_text_equals(at, "auto_pad", "SAME_UPPER");
  const bool lower = psplit_i_text_equals(at, "auto_pad", "SAME_LOWER");
  const bool none = upper || lower || psplit_i_text_equals(at, "auto_pad", "VALID");
  for (int32_t i = 0; i < w->n; i++) {
    const size_t s = (size_t)i;
    w->stride[i] = entry(strides, n_strides, s, 1);
    w->dilation[i] = entry(dilations, n_dilations, s, 1);
    w->begin[i] = none ? 0 : entry(pads, n_pads, s, 0);
    w->end[i] = none ? 0 : entry(pads, n_pads, s + (size_t)w->n, 0);
    w->kernel[i] = entry(kernel, n_kernel, s, 0);
    if (!kernel && (!weights || !psplit_i_size(at, weights, i + 2, &w->kernel[i]))) {
      psplit_i_refuse(at, "the size of its kernel is not known");
      return false;
    }
    if (w->stride[i] < 1 || w->dilation[i] < 1 || w->kernel[i] < 1 || !small(w->stride[i]) ||
        !small(w->dilation[i]) || !small(w->kernel[i]) || !small(w->begin[i]) ||
        !small(w->end[i]) || !small(w->kernel[i] * w->dilation[i]))
      return refuse_range(at);
  }
  if (is_transposed) return transposed_pads(at, w, upper, lower);
  return upper || lower ? auto_pads(at, w, lower) : true;
}

psplit_i_ref psplit_i_padded(psplit_i_at *at, psplit_i_ref a, const psplit_i_window *w,
                             int32_t first, int32_t rank) {
  int64_t pads[2 * PSPLIT_MAX_RANK] = {0};
  bool any = false;
  for (int32_t i = 0; i < w->n; i++) {
    pads[first + i] = w->begin[i];
    pads[first + i + rank] = w->end[i];
    any |= w->begin[i] != 0 || w->end[i] != 0;
  }
  return any ? op2(at, "Pad", a, ints(at, pads, 2 * (uint32_t)rank)) : a;
}

psplit_i_ref psplit_i_tap(psplit_i_at *at, psplit_i_ref is_padded, const psplit_i_window *w,
                          const int64_t *tap, int32_t first, const int64_t *sizes,
                          const psplit_i_ref *size_refs) {
  int64_t starts[PSPLIT_MAX_SPATIAL], ends[PSPLIT_MAX_SPATIAL], axes[PSPLIT_MAX_SPATIAL];
  ref end_refs[PSPLIT_MAX_SPATIAL];
  for (int32_t i = 0; i < w->n; i++) {
    axes[i] = first + i;
    starts[i] = tap[i] * w->dilation[i];
    if (sizes)
      ends[i] = starts[i] + (sizes[i] - 1) * w->stride[i] + 1;
    else /* (size - 1) stride + 1 + start */
      end_refs[i] = add(at, mul(at, size_refs[i], int1(at, w->stride[i])),
                        int1(at, starts[i] - w->stride[i] + 1));
  }
  const uint32_t n = (uint32_t)w->n;
  const ref end = sizes ? ints(at, ends, n) : concat(at, end_refs, n, 0);
  const ref inputs[] = {is_padded, ints(at, starts, n), end, ints(at, axes, n),
                        ints(at, w->stride, n)};
  return psplit_i_backward_node(at->b, "Slice", 5, inputs, 1);
}

void psplit_i_with_window(psplit_i_at *at, const psplit_i_window *w, bool with_kernel) {
  int64_t pads[2 * PSPLIT_MAX_SPATIAL];
  const size_t n = (size_t)w->n;
  for (size_t i = 0; i < n; i++) {
    pads[i] = w->begin[i];
    pads[i + n] = w->end[i];
  }
  if (with_kernel) with_ints(at, "kernel_shape", w->kernel, n);
  with_ints(at, "strides", w->stride, n);
  with_ints(at, "dilations", w->dilation, n);
  with_ints(at, "pads", pads, 2 * n);
}
