/* Rules: quantisation, signals, text. */
#include <string.h>

#include "infer.h"

enum { FLOAT = 1, UINT8 = 2, INT64 = 7, STRING = 8 };

/* Type of the zero point, of the attribute, or uint8. */
void psplit_i_infer_quantize_linear(psplit_i_site *at) {
  const int32_t elem =
    psplit_i_has(at, 2) ? psplit_i_elem(at, 2) : psplit_i_elem_named(at, "output_dtype", UINT8);
  psplit_i_out_like(at, 0, 0, elem);
}

void psplit_i_infer_dequantize_linear(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, psplit_i_elem_named(at, "output_dtype", psplit_i_elem(at, 1)));
}

void psplit_i_infer_dynamic_quantize_linear(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, UINT8);
  psplit_i_out(at, 1, FLOAT, 0, NULL);
  psplit_i_out(at, 2, UINT8, 0, NULL);
}

/* DFT: the signal axis keeps its length or takes dft_length; onesided keeps n/2 + 1; the last axis
 * becomes real and imaginary part. */
static void dft(psplit_i_site *at, int64_t axis_given, bool axis_known) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t axis;
  if (data->rank < 2) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  memcpy(dims, data->dims, (size_t)data->rank * sizeof *dims);
  const bool one = psplit_i_int(at, "onesided", 0) != 0;
  const bool inverse = psplit_i_int(at, "inverse", 0) != 0;
  dims[data->rank - 1] = psplit_i_dim_const(at->dims, inverse && one ? 1 : 2);
  if (!axis_known || !psplit_i_axis(axis_given, data->rank, &axis)) {
    psplit_i_fresh_dims(at, data->rank - 1, dims);
  } else {
    if (psplit_i_has(at, 1)) {
      dims[axis] = psplit_i_element_or_fresh(at, 1);
      if (inverse && one) { /* the length is that of the real signal */
        psplit_i_out(at, 0, data->elem, data->rank, dims);
        return;
      }
    } else if (inverse && one) { /* from n/2 + 1 back to n, taken as even */
      dims[axis] =
        psplit_i_dim_mul_const(at->dims, psplit_i_dim_add_const(at->dims, dims[axis], -1), 2);
    }
    if (one && !inverse)
      dims[axis] = psplit_i_dim_add_const(
        at->dims, psplit_i_dim_floor_div(at->dims, dims[axis], psplit_i_dim_const(at->dims, 2)), 1);
  }
  psplit_i_out(at, 0, data->elem, data->rank, dims);
}

void psplit_i_infer_dft17(psplit_i_site *at) { dft(at, psplit_i_int(at, "axis", 1), true); }
void psplit_i_infer_dft(psplit_i_site *at) {
  int64_t axis = -2;
  const bool known = !psplit_i_has(at, 2) || psplit_i_int_input(at, 2, &axis);
  dft(at, axis, known);
}

/* signal [batch, length, 1 or 2], frame_step, window, frame_length -> [batch, frames, bins, 2]. */
void psplit_i_infer_stft(psplit_i_site *at) {
  psplit_i_dims *d = at->dims;
  uint32_t n = 0;
  int64_t step;
  psplit_dim length = PSPLIT_NONE, frames = PSPLIT_NONE, bins = PSPLIT_NONE;
  const psplit_dim *given = psplit_i_elements(at, 3, &n);
  if (given && n == 1)
    length = *given;
  else if (psplit_i_rank(at, 2) == 1)
    length = psplit_i_dim_of(at, 2, 0);
  if (length != PSPLIT_NONE) {
    bins =
      psplit_i_int(at, "onesided", 1)
        ? psplit_i_dim_add_const(d, psplit_i_dim_floor_div(d, length, psplit_i_dim_const(d, 2)), 1)
        : length;
    if (psplit_i_int_input(at, 1, &step) && step > 0 && psplit_i_rank(at, 0) > 1) {
      const psplit_dim room = psplit_i_dim_sub(d, psplit_i_dim_of(at, 0, 1), length);
      frames =
        psplit_i_dim_add_const(d, psplit_i_dim_floor_div(d, room, psplit_i_dim_const(d, step)), 1);
    }
  }
  const psplit_dim dims[4] = {
    psplit_i_dim_of(at, 0, 0), frames == PSPLIT_NONE ? psplit_i_dim_fresh(d) : frames,
    bins == PSPLIT_NONE ? psplit_i_dim_fresh(d) : bins, psplit_i_dim_const(d, 2)};
  psplit_i_out(at, 0, psplit_i_elem(at, 0), 4, dims);
}

void psplit_i_infer_string_concat(psplit_i_site *at) {
  psplit_dim dims[PSPLIT_MAX_RANK];
  const int32_t rank = psplit_i_broadcast(at, 2, dims);
  psplit_i_out(at, 0, STRING, rank, dims);
}

/* Parts get an axis of their own; their counts are shaped like the input. */
void psplit_i_infer_string_split(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  const bool known = data->rank >= 0 && data->rank < PSPLIT_MAX_RANK;
  if (known && data->rank) memcpy(dims, data->dims, (size_t)data->rank * sizeof *dims);
  if (known) dims[data->rank] = psplit_i_dim_fresh(at->dims);
  psplit_i_out(at, 0, STRING, known ? data->rank + 1 : -1, dims);
  psplit_i_out_like(at, 1, 0, INT64);
}

/* Stop words may be dropped: [c] or [1, c]. */
void psplit_i_infer_string_normalizer(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[2];
  psplit_i_fresh_dims(at, 2, dims);
  if (data->rank == 2) dims[0] = data->dims[0];
  psplit_i_out(at, 0, STRING, data->rank == 1 || data->rank == 2 ? data->rank : -1, dims);
}

/* Counts per n-gram: the last axis becomes the number of output columns. */
void psplit_i_infer_tf_idf(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  size_t n;
  const int64_t *columns = psplit_i_int_list(at, "ngram_indexes", &n);
  int64_t width = 0;
  for (size_t i = 0; columns && i < n; i++)
    if (columns[i] >= width && columns[i] < INT64_MAX) width = columns[i] + 1;
  const psplit_dim size = psplit_i_number_or_fresh(at, width);
  psplit_dim dims[2] = {size, size};
  if (data->rank == 2) dims[0] = data->dims[0];
  psplit_i_out(at, 0, FLOAT, data->rank == 1 || data->rank == 2 ? data->rank : -1, dims);
}
