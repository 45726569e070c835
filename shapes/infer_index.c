/* Rules: gather and scatter, and results of data-dependent size. */
#include <string.h>

#include "infer.h"

enum { INT64 = 7, FLOAT = 1, INT32 = 6 };

static void gather_elements_of_shape(psplit_i_site *at, int32_t axis) {
  const psplit_i_vtype *data = psplit_i_in(at, 0), *indices = psplit_i_in(at, 1);
  uint32_t n_data, n_indices;
  int64_t total, outer = 1, inner = 1, size = 0;
  if (!psplit_i_wants(at, 0) ||
      !psplit_i_count(at->dims, &at->scope->types[at->node->outputs[0]], &total))
    return;
  const psplit_dim *from = psplit_i_elements(at, 0, &n_data);
  const psplit_dim *index = from ? psplit_i_known_elements(at, 1, &n_indices) : NULL;
  psplit_dim *out = index ? psplit_i_new_elements(at, total) : NULL;
  if (!out) return;
  for (int32_t i = 0; i < data->rank; i++) {
    int64_t d = 1;
    psplit_i_dim_is_const(at->dims, data->dims[i], &d);
    if (i < axis)
      outer *= d;
    else if (i > axis)
      inner *= d;
    else
      size = d;
  }
  (void)indices;
  int64_t k = 0;
  for (int64_t o = 0; o < outer; o++)
    for (uint32_t i = 0; i < n_indices; i++)
      for (int64_t j = 0; j < inner; j++, k++) {
        int64_t picked;
        if (k >= total || !psplit_i_dim_is_const(at->dims, index[i], &picked)) return;
        if (picked < 0) picked += size;
        if (picked < 0 || picked >= size) return;
        out[k] = from[(o * size + picked) * inner + j];
      }
  if (k == total) psplit_i_out_elements(at, 0, out, (uint32_t)total);
}

void psplit_i_infer_gather(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0), *indices = psplit_i_in(at, 1);
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t axis;
  const int32_t rank = data->rank + indices->rank - 1;
  if (data->rank < 0 || indices->rank < 0 || rank > PSPLIT_MAX_RANK ||
      !psplit_i_axis(psplit_i_int(at, "axis", 0), data->rank, &axis)) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  int32_t n = 0;
  for (int32_t i = 0; i < axis; i++) dims[n++] = data->dims[i];
  for (int32_t i = 0; i < indices->rank; i++) dims[n++] = indices->dims[i];
  for (int32_t i = axis + 1; i < data->rank; i++) dims[n++] = data->dims[i];
  psplit_i_out(at, 0, data->elem, n, dims);
  if (psplit_i_is_int_type(data->elem) || psplit_i_is_real_type(data->elem))
    gather_elements_of_shape(at, axis);
}

void psplit_i_infer_gather_elements(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 1, psplit_i_elem(at, 0));
}

void psplit_i_infer_gather_nd(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0), *indices = psplit_i_in(at, 1);
  const int64_t batch = psplit_i_int(at, "batch_dims", 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  int64_t depth;
  if (data->rank < 1 || indices->rank < 1 || batch < 0 || batch >= indices->rank ||
      !psplit_i_dim_is_const(at->dims, indices->dims[indices->rank - 1], &depth) || depth < 0 ||
      batch + depth > data->rank) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  int32_t n = 0;
  for (int32_t i = 0; i + 1 < indices->rank; i++) dims[n++] = indices->dims[i];
  const int32_t rest = data->rank - (int32_t)(batch + depth);
  if (n + rest > PSPLIT_MAX_RANK) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  for (int32_t i = data->rank - rest; i < data->rank; i++) dims[n++] = data->dims[i];
  psplit_i_out(at, 0, data->elem, n, dims);
}

/* Contents of a one-dimensional scatter with known indices, as index_put exports write shapes. */
static void scatter_contents(psplit_i_site *at, bool nd) {
  if (psplit_i_rank(at, 0) != 1 || !psplit_i_is_int_type(psplit_i_elem(at, 0))) return;
  const Onnx__AttributeProto *reduction = psplit_i_attribute(at, "reduction");
  if (reduction && reduction->s.len && !psplit_i_text_is(at, "reduction", "none", true)) return;
  uint32_t n, n_indices, n_updates;
  const psplit_dim *data = psplit_i_elements(at, 0, &n);
  const psplit_dim *indices = data ? psplit_i_known_elements(at, 1, &n_indices) : NULL;
  const psplit_dim *updates = indices ? psplit_i_elements(at, 2, &n_updates) : NULL;
  if (!updates || n_indices != n_updates) return;
  if (nd && psplit_i_rank(at, 1) < 1) return;
  psplit_dim *out = psplit_i_new_elements(at, n);
  if (!out) return;
  memcpy(out, data, n * sizeof *out);
  for (uint32_t i = 0; i < n_indices; i++) {
    int64_t index;
    if (!psplit_i_dim_is_const(at->dims, indices[i], &index)) return;
    if (index < 0) index += n;
    if (index < 0 || index >= n) return;
    out[index] = updates[i];
  }
  psplit_i_out_elements(at, 0, out, n);
}

void psplit_i_infer_scatter(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 0));
  scatter_contents(at, false);
}
void psplit_i_infer_scatter_nd(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem(at, 0));
  int64_t depth;
  if (psplit_i_rank(at, 1) >= 1 &&
      psplit_i_dim_is_const(at->dims, psplit_i_dim_of(at, 1, -1), &depth) && depth == 1)
    scatter_contents(at, true);
}

void psplit_i_infer_one_hot(psplit_i_site *at) {
  const psplit_i_vtype *indices = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t axis;
  if (indices->rank < 0 || indices->rank >= PSPLIT_MAX_RANK ||
      !psplit_i_axis(psplit_i_int(at, "axis", -1), indices->rank + 1, &axis)) {
    psplit_i_out(at, 0, psplit_i_elem(at, 2), -1, NULL);
    return;
  }
  for (int32_t i = 0; i <= indices->rank; i++)
    dims[i] = i < axis ? indices->dims[i] : i > axis ? indices->dims[i - 1] : PSPLIT_NONE;
  dims[axis] = psplit_i_element_or_fresh(at, 1);
  psplit_i_out(at, 0, psplit_i_elem(at, 2), indices->rank + 1, dims);
}

void psplit_i_infer_non_zero(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[2];
  /* A scalar counts as one axis for runtimes, as none for the specification: left open. */
  dims[0] =
    data->rank > 0 ? psplit_i_dim_const(at->dims, data->rank) : psplit_i_dim_fresh(at->dims);
  dims[1] = psplit_i_dim_fresh(at->dims);
  uint32_t n;
  const psplit_dim *elements = data->rank > 0 ? psplit_i_known_elements(at, 0, &n) : NULL;
  int64_t count = 0;
  for (uint32_t i = 0; elements && i < n; i++) {
    double value;
    if (!psplit_i_dim_is_real(at->dims, elements[i], &value)) {
      if (psplit_i_dim_is_integer(at->dims, elements[i]) &&
          psplit_i_dim_low(at->dims, elements[i]) > 0)
        value = 1;
      else
        elements = NULL;
    }
    if (elements) count += value != 0;
  }
  if (elements) dims[1] = psplit_i_dim_const(at->dims, count);
  psplit_i_out(at, 0, INT64, 2, dims);
  if (!elements || data->rank != 1) return;
  psplit_dim *out = psplit_i_new_elements(at, count);
  if (!out) return;
  for (uint32_t i = 0, k = 0; i < n; i++) {
    double value = 1;
    psplit_i_dim_is_real(at->dims, elements[i], &value);
    if (value != 0) out[k++] = psplit_i_dim_const(at->dims, i);
  }
  psplit_i_out_elements(at, 0, out, (uint32_t)count);
}

/* Number of true elements of input 1, where all are known. */
static psplit_dim count_true(psplit_i_site *at) {
  uint32_t n;
  int64_t value, count = 0;
  const psplit_dim *chosen = psplit_i_known_elements(at, 1, &n);
  for (uint32_t i = 0; chosen && i < n; i++) {
    if (!psplit_i_dim_is_const(at->dims, chosen[i], &value)) return psplit_i_dim_fresh(at->dims);
    count += value != 0;
  }
  return chosen ? psplit_i_dim_const(at->dims, count) : psplit_i_dim_fresh(at->dims);
}

void psplit_i_infer_compress(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t axis;
  if (!psplit_i_attribute(at, "axis")) {
    dims[0] = count_true(at);
    psplit_i_out(at, 0, data->elem, 1, dims);
  } else if (data->rank >= 0 && psplit_i_axis(psplit_i_int(at, "axis", 0), data->rank, &axis)) {
    memcpy(dims, data->dims, (size_t)data->rank * sizeof *dims);
    dims[axis] = count_true(at);
    psplit_i_out(at, 0, data->elem, data->rank, dims);
  } else {
    psplit_i_out(at, 0, data->elem, -1, NULL);
  }
}

void psplit_i_infer_unique(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  const psplit_dim count = psplit_i_dim_fresh(at->dims);
  psplit_dim inverse = psplit_i_dim_fresh(at->dims);
  int32_t axis;
  if (!psplit_i_attribute(at, "axis")) {
    psplit_i_out(at, 0, data->elem, 1, &count);
    if (data->rank >= 0) inverse = psplit_i_volume(at, data, 0, data->rank);
  } else if (data->rank >= 0 && psplit_i_axis(psplit_i_int(at, "axis", 0), data->rank, &axis)) {
    memcpy(dims, data->dims, (size_t)data->rank * sizeof *dims);
    inverse = dims[axis];
    dims[axis] = count;
    psplit_i_out(at, 0, data->elem, data->rank, dims);
  } else {
    psplit_i_out(at, 0, data->elem, -1, NULL);
  }
  psplit_i_out(at, 1, INT64, 1, &count);
  psplit_i_out(at, 2, INT64, 1, &inverse);
  psplit_i_out(at, 3, INT64, 1, &count);
}

void psplit_i_infer_top_k(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t axis;
  if (data->rank < 0 || !psplit_i_axis(psplit_i_int(at, "axis", -1), data->rank, &axis)) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    psplit_i_out(at, 1, INT64, -1, NULL);
    return;
  }
  memcpy(dims, data->dims, (size_t)data->rank * sizeof *dims);
  if (at->node->n_inputs < 2) {
    const int64_t k = psplit_i_int(at, "k", -1);
    dims[axis] = k < 0 ? psplit_i_dim_fresh(at->dims) : psplit_i_dim_const(at->dims, k);
  } else {
    dims[axis] = psplit_i_element_or_fresh(at, 1);
  }
  psplit_i_out(at, 0, data->elem, data->rank, dims);
  psplit_i_out(at, 1, INT64, data->rank, dims);
}

/* boxes, scores -> [selected, 3]. */
void psplit_i_infer_non_max_suppression(psplit_i_site *at) {
  const psplit_dim dims[2] = {psplit_i_dim_fresh(at->dims), psplit_i_dim_const(at->dims, 3)};
  psplit_i_out(at, 0, INT64, 2, dims);
}

/* Samples per row of input 0. */
void psplit_i_infer_multinomial(psplit_i_site *at) {
  const int64_t samples = psplit_i_int(at, "sample_size", 1);
  const psplit_dim dims[2] = {psplit_i_dim_of(at, 0, 0), samples < 0
                                                           ? psplit_i_dim_fresh(at->dims)
                                                           : psplit_i_dim_const(at->dims, samples)};
  psplit_i_out(at, 0, psplit_i_elem_named(at, "dtype", INT32), 2, dims);
}
