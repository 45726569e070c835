/* Declared types: combining them with inferred ones, and types of values with two sources. */
#include <string.h>

#include "infer.h"

psplit_dim psplit_i_symbol(psplit_i_shapes *s, const char *name) {
  for (size_t i = 0; i < s->n_bindings; i++)
    if (strcmp(s->bindings[i].name, name) == 0) {
      s->met[i] = true;
      return psplit_i_dim_const(s->dims, s->bindings[i].value);
    }
  return psplit_i_dim_symbol(s->dims, name);
}

static psplit_dim declared_dim(psplit_i_shapes *s, psplit_i_declared_dim dim) {
  if (dim.value >= 0) return psplit_i_dim_const(s->dims, dim.value);
  if (dim.param && *dim.param) return psplit_i_symbol(s, dim.param);
  return PSPLIT_NONE;
}

/* Tensor part of a declared type, and the kinds around it. */
static const Onnx__TypeProto *tensor_part(const Onnx__TypeProto *type, uint8_t *kind,
                                          uint8_t *inner) {
  *kind = (uint8_t)psplit_i_type_kind(type);
  *inner = PSPLIT_TYPE_UNKNOWN;
  for (int level = 0; level < 3 && type; level++) {
    const psplit_i_value_kind here = psplit_i_type_kind(type);
    if (level == 1) *inner = (uint8_t)here;
    if (here == PSPLIT_TYPE_TENSOR || here == PSPLIT_TYPE_SPARSE_TENSOR) return type;
    if (here != PSPLIT_TYPE_SEQUENCE && here != PSPLIT_TYPE_OPTIONAL) return NULL;
    type = psplit_i_type_inner(type);
  }
  return NULL;
}

static void declare_dims(psplit_i_shapes *s, psplit_i_vtype *type,
                         const Onnx__TypeProto *declared) {
  psplit_dim *merged = NULL;
  for (int32_t axis = 0; axis < type->rank; axis++) {
    const psplit_dim said = declared_dim(s, psplit_i_type_dim(declared, (uint32_t)axis));
    if (said == PSPLIT_NONE || said == type->dims[axis]) continue;
    const psplit_dim own = type->dims[axis];
    int64_t number;
    if (psplit_i_dim_has_anonymous(s->dims, own) &&
        (psplit_i_dim_is_anonymous(s->dims, own) || !psplit_i_dim_differ(s->dims, own, said))) {
      if (!merged) {
        merged = psplit_i_shapes_alloc(s, (size_t)type->rank, sizeof *merged);
        if (!merged) return;
        memcpy(merged, type->dims, (size_t)type->rank * sizeof *merged);
        type->dims = merged;
      }
      merged[axis] = said;
    } else if (psplit_i_dim_is_const(s->dims, said, &number) &&
               psplit_i_dim_differ(s->dims, own, said)) {
      type->declared_wrong = true;
    }
  }
}

void psplit_i_type_declare(psplit_i_shapes *s, psplit_i_vtype *type,
                           const Onnx__TypeProto *declared) {
  if (!declared) return;
  uint8_t kind, inner;
  const Onnx__TypeProto *tensor = tensor_part(declared, &kind, &inner);
  if (kind == PSPLIT_TYPE_UNKNOWN) return;
  if (type->kind == PSPLIT_TYPE_UNKNOWN) {
    type->kind = kind;
    type->inner = inner;
    type->elem = 0;
    type->rank = -1;
  } else if (type->kind != kind) {
    type->declared_wrong = true;
    return;
  }
  if (type->inner == PSPLIT_TYPE_UNKNOWN) type->inner = inner;
  if (!tensor) return;
  const int32_t elem = psplit_i_type_elem(tensor);
  if (elem != 0 && elem != type->elem) {
    /* No runtime takes a model whose operator makes another type, so the model's word is kept. */
    type->elem = elem;
    type->elements = NULL;
    type->n_elements = 0;
  }
  const int64_t rank = psplit_i_type_rank(tensor);
  if (rank < 0 || rank > PSPLIT_MAX_RANK) return;
  if (type->rank < 0) {
    psplit_dim *dims = psplit_i_shapes_alloc(s, (size_t)rank, sizeof *dims);
    if (!dims) return;
    for (uint32_t axis = 0; axis < rank; axis++) {
      const psplit_dim dim = declared_dim(s, psplit_i_type_dim(tensor, axis));
      dims[axis] = dim == PSPLIT_NONE ? psplit_i_dim_fresh(s->dims) : dim;
    }
    type->rank = (int32_t)rank;
    type->dims = dims;
  } else if (type->rank != rank) {
    type->declared_wrong = true;
  } else {
    declare_dims(s, type, tensor);
  }
}

psplit_i_vtype psplit_i_type_merge(psplit_i_site *at, const psplit_i_vtype *a,
                                   const psplit_i_vtype *b) {
  psplit_i_vtype merged = *a;
  merged.declared_wrong = merged.is_weight = false;
  merged.elements = NULL;
  merged.n_elements = 0;
  if (a->kind == PSPLIT_TYPE_UNKNOWN || a->kind != b->kind) return (psplit_i_vtype){.rank = -1};
  if (a->inner != b->inner) merged.inner = PSPLIT_TYPE_UNKNOWN;
  if (a->elem != b->elem) merged.elem = 0;
  if (a->rank != b->rank) {
    merged.rank = -1;
    merged.dims = NULL;
    return merged;
  }
  psplit_dim *dims = NULL;
  for (int32_t axis = 0; axis < a->rank; axis++) {
    if (a->dims[axis] == b->dims[axis]) continue;
    if (!dims) {
      dims = psplit_i_shapes_alloc(at->s, (size_t)a->rank, sizeof *dims);
      if (!dims) return (psplit_i_vtype){.rank = -1};
      memcpy(dims, a->dims, (size_t)a->rank * sizeof *dims);
      merged.dims = dims;
    }
    dims[axis] = psplit_i_dim_fresh(at->dims);
  }
  if (!dims && a->kind == PSPLIT_TYPE_TENSOR && a->elements && b->elements &&
      a->n_elements == b->n_elements) {
    psplit_dim *elements = psplit_i_new_elements(at, a->n_elements);
    if (!elements) return merged;
    for (uint32_t i = 0; i < a->n_elements; i++)
      elements[i] =
        a->elements[i] == b->elements[i] ? a->elements[i] : psplit_i_dim_fresh_value(at->dims);
    merged.elements = elements;
    merged.n_elements = a->n_elements;
  }
  return merged;
}
