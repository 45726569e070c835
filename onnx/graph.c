/* Looking things up in a graph index. */
#include "graph.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "onnx.pb-c.h"

const char *psplit_i_node_label(const psplit_i_graph *graph, uint32_t node, char *buffer,
                                size_t bytes) {
  const psplit_i_node *n = &graph->nodes[node];
  if (*n->name) return n->name;
  snprintf(buffer, bytes, "#%" PRIu32 " (%s)", node, n->op_type);
  return buffer;
}

const char *psplit_i_node_known_as(const psplit_i_graph *graph, const psplit_i_node *node) {
  const bool unnamed = !*node->name && node->n_outputs > 0 && node->outputs[0] != PSPLIT_NONE;
  return unnamed ? graph->values[node->outputs[0]].name : node->name;
}

bool psplit_i_node_is_called(const psplit_i_graph *graph, const psplit_i_node *node,
                             const char *name) {
  if (strcmp(node->name, name) == 0) return true;
  for (uint32_t o = 0; o < node->n_outputs; o++)
    if (node->outputs[o] != PSPLIT_NONE && strcmp(graph->values[node->outputs[o]].name, name) == 0)
      return true;
  return false;
}

bool psplit_i_node_is(const psplit_i_node *node, const char *op_type) {
  return !*node->domain && strcmp(node->op_type, op_type) == 0;
}

bool psplit_i_node_is_boundary(const psplit_i_node *node) {
  return strcmp(node->domain, PSPLIT_I_BOUNDARY_DOMAIN) == 0 &&
         (strcmp(node->op_type, "Send") == 0 || strcmp(node->op_type, "Recv") == 0);
}

uint32_t psplit_i_graph_find_value(const psplit_i_graph *graph, const char *name) {
  return psplit_i_intern_find(&graph->names, name);
}

uint32_t psplit_i_value_resolve(const psplit_i_graph **io_graph, uint32_t value) {
  while ((*io_graph)->values[value].outer != PSPLIT_NONE) {
    value = (*io_graph)->values[value].outer;
    *io_graph = (*io_graph)->parent;
  }
  return value;
}

/* The attribute `name`, unless it refers to one of the enclosing function or states a type other
 * than `type` (before IR 2 none was stated). */
static const Onnx__AttributeProto *find_attribute(const psplit_i_node *node, const char *name,
                                                  Onnx__AttributeProto__AttributeType type) {
  for (size_t i = 0; i < node->n_attributes; i++) {
    const Onnx__AttributeProto *attribute = node->attributes[i];
    if (!attribute->name || strcmp(attribute->name, name) != 0) continue;
    if (attribute->ref_attr_name && *attribute->ref_attr_name) return NULL;
    const bool stated =
      attribute->has_type && attribute->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
    return stated && attribute->type != type ? NULL : attribute;
  }
  return NULL;
}

/* Whether the value may be taken: writers of proto3 leave out a 0, but not the type. */
static bool has_value(const Onnx__AttributeProto *attribute, bool present) {
  return present || attribute->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
}

bool psplit_i_attr_int(const psplit_i_node *node, const char *name, int64_t *out) {
  const Onnx__AttributeProto *attribute =
    find_attribute(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
  if (!attribute || !has_value(attribute, attribute->has_i)) return false;
  *out = attribute->i;
  return true;
}

bool psplit_i_attr_float(const psplit_i_node *node, const char *name, float *out) {
  const Onnx__AttributeProto *attribute =
    find_attribute(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
  if (!attribute || !has_value(attribute, attribute->has_f)) return false;
  *out = attribute->f;
  return true;
}

bool psplit_i_attr_string(const psplit_i_node *node, const char *name, const char **out,
                          size_t *out_n) {
  const Onnx__AttributeProto *attribute =
    find_attribute(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
  if (!attribute || !has_value(attribute, attribute->has_s)) return false;
  *out = attribute->s.len ? (const char *)attribute->s.data : "";
  *out_n = attribute->s.len;
  return true;
}

bool psplit_i_attr_ints(const psplit_i_node *node, const char *name, const int64_t **out,
                        size_t *out_n) {
  const Onnx__AttributeProto *attribute =
    find_attribute(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
  if (!attribute || !has_value(attribute, attribute->n_ints > 0)) return false;
  *out = attribute->ints;
  *out_n = attribute->n_ints;
  return true;
}

bool psplit_i_attr_floats(const psplit_i_node *node, const char *name, const float **out,
                          size_t *out_n) {
  const Onnx__AttributeProto *attribute =
    find_attribute(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
  if (!attribute || !has_value(attribute, attribute->n_floats > 0)) return false;
  *out = attribute->floats;
  *out_n = attribute->n_floats;
  return true;
}

bool psplit_i_attr_strings(const psplit_i_node *node, const char *name,
                           const struct ProtobufCBinaryData **out, size_t *out_n) {
  const Onnx__AttributeProto *attribute =
    find_attribute(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
  if (!attribute || !has_value(attribute, attribute->n_strings > 0)) return false;
  *out = attribute->strings;
  *out_n = attribute->n_strings;
  return true;
}

const struct Onnx__TensorProto *psplit_i_attr_tensor(const psplit_i_node *node, const char *name) {
  const Onnx__AttributeProto *attribute =
    find_attribute(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
  return attribute ? attribute->t : NULL;
}

const psplit_i_graph *psplit_i_attr_body(const psplit_i_node *node, const char *name) {
  const Onnx__AttributeProto *attribute =
    find_attribute(node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);
  if (!attribute || !attribute->g) return NULL;
  for (uint32_t b = 0; b < node->n_bodies; b++)
    if (node->bodies[b]->proto == attribute->g) return node->bodies[b];
  return NULL;
}

bool psplit_i_node_has_attr_ref(const psplit_i_node *node) {
  for (size_t i = 0; i < node->n_attributes; i++)
    if (node->attributes[i]->ref_attr_name && *node->attributes[i]->ref_attr_name) return true;
  return false;
}

psplit_i_value_kind psplit_i_type_kind(const struct Onnx__TypeProto *type) {
  if (!type) return PSPLIT_TYPE_UNKNOWN;
  switch (type->value_case) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE: return PSPLIT_TYPE_TENSOR;
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE: return PSPLIT_TYPE_SPARSE_TENSOR;
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE: return PSPLIT_TYPE_SEQUENCE;
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE: return PSPLIT_TYPE_MAP;
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE: return PSPLIT_TYPE_OPTIONAL;
    case ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE: return PSPLIT_TYPE_OPAQUE;
    default: return PSPLIT_TYPE_UNKNOWN;
  }
}

int32_t psplit_i_type_elem(const struct Onnx__TypeProto *type) {
  switch (psplit_i_type_kind(type)) {
    case PSPLIT_TYPE_TENSOR: return type->tensor_type->elem_type;
    case PSPLIT_TYPE_SPARSE_TENSOR: return type->sparse_tensor_type->elem_type;
    default: return 0;
  }
}

const struct Onnx__TypeProto *psplit_i_type_inner(const struct Onnx__TypeProto *type) {
  switch (psplit_i_type_kind(type)) {
    case PSPLIT_TYPE_SEQUENCE: return type->sequence_type->elem_type;
    case PSPLIT_TYPE_OPTIONAL: return type->optional_type->elem_type;
    default: return NULL;
  }
}

static const Onnx__TensorShapeProto *shape_of(const struct Onnx__TypeProto *type) {
  switch (psplit_i_type_kind(type)) {
    case PSPLIT_TYPE_TENSOR: return type->tensor_type->shape;
    case PSPLIT_TYPE_SPARSE_TENSOR: return type->sparse_tensor_type->shape;
    default: return NULL;
  }
}

int64_t psplit_i_type_rank(const struct Onnx__TypeProto *type) {
  const Onnx__TensorShapeProto *shape = shape_of(type);
  return shape ? (int64_t)shape->n_dim : -1;
}

psplit_i_declared_dim psplit_i_type_dim(const struct Onnx__TypeProto *type, uint32_t axis) {
  const Onnx__TensorShapeProto *shape = shape_of(type);
  assert(shape && axis < shape->n_dim);
  const Onnx__TensorShapeProto__Dimension *dim = shape->dim[axis];
  psplit_i_declared_dim out = {.value = -1};
  if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
      dim->dim_value >= 0)
    out.value = dim->dim_value;
  if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && *dim->dim_param)
    out.param = dim->dim_param;
  if (dim->denotation && *dim->denotation) out.denotation = dim->denotation;
  return out;
}

const char *psplit_i_type_denotation(const struct Onnx__TypeProto *type) {
  return type && type->denotation && *type->denotation ? type->denotation : NULL;
}
