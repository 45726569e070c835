/* Tensors as ONNX stores them (.pb). Source: onnx.proto, message TensorProto. */
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "onnx.pb-c.h"

enum { STRING = 8 };

/* Numbers of a typed field, narrowed to the element. False where the counts do not agree. */
static bool narrow(const Onnx__TensorProto *proto, const psplit_i_tensor_view *view) {
  const uint32_t bits = psplit_i_element_bits(view->data_type), bytes = (bits + 7) / 8;
  const uint64_t n = bits < 8 ? view->n_bytes : view->n_elements;
  char *out = view->data;
  if (proto->n_float_data && proto->n_float_data * sizeof(float) == view->n_bytes)
    return memcpy(out, proto->float_data, (size_t)view->n_bytes), true;
  if (proto->n_double_data && proto->n_double_data * sizeof(double) == view->n_bytes)
    return memcpy(out, proto->double_data, (size_t)view->n_bytes), true;
  if (proto->n_int64_data && proto->n_int64_data * sizeof(int64_t) == view->n_bytes)
    return memcpy(out, proto->int64_data, (size_t)view->n_bytes), true;
  if (proto->n_uint64_data == n && n && bytes <= 8) {
    for (uint64_t i = 0; i < n; i++) memcpy(out + i * bytes, &proto->uint64_data[i], bytes);
    return true;
  }
  if (proto->n_int32_data == n && n && bytes <= 4) {
    for (uint64_t i = 0; i < n; i++) memcpy(out + i * bytes, &proto->int32_data[i], bytes);
    return true;
  }
  return n == 0;
}

static psplit_code fill(const Onnx__TensorProto *proto, const psplit_i_tensor_view *view,
                        const char *path, psplit_diag *diag, psplit_i_tensor *tensor) {
  psplit_code code = PSPLIT_OK;
  if (view->data_type == STRING) {
    if (proto->n_string_data != view->n_elements)
      return psplit_i_fail(diag, PSPLIT_INVALID, "%s: strings and dims do not agree", path);
    for (size_t i = 0; i < proto->n_string_data && code == PSPLIT_OK; i++)
      code = psplit_i_tensor_set_string(tensor, i, (const char *)proto->string_data[i].data,
                                        proto->string_data[i].len, diag);
    return code;
  }
  if (proto->has_raw_data && proto->raw_data.len == view->n_bytes) {
    if (view->n_bytes) memcpy(view->data, proto->raw_data.data, (size_t)view->n_bytes);
    return PSPLIT_OK;
  }
  if (!proto->has_raw_data && narrow(proto, view)) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_INVALID, "%s: data and dims do not agree", path);
}

psplit_code psplit_i_pb_parse(const psplit_i_ort *ort, const char *path, const unsigned char *data,
                              size_t n, const psplit_i_array_wanted *wanted, psplit_diag *diag,
                              psplit_i_tensor **out) {
  Onnx__TensorProto *proto = onnx__tensor_proto__unpack(NULL, n, data);
  if (!proto) return psplit_i_fail(diag, PSPLIT_MALFORMED, "%s is not a TensorProto", path);
  psplit_i_tensor *tensor = NULL;
  psplit_i_tensor_view view;
  psplit_code code;
  if (proto->n_external_data) {
    code = psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "%s has external data", path);
    goto out;
  }
  if (proto->data_type != wanted->data_type) {
    const char *name = psplit_i_element_name(proto->data_type);
    code = psplit_i_fail(diag, PSPLIT_INVALID, "%s holds %s, the input is %s", path,
                         name ? name : "no known type", psplit_i_element_name(wanted->data_type));
    goto out;
  }
  PSPLIT_TRY(
    psplit_i_tensor_create(ort, proto->data_type, proto->dims, proto->n_dims, diag, &tensor));
  PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &view));
  PSPLIT_TRY(fill(proto, &view, path, diag, tensor));
  *out = tensor;
out:
  if (code != PSPLIT_OK) psplit_i_tensor_release(tensor);
  onnx__tensor_proto__free_unpacked(proto, NULL);
  return code;
}

psplit_code psplit_i_pb_format(const psplit_i_tensor *tensor, psplit_diag *diag,
                               psplit_i_text *out) {
  psplit_i_tensor_view view;
  psplit_code code = psplit_i_tensor_look(tensor, diag, &view);
  if (code != PSPLIT_OK) return code;
  Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
  proto.n_dims = view.n_dims;
  proto.dims = view.dims;
  proto.has_data_type = true;
  proto.data_type = view.data_type;
  proto.has_raw_data = true;
  proto.raw_data.len = (size_t)view.n_bytes;
  proto.raw_data.data = view.data;
  const size_t n = onnx__tensor_proto__get_packed_size(&proto);
  uint8_t *bytes = malloc(n + 1);
  if (!bytes) return psplit_i_nomem(diag);
  onnx__tensor_proto__pack(&proto, bytes);
  psplit_i_text_add(out, bytes, n);
  free(bytes);
  return PSPLIT_OK;
}
