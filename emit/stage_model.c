/* A stage's ModelProto, put together from the fields of the model's. */

#include "emit.h"
#include "fields.h"

typedef enum presence {
  ABSENT = 0,
  PRESENT,          /* a node, an input or an output of the stage has it */
  AT_RIM,           /* the stage's file declares it as an input or output it is not in the model */
  RECEIVED_AS_OTHER /* the model's declaration is contradicted where the stage receives it */
} presence;

typedef struct assembly {
  const psplit_i_split *split;
  const psplit_model *model;
  const psplit_i_stage *stage;
  psplit_i_weights *weights;
  psplit_i_arena *arena;
  psplit_diag *diag;
  psplit_i_stage_extra extra;
  uint8_t *present;                        /* [n_values] */
  const psplit_i_span **inputs, **outputs; /* spans by position */
  psplit_i_rope *graph;
} assembly;

static void add_span(const assembly *a, const psplit_i_span *span, psplit_i_rope *out) {
  if (span->has_view)
    psplit_i_rope_range(out, 0, span->file_offset, span->file_bytes);
  else
    psplit_i_rope_view(out, a->model->skeleton.bytes + span->skeleton_offset, span->skeleton_bytes);
}

/* A field that is in pieces in the file: it goes through the rewriter, tensors moved or not. */
static bool is_scattered(const psplit_i_span *span) { return span->has_view && !span->file_bytes; }

/* The tensors that an annotation names, as values of the graph: visit(a, value). */
static void for_each_parameter(const assembly *a, const Onnx__TensorAnnotation *annotation,
                               void (*visit)(const assembly *a, uint32_t value)) {
  const psplit_i_graph *graph = a->split->graph;
  for (size_t k = 0; k < annotation->n_quant_parameter_tensor_names; k++) {
    const char *name = annotation->quant_parameter_tensor_names[k]->value;
    const uint32_t named = name ? psplit_i_graph_find_value(graph, name) : PSPLIT_NONE;
    if (named != PSPLIT_NONE && (graph->values[named].initializer != PSPLIT_NONE ||
                                 graph->values[named].sparse_initializer != PSPLIT_NONE))
      visit(a, named);
  }
}

static void set_present(const assembly *a, uint32_t value) { a->present[value] = PRESENT; }

static bool is_unread(const psplit_i_graph *graph, uint32_t value) {
  return graph->consumer_off[value] == graph->consumer_off[value + 1] &&
         !graph->values[value].is_output && graph->values[value].input == PSPLIT_NONE;
}

static void set_absent_if_unread(const assembly *a, uint32_t value) {
  if (is_unread(a->split->graph, value)) a->present[value] = 0;
}

/* Initializers that nothing reads are part of the model all the same: the first stage keeps them,
 * but for those that go with a value's annotation. */
static void mark_unread(const assembly *a) {
  const psplit_i_graph *graph = a->split->graph;
  const Onnx__GraphProto *proto = a->model->proto->graph;
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (is_unread(graph, v) && (graph->values[v].initializer != PSPLIT_NONE ||
                                graph->values[v].sparse_initializer != PSPLIT_NONE))
      a->present[v] = PRESENT;
  for (size_t i = 0; i < proto->n_quantization_annotation; i++) {
    const Onnx__TensorAnnotation *annotation = proto->quantization_annotation[i];
    if (annotation->tensor_name &&
        psplit_i_graph_find_value(graph, annotation->tensor_name) != PSPLIT_NONE)
      for_each_parameter(a, annotation, set_absent_if_unread);
  }
}

/* The field, with the tensors inside where they belong. */
static psplit_code add_rewritten(const assembly *a, const psplit_i_span *span,
                                 const ProtobufCMessageDescriptor *descriptor, psplit_i_rope *out) {
  return psplit_i_rewrite_field(a->weights, descriptor,
                                a->model->skeleton.bytes + span->skeleton_offset,
                                span->skeleton_bytes, a->arena, a->diag, out);
}

static void mark_present(const assembly *a) {
  const psplit_i_graph *graph = a->split->graph;
  const psplit_i_stage *stage = a->stage;
  for (uint32_t i = 0; i < stage->n_nodes; i++) {
    const psplit_i_node *node = &graph->nodes[stage->nodes[i]];
    for (uint32_t k = 0; k < node->n_inputs; k++)
      if (node->inputs[k] != PSPLIT_NONE) a->present[node->inputs[k]] = PRESENT;
    for (uint32_t k = 0; k < node->n_captures; k++) a->present[node->captures[k]] = PRESENT;
    for (uint32_t k = 0; k < node->n_outputs; k++)
      if (node->outputs[k] != PSPLIT_NONE) a->present[node->outputs[k]] = PRESENT;
  }
  if (stage == a->split->stages) mark_unread(a);
  const bool plain = a->split->boundary == PSPLIT_BOUNDARY_IO;
  for (uint32_t i = 0; i < stage->n_inputs; i++) {
    const psplit_i_port *port = &stage->inputs[i];
    uint8_t *present = &a->present[port->value];
    if (port->model)
      *present = PRESENT;
    else if (plain)
      *present = AT_RIM;
    else if (a->split->types[port->transfer].declared_wrong)
      *present = RECEIVED_AS_OTHER;
    else
      *present = PRESENT;
  }
  for (uint32_t o = 0; o < stage->n_outputs; o++) {
    const psplit_i_port *port = &stage->outputs[o];
    uint8_t *present = &a->present[port->value];
    if (!port->model && plain)
      *present = AT_RIM;
    else if (!*present)
      *present = PRESENT;
  }
}

/* Tensors that quantization annotations of present values name: initializers, if the model has them
 * as such. */
static void mark_annotated(const assembly *a) {
  const psplit_i_graph *graph = a->split->graph;
  const Onnx__GraphProto *proto = a->model->proto->graph;
  for (size_t i = 0; i < proto->n_quantization_annotation; i++) {
    const Onnx__TensorAnnotation *annotation = proto->quantization_annotation[i];
    const uint32_t v = annotation->tensor_name
                         ? psplit_i_graph_find_value(graph, annotation->tensor_name)
                         : PSPLIT_NONE;
    if (v == PSPLIT_NONE || !a->present[v]) continue;
    for_each_parameter(a, annotation, set_present);
  }
}

static psplit_code add_nodes(const assembly *a) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_stage *stage = a->stage;
  const bool boundary = a->split->boundary == PSPLIT_BOUNDARY_SENDRECV;
  a->weights->in_node = true;
  for (uint32_t i = 0; boundary && i < stage->n_inputs; i++)
    if (!stage->inputs[i].model)
      psplit_i_boundary_node(a->split, stage->inputs[i].transfer, false, a->arena, a->graph);
  for (uint32_t i = 0; i < stage->n_nodes; i++) {
    const uint32_t n = stage->nodes[i];
    const psplit_i_node *node = &a->split->graph->nodes[n];
    const psplit_i_span *span = &a->model->skeleton.graph_fields.items[a->model->node_spans[n]];
    const bool may_change =
      a->model->has_external_data || (span->has_view && a->weights->move_attributes);
    if (is_scattered(span) || (may_change && psplit_i_weights_change_attributes(
                                               a->weights, node->attributes, node->n_attributes)))
      PSPLIT_TRY(add_rewritten(a, span, &onnx__node_proto__descriptor, a->graph));
    else
      add_span(a, span, a->graph);
  }
  for (uint32_t o = 0; boundary && o < stage->n_outputs; o++)
    if (!stage->outputs[o].model)
      psplit_i_boundary_node(a->split, stage->outputs[o].transfer, true, a->arena, a->graph);
out:
  a->weights->in_node = false;
  return code;
}

static bool is_left_out(const assembly *a, uint32_t value) {
  return a->split->extra && a->split->extra->left_out && a->split->extra->left_out[value];
}

static psplit_code add_initializer(const assembly *a, const psplit_i_span *span, uint32_t i) {
  const psplit_i_graph *graph = a->split->graph;
  if (!a->present[graph->initializers[i]] || is_left_out(a, graph->initializers[i]))
    return PSPLIT_OK;
  if (is_scattered(span) ||
      psplit_i_weights_change_tensor(a->weights, graph->proto->initializer[i]))
    return add_rewritten(a, span, &onnx__tensor_proto__descriptor, a->graph);
  add_span(a, span, a->graph);
  return PSPLIT_OK;
}

static psplit_code add_sparse(const assembly *a, const psplit_i_span *span, uint32_t i) {
  const Onnx__SparseTensorProto *sparse = a->split->graph->proto->sparse_initializer[i];
  const uint32_t v = psplit_i_graph_find_value(a->split->graph, sparse->values->name);
  if (v == PSPLIT_NONE || !a->present[v]) return PSPLIT_OK;
  if (is_scattered(span) || psplit_i_weights_change_sparse(a->weights, sparse))
    return add_rewritten(a, span, &onnx__sparse_tensor_proto__descriptor, a->graph);
  add_span(a, span, a->graph);
  return PSPLIT_OK;
}

static void add_value_info(const assembly *a, const psplit_i_span *span, uint32_t i) {
  const uint32_t v = a->split->info_values[i];
  if (v != PSPLIT_NONE && a->present[v] == PRESENT && !(a->extra.declared && a->extra.declared[v]))
    add_span(a, span, a->graph);
}

static void add_annotation(const assembly *a, const psplit_i_span *span, uint32_t i) {
  const char *name = a->model->proto->graph->quantization_annotation[i]->tensor_name;
  const uint32_t v = name ? psplit_i_graph_find_value(a->split->graph, name) : PSPLIT_NONE;
  if (v != PSPLIT_NONE && a->present[v]) add_span(a, span, a->graph);
}

/* Every field but nodes, inputs and outputs, in the order of the file. */
static psplit_code add_other_fields(const assembly *a) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_spans *fields = &a->model->skeleton.graph_fields;
  uint32_t n_initializers = 0, n_infos = 0, n_annotations = 0, n_sparse = 0;
  for (size_t i = 0; i < fields->n; i++) {
    const psplit_i_span *span = &fields->items[i];
    switch (span->field) {
      case PSPLIT_I_GRAPH_NODE:
      case PSPLIT_I_GRAPH_INPUT:
      case PSPLIT_I_GRAPH_OUTPUT: break;
      case PSPLIT_I_GRAPH_INITIALIZER:
        PSPLIT_TRY(add_initializer(a, span, n_initializers++));
        break;
      case PSPLIT_I_GRAPH_VALUE_INFO: add_value_info(a, span, n_infos++); break;
      case PSPLIT_I_GRAPH_ANNOTATION: add_annotation(a, span, n_annotations++); break;
      case PSPLIT_I_GRAPH_SPARSE: PSPLIT_TRY(add_sparse(a, span, n_sparse++)); break;
      default: add_span(a, span, a->graph);
    }
  }
out:
  return code;
}

static void add_ports(const assembly *a, const psplit_i_port *ports, uint32_t n, uint32_t field,
                      const psplit_i_span *const *spans) {
  for (uint32_t i = 0; i < n; i++) {
    if (ports[i].model)
      add_span(a, spans[ports[i].position], a->graph);
    else
      psplit_i_boundary_value(a->split, &ports[i], field, a->arena, a->graph);
  }
}

void psplit_i_stage_extra_fini(psplit_i_stage_extra *extra) {
  psplit_i_text_fini(&extra->nodes);
  psplit_i_text_fini(&extra->ports);
}

static void add_extra(const assembly *a, const psplit_i_text *fields) {
  if (fields->failed) a->graph->failed = true;
  if (fields->n) psplit_i_rope_copy(a->graph, a->arena, fields->bytes, fields->n);
}

static psplit_code index_ports(assembly *a) {
  const psplit_i_graph *graph = a->split->graph;
  a->inputs = PSPLIT_NEW(a->arena, const psplit_i_span *, graph->n_inputs);
  a->outputs = PSPLIT_NEW(a->arena, const psplit_i_span *, graph->n_outputs);
  a->present = PSPLIT_NEW(a->arena, uint8_t, graph->n_values);
  if (a->arena->failed) return psplit_i_nomem(a->diag);
  const psplit_i_spans *fields = &a->model->skeleton.graph_fields;
  uint32_t n_inputs = 0, n_outputs = 0;
  for (size_t i = 0; i < fields->n; i++) {
    if (fields->items[i].field == PSPLIT_I_GRAPH_INPUT) a->inputs[n_inputs++] = &fields->items[i];
    if (fields->items[i].field == PSPLIT_I_GRAPH_OUTPUT)
      a->outputs[n_outputs++] = &fields->items[i];
  }
  return PSPLIT_OK;
}

/* Functions and training graphs may hold external data too. */
static psplit_code add_model_field(const assembly *a, const psplit_i_span *span,
                                   psplit_i_rope *out) {
  a->weights->in_node = span->field == PSPLIT_I_MODEL_FUNCTIONS;
  if (span->field == PSPLIT_I_MODEL_GRAPH) {
    psplit_i_rope_message(out, a->arena, PSPLIT_I_MODEL_GRAPH, a->graph);
    return PSPLIT_OK;
  }
  if (a->model->has_external_data && span->field == PSPLIT_I_MODEL_FUNCTIONS)
    return add_rewritten(a, span, &onnx__function_proto__descriptor, out);
  if (a->model->has_external_data && span->field == PSPLIT_I_MODEL_TRAINING_INFO)
    return add_rewritten(a, span, &onnx__training_info_proto__descriptor, out);
  add_span(a, span, out);
  return PSPLIT_OK;
}

psplit_code psplit_i_stage_model(const psplit_i_split *split, uint32_t stage,
                                 psplit_i_weights *weights, psplit_i_arena *arena,
                                 psplit_diag *diag, psplit_i_rope *out) {
  psplit_code code;
  psplit_i_rope graph = {0};
  assembly a = {.split = split,
                .model = split->model,
                .stage = &split->stages[stage],
                .weights = weights,
                .arena = arena,
                .diag = diag,
                .graph = &graph};
  PSPLIT_TRY(index_ports(&a));
  mark_present(&a);
  mark_annotated(&a);
  if (split->extra && split->extra->stage)
    PSPLIT_TRY(split->extra->stage(split->extra->user, stage, arena, diag, &a.extra));
  PSPLIT_TRY(add_nodes(&a));
  add_extra(&a, &a.extra.nodes);
  PSPLIT_TRY(add_other_fields(&a));
  add_ports(&a, a.stage->inputs, a.stage->n_inputs, PSPLIT_I_GRAPH_INPUT, a.inputs);
  add_ports(&a, a.stage->outputs, a.stage->n_outputs, PSPLIT_I_GRAPH_OUTPUT, a.outputs);
  add_extra(&a, &a.extra.ports);
  const psplit_i_spans *fields = &split->model->skeleton.model_fields;
  for (size_t i = 0; i < fields->n; i++) PSPLIT_TRY(add_model_field(&a, &fields->items[i], out));
  bool sends = false, receives = false;
  for (uint32_t i = 0; i < a.stage->n_inputs; i++) receives |= !a.stage->inputs[i].model;
  for (uint32_t o = 0; o < a.stage->n_outputs; o++) sends |= !a.stage->outputs[o].model;
  if (split->boundary == PSPLIT_BOUNDARY_SENDRECV)
    PSPLIT_TRY(psplit_i_boundary_functions(split, sends, receives, arena, diag, out));
  if (graph.failed || out->failed) PSPLIT_FAIL(psplit_i_nomem(diag));
out:
  psplit_i_stage_extra_fini(&a.extra);
  psplit_i_rope_fini(&graph);
  return code;
}
