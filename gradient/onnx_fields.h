/* Writing the fields of ONNX messages that this folder makes. */
#ifndef PSPLIT_GRADIENT_ONNX_FIELDS_H
#define PSPLIT_GRADIENT_ONNX_FIELDS_H

#include "fields.h"
#include "shape.h"
#include "wire.h"

/* A varint field. */
void psplit_i_put_int(psplit_i_text *out, uint32_t field, int64_t value);
void psplit_i_put_string(psplit_i_text *out, uint32_t field, const char *value);

/* A ValueInfoProto of a tensor as graph field `field`. dims NULL: no shape is written. A dimension
 * that is neither a number nor one symbol stays open. */
void psplit_i_put_value(psplit_i_text *out, uint32_t field, const char *name, int32_t elem,
                        int32_t rank, const psplit_i_emit_dim *dims);
/* The same by the inferred type. */
void psplit_i_put_typed_value(psplit_i_text *out, uint32_t field, const char *name,
                              const psplit_i_shapes *shapes, const psplit_i_vtype *type);

/* A NodeProto of the standard domain as a graph field; names are NULL-terminated lists, attributes
 * (NodeProto fields) may be NULL. */
void psplit_i_put_node(psplit_i_text *out, const char *op_type, const char *name,
                       const char *const *inputs, const char *const *outputs,
                       const psplit_i_text *attributes);
/* Attributes, as NodeProto fields. */
void psplit_i_put_attr_int(psplit_i_text *out, const char *name, int64_t value);
void psplit_i_put_attr_ints(psplit_i_text *out, const char *name, const int64_t *values, size_t n);
/* The raw_data of n bytes of numbers as they are in memory: little-endian, whatever this machine
 * is. */
void psplit_i_add_numbers(psplit_i_text *out, int32_t elem, const void *bytes, size_t n);
void psplit_i_put_raw(psplit_i_text *out, int32_t elem, const void *bytes, size_t n);
/* A tensor of n bytes of numbers as they are in memory. */
void psplit_i_put_attr_tensor(psplit_i_text *out, const char *name, int32_t elem, uint32_t rank,
                              const int64_t *dims, const void *bytes, size_t n);
void psplit_i_put_attr_text(psplit_i_text *out, const char *name, const char *value);

#endif
