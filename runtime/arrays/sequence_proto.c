/* Sequences of tensors as ONNX stores them (.pb). Source: onnx-data.proto, message SequenceProto.
 */
#include <stdlib.h>

#include "arrays.h"
#include "wire.h"

enum { ELEM_TYPE = 2, TENSORS = 3, TENSOR = 1 };

static bool is_tensor(const psplit_i_field *field) {
  return field->number == TENSORS && field->wire_type == PSPLIT_I_WIRE_BYTES;
}

/* How many tensors there are; false where it is no such message. */
static bool count_tensors(const unsigned char *at, const unsigned char *end, size_t *out_n,
                          uint64_t *out_type) {
  psplit_i_field field;
  *out_n = 0;
  *out_type = TENSOR;
  while (at < end) {
    if (!psplit_i_next_field(&at, end, &field)) return false;
    if (field.number == ELEM_TYPE)
      psplit_i_varint_read(field.content, (size_t)(field.end - field.content), out_type);
    *out_n += is_tensor(&field);
  }
  return true;
}

static psplit_code read_tensors(const psplit_i_ort *ort, const char *path, const unsigned char *at,
                                const unsigned char *end, psplit_diag *diag,
                                psplit_i_tensor **tensors, const OrtValue **values) {
  const psplit_i_array_wanted any = {.n_dims = PSPLIT_NONE};
  psplit_code code = PSPLIT_OK;
  psplit_i_field field;
  for (size_t i = 0; at < end && psplit_i_next_field(&at, end, &field);) {
    if (!is_tensor(&field)) continue;
    PSPLIT_TRY(psplit_i_pb_parse(ort, path, field.content, (size_t)(field.end - field.content),
                                 &any, diag, &tensors[i]));
    values[i] = psplit_i_tensor_value(tensors[i]);
    i++;
  }
out:
  return code;
}

psplit_code psplit_i_sequence_parse(const psplit_i_ort *ort, const char *path,
                                    const unsigned char *data, size_t n, psplit_diag *diag,
                                    psplit_i_tensor **out) {
  size_t n_tensors;
  uint64_t type;
  if (!count_tensors(data, data + n, &n_tensors, &type))
    return psplit_i_array_foreign(path, "not a SequenceProto", data, n, diag);
  if (type != TENSOR)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "%s is not a sequence of tensors", path);
  if (!n_tensors)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "%s: an empty sequence, which ONNX Runtime does not make", path);
  psplit_i_tensor **tensors = calloc(n_tensors, sizeof *tensors);
  const OrtValue **values = calloc(n_tensors, sizeof *values);
  OrtValue *made = NULL;
  psplit_code code = tensors && values ? PSPLIT_OK : psplit_i_nomem(diag);
  if (code == PSPLIT_OK) code = read_tensors(ort, path, data, data + n, diag, tensors, values);
  if (code == PSPLIT_OK)
    code = psplit_i_ort_check(
      ort, ort->api.CreateValue(values, n_tensors, ORT_TYPE_SEQUENCE, &made), path, diag);
  if (code == PSPLIT_OK) {
    *out = psplit_i_tensor_wrap(ort, made);
    if (!*out) code = psplit_i_nomem(diag);
  }
  psplit_i_tensors_release(tensors, n_tensors);
  free(tensors);
  free(values);
  return code;
}
