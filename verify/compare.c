/* Fields of the model against fields of a stage: equal canonical bytes, weights to be compared
 * later. */
#include <inttypes.h>
#include <string.h>

#include "fields.h"
#include "proto_text.h"
#include "verify.h"

/* Whether a field of the model and one of the stage have equal content, but for raw tensor data. */
static psplit_code compare_spans(psplit_i_proof *p, const ProtobufCMessageDescriptor *owner,
                                 const psplit_i_span *whole, const psplit_i_span *part,
                                 const char *name, bool *out_equal) {
  psplit_code code;
  p->a.n = p->b.n = 0;
  p->payload_a.n = p->payload_b.n = 0;
  PSPLIT_TRY(psplit_i_go_on(p->cancel, p->diag));
  PSPLIT_TRY(psplit_i_canonical_span(p->model, owner, whole, &p->a, &p->payload_a, p->diag));
  PSPLIT_TRY(psplit_i_canonical_span(p->stage, owner, part, &p->b, &p->payload_b, p->diag));
  *out_equal = p->a.n == p->b.n && memcmp(p->a.bytes, p->b.bytes, p->a.n) == 0;
  if (!*out_equal) return PSPLIT_OK;
  if (p->payload_a.n != p->payload_b.n)
    return psplit_i_fail(p->diag, PSPLIT_INTERNAL, "\"%s\": payloads do not pair up", name);
  for (size_t i = 0; i < p->payload_a.n; i++) {
    const psplit_i_pair pair = {
      .whole = p->payload_a.items[i], .part = p->payload_b.items[i], .name = name};
    if (!psplit_i_vec_push(&p->pairs, pair)) return psplit_i_nomem(p->diag);
    p->weight_bytes = psplit_i_sat_add_u64(p->weight_bytes, pair.whole.bytes);
  }
out:
  return code;
}

/* Span of the index-th field `field` of the main graph. */
static const psplit_i_span *graph_span(const psplit_model *model, const psplit_i_field_spans *spans,
                                       uint32_t field, uint32_t index) {
  const psplit_i_span *all = model->skeleton.graph_fields.items;
  switch (field) {
    case PSPLIT_I_GRAPH_NODE: return &all[model->node_spans[index]];
    case PSPLIT_I_GRAPH_INITIALIZER: return &all[model->initializer_spans[index]];
    case PSPLIT_I_GRAPH_SPARSE: return &all[model->sparse_spans[index]];
    case PSPLIT_I_GRAPH_VALUE_INFO: return &all[model->value_info_spans[index]];
    case PSPLIT_I_GRAPH_INPUT: return spans->inputs[index];
    case PSPLIT_I_GRAPH_OUTPUT: return spans->outputs[index];
    default: return spans->annotations[index];
  }
}

psplit_code psplit_i_compare(psplit_i_proof *p, uint32_t field, uint32_t whole, uint32_t part,
                             const char *name, bool *out_equal) {
  return compare_spans(p, &onnx__graph_proto__descriptor,
                       graph_span(p->model, &p->spans, field, whole),
                       graph_span(p->stage, &p->part_spans, field, part), name, out_equal);
}

psplit_code psplit_i_field_spans_init(const psplit_model *model, psplit_i_arena *arena,
                                      psplit_diag *diag, psplit_i_field_spans *out) {
  const Onnx__GraphProto *graph = model->proto->graph;
  out->inputs = PSPLIT_NEW(arena, const psplit_i_span *, graph->n_input);
  out->outputs = PSPLIT_NEW(arena, const psplit_i_span *, graph->n_output);
  out->annotations = PSPLIT_NEW(arena, const psplit_i_span *, graph->n_quantization_annotation);
  if (arena->failed) return psplit_i_nomem(diag);
  size_t n_inputs = 0, n_outputs = 0, n_annotations = 0;
  for (size_t i = 0; i < model->skeleton.graph_fields.n; i++) {
    const psplit_i_span *span = &model->skeleton.graph_fields.items[i];
    if (span->field == PSPLIT_I_GRAPH_INPUT) out->inputs[n_inputs++] = span;
    if (span->field == PSPLIT_I_GRAPH_OUTPUT) out->outputs[n_outputs++] = span;
    if (span->field == PSPLIT_I_GRAPH_ANNOTATION) out->annotations[n_annotations++] = span;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_node_hash(psplit_i_proof *p, const psplit_model *model, uint32_t node,
                               uint64_t out[2]) {
  psplit_code code;
  p->a.n = p->payload_a.n = 0;
  PSPLIT_TRY(psplit_i_canonical_span(model, &onnx__graph_proto__descriptor,
                                     graph_span(model, NULL, PSPLIT_I_GRAPH_NODE, node), &p->a,
                                     &p->payload_a, p->diag));
  psplit_i_hasher hasher;
  psplit_i_hasher_init(&hasher);
  psplit_i_hasher_add(&hasher, p->a.bytes, p->a.n);
  psplit_i_hasher_done(&hasher, out);
out:
  return code;
}

/* Fields that must stand in a stage exactly as in the model, in the same order. */
static bool model_field_is_verbatim(uint32_t field) {
  return field != PSPLIT_I_MODEL_GRAPH && field != PSPLIT_I_MODEL_OPSETS &&
         field != PSPLIT_I_MODEL_FUNCTIONS;
}

static bool graph_field_is_verbatim(uint32_t field) {
  return field != PSPLIT_I_GRAPH_NODE && field != PSPLIT_I_GRAPH_INITIALIZER &&
         field != PSPLIT_I_GRAPH_INPUT && field != PSPLIT_I_GRAPH_OUTPUT &&
         field != PSPLIT_I_GRAPH_VALUE_INFO && field != PSPLIT_I_GRAPH_ANNOTATION &&
         field != PSPLIT_I_GRAPH_SPARSE;
}

static bool next_where(const psplit_i_spans *spans, size_t *io_at, bool (*wanted)(uint32_t)) {
  while (*io_at < spans->n && !wanted(spans->items[*io_at].field)) ++*io_at;
  return *io_at < spans->n;
}

static psplit_code compare_verbatim(psplit_i_proof *p, const ProtobufCMessageDescriptor *owner,
                                    const psplit_i_spans *whole, const psplit_i_spans *part,
                                    bool (*wanted)(uint32_t)) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0, j = 0;; i++, j++) {
    const bool more = next_where(whole, &i, wanted), more_here = next_where(part, &j, wanted);
    if (!more && !more_here) return PSPLIT_OK;
    const uint32_t field = more ? whole->items[i].field : part->items[j].field;
    const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(owner, field);
    bool equal = more && more_here;
    if (equal)
      PSPLIT_TRY(compare_spans(p, owner, &whole->items[i], &part->items[j],
                               known ? known->name : "unknown field", &equal));
    if (!equal)
      return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": %s field %" PRIu32 " (%s) is not the model's",
                              psplit_i_called(p, p->at), owner->short_name, field,
                              known ? known->name : "unknown");
  }
out:
  return code;
}

static bool opset_is_boundary(const psplit_model *stage, size_t index) {
  const Onnx__OperatorSetIdProto *opset = stage->proto->opset_import[index];
  return opset->domain && strcmp(opset->domain, PSPLIT_I_BOUNDARY_DOMAIN) == 0 &&
         opset->version == 1;
}

/* Identity (x), or CastLike (x, x), which takes its input for the type that it already has. */
static bool hands_on(const Onnx__NodeProto *node, const char *x) {
  const size_t n = node->n_input;
  if (!node->op_type || (n != 1 && n != 2) || node->n_output != 1 || node->n_attribute ||
      strcmp(node->op_type, n == 1 ? "Identity" : "CastLike") != 0)
    return false;
  return strcmp(node->input[0], x) == 0 && strcmp(node->input[n - 1], x) == 0;
}

bool psplit_i_function_is_boundary(const psplit_model *stage, size_t index) {
  const Onnx__FunctionProto *function = stage->proto->functions[index];
  if (!function->domain || strcmp(function->domain, PSPLIT_I_BOUNDARY_DOMAIN) != 0 ||
      !function->name)
    return false;
  if (strcmp(function->name, "Send") != 0 && strcmp(function->name, "Recv") != 0) return false;
  if (function->overload && *function->overload) return false;
  const Onnx__NodeProto *node = function->n_node == 1 ? function->node[0] : NULL;
  if (!node || *psplit_i_domain_of(node->domain) || (node->overload && *node->overload) ||
      function->n_input != 1 || function->n_output != 1 || !hands_on(node, function->input[0]) ||
      strcmp(node->output[0], function->output[0]) != 0)
    return false;
  /* The standard operator, and no function of the model that took its name. */
  const psplit_i_graph *body = psplit_i_model_function(stage, (uint32_t)index);
  return body->nodes[0].function == PSPLIT_NONE;
}

/* Repeated messages of which a stage has the model's, in order, and besides only ones of the
 * boundary. `is_boundary` tells for the stage's k-th. */
static psplit_code compare_extended(psplit_i_proof *p, uint32_t field,
                                    bool (*is_boundary)(const psplit_model *stage, size_t index)) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_spans *whole = &p->model->skeleton.model_fields;
  const psplit_i_spans *part = &p->stage->skeleton.model_fields;
  const char *what = field == PSPLIT_I_MODEL_OPSETS ? "opset import" : "function";
  size_t i = 0;
  size_t index = 0;
  for (size_t j = 0; j < part->n; j++) {
    if (part->items[j].field != field) continue;
    const size_t k = index++;
    while (i < whole->n && whole->items[i].field != field) i++;
    bool equal = i < whole->n;
    if (equal)
      PSPLIT_TRY(compare_spans(p, &onnx__model_proto__descriptor, &whole->items[i], &part->items[j],
                               what, &equal));
    if (equal) {
      i++;
    } else if (!p->manifest.sendrecv || !is_boundary(p->stage, k)) {
      return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": %s %zu is not the model's",
                              psplit_i_called(p, p->at), what, k);
    }
  }
  while (i < whole->n && whole->items[i].field != field) i++;
  if (i < whole->n)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": the model has one more %s",
                            psplit_i_called(p, p->at), what);
out:
  return code;
}

psplit_code psplit_i_compare_rest(psplit_i_proof *p) {
  psplit_code code;
  const psplit_i_skeleton *whole = &p->model->skeleton, *part = &p->stage->skeleton;
  PSPLIT_TRY(compare_verbatim(p, &onnx__model_proto__descriptor, &whole->model_fields,
                              &part->model_fields, model_field_is_verbatim));
  PSPLIT_TRY(compare_verbatim(p, &onnx__graph_proto__descriptor, &whole->graph_fields,
                              &part->graph_fields, graph_field_is_verbatim));
  PSPLIT_TRY(compare_extended(p, PSPLIT_I_MODEL_OPSETS, opset_is_boundary));
  PSPLIT_TRY(compare_extended(p, PSPLIT_I_MODEL_FUNCTIONS, psplit_i_function_is_boundary));
out:
  return code;
}
