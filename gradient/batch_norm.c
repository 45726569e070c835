#include "batch_norm.h"

#include <inttypes.h>
#include <string.h>

#include "moved_constants.h"
#include "proto_text.h"

enum { FIRST_OPSET_WITH_MODE = 14, N_OUTPUTS = 3 };

static const char MODE[] = "training_mode";

static bool is_batch_norm(const psplit_i_node *node) {
  return psplit_i_node_is(node, "BatchNormalization");
}

static bool trains(const psplit_i_node *node) {
  int64_t mode = 0;
  if (node->opset < FIRST_OPSET_WITH_MODE) return node->n_outputs > 1;
  psplit_i_attr_int(node, MODE, &mode);
  return mode != 0;
}

static bool is_read(const psplit_i_graph *graph, uint32_t value) {
  return value != PSPLIT_NONE && (graph->values[value].is_output ||
                                  graph->consumer_off[value] < graph->consumer_off[value + 1]);
}

/* The node with another mode. */
static psplit_code add_edited(const psplit_i_graph *graph, uint32_t n, bool train,
                              psplit_i_arena *arena, psplit_diag *diag, psplit_i_node_edits *out) {
  const Onnx__NodeProto *proto;
  psplit_code code = psplit_i_node_unpack(graph, n, arena, diag, &proto);
  if (code != PSPLIT_OK) return code;
  Onnx__NodeProto edited = *proto;
  Onnx__AttributeProto mode = ONNX__ATTRIBUTE_PROTO__INIT;
  Onnx__AttributeProto **attributes =
    PSPLIT_NEW(arena, Onnx__AttributeProto *, proto->n_attribute + 1);
  char *outputs[N_OUTPUTS];
  psplit_i_text field = {0};
  if (!attributes) return psplit_i_nomem(diag);
  mode.name = psplit_i_proto_text(MODE);
  mode.has_type = mode.has_i = 1;
  mode.type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  mode.i = train;
  edited.attribute = attributes;
  edited.n_attribute = 0;
  for (size_t i = 0; i < proto->n_attribute; i++)
    if (!proto->attribute[i]->name || strcmp(proto->attribute[i]->name, MODE) != 0)
      attributes[edited.n_attribute++] = proto->attribute[i];
  attributes[edited.n_attribute++] = &mode;
  edited.output = outputs;
  edited.n_output = train ? N_OUTPUTS : 1;
  outputs[0] = proto->output[0];
  for (size_t o = 1; o < edited.n_output; o++) {
    outputs[o] =
      o < proto->n_output && *proto->output[o]
        ? proto->output[o]
        : psplit_i_name_beside(graph, outputs[0], o == 1 ? "running_mean" : "running_var", arena);
    if (!outputs[o]) return psplit_i_nomem(diag);
  }
  PSPLIT_TRY(psplit_i_pack_node(&edited, &field, diag));
  PSPLIT_TRY(psplit_i_edits_add(out, n, &field, arena, diag));
out:
  psplit_i_text_fini(&field);
  return code;
}

psplit_code psplit_i_batch_norm_edits(const psplit_model *model, psplit_batch_norm how,
                                      psplit_i_arena *arena, psplit_diag *diag,
                                      psplit_i_node_edits *out) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = psplit_i_model_graph(model);
  const bool train = how == PSPLIT_BATCH_NORM_TRAIN;
  char label[128];
  if (how == PSPLIT_BATCH_NORM_AS_IS) return PSPLIT_OK;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_i_node *node = &graph->nodes[n];
    if (!is_batch_norm(node) || trains(node) == train) continue;
    if (node->opset < FIRST_OPSET_WITH_MODE)
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                                "node %s normalises batches by opset %" PRId64
                                ", which has no training mode: convert the model to opset "
                                "%d or later",
                                psplit_i_node_label(graph, n, label, sizeof label), node->opset,
                                FIRST_OPSET_WITH_MODE));
    for (uint32_t o = 1; o < node->n_outputs && !train; o++)
      if (is_read(graph, node->outputs[o]))
        PSPLIT_FAIL(psplit_i_fail(
          diag, PSPLIT_UNSUPPORTED,
          "the running statistics of node %s are read or given by the model: it cannot be frozen",
          psplit_i_node_label(graph, n, label, sizeof label)));
    PSPLIT_TRY(add_edited(graph, n, train, arena, diag, out));
  }
out:
  return code;
}

uint32_t psplit_i_batch_norm_running(const psplit_i_graph *graph, uint32_t n,
                                     psplit_i_running out[2]) {
  enum { FIRST_INPUT = 3, FIRST_OUTPUT = 1 };
  const psplit_i_node *node = &graph->nodes[n];
  uint32_t n_found = 0;
  if (!is_batch_norm(node) || node->opset < FIRST_OPSET_WITH_MODE || !trains(node)) return 0;
  for (uint32_t k = 0; k < 2; k++) {
    if (FIRST_INPUT + k >= node->n_inputs || FIRST_OUTPUT + k >= node->n_outputs) break;
    const uint32_t value = node->inputs[FIRST_INPUT + k], next = node->outputs[FIRST_OUTPUT + k];
    if (value == PSPLIT_NONE || next == PSPLIT_NONE ||
        (graph->values[value].initializer == PSPLIT_NONE &&
         !psplit_i_constant_is_movable(graph, value)) ||
        graph->values[value].is_output ||
        graph->consumer_off[value + 1] - graph->consumer_off[value] != 1)
      continue;
    out[n_found++] = (psplit_i_running){value, next};
  }
  return n_found;
}

/* Whether it is one of these of the standard domain or, as optimisers fuse it, of com.microsoft. */
static bool is_any(const psplit_i_node *node, const char *const *standard,
                   const char *const *fused) {
  const bool other = strcmp(node->domain, "com.microsoft") == 0;
  for (size_t i = 0; !other && standard[i]; i++)
    if (psplit_i_node_is(node, standard[i])) return true;
  for (size_t i = 0; other && fused[i]; i++)
    if (strcmp(node->op_type, fused[i]) == 0) return true;
  return false;
}

static const psplit_i_node *made_by(const psplit_i_graph *graph, const psplit_i_node *reader,
                                    uint32_t input) {
  const uint32_t value = input < reader->n_inputs ? reader->inputs[input] : PSPLIT_NONE;
  const uint32_t producer = value == PSPLIT_NONE ? PSPLIT_NONE : graph->values[value].producer;
  return producer == PSPLIT_NONE ? NULL : &graph->nodes[producer];
}

/* The root of a mean and a small number, as exporters write out a normalisation. */
static bool is_root_of_variance(const psplit_i_graph *graph, const psplit_i_node *node) {
  const psplit_i_node *sum = psplit_i_node_is(node, "Sqrt") ? made_by(graph, node, 0) : NULL;
  if (!sum || !psplit_i_node_is(sum, "Add")) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const psplit_i_node *mean = made_by(graph, sum, i);
    if (mean && psplit_i_node_is(mean, "ReduceMean")) return true;
  }
  return false;
}

void psplit_i_say_inference_export(const psplit_i_graph *graph, psplit_batch_norm how,
                                   const psplit_logger *logger) {
  static const char *const convolutions[] = {"Conv", NULL}, *const fused_convolutions[] = {
                                                              "FusedConv", NULL};
  static const char *const norms[] = {"BatchNormalization",
                                      "InstanceNormalization",
                                      "LayerNormalization",
                                      "GroupNormalization",
                                      "RMSNormalization",
                                      "MeanVarianceNormalization",
                                      NULL};
  static const char *const fused_norms[] = {
    "EmbedLayerNormalization",          "GroupNorm", "SkipGroupNorm", "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization", NULL};
  uint32_t n_convolutions = 0, n_norms = 0, n_frozen = 0, n_dropouts = 0;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_i_node *node = &graph->nodes[n];
    n_convolutions += is_any(node, convolutions, fused_convolutions);
    n_dropouts += psplit_i_node_is(node, "Dropout");
    n_norms += is_any(node, norms, fused_norms) || is_root_of_variance(graph, node);
    n_frozen += is_batch_norm(node) && !trains(node);
  }
  const bool fixed = n_frozen && how == PSPLIT_BATCH_NORM_AS_IS;
  const bool folded = n_convolutions > 2 && n_norms == 0;
  if (fixed)
    psplit_i_say(logger, PSPLIT_WARNING,
                 "%" PRIu32 " node%s normalise%s batches by fixed statistics, as for inference",
                 n_frozen, n_frozen == 1 ? "" : "s", n_frozen == 1 ? "s" : "");
  if (folded)
    psplit_i_say(logger, PSPLIT_WARNING,
                 "the model has %" PRIu32
                 " convolutions and no normalisation: an export for inference folds it into them, "
                 "and the model trains without",
                 n_convolutions);
  if (!n_dropouts && (n_frozen || folded))
    psplit_i_say(logger, PSPLIT_NOTE,
                 "the model has no Dropout%s, which exports for inference leave out",
                 fixed || folded ? " either" : "");
}
