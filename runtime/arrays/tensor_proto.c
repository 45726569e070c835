/* Tensors as ONNX stores them (.pb). Source: onnx.proto, message TensorProto. */
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "casts.h"
#include "onnx.pb-c.h"
#include "wire.h"

enum { F32 = 1, I64 = 7, STRING = 8, F64 = 11, C64 = 14, C128 = 15 };

/* What a tensor of these dims takes. */
typedef struct size {
  int32_t data_type;
  uint64_t n_elements, n_bytes;
} size;

/* Where its numbers stand: one after the other where `step` is 0, else each in the first bytes of
 * so many. */
typedef struct numbers {
  const void *from;
  size_t step;
} numbers;

/* False where the counts do not agree. */
static bool find_numbers(const Onnx__TensorProto *proto, const size *of, numbers *out) {
  const uint32_t bits = psplit_i_element_bits(of->data_type), bytes = (bits + 7) / 8;
  const uint64_t n = bits < 8 ? of->n_bytes : of->n_elements;
  *out = (numbers){0};
  if (proto->has_raw_data) {
    out->from = proto->raw_data.data;
    return proto->raw_data.len == of->n_bytes;
  }
  const int32_t type = of->data_type;
  if ((type == F32 || type == C64) && proto->n_float_data * sizeof(float) == of->n_bytes)
    out->from = proto->float_data;
  else if ((type == F64 || type == C128) && proto->n_double_data * sizeof(double) == of->n_bytes)
    out->from = proto->double_data;
  else if (type == I64 && proto->n_int64_data * sizeof(int64_t) == of->n_bytes)
    out->from = proto->int64_data;
  else if (proto->n_uint64_data == n && n && bytes <= 8)
    *out = (numbers){proto->uint64_data, sizeof *proto->uint64_data};
  else if (proto->n_int32_data == n && n && bytes <= 4)
    *out = (numbers){proto->int32_data, sizeof *proto->int32_data};
  else
    return of->n_bytes == 0;
  return true;
}

/* Whether the file has as much data as its dims say: before memory is taken for it. */
static psplit_code check_counts(const Onnx__TensorProto *proto, const char *path, psplit_diag *diag,
                                size *out, numbers *out_numbers) {
  out->data_type = proto->data_type;
  if (proto->n_dims > PSPLIT_I_MAX_RANK ||
      !psplit_i_tensor_size(proto->data_type, proto->dims, proto->n_dims, &out->n_elements,
                            &out->n_bytes))
    return psplit_i_fail(diag, PSPLIT_LIMIT,
                         "%s: a tensor is too large, or has a negative dimension", path);
  if (proto->data_type == STRING && proto->n_string_data != out->n_elements)
    return psplit_i_fail(diag, PSPLIT_INVALID, "%s: strings and dims do not agree", path);
  if (proto->data_type != STRING && !find_numbers(proto, out, out_numbers))
    return psplit_i_fail(diag, PSPLIT_INVALID, "%s: data and dims do not agree", path);
  return PSPLIT_OK;
}

static psplit_code fill_strings(const Onnx__TensorProto *proto, psplit_diag *diag,
                                psplit_i_tensor *tensor) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < proto->n_string_data && code == PSPLIT_OK; i++)
    code = psplit_i_tensor_set_string(tensor, i, (const char *)proto->string_data[i].data,
                                      proto->string_data[i].len, diag);
  return code;
}

static void fill_numbers(const size *of, const numbers *found, char *out) {
  const size_t width = (psplit_i_element_bits(of->data_type) + 7) / 8;
  if (!of->n_bytes) return;
  if (!found->step) {
    memcpy(out, found->from, (size_t)of->n_bytes);
    return;
  }
  for (uint64_t i = 0; i < of->n_bytes / width; i++)
    memcpy(out + i * width, (const char *)found->from + i * found->step, width);
}

/* Of protobuf-c, which does not tell what is no message from what there is no memory for. */
static void *take_memory(void *failed, size_t n) {
  void *memory = malloc(n);
  if (!memory) *(bool *)failed = true;
  return memory;
}

static void give_memory(void *failed, void *memory) {
  (void)failed;
  free(memory);
}

psplit_code psplit_i_pb_parse(const psplit_i_ort *ort, const char *path, const unsigned char *data,
                              size_t n, const psplit_i_array_wanted *wanted, psplit_diag *diag,
                              psplit_i_tensor **out) {
  bool failed = false;
  ProtobufCAllocator allocator = {take_memory, give_memory, &failed};
  Onnx__TensorProto *proto = onnx__tensor_proto__unpack(&allocator, n, data);
  if (failed) return psplit_i_nomem(diag);
  if (!proto) return psplit_i_array_foreign(path, "not a TensorProto", data, n, diag);
  psplit_i_tensor *tensor = NULL;
  psplit_i_tensor_view view;
  size of;
  numbers found = {0};
  psplit_code code;
  if (proto->n_external_data) {
    code = psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "%s has external data", path);
    goto out;
  }
  const int32_t type = wanted->data_type ? wanted->data_type : proto->data_type;
  if (proto->data_type != type &&
      !(wanted->safe_casts && psplit_i_cast_is_safe(proto->data_type, type))) {
    const char *name = psplit_i_element_name(proto->data_type);
    code = psplit_i_fail(diag, PSPLIT_INVALID, "%s holds %s, the input is %s", path,
                         name ? name : "no known type", psplit_i_element_name(type));
    goto out;
  }
  PSPLIT_TRY(check_counts(proto, path, diag, &of, &found));
  PSPLIT_TRY(
    psplit_i_tensor_make(ort, proto->data_type, proto->dims, proto->n_dims, diag, &tensor, &view));
  if (proto->data_type == STRING)
    PSPLIT_TRY(fill_strings(proto, diag, tensor));
  else
    fill_numbers(&of, &found, view.data);
  if (proto->data_type != type) PSPLIT_TRY(psplit_i_tensor_cast(ort, type, diag, &tensor));
  *out = tensor;
out:
  if (code != PSPLIT_OK) psplit_i_tensor_release(tensor);
  onnx__tensor_proto__free_unpacked(proto, &allocator);
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

/* SequenceProto: field 2 is the kind of its values, field 3 each of them. An OptionalProto of
 * nothing is one without them. */
static psplit_code format_sequence(const psplit_i_tensor *value, const psplit_i_value_view *kind,
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
    psplit_i_wire_varint(out, text.n);
    psplit_i_text_add(out, text.bytes, text.n);
    out->failed |= text.failed;
    psplit_i_text_fini(&text);
    psplit_i_tensor_release(one);
  }
  return code;
}

psplit_code psplit_i_pb_format(const psplit_i_tensor *value, psplit_diag *diag,
                               psplit_i_text *out) {
  psplit_i_value_view kind;
  const psplit_code code = psplit_i_value_look(value, diag, &kind);
  if (code != PSPLIT_OK) return code;
  if (kind.is_sequence || kind.is_nothing) return format_sequence(value, &kind, diag, out);
  return format_tensor(value, diag, out);
}
