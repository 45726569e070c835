/* Reference-counted ONNX Runtime values, which several stages may hold. */
#ifndef PSPLIT_RUNTIME_TENSOR_H
#define PSPLIT_RUNTIME_TENSOR_H

#include "base.h"
#include "ort_api.h"

enum { PSPLIT_I_MAX_RANK = 32 };

typedef struct psplit_i_ort psplit_i_ort;

/* Shared by counting: the value is never written once it has a second holder. */
typedef struct psplit_i_tensor psplit_i_tensor;

/* Takes over `value`; NULL when out of memory (and `value` is released). */
psplit_i_tensor *psplit_i_tensor_wrap(const psplit_i_ort *ort, OrtValue *value);
/* An uninitialised tensor; `data_type` is a TensorProto.DataType. Errors: NOMEM, UNSUPPORTED,
 * LIMIT. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_create(const psplit_i_ort *ort, int32_t data_type,
                                                   const int64_t *dims, size_t n_dims,
                                                   psplit_diag *diag, psplit_i_tensor **out);
psplit_i_tensor *psplit_i_tensor_hold(psplit_i_tensor *tensor);
void psplit_i_tensor_release(psplit_i_tensor *tensor); /* NULL is fine */
/* Releases tensors[n], of which any may be NULL, and makes them NULL; no list at all is fine. */
void psplit_i_tensors_release(psplit_i_tensor **tensors, size_t n);
OrtValue *psplit_i_tensor_value(const psplit_i_tensor *tensor);

/* What a tensor is; `data` stays valid as long as the tensor. */
typedef struct psplit_i_tensor_view {
  int32_t data_type; /* TensorProto.DataType */
  size_t n_dims;
  int64_t dims[PSPLIT_I_MAX_RANK];
  uint64_t n_elements;
  uint64_t n_bytes; /* of numbers, packed; of strings, what psplit_i_tensor_pack writes */
  void *data;       /* NULL for strings */
} psplit_i_tensor_view;

/* Whether it is a tensor, and no sequence, map or optional value. Errors: PLUGIN. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_is_dense(const psplit_i_tensor *tensor,
                                                     psplit_diag *diag, bool *out);
/* Errors: UNSUPPORTED (not a dense tensor, rank over PSPLIT_I_MAX_RANK), PLUGIN. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_look(const psplit_i_tensor *tensor, psplit_diag *diag,
                                                 psplit_i_tensor_view *out);
/* Creates one to be filled; where that fails there is none. Errors: those of both. */
PSPLIT_MUST_USE psplit_code psplit_i_tensor_make(const psplit_i_ort *ort, int32_t data_type,
                                                 const int64_t *dims, size_t n_dims,
                                                 psplit_diag *diag, psplit_i_tensor **out,
                                                 psplit_i_tensor_view *out_view);

/* A value that is not a tensor: a sequence of n values, a map, which has two (a tensor of its keys
 * and one of its values), or an absent optional value. */
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

/* Strings as bytes: n_elements lengths (uint64_t), then the strings. `bytes` has view->n_bytes.
 * Errors: NOMEM, PLUGIN; of what is unpacked also INVALID. */
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

/* Bits of an element, 0 for strings and what is unknown; its name as numpy spells it, or NULL. */
uint32_t psplit_i_element_bits(int32_t data_type);
const char *psplit_i_element_name(int32_t data_type);
/* TensorProto.DataType of an ONNXTensorElementDataType; 0 where there is none. */
int32_t psplit_i_element_from_ort(int type);

/* Product of dims, and bytes of so many elements; false where a dim is negative or it overflows. */
bool psplit_i_tensor_size(int32_t data_type, const int64_t *dims, size_t n_dims,
                          uint64_t *out_elements, uint64_t *out_bytes);

#endif
