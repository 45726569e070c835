/* The values of an initializer. */
#include <string.h>

#include "model.h"
#include "tensor_inside.h"

static psplit_code find(const psplit_model *model, const char *name, psplit_diag *diag,
                        psplit_i_tensor *out) {
  const psplit_i_graph *graph = psplit_i_model_graph(model);
  const uint32_t value = psplit_i_graph_find_value(graph, name);
  const uint32_t at = value == PSPLIT_NONE ? PSPLIT_NONE : graph->values[value].initializer;
  if (at == PSPLIT_NONE)
    return psplit_i_fail(diag, PSPLIT_USAGE, "the model has no initializer \"%s\"", name);
  *out = psplit_i_graph_initializer(graph, at);
  return PSPLIT_OK;
}

psplit_code psplit_model_initializer(const psplit_model *model, const char *name, psplit_diag *diag,
                                     psplit_initializer *out) {
  psplit_i_tensor tensor;
  psplit_code code;
  PSPLIT_TRY(find(model, name, diag, &tensor));
  *out = (psplit_initializer){.data_type = tensor.data_type,
                              .n_dims = tensor.n_dims,
                              .dims = tensor.dims,
                              .n_bytes = tensor.data_bytes};
out:
  return code;
}

/* Floats of a typed field, all in memory or all left in the file; *out_good: they were. */
static psplit_code read_floats(const psplit_model *model, const psplit_i_tensor *tensor,
                               psplit_diag *diag, uint8_t *out, bool *out_good) {
  psplit_code code = PSPLIT_OK;
  const Onnx__TensorProto *proto = tensor->proto;
  const uint32_t field = psplit_i_typed_field(tensor->data_type);
  const size_t n = (size_t)tensor->data_bytes;
  const bool is_float = field == FLOAT_DATA_FIELD, is_double = field == DOUBLE_DATA_FIELD;
  const void *small = is_float ? (const void *)proto->float_data : (const void *)proto->double_data;
  const size_t n_small = is_float    ? proto->n_float_data * sizeof(float)
                         : is_double ? proto->n_double_data * sizeof(double)
                                     : 0;
  *out_good = n_small == n;
  if (*out_good) memcpy(out, small, n);
  if (n_small || !(is_float || is_double) || psplit_i_view_bytes(proto, field, NULL) != n)
    return PSPLIT_OK;
  size_t at = 0;
  for (size_t i = 0; i < proto->n_payload_view; i++) {
    const Onnx__PayloadView *view = proto->payload_view[i];
    if (view->field != field) continue;
    PSPLIT_TRY(psplit_i_model_read(model, 0, view->offset, out + at, (size_t)view->bytes, diag));
    at += (size_t)view->bytes;
  }
  *out_good = true;
out:
  return code;
}

psplit_code psplit_model_read_initializer(const psplit_model *model, const char *name, void *out,
                                          uint64_t n_bytes, psplit_diag *diag) {
  psplit_i_tensor tensor;
  psplit_i_payload payload;
  bool good;
  psplit_code code;
  PSPLIT_TRY(find(model, name, diag, &tensor));
  if (tensor.data_bytes != n_bytes)
    return psplit_i_fail(diag, PSPLIT_USAGE, "initializer \"%s\" has another size", name);
  if (!n_bytes) return PSPLIT_OK;
  if (psplit_i_tensor_payload(model, tensor.proto, &payload) && payload.bytes == n_bytes) {
    if (!payload.memory)
      return psplit_i_model_read(model, payload.file, payload.offset, out, (size_t)n_bytes, diag);
    memcpy(out, payload.memory, (size_t)n_bytes);
    return PSPLIT_OK;
  }
  PSPLIT_TRY(read_floats(model, &tensor, diag, out, &good));
  if (!good)
    PSPLIT_FAIL(
      psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                    "initializer \"%s\" is stored in another way than as raw bytes, float "
                    "or double",
                    name));
out:
  return code;
}
