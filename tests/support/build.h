/* Hand-made ONNX models for tests: protobuf bytes, written field by field, so that a test can also
 * write what no library would. Allocation failures end the test program. */
#ifndef PSPLIT_TESTS_BUILD_H
#define PSPLIT_TESTS_BUILD_H

#include <stdint.h>

#include "base.h"

/* The bytes of a message under construction; zero-initialise it. */
typedef psplit_i_text pb;

void pb_int(pb *out, uint32_t field, int64_t value);
void pb_string(pb *out, uint32_t field, const char *value);
void pb_bytes(pb *out, uint32_t field, const void *bytes, size_t n);
/* Appends `message` as a field and frees it. */
void pb_message(pb *out, uint32_t field, pb *message);
/* The same with a length prefix of exactly `width` bytes. */
void pb_message_padded(pb *out, uint32_t field, pb *message, unsigned width);

/* Names are separated by spaces; "-" stands for the empty name of an omitted input or output. */

/* A NodeProto; `attributes` (AttributeProto fields, may be NULL) is consumed. */
pb make_node(const char *op_type, const char *inputs, const char *outputs, pb *attributes);
/* Appends make_node() to a graph or, with field 7, a function. */
void add_node(pb *graph, const char *op_type, const char *inputs, const char *outputs);
void add_node_with(pb *graph, const char *op_type, const char *inputs, const char *outputs,
                   pb *attributes);
/* Appends to the attributes of a node: a graph, consumed; a tensor, consumed; an int. */
void add_body(pb *attributes, const char *name, pb *graph);
void add_tensor_attribute(pb *attributes, const char *name, pb *tensor);
void add_int_attribute(pb *attributes, const char *name, int64_t value);
/* Appends ValueInfoProtos of float tensors, field 11 (input), 12 (output) or 13 (value_info). */
void add_values(pb *graph, uint32_t field, const char *names);
/* A TensorProto without data: dims are given by n_dims numbers. */
pb make_tensor(const char *name, int32_t data_type, unsigned n_dims, const int64_t *dims);
/* A float TensorProto of n elements in raw_data, all bytes `fill`. */
pb make_raw_tensor(const char *name, int64_t n, unsigned char fill);
/* Appends raw float initializers of one element. */
void add_initializers(pb *graph, const char *names);
/* One external_data entry. */
void add_external(pb *tensor, const char *key, const char *value);
/* A FunctionProto of domain "local" without nodes. */
pb make_function(const char *name, const char *inputs, const char *outputs);

/* A ModelProto, IR 10, opset 18, around `graph`, which is consumed. */
pb make_model(pb *graph);

/* Writes a file, replacing it. */
void write_file(const char *path, const void *bytes, size_t n);

#endif
