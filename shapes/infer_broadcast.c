/* Broadcasting, for rules. */
#include "infer.h"

/* Of the n inputs that `list` names, or of the first n without one. */
static int32_t broadcast(psplit_i_site *at, const uint32_t *list, uint32_t n, psplit_dim *dims) {
  int32_t rank = 0;
  for (uint32_t i = 0; i < n; i++) {
    const int32_t r = psplit_i_rank(at, list ? list[i] : i);
    if (r < 0) return -1;
    if (r > rank) rank = r;
  }
  for (int32_t axis = 0; axis < rank; axis++) {
    psplit_dim size = psplit_i_dim_const(at->dims, 1);
    for (uint32_t i = 0; i < n; i++) {
      const psplit_i_vtype *type = psplit_i_in(at, list ? list[i] : i);
      const int32_t own = axis - (rank - type->rank);
      if (own < 0 || size == PSPLIT_NONE) continue;
      const psplit_dim so_far = size;
      size = psplit_i_dim_broadcast(at->dims, size, type->dims[own]);
      if (size == PSPLIT_NONE) psplit_i_sizes_differ(at, so_far, type->dims[own]);
    }
    dims[axis] = size == PSPLIT_NONE ? psplit_i_dim_fresh(at->dims) : size;
  }
  return rank;
}

int32_t psplit_i_broadcast(psplit_i_site *at, uint32_t n, psplit_dim *dims) {
  return broadcast(at, NULL, n, dims);
}

int32_t psplit_i_broadcast_of(psplit_i_site *at, const uint32_t *inputs, uint32_t n,
                              psplit_dim *dims) {
  return broadcast(at, inputs, n, dims);
}
