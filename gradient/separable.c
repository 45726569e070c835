#include "separable.h"

/* [1, size, size, 1], a one where row and column meet. */
static ref unit_vectors(psplit_i_at *at, int32_t axis) {
  int64_t size;
  ref shape;
  if (psplit_i_size(at, psplit_i_type_in(at, 0), axis, &size))
    shape = ints(at, (int64_t[]){size, size}, 2);
  else
    shape = gathered(at, psplit_i_shape_in(at, 0), ints(at, (int64_t[]){axis, axis}, 2), 0);
  const ref square = psplit_i_zeros(at, shape);
  return unsqueezed(at, op1(at, "EyeLike", square), (int64_t[]){0, 3}, 2);
}

psplit_i_ref psplit_i_separable(psplit_i_at *at, psplit_i_ref g, int32_t axis, int32_t rank,
                                psplit_i_axis_fn apply, void *data) {
  /* y = matrix^T x along the axis, so dx = matrix dy. */
  const ref matrix =
    squeezed(at, apply(at, unit_vectors(at, axis), axis, data), (int64_t[]){0, 3}, 2);
  if (axis == rank - 2) return product(at, matrix, g);
  const ref flipped = transposed(at, matrix, (int64_t[]){1, 0}, 2);
  if (axis == rank - 1) return product(at, g, flipped);
  int64_t perm[PSPLIT_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) perm[i] = i;
  perm[axis] = rank - 1;
  perm[rank - 1] = axis;
  const ref last = product(at, transposed(at, g, perm, (size_t)rank), flipped);
  return transposed(at, last, perm, (size_t)rank);
}
