/* The model with its stages written into it, in one of three forms.
 * Sources: ONNX, docs/proposals/ONNXMultiDeviceProposal.md and onnx.proto (IR 11 and later; older
 * readers pass the fields over); ONNX Runtime,
 * docs/PartitioningWithAnnotationsAndMemoryConstraints; Olive, olive/passes/onnx/split.py. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "emit.h"
#include "fields.h"
#include "wire.h"

/* A name that no configuration of the model has. */
static void choose_name(const psplit_model *model, char *out, size_t n) {
  snprintf(out, n, "pipeline");
  for (uint32_t number = 2;; number++) {
    bool taken = false;
    for (size_t i = 0; i < model->proto->n_configuration; i++) {
      const char *name = model->proto->configuration[i]->name;
      if (name && strcmp(name, out) == 0) taken = true;
    }
    if (!taken) return;
    snprintf(out, n, "pipeline-%" PRIu32, number);
  }
}

/* A StringStringEntryProto as a field. */
static void put_metadata(psplit_i_text *out, uint32_t field, const char *key, const char *value) {
  psplit_i_text entry = {0};
  psplit_i_wire_bytes(&entry, 1, key, strlen(key));
  psplit_i_wire_bytes(&entry, 2, value, strlen(value));
  psplit_i_wire_bytes(out, field, entry.bytes, entry.n);
  if (entry.failed) out->failed = true;
  psplit_i_text_fini(&entry);
}

/* The field that tells a node's stage: under a configuration, or NULL for layer_ann. */
static void put_stage(psplit_i_text *out, const char *configuration, uint32_t stage) {
  psplit_i_text entry = {0};
  if (configuration) {
    psplit_i_wire_bytes(&entry, 1, configuration, strlen(configuration));
    psplit_i_wire_tag(&entry, 3, PSPLIT_I_WIRE_VARINT);
    psplit_i_wire_varint(&entry, stage);
    psplit_i_wire_bytes(out, PSPLIT_I_NODE_DEVICES, entry.bytes, entry.n);
    if (entry.failed) out->failed = true;
  } else {
    char value[24];
    snprintf(value, sizeof value, "stage%" PRIu32, stage);
    put_metadata(out, PSPLIT_I_NODE_METADATA, "layer_ann", value);
  }
  psplit_i_text_fini(&entry);
}

/* The node with `field` behind its own; frees the latter. */
static psplit_code add_node(const psplit_model *model, const psplit_i_span *span,
                            psplit_i_text field, psplit_i_arena *arena, psplit_diag *diag,
                            psplit_i_rope *graph) {
  psplit_code code = PSPLIT_OK;
  psplit_i_rope node = {0};
  if (span->has_view) {
    uint64_t offset, bytes;
    PSPLIT_TRY(psplit_i_span_content(model, span, diag, &offset, &bytes));
    psplit_i_rope_range(&node, 0, offset, bytes);
  } else {
    const uint8_t *at = model->skeleton.bytes + span->skeleton_offset;
    psplit_i_field whole;
    if (!psplit_i_next_field(&at, at + span->skeleton_bytes, &whole))
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INTERNAL, "a node changed since it was scanned"));
    psplit_i_rope_view(&node, whole.content, (size_t)(whole.end - whole.content));
  }
  if (field.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  psplit_i_rope_copy(&node, arena, field.bytes, field.n);
  psplit_i_rope_message(graph, arena, PSPLIT_I_GRAPH_NODE, &node);
out:
  psplit_i_rope_fini(&node);
  psplit_i_text_fini(&field);
  return code;
}

static void add_configuration(const psplit_plan *plan, const char *name, psplit_i_arena *arena,
                              psplit_i_rope *out) {
  psplit_i_text message = {0}, field = {0};
  psplit_i_wire_bytes(&message, 1, name, strlen(name));
  psplit_i_wire_tag(&message, 2, PSPLIT_I_WIRE_VARINT);
  psplit_i_wire_varint(&message, plan->n_stages);
  for (uint32_t s = 0; s < plan->n_stages; s++)
    psplit_i_wire_bytes(&message, 3, plan->stages[s].device, strlen(plan->stages[s].device));
  psplit_i_wire_bytes(&field, PSPLIT_I_MODEL_CONFIGURATION, message.bytes, message.n);
  if (message.failed || field.failed)
    out->failed = true;
  else
    psplit_i_rope_copy(out, arena, field.bytes, field.n);
  psplit_i_text_fini(&field);
  psplit_i_text_fini(&message);
}

/* A name's first `depth` components, dotted as Olive does: '/' is '.', and none leads. */
static const char *scope_of(const char *name, unsigned depth, psplit_i_arena *arena) {
  name += strspn(name, "/.");
  char *scope = psplit_i_arena_strndup(arena, name, strlen(name));
  for (char *c = scope; c && *c; c++) {
    if (*c == '/') *c = '.';
    if (*c == '.' && --depth == 0) *c = '\0';
    if (!*c) break;
  }
  return scope;
}

static unsigned depth_of(const char *name) {
  unsigned depth = 1;
  for (name += strspn(name, "/."); *name; name++) depth += *name == '/' || *name == '.';
  return depth;
}

/* Scopes of `depth` components and their stages; false where a scope is in two. */
static bool collect_scopes(const psplit_model *model, const psplit_plan *plan, unsigned depth,
                           psplit_i_arena *arena, psplit_i_intern *scopes, uint32_t *stage,
                           bool *out_failed) {
  for (uint32_t n = 0; n < plan->n_nodes; n++) {
    const psplit_i_node *node = &model->graph->nodes[n];
    if (!*node->name || psplit_i_node_is(node, "Constant")) continue; /* Olive copies constants */
    const char *scope = scope_of(node->name, depth, arena);
    const uint32_t known = scopes->n;
    const uint32_t id = scope ? psplit_i_intern_add(scopes, scope) : PSPLIT_NONE;
    if (id == PSPLIT_NONE) {
      *out_failed = true;
      return true;
    }
    if (id == known)
      stage[id] = plan->node_stage[n];
    else if (stage[id] != plan->node_stage[n])
      return false;
  }
  return true;
}

/* "scope=0;scope=1...": of the least depth that tells stages apart. Olive takes the depth of the
 * first scope for that of all. */
static psplit_code put_split_assignments(const psplit_model *model, const psplit_plan *plan,
                                         psplit_i_arena *arena, psplit_diag *diag,
                                         psplit_i_text *out) {
  psplit_code code = PSPLIT_OK;
  psplit_i_text value = {0};
  psplit_i_intern scopes;
  psplit_i_intern_init(&scopes);
  unsigned deepest = 0, depth = 1;
  bool failed = false;
  uint32_t *stage = psplit_i_arena_array(arena, plan->n_nodes, sizeof *stage);
  if (!stage) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t n = 0; n < plan->n_nodes; n++) {
    const char *name = model->graph->nodes[n].name;
    if (*name && depth_of(name) > deepest) deepest = depth_of(name);
    if (strpbrk(name, "=;"))
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                                "node %s: Olive's split_assignments have no way to write a name "
                                "with '=' or ';'",
                                name));
  }
  for (; depth <= deepest; depth++) {
    psplit_i_intern_fini(&scopes);
    psplit_i_intern_init(&scopes);
    if (collect_scopes(model, plan, depth, arena, &scopes, stage, &failed)) break;
  }
  if (failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (depth > deepest || !scopes.n)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                              "Olive's split_assignments use the names of nodes, and the names in "
                              "%s do not distinguish its stages",
                              model->path));
  uint32_t first = 0;
  while (first + 1 < scopes.n && depth_of(scopes.text[first]) != depth) first++;
  psplit_i_text_addf(&value, "%s=%" PRIu32, scopes.text[first], stage[first]);
  for (uint32_t i = 0; i < scopes.n; i++)
    if (i != first) psplit_i_text_addf(&value, ";%s=%" PRIu32, scopes.text[i], stage[i]);
  if (value.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  put_metadata(out, PSPLIT_I_MODEL_METADATA, "split_assignments", value.bytes);
out:
  psplit_i_text_fini(&value);
  psplit_i_intern_fini(&scopes);
  return code;
}

/* The model with its graph's fields in place of those it has. */
static void put_graph(const psplit_model *model, const psplit_i_rope *graph, psplit_i_arena *arena,
                      psplit_i_rope *out) {
  for (size_t i = 0; i < model->skeleton.model_fields.n; i++) {
    const psplit_i_span *span = &model->skeleton.model_fields.items[i];
    if (span->field == PSPLIT_I_MODEL_GRAPH)
      psplit_i_rope_message(out, arena, PSPLIT_I_MODEL_GRAPH, graph);
    else
      psplit_i_rope_span(out, model, span);
  }
}

psplit_code psplit_emit_numbered(const psplit_model *model, const char *path,
                                 const psplit_emit_options *options, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_i_arena arena;
  psplit_i_rope graph = {0}, out = {0};
  uint32_t node = 0;
  psplit_i_arena_init(&arena, 0);
  for (size_t i = 0; i < model->skeleton.graph_fields.n; i++) {
    const psplit_i_span *span = &model->skeleton.graph_fields.items[i];
    if (span->field != PSPLIT_I_GRAPH_NODE) {
      psplit_i_rope_span(&graph, model, span);
      continue;
    }
    psplit_i_text field = {0};
    char name[24];
    snprintf(name, sizeof name, "#%" PRIu32 "#", node++);
    psplit_i_wire_bytes(&field, PSPLIT_I_NODE_NAME, name,
                        strlen(name)); /* the last one of a field counts */
    PSPLIT_TRY(add_node(model, span, field, &arena, diag, &graph));
  }
  put_graph(model, &graph, &arena, &out);
  if (graph.failed || out.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_model_file_write(model, &out, path, options, diag));
out:
  psplit_i_rope_fini(&out);
  psplit_i_rope_fini(&graph);
  psplit_i_arena_fini(&arena);
  return code;
}

psplit_code psplit_emit_annotated(const psplit_model *model, const psplit_plan *plan,
                                  psplit_annotation annotation, const char *path,
                                  const psplit_emit_options *options, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_i_arena arena;
  psplit_i_rope graph = {0}, out = {0};
  psplit_i_text metadata = {0};
  char name[32];
  psplit_i_arena_init(&arena, 0);
  if (plan->n_nodes != model->graph->n_nodes)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INVALID, "the plan was made for another model than %s",
                              model->path));
  choose_name(model, name, sizeof name);
  uint32_t node = 0;
  for (size_t i = 0; i < model->skeleton.graph_fields.n; i++) {
    const psplit_i_span *span = &model->skeleton.graph_fields.items[i];
    if (span->field != PSPLIT_I_GRAPH_NODE || annotation == PSPLIT_ANNOTATION_OLIVE) {
      psplit_i_rope_span(&graph, model, span);
      continue;
    }
    psplit_i_text field = {0};
    put_stage(&field, annotation == PSPLIT_ANNOTATION_ONNX ? name : NULL, plan->node_stage[node++]);
    PSPLIT_TRY(add_node(model, span, field, &arena, diag, &graph));
  }
  put_graph(model, &graph, &arena, &out);
  if (annotation == PSPLIT_ANNOTATION_ONNX) add_configuration(plan, name, &arena, &out);
  if (annotation == PSPLIT_ANNOTATION_OLIVE) {
    PSPLIT_TRY(put_split_assignments(model, plan, &arena, diag, &metadata));
    if (metadata.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
    psplit_i_rope_view(&out, metadata.bytes, metadata.n);
  }
  if (graph.failed || out.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_model_file_write(model, &out, path, options, diag));
out:
  psplit_i_text_fini(&metadata);
  psplit_i_rope_fini(&out);
  psplit_i_rope_fini(&graph);
  psplit_i_arena_fini(&arena);
  return code;
}
