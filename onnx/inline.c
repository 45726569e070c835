/* An If taken for one of its branches, on the bytes of the skeleton. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "draft.h"
#include "fields.h"
#include "model.h"
#include "wire.h"

enum { SEQUENCE_IDENTITY_OPSET = 14, OPTIONAL_IDENTITY_OPSET = 16 };

typedef struct inliner {
  const psplit_model *model;
  const psplit_inline_if *choice;
  psplit_diag *diag;
  uint32_t node;              /* the If */
  const psplit_i_graph *body; /* the branch, and its GraphProto: */
  const uint8_t *body_at, *body_end;
  bool *same_output; /* [body->n_values] is an output of the If as well */
  psplit_i_draft draft;
} inliner;

static const char *branch_name(const inliner *in) {
  return in->choice->then_branch ? "then_branch" : "else_branch";
}

static psplit_code fail_no_such(const inliner *in) {
  const psplit_i_graph *graph = in->model->graph;
  const char **names = malloc(((size_t)graph->n_nodes + 1) * sizeof *names);
  if (!names) return psplit_i_nomem(in->diag);
  uint32_t n = 0;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const psplit_i_node *node = &graph->nodes[i];
    if (!psplit_i_node_is(node, "If")) continue;
    if (*node->name)
      names[n++] = node->name;
    else if (node->n_outputs && node->outputs[0] != PSPLIT_NONE)
      names[n++] = graph->values[node->outputs[0]].name;
  }
  psplit_i_text hint = {0};
  psplit_i_add_names(&hint, "Ifs are", in->choice->node, names, n);
  const psplit_code code =
    psplit_i_fail_about(in->diag, PSPLIT_USAGE, PSPLIT_I_ABOUT(INLINE_IF),
                        "%s: no If of the main graph has that name or output (an If in a branch "
                        "can be inlined after the If that contains it)%s",
                        in->choice->node, hint.failed || !hint.bytes ? "" : hint.bytes);
  psplit_i_text_fini(&hint);
  free(names);
  return code;
}

static psplit_code find_if(inliner *in) {
  const psplit_i_graph *graph = in->model->graph;
  in->node = PSPLIT_NONE;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_i_node *node = &graph->nodes[n];
    if (!psplit_i_node_is(node, "If") || !psplit_i_node_is_called(graph, node, in->choice->node))
      continue;
    if (in->node != PSPLIT_NONE)
      return psplit_i_fail_about(in->diag, PSPLIT_USAGE, PSPLIT_I_ABOUT(INLINE_IF),
                                 "%s: several Ifs have that name; use the name of an output",
                                 in->choice->node);
    in->node = n;
  }
  if (in->node == PSPLIT_NONE) return fail_no_such(in);
  in->body = psplit_i_attr_body(&graph->nodes[in->node], branch_name(in));
  if (in->body && in->body->n_outputs >= graph->nodes[in->node].n_outputs && !in->body->n_inputs)
    return PSPLIT_OK;
  return psplit_i_fail(in->diag, PSPLIT_INVALID,
                       "If %s has no %s without inputs and with its %" PRIu32 " outputs",
                       in->choice->node, branch_name(in), graph->nodes[in->node].n_outputs);
}

/* Where the skeleton holds the branch. */
static psplit_code find_body_bytes(inliner *in) {
  const psplit_i_skeleton *skeleton = &in->model->skeleton;
  const psplit_i_span *span = &skeleton->graph_fields.items[in->model->node_spans[in->node]];
  const uint8_t *at = skeleton->bytes + span->skeleton_offset;
  psplit_i_field node, attribute, part;
  if (!psplit_i_next_field(&at, at + span->skeleton_bytes, &node)) goto lost;
  for (at = node.content; at < node.end;) {
    if (!psplit_i_next_field(&at, node.end, &attribute)) goto lost;
    if (attribute.number != PSPLIT_I_NODE_ATTRIBUTE) continue;
    const uint8_t *inner = attribute.content;
    const char *name = branch_name(in);
    bool wanted = false;
    in->body_at = NULL;
    while (inner < attribute.end) {
      if (!psplit_i_next_field(&inner, attribute.end, &part)) goto lost;
      const size_t n = (size_t)(part.end - part.content);
      if (part.number == PSPLIT_I_ATTRIBUTE_NAME)
        wanted = n == strlen(name) && memcmp(part.content, name, n) == 0;
      if (part.number == PSPLIT_I_ATTRIBUTE_GRAPH) {
        in->body_at = part.content;
        in->body_end = part.end;
      }
    }
    if (wanted && in->body_at) return PSPLIT_OK;
  }
lost:
  return psplit_i_fail(in->diag, PSPLIT_INTERNAL, "a node changed since it was scanned");
}

/* --- names --- */

/* An output of the branch may have the name of the If's output of the same place, as in decoders
 * that optimum merges: it then stands for the If's, with nothing in between. */
static psplit_code find_same_outputs(inliner *in) {
  const psplit_i_graph *graph = in->model->graph;
  const psplit_i_node *node = &graph->nodes[in->node];
  in->same_output = calloc((size_t)in->body->n_values + 1, sizeof *in->same_output);
  if (!in->same_output) return psplit_i_nomem(in->diag);
  for (uint32_t o = 0; o < node->n_outputs; o++) {
    const uint32_t v = in->body->outputs[o];
    if (node->outputs[o] != PSPLIT_NONE &&
        strcmp(in->body->values[v].name, graph->values[node->outputs[o]].name) == 0)
      in->same_output[v] = true;
  }
  return PSPLIT_OK;
}

/* Whether the main graph declares what the branch's value is. */
static bool is_declared_outside(const inliner *in, uint32_t v) {
  if (!in->same_output[v]) return false;
  const uint32_t outside = psplit_i_graph_find_value(in->model->graph, in->body->values[v].name);
  return in->model->graph->values[outside].declared_type != NULL;
}

static bool defines(const psplit_i_value *value) { return value->outer == PSPLIT_NONE; }

/* Names that a body and those inside it define. Depth is bounded by the scan. */
static psplit_code take_names(const psplit_i_graph *body, psplit_i_intern *taken,
                              psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t v = 0; v < body->n_values; v++)
    if (defines(&body->values[v]) &&
        psplit_i_intern_add(taken, body->values[v].name) == PSPLIT_NONE)
      PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t n = 0; n < body->n_nodes; n++)
    for (uint32_t b = 0; b < body->nodes[n].n_bodies; b++)
      PSPLIT_TRY(take_names(body->nodes[n].bodies[b], taken, diag));
out:
  return code;
}

/* What the branch defines becomes visible in the main graph and in every body: no other value may
 * be of that name, but for an output of the If that it becomes. The If's other branch goes, and its
 * names with it. */
static psplit_code check_names(inliner *in) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = in->model->graph;
  psplit_i_intern taken;
  psplit_i_intern_init(&taken);
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (psplit_i_intern_add(&taken, graph->values[v].name) == PSPLIT_NONE)
      PSPLIT_FAIL(psplit_i_nomem(in->diag));
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    for (uint32_t b = 0; n != in->node && b < graph->nodes[n].n_bodies; b++)
      PSPLIT_TRY(take_names(graph->nodes[n].bodies[b], &taken, in->diag));
  for (uint32_t v = 0; v < in->body->n_values; v++) {
    const psplit_i_value *value = &in->body->values[v];
    if (defines(value) && psplit_i_intern_find(&taken, value->name) != PSPLIT_NONE &&
        !in->same_output[v])
      PSPLIT_FAIL(psplit_i_fail_about(in->diag, PSPLIT_UNSUPPORTED, PSPLIT_I_ABOUT(INLINE_IF),
                                      "%s: \"%s\" of its %s is the name of another value outside "
                                      "as well, and would be taken for it",
                                      in->choice->node, value->name, branch_name(in)));
  }
out:
  psplit_i_intern_fini(&taken);
  return code;
}

/* --- the condition --- */

psplit_code psplit_i_if_condition(const psplit_i_graph *graph, uint32_t node, psplit_diag *diag,
                                  bool *out_known, bool *out_value) {
  const psplit_i_node *if_node = &graph->nodes[node];
  *out_known = false;
  if (graph->parent || if_node->n_inputs != 1 || if_node->inputs[0] == PSPLIT_NONE)
    return PSPLIT_OK;
  const psplit_i_value *value = &graph->values[if_node->inputs[0]];
  psplit_i_tensor tensor = {0};
  if (value->producer != PSPLIT_NONE) {
    const psplit_i_node *maker = &graph->nodes[value->producer];
    const Onnx__TensorProto *proto =
      psplit_i_node_is(maker, "Constant") ? psplit_i_attr_tensor(maker, "value") : NULL;
    if (!proto) return PSPLIT_OK;
    tensor = psplit_i_tensor_of(proto);
  } else if (value->initializer != PSPLIT_NONE &&
             (value->input == PSPLIT_NONE || psplit_i_model_ir_version(graph->model) < 4)) {
    tensor = psplit_i_graph_initializer(graph, value->initializer);
  } else {
    return PSPLIT_OK;
  }
  if (tensor.data_type != ONNX__TENSOR_PROTO__DATA_TYPE__BOOL) return PSPLIT_OK;
  psplit_i_arena arena;
  const int64_t *items;
  size_t n;
  psplit_i_arena_init(&arena, 0);
  const psplit_code code =
    psplit_i_tensor_int64s(graph->model, &tensor, 1, &arena, diag, &items, &n);
  *out_known = code == PSPLIT_OK && items && n == 1;
  if (*out_known) *out_value = items[0] != 0;
  psplit_i_arena_fini(&arena);
  return code;
}

static psplit_code check_condition(inliner *in, psplit_inlined *out) {
  const psplit_i_graph *graph = in->model->graph;
  const psplit_i_node *node = &graph->nodes[in->node];
  if (node->n_inputs != 1 || node->inputs[0] == PSPLIT_NONE)
    return psplit_i_fail(in->diag, PSPLIT_INVALID, "If %s has no condition", in->choice->node);
  const char *condition = graph->values[node->inputs[0]].name;
  bool value = false;
  bool known;
  const psplit_code code = psplit_i_if_condition(graph, in->node, in->diag, &known, &value);
  if (code != PSPLIT_OK) return code;
  if (known && value != in->choice->then_branch)
    return psplit_i_fail_about(in->diag, PSPLIT_USAGE, PSPLIT_I_ABOUT(INLINE_IF),
                               "%s: its condition \"%s\" is always %s, and its %s never runs",
                               in->choice->node, condition, value ? "true" : "false",
                               branch_name(in));
  *out = (psplit_inlined){in->choice->node, condition, in->choice->then_branch, !known};
  return PSPLIT_OK;
}

/* --- the new skeleton --- */

/* A field of the branch as one of the main graph. */
static void add_body_field(inliner *in, const psplit_i_field *f) {
  const bool tensors = f->number == PSPLIT_I_GRAPH_NODE ||
                       f->number == PSPLIT_I_GRAPH_INITIALIZER ||
                       f->number == PSPLIT_I_GRAPH_SPARSE;
  const psplit_i_span *whole =
    &in->model->skeleton.graph_fields.items[in->model->node_spans[in->node]];
  psplit_i_draft_add(&in->draft, f->start, (size_t)(f->end - f->start),
                     (psplit_i_span){.field = f->number, .has_view = tensors && whole->has_view});
}

/* Whether the branch's value_info `index` speaks of a value of its own, and alone. */
static bool is_of_body(const inliner *in, uint32_t index) {
  const char *name = in->body->proto->value_info[index]->name;
  const uint32_t v = name ? psplit_i_graph_find_value(in->body, name) : PSPLIT_NONE;
  return v != PSPLIT_NONE && defines(&in->body->values[v]) && !is_declared_outside(in, v);
}

static psplit_code add_body_fields(inliner *in, bool nodes) {
  psplit_i_field f;
  uint32_t n_infos = 0;
  for (const uint8_t *at = in->body_at; at < in->body_end;) {
    if (!psplit_i_next_field(&at, in->body_end, &f))
      return psplit_i_fail(in->diag, PSPLIT_INTERNAL, "a branch changed since it was scanned");
    const bool taken = f.number == PSPLIT_I_GRAPH_INITIALIZER ||
                       f.number == PSPLIT_I_GRAPH_VALUE_INFO ||
                       f.number == PSPLIT_I_GRAPH_ANNOTATION || f.number == PSPLIT_I_GRAPH_SPARSE;
    if (f.number == PSPLIT_I_GRAPH_VALUE_INFO && !is_of_body(in, n_infos++)) continue;
    if (nodes ? f.number == PSPLIT_I_GRAPH_NODE : taken) add_body_field(in, &f);
  }
  return PSPLIT_OK;
}

/* Identity takes sequences and optional values only since some opset. */
static psplit_code check_output_kind(const inliner *in, const psplit_i_value *from) {
  const psplit_i_value_kind kind = psplit_i_type_kind(from->declared_type);
  const int64_t opset = in->model->graph->nodes[in->node].opset;
  if ((kind == PSPLIT_TYPE_SEQUENCE && opset < SEQUENCE_IDENTITY_OPSET) ||
      (kind == PSPLIT_TYPE_OPTIONAL && opset < OPTIONAL_IDENTITY_OPSET))
    return psplit_i_fail_about(in->diag, PSPLIT_UNSUPPORTED, PSPLIT_I_ABOUT(INLINE_IF),
                               "%s: output \"%s\" is not a tensor, and opset %" PRId64
                               " has no Identity for it",
                               in->choice->node, from->name, opset);
  return PSPLIT_OK;
}

static psplit_code check_identity(const inliner *in) {
  if (psplit_i_model_own_operator(in->model, "Identity"))
    return psplit_i_fail_about(in->diag, PSPLIT_UNSUPPORTED, PSPLIT_I_ABOUT(INLINE_IF),
                               "%s: the model has its own function \"Identity\", and what a branch "
                               "gives needs the operator",
                               in->choice->node);
  return PSPLIT_OK;
}

/* What comes out of the branch under the names of the If's outputs, where they are others. */
static psplit_code add_identities(inliner *in) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = in->model->graph;
  const psplit_i_node *node = &graph->nodes[in->node];
  psplit_i_text inner = {0}, field = {0}, name = {0};
  for (uint32_t o = 0; o < node->n_outputs; o++) {
    if (node->outputs[o] == PSPLIT_NONE) continue;
    const psplit_i_value *from = &in->body->values[in->body->outputs[o]];
    const char *to = graph->values[node->outputs[o]].name;
    if (strcmp(from->name, to) == 0) continue;
    PSPLIT_TRY(check_identity(in));
    PSPLIT_TRY(check_output_kind(in, from));
    inner.n = field.n = name.n = 0;
    psplit_i_text_addf(&name, "%s/%s", node->name, to);
    psplit_i_wire_bytes(&inner, PSPLIT_I_NODE_INPUT, from->name, strlen(from->name));
    psplit_i_wire_bytes(&inner, PSPLIT_I_NODE_OUTPUT, to, strlen(to));
    if (!name.failed) psplit_i_wire_bytes(&inner, PSPLIT_I_NODE_NAME, name.bytes, name.n);
    psplit_i_wire_bytes(&inner, PSPLIT_I_NODE_OP_TYPE, "Identity", 8);
    psplit_i_wire_bytes(&field, PSPLIT_I_GRAPH_NODE, inner.bytes, inner.n);
    if (name.failed || inner.failed || field.failed) PSPLIT_FAIL(psplit_i_nomem(in->diag));
    psplit_i_draft_add(&in->draft, field.bytes, field.n,
                       (psplit_i_span){.field = PSPLIT_I_GRAPH_NODE});
  }
out:
  psplit_i_text_fini(&name);
  psplit_i_text_fini(&field);
  psplit_i_text_fini(&inner);
  return code;
}

/* Declared types of the branch's outputs stay, as value_info. */
static psplit_code add_output_infos(inliner *in) {
  psplit_code code = PSPLIT_OK;
  const Onnx__GraphProto *proto = in->body->proto;
  psplit_i_text field = {0};
  psplit_i_field f;
  uint32_t o = 0;
  for (const uint8_t *at = in->body_at; at < in->body_end;) {
    if (!psplit_i_next_field(&at, in->body_end, &f))
      PSPLIT_FAIL(
        psplit_i_fail(in->diag, PSPLIT_INTERNAL, "a branch changed since it was scanned"));
    if (f.number != PSPLIT_I_GRAPH_OUTPUT) continue;
    const uint32_t v = in->body->outputs[o++];
    const psplit_i_value *value = &in->body->values[v];
    bool repeated = false;
    for (uint32_t k = 0; k + 1 < o; k++) repeated |= in->body->outputs[k] == v;
    if (repeated || value->producer == PSPLIT_NONE || value->value_info != PSPLIT_NONE ||
        is_declared_outside(in, v) || !proto->output[o - 1]->type)
      continue;
    field.n = 0;
    psplit_i_wire_bytes(&field, PSPLIT_I_GRAPH_VALUE_INFO, f.content, (size_t)(f.end - f.content));
    if (field.failed) PSPLIT_FAIL(psplit_i_nomem(in->diag));
    psplit_i_draft_add(&in->draft, field.bytes, field.n,
                       (psplit_i_span){.field = PSPLIT_I_GRAPH_VALUE_INFO});
  }
out:
  psplit_i_text_fini(&field);
  return code;
}

static psplit_code make_graph(inliner *in) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_skeleton *skeleton = &in->model->skeleton;
  for (size_t i = 0; i < skeleton->graph_fields.n; i++) {
    const psplit_i_span *span = &skeleton->graph_fields.items[i];
    if (i == in->model->node_spans[in->node]) {
      PSPLIT_TRY(add_body_fields(in, true));
      PSPLIT_TRY(add_identities(in));
    } else {
      psplit_i_draft_add(&in->draft, skeleton->bytes + span->skeleton_offset, span->skeleton_bytes,
                         *span);
    }
  }
  PSPLIT_TRY(add_body_fields(in, false));
  PSPLIT_TRY(add_output_infos(in));
out:
  return code;
}

psplit_code psplit_i_inline_if(const psplit_model *model, const psplit_inline_if *choice,
                               psplit_diag *diag, psplit_i_skeleton *out_skeleton,
                               psplit_inlined *out_inlined) {
  psplit_code code;
  inliner in = {.model = model, .choice = choice, .diag = diag};
  PSPLIT_TRY(find_if(&in));
  PSPLIT_TRY(find_body_bytes(&in));
  PSPLIT_TRY(find_same_outputs(&in));
  PSPLIT_TRY(check_names(&in));
  PSPLIT_TRY(check_condition(&in, out_inlined));
  PSPLIT_TRY(make_graph(&in));
  PSPLIT_TRY(psplit_i_draft_finish(&in.draft, &model->skeleton, diag, out_skeleton));
out:
  free(in.same_output);
  psplit_i_draft_fini(&in.draft);
  return code;
}
