/* The model with its stages written into it: NodeProto.device_configurations and
 * ModelProto.configuration. Source: ONNX, docs/proposals/ONNXMultiDeviceProposal.md, and the
 * comments of onnx.proto (IR 11 and later; older readers pass the fields over). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "emit.h"
#include "wire.h"

enum {
  MODEL_GRAPH = 7,
  MODEL_CONFIGURATION = 26,
  GRAPH_NODE = 1,
  NODE_DEVICE_CONFIGURATIONS = 10
};

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

static psplit_code add_node(const psplit_model *model, const psplit_i_span *span,
                            const char *configuration, uint32_t stage, psplit_arena *arena,
                            psplit_diag *diag, psplit_i_rope *graph) {
  psplit_code code = PSPLIT_OK;
  psplit_text entry = {0}, field = {0};
  psplit_i_rope node = {0};
  if (span->has_view) {
    uint64_t offset, bytes;
    PSPLIT_TRY(psplit_i_span_content(model, span, diag, &offset, &bytes));
    psplit_i_rope_range(&node, 0, offset, bytes);
  } else {
    const uint8_t *at = model->skeleton.bytes + span->skeleton_offset;
    psplit_i_field whole;
    if (!psplit_i_next_field(&at, at + span->skeleton_bytes, &whole))
      PSPLIT_TRY(psplit_i_fail(diag, PSPLIT_INTERNAL, "a node changed since it was scanned"));
    psplit_i_rope_view(&node, whole.content, (size_t)(whole.end - whole.content));
  }
  psplit_i_wire_bytes(&entry, 1, configuration, strlen(configuration));
  psplit_i_wire_tag(&entry, 3, PSPLIT_I_WIRE_VARINT);
  psplit_i_wire_varint(&entry, stage);
  psplit_i_wire_bytes(&field, NODE_DEVICE_CONFIGURATIONS, entry.bytes, entry.n);
  if (entry.failed || field.failed) PSPLIT_TRY(psplit_i_nomem(diag));
  psplit_i_rope_copy(&node, arena, field.bytes, field.n);
  psplit_i_rope_message(graph, arena, GRAPH_NODE, &node);
out:
  psplit_i_rope_fini(&node);
  psplit_i_text_fini(&field);
  psplit_i_text_fini(&entry);
  return code;
}

static void add_configuration(const psplit_plan *plan, const char *name, psplit_arena *arena,
                              psplit_i_rope *out) {
  psplit_text message = {0}, field = {0};
  psplit_i_wire_bytes(&message, 1, name, strlen(name));
  psplit_i_wire_tag(&message, 2, PSPLIT_I_WIRE_VARINT);
  psplit_i_wire_varint(&message, plan->n_stages);
  for (uint32_t s = 0; s < plan->n_stages; s++)
    psplit_i_wire_bytes(&message, 3, plan->stages[s].device, strlen(plan->stages[s].device));
  psplit_i_wire_bytes(&field, MODEL_CONFIGURATION, message.bytes, message.n);
  if (message.failed || field.failed) out->failed = true;
  else psplit_i_rope_copy(out, arena, field.bytes, field.n);
  psplit_i_text_fini(&field);
  psplit_i_text_fini(&message);
}

psplit_code psplit_emit_annotated(const psplit_model *model, const psplit_plan *plan,
                                  const char *path, bool replace, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_arena arena;
  psplit_i_rope graph = {0}, out = {0};
  char name[32];
  psplit_i_arena_init(&arena, 0);
  if (plan->n_nodes != model->graph->n_nodes)
    PSPLIT_TRY(psplit_i_fail(diag, PSPLIT_INVALID, "the plan is of another model than %s",
                             model->path));
  choose_name(model, name, sizeof name);
  uint32_t node = 0;
  for (size_t i = 0; i < model->skeleton.graph_fields.n; i++) {
    const psplit_i_span *span = &model->skeleton.graph_fields.items[i];
    if (span->field != GRAPH_NODE)
      psplit_i_rope_span(&graph, model, span);
    else
      PSPLIT_TRY(add_node(model, span, name, plan->node_stage[node++], &arena, diag, &graph));
  }
  for (size_t i = 0; i < model->skeleton.model_fields.n; i++) {
    const psplit_i_span *span = &model->skeleton.model_fields.items[i];
    if (span->field == MODEL_GRAPH) psplit_i_rope_message(&out, &arena, MODEL_GRAPH, &graph);
    else psplit_i_rope_span(&out, model, span);
  }
  add_configuration(plan, name, &arena, &out);
  if (graph.failed || out.failed) PSPLIT_TRY(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_model_file_write(model, &out, path, replace, diag));
out:
  psplit_i_rope_fini(&out);
  psplit_i_rope_fini(&graph);
  psplit_i_arena_fini(&arena);
  return code;
}
