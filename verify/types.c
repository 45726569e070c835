/* Types and shapes: those of the model's inputs and outputs in the manifest equal the model's
 * declarations, or name what a symbol of these can be inferred to be; those of transferred tensors
 * claim no more than can be inferred from the model. */
#include <inttypes.h>
#include <string.h>

#include "verify.h"

static bool same_dim(psplit_i_manifest_dim a, psplit_i_declared_dim b) {
  if (a.value >= 0 || b.value >= 0) return a.value == b.value;
  return a.param && b.param ? psplit_i_json_says(a.param, b.param) : !a.param && !b.param;
}

/* Whether a symbol that the model declares stands for this one, by what is known of the value. */
static bool is_known_as(const psplit_i_proof *p, const psplit_i_vtype *known, int32_t axis,
                        psplit_i_manifest_dim dim) {
  if (dim.value >= 0 || !dim.param || known->kind != PSPLIT_TYPE_TENSOR || axis >= known->rank)
    return false;
  const char *symbol = psplit_i_shapes_emit_dim(p->shapes, known->dims[axis]).symbol;
  return symbol && psplit_i_json_says(dim.param, symbol);
}

/* `known`: of a value whose symbols may be named as what they are known to be; NULL: they may
 * not. */
static bool same_shape(const psplit_i_proof *p, const psplit_i_shape *shape,
                       const Onnx__TypeProto *type, const psplit_i_vtype *known) {
  const int64_t rank = psplit_i_type_rank(type);
  if (shape->rank != rank) return false;
  for (int32_t a = 0; a < shape->rank; a++) {
    const psplit_i_declared_dim declared = psplit_i_type_dim(type, (uint32_t)a);
    if (!same_dim(shape->dims[a], declared) &&
        !(known && declared.param && is_known_as(p, known, a, shape->dims[a])))
      return false;
  }
  return true;
}

static const psplit_i_vtype *known_type(const psplit_i_proof *p, const char *name) {
  const uint32_t value = psplit_i_graph_find_value(p->graph, name);
  return p->shapes && value != PSPLIT_NONE ? psplit_i_shapes_type(p->shapes, value) : NULL;
}

/* What a dtype starts with, for values that are not dense tensors. */
static const char *word_of(psplit_i_value_kind kind) {
  switch (kind) {
    case PSPLIT_TYPE_SPARSE_TENSOR: return "sparse_tensor(";
    case PSPLIT_TYPE_SEQUENCE: return "sequence(";
    case PSPLIT_TYPE_OPTIONAL: return "optional(";
    case PSPLIT_TYPE_MAP: return "map(";
    case PSPLIT_TYPE_OPAQUE: return "opaque";
    default: return NULL;
  }
}

static bool same_dtype(const char *dtype, const Onnx__TypeProto *type) {
  const psplit_i_value_kind kind = psplit_i_type_kind(type);
  if (kind == PSPLIT_TYPE_TENSOR) {
    const char *name = psplit_i_dtype_name(psplit_i_type_elem(type));
    return name && dtype ? strcmp(name, dtype) == 0 : !name && !dtype;
  }
  const char *word = word_of(kind);
  return !dtype || (word && strncmp(dtype, word, strlen(word)) == 0);
}

psplit_code psplit_i_check_declared(psplit_i_proof *p, const psplit_i_manifest_value *value,
                                    const Onnx__TypeProto *type) {
  if (!same_dtype(value->dtype, type))
    return PSPLIT_I_DIFFERS(p, "the manifest says that \"%s\" is %s, and the model does not",
                            value->name, value->dtype ? value->dtype : "of no known type");
  if (!same_shape(p, &value->shape, type, known_type(p, value->name)))
    return PSPLIT_I_DIFFERS(p, "the manifest gives \"%s\" another shape than the model",
                            value->name);
  return PSPLIT_OK;
}

static bool same_text(const char *a, const char *b) {
  return a && b ? strcmp(a, b) == 0 : !a && !b;
}

/* Whether a port says of a dimension what the model lets one know of it: a number where there is
 * one for sure, else the symbol that the model declares, else at most the one that is known. */
static bool is_dim_of_model(psplit_i_declared_dim port, psplit_i_emit_dim sure,
                            psplit_i_declared_dim declared) {
  if (!same_text(port.denotation, declared.denotation)) return false;
  const bool silent = port.value < 0 && !port.param;
  if (silent && !declared.param && (declared.value < 0 || sure.value < 0)) return true;
  if (sure.value >= 0) return port.value == sure.value;
  return port.value < 0 && same_text(port.param, declared.param ? declared.param : sure.symbol);
}

psplit_code psplit_i_check_port_shape(psplit_i_proof *p, uint32_t t, const Onnx__TypeProto *type) {
  const char *tensor = p->manifest.transfers[t].tensor;
  const int64_t rank = psplit_i_type_rank(type);
  const uint32_t value = psplit_i_graph_find_value(p->graph, tensor);
  const psplit_i_vtype *known = psplit_i_shapes_type(p->shapes, value);
  const Onnx__TypeProto *declared = p->graph->values[value].declared_type;
  const int64_t declared_rank = psplit_i_type_rank(declared);
  const bool alike = declared_rank == known->rank;
  bool good = known->rank == rank || (rank < 0 && declared_rank < 0);
  if (!same_text(psplit_i_type_denotation(type), psplit_i_type_denotation(declared))) good = false;
  for (int64_t a = 0; good && a < rank; a++) {
    const psplit_i_declared_dim none = {.value = -1};
    good = is_dim_of_model(psplit_i_type_dim(type, (uint32_t)a),
                           psplit_i_shapes_emit_dim(p->shapes, known->dims[a]),
                           alike ? psplit_i_type_dim(declared, (uint32_t)a) : none);
  }
  if (!good)
    return PSPLIT_I_DIFFERS(
      p, "stage %" PRIu32 ": \"%s\" crosses with a shape that is not the model's",
      psplit_i_called(p, p->at), tensor);
  return PSPLIT_OK;
}

psplit_code psplit_i_check_transfer_shape(psplit_i_proof *p, uint32_t t,
                                          const Onnx__TypeProto *type) {
  const psplit_i_manifest_transfer *transfer = &p->manifest.transfers[t];
  if (!same_shape(p, &transfer->shape, type, NULL))
    return PSPLIT_I_DIFFERS(p,
                            "transfer %" PRIu64
                            ": the manifest gives \"%s\" another shape than stage "
                            "%" PRIu32 " does",
                            transfer->tag, transfer->tensor, psplit_i_called(p, p->at));
  uint64_t bits = psplit_i_dtype_bits(psplit_i_type_elem(type));
  bool known = bits && transfer->bytes_known && transfer->shape.rank >= 0;
  for (int32_t a = 0; known && a < transfer->shape.rank; a++) {
    known = transfer->shape.dims[a].value >= 0;
    if (known) bits = psplit_i_sat_mul_u64(bits, (uint64_t)transfer->shape.dims[a].value);
  }
  const uint64_t bytes = bits / 8 + (bits % 8 != 0);
  if (known && transfer->bytes != bytes)
    return PSPLIT_I_DIFFERS(p, "transfer %" PRIu64 ": \"%s\" has %" PRIu64 " bytes, not %" PRIu64,
                            transfer->tag, transfer->tensor, bytes, transfer->bytes);
  return PSPLIT_OK;
}
