#include "onnx_fields.h"

#include <string.h>

/* Fields of TypeProto and TensorShapeProto; types of AttributeProto. */
enum {
  TYPE_TENSOR = 1,
  TENSOR_ELEM = 1,
  TENSOR_SHAPE = 2,
  SHAPE_DIM = 1,
  DIM_VALUE = 1,
  DIM_PARAM = 2,
  ATTR_TYPE_INT = 2,
  ATTR_TYPE_STRING = 3,
  ATTR_TYPE_TENSOR = 4,
  ATTR_TYPE_INTS = 7
};

void psplit_i_put_int(psplit_i_text *out, uint32_t field, int64_t value) {
  psplit_i_wire_tag(out, field, PSPLIT_I_WIRE_VARINT);
  psplit_i_wire_varint(out, (uint64_t)value);
}

void psplit_i_put_string(psplit_i_text *out, uint32_t field, const char *value) {
  psplit_i_wire_bytes(out, field, value, strlen(value));
}

/* Appends `message` as a field and empties it. */
static void put_message(psplit_i_text *out, uint32_t field, psplit_i_text *message) {
  psplit_i_wire_bytes(out, field, message->bytes ? message->bytes : "", message->n);
  if (message->failed) out->failed = true;
  psplit_i_text_fini(message);
  *message = (psplit_i_text){0};
}

void psplit_i_put_value(psplit_i_text *out, uint32_t field, const char *name, int32_t elem,
                        int32_t rank, const psplit_i_emit_dim *dims) {
  psplit_i_text dim = {0}, shape = {0}, tensor = {0}, type = {0}, value = {0};
  psplit_i_put_int(&tensor, TENSOR_ELEM, elem);
  for (int32_t i = 0; dims && i < rank; i++) {
    if (dims[i].symbol)
      psplit_i_put_string(&dim, DIM_PARAM, dims[i].symbol);
    else if (dims[i].value >= 0)
      psplit_i_put_int(&dim, DIM_VALUE, dims[i].value);
    put_message(&shape, SHAPE_DIM, &dim);
  }
  if (dims) put_message(&tensor, TENSOR_SHAPE, &shape);
  put_message(&type, TYPE_TENSOR, &tensor);
  psplit_i_put_string(&value, PSPLIT_I_VALUE_INFO_NAME, name);
  put_message(&value, PSPLIT_I_VALUE_INFO_TYPE, &type);
  put_message(out, field, &value);
}

void psplit_i_put_typed_value(psplit_i_text *out, uint32_t field, const char *name,
                              const psplit_i_shapes *shapes, const psplit_i_vtype *type) {
  psplit_i_emit_dim dims[PSPLIT_MAX_RANK];
  for (int32_t i = 0; i < type->rank; i++)
    dims[i] = psplit_i_shapes_emit_dim(shapes, type->dims[i]);
  psplit_i_put_value(out, field, name, type->elem, type->rank, type->rank < 0 ? NULL : dims);
}

void psplit_i_put_node(psplit_i_text *out, const char *op_type, const char *name,
                       const char *const *inputs, const char *const *outputs,
                       const psplit_i_text *attributes) {
  psplit_i_text node = {0};
  for (; *inputs; inputs++) psplit_i_put_string(&node, PSPLIT_I_NODE_INPUT, *inputs);
  for (; *outputs; outputs++) psplit_i_put_string(&node, PSPLIT_I_NODE_OUTPUT, *outputs);
  if (name) psplit_i_put_string(&node, PSPLIT_I_NODE_NAME, name);
  psplit_i_put_string(&node, PSPLIT_I_NODE_OP_TYPE, op_type);
  if (attributes && attributes->n) psplit_i_text_add(&node, attributes->bytes, attributes->n);
  put_message(out, PSPLIT_I_GRAPH_NODE, &node);
}

static void put_attribute(psplit_i_text *out, const char *name, int type, psplit_i_text *payload) {
  psplit_i_text attribute = {0};
  psplit_i_put_string(&attribute, PSPLIT_I_ATTRIBUTE_NAME, name);
  if (payload->n) psplit_i_text_add(&attribute, payload->bytes, payload->n);
  psplit_i_put_int(&attribute, PSPLIT_I_ATTRIBUTE_TYPE, type);
  if (payload->failed) out->failed = true;
  psplit_i_text_fini(payload);
  put_message(out, PSPLIT_I_NODE_ATTRIBUTE, &attribute);
}

void psplit_i_put_attr_int(psplit_i_text *out, const char *name, int64_t value) {
  psplit_i_text payload = {0};
  psplit_i_put_int(&payload, PSPLIT_I_ATTRIBUTE_I, value);
  put_attribute(out, name, ATTR_TYPE_INT, &payload);
}

void psplit_i_put_attr_ints(psplit_i_text *out, const char *name, const int64_t *values, size_t n) {
  psplit_i_text payload = {0};
  for (size_t i = 0; i < n; i++) psplit_i_put_int(&payload, PSPLIT_I_ATTRIBUTE_INTS, values[i]);
  put_attribute(out, name, ATTR_TYPE_INTS, &payload);
}

void psplit_i_put_attr_text(psplit_i_text *out, const char *name, const char *value) {
  psplit_i_text payload = {0};
  psplit_i_put_string(&payload, PSPLIT_I_ATTRIBUTE_S, value);
  put_attribute(out, name, ATTR_TYPE_STRING, &payload);
}

void psplit_i_add_numbers(psplit_i_text *out, int32_t elem, const void *bytes, size_t n) {
  static const uint16_t ONE = 1;
  uint8_t first;
  memcpy(&first, &ONE, 1);
  const size_t width = psplit_i_dtype_bits(elem) / 8;
  if (first || width < 2) {
    psplit_i_text_add(out, bytes, n);
    return;
  }
  const uint8_t *from = bytes;
  for (size_t i = 0; i + width <= n; i += width)
    for (size_t b = width; b > 0; b--) psplit_i_text_add(out, &from[i + b - 1], 1);
}

void psplit_i_put_raw(psplit_i_text *out, int32_t elem, const void *bytes, size_t n) {
  psplit_i_text raw = {0};
  psplit_i_add_numbers(&raw, elem, bytes, n);
  psplit_i_wire_bytes(out, PSPLIT_I_TENSOR_RAW_DATA, raw.bytes, raw.n);
  if (raw.failed) out->failed = true;
  psplit_i_text_fini(&raw);
}

void psplit_i_put_attr_tensor(psplit_i_text *out, const char *name, int32_t elem, uint32_t rank,
                              const int64_t *dims, const void *bytes, size_t n) {
  psplit_i_text tensor = {0}, payload = {0};
  for (uint32_t a = 0; a < rank; a++) psplit_i_put_int(&tensor, PSPLIT_I_TENSOR_DIMS, dims[a]);
  psplit_i_put_int(&tensor, PSPLIT_I_TENSOR_DATA_TYPE, elem);
  psplit_i_put_raw(&tensor, elem, bytes, n);
  put_message(&payload, PSPLIT_I_ATTRIBUTE_T, &tensor);
  put_attribute(out, name, ATTR_TYPE_TENSOR, &payload);
}
