/* Rules: rearranging elements along axes. */
#include <string.h>

#include "infer.h"

/* Contents of the output taken from `from`: position base + sum of coordinate * stride. */
static void copy_strided(psplit_i_site *at, uint32_t output, const psplit_dim *from,
                         uint32_t n_from, const int64_t *stride, int64_t base) {
  if (!from || !psplit_i_wants(at, output)) return;
  const psplit_i_vtype *type = &at->scope->types[at->node->outputs[output]];
  int64_t n, size[PSPLIT_MAX_RANK] = {0}, coordinate[PSPLIT_MAX_RANK] = {0};
  if (!psplit_i_count(at->dims, type, &n)) return;
  for (int32_t i = 0; i < type->rank; i++) psplit_i_dim_is_const(at->dims, type->dims[i], &size[i]);
  psplit_dim *elements = psplit_i_new_elements(at, n);
  if (!elements) return;
  int64_t position = base;
  for (int64_t k = 0; k < n; k++) {
    if (position < 0 || position >= n_from) return;
    elements[k] = from[position];
    for (int32_t axis = type->rank - 1; axis >= 0; axis--) {
      position += stride[axis];
      if (++coordinate[axis] < size[axis]) break;
      position -= stride[axis] * size[axis];
      coordinate[axis] = 0;
    }
  }
  psplit_i_out_elements(at, output, elements, (uint32_t)n);
}

/* Row-major strides of a type whose dimensions are numbers. */
static bool strides_of(const psplit_i_site *at, const psplit_i_vtype *type, int64_t *stride) {
  int64_t n, size = 1;
  if (!psplit_i_count(at->dims, type, &n)) return false;
  n = 1;
  for (int32_t axis = type->rank - 1; axis >= 0; axis--) {
    stride[axis] = n;
    psplit_i_dim_is_const(at->dims, type->dims[axis], &size);
    n *= size;
  }
  return true;
}

/* The better known of two sizes that must agree. */
static psplit_dim prefer(psplit_i_site *at, psplit_dim a, psplit_dim b) {
  int64_t value;
  if (psplit_i_dim_is_const(at->dims, a, &value)) return a;
  if (psplit_i_dim_is_const(at->dims, b, &value)) return b;
  return psplit_i_dim_has_anonymous(at->dims, a) ? b : a;
}

static void concat_elements(psplit_i_site *at, int32_t axis, const psplit_i_vtype *out) {
  int64_t n, outer = 1, size, written = 0;
  if (!psplit_i_count(at->dims, out, &n) || n > PSPLIT_MAX_ELEMENTS) return;
  if (!psplit_i_is_int_type(out->elem) && n > 64) return;
  uint32_t n_in;
  for (uint32_t i = 0; i < at->node->n_inputs; i++)
    if (!psplit_i_elements(at, i, &n_in)) return;
  psplit_dim *elements = psplit_i_new_elements(at, n);
  if (!elements) return;
  for (int32_t i = 0; i < axis; i++) {
    psplit_i_dim_is_const(at->dims, out->dims[i], &size);
    outer *= size;
  }
  for (int64_t row = 0; row < outer; row++)
    for (uint32_t i = 0; i < at->node->n_inputs; i++) {
      const psplit_dim *from = psplit_i_elements(at, i, &n_in);
      const int64_t chunk = (int64_t)n_in / outer;
      for (int64_t k = 0; k < chunk && written < n; k++)
        elements[written++] = from[row * chunk + k];
    }
  if (written == n) psplit_i_out_elements(at, 0, elements, (uint32_t)n);
}

/* All sizes but that of the axis have to be the same; runtimes pass over empty tensors. */
static void check_concat(psplit_i_site *at, int32_t rank, int32_t axis) {
  const psplit_i_vtype *first = NULL;
  for (uint32_t i = 0; i < at->node->n_inputs; i++) {
    const psplit_i_vtype *type = psplit_i_in(at, i);
    bool empty = type->rank != rank;
    int64_t size;
    for (int32_t d = 0; d < rank && !empty; d++)
      empty = psplit_i_dim_is_const(at->dims, type->dims[d], &size) && size == 0;
    if (empty) continue;
    if (!first) first = type;
    for (int32_t d = 0; d < rank; d++)
      if (d != axis) psplit_i_must_agree(at, first->dims[d], type->dims[d]);
  }
}

void psplit_i_infer_concat(psplit_i_site *at) {
  int32_t rank = -1, axis;
  int32_t elem = 0;
  psplit_dim dims[PSPLIT_MAX_RANK];
  for (uint32_t i = 0; i < at->node->n_inputs; i++) {
    if (!elem) elem = psplit_i_elem(at, i);
    if (rank < 0) rank = psplit_i_rank(at, i);
  }
  if (rank < 0 || !psplit_i_axis(psplit_i_int(at, "axis", 1), rank, &axis)) {
    psplit_i_out(at, 0, elem, -1, NULL);
    return;
  }
  for (int32_t d = 0; d < rank; d++) dims[d] = PSPLIT_NONE;
  psplit_dim total = psplit_i_dim_const(at->dims, 0);
  for (uint32_t i = 0; i < at->node->n_inputs; i++) {
    const psplit_i_vtype *type = psplit_i_in(at, i);
    const bool fits = type->rank == rank;
    total =
      psplit_i_dim_add(at->dims, total, fits ? type->dims[axis] : psplit_i_dim_fresh(at->dims));
    for (int32_t d = 0; d < rank && fits; d++)
      dims[d] = dims[d] == PSPLIT_NONE ? type->dims[d] : prefer(at, dims[d], type->dims[d]);
  }
  check_concat(at, rank, axis);
  dims[axis] = total;
  psplit_i_out(at, 0, elem, rank, dims);
  if (psplit_i_wants(at, 0)) concat_elements(at, axis, &at->scope->types[at->node->outputs[0]]);
}

/* Sizes of the parts of Split. */
static psplit_dim part_size(psplit_i_site *at, uint32_t part, psplit_dim whole,
                            const psplit_dim *sizes, uint32_t n_sizes) {
  if (sizes) return part < n_sizes ? sizes[part] : psplit_i_dim_fresh(at->dims);
  if (psplit_i_has(at, 1)) return psplit_i_dim_fresh(at->dims);
  const uint32_t n = at->node->n_outputs;
  const psplit_dim parts = psplit_i_dim_const(at->dims, n);
  const psplit_dim size = psplit_i_dim_ceil_div(at->dims, whole, parts);
  if (part + 1 < n || n == 1) return size;
  return psplit_i_dim_sub(at->dims, whole, psplit_i_dim_mul_const(at->dims, size, (int64_t)n - 1));
}

void psplit_i_infer_split(psplit_i_site *at) {
  const psplit_i_vtype data = *psplit_i_in(at, 0);
  int32_t axis;
  if (data.rank < 0 || !psplit_i_axis(psplit_i_int(at, "axis", 0), data.rank, &axis)) {
    for (uint32_t o = 0; o < at->node->n_outputs; o++) psplit_i_out(at, o, data.elem, -1, NULL);
    return;
  }
  size_t n_list;
  const int64_t *list = psplit_i_int_list(at, "split", &n_list);
  uint32_t n_sizes = 0, n_data = 0;
  const psplit_dim *sizes = NULL;
  if (psplit_i_has(at, 1)) {
    sizes = psplit_i_known_elements(at, 1, &n_sizes);
  } else if (list && n_list <= PSPLIT_MAX_ELEMENTS) {
    psplit_dim *copy = psplit_i_new_elements(at, (int64_t)n_list);
    for (size_t i = 0; copy && i < n_list; i++) copy[i] = psplit_i_dim_const(at->dims, list[i]);
    sizes = copy;
    n_sizes = (uint32_t)n_list;
  }
  psplit_dim dims[PSPLIT_MAX_RANK];
  int64_t stride[PSPLIT_MAX_RANK], base = 0, size;
  memcpy(dims, data.dims, (size_t)data.rank * sizeof *dims);
  const psplit_dim *elements = psplit_i_known_elements(at, 0, &n_data);
  const bool copies = elements && strides_of(at, &data, stride);
  for (uint32_t o = 0; o < at->node->n_outputs; o++) {
    dims[axis] = part_size(at, o, data.dims[axis], sizes, n_sizes);
    psplit_i_out(at, o, data.elem, data.rank, dims);
    if (!copies || base < 0 || !psplit_i_dim_is_const(at->dims, dims[axis], &size)) {
      base = -1;
      continue;
    }
    copy_strided(at, o, elements, n_data, stride, base);
    base = size > PSPLIT_MAX_ELEMENTS ? -1 : base + size * stride[axis];
  }
}

/* One bound of a slice, from the front: negative ones count from the end. PSPLIT_NONE where the
 * sign cannot be told. */
static psplit_dim from_front(psplit_i_site *at, psplit_dim bound, psplit_dim size) {
  if (psplit_i_dim_low(at->dims, bound) >= 0) return bound;
  if (psplit_i_dim_high(at->dims, bound) < 0) return psplit_i_dim_add(at->dims, bound, size);
  /* An expression like n-1 is meant as a position, unless a run alone can tell it. */
  return psplit_i_dim_low(at->dims, bound) == INT64_MIN ? PSPLIT_NONE : bound;
}

/* Whether a bound lies so far out that it means "to the end" whatever the size: which end. */
static bool is_far(const psplit_i_site *at, psplit_dim bound, bool above) {
  int64_t value;
  return psplit_i_dim_is_const(at->dims, bound, &value) &&
         (above ? value >= INT32_MAX : value <= -INT32_MAX);
}

/* Size of [start : end : step] of an axis. */
static psplit_dim slice_size(psplit_i_site *at, psplit_dim start, psplit_dim end, int64_t step,
                             psplit_dim size) {
  const int64_t most = INT64_C(1) << 62; /* beyond any size, and sums with one fit */
  psplit_i_dims *d = at->dims;
  const psplit_dim zero = psplit_i_dim_const(d, 0);
  const psplit_dim last = psplit_i_dim_add_const(d, size, -1);
  const psplit_dim before = psplit_i_dim_const(d, -1);
  psplit_dim distance;
  step = step > most ? most : step < -most ? -most : step;
  if (is_far(at, start, true))
    start = step > 0 ? size : last;
  else if (is_far(at, start, false))
    start = zero;
  else
    start = from_front(at, start, size);
  int64_t value;
  if (is_far(at, end, true))
    end = step < 0 && psplit_i_dim_is_const(d, end, &value) &&
              (value == INT32_MAX || value == INT64_MAX)
            ? before /* "to the end", whichever way */
            : size;
  else if (is_far(at, end, false))
    end = step > 0 ? zero : before;
  else
    end = from_front(at, end, size);
  if (start == PSPLIT_NONE || end == PSPLIT_NONE) return psplit_i_dim_fresh(d);
  /* A start before the beginning is the beginning, even backwards. */
  if (step > 0 || start != last) start = psplit_i_dim_max(d, start, zero);
  if (step > 0) {
    end = psplit_i_dim_min(d, end, size);
    distance = psplit_i_dim_sub(d, end, start);
  } else {
    start = psplit_i_dim_min(d, start, last);
    distance = psplit_i_dim_sub(d, start, psplit_i_dim_max(d, end, before));
    step = -step;
  }
  return psplit_i_dim_max(d, psplit_i_dim_ceil_div(d, distance, psplit_i_dim_const(d, step)), zero);
}

/* Number of the first element that a slice takes; all numbers. */
static int64_t first_taken(int64_t start, int64_t step, int64_t size) {
  if (start < 0) start = start < -size ? 0 : start + size;
  if (step > 0) return start > size ? size : start;
  return start > size - 1 ? size - 1 : start;
}

/* Starts, ends, axes or steps of Slice: from an input, or an attribute before opset 10, where
 * DynamicSlice has inputs. */
static const psplit_dim *slice_list(psplit_i_site *at, uint32_t input, const char *name,
                                    uint32_t *out_n) {
  if (at->node->opset > 0 && at->node->opset < 10 && !*at->node->domain &&
      at->node->n_inputs == 1) {
    size_t n;
    const int64_t *list = psplit_i_int_list(at, name, &n);
    psplit_dim *copy = list ? psplit_i_new_elements(at, (int64_t)n) : NULL;
    for (size_t i = 0; copy && i < n; i++) copy[i] = psplit_i_dim_const(at->dims, list[i]);
    *out_n = (uint32_t)n;
    return copy;
  }
  return psplit_i_elements(at, input, out_n);
}

/* A Slice, and what is known of its result so far. */
typedef struct slice {
  psplit_i_site *at;
  psplit_i_vtype data;
  const psplit_dim *starts, *ends, *axes, *steps; /* NULL: not known, or not given */
  uint32_t n, n_axes;
  psplit_dim dims[PSPLIT_MAX_RANK];
  bool copies; /* contents are known: */
  int64_t stride[PSPLIT_MAX_RANK], base;
} slice;

/* Whether starts, ends, axes and steps go with each other. */
static bool read_slice(slice *s) {
  psplit_i_site *at = s->at;
  uint32_t n_end = 0, n_steps = 0;
  s->starts = slice_list(at, 1, "starts", &s->n);
  s->ends = slice_list(at, 2, "ends", &n_end);
  s->axes = slice_list(at, 3, "axes", &s->n_axes);
  s->steps = slice_list(at, 4, "steps", &n_steps);
  return s->starts && s->ends && s->n == n_end && (!s->axes || s->n_axes == s->n) &&
         (!s->steps || n_steps == s->n) && (s->axes || !psplit_i_has(at, 3)) &&
         (s->steps || !psplit_i_has(at, 4));
}

/* Where the lists are not known the axes may still be. */
static void forget_sliced(slice *s) {
  psplit_i_dims *all = s->at->dims;
  for (int32_t d = 0; d < s->data.rank; d++) {
    bool touched = s->axes == NULL;
    for (uint32_t i = 0; s->axes && i < s->n_axes; i++) {
      int64_t axis;
      int32_t on = 0;
      touched |= !psplit_i_dim_is_const(all, s->axes[i], &axis) ||
                 !psplit_i_axis(axis, s->data.rank, &on) || on == d;
    }
    if (touched) s->dims[d] = psplit_i_dim_fresh(all);
  }
}

/* Entry i of the lists; false where its axis is not known, so that it may be any. */
static bool slice_axis(slice *s, uint32_t i) {
  psplit_i_dims *all = s->at->dims;
  int64_t axis = i, step = 1, start, size;
  int32_t on;
  if ((s->axes && !psplit_i_dim_is_const(all, s->axes[i], &axis)) ||
      !psplit_i_axis(axis, s->data.rank, &on))
    return false;
  if ((s->steps && !psplit_i_dim_is_const(all, s->steps[i], &step)) || step == 0) {
    s->dims[on] = psplit_i_dim_fresh(all);
    s->copies = false;
    return true;
  }
  s->dims[on] = slice_size(s->at, s->starts[i], s->ends[i], step, s->data.dims[on]);
  s->copies = s->copies && psplit_i_dim_is_const(all, s->starts[i], &start) &&
              psplit_i_dim_is_const(all, s->data.dims[on], &size);
  if (!s->copies) return true;
  s->base += first_taken(start, step, size) * s->stride[on];
  /* Contents are no longer than this, and a step over all of them takes one. */
  if (step > PSPLIT_MAX_ELEMENTS) step = PSPLIT_MAX_ELEMENTS;
  if (step < -PSPLIT_MAX_ELEMENTS) step = -PSPLIT_MAX_ELEMENTS;
  s->stride[on] *= step;
  return true;
}

void psplit_i_infer_slice(psplit_i_site *at) {
  slice s = {.at = at, .data = *psplit_i_in(at, 0)};
  uint32_t n_data = 0;
  if (s.data.rank < 0) {
    psplit_i_out(at, 0, s.data.elem, -1, NULL);
    return;
  }
  memcpy(s.dims, s.data.dims, (size_t)s.data.rank * sizeof *s.dims);
  const bool read = read_slice(&s);
  const psplit_dim *elements = psplit_i_known_elements(at, 0, &n_data);
  if (!read) {
    forget_sliced(&s);
  } else {
    s.copies = elements && strides_of(at, &s.data, s.stride);
    uint32_t i = 0;
    while (i < s.n && slice_axis(&s, i)) i++;
    if (i < s.n) {
      psplit_i_fresh_dims(at, s.data.rank, s.dims);
      s.copies = false;
    }
  }
  psplit_i_out(at, 0, s.data.elem, s.data.rank, s.dims);
  if (s.copies) copy_strided(at, 0, elements, n_data, s.stride, s.base);
}

void psplit_i_infer_transpose(psplit_i_site *at) {
  const psplit_i_vtype data = *psplit_i_in(at, 0);
  size_t n;
  const int64_t *perm = psplit_i_int_list(at, "perm", &n);
  psplit_dim dims[PSPLIT_MAX_RANK];
  int64_t stride[PSPLIT_MAX_RANK] = {0}, moved[PSPLIT_MAX_RANK] = {0};
  uint32_t n_data;
  if (data.rank < 0 && perm && n <= PSPLIT_MAX_RANK) {
    psplit_i_fresh_dims(at, (int32_t)n, dims);
    psplit_i_out(at, 0, data.elem, (int32_t)n, dims);
    return;
  }
  if (data.rank < 0 || (perm && n != (size_t)data.rank)) {
    psplit_i_out(at, 0, data.elem, -1, NULL);
    return;
  }
  const psplit_dim *elements = psplit_i_known_elements(at, 0, &n_data);
  const bool copies = elements && strides_of(at, &data, stride);
  for (int32_t i = 0; i < data.rank; i++) {
    int32_t from = data.rank - 1 - i;
    if (perm && !psplit_i_axis(perm[i], data.rank, &from)) {
      psplit_i_out(at, 0, data.elem, -1, NULL);
      return;
    }
    dims[i] = data.dims[from];
    if (copies) moved[i] = stride[from];
  }
  psplit_i_out(at, 0, data.elem, data.rank, dims);
  if (copies) copy_strided(at, 0, elements, n_data, moved, 0);
}

/* Amounts of Pad as contents; NULL where not known. */
static const psplit_dim *pad_list(psplit_i_site *at, uint32_t *out_n) {
  size_t n;
  if (psplit_i_has(at, 1)) return psplit_i_elements(at, 1, out_n);
  const int64_t *list = psplit_i_int_list(at, "pads", &n);
  if (!list) list = psplit_i_int_list(at, "paddings", &n);
  psplit_dim *copy = list ? psplit_i_new_elements(at, (int64_t)n) : NULL;
  for (size_t i = 0; copy && i < n; i++) copy[i] = psplit_i_dim_const(at->dims, list[i]);
  *out_n = (uint32_t)n;
  return copy;
}

void psplit_i_infer_pad(psplit_i_site *at) {
  const psplit_i_vtype data = *psplit_i_in(at, 0);
  if (data.rank < 0) {
    psplit_i_out(at, 0, data.elem, -1, NULL);
    return;
  }
  psplit_dim dims[PSPLIT_MAX_RANK];
  int64_t axes[PSPLIT_MAX_RANK] = {0};
  uint32_t n = 0, n_axes = (uint32_t)data.rank;
  const psplit_dim *pads = pad_list(at, &n);
  bool known = pads != NULL;
  for (uint32_t i = 0; i < n_axes; i++) axes[i] = i;
  if (psplit_i_has(at, 3)) known = known && psplit_i_ints(at, 3, axes, PSPLIT_MAX_RANK, &n_axes);
  known = known && n == 2 * n_axes;
  memcpy(dims, data.dims, (size_t)data.rank * sizeof *dims);
  for (uint32_t i = 0; i < n_axes && known; i++) {
    int32_t on;
    known = psplit_i_axis(axes[i], data.rank, &on);
    if (!known) break;
    const psplit_dim both = psplit_i_dim_add(at->dims, pads[i], pads[i + n_axes]);
    dims[on] = psplit_i_dim_add(at->dims, dims[on], both);
  }
  if (!known) psplit_i_fresh_dims(at, data.rank, dims);
  psplit_i_out(at, 0, data.elem, data.rank, dims);
}

static void space(psplit_i_site *at, bool to_depth) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  const int64_t block = psplit_i_int(at, "blocksize", 1);
  psplit_dim dims[4];
  if (data->rank != 4 || block < 1 || block > INT32_MAX) {
    psplit_i_fresh_dims(at, 4, dims);
    psplit_i_out(at, 0, data->elem, 4, dims);
    return;
  }
  const psplit_dim b = psplit_i_dim_const(at->dims, block);
  const psplit_dim bb = psplit_i_dim_const(at->dims, block * block);
  dims[0] = data->dims[0];
  dims[1] = to_depth ? psplit_i_dim_mul(at->dims, data->dims[1], bb)
                     : psplit_i_dim_floor_div(at->dims, data->dims[1], bb);
  for (int i = 2; i < 4; i++)
    dims[i] = to_depth ? psplit_i_dim_floor_div(at->dims, data->dims[i], b)
                       : psplit_i_dim_mul(at->dims, data->dims[i], b);
  psplit_i_out(at, 0, data->elem, 4, dims);
}

void psplit_i_infer_depth_to_space(psplit_i_site *at) { space(at, false); }
void psplit_i_infer_space_to_depth(psplit_i_site *at) { space(at, true); }

/* The named axes get the sizes that input 1 holds. */
void psplit_i_infer_center_crop_pad(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  uint32_t n = 0;
  size_t n_axes;
  const psplit_dim *sizes = psplit_i_elements(at, 1, &n);
  const int64_t *axes = psplit_i_int_list(at, "axes", &n_axes);
  if (data->rank >= 0) memcpy(dims, data->dims, (size_t)data->rank * sizeof *dims);
  const uint32_t count = axes ? (uint32_t)n_axes : (uint32_t)(data->rank < 0 ? 0 : data->rank);
  for (uint32_t i = 0; i < count && data->rank >= 0; i++) {
    int32_t on;
    if (psplit_i_axis(axes ? axes[i] : (int64_t)i, data->rank, &on))
      dims[on] = sizes && i < n ? sizes[i] : psplit_i_dim_fresh(at->dims);
  }
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}

/* An experimental operator of images: `border` is left, top, right, bottom; with `scale`, height
 * and width, the last two say nothing. */
void psplit_i_infer_crop(psplit_i_site *at) {
  enum { RANK = 4, SIDES = 4 };
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  size_t n_border, n_scale;
  const int64_t *border = psplit_i_int_list(at, "border", &n_border);
  const int64_t *scale = psplit_i_int_list(at, "scale", &n_scale);
  psplit_dim dims[RANK];
  if (data->rank != RANK || !border || n_border != SIDES) {
    psplit_i_fresh_dims(at, RANK, dims);
    if (data->rank == RANK) memcpy(dims, data->dims, 2 * sizeof *dims);
    psplit_i_out(at, 0, data->elem, RANK, dims);
    return;
  }
  memcpy(dims, data->dims, sizeof dims);
  for (int i = 0; i < 2; i++) { /* height, width */
    const psplit_dim first = psplit_i_dim_const(at->dims, border[1 - i]);
    const psplit_dim last = psplit_i_dim_const(at->dims, border[SIDES - 1 - i]);
    dims[2 + i] =
      scale && n_scale == 2
        ? psplit_i_dim_const(at->dims, scale[i])
        : psplit_i_dim_sub(at->dims, psplit_i_dim_sub(at->dims, dims[2 + i], first), last);
  }
  psplit_i_out(at, 0, data->elem, RANK, dims);
}
