#include "moved_constants.h"

#include <stdlib.h>

#include "fields.h"
#include "model.h"
#include "proto_text.h"
#include "wire.h"

enum { FIRST_IR_WITH_CONSTANT_INITIALIZERS = 4 };

/* What a Constant node makes, as a message. */
typedef struct constant {
  const Onnx__TensorProto *tensor; /* the node's own, or: */
  Onnx__TensorProto made;          /* of value_float or value_floats */
  int64_t dims[1];
} constant;

static bool is_floating(int32_t type) {
  return type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
         type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ||
         type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ||
         type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
}

/* A message is only read, and its numbers stay where they are. */
static float *own(const float *numbers) {
  union {
    const float *in;
    float *out;
  } u = {numbers};
  return u.out;
}

static void make_tensor(constant *out, size_t rank, const float *numbers, size_t n) {
  const Onnx__TensorProto empty = ONNX__TENSOR_PROTO__INIT;
  out->made = empty;
  out->dims[0] = (int64_t)n;
  out->made.n_dims = rank;
  out->made.dims = rank ? out->dims : NULL;
  out->made.has_data_type = 1;
  out->made.data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
  out->made.n_float_data = n;
  out->made.float_data = own(numbers);
  out->tensor = &out->made;
}

/* *out points into itself and to the model's messages. */
static bool read_constant(const psplit_i_graph *graph, uint32_t value, constant *out) {
  const uint32_t producer = graph->values[value].producer;
  if (graph->parent || graph->function || producer == PSPLIT_NONE) return false;
  const psplit_i_node *node = &graph->nodes[producer];
  if (!psplit_i_node_is(node, "Constant") || node->n_attributes != 1 || node->n_inputs ||
      node->n_outputs != 1)
    return false;
  const float *numbers;
  size_t n;
  out->tensor = psplit_i_attr_tensor(node, "value");
  if (out->tensor) return is_floating(out->tensor->data_type);
  float number;
  if (psplit_i_attr_float(node, "value_float", &number)) {
    make_tensor(out, 0, &node->attributes[0]->f, 1);
  } else if (psplit_i_attr_floats(node, "value_floats", &numbers, &n)) {
    make_tensor(out, 1, numbers, n);
  }
  return out->tensor != NULL;
}

bool psplit_i_constant_is_movable(const psplit_i_graph *graph, uint32_t value) {
  constant found;
  return psplit_i_model_ir_version(graph->model) >= FIRST_IR_WITH_CONSTANT_INITIALIZERS &&
         !graph->values[value].is_output && read_constant(graph, value, &found);
}

/* The field of an initializer. */
static psplit_code put_initializer(const psplit_i_graph *graph, uint32_t value, psplit_i_text *out,
                                   psplit_diag *diag) {
  constant found;
  if (!read_constant(graph, value, &found))
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "\"%s\" is not a constant",
                         graph->values[value].name);
  Onnx__TensorProto named = *found.tensor;
  named.name = psplit_i_proto_text(graph->values[value].name);
  const size_t n = onnx__tensor_proto__get_packed_size(&named);
  uint8_t *bytes = malloc(n + 1);
  if (!bytes) return psplit_i_nomem(diag);
  onnx__tensor_proto__pack(&named, bytes);
  psplit_i_wire_bytes(out, PSPLIT_I_GRAPH_INITIALIZER, bytes, n);
  free(bytes);
  return out->failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}

psplit_code psplit_i_constants_move(const psplit_model *model, const bool *wanted,
                                    psplit_diag *diag, psplit_model **out_model) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = psplit_i_model_graph(model);
  psplit_i_skeleton skeleton = {0};
  psplit_i_text fields = {0};
  PSPLIT_VEC(psplit_i_node_edit) edits = {0};
  PSPLIT_VEC(size_t) ends = {0};
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_i_node *node = &graph->nodes[n];
    if (node->n_outputs != 1 || node->outputs[0] == PSPLIT_NONE || !wanted[node->outputs[0]])
      continue;
    const bool has_view = model->skeleton.graph_fields.items[model->node_spans[n]].has_view;
    const psplit_i_node_edit edit = {.node = n, .has_view = has_view};
    PSPLIT_TRY(put_initializer(graph, node->outputs[0], &fields, diag));
    if (!psplit_i_vec_push(&edits, edit) || !psplit_i_vec_push(&ends, fields.n))
      PSPLIT_FAIL(psplit_i_nomem(diag));
  }
  for (size_t i = 0; i < edits.n; i++) {
    const size_t begin = i ? ends.items[i - 1] : 0;
    edits.items[i].fields = fields.bytes + begin;
    edits.items[i].bytes = ends.items[i] - begin;
  }
  PSPLIT_TRY(psplit_i_skeleton_edit(model, edits.items, edits.n, NULL, 0, diag, &skeleton));
  PSPLIT_TRY(psplit_i_model_rebuild(model, &skeleton, 0, diag, out_model));
out:
  psplit_i_text_fini(&fields);
  psplit_i_vec_fini(&edits);
  psplit_i_vec_fini(&ends);
  return code;
}

psplit_code psplit_model_move_constants(const psplit_model *model, const char *const *names,
                                        size_t n, psplit_diag *diag, psplit_model **out_model) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = psplit_i_model_graph(model);
  bool *wanted = calloc((size_t)graph->n_values + 1, sizeof *wanted);
  bool any = false;
  if (!wanted) return psplit_i_nomem(diag);
  *out_model = NULL;
  for (size_t i = 0; i < n; i++) {
    const uint32_t value = psplit_i_graph_find_value(graph, names[i]);
    if (value == PSPLIT_NONE || !psplit_i_constant_is_movable(graph, value)) continue;
    wanted[value] = any = true;
  }
  if (any) code = psplit_i_constants_move(model, wanted, diag, out_model);
  free(wanted);
  return code;
}
