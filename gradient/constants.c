#include "constants.h"

#include "onnx.pb-c.h"

/* The tensor of a value that is a constant: an initializer that nobody may override, or the value
 * of a Constant. */
static bool constant_tensor(const psplit_i_graph *graph, uint32_t v, psplit_i_tensor *out) {
  const psplit_i_value *value = &graph->values[v];
  if (value->initializer != PSPLIT_NONE) {
    if (value->input != PSPLIT_NONE && psplit_i_model_ir_version(graph->model) >= 4) return false;
    *out = psplit_i_graph_initializer(graph, value->initializer);
    return true;
  }
  if (value->producer == PSPLIT_NONE) return false;
  const psplit_i_node *node = &graph->nodes[value->producer];
  if (!psplit_i_node_is(node, "Constant")) return false;
  const struct Onnx__TensorProto *proto = psplit_i_attr_tensor(node, "value");
  if (!proto) return false;
  *out = psplit_i_tensor_of(proto);
  return true;
}

/* Whether all of its axes have one element. */
static bool is_single(const psplit_i_shapes *shapes, const psplit_i_vtype *type) {
  int64_t size;
  if (type->rank < 0) return false;
  for (int32_t axis = 0; axis < type->rank; axis++)
    if (!psplit_i_dim_is_const(psplit_i_shapes_dims(shapes), type->dims[axis], &size) || size != 1)
      return false;
  return true;
}

psplit_code psplit_i_constant_number(const psplit_i_shapes *shapes, uint32_t value,
                                     psplit_diag *diag, bool *out_known, double *out) {
  psplit_code code;
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  const psplit_i_vtype *type = psplit_i_shapes_type(shapes, value);
  psplit_i_tensor tensor;
  psplit_i_arena scratch;
  const double *values;
  const int64_t *whole;
  size_t n;
  *out_known = false;
  if (!is_single(shapes, type)) return PSPLIT_OK;
  if (type->elements && type->n_elements == 1) {
    *out_known = psplit_i_dim_is_real(psplit_i_shapes_dims(shapes), type->elements[0], out);
    return PSPLIT_OK;
  }
  if (!constant_tensor(graph, value, &tensor)) return PSPLIT_OK;
  psplit_i_arena_init(&scratch, 0);
  PSPLIT_TRY(psplit_i_tensor_doubles(graph->model, &tensor, 1, &scratch, diag, &values, &n));
  PSPLIT_TRY(psplit_i_tensor_int64s(graph->model, &tensor, 1, &scratch, diag, &whole, &n));
  if (values || whole) {
    *out = values ? values[0] : (double)whole[0];
    *out_known = true;
  }
out:
  psplit_i_arena_fini(&scratch);
  return code;
}
