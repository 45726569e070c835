/* The fields of the merged graph, stage by stage: unchanged bytes of the stages where no name
 * changes. Unique fields (the graph's name) are taken from the first stage. */
#include <assert.h>
#include <string.h>

#include "fields.h"
#include "merge.h"
#include "verify.h"

static const uint32_t NAME_OF_TENSOR[] = {PSPLIT_I_TENSOR_NAME, 0};
static const uint32_t NAME_OF_VALUE[] = {PSPLIT_I_VALUE_INFO_NAME, 0};
static const uint32_t NAME_OF_SPARSE[] = {1, PSPLIT_I_TENSOR_NAME, 0}; /* of its values */

psplit_i_rope *psplit_i_last_rope(psplit_i_segments *list, const psplit_model *model) {
  const psplit_i_segment fresh = {.model = model};
  if ((!list->n || list->items[list->n - 1].model != model) && !psplit_i_vec_push(list, fresh))
    return NULL;
  return &list->items[list->n - 1].rope;
}

void psplit_i_segments_fini(psplit_i_segments *list) {
  for (size_t i = 0; i < list->n; i++) psplit_i_rope_fini(&list->items[i].rope);
  psplit_i_vec_fini(list);
}

/* --- one field --- */

psplit_code psplit_i_merge_rewrite(psplit_i_merger *m, uint32_t s,
                                   const ProtobufCMessageDescriptor *descriptor, const void *bytes,
                                   size_t n, psplit_i_rope *out) {
  psplit_i_weights *weights = &m->stages[s].weights;
  weights->data_bytes = m->data_end;
  const psplit_code code =
    psplit_i_rewrite_field(weights, descriptor, bytes, n, &m->arena, m->diag, out);
  m->data_end = weights->data_bytes;
  return code;
}

/* What m->scratch holds, with tensors where they belong. */
static psplit_code add_scratch(psplit_i_merger *m, uint32_t s,
                               const ProtobufCMessageDescriptor *descriptor) {
  psplit_i_merge_stage *stage = &m->stages[s];
  psplit_i_rope *out = psplit_i_last_rope(&m->graph, stage->model);
  const char *copy = psplit_i_arena_strndup(&m->arena, m->scratch.bytes, m->scratch.n);
  if (!out || !copy) return psplit_i_nomem(m->diag);
  return psplit_i_merge_rewrite(m, s, descriptor, copy, m->scratch.n, out);
}

static psplit_code add_span(psplit_i_merger *m, uint32_t s,
                            const ProtobufCMessageDescriptor *descriptor, const psplit_i_span *span,
                            bool tensors_move) {
  psplit_i_merge_stage *stage = &m->stages[s];
  psplit_i_rope *out = psplit_i_last_rope(&m->graph, stage->model);
  if (!out) return psplit_i_nomem(m->diag);
  if (tensors_move)
    return psplit_i_merge_rewrite(m, s, descriptor,
                                  stage->model->skeleton.bytes + span->skeleton_offset,
                                  span->skeleton_bytes, out);
  psplit_i_rope_span(out, stage->model, span);
  return PSPLIT_OK;
}

/* --- nodes --- */

static psplit_code add_node(psplit_i_merger *m, uint32_t s, uint32_t n) {
  psplit_code code;
  psplit_i_merge_stage *stage = &m->stages[s];
  const psplit_i_span *span =
    &stage->model->skeleton.graph_fields.items[stage->model->node_spans[n]];
  m->report.n_nodes++;
  stage->weights.in_node = true;
  if (psplit_i_merge_renames(m, s, n)) {
    PSPLIT_TRY(psplit_i_merge_node(m, s, n));
    PSPLIT_TRY(add_scratch(m, s, &onnx__node_proto__descriptor));
  } else {
    PSPLIT_TRY(add_span(
      m, s, &onnx__node_proto__descriptor, span,
      psplit_i_weights_change_attributes(&stage->weights, stage->graph->nodes[n].attributes,
                                         stage->graph->nodes[n].n_attributes)));
  }
out:
  stage->weights.in_node = false;
  return code;
}

static psplit_code add_identity(psplit_i_merger *m, const psplit_i_merge_identity *identity) {
  psplit_i_text node = {0}, field = {0};
  const char *from = m->names[identity->value];
  psplit_i_wire_bytes(&node, PSPLIT_I_NODE_INPUT, from, strlen(from));
  psplit_i_wire_bytes(&node, PSPLIT_I_NODE_OUTPUT, identity->name, strlen(identity->name));
  psplit_i_wire_bytes(&node, PSPLIT_I_NODE_OP_TYPE, "Identity", 8);
  psplit_i_wire_bytes(&field, PSPLIT_I_GRAPH_NODE, node.bytes, node.n);
  psplit_i_rope *out = psplit_i_last_rope(&m->graph, m->stages[0].model);
  const bool failed = node.failed || field.failed || !out;
  if (!failed) psplit_i_rope_copy(out, &m->arena, field.bytes, field.n);
  psplit_i_text_fini(&node);
  psplit_i_text_fini(&field);
  m->report.n_nodes++;
  return failed ? psplit_i_nomem(m->diag) : PSPLIT_OK;
}

/* --- what describes values --- */

/* The value that a declaration or tensor of stage s is about, where it is to be said of it there;
 * PSPLIT_NONE otherwise. */
static uint32_t about(psplit_i_merger *m, uint32_t s, const char *name) {
  const uint32_t v = name ? psplit_i_graph_find_value(m->stages[s].graph, name) : PSPLIT_NONE;
  return v == PSPLIT_NONE ? PSPLIT_NONE : psplit_i_merge_value(m, s, v);
}

/* A field of a graph that is about a value, and the way to the name in it. */
typedef struct named_field {
  uint32_t field;
  const uint32_t *path;
  const ProtobufCMessageDescriptor *descriptor;
} named_field;

static const named_field VALUE_INFO = {PSPLIT_I_GRAPH_VALUE_INFO, NAME_OF_VALUE,
                                       &onnx__value_info_proto__descriptor};
static const named_field INPUT = {PSPLIT_I_GRAPH_INPUT, NAME_OF_VALUE,
                                  &onnx__value_info_proto__descriptor};
static const named_field INITIALIZER = {PSPLIT_I_GRAPH_INITIALIZER, NAME_OF_TENSOR,
                                        &onnx__tensor_proto__descriptor};
static const named_field SPARSE = {PSPLIT_I_GRAPH_SPARSE, NAME_OF_SPARSE,
                                   &onnx__sparse_tensor_proto__descriptor};

/* `was`: the name in the span; `number`: of the value, whose name it gets. */
static psplit_code add_named(psplit_i_merger *m, uint32_t s, const psplit_i_span *span,
                             const named_field *as, const char *was, uint32_t number,
                             bool tensors_move) {
  psplit_code code;
  if (as->field == span->field && strcmp(m->names[number], was) == 0)
    return add_span(m, s, as->descriptor, span, tensors_move);
  PSPLIT_TRY(
    psplit_i_merge_named(m, m->stages[s].model, span, as->field, as->path, m->names[number]));
  PSPLIT_TRY(add_scratch(m, s, as->descriptor));
out:
  return code;
}

/* Of several about one value, the one that counts: psplit_i_value.value_info. */
static psplit_code add_value_info(psplit_i_merger *m, uint32_t s, const psplit_i_span *span,
                                  size_t info, const char *name) {
  const psplit_i_graph *graph = m->stages[s].graph;
  const uint32_t number = about(m, s, name),
                 value = name ? psplit_i_graph_find_value(graph, name) : PSPLIT_NONE;
  if (value != PSPLIT_NONE && graph->values[value].value_info != info) return PSPLIT_OK;
  if (number == PSPLIT_NONE || !m->names[number] || m->declared[number]) return PSPLIT_OK;
  m->declared[number] = 1;
  return add_named(m, s, span, &VALUE_INFO, name, number, false);
}

static psplit_code add_initializer(psplit_i_merger *m, uint32_t s, const psplit_i_span *span,
                                   const Onnx__TensorProto *tensor) {
  psplit_i_merge_stage *stage = &m->stages[s];
  const uint32_t number = about(m, s, tensor->name);
  if (number == PSPLIT_NONE ||
      number != stage->first + psplit_i_graph_find_value(stage->graph, tensor->name))
    return PSPLIT_OK;
  return add_named(m, s, span, &INITIALIZER, tensor->name, number,
                   psplit_i_weights_change_tensor(&stage->weights, tensor));
}

static psplit_code add_sparse(psplit_i_merger *m, uint32_t s, const psplit_i_span *span,
                              const Onnx__SparseTensorProto *sparse) {
  psplit_i_merge_stage *stage = &m->stages[s];
  const char *name = sparse->values->name;
  const uint32_t number = about(m, s, name);
  if (number == PSPLIT_NONE ||
      number != stage->first + psplit_i_graph_find_value(stage->graph, name))
    return PSPLIT_OK;
  return add_named(m, s, span, &SPARSE, name, number,
                   psplit_i_weights_change_sparse(&stage->weights, sparse));
}

/* Annotations go with their tensor, from the first stage that has it. */
static psplit_code add_annotation(psplit_i_merger *m, uint32_t s, const psplit_i_span *span,
                                  const Onnx__TensorAnnotation *annotation, uint32_t *seen_in) {
  psplit_code code;
  const uint32_t number = about(m, s, annotation->tensor_name);
  if (number == PSPLIT_NONE || (seen_in[number] && seen_in[number] != s + 1)) return PSPLIT_OK;
  seen_in[number] = s + 1;
  PSPLIT_TRY(psplit_i_merge_annotation(m, s, span));
  PSPLIT_TRY(add_scratch(m, s, &onnx__tensor_annotation__descriptor));
out:
  return code;
}

static psplit_code add_other_fields(psplit_i_merger *m, uint32_t s, uint32_t *annotated) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_merge_stage *stage = &m->stages[s];
  const Onnx__GraphProto *graph = stage->model->proto->graph;
  const psplit_i_spans *fields = &stage->model->skeleton.graph_fields;
  size_t n_tensors = 0, n_infos = 0, n_annotations = 0, n_sparse = 0;
  for (size_t i = 0; i < fields->n; i++) {
    const psplit_i_span *span = &fields->items[i];
    switch (span->field) {
      case PSPLIT_I_GRAPH_NODE:
      case PSPLIT_I_GRAPH_INPUT:
      case PSPLIT_I_GRAPH_OUTPUT: break;
      case PSPLIT_I_GRAPH_INITIALIZER:
        PSPLIT_TRY(add_initializer(m, s, span, graph->initializer[n_tensors++]));
        break;
      case PSPLIT_I_GRAPH_VALUE_INFO:
        PSPLIT_TRY(add_value_info(m, s, span, n_infos, graph->value_info[n_infos]->name));
        n_infos++;
        break;
      case PSPLIT_I_GRAPH_ANNOTATION:
        PSPLIT_TRY(
          add_annotation(m, s, span, graph->quantization_annotation[n_annotations++], annotated));
        break;
      case PSPLIT_I_GRAPH_SPARSE:
        PSPLIT_TRY(add_sparse(m, s, span, graph->sparse_initializer[n_sparse++]));
        break;
      default:
        if (s == 0) PSPLIT_TRY(add_span(m, 0, &onnx__graph_proto__descriptor, span, false));
    }
  }
out:
  return code;
}

static uint32_t output_position(const psplit_i_graph *graph, uint32_t value) {
  uint32_t o = 0;
  while (graph->outputs[o] != value) o++;
  return o;
}

/* With plain inputs and outputs a tensor that crosses is declared as such, and nowhere else. */
static psplit_code add_crossing(psplit_i_merger *m, uint32_t s, bool any_infos) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_merge_stage *stage = &m->stages[s];
  const psplit_i_manifest_stage *rows = &m->manifest.stages[s];
  for (uint32_t o = 0; o < rows->n_outputs; o++) {
    const psplit_i_row *row = &rows->outputs[o];
    const uint32_t v = psplit_i_graph_find_value(stage->graph, row->name);
    const uint32_t number = psplit_i_merge_value(m, s, v);
    if (row->to_model || m->declared[number] || number != stage->first + v ||
        stage->graph->values[v].input != PSPLIT_NONE)
      continue;
    const psplit_model *whole = m->whole;
    const uint32_t known =
      whole ? psplit_i_graph_find_value(whole->graph, m->names[number]) : PSPLIT_NONE;
    const uint32_t info =
      known == PSPLIT_NONE ? PSPLIT_NONE : whole->graph->values[known].value_info;
    if (info != PSPLIT_NONE) {
      psplit_i_rope *out = psplit_i_last_rope(&m->graph, whole);
      if (!out) return psplit_i_nomem(m->diag);
      psplit_i_rope_span(out, whole,
                         &whole->skeleton.graph_fields.items[whole->value_info_spans[info]]);
    } else if (!whole && any_infos) {
      PSPLIT_TRY(add_named(m, s, stage->ports.outputs[output_position(stage->graph, v)],
                           &VALUE_INFO, row->name, number, false));
    } else {
      continue;
    }
    m->declared[number] = 1;
  }
out:
  return code;
}

/* --- inputs and outputs --- */

/* The stage that a value belongs to. */
static uint32_t stage_of(const psplit_i_merger *m, uint32_t number) {
  uint32_t low = 0;
  for (uint32_t high = m->manifest.n_stages; high - low > 1;) {
    const uint32_t middle = low + (high - low) / 2;
    if (m->stages[middle].first <= number)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static psplit_code add_input(psplit_i_merger *m, uint32_t number) {
  const uint32_t s = stage_of(m, number);
  const psplit_i_value *value = &m->stages[s].graph->values[number - m->stages[s].first];
  return add_named(m, s, m->stages[s].ports.inputs[value->input], &INPUT, value->name, number,
                   false);
}

static psplit_code add_inputs(psplit_i_merger *m) {
  psplit_code code = PSPLIT_OK;
  uint8_t *added = PSPLIT_NEW(&m->arena, uint8_t, m->n_values);
  if (!added) return psplit_i_nomem(m->diag);
  for (uint32_t i = 0; i < m->manifest.n_inputs; i++) {
    const uint32_t number = m->given[i];
    if (number == PSPLIT_NONE)
      return psplit_i_fail(m->diag, PSPLIT_INVALID,
                           "no stage takes the model's input \"%s\" any more",
                           m->manifest.inputs[i]);
    if (!added[number]) PSPLIT_TRY(add_input(m, number));
    added[number] = 1;
  }
  /* Before IR version 4 weights are listed as inputs. */
  for (uint32_t s = 0; s < m->manifest.n_stages; s++) {
    const psplit_i_merge_stage *stage = &m->stages[s];
    for (uint32_t i = 0; i < stage->graph->n_inputs; i++) {
      const uint32_t number = stage->first + stage->graph->inputs[i];
      if (psplit_i_merge_value(m, s, stage->graph->inputs[i]) != number || added[number]) continue;
      PSPLIT_TRY(add_input(m, number));
      added[number] = 1;
    }
  }
out:
  return code;
}

static psplit_code add_outputs(psplit_i_merger *m) {
  psplit_code code = PSPLIT_OK;
  psplit_i_intern names;
  PSPLIT_VEC(const psplit_i_span *) spans = {0};
  PSPLIT_VEC(uint32_t) from = {0};
  psplit_i_intern_init(&names);
  for (uint32_t s = 0; s < m->manifest.n_stages; s++) {
    const psplit_i_merge_stage *stage = &m->stages[s];
    const psplit_i_manifest_stage *rows = &m->manifest.stages[s];
    for (uint32_t o = 0; o < rows->n_outputs; o++) {
      if (!rows->outputs[o].to_model) continue;
      const uint32_t before = names.n;
      const uint32_t id = psplit_i_intern_add(&names, rows->outputs[o].tensor);
      const uint32_t v = psplit_i_graph_find_value(stage->graph, rows->outputs[o].name);
      if (id == PSPLIT_NONE) PSPLIT_FAIL(psplit_i_nomem(m->diag));
      if (id != before) continue;
      const psplit_i_span *span = stage->ports.outputs[output_position(stage->graph, v)];
      if (!psplit_i_vec_push(&spans, span) || !psplit_i_vec_push(&from, s))
        PSPLIT_FAIL(psplit_i_nomem(m->diag));
    }
  }
  for (uint32_t o = 0; o < m->manifest.n_outputs; o++) {
    const uint32_t id = psplit_i_intern_find(&names, m->manifest.outputs[o]);
    assert(id < from.n); /* a stage gives it: psplit_i_manifest_check */
    psplit_i_rope *out = psplit_i_last_rope(&m->graph, m->stages[from.items[id]].model);
    if (!out) PSPLIT_FAIL(psplit_i_nomem(m->diag));
    psplit_i_rope_span(out, m->stages[from.items[id]].model, spans.items[id]);
  }
out:
  psplit_i_vec_fini(&spans);
  psplit_i_vec_fini(&from);
  psplit_i_intern_fini(&names);
  return code;
}

psplit_code psplit_i_merge_graph(psplit_i_merger *m) {
  psplit_code code = PSPLIT_OK;
  const uint32_t n_stages = m->manifest.n_stages;
  bool any_infos = false;
  uint32_t *annotated = PSPLIT_NEW(&m->arena, uint32_t, m->n_values);
  if (!annotated) return psplit_i_nomem(m->diag);
  for (uint32_t s = 0; s < n_stages; s++) {
    for (uint32_t n = 0; n < m->stages[s].graph->n_nodes; n++)
      if (!m->stages[s].gone[n]) PSPLIT_TRY(add_node(m, s, n));
    any_infos |= m->stages[s].model->proto->graph->n_value_info > 0;
  }
  for (size_t i = 0; i < m->identities.n; i++) PSPLIT_TRY(add_identity(m, &m->identities.items[i]));
  for (uint32_t s = 0; s < n_stages; s++) PSPLIT_TRY(add_other_fields(m, s, annotated));
  for (uint32_t s = 0; s < n_stages && !m->manifest.sendrecv; s++)
    PSPLIT_TRY(add_crossing(m, s, any_infos));
  PSPLIT_TRY(add_inputs(m));
  PSPLIT_TRY(add_outputs(m));
out:
  return code;
}
