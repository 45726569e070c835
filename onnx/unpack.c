#include "unpack.h"

#include <string.h>

#include "fields.h"
#include "wire.h"

/* Where protobuf-c allocates, and whether it ever could not, or was not to go on. */
typedef struct unpacker {
  psplit_i_arena *arena;
  const volatile int *cancel;
  bool failed;
} unpacker;

static void *unpack_alloc(void *data, size_t bytes) {
  unpacker *u = data;
  void *memory = psplit_i_cancelled(u->cancel) ? NULL : psplit_i_arena_alloc_close(u->arena, bytes);
  if (!memory) u->failed = true;
  return memory;
}

static void unpack_free(void *data, void *memory) {
  (void)data; /* the arena goes as a whole */
  (void)memory;
}

psplit_code psplit_i_unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes,
                            size_t n, psplit_i_arena *arena, const volatile int *cancel,
                            psplit_diag *diag, ProtobufCMessage **out) {
  unpacker u = {.arena = arena, .cancel = cancel};
  ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &u};
  *out = protobuf_c_message_unpack(descriptor, &allocator, n, bytes);
  if (*out) return PSPLIT_OK;
  const psplit_code code = psplit_i_go_on(cancel, diag);
  if (code != PSPLIT_OK) return code;
  if (u.failed) return psplit_i_nomem(diag);
  return psplit_i_fail(diag, PSPLIT_MALFORMED, "not an ONNX model: it cannot be unpacked");
}

static void add_fields(const psplit_i_skeleton *skeleton, const psplit_i_spans *fields,
                       uint32_t but, psplit_i_text *out) {
  for (size_t i = 0; i < fields->n; i++)
    if (fields->items[i].field != but)
      psplit_i_text_add(out, skeleton->bytes + fields->items[i].skeleton_offset,
                        fields->items[i].skeleton_bytes);
}

psplit_code psplit_i_unpack_without_nodes(const psplit_i_skeleton *skeleton, psplit_i_arena *arena,
                                          const volatile int *cancel, psplit_diag *diag,
                                          Onnx__ModelProto **out) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_spans *fields = &skeleton->graph_fields;
  psplit_i_text model = {0};
  ProtobufCMessage *message;
  bool has_graph = false;
  size_t graph_bytes = 0;
  for (size_t i = 0; i < fields->n; i++)
    if (fields->items[i].field != PSPLIT_I_GRAPH_NODE)
      graph_bytes += fields->items[i].skeleton_bytes;
  for (size_t i = 0; i < skeleton->model_fields.n; i++)
    has_graph |= skeleton->model_fields.items[i].field == PSPLIT_I_MODEL_GRAPH;
  add_fields(skeleton, &skeleton->model_fields, PSPLIT_I_MODEL_GRAPH, &model);
  if (has_graph) {
    psplit_i_wire_tag(&model, PSPLIT_I_MODEL_GRAPH, PSPLIT_I_WIRE_BYTES);
    psplit_i_wire_varint(&model, graph_bytes);
    add_fields(skeleton, fields, PSPLIT_I_GRAPH_NODE, &model);
  }
  if (model.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_unpack(&onnx__model_proto__descriptor, model.bytes, model.n, arena, cancel,
                             diag, &message));
  *out = (Onnx__ModelProto *)message;
out:
  psplit_i_text_fini(&model);
  return code;
}

psplit_code psplit_i_model_unpack(const psplit_model *model, psplit_i_arena *arena,
                                  psplit_diag *diag, Onnx__ModelProto **out) {
  ProtobufCMessage *message;
  const psplit_code code = psplit_i_unpack(&onnx__model_proto__descriptor, model->skeleton.bytes,
                                           model->skeleton.n_bytes, arena, NULL, diag, &message);
  if (code == PSPLIT_OK) *out = (Onnx__ModelProto *)message;
  return code;
}

/* The content of a node of the main graph. */
static psplit_i_field content_of(const psplit_model *model, uint32_t node) {
  const psplit_i_skeleton *skeleton = &model->skeleton;
  const psplit_i_span *span = &skeleton->graph_fields.items[model->node_spans[node]];
  const uint8_t *at = skeleton->bytes + span->skeleton_offset;
  psplit_i_field field = {0};
  if (!psplit_i_next_field(&at, at + span->skeleton_bytes, &field)) return (psplit_i_field){0};
  return field;
}

static bool is_main(const psplit_i_graph *graph) { return !graph->function && !graph->parent; }

static Onnx__NodeProto *unpacked_node(const psplit_i_graph *graph, uint32_t node) {
  return graph->function ? graph->function->node[node] : graph->proto->node[node];
}

psplit_code psplit_i_node_unpack(const psplit_i_graph *graph, uint32_t node, psplit_i_arena *arena,
                                 psplit_diag *diag, const Onnx__NodeProto **out) {
  if (!is_main(graph)) {
    *out = unpacked_node(graph, node);
    return PSPLIT_OK;
  }
  const psplit_i_field content = content_of(graph->model, node);
  ProtobufCMessage *message;
  const psplit_code code =
    psplit_i_unpack(&onnx__node_proto__descriptor, content.content,
                    (size_t)(content.end - content.content), arena, NULL, diag, &message);
  if (code == PSPLIT_OK) *out = (const Onnx__NodeProto *)message;
  return code;
}

static psplit_i_node_names names_in(const psplit_i_graph *graph, uint32_t node, uint32_t field) {
  if (is_main(graph)) {
    const psplit_i_field content = content_of(graph->model, node);
    return (psplit_i_node_names){.at = content.content, .end = content.end, .field = field};
  }
  const Onnx__NodeProto *proto = unpacked_node(graph, node);
  return field == PSPLIT_I_NODE_INPUT
           ? (psplit_i_node_names){.unpacked = proto->input, .n_unpacked = proto->n_input}
           : (psplit_i_node_names){.unpacked = proto->output, .n_unpacked = proto->n_output};
}

psplit_i_node_names psplit_i_node_inputs(const psplit_i_graph *graph, uint32_t node) {
  return names_in(graph, node, PSPLIT_I_NODE_INPUT);
}

psplit_i_node_names psplit_i_node_outputs(const psplit_i_graph *graph, uint32_t node) {
  return names_in(graph, node, PSPLIT_I_NODE_OUTPUT);
}

bool psplit_i_next_name(psplit_i_node_names *names, const char **out, size_t *out_bytes) {
  if (names->n_unpacked) {
    names->n_unpacked--;
    *out = *names->unpacked++;
    *out_bytes = strlen(*out);
    return true;
  }
  psplit_i_field field;
  while (names->at != names->end && psplit_i_next_field(&names->at, names->end, &field)) {
    if (field.number != names->field) continue;
    *out = (const char *)field.content;
    *out_bytes = (size_t)(field.end - field.content);
    return true;
  }
  return false;
}

/* ---- the nodes of the main graph ---- */

/* Names of operators that were met lately, by a hash of their bytes. */
enum { N_RECENT = 64 };

typedef struct reader {
  psplit_model *model;
  const char *recent[N_RECENT];
  psplit_diag *diag;
} reader;

static size_t bytes_of(const psplit_i_field *field) {
  return (size_t)(field->end - field->content);
}

static psplit_code copy_text(reader *r, const psplit_i_field *field, const char **out) {
  *out = "";
  if (field->content == field->end) return PSPLIT_OK;
  *out = psplit_i_arena_strndup(&r->model->arena, (const char *)field->content, bytes_of(field));
  return *out ? PSPLIT_OK : psplit_i_nomem(r->diag);
}

/* The name of an operator, mostly as the same string for all nodes of one: who looks operators up
 * by name for each of a million nodes finds it in the cache. */
static psplit_code shared_text(reader *r, const psplit_i_field *field, const char **out) {
  const size_t n = bytes_of(field);
  uint32_t hash = 0;
  *out = "";
  if (!n) return PSPLIT_OK;
  for (const uint8_t *c = field->content; c < field->end; c++) hash = hash * 31 + *c;
  const char **place = &r->recent[hash % N_RECENT];
  if (!*place || strncmp(*place, (const char *)field->content, n) != 0 || (*place)[n]) {
    const psplit_code code = copy_text(r, field, out);
    if (code != PSPLIT_OK) return code;
    *place = *out;
  }
  *out = *place;
  return PSPLIT_OK;
}

static psplit_code read_attributes(reader *r, const uint8_t *at, const uint8_t *end,
                                   psplit_i_node *node) {
  psplit_code code = PSPLIT_OK;
  psplit_i_arena *arena = &r->model->arena;
  psplit_i_field field;
  uint32_t n = 0;
  struct Onnx__AttributeProto **attributes =
    psplit_i_arena_array(arena, node->n_attributes, sizeof *attributes);
  if (!attributes) return psplit_i_nomem(r->diag);
  while (n < node->n_attributes && psplit_i_next_field(&at, end, &field)) {
    ProtobufCMessage *message;
    if (field.number != PSPLIT_I_NODE_ATTRIBUTE) continue;
    PSPLIT_TRY(psplit_i_unpack(&onnx__attribute_proto__descriptor, field.content, bytes_of(&field),
                               arena, r->model->options.cancel, r->diag, &message));
    attributes[n++] = (Onnx__AttributeProto *)message;
  }
  node->attributes = attributes;
out:
  return code;
}

/* A field that is given twice is what it is the last time, as for every protobuf library. */
static psplit_code read_node(reader *r, uint32_t id) {
  psplit_code code = PSPLIT_OK;
  psplit_model *model = r->model;
  const psplit_i_field content = content_of(model, id);
  psplit_i_node *node = &model->nodes[id];
  psplit_i_field field, name = {0}, op_type = {0}, domain = {0}, overload = {0};
  bool is_placed = false;
  for (const uint8_t *at = content.content; at != content.end;) {
    if (!psplit_i_next_field(&at, content.end, &field))
      return psplit_i_fail(r->diag, PSPLIT_MALFORMED, "not an ONNX model: it cannot be unpacked");
    switch (field.number) {
      case PSPLIT_I_NODE_INPUT: node->n_inputs++; break;
      case PSPLIT_I_NODE_OUTPUT: node->n_outputs++; break;
      case PSPLIT_I_NODE_NAME: name = field; break;
      case PSPLIT_I_NODE_OP_TYPE: op_type = field; break;
      case PSPLIT_I_NODE_ATTRIBUTE: node->n_attributes++; break;
      case PSPLIT_I_NODE_DOMAIN: domain = field; break;
      case PSPLIT_I_NODE_OVERLOAD: overload = field; break;
      case PSPLIT_I_NODE_DEVICES: is_placed = true; break;
      default: break;
    }
  }
  node->function = PSPLIT_NONE;
  PSPLIT_TRY(copy_text(r, &name, &node->name));
  PSPLIT_TRY(shared_text(r, &op_type, &node->op_type));
  PSPLIT_TRY(shared_text(r, &domain, &node->domain));
  PSPLIT_TRY(shared_text(r, &overload, &node->overload));
  if (node->n_attributes) PSPLIT_TRY(read_attributes(r, content.content, content.end, node));
  if (is_placed && !psplit_i_vec_push(&model->placed_nodes, id))
    PSPLIT_FAIL(psplit_i_nomem(r->diag));
out:
  return code;
}

psplit_code psplit_i_nodes_read(psplit_model *model, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  reader r = {.model = model, .diag = diag};
  model->nodes = PSPLIT_NEW(&model->arena, psplit_i_node, model->n_nodes);
  if (!model->nodes) return psplit_i_nomem(diag);
  for (uint32_t n = 0; n < model->n_nodes; n++) {
    PSPLIT_TRY(psplit_i_go_on(model->options.cancel, diag));
    PSPLIT_TRY(read_node(&r, n));
  }
out:
  return code;
}
