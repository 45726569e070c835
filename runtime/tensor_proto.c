/* Tensors as ONNX stores them (.pb). Source: onnx.proto, message TensorProto. */
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "casts.h"
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
  if (proto->data_type != wanted->data_type &&
      !(wanted->safe_casts && psplit_i_cast_is_safe(proto->data_type, wanted->data_type))) {
    const char *name = psplit_i_element_name(proto->data_type);
    code = psplit_i_fail(diag, PSPLIT_INVALID, "%s holds %s, the input is %s", path,
                         name ? name : "no known type", psplit_i_element_name(wanted->data_type));
    goto out;
  }
  PSPLIT_TRY(
    psplit_i_tensor_create(ort, proto->data_type, proto->dims, proto->n_dims, diag, &tensor));
  PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &view));
  PSPLIT_TRY(fill(proto, &view, path, diag, tensor));
  if (proto->data_type != wanted->data_type)
    PSPLIT_TRY(psplit_i_tensor_cast(ort, wanted->data_type, diag, &tensor));
  *out = tensor;
out:
  if (code != PSPLIT_OK) psplit_i_tensor_release(tensor);
  onnx__tensor_proto__free_unpacked(proto, NULL);
  return code;
}

/* The strings of a tensor, whose texts stand in *out_packed; both are freed by the caller. */
static psplit_code list_strings(const psplit_i_tensor *tensor, const psplit_i_tensor_view *view,
                                psplit_diag *diag, unsigned char **out_packed,
                                ProtobufCBinaryData **out_rows) {
  const size_t n = (size_t)view->n_elements;
  unsigned char *packed = malloc((size_t)view->n_bytes + 1);
  ProtobufCBinaryData *rows = calloc(n + 1, sizeof *rows);
  *out_packed = packed;
  *out_rows = rows;
  if (!packed || !rows) return psplit_i_nomem(diag);
  const psplit_code code = psplit_i_tensor_pack(tensor, view, diag, packed);
  unsigned char *text = packed + n * sizeof(uint64_t);
  for (size_t i = 0; i < n && code == PSPLIT_OK; i++) {
    uint64_t length;
    memcpy(&length, packed + i * sizeof length, sizeof length);
    rows[i] = (ProtobufCBinaryData){(size_t)length, text};
    text += length;
  }
  return code;
}

static psplit_code format_tensor(const psplit_i_tensor *tensor, psplit_diag *diag,
                                 psplit_i_text *out) {
  psplit_i_tensor_view view;
  unsigned char *packed = NULL;
  ProtobufCBinaryData *rows = NULL;
  uint8_t *bytes = NULL;
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &view));
  Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
  proto.n_dims = view.n_dims;
  proto.dims = view.dims;
  proto.has_data_type = true;
  proto.data_type = view.data_type;
  if (view.data_type == STRING) {
    PSPLIT_TRY(list_strings(tensor, &view, diag, &packed, &rows));
    proto.n_string_data = (size_t)view.n_elements;
    proto.string_data = rows;
  } else {
    proto.has_raw_data = true;
    proto.raw_data.len = (size_t)view.n_bytes;
    proto.raw_data.data = view.data;
  }
  const size_t n = onnx__tensor_proto__get_packed_size(&proto);
  bytes = malloc(n + 1);
  if (bytes) {
    onnx__tensor_proto__pack(&proto, bytes);
    psplit_i_text_add(out, bytes, n);
  } else {
    code = psplit_i_nomem(diag);
  }
out:
  free(bytes);
  free(rows);
  free(packed);
  return code;
}

static void put_varint(psplit_i_text *out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) psplit_i_text_add(out, &(char){(char)(value | 0x80)}, 1);
  psplit_i_text_add(out, &(char){(char)value}, 1);
}

/* SequenceProto: field 2 is the kind of its values, field 3 each of them. An OptionalProto of
 * nothing is one without them. */
static psplit_code format_sequence(const psplit_i_tensor *value, const psplit_i_value_kind *kind,
                                   psplit_diag *diag, psplit_i_text *out) {
  static const char KIND_TENSOR[] = {0x10, 1}, KIND_NONE[] = {0x10, 0}, VALUE[] = {0x1a};
  psplit_code code = PSPLIT_OK;
  psplit_i_text_add(out, kind->is_nothing ? KIND_NONE : KIND_TENSOR, sizeof KIND_TENSOR);
  for (size_t i = 0; i < kind->n && code == PSPLIT_OK; i++) {
    psplit_i_tensor *one = NULL;
    psplit_i_text text = {0};
    code = psplit_i_value_of(value, i, diag, &one);
    if (code == PSPLIT_OK) code = format_tensor(one, diag, &text);
    psplit_i_text_add(out, VALUE, sizeof VALUE);
    put_varint(out, text.n);
    psplit_i_text_add(out, text.bytes, text.n);
    out->failed |= text.failed;
    psplit_i_text_fini(&text);
    psplit_i_tensor_release(one);
  }
  return code;
}

psplit_code psplit_i_pb_format(const psplit_i_tensor *value, psplit_diag *diag,
                               psplit_i_text *out) {
  psplit_i_value_kind kind;
  const psplit_code code = psplit_i_value_look(value, diag, &kind);
  if (code != PSPLIT_OK) return code;
  if (kind.is_sequence || kind.is_nothing) return format_sequence(value, &kind, diag, out);
  return format_tensor(value, diag, out);
}
