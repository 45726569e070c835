/* Transferred tensors: types, port names, Send and Recv nodes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "emit.h"
#include "fields.h"
#include "proto_text.h"
#include "shape.h"
#include "wire.h"

/* --- types --- */

/* What inference and the declarations together are sure of. Of a dimension, a number goes into the
 * file; without one the symbol that the model declares for it, or else a plain symbol of the model
 * that inference found. Anything else stays open: a number that is declared for what inference sees
 * depend on a symbol may be outdated, and a stage that has it would refuse what the model takes. */
static psplit_i_declared_dim boundary_dim(psplit_i_emit_dim known, psplit_i_declared_dim declared) {
  const char *symbol = declared.param ? declared.param : known.symbol;
  return (psplit_i_declared_dim){.value = known.value,
                                 .param = known.value < 0 ? symbol : NULL,
                                 .denotation = declared.denotation};
}

static psplit_code boundary_type(psplit_i_split *split, const psplit_i_shapes *shapes, uint32_t v,
                                 psplit_diag *diag, psplit_i_boundary_type *out) {
  const char *name = split->graph->values[v].name;
  const psplit_i_vtype *type = psplit_i_shapes_type(shapes, v);
  if (type->kind != PSPLIT_TYPE_UNKNOWN && type->kind != PSPLIT_TYPE_TENSOR)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "\"%s\" would have to be sent between stages, and only dense tensors can; "
                         "keep its producer and its readers together",
                         name);
  const Onnx__TypeProto *declared = split->graph->values[v].declared_type;
  *out = (psplit_i_boundary_type){.elem = type->elem,
                                  .rank = -1,
                                  .denotation = psplit_i_type_denotation(declared),
                                  .declared_wrong = type->declared_wrong};
  if (!psplit_i_dtype_name(out->elem))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "\"%s\" would have to be sent between stages, and its element type is not "
                         "known; a value_info entry for it in the model would help",
                         name);
  if (type->rank < 0) return PSPLIT_OK;
  const size_t rank = (size_t)type->rank;
  psplit_i_declared_dim *dims = psplit_i_arena_array(&split->arena, rank, sizeof *dims);
  if (!dims) return psplit_i_nomem(diag);
  const bool alike = psplit_i_type_rank(declared) == type->rank;
  for (uint32_t a = 0; a < rank; a++) {
    const psplit_i_declared_dim none = {.value = -1};
    dims[a] = boundary_dim(psplit_i_shapes_emit_dim(shapes, type->dims[a]),
                           alike ? psplit_i_type_dim(declared, a) : none);
    if (!dims[a].param) continue;
    dims[a].param = psplit_i_arena_strndup(&split->arena, dims[a].param, strlen(dims[a].param));
    if (!dims[a].param) return psplit_i_nomem(diag);
  }
  out->rank = type->rank;
  out->dims = dims;
  return PSPLIT_OK;
}

static psplit_code find_types(psplit_i_split *split, const psplit_i_shapes *shapes,
                              psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_plan *plan = split->plan;
  split->types = PSPLIT_NEW(&split->arena, psplit_i_boundary_type, plan->n_transfers);
  if (!split->types) return psplit_i_nomem(diag);
  for (uint32_t t = 0; t < plan->n_transfers; t++) {
    if (t && plan->transfers[t].value == plan->transfers[t - 1].value)
      split->types[t] = split->types[t - 1];
    else
      PSPLIT_TRY(boundary_type(split, shapes, plan->transfers[t].value, diag, &split->types[t]));
  }
out:
  return code;
}

/* --- outputs of the model --- */

static psplit_code find_input_symbols(const psplit_i_graph *graph, psplit_diag *diag,
                                      psplit_i_intern *out) {
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    const Onnx__TypeProto *type = graph->values[graph->inputs[i]].declared_type;
    const int64_t rank = psplit_i_type_rank(type);
    for (uint32_t a = 0; a < rank; a++) {
      const char *param = psplit_i_type_dim(type, a).param;
      if (param && psplit_i_intern_add(out, param) == PSPLIT_NONE) return psplit_i_nomem(diag);
    }
  }
  return PSPLIT_OK;
}

/* The first axis from `a` on with a symbol that no input has; the rank: none. */
static int64_t next_own_symbol(const Onnx__TypeProto *type, uint32_t a,
                               const psplit_i_intern *of_inputs) {
  const int64_t rank = psplit_i_type_rank(type);
  for (; a < rank; a++) {
    const char *param = psplit_i_type_dim(type, a).param;
    if (param && psplit_i_intern_find(of_inputs, param) == PSPLIT_NONE) break;
  }
  return a < rank ? a : rank;
}

static bool any_own_symbol(const psplit_i_graph *graph, const psplit_i_intern *of_inputs) {
  for (uint32_t o = 0; o < graph->n_outputs; o++) {
    const Onnx__TypeProto *type = graph->values[graph->outputs[o]].declared_type;
    if (next_own_symbol(type, 0, of_inputs) < psplit_i_type_rank(type)) return true;
  }
  return false;
}

/* Exporters invent symbols for outputs ("Gemm_dim_0"). Where inference finds such a dimension to be
 * one of an input, the manifest says so: requests can be joined along it. */
static psplit_code find_output_dims(psplit_i_split *split, const psplit_i_shapes *shapes,
                                    const psplit_i_intern *of_inputs, psplit_diag *diag) {
  const psplit_i_graph *graph = split->graph;
  split->output_dims = PSPLIT_NEW(&split->arena, psplit_i_declared_dim *, graph->n_outputs);
  if (!split->output_dims) return psplit_i_nomem(diag);
  for (uint32_t o = 0; o < graph->n_outputs; o++) {
    const psplit_i_vtype *known = psplit_i_shapes_type(shapes, graph->outputs[o]);
    const Onnx__TypeProto *type = graph->values[graph->outputs[o]].declared_type;
    const int64_t rank = psplit_i_type_rank(type);
    int64_t a = next_own_symbol(type, 0, of_inputs);
    if (a >= rank || known->kind != PSPLIT_TYPE_TENSOR || known->rank != rank) continue;
    psplit_i_declared_dim *dims = psplit_i_arena_array(&split->arena, (size_t)rank, sizeof *dims);
    if (!dims) return psplit_i_nomem(diag);
    for (uint32_t i = 0; i < rank; i++) dims[i] = psplit_i_type_dim(type, i);
    for (; a < rank; a = next_own_symbol(type, (uint32_t)a + 1, of_inputs)) {
      const char *symbol = psplit_i_shapes_emit_dim(shapes, known->dims[a]).symbol;
      const uint32_t id = symbol ? psplit_i_intern_find(of_inputs, symbol) : PSPLIT_NONE;
      if (id != PSPLIT_NONE) dims[a].param = of_inputs->text[id];
    }
    split->output_dims[o] = dims;
  }
  return PSPLIT_OK;
}

/* --- names --- */

/* Only names with one of these in them can be met by a name made here. */
static psplit_code take(psplit_i_intern *taken, const char *name, psplit_diag *diag) {
  if (!name || (!strstr(name, ".send") && !strstr(name, ".recv"))) return PSPLIT_OK;
  return psplit_i_intern_add(taken, name) == PSPLIT_NONE ? psplit_i_nomem(diag) : PSPLIT_OK;
}

static psplit_code take_graph(psplit_i_intern *taken, const psplit_i_graph *graph,
                              psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t v = 0; v < graph->n_values; v++)
    PSPLIT_TRY(take(taken, graph->values[v].name, diag));
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    PSPLIT_TRY(take(taken, graph->nodes[n].name, diag));
    for (uint32_t b = 0; b < graph->nodes[n].n_bodies; b++)
      PSPLIT_TRY(take_graph(taken, graph->nodes[n].bodies[b], diag));
  }
  /* Names of values that are gone, which some reader may still trip over. */
  for (size_t i = 0; graph->proto && i < graph->proto->n_value_info; i++)
    PSPLIT_TRY(take(taken, graph->proto->value_info[i]->name, diag));
out:
  return code;
}

static const char *make_name(psplit_i_intern *taken, psplit_i_arena *arena, const char *tensor,
                             const char *what, uint32_t stage) {
  char tail[64];
  for (uint32_t attempt = 0;; attempt++) {
    int n = snprintf(tail, sizeof tail, ".%s%" PRIu32, what, stage);
    if (attempt) n += snprintf(tail + n, sizeof tail - (size_t)n, "_%" PRIu32, attempt);
    const size_t n_tensor = strlen(tensor);
    char *name = psplit_i_arena_alloc(arena, n_tensor + (size_t)n + 1);
    if (!name) return NULL;
    memcpy(name, tensor, n_tensor);
    memcpy(name + n_tensor, tail, (size_t)n + 1);
    if (psplit_i_intern_find(taken, name) != PSPLIT_NONE) continue;
    return psplit_i_intern_add(taken, name) == PSPLIT_NONE ? NULL : name;
  }
}

static psplit_code make_names(psplit_i_split *split, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_plan *plan = split->plan;
  psplit_i_intern taken;
  psplit_i_intern_init(&taken);
  split->send_names = PSPLIT_NEW(&split->arena, const char *, plan->n_transfers);
  split->recv_names = PSPLIT_NEW(&split->arena, const char *, plan->n_transfers);
  if (!split->send_names || !split->recv_names) return psplit_i_nomem(diag);
  PSPLIT_TRY(take_graph(&taken, split->graph, diag));
  for (uint32_t f = 0; f < psplit_i_model_n_functions(split->model); f++)
    PSPLIT_TRY(take_graph(&taken, psplit_i_model_function(split->model, f), diag));
  for (uint32_t t = 0; t < plan->n_transfers; t++) {
    const psplit_plan_transfer *transfer = &plan->transfers[t];
    const char *tensor = split->graph->values[transfer->value].name;
    /* A name says the other end. Stages that receive the same tensor may use the same name: each
     * receives it once. */
    const bool repeated =
      t && transfer[-1].from == transfer->from && transfer[-1].value == transfer->value;
    split->send_names[t] = make_name(&taken, &split->arena, tensor, "send", transfer->to);
    split->recv_names[t] = repeated
                             ? split->recv_names[t - 1]
                             : make_name(&taken, &split->arena, tensor, "recv", transfer->from);
    if (!split->send_names[t] || !split->recv_names[t]) PSPLIT_FAIL(psplit_i_nomem(diag));
  }
out:
  psplit_i_intern_fini(&taken);
  return code;
}

psplit_code psplit_i_boundary_init(psplit_i_split *split, psplit_diag *diag) {
  psplit_code code;
  psplit_i_intern of_inputs; /* refers to names of the model */
  psplit_i_shapes *shapes = NULL;
  psplit_i_intern_init(&of_inputs);
  PSPLIT_TRY(find_input_symbols(split->graph, diag, &of_inputs));
  const bool own = any_own_symbol(split->graph, &of_inputs);
  if (own || split->plan->n_transfers)
    PSPLIT_TRY(psplit_i_shapes_create(split->graph, NULL, 0, NULL, diag, &shapes));
  if (own) PSPLIT_TRY(find_output_dims(split, shapes, &of_inputs, diag));
  if (split->plan->n_transfers) PSPLIT_TRY(find_types(split, shapes, diag));
  if (split->boundary == PSPLIT_BOUNDARY_SENDRECV) PSPLIT_TRY(make_names(split, diag));
out:
  psplit_i_shapes_destroy(shapes);
  psplit_i_intern_fini(&of_inputs);
  return code;
}

/* --- messages --- */

static Onnx__AttributeProto int_attribute(const char *name, int64_t i) {
  Onnx__AttributeProto attribute = ONNX__ATTRIBUTE_PROTO__INIT;
  attribute.name = psplit_i_proto_text(name);
  attribute.has_type = attribute.has_i = 1;
  attribute.type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  attribute.i = i;
  return attribute;
}

static Onnx__AttributeProto string_attribute(const char *name, const char *s) {
  Onnx__AttributeProto attribute = ONNX__ATTRIBUTE_PROTO__INIT;
  attribute.name = psplit_i_proto_text(name);
  attribute.has_type = attribute.has_s = 1;
  attribute.type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
  attribute.s = (ProtobufCBinaryData){.len = strlen(s), .data = (uint8_t *)psplit_i_proto_text(s)};
  return attribute;
}

/* The sizes, where all are known; NULL otherwise. */
static int64_t *known_shape(const psplit_i_boundary_type *type, psplit_i_arena *arena) {
  if (type->rank < 0) return NULL;
  int64_t *sizes = psplit_i_arena_array(arena, (size_t)type->rank, sizeof *sizes);
  for (int32_t a = 0; sizes && a < type->rank; a++) {
    if (type->dims[a].value < 0) return NULL;
    sizes[a] = type->dims[a].value;
  }
  return sizes;
}

void psplit_i_boundary_node(const psplit_i_split *split, uint32_t t, bool send,
                            psplit_i_arena *arena, psplit_i_rope *out) {
  const psplit_plan_transfer *transfer = &split->plan->transfers[t];
  const psplit_i_boundary_type *type = &split->types[t];
  const char *tensor = split->graph->values[transfer->value].name;
  Onnx__AttributeProto attributes[5] = {
    int_attribute("tag", t),
    int_attribute("peer", send ? transfer->to : transfer->from),
    string_attribute("tensor", tensor),
    int_attribute("dtype", type->elem),
    ONNX__ATTRIBUTE_PROTO__INIT,
  };
  Onnx__AttributeProto *list[5];
  for (size_t a = 0; a < 5; a++) list[a] = &attributes[a];
  attributes[4].name = psplit_i_proto_text("shape");
  attributes[4].has_type = 1;
  attributes[4].type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
  attributes[4].ints = known_shape(type, arena);
  attributes[4].n_ints = attributes[4].ints ? (size_t)type->rank : 0;
  char *port = psplit_i_proto_text(send ? split->send_names[t] : split->recv_names[t]);
  char *value = psplit_i_proto_text(tensor);
  Onnx__NodeProto node = ONNX__NODE_PROTO__INIT;
  node.name = port;
  node.op_type = psplit_i_proto_text(send ? "Send" : "Recv");
  node.domain = psplit_i_proto_text(PSPLIT_I_BOUNDARY_DOMAIN);
  node.n_input = node.n_output = 1;
  node.input = send ? &value : &port;
  node.output = send ? &port : &value;
  node.n_attribute = attributes[4].ints ? 5 : 4;
  node.attribute = list;
  psplit_i_rope_packed(out, arena, PSPLIT_I_GRAPH_NODE, &node.base);
}

/* Fields of the model's own value_info of the value, its name and type left out. */
static void add_declared_rest(const psplit_i_split *split, uint32_t v, psplit_i_rope *out) {
  const uint32_t info = split->graph->values[v].value_info;
  if (info == PSPLIT_NONE) return;
  const psplit_i_skeleton *skeleton = &split->model->skeleton;
  const psplit_i_span *span = &skeleton->graph_fields.items[split->model->value_info_spans[info]];
  const uint8_t *at = skeleton->bytes + span->skeleton_offset;
  psplit_i_field info_field, f;
  if (!psplit_i_next_field(&at, at + span->skeleton_bytes, &info_field)) return;
  at = info_field.content;
  while (at < info_field.end && psplit_i_next_field(&at, info_field.end, &f))
    if (f.number != 1 && f.number != 2) psplit_i_rope_view(out, f.start, (size_t)(f.end - f.start));
}

void psplit_i_boundary_value(const psplit_i_split *split, const psplit_i_port *port, uint32_t field,
                             psplit_i_arena *arena, psplit_i_rope *out) {
  const psplit_i_boundary_type *type = &split->types[port->transfer];
  Onnx__TensorShapeProto shape = ONNX__TENSOR_SHAPE_PROTO__INIT;
  Onnx__TypeProto__Tensor tensor = ONNX__TYPE_PROTO__TENSOR__INIT;
  Onnx__TypeProto proto = ONNX__TYPE_PROTO__INIT;
  tensor.has_elem_type = 1;
  tensor.elem_type = type->elem;
  proto.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  proto.tensor_type = &tensor;
  proto.denotation = psplit_i_proto_text(type->denotation);
  if (type->rank >= 0) {
    const size_t rank = (size_t)type->rank;
    Onnx__TensorShapeProto__Dimension *dims = psplit_i_arena_array(arena, rank, sizeof *dims);
    Onnx__TensorShapeProto__Dimension **list = psplit_i_arena_array(arena, rank, sizeof *list);
    if (!dims || !list) {
      out->failed = true;
      return;
    }
    for (size_t a = 0; a < rank; a++) {
      dims[a] = (Onnx__TensorShapeProto__Dimension)ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT;
      list[a] = &dims[a];
      dims[a].denotation = psplit_i_proto_text(type->dims[a].denotation);
      if (type->dims[a].value >= 0) {
        dims[a].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dims[a].dim_value = type->dims[a].value;
      } else if (type->dims[a].param) {
        dims[a].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        dims[a].dim_param = psplit_i_proto_text(type->dims[a].param);
      }
    }
    shape.n_dim = rank;
    shape.dim = list;
    tensor.shape = &shape;
  }
  psplit_i_rope inner = {0};
  psplit_i_text name = {0};
  psplit_i_wire_bytes(&name, 1, port->name, strlen(port->name));
  if (name.failed) inner.failed = true;
  psplit_i_rope_copy(&inner, arena, name.bytes, name.n);
  psplit_i_rope_packed(&inner, arena, 2, &proto.base);
  /* In io mode this stands in for the value_info entry. */
  if (split->boundary == PSPLIT_BOUNDARY_IO) add_declared_rest(split, port->value, &inner);
  psplit_i_rope_message(out, arena, field, &inner);
  psplit_i_text_fini(&name);
  psplit_i_rope_fini(&inner);
}
