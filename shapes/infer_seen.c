/* Sizes that a run has seen, in the place of those that only a run can tell. */

#include "infer.h"

void psplit_i_take_seen(psplit_i_shapes *s, const psplit_i_known_sizes *sizes) {
  if (!sizes->n_seen) return;
  s->seen = psplit_i_arena_zeroed(&s->arena, s->graph->n_values, sizeof *s->seen);
  if (!s->seen) {
    s->failed = true;
    return;
  }
  for (size_t i = 0; i < sizes->n_seen; i++) {
    const uint32_t value = psplit_i_graph_find_value(s->graph, sizes->seen[i].value);
    if (value != PSPLIT_NONE) s->seen[value] = &sizes->seen[i];
  }
}

/* Whether the run can have been one of these shapes: ranks and numbers agree. */
static bool can_be(psplit_i_shapes *s, const psplit_i_vtype *type, const psplit_i_seen *seen) {
  if (type->kind != PSPLIT_TYPE_TENSOR || seen->rank > PSPLIT_MAX_RANK) return false;
  if (type->rank < 0) return true;
  if (type->rank != seen->rank) return false;
  for (int32_t axis = 0; axis < seen->rank; axis++)
    if (psplit_i_dim_differ(s->dims, type->dims[axis],
                            psplit_i_dim_const(s->dims, seen->dims[axis])))
      return false;
  return true;
}

void psplit_i_learn_size(psplit_i_shapes *s, psplit_dim dim, int64_t value, bool implied) {
  const uint32_t symbol = psplit_i_dim_symbol_number(s->dims, dim);
  const psplit_i_learned *last = s->learned.n ? &s->learned.items[s->learned.n - 1] : NULL;
  if (symbol == PSPLIT_NONE || (last && last->symbol == symbol && last->implied == implied)) return;
  if (!psplit_i_vec_push(&s->learned, ((psplit_i_learned){symbol, implied, value})))
    s->failed = true;
}

void psplit_i_learn_equal(psplit_i_shapes *s, psplit_dim dim, psplit_dim size) {
  if (!psplit_i_dim_is_anonymous(s->dims, dim) || psplit_i_dim_has_anonymous(s->dims, size)) return;
  const psplit_i_equal equal = {psplit_i_dim_symbol_number(s->dims, dim), size};
  if (!psplit_i_vec_push(&s->equal, equal)) s->failed = true;
}

void psplit_i_type_see(psplit_i_shapes *s, psplit_i_vtype *type, uint32_t value) {
  const psplit_i_seen *seen = s->seen ? s->seen[value] : NULL;
  if (!seen || !can_be(s, type, seen)) return;
  psplit_dim *dims = psplit_i_arena_array(&s->arena, (size_t)seen->rank, sizeof *dims);
  if (!dims) {
    s->failed = true;
    return;
  }
  for (int32_t axis = 0; axis < seen->rank; axis++) {
    dims[axis] = psplit_i_dim_const(s->dims, seen->dims[axis]);
    if (type->rank >= 0 && type->dims[axis] != dims[axis])
      psplit_i_learn_size(s, type->dims[axis], seen->dims[axis], false);
  }
  type->rank = seen->rank;
  type->dims = dims;
}
