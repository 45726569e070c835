#include "tensor.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ort.h"

struct psplit_i_tensor {
  const psplit_i_ort *ort;
  OrtValue *value;
  atomic_uint holders;
};

static const struct {
  uint8_t proto, ort, bits;
  const char *name;
} TYPES[] = {
#define PSPLIT_I_ELEMENT(proto, ort, name, bits) {proto, ort, bits, name},
#include "elements.def"
};
enum { N_TYPES = sizeof TYPES / sizeof *TYPES };

uint32_t psplit_i_element_bits(int32_t data_type) {
  return data_type >= 1 && data_type <= N_TYPES ? TYPES[data_type - 1].bits : 0;
}

const char *psplit_i_element_name(int32_t data_type) {
  return data_type >= 1 && data_type <= N_TYPES ? TYPES[data_type - 1].name : NULL;
}

int32_t psplit_i_element_from_ort(int type) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (TYPES[i].ort == type) return TYPES[i].proto;
  return 0;
}

bool psplit_i_tensor_size(int32_t data_type, const int64_t *dims, size_t n_dims,
                          uint64_t *out_elements, uint64_t *out_bytes) {
  uint64_t n = 1, bits;
  for (size_t i = 0; i < n_dims; i++)
    if (dims[i] < 0 || !psplit_i_mul_u64(n, (uint64_t)dims[i], &n)) return false;
  if (!psplit_i_mul_u64(n, psplit_i_element_bits(data_type), &bits) || bits > UINT64_MAX - 7)
    return false;
  *out_elements = n;
  *out_bytes = (bits + 7) / 8;
  return true;
}

psplit_i_tensor *psplit_i_tensor_wrap(const psplit_i_ort *ort, OrtValue *value) {
  psplit_i_tensor *tensor = malloc(sizeof *tensor);
  if (!tensor) {
    ort->api.ReleaseValue(value);
    return NULL;
  }
  tensor->ort = ort;
  tensor->value = value;
  atomic_init(&tensor->holders, 1);
  return tensor;
}

psplit_code psplit_i_tensor_create(const psplit_i_ort *ort, int32_t data_type, const int64_t *dims,
                                   size_t n_dims, psplit_diag *diag, psplit_i_tensor **out) {
  uint64_t n_elements, n_bytes;
  if (!psplit_i_element_name(data_type))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "a tensor of data type %d", (int)data_type);
  if (n_dims > PSPLIT_I_MAX_RANK ||
      !psplit_i_tensor_size(data_type, dims, n_dims, &n_elements, &n_bytes) ||
      n_bytes > SIZE_MAX / 2)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "a tensor is too large, or has a negative dimension");
  OrtValue *value = NULL;
  psplit_code code;
  PSPLIT_TRY(psplit_i_ort_check(
    ort,
    ort->api.CreateTensorAsOrtValue(ort->allocator, dims, n_dims, TYPES[data_type - 1].ort, &value),
    "creating a tensor", diag));
  psplit_i_tensor *tensor = psplit_i_tensor_wrap(ort, value);
  if (!tensor) return psplit_i_nomem(diag);
  *out = tensor;
out:
  return code;
}

psplit_i_tensor *psplit_i_tensor_hold(psplit_i_tensor *tensor) {
  atomic_fetch_add_explicit(&tensor->holders, 1, memory_order_relaxed);
  return tensor;
}

void psplit_i_tensor_release(psplit_i_tensor *tensor) {
  if (!tensor || atomic_fetch_sub_explicit(&tensor->holders, 1, memory_order_acq_rel) != 1) return;
  tensor->ort->api.ReleaseValue(tensor->value);
  free(tensor);
}

void psplit_i_tensors_release(psplit_i_tensor **tensors, size_t n) {
  for (size_t i = 0; tensors && i < n; i++) {
    psplit_i_tensor_release(tensors[i]);
    tensors[i] = NULL;
  }
}

OrtValue *psplit_i_tensor_value(const psplit_i_tensor *tensor) { return tensor->value; }

psplit_code psplit_i_tensor_is_dense(const psplit_i_tensor *tensor, psplit_diag *diag, bool *out) {
  const psplit_i_ort *ort = tensor->ort;
  int is_tensor = 0;
  psplit_code code;
  PSPLIT_TRY(
    psplit_i_ort_check(ort, ort->api.IsTensor(tensor->value, &is_tensor), "a tensor", diag));
  *out = is_tensor;
out:
  return code;
}

psplit_code psplit_i_tensor_look(const psplit_i_tensor *tensor, psplit_diag *diag,
                                 psplit_i_tensor_view *out) {
  const psplit_i_ort *ort = tensor->ort;
  static const char WHAT[] = "a tensor";
  psplit_i_tensor_view view = {0};
  OrtShapeInfo *info = NULL;
  bool is_dense = false;
  int type;
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_is_dense(tensor, diag, &is_dense));
  if (!is_dense)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "a value is not a dense tensor (sequence or map)");
  PSPLIT_TRY(
    psplit_i_ort_check(ort, ort->api.GetTensorTypeAndShape(tensor->value, &info), WHAT, diag));
  PSPLIT_TRY(psplit_i_ort_check(ort, ort->api.GetTensorElementType(info, &type), WHAT, diag));
  PSPLIT_TRY(psplit_i_ort_check(ort, ort->api.GetDimensionsCount(info, &view.n_dims), WHAT, diag));
  view.data_type = psplit_i_element_from_ort(type);
  if (!view.data_type || view.n_dims > PSPLIT_I_MAX_RANK) {
    code = psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "a tensor of %zu dimensions and type %d",
                         view.n_dims, type);
    goto out;
  }
  PSPLIT_TRY(
    psplit_i_ort_check(ort, ort->api.GetDimensions(info, view.dims, view.n_dims), WHAT, diag));
  if (!psplit_i_tensor_size(view.data_type, view.dims, view.n_dims, &view.n_elements,
                            &view.n_bytes)) {
    code = psplit_i_fail(diag, PSPLIT_LIMIT, "a tensor is too large");
    goto out;
  }
  if (type == ORT_STRING) {
    size_t n_text = 0;
    PSPLIT_TRY(psplit_i_ort_check(ort, ort->api.GetStringTensorDataLength(tensor->value, &n_text),
                                  WHAT, diag));
    view.n_bytes = view.n_elements * sizeof(uint64_t) + n_text;
  } else {
    PSPLIT_TRY(psplit_i_ort_check(ort, ort->api.GetTensorMutableData(tensor->value, &view.data),
                                  WHAT, diag));
  }
  *out = view;
out:
  if (info) ort->api.ReleaseTensorTypeAndShapeInfo(info);
  return code;
}

psplit_code psplit_i_tensor_make(const psplit_i_ort *ort, int32_t data_type, const int64_t *dims,
                                 size_t n_dims, psplit_diag *diag, psplit_i_tensor **out,
                                 psplit_i_tensor_view *out_view) {
  psplit_i_tensor *made = NULL;
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_create(ort, data_type, dims, n_dims, diag, &made));
  PSPLIT_TRY(psplit_i_tensor_look(made, diag, out_view));
  *out = made;
  made = NULL;
out:
  psplit_i_tensor_release(made);
  return code;
}

psplit_code psplit_i_tensor_pack(const psplit_i_tensor *tensor, const psplit_i_tensor_view *view,
                                 psplit_diag *diag, void *bytes) {
  const size_t n = (size_t)view->n_elements, head = n * sizeof(uint64_t);
  if (n == 0) return PSPLIT_OK;
  size_t *offsets = malloc(n * sizeof *offsets);
  if (!offsets) return psplit_i_nomem(diag);
  const size_t n_text = (size_t)view->n_bytes - head;
  psplit_code code;
  PSPLIT_TRY(psplit_i_ort_check(tensor->ort,
                                tensor->ort->api.GetStringTensorContent(
                                  tensor->value, (char *)bytes + head, n_text, offsets, n),
                                "strings", diag));
  for (size_t i = 0; i < n; i++) {
    const uint64_t length = (i + 1 < n ? offsets[i + 1] : n_text) - offsets[i];
    memcpy((char *)bytes + i * sizeof length, &length, sizeof length);
  }
out:
  free(offsets);
  return code;
}

psplit_code psplit_i_tensor_unpack(psplit_i_tensor *tensor, uint64_t n_elements, const void *bytes,
                                   uint64_t n_bytes, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  uint64_t at;
  if (!psplit_i_mul_u64(n_elements, sizeof(uint64_t), &at) || at > n_bytes)
    return psplit_i_fail(diag, PSPLIT_INVALID, "a message of strings is too short");
  for (uint64_t i = 0; i < n_elements; i++) {
    uint64_t length;
    memcpy(&length, (const char *)bytes + i * sizeof length, sizeof length);
    if (length > n_bytes - at)
      return psplit_i_fail(diag, PSPLIT_INVALID, "a message of strings is too short");
    PSPLIT_TRY(psplit_i_tensor_set_string(tensor, (size_t)i, (const char *)bytes + at,
                                          (size_t)length, diag));
    at += length;
  }
out:
  return code;
}

psplit_code psplit_i_tensor_set_string(psplit_i_tensor *tensor, size_t index, const char *text,
                                       size_t n_bytes, psplit_diag *diag) {
  char *buffer = NULL;
  psplit_code code;
  PSPLIT_TRY(psplit_i_ort_check(
    tensor->ort,
    tensor->ort->api.GetResizedStringTensorElementBuffer(tensor->value, index, n_bytes, &buffer),
    "strings", diag));
  if (n_bytes) memcpy(buffer, text, n_bytes);
out:
  return code;
}

psplit_code psplit_i_value_look(const psplit_i_tensor *value, psplit_diag *diag,
                                psplit_i_value_view *out) {
  const OrtApi *api = &value->ort->api;
  psplit_i_value_view kind = {0};
  int is = 0;
  psplit_code code;
  PSPLIT_TRY(psplit_i_ort_check(value->ort, api->HasValue(value->value, &is), "a value", diag));
  kind.is_nothing = !is;
  if (is) {
    PSPLIT_TRY(
      psplit_i_ort_check(value->ort, api->GetValueType(value->value, &is), "a value", diag));
    kind.is_sequence = is == ORT_TYPE_SEQUENCE;
    kind.is_map = is == ORT_TYPE_MAP;
  }
  if (kind.is_sequence || kind.is_map)
    PSPLIT_TRY(psplit_i_ort_check(value->ort, api->GetValueCount(value->value, &kind.n),
                                  "a sequence or map", diag));
  *out = kind;
out:
  return code;
}

psplit_code psplit_i_value_of(const psplit_i_tensor *sequence, size_t index, psplit_diag *diag,
                              psplit_i_tensor **out) {
  const psplit_i_ort *ort = sequence->ort;
  OrtValue *value = NULL;
  psplit_code code;
  if (index > INT32_MAX) return psplit_i_fail(diag, PSPLIT_LIMIT, "a sequence is too long");
  PSPLIT_TRY(
    psplit_i_ort_check(ort, ort->api.GetValue(sequence->value, (int)index, ort->allocator, &value),
                       "a sequence", diag));
  *out = psplit_i_tensor_wrap(ort, value);
  if (!*out) code = psplit_i_nomem(diag);
out:
  return code;
}
