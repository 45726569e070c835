/* The proof. A name in a stage's scope must stand for the model's value of that name: because a node
 * with the model's own bytes makes it there, or an initializer with the model's content holds it, or
 * the model's input gives it, or it is received from an earlier stage in whose scope it stands for
 * the same value. From that, equal nodes read equal values, so the stages compute what the model
 * does. What is left is coverage: every node, output and weight is somewhere, and nothing else is. */
#include "verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Field numbers of ModelProto and GraphProto that are compared by their own rules. */
enum { MODEL_GRAPH = 7, MODEL_OPSETS = 8, MODEL_FUNCTIONS = 25 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12,
       GRAPH_VALUE_INFO = 13, GRAPH_ANNOTATION = 14, GRAPH_SPARSE = 15 };

static const char BOUNDARY_DOMAIN[] = "psplit";

typedef struct proof {
  const psplit_model *model;
  const psplit_graph *graph;
  psplit_i_manifest manifest;
  psplit_arena arena;
  psplit_model **stages;     /* [n_stages] */
  uint32_t *n_seen;          /* [n_nodes] stages that hold the node */
  uint32_t *seen_in;         /* [n_nodes] 1 + last stage that was seen to hold it */
  uint8_t *initializer_seen; /* [n_values] */
  uint32_t *output_seen;     /* [n_outputs of the model] */
  psplit_i_pairs pairs;
  psplit_text a, b;          /* canonical forms at hand */
  psplit_i_payloads payload_a, payload_b;
  psplit_diag *diag;
  uint64_t weight_bytes;
} proof;

#define DIFFERS(p, ...) psplit_i_fail((p)->diag, PSPLIT_MISMATCH, __VA_ARGS__)

/* --- comparing fields --- */

static void clear(proof *p) {
  p->a.n = p->b.n = 0;
  p->payload_a.n = p->payload_b.n = 0;
}

/* Whether a field of the model and one of a stage have equal content, but for raw tensor data: that
 * is noted in `pairs` under `name`, to be compared later. */
static psplit_code compare_spans(proof *p, const ProtobufCMessageDescriptor *owner,
                                 const psplit_i_span *whole, uint32_t stage,
                                 const psplit_i_span *part, const char *name, bool *out_equal) {
  psplit_code code;
  clear(p);
  PSPLIT_TRY(psplit_i_canonical_span(p->model, owner, whole, &p->a, &p->payload_a, p->diag));
  PSPLIT_TRY(
    psplit_i_canonical_span(p->stages[stage], owner, part, &p->b, &p->payload_b, p->diag));
  *out_equal = p->a.n == p->b.n && memcmp(p->a.bytes, p->b.bytes, p->a.n) == 0;
  if (!*out_equal) return PSPLIT_OK;
  if (p->payload_a.n != p->payload_b.n)
    return psplit_i_fail(p->diag, PSPLIT_INTERNAL, "\"%s\": payloads do not pair up", name);
  for (size_t i = 0; i < p->payload_a.n; i++) {
    const psplit_i_pair pair = {
      .whole = p->payload_a.items[i], .part = p->payload_b.items[i], .stage = stage, .name = name};
    if (!psplit_i_vec_push(&p->pairs, pair)) return psplit_i_nomem(p->diag);
    p->weight_bytes = psplit_i_sat_add_u64(p->weight_bytes, pair.whole.bytes);
  }
out:
  return code;
}

/* Fields that must stand in a stage exactly as in the model, in the same order. */
static bool model_field_is_verbatim(uint32_t field) {
  return field != MODEL_GRAPH && field != MODEL_OPSETS && field != MODEL_FUNCTIONS;
}

static bool graph_field_is_verbatim(uint32_t field) {
  return field != GRAPH_NODE && field != GRAPH_INITIALIZER && field != GRAPH_INPUT &&
         field != GRAPH_OUTPUT && field != GRAPH_VALUE_INFO && field != GRAPH_ANNOTATION &&
         field != GRAPH_SPARSE;
}

static bool next_where(const psplit_i_spans *spans, size_t *io_at, bool (*wanted)(uint32_t)) {
  while (*io_at < spans->n && !wanted(spans->items[*io_at].field)) ++*io_at;
  return *io_at < spans->n;
}

static psplit_code compare_verbatim(proof *p, uint32_t stage,
                                    const ProtobufCMessageDescriptor *owner,
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
      PSPLIT_TRY(compare_spans(p, owner, &whole->items[i], stage, &part->items[j],
                               known ? known->name : "unknown field", &equal));
    if (!equal)
      return DIFFERS(p, "stage %" PRIu32 ": %s field %" PRIu32 " (%s) is not the model's", stage,
                     owner->short_name, field, known ? known->name : "unknown");
  }
out:
  return code;
}

/* Repeated messages of which a stage has the model's, in order, and then only ones of the boundary's
 * own domain. `is_boundary` tells for the stage's k-th. */
static psplit_code compare_extended(proof *p, uint32_t stage, uint32_t field,
                                    bool (*is_boundary)(const psplit_model *stage, size_t index)) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_spans *whole = &p->model->skeleton.model_fields;
  const psplit_i_spans *part = &p->stages[stage]->skeleton.model_fields;
  const char *what = field == MODEL_OPSETS ? "opset import" : "function";
  size_t i = 0;
  size_t index = 0;
  for (size_t j = 0; j < part->n; j++) {
    if (part->items[j].field != field) continue;
    const size_t k = index++;
    while (i < whole->n && whole->items[i].field != field) i++;
    bool equal = i < whole->n;
    if (equal)
      PSPLIT_TRY(compare_spans(p, &onnx__model_proto__descriptor, &whole->items[i], stage,
                               &part->items[j], what, &equal));
    if (equal) {
      i++;
    } else if (!p->manifest.sendrecv || !is_boundary(p->stages[stage], k)) {
      return DIFFERS(p, "stage %" PRIu32 ": %s %zu is not the model's", stage, what, k);
    }
  }
  while (i < whole->n && whole->items[i].field != field) i++;
  if (i < whole->n) return DIFFERS(p, "stage %" PRIu32 ": a %s of the model is missing", stage, what);
out:
  return code;
}

static bool opset_is_boundary(const psplit_model *stage, size_t index) {
  const char *domain = stage->proto->opset_import[index]->domain;
  return domain && strcmp(domain, BOUNDARY_DOMAIN) == 0;
}

/* A boundary function does nothing but hand its input on. */
static bool function_is_boundary(const psplit_model *stage, size_t index) {
  const Onnx__FunctionProto *function = stage->proto->functions[index];
  if (!function->domain || strcmp(function->domain, BOUNDARY_DOMAIN) != 0 || !function->name)
    return false;
  if (strcmp(function->name, "Send") != 0 && strcmp(function->name, "Recv") != 0) return false;
  const Onnx__NodeProto *node = function->n_node == 1 ? function->node[0] : NULL;
  return node && node->op_type && strcmp(node->op_type, "Identity") == 0 &&
         (!node->domain || !*node->domain) && node->n_input == 1 && node->n_output == 1 &&
         function->n_input == 1 && function->n_output == 1 &&
         strcmp(node->input[0], function->input[0]) == 0 &&
         strcmp(node->output[0], function->output[0]) == 0;
}

/* --- looking things up by their place in the file --- */

/* Span of the index-th field `field` of the main graph. */
static const psplit_i_span *graph_span(const psplit_model *model, uint32_t field, uint32_t index) {
  switch (field) {
    case GRAPH_NODE: return &model->skeleton.graph_fields.items[model->node_spans[index]];
    case GRAPH_INITIALIZER:
      return &model->skeleton.graph_fields.items[model->initializer_spans[index]];
    case GRAPH_SPARSE: return &model->skeleton.graph_fields.items[model->sparse_spans[index]];
    case GRAPH_VALUE_INFO:
      return &model->skeleton.graph_fields.items[model->value_info_spans[index]];
    default: break;
  }
  for (size_t i = 0; i < model->skeleton.graph_fields.n; i++)
    if (model->skeleton.graph_fields.items[i].field == field && index-- == 0)
      return &model->skeleton.graph_fields.items[i];
  return NULL;
}

static psplit_code compare_graph_fields(proof *p, uint32_t field, uint32_t whole, uint32_t stage,
                                        uint32_t part, const char *name, bool *out_equal) {
  return compare_spans(p, &onnx__graph_proto__descriptor, graph_span(p->model, field, whole), stage,
                       graph_span(p->stages[stage], field, part), name, out_equal);
}

/* --- nodes --- */

/* The model's node that makes the first named output of a stage's node, or for a node without
 * outputs the first equal one not yet seen in the stage. PSPLIT_NONE if there is none. */
static psplit_code find_node(proof *p, uint32_t stage, uint32_t part, uint32_t *out_node) {
  psplit_code code = PSPLIT_OK;
  const psplit_graph *graph = psplit_i_model_graph(p->stages[stage]);
  const psplit_node *node = &graph->nodes[part];
  *out_node = PSPLIT_NONE;
  for (uint32_t o = 0; o < node->n_outputs; o++) {
    if (node->outputs[o] == PSPLIT_NONE) continue;
    const uint32_t value =
      psplit_i_graph_find_value(p->graph, graph->values[node->outputs[o]].name);
    if (value != PSPLIT_NONE) *out_node = p->graph->values[value].producer;
    return PSPLIT_OK;
  }
  for (uint32_t n = 0; n < p->graph->n_nodes && *out_node == PSPLIT_NONE; n++) {
    bool silent = p->seen_in[n] != stage + 1;
    for (uint32_t o = 0; o < p->graph->nodes[n].n_outputs && silent; o++)
      silent = p->graph->nodes[n].outputs[o] == PSPLIT_NONE;
    const size_t n_pairs = p->pairs.n;
    bool equal = false;
    if (silent) PSPLIT_TRY(compare_graph_fields(p, GRAPH_NODE, n, stage, part, node->name, &equal));
    p->pairs.n = n_pairs;
    if (equal) *out_node = n;
  }
out:
  return code;
}

static const psplit_i_manifest_transfer *find_transfer(const proof *p, uint64_t tag) {
  for (uint32_t t = 0; t < p->manifest.n_transfers; t++)
    if (p->manifest.transfers[t].tag == tag) return &p->manifest.transfers[t];
  return NULL;
}

static bool is_boundary_node(const proof *p, const psplit_node *node) {
  return p->manifest.sendrecv && strcmp(node->domain, BOUNDARY_DOMAIN) == 0 &&
         (strcmp(node->op_type, "Send") == 0 || strcmp(node->op_type, "Recv") == 0);
}

/* A Send or Recv: one input, one output, and what its attributes say is a row of the manifest. */
static psplit_code check_boundary_node(proof *p, uint32_t stage, uint32_t part) {
  const psplit_graph *graph = psplit_i_model_graph(p->stages[stage]);
  const psplit_node *node = &graph->nodes[part];
  const bool sends = strcmp(node->op_type, "Send") == 0;
  int64_t tag = -1, peer = -1;
  const char *tensor = NULL;
  size_t n_tensor = 0;
  if (node->n_inputs != 1 || node->n_outputs != 1 || node->inputs[0] == PSPLIT_NONE ||
      node->outputs[0] == PSPLIT_NONE || !psplit_i_attr_int(node, "tag", &tag) || tag < 0 ||
      !psplit_i_attr_int(node, "peer", &peer) ||
      !psplit_i_attr_string(node, "tensor", &tensor, &n_tensor))
    return DIFFERS(p, "stage %" PRIu32 ": a %s node is not of the boundary's form", stage,
                   node->op_type);
  const psplit_i_manifest_transfer *transfer = find_transfer(p, (uint64_t)tag);
  const char *inner = graph->values[sends ? node->inputs[0] : node->outputs[0]].name;
  if (!transfer || strcmp(transfer->tensor, inner) != 0 || n_tensor != strlen(inner) ||
      memcmp(tensor, inner, n_tensor) != 0 || (sends ? transfer->from : transfer->to) != stage ||
      peer != (int64_t)(sends ? transfer->to : transfer->from))
    return DIFFERS(p, "stage %" PRIu32 ": %s of \"%s\" (tag %" PRId64
                   ", peer %" PRId64 ") is no transfer of the manifest",
                   stage, node->op_type, inner, tag, peer);
  return PSPLIT_OK;
}

static psplit_code check_nodes(proof *p, uint32_t stage) {
  psplit_code code = PSPLIT_OK;
  const psplit_graph *graph = psplit_i_model_graph(p->stages[stage]);
  char label[128];
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    if (is_boundary_node(p, &graph->nodes[i])) {
      const psplit_node *boundary = &graph->nodes[i];
      const bool sends = strcmp(boundary->op_type, "Send") == 0;
      (void)sends;
      PSPLIT_TRY(check_boundary_node(p, stage, i));
      continue;
    }
    uint32_t n;
    PSPLIT_TRY(find_node(p, stage, i, &n));
    if (n == PSPLIT_NONE)
      return DIFFERS(p, "stage %" PRIu32 ": node %s is not in the model", stage,
                     psplit_i_node_label(graph, i, label, sizeof label));
    bool equal;
    PSPLIT_TRY(compare_graph_fields(p, GRAPH_NODE, n, stage, i, p->graph->nodes[n].name, &equal));
    if (!equal)
      return DIFFERS(p, "stage %" PRIu32 ": node %s is not as in the model", stage,
                     psplit_i_node_label(graph, i, label, sizeof label));
    if (p->seen_in[n] == stage + 1)
      return DIFFERS(p, "stage %" PRIu32 ": node %s stands twice", stage,
                     psplit_i_node_label(graph, i, label, sizeof label));
    p->seen_in[n] = stage + 1;
    p->n_seen[n]++;
  }
out:
  return code;
}

/* --- values --- */

/* Initializers of the stage are the model's; what the model lets a caller override stays so. */
static psplit_code check_initializers(proof *p, uint32_t stage) {
  psplit_code code = PSPLIT_OK;
  const psplit_graph *graph = psplit_i_model_graph(p->stages[stage]);
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const psplit_value *part = &graph->values[v];
    const bool sparse = part->sparse_initializer != PSPLIT_NONE;
    if (part->initializer == PSPLIT_NONE && !sparse) continue;
    const uint32_t value = psplit_i_graph_find_value(p->graph, part->name);
    const psplit_value *whole = value == PSPLIT_NONE ? NULL : &p->graph->values[value];
    const uint32_t index = !whole ? PSPLIT_NONE
                           : sparse ? whole->sparse_initializer
                                    : whole->initializer;
    bool equal = index != PSPLIT_NONE;
    if (equal)
      PSPLIT_TRY(compare_graph_fields(p, sparse ? GRAPH_SPARSE : GRAPH_INITIALIZER, index, stage,
                                      sparse ? part->sparse_initializer : part->initializer,
                                      whole->name, &equal));
    if (!equal)
      return DIFFERS(p, "stage %" PRIu32 ": initializer \"%s\" is not the model's", stage,
                     part->name);
    if ((part->input == PSPLIT_NONE) != (whole->input == PSPLIT_NONE))
      return DIFFERS(p, "stage %" PRIu32 ": \"%s\" is %s a graph input", stage, part->name,
                     whole->input == PSPLIT_NONE ? "now" : "no longer");
    p->initializer_seen[value] = 1;
  }
out:
  return code;
}

static const psplit_i_row *find_row(const psplit_i_row *rows, uint32_t n, const char *name) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(rows[i].name, name) == 0) return &rows[i];
  return NULL;
}

/* The sender's row for a tensor and receiver. */
static bool sender_offers(const proof *p, uint32_t from, uint32_t to, const char *tensor) {
  const psplit_i_manifest_stage *sender = &p->manifest.stages[from];
  for (uint32_t o = 0; o < sender->n_outputs; o++) {
    if (strcmp(sender->outputs[o].tensor, tensor) != 0) continue;
    for (uint32_t t = 0; t < sender->outputs[o].n_to; t++)
      if (sender->outputs[o].to[t] == to) return true;
  }
  return false;
}

static bool has_transfer(const proof *p, uint32_t from, uint32_t to, const char *tensor) {
  for (uint32_t t = 0; t < p->manifest.n_transfers; t++) {
    const psplit_i_manifest_transfer *transfer = &p->manifest.transfers[t];
    if (transfer->from == from && transfer->to == to && strcmp(transfer->tensor, tensor) == 0)
      return true;
  }
  return false;
}

/* Whether the file's graph input or output `port` and the tensor inside are joined as the boundary
 * says: one name (io), or one Recv or Send between them. */
static bool joined(const proof *p, uint32_t stage, const char *port, const char *tensor,
                   bool receives) {
  if (!p->manifest.sendrecv) return strcmp(port, tensor) == 0;
  const psplit_graph *graph = psplit_i_model_graph(p->stages[stage]);
  const uint32_t inner = psplit_i_graph_find_value(graph, tensor);
  const uint32_t outer = psplit_i_graph_find_value(graph, port);
  if (inner == PSPLIT_NONE || outer == PSPLIT_NONE) return false;
  const uint32_t n = graph->values[receives ? inner : outer].producer;
  if (n == PSPLIT_NONE) return false;
  const psplit_node *node = &graph->nodes[n];
  return is_boundary_node(p, node) && strcmp(node->op_type, receives ? "Recv" : "Send") == 0 &&
         node->inputs[0] == (receives ? outer : inner);
}

static psplit_code check_inputs(proof *p, uint32_t stage) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_manifest_stage *row_list = &p->manifest.stages[stage];
  const psplit_graph *graph = psplit_i_model_graph(p->stages[stage]);
  uint32_t n_defaults = 0; /* inputs with an initializer: the manifest need not list them before IR 4 */
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    const psplit_value *input = &graph->values[graph->inputs[i]];
    const psplit_i_row *row = find_row(row_list->inputs, row_list->n_inputs, input->name);
    const bool has_default =
      input->initializer != PSPLIT_NONE || input->sparse_initializer != PSPLIT_NONE;
    if (!row && has_default) n_defaults++;
    if (!row && !has_default)
      return DIFFERS(p, "stage %" PRIu32 ": the manifest does not list input \"%s\"", stage,
                     input->name);
    if (!row || row->from == PSPLIT_I_FROM_MODEL) {
      const uint32_t value = psplit_i_graph_find_value(p->graph, input->name);
      const uint32_t index = value == PSPLIT_NONE ? PSPLIT_NONE : p->graph->values[value].input;
      bool equal = index != PSPLIT_NONE && (!row || strcmp(row->tensor, row->name) == 0);
      if (equal)
        PSPLIT_TRY(compare_graph_fields(p, GRAPH_INPUT, index, stage, i, input->name, &equal));
      const psplit_value *whole = value == PSPLIT_NONE ? NULL : &p->graph->values[value];
      if (!equal || ((whole->initializer != PSPLIT_NONE ||
                      whole->sparse_initializer != PSPLIT_NONE) != has_default))
        return DIFFERS(p, "stage %" PRIu32 ": input \"%s\" is not the model's", stage, input->name);
      continue;
    }
    if (has_default)
      return DIFFERS(p, "stage %" PRIu32 ": \"%s\" is received and an initializer", stage,
                     input->name);
    if (row->from >= stage)
      return DIFFERS(p, "stage %" PRIu32 " receives \"%s\" from stage %" PRIu32
                     ", which is not before it", stage, row->tensor, row->from);
    if (!joined(p, stage, row->name, row->tensor, true))
      return DIFFERS(p, "stage %" PRIu32 ": \"%s\" does not come out of input \"%s\"", stage,
                     row->tensor, row->name);
    if (!sender_offers(p, row->from, stage, row->tensor))
      return DIFFERS(p, "stage %" PRIu32 " waits for \"%s\", which stage %" PRIu32 " does not send",
                     stage, row->tensor, row->from);
    if (!has_transfer(p, row->from, stage, row->tensor))
      return DIFFERS(p, "\"%s\" from stage %" PRIu32 " to %" PRIu32 " is missing among the transfers",
                     row->tensor, row->from, stage);
    const uint32_t value = psplit_i_graph_find_value(p->graph, row->tensor);
    if (value == PSPLIT_NONE)
      return DIFFERS(p, "\"%s\" is no value of the model", row->tensor);
  }
  if (row_list->n_inputs + n_defaults != graph->n_inputs)
    return DIFFERS(p, "stage %" PRIu32 ": the manifest lists %" PRIu32
                   " inputs, the file has %" PRIu32, stage, row_list->n_inputs, graph->n_inputs);
out:
  return code;
}

static psplit_code check_outputs(proof *p, uint32_t stage) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_manifest_stage *row_list = &p->manifest.stages[stage];
  const psplit_graph *graph = psplit_i_model_graph(p->stages[stage]);
  if (row_list->n_outputs != graph->n_outputs)
    return DIFFERS(p, "stage %" PRIu32 ": the manifest lists %" PRIu32
                   " outputs, the file has %" PRIu32, stage, row_list->n_outputs, graph->n_outputs);
  for (uint32_t i = 0; i < graph->n_outputs; i++) {
    const char *name = graph->values[graph->outputs[i]].name;
    const psplit_i_row *row = &row_list->outputs[i];
    if (strcmp(row->name, name) != 0)
      return DIFFERS(p, "stage %" PRIu32 ": output %" PRIu32 " is \"%s\", not \"%s\"", stage, i,
                     name, row->name);
    if (row->to_model) {
      bool equal = false;
      for (uint32_t o = 0; o < p->graph->n_outputs && !equal; o++) {
        if (strcmp(p->graph->values[p->graph->outputs[o]].name, name) != 0 || p->output_seen[o])
          continue;
        PSPLIT_TRY(compare_graph_fields(p, GRAPH_OUTPUT, o, stage, i, name, &equal));
        if (equal) p->output_seen[o] = 1;
      }
      if (!equal || strcmp(row->tensor, name) != 0)
        return DIFFERS(p, "stage %" PRIu32 ": output \"%s\" is not the model's", stage, name);
    }
    if (!row->n_to && !row->to_model)
      return DIFFERS(p, "stage %" PRIu32 ": output \"%s\" goes nowhere", stage, name);
    if (row->n_to && !joined(p, stage, name, row->tensor, false))
      return DIFFERS(p, "stage %" PRIu32 ": output \"%s\" does not send \"%s\"", stage, name,
                     row->tensor);
    for (uint32_t t = 0; t < row->n_to; t++)
      if (!has_transfer(p, stage, row->to[t], row->tensor))
        return DIFFERS(p, "\"%s\" from stage %" PRIu32 " to %" PRIu32
                       " is missing among the transfers", row->tensor, stage, row->to[t]);
  }
out:
  return code;
}

/* value_info and quantization annotations: each entry is the model's, and each of the model's stands
 * wherever the value is made. */
static psplit_code check_descriptions(proof *p, uint32_t stage) {
  psplit_code code = PSPLIT_OK;
  const psplit_graph *graph = psplit_i_model_graph(p->stages[stage]);
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const uint32_t value = psplit_i_graph_find_value(p->graph, graph->values[v].name);
    const uint32_t part = graph->values[v].value_info;
    const uint32_t whole = value == PSPLIT_NONE ? PSPLIT_NONE : p->graph->values[value].value_info;
    if (part != PSPLIT_NONE) {
      bool equal = whole != PSPLIT_NONE;
      if (equal)
        PSPLIT_TRY(compare_graph_fields(p, GRAPH_VALUE_INFO, whole, stage, part,
                                        graph->values[v].name, &equal));
      if (!equal)
        return DIFFERS(p, "stage %" PRIu32 ": value_info of \"%s\" is not the model's", stage,
                       graph->values[v].name);
    } else if (whole != PSPLIT_NONE && graph->values[v].producer != PSPLIT_NONE &&
               !graph->values[v].is_output &&
               !is_boundary_node(p, &graph->nodes[graph->values[v].producer])) {
      return DIFFERS(p, "stage %" PRIu32 ": value_info of \"%s\" is missing", stage,
                     graph->values[v].name);
    }
  }
  const Onnx__GraphProto *proto = p->stages[stage]->proto->graph;
  const Onnx__GraphProto *model = p->model->proto->graph;
  for (uint32_t i = 0; i < proto->n_quantization_annotation; i++) {
    bool equal = false;
    for (uint32_t k = 0; k < model->n_quantization_annotation && !equal; k++)
      PSPLIT_TRY(compare_graph_fields(p, GRAPH_ANNOTATION, k, stage, i, "annotation", &equal));
    if (!equal)
      return DIFFERS(p, "stage %" PRIu32 ": a quantization annotation is not the model's", stage);
  }
  for (uint32_t k = 0; k < model->n_quantization_annotation; k++) {
    const char *name = model->quantization_annotation[k]->tensor_name;
    const uint32_t v = name ? psplit_i_graph_find_value(graph, name) : PSPLIT_NONE;
    if (v == PSPLIT_NONE) continue;
    bool found = false;
    for (uint32_t i = 0; i < proto->n_quantization_annotation && !found; i++)
      found = proto->quantization_annotation[i]->tensor_name &&
              strcmp(proto->quantization_annotation[i]->tensor_name, name) == 0;
    if (!found)
      return DIFFERS(p, "stage %" PRIu32 ": the quantization annotation of \"%s\" is missing", stage,
                     name);
  }
out:
  return code;
}

/* --- coverage --- */

/* Operators whose copies would not agree. Independent of the list that the passes use. */
static bool graph_draws_randomly(const psplit_graph *graph, const psplit_model *model);

static bool node_draws_randomly(const psplit_node *node, const psplit_model *model) {
  if (strncmp(node->op_type, "Random", 6) == 0 || strcmp(node->op_type, "Multinomial") == 0 ||
      strcmp(node->op_type, "Bernoulli") == 0)
    return true;
  for (uint32_t b = 0; b < node->n_bodies; b++)
    if (graph_draws_randomly(node->bodies[b], model)) return true;
  return node->function != PSPLIT_NONE &&
         graph_draws_randomly(psplit_i_model_function(model, node->function), model);
}

static bool graph_draws_randomly(const psplit_graph *graph, const psplit_model *model) {
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (node_draws_randomly(&graph->nodes[n], model)) return true;
  return false;
}

static psplit_code check_coverage(proof *p) {
  char label[128];
  uint32_t *declared = PSPLIT_NEW(&p->arena, uint32_t, p->graph->n_nodes);
  if (!declared) return psplit_i_nomem(p->diag);
  for (uint32_t d = 0; d < p->manifest.n_duplicates; d++) {
    if (p->manifest.duplicates[d].node >= p->graph->n_nodes)
      return DIFFERS(p, "the manifest declares a duplicate of a node that is not there");
    declared[p->manifest.duplicates[d].node] = p->manifest.duplicates[d].n_stages;
  }
  for (uint32_t n = 0; n < p->graph->n_nodes; n++) {
    const char *name = psplit_i_node_label(p->graph, n, label, sizeof label);
    if (!p->n_seen[n]) return DIFFERS(p, "node %s is in no stage", name);
    if (p->n_seen[n] != (declared[n] ? declared[n] : 1))
      return DIFFERS(p, "node %s is in %" PRIu32 " stages, the manifest says %" PRIu32, name,
                     p->n_seen[n], declared[n] ? declared[n] : 1);
    if (p->n_seen[n] > 1 && node_draws_randomly(&p->graph->nodes[n], p->model))
      return DIFFERS(p, "node %s draws random numbers and is in several stages", name);
  }
  for (uint32_t o = 0; o < p->graph->n_outputs; o++)
    if (!p->output_seen[o])
      return DIFFERS(p, "output \"%s\" of the model comes out of no stage",
                     p->graph->values[p->graph->outputs[o]].name);
  for (uint32_t v = 0; v < p->graph->n_values; v++) {
    const psplit_value *value = &p->graph->values[v];
    const bool used = value->is_output || p->graph->consumer_off[v] < p->graph->consumer_off[v + 1];
    if ((value->initializer != PSPLIT_NONE || value->sparse_initializer != PSPLIT_NONE) && used &&
        !p->initializer_seen[v])
      return DIFFERS(p, "initializer \"%s\" is in no stage", value->name);
  }
  return PSPLIT_OK;
}

static int compare_tags(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* What the manifest says of the model and of the transfers, before any stage is looked at. */
static psplit_code check_manifest(proof *p) {
  const psplit_i_manifest *m = &p->manifest;
  for (uint32_t t = 0; t < m->n_transfers; t++) {
    const psplit_i_manifest_transfer *transfer = &m->transfers[t];
    if (transfer->from >= transfer->to)
      return DIFFERS(p, "\"%s\" goes from stage %" PRIu32 " to %" PRIu32
                     ": stages never send back", transfer->tensor, transfer->from, transfer->to);
    if (!sender_offers(p, transfer->from, transfer->to, transfer->tensor))
      return DIFFERS(p, "transfer %" PRIu64 ": stage %" PRIu32 " does not send \"%s\" to %" PRIu32,
                     transfer->tag, transfer->from, transfer->tensor, transfer->to);
    bool received = false;
    const psplit_i_manifest_stage *receiver = &m->stages[transfer->to];
    for (uint32_t i = 0; i < receiver->n_inputs && !received; i++)
      received = receiver->inputs[i].from == transfer->from &&
                 strcmp(receiver->inputs[i].tensor, transfer->tensor) == 0;
    if (!received)
      return DIFFERS(p, "transfer %" PRIu64 ": stage %" PRIu32 " does not receive \"%s\"",
                     transfer->tag, transfer->to, transfer->tensor);
  }
  uint64_t *tags = psplit_i_arena_array(&p->arena, m->n_transfers, sizeof *tags);
  if (!tags) return psplit_i_nomem(p->diag);
  for (uint32_t t = 0; t < m->n_transfers; t++) tags[t] = m->transfers[t].tag;
  if (m->n_transfers) qsort(tags, m->n_transfers, sizeof *tags, compare_tags);
  for (uint32_t t = 1; t < m->n_transfers; t++)
    if (tags[t] == tags[t - 1]) return DIFFERS(p, "two transfers have tag %" PRIu64, tags[t]);
  if (m->n_outputs != p->graph->n_outputs)
    return DIFFERS(p, "the manifest lists %" PRIu32 " outputs, the model has %" PRIu32,
                   m->n_outputs, p->graph->n_outputs);
  for (uint32_t o = 0; o < m->n_outputs; o++)
    if (strcmp(m->outputs[o], p->graph->values[p->graph->outputs[o]].name) != 0)
      return DIFFERS(p, "the manifest's output %" PRIu32 " is \"%s\", the model's \"%s\"", o,
                     m->outputs[o], p->graph->values[p->graph->outputs[o]].name);
  for (uint32_t i = 0; i < p->graph->n_inputs; i++) {
    const psplit_value *input = &p->graph->values[p->graph->inputs[i]];
    bool listed = input->initializer != PSPLIT_NONE || input->sparse_initializer != PSPLIT_NONE;
    for (uint32_t k = 0; k < m->n_inputs && !listed; k++)
      listed = strcmp(m->inputs[k], input->name) == 0;
    if (!listed) return DIFFERS(p, "the manifest does not list the model's input \"%s\"", input->name);
  }
  return PSPLIT_OK;
}

/* --- the whole --- */

static psplit_code open_stages(proof *p, const char *directory,
                               const psplit_verify_options *options) {
  psplit_code code = PSPLIT_OK;
  p->stages = PSPLIT_NEW(&p->arena, psplit_model *, p->manifest.n_stages);
  if (!p->stages) return psplit_i_nomem(p->diag);
  for (uint32_t s = 0; s < p->manifest.n_stages; s++) {
    psplit_text path = {0};
    psplit_i_text_addf(&path, "%s/%s", directory, p->manifest.stages[s].file);
    code = path.failed ? psplit_i_nomem(p->diag)
                       : psplit_model_open(path.bytes, options ? &options->read : NULL, p->diag,
                                           &p->stages[s]);
    psplit_i_text_fini(&path);
    if (code != PSPLIT_OK) break;
  }
  return code;
}

static psplit_code check_stage(proof *p, uint32_t stage) {
  psplit_code code;
  const psplit_i_skeleton *whole = &p->model->skeleton, *part = &p->stages[stage]->skeleton;
  PSPLIT_TRY(compare_verbatim(p, stage, &onnx__model_proto__descriptor, &whole->model_fields,
                              &part->model_fields, model_field_is_verbatim));
  PSPLIT_TRY(compare_verbatim(p, stage, &onnx__graph_proto__descriptor, &whole->graph_fields,
                              &part->graph_fields, graph_field_is_verbatim));
  PSPLIT_TRY(compare_extended(p, stage, MODEL_OPSETS, opset_is_boundary));
  PSPLIT_TRY(compare_extended(p, stage, MODEL_FUNCTIONS, function_is_boundary));
  PSPLIT_TRY(check_nodes(p, stage));
  PSPLIT_TRY(check_initializers(p, stage));
  PSPLIT_TRY(check_inputs(p, stage));
  PSPLIT_TRY(check_outputs(p, stage));
  PSPLIT_TRY(check_descriptions(p, stage));
out:
  return code;
}

static void report(const proof *p, psplit_verify_report *out) {
  *out = (psplit_verify_report){.n_stages = p->manifest.n_stages,
                                .n_nodes = p->graph->n_nodes,
                                .n_transfers = p->manifest.n_transfers,
                                .weight_bytes = p->weight_bytes};
  for (uint32_t n = 0; n < p->graph->n_nodes; n++) out->n_duplicates += p->n_seen[n] - 1;
}

psplit_code psplit_verify(const char *directory, const psplit_model *model,
                          const psplit_verify_options *options, psplit_diag *diag,
                          psplit_verify_report *out_report) {
  psplit_code code;
  proof p = {.model = model, .graph = psplit_i_model_graph(model), .diag = diag};
  psplit_i_arena_init(&p.arena, 0);
  p.n_seen = PSPLIT_NEW(&p.arena, uint32_t, p.graph->n_nodes);
  p.seen_in = PSPLIT_NEW(&p.arena, uint32_t, p.graph->n_nodes);
  p.initializer_seen = PSPLIT_NEW(&p.arena, uint8_t, p.graph->n_values);
  p.output_seen = PSPLIT_NEW(&p.arena, uint32_t, p.graph->n_outputs);
  if (!p.n_seen || !p.seen_in || !p.initializer_seen || !p.output_seen)
    PSPLIT_TRY(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_manifest_read(directory, &p.arena, diag, &p.manifest));
  PSPLIT_TRY(check_manifest(&p));
  PSPLIT_TRY(open_stages(&p, directory, options));
  for (uint32_t s = 0; s < p.manifest.n_stages; s++) PSPLIT_TRY(check_stage(&p, s));
  PSPLIT_TRY(check_coverage(&p));
  PSPLIT_TRY(psplit_i_pairs_compare(model, p.stages, &p.pairs, options ? options->n_threads : 0,
                                    diag));
  if (out_report) report(&p, out_report);
out:
  for (uint32_t s = 0; p.stages && s < p.manifest.n_stages; s++) psplit_model_close(p.stages[s]);
  psplit_i_vec_fini(&p.pairs);
  psplit_i_vec_fini(&p.payload_a);
  psplit_i_vec_fini(&p.payload_b);
  psplit_i_text_fini(&p.a);
  psplit_i_text_fini(&p.b);
  psplit_i_arena_fini(&p.arena);
  return code;
}
