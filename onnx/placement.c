#include "placement.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "proto_text.h"
#include "unknown.h"

static const Onnx__DeviceConfigurationProto *find_configuration(const psplit_model *model,
                                                                const char *name) {
  for (size_t i = 0; i < model->proto->n_configuration; i++)
    if (strcmp(psplit_i_text_or_empty(model->proto->configuration[i]->name), name) == 0)
      return model->proto->configuration[i];
  return NULL;
}

/* A mistake of the caller who asked for it, or else of the nodes. */
static psplit_code no_configuration(const psplit_model *model, const char *name, bool is_asked,
                                    psplit_i_arena *arena, psplit_diag *diag) {
  const size_t n = model->proto->n_configuration;
  const char **names = PSPLIT_NEW(arena, const char *, n);
  psplit_i_text known = {0};
  if (!names) return psplit_i_nomem(diag);
  for (size_t i = 0; i < n; i++)
    names[i] = psplit_i_text_or_empty(model->proto->configuration[i]->name);
  psplit_i_add_names(&known, "it has", name, names, (uint32_t)n);
  const psplit_code code =
    known.failed
      ? psplit_i_nomem(diag)
      : psplit_i_fail_about(diag, is_asked ? PSPLIT_USAGE : PSPLIT_INVALID,
                            PSPLIT_I_HELPS(IGNORE_ANNOTATIONS),
                            "the model has no configuration \"%s\"%s", name, known.bytes);
  psplit_i_text_fini(&known);
  return code;
}

/* The only configuration under which nodes have stages; *out_name stays NULL where none does. */
static psplit_code only_configuration(const psplit_i_graph *graph, psplit_i_arena *arena,
                                      psplit_diag *diag, const char **out_name) {
  for (size_t p = 0; p < graph->model->placed_nodes.n; p++) {
    const Onnx__NodeProto *node;
    const psplit_code code =
      psplit_i_node_unpack(graph, graph->model->placed_nodes.items[p], arena, diag, &node);
    if (code != PSPLIT_OK) return code;
    for (size_t i = 0; i < node->n_device_configurations; i++) {
      const Onnx__NodeDeviceConfigurationProto *entry = node->device_configurations[i];
      if (!entry->has_pipeline_stage) continue;
      const char *name = psplit_i_text_or_empty(entry->configuration_id);
      if (*out_name && strcmp(*out_name, name) != 0)
        return psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS(CONFIGURATION),
                                   "the model has stages of the configurations \"%s\" and \"%s\"",
                                   *out_name, name);
      *out_name = name;
    }
  }
  return PSPLIT_OK;
}

static psplit_code read_node(const psplit_i_graph *graph, uint32_t n,
                             const Onnx__DeviceConfigurationProto *configuration,
                             psplit_i_arena *arena, psplit_diag *diag, uint32_t *out_stage) {
  const Onnx__NodeProto *node;
  char label[128];
  const psplit_code code = psplit_i_node_unpack(graph, n, arena, diag, &node);
  if (code != PSPLIT_OK) return code;
  for (size_t i = 0; i < node->n_device_configurations; i++) {
    const Onnx__NodeDeviceConfigurationProto *entry = node->device_configurations[i];
    if (!find_configuration(graph->model, psplit_i_text_or_empty(entry->configuration_id)))
      return psplit_i_fail_about(
        diag, PSPLIT_INVALID, PSPLIT_I_HELPS(IGNORE_ANNOTATIONS),
        "node %s is annotated for the configuration \"%s\", which the model lacks",
        psplit_i_node_label(graph, n, label, sizeof label),
        psplit_i_text_or_empty(entry->configuration_id));
    if (!entry->has_pipeline_stage || strcmp(psplit_i_text_or_empty(entry->configuration_id),
                                             psplit_i_text_or_empty(configuration->name)) != 0)
      continue;
    const int32_t stage = entry->pipeline_stage;
    if (stage < 0 || stage >= configuration->num_devices)
      return psplit_i_fail_about(diag, PSPLIT_INVALID, PSPLIT_I_HELPS(IGNORE_ANNOTATIONS),
                                 "node %s is annotated with stage %" PRId32
                                 ", and the configuration \"%s\" has %" PRId32 " devices",
                                 psplit_i_node_label(graph, n, label, sizeof label), stage,
                                 psplit_i_text_or_empty(configuration->name),
                                 configuration->num_devices);
    if (*out_stage != PSPLIT_NONE && *out_stage != (uint32_t)stage)
      return psplit_i_fail(diag, PSPLIT_INVALID, "node %s is annotated with two stages",
                           psplit_i_node_label(graph, n, label, sizeof label));
    *out_stage = (uint32_t)stage;
  }
  return PSPLIT_OK;
}

/* latest[n]: a node of the latest stage among `n` and what it depends on; NONE without one. */
static psplit_code check_forward(const psplit_i_graph *graph, const uint32_t *stage,
                                 uint32_t *latest, psplit_diag *diag) {
  char before[128], after[128];
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    const psplit_i_node *node = &graph->nodes[n];
    latest[n] = PSPLIT_NONE;
    for (uint32_t r = 0; r < node->n_inputs + node->n_captures; r++) {
      const uint32_t v = r < node->n_inputs ? node->inputs[r] : node->captures[r - node->n_inputs];
      const uint32_t from = v == PSPLIT_NONE ? PSPLIT_NONE : graph->values[v].producer;
      if (from == PSPLIT_NONE || latest[from] == PSPLIT_NONE) continue;
      if (latest[n] == PSPLIT_NONE || stage[latest[from]] > stage[latest[n]])
        latest[n] = latest[from];
    }
    if (stage[n] == PSPLIT_NONE) continue;
    if (latest[n] != PSPLIT_NONE && stage[latest[n]] > stage[n])
      return psplit_i_fail_about(
        diag, PSPLIT_INVALID, PSPLIT_I_HELPS(IGNORE_ANNOTATIONS),
        "node %s is annotated with stage %" PRIu32 " and depends on %s of stage %" PRIu32,
        psplit_i_node_label(graph, n, after, sizeof after), stage[n],
        psplit_i_node_label(graph, latest[n], before, sizeof before), stage[latest[n]]);
    latest[n] = n;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_placement_read(const psplit_i_graph *graph, const char *name,
                                    psplit_diag *diag, uint32_t *out_stage, bool *out_any) {
  psplit_code code = PSPLIT_OK;
  uint32_t *latest = NULL;
  bool any = false;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  for (uint32_t n = 0; n < graph->n_nodes; n++) out_stage[n] = PSPLIT_NONE;
  const bool is_asked = name != NULL;
  if (!name) PSPLIT_TRY(only_configuration(graph, &arena, diag, &name));
  if (out_any) *out_any = false;
  if (!name) goto out;
  const Onnx__DeviceConfigurationProto *configuration = find_configuration(graph->model, name);
  if (!configuration) PSPLIT_TRY(no_configuration(graph->model, name, is_asked, &arena, diag));
  for (size_t p = 0; p < graph->model->placed_nodes.n; p++) {
    const uint32_t n = graph->model->placed_nodes.items[p];
    PSPLIT_TRY(read_node(graph, n, configuration, &arena, diag, &out_stage[n]));
    any = any || out_stage[n] != PSPLIT_NONE;
  }
  latest = malloc(((size_t)graph->n_nodes + 1) * sizeof *latest);
  if (!latest) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(check_forward(graph, out_stage, latest, diag));
  if (out_any) *out_any = any;
out:
  free(latest);
  psplit_i_arena_fini(&arena);
  return code;
}
