/* Sequences of tensors as ONNX stores them (.pb). Source: onnx-data.proto, message SequenceProto.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "arrays.h"

/* What is left of a message. */
typedef struct rest {
  const unsigned char *at;
  size_t n;
} rest;

static bool take_varint(rest *r, uint64_t *out) {
  *out = 0;
  for (unsigned shift = 0; r->n && shift < 64; shift += 7) {
    const unsigned char byte = *r->at++;
    r->n--;
    *out |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5, ELEM_TYPE = 2, TENSORS = 3, TENSOR = 1 };

/* The next field: its number, and its bytes or its number's value; false where it is torn. */
static bool take_field(rest *r, uint64_t *out_field, uint64_t *out_value, rest *out_bytes) {
  uint64_t tag;
  *out_bytes = (rest){0};
  *out_value = 0;
  if (!take_varint(r, &tag)) return false;
  *out_field = tag >> 3;
  size_t skipped = 0;
  switch (tag & 7) {
    case VARINT: return take_varint(r, out_value);
    case BYTES:
      if (!take_varint(r, out_value) || *out_value > r->n) return false;
      *out_bytes = (rest){r->at, (size_t)*out_value};
      skipped = out_bytes->n;
      break;
    case FIXED32: skipped = 4; break;
    case FIXED64: skipped = 8; break;
    default: return false;
  }
  if (skipped > r->n) return false;
  r->at += skipped;
  r->n -= skipped;
  return true;
}

/* How many tensors there are; false where it is no such message. */
static bool count_tensors(rest r, size_t *out_n, uint64_t *out_type) {
  uint64_t field, value;
  rest bytes;
  *out_n = 0;
  *out_type = TENSOR;
  while (r.n) {
    if (!take_field(&r, &field, &value, &bytes)) return false;
    if (field == ELEM_TYPE) *out_type = value;
    *out_n += field == TENSORS && bytes.at;
  }
  return true;
}

static psplit_code read_tensors(const psplit_i_ort *ort, const char *path, rest r,
                                psplit_diag *diag, psplit_i_tensor **tensors,
                                const OrtValue **values) {
  const psplit_i_array_wanted any = {.n_dims = PSPLIT_NONE};
  psplit_code code = PSPLIT_OK;
  uint64_t field, value;
  rest bytes;
  for (size_t i = 0; r.n && take_field(&r, &field, &value, &bytes);) {
    if (field != TENSORS || !bytes.at) continue;
    PSPLIT_TRY(psplit_i_pb_parse(ort, path, bytes.at, bytes.n, &any, diag, &tensors[i]));
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
  if (!count_tensors((rest){data, n}, &n_tensors, &type))
    return psplit_i_array_foreign(path, "not a SequenceProto", data, n, diag);
  if (type != TENSOR)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "%s is no sequence of tensors", path);
  if (!n_tensors)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "%s: an empty sequence, which ONNX Runtime does not make", path);
  psplit_i_tensor **tensors = calloc(n_tensors, sizeof *tensors);
  const OrtValue **values = calloc(n_tensors, sizeof *values);
  OrtValue *made = NULL;
  psplit_code code = tensors && values ? PSPLIT_OK : psplit_i_nomem(diag);
  if (code == PSPLIT_OK) code = read_tensors(ort, path, (rest){data, n}, diag, tensors, values);
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
