/* Reference-counted ONNX Runtime values, which several stages may hold. */
#ifndef PSPLIT_RUNTIME_TENSOR_H
#define PSPLIT_RUNTIME_TENSOR_H

#include "base.h"
#include "ort_api.h"

enum { PSPLIT_I_MAX_RANK = 32 };

typedef struct psplit_i_ort psplit_i_ort;

/* Reference-counted: the value is not written once it has a second holder. */
typedef struct psplit_i_tensor psplit_i_tensor;

/* Takes over `value`. NULL if out of memory; then `value` is released. */
psplit_i_tensor *psplit_i_tensor_wrap(const psplit_i_ort *ort, OrtValue *value);
/* An uninitialised tensor; `data_type` is a TensorProto.DataType. Errors: NOMEM, UNSUPPORTED,
 * LIMIT. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_create(const psplit_i_ort *ort, int32_t data_type,
                                                   const int64_t *dims, size_t n_dims,
                                                   psplit_diag *diag, psplit_i_tensor **out);
psplit_i_tensor *psplit_i_tensor_hold(psplit_i_tensor *tensor);
void psplit_i_tensor_release(psplit_i_tensor *tensor); /* NULL is fine */
/* Releases tensors[n], any of which may be NULL, and sets them to NULL. `tensors` may be NULL. */
void psplit_i_tensors_release(psplit_i_tensor **tensors, size_t n);
OrtValue *psplit_i_tensor_value(const psplit_i_tensor *tensor);

/* The description of a tensor. `data` is valid as long as the tensor. */
typedef struct psplit_i_tensor_view {
  int32_t data_type; /* TensorProto.DataType */
  size_t n_dims;
  int64_t dims[PSPLIT_I_MAX_RANK];
  uint64_t n_elements;
  /* of numbers, packed; of strings, the size that psplit_i_tensor_pack writes */
  uint64_t n_bytes;
  void *data; /* NULL for strings */
} psplit_i_tensor_view;

/* Whether it is a tensor, not a sequence, map or optional value. Errors: PLUGIN. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_is_dense(const psplit_i_tensor *tensor,
                                                     psplit_diag *diag, bool *out);
/* Errors: UNSUPPORTED (not a dense tensor, rank over PSPLIT_I_MAX_RANK), PLUGIN. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_look(const psplit_i_tensor *tensor, psplit_diag *diag,
                                                 psplit_i_tensor_view *out);
/* Creates a tensor to be filled, and its view. Errors: those of both. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_make(const psplit_i_ort *ort, int32_t data_type,
                                                 const int64_t *dims, size_t n_dims,
                                                 psplit_diag *diag, psplit_i_tensor **out,
                                                 psplit_i_tensor_view *out_view);

/* A value that is not a tensor: a sequence of n values, a map, which has two values (tensors of its
 * keys and of its values), or an absent optional value. */
typedef struct psplit_i_value_view {
  bool is_sequence, is_map, is_nothing;
  size_t n;
} psplit_i_value_view;
/* Errors: PLUGIN. */
PSPLIT_MUST_USE psplit_code psplit_i_value_look(const psplit_i_tensor *value, psplit_diag *diag,
                                                psplit_i_value_view *out);
/* Value `index` of a sequence or map, which the caller releases. Errors: LIMIT, NOMEM, PLUGIN. */
PSPLIT_MUST_USE psplit_code psplit_i_value_of(const psplit_i_tensor *sequence, size_t index,
                                              psplit_diag *diag, psplit_i_tensor **out);

/* Converts strings to and from bytes: n_elements lengths (uint64_t), then the strings. `bytes` has
 * view->n_bytes. Errors: NOMEM, PLUGIN; from bytes also INVALID. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_pack(const psplit_i_tensor *tensor,
                                                 const psplit_i_tensor_view *view,
                                                 psplit_diag *diag, void *bytes);
PSPLIT_MUST_USE psplit_code psplit_i_tensor_unpack(psplit_i_tensor *tensor, uint64_t n_elements,
                                                   const void *bytes, uint64_t n_bytes,
                                                   psplit_diag *diag);
/* Sets string `index` of a tensor of strings. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_set_string(psplit_i_tensor *tensor, size_t index,
                                                       const char *text, size_t n_bytes,
                                                       psplit_diag *diag);

/* Bits of an element, 0 for strings and unknown types; and the numpy name of a type, or NULL. */
uint32_t psplit_i_element_bits(int32_t data_type);
const char *psplit_i_element_name(int32_t data_type);
/* TensorProto.DataType of an ONNXTensorElementDataType; 0 if there is none. */
int32_t psplit_i_element_from_ort(int type);

/* Product of dims, and size in bytes. Returns false if a dimension is negative, or on overflow. */
bool psplit_i_tensor_size(int32_t data_type, const int64_t *dims, size_t n_dims,
                          uint64_t *out_elements, uint64_t *out_bytes);

#endif
