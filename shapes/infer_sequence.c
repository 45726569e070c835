/* Rules: sequences of tensors, optional values.
 *
 * Where the members of a sequence are known one by one and are no scalars, their sizes are its
 * contents: those of the first member, those of the second, and so on. */
#include <string.h>

#include "infer.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9, MAX_PARTS = 64 };

psplit_i_vtype psplit_i_type_alone(const psplit_i_vtype *type) {
  psplit_i_vtype result = *type;
  result.elements = NULL;
  result.n_elements = 0;
  result.is_weight = result.declared_wrong = false;
  return result;
}

psplit_i_vtype psplit_i_type_inside(const psplit_i_vtype *type) {
  psplit_i_vtype element = psplit_i_type_alone(type);
  if (type->kind != PSPLIT_TYPE_SEQUENCE && type->kind != PSPLIT_TYPE_OPTIONAL) return element;
  element.kind = type->inner;
  element.inner = type->inner == PSPLIT_TYPE_SEQUENCE ? PSPLIT_TYPE_TENSOR : PSPLIT_TYPE_UNKNOWN;
  return element;
}

/* Whether the members of a sequence are known, and how many there are. */
static bool members_known(const psplit_i_vtype *type, uint32_t *out_n) {
  *out_n = 0;
  if (type->kind != PSPLIT_TYPE_SEQUENCE || !type->elements || type->rank == 0) return false;
  if (type->rank > 0) *out_n = type->n_elements / (uint32_t)type->rank;
  return true;
}

/* Sizes of member `member`, where members are known. */
static const psplit_dim *member_of(const psplit_i_vtype *type, uint32_t member) {
  return type->elements + (size_t)member * (size_t)type->rank;
}

/* Room for the sizes of n members, which become those of output 0; NULL where there is none. */
static psplit_dim *new_members(psplit_i_site *at, uint32_t n) {
  if (!psplit_i_wants(at, 0)) return NULL;
  psplit_i_vtype *type = &at->scope->types[at->node->outputs[0]];
  if (type->kind != PSPLIT_TYPE_SEQUENCE || (n > 0 && type->rank <= 0)) return NULL;
  const int64_t n_sizes = n > 0 ? (int64_t)n * type->rank : 0;
  psplit_dim *sizes = psplit_i_new_elements(at, n_sizes);
  if (!sizes) return NULL;
  type->elements = sizes;
  type->n_elements = (uint32_t)n_sizes;
  return sizes;
}

static void copy_sizes(psplit_dim *to, const psplit_dim *from, uint32_t n_members, int32_t rank) {
  if (n_members > 0) memcpy(to, from, (size_t)n_members * (size_t)rank * sizeof *to);
}

/* The place in [0, n] that an input says, counted from the back where it is negative; `fallback`
 * without that input. False where it is not known, or out of range. */
static bool place_of(psplit_i_site *at, uint32_t input, uint32_t n, uint32_t fallback,
                     uint32_t *out) {
  int64_t place = fallback;
  if (psplit_i_has(at, input) && !psplit_i_int_input(at, input, &place)) return false;
  if (place < -(int64_t)n || place > n) return false;
  *out = (uint32_t)(place < 0 ? place + n : place);
  return true;
}

/* What members of either type have in common: dims[] and the rank. */
static int32_t common(psplit_i_site *at, const psplit_i_vtype *a, const psplit_i_vtype *b,
                      psplit_dim *dims) {
  const psplit_i_vtype merged = psplit_i_type_merge(
    at,
    &(psplit_i_vtype){
      .kind = PSPLIT_TYPE_TENSOR, .elem = a->elem, .rank = a->rank, .dims = a->dims},
    &(psplit_i_vtype){
      .kind = PSPLIT_TYPE_TENSOR, .elem = b->elem, .rank = b->rank, .dims = b->dims});
  if (merged.rank > 0) memcpy(dims, merged.dims, (size_t)merged.rank * sizeof *dims);
  return merged.rank;
}

void psplit_i_infer_sequence_construct(psplit_i_site *at) {
  psplit_dim dims[PSPLIT_MAX_RANK];
  psplit_i_vtype type = *psplit_i_in(at, 0);
  for (uint32_t i = 1; i < at->node->n_inputs; i++) {
    type.rank = common(at, &type, psplit_i_in(at, i), dims);
    type.dims = dims;
  }
  psplit_i_out_sequence(at, 0, type.elem, type.rank, type.dims);
  psplit_dim *sizes = type.rank > 0 ? new_members(at, at->node->n_inputs) : NULL;
  for (uint32_t i = 0; sizes && i < at->node->n_inputs; i++)
    copy_sizes(sizes + (size_t)i * (size_t)type.rank, psplit_i_in(at, i)->dims, 1, type.rank);
}

void psplit_i_infer_sequence_empty(psplit_i_site *at) {
  psplit_i_out_sequence(at, 0, psplit_i_elem_named(at, "dtype", FLOAT), -1, NULL);
  new_members(at, 0);
}

void psplit_i_infer_sequence_insert(psplit_i_site *at) {
  psplit_dim dims[PSPLIT_MAX_RANK];
  const psplit_i_vtype sequence = *psplit_i_in(at, 0), *tensor = psplit_i_in(at, 1);
  const int32_t elem = sequence.elem ? sequence.elem : tensor->elem;
  uint32_t n, place;
  const bool known = members_known(&sequence, &n);
  if (known && n == 0)
    psplit_i_out_sequence(at, 0, elem, tensor->rank, tensor->dims);
  else
    psplit_i_out_sequence(at, 0, elem, common(at, &sequence, tensor, dims), dims);
  if (!known || tensor->rank <= 0 || (n > 0 && tensor->rank != sequence.rank) ||
      !place_of(at, 2, n, n, &place))
    return;
  const size_t rank = (size_t)tensor->rank;
  psplit_dim *sizes = new_members(at, n + 1);
  if (!sizes) return;
  copy_sizes(sizes, sequence.elements, place, tensor->rank);
  copy_sizes(sizes + place * rank, tensor->dims, 1, tensor->rank);
  copy_sizes(sizes + (place + 1) * rank, sequence.elements + place * rank, n - place, tensor->rank);
}

void psplit_i_infer_sequence_erase(psplit_i_site *at) {
  const psplit_i_vtype sequence = *psplit_i_in(at, 0);
  const psplit_i_vtype alone = psplit_i_type_alone(&sequence);
  psplit_i_out_type(at, 0, &alone);
  uint32_t n, place;
  if (!members_known(&sequence, &n) || n == 0 || !place_of(at, 1, n, n - 1, &place) || place == n)
    return;
  psplit_dim *sizes = new_members(at, n - 1);
  if (!sizes) return;
  const size_t before = (size_t)place * (size_t)sequence.rank;
  copy_sizes(sizes, sequence.elements, place, sequence.rank);
  copy_sizes(sizes + before, member_of(&sequence, place + 1), n - place - 1, sequence.rank);
}

void psplit_i_infer_sequence_length(psplit_i_site *at) {
  uint32_t n;
  const bool known = members_known(psplit_i_in(at, 0), &n);
  psplit_i_out(at, 0, INT64, 0, NULL);
  psplit_dim *length = known ? psplit_i_new_elements(at, 1) : NULL;
  if (!length) return;
  *length = psplit_i_dim_const(at->dims, n);
  psplit_i_out_elements(at, 0, length, 1);
}

void psplit_i_infer_sequence_at(psplit_i_site *at) {
  const psplit_i_vtype *type = psplit_i_in(at, 0);
  if (type->kind != PSPLIT_TYPE_SEQUENCE) return;
  const psplit_i_vtype element = psplit_i_type_inside(type);
  uint32_t n, place;
  const bool known = members_known(type, &n) && n > 0 && place_of(at, 1, n, n, &place) && place < n;
  const psplit_dim *own = known ? member_of(type, place) : NULL;
  psplit_dim dims[PSPLIT_MAX_RANK];
  for (int32_t i = 0; i < element.rank; i++) {
    /* Members may differ where the sequence's own sizes are open. */
    dims[i] = element.dims[i];
    if (psplit_i_dim_has_anonymous(at->dims, dims[i]))
      dims[i] = own ? own[i] : psplit_i_dim_fresh(at->dims);
  }
  psplit_i_out(at, 0, element.elem, element.rank, dims);
}

/* The size of all members together along an axis. */
static psplit_dim total_of(psplit_i_site *at, const psplit_i_vtype *sequence, uint32_t n,
                           int32_t axis) {
  psplit_dim total = psplit_i_dim_const(at->dims, 0);
  for (uint32_t i = 0; i < n; i++)
    total = psplit_i_dim_add(at->dims, total, member_of(sequence, i)[axis]);
  return total;
}

void psplit_i_infer_concat_from_sequence(psplit_i_site *at) {
  const psplit_i_vtype *sequence = psplit_i_in(at, 0);
  const bool stack = psplit_i_int(at, "new_axis", 0) != 0;
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t axis;
  const int32_t rank = sequence->rank + (stack ? 1 : 0);
  if (sequence->rank < 0 || rank > PSPLIT_MAX_RANK ||
      !psplit_i_axis(psplit_i_int(at, "axis", 0), rank, &axis)) {
    psplit_i_out(at, 0, sequence->elem, -1, NULL);
    return;
  }
  uint32_t n;
  const bool known = members_known(sequence, &n) && n > 0;
  for (int32_t i = 0; i < rank; i++) {
    const int32_t from = stack && i > axis ? i - 1 : i;
    if (i != axis)
      dims[i] = known ? member_of(sequence, 0)[from] : sequence->dims[from];
    else if (!known)
      dims[i] = psplit_i_dim_fresh(at->dims);
    else
      dims[i] = stack ? psplit_i_dim_const(at->dims, n) : total_of(at, sequence, n, axis);
  }
  psplit_i_out(at, 0, sequence->elem, rank, dims);
}

/* Members of a split into parts: as many as fit of `part`, then what is left. */
static void equal_parts(psplit_i_site *at, int64_t size, int64_t part, int32_t rank,
                        const psplit_dim *dims, int32_t axis) {
  const int64_t n = size / part + (size % part != 0);
  psplit_dim *sizes = n <= PSPLIT_MAX_ELEMENTS ? new_members(at, (uint32_t)n) : NULL;
  for (int64_t i = 0; sizes && i < n; i++, sizes += rank) {
    copy_sizes(sizes, dims, 1, rank);
    if (axis >= 0) sizes[axis] = psplit_i_dim_const(at->dims, i + 1 < n ? part : size - i * part);
  }
}

/* Members of a split whose parts a list gives. */
static void listed_parts(psplit_i_site *at, int32_t rank, const psplit_dim *dims, int32_t axis) {
  int64_t parts[MAX_PARTS];
  uint32_t n;
  if (psplit_i_rank(at, 1) != 1 || !psplit_i_ints(at, 1, parts, MAX_PARTS, &n)) return;
  psplit_dim *sizes = new_members(at, n);
  for (uint32_t i = 0; sizes && i < n; i++, sizes += rank) {
    copy_sizes(sizes, dims, 1, rank);
    sizes[axis] =
      parts[i] >= 0 ? psplit_i_dim_const(at->dims, parts[i]) : psplit_i_dim_fresh(at->dims);
  }
}

void psplit_i_infer_split_to_sequence(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  psplit_dim dims[PSPLIT_MAX_RANK];
  int32_t axis;
  if (data->rank < 0 || !psplit_i_axis(psplit_i_int(at, "axis", 0), data->rank, &axis)) {
    psplit_i_out_sequence(at, 0, data->elem, -1, NULL);
    return;
  }
  int64_t size = 0, part = 1;
  int32_t rank = 0;
  const bool whole = !psplit_i_has(at, 1);
  const bool keep = !whole || psplit_i_int(at, "keepdims", 1) != 0;
  for (int32_t i = 0; i < data->rank; i++)
    if (i != axis || keep) dims[rank++] = data->dims[i];
  const bool sized = psplit_i_dim_is_const(at->dims, data->dims[axis], &size);
  const bool scalar =
    !whole && psplit_i_int_input(at, 1, &part) && psplit_i_rank(at, 1) == 0 && part > 0;
  if (whole && keep) {
    dims[axis] = psplit_i_dim_const(at->dims, 1);
  } else if (!whole) {
    /* Parts are equal where one size divides the axis. */
    dims[axis] = scalar && sized && size % part == 0 ? psplit_i_dim_const(at->dims, part)
                                                     : psplit_i_dim_fresh(at->dims);
  }
  psplit_i_out_sequence(at, 0, data->elem, rank, dims);
  if (sized && (whole || scalar))
    equal_parts(at, size, whole ? 1 : part, rank, dims, keep ? axis : -1);
  else if (!whole && !scalar)
    listed_parts(at, rank, dims, axis);
}

/* An optional around input 0, or around the type that an attribute names. */
void psplit_i_infer_optional(psplit_i_site *at) {
  psplit_i_vtype type = {.rank = -1};
  if (psplit_i_has(at, 0)) {
    type = psplit_i_type_alone(psplit_i_in(at, 0));
    type.inner = type.kind;
  } else {
    const Onnx__AttributeProto *a = psplit_i_attribute(at, "type");
    if (!a || !a->tp) return;
    psplit_i_type_declare(at->s, &type, a->tp);
    type.inner = type.kind;
  }
  type.kind = PSPLIT_TYPE_OPTIONAL;
  psplit_i_out_type(at, 0, &type);
}

void psplit_i_infer_optional_get_element(psplit_i_site *at) {
  const psplit_i_vtype *type = psplit_i_in(at, 0);
  const psplit_i_vtype element =
    type->kind == PSPLIT_TYPE_OPTIONAL ? psplit_i_type_inside(type) : psplit_i_type_alone(type);
  psplit_i_out_type(at, 0, &element);
}

void psplit_i_infer_optional_has_element(psplit_i_site *at) { psplit_i_out(at, 0, BOOL, 0, NULL); }
