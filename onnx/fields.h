/* Field numbers in bytes of a model and in spans of its skeleton: PSPLIT_I_GRAPH_NODE and others of
 * fields.def. */
#ifndef PSPLIT_ONNX_FIELDS_H
#define PSPLIT_ONNX_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

enum {
#define PSPLIT_I_ONNX_FIELD(message, name, number, field) PSPLIT_I_##name = number,
#include "fields.def"
#undef PSPLIT_I_ONNX_FIELD
};

/* Whether a field of a TensorProto contains its data, represents it or locates it. */
static inline bool psplit_i_is_tensor_data(uint32_t field) {
  switch (field) {
    case PSPLIT_I_TENSOR_FLOAT_DATA:
    case PSPLIT_I_TENSOR_INT32_DATA:
    case PSPLIT_I_TENSOR_STRING_DATA:
    case PSPLIT_I_TENSOR_INT64_DATA:
    case PSPLIT_I_TENSOR_RAW_DATA:
    case PSPLIT_I_TENSOR_DOUBLE_DATA:
    case PSPLIT_I_TENSOR_UINT64_DATA:
    case PSPLIT_I_TENSOR_EXTERNAL_DATA:
    case PSPLIT_I_TENSOR_DATA_LOCATION:
    case PSPLIT_I_TENSOR_VIEW: return true;
    default: return false;
  }
}

#endif
