/* Internals of tensors, shared by tensor.c (types, reading) and tensor_check.c. */
#ifndef PSPLIT_ONNX_TENSOR_INSIDE_H
#define PSPLIT_ONNX_TENSOR_INSIDE_H

#include "model.h"

/* TensorProto's field numbers for data. */
enum {
  FLOAT_DATA_FIELD = 4,
  INT32_DATA_FIELD = 5,
  STRING_DATA_FIELD = 6,
  INT64_DATA_FIELD = 7,
  RAW_DATA_FIELD = 9,
  DOUBLE_DATA_FIELD = 10,
  UINT64_DATA_FIELD = 11
};

/* Product of the dims; false if one is negative, or on overflow. */
bool psplit_i_count_elements(const int64_t *dims, size_t n_dims, int64_t *out);
/* Bytes of packed elements; n_elements <= INT64_MAX / 16, bits <= 128. */
uint64_t psplit_i_packed_bytes(int64_t n_elements, uint32_t bits);
/* Bytes of a field that stayed in the file, and the offset of the last part (may be NULL). */
uint64_t psplit_i_view_bytes(const Onnx__TensorProto *proto, uint32_t field, uint64_t *out_offset);
/* The typed field for elements of a type; the default is int32_data. */
uint32_t psplit_i_typed_field(int32_t data_type);

#endif
