#include "declared.h"

#include <inttypes.h>
#include <string.h>

#include "onnx_fields.h"
#include "operator.h"
#include "write.h"

static bool has_bytes(const psplit_model *model, const psplit_i_span *span,
                      const psplit_i_text *bytes) {
  return span->skeleton_bytes == bytes->n &&
         memcmp(model->skeleton.bytes + span->skeleton_offset, bytes->bytes, bytes->n) == 0;
}

/* --- in files --- */

static psplit_code is_port(const psplit_i_proof *p, uint32_t field, const psplit_i_span *span,
                           uint32_t value, bool *out) {
  psplit_code code;
  psplit_i_text port = {0};
  PSPLIT_TRY(psplit_i_gradient_put_port(p->training->gradient, field, value, p->diag, &port));
  if (port.failed) PSPLIT_FAIL(psplit_i_nomem(p->diag));
  *out = has_bytes(p->stage, span, &port);
out:
  psplit_i_text_fini(&port);
  return code;
}

psplit_code psplit_i_is_declared(const psplit_i_proof *p, uint32_t position, uint32_t value,
                                 bool *out) {
  return is_port(p, PSPLIT_I_GRAPH_OUTPUT, p->part_spans.outputs[position], value, out);
}

psplit_code psplit_i_is_declared_input(psplit_i_proof *p, uint32_t position, bool *out) {
  const char *name = p->part->values[p->part->inputs[position]].name;
  const uint32_t value = psplit_i_graph_find_value(p->graph, name);
  const uint32_t whole = value == PSPLIT_NONE ? PSPLIT_NONE : p->graph->values[value].input;
  *out = false;
  if (value == PSPLIT_NONE) return PSPLIT_OK;
  if (whole != PSPLIT_NONE && !psplit_i_is_trained(p, name))
    return psplit_i_compare(p, PSPLIT_I_GRAPH_INPUT, whole, position, name, out);
  return is_port(p, PSPLIT_I_GRAPH_INPUT, p->part_spans.inputs[position], value, out);
}

psplit_code psplit_i_is_declared_shape(const psplit_i_proof *p, uint32_t position, uint32_t value,
                                       bool *out) {
  psplit_i_text node = {0}, port = {0};
  const char *name = p->part->values[p->part->outputs[position]].name;
  psplit_i_gradient_put_shape(p->training->gradient, value, name, &node, &port);
  const bool failed = node.failed || port.failed;
  *out = !failed && has_bytes(p->stage, p->part_spans.outputs[position], &port);
  psplit_i_text_fini(&node);
  psplit_i_text_fini(&port);
  return failed ? psplit_i_nomem(p->diag) : PSPLIT_OK;
}

psplit_code psplit_i_is_shape_of(const psplit_i_proof *p, const char *name, uint32_t n,
                                 uint32_t value, bool *out) {
  psplit_i_text node = {0}, port = {0};
  const psplit_i_span *span = &p->stage->skeleton.graph_fields.items[p->stage->node_spans[n]];
  psplit_i_gradient_put_shape(p->training->gradient, value, name, &node, &port);
  const bool failed = node.failed || port.failed;
  *out = !failed && has_bytes(p->stage, span, &node);
  psplit_i_text_fini(&node);
  psplit_i_text_fini(&port);
  return failed ? psplit_i_nomem(p->diag) : PSPLIT_OK;
}

psplit_code psplit_i_is_weights_file(const psplit_i_proof *p, bool *out) {
  const psplit_i_skeleton *skeleton = &p->stage->skeleton;
  psplit_i_text head = {0}, name = {0};
  size_t at = 0, n_names = 0;
  psplit_i_put_model_head(&head);
  psplit_i_put_string(&name, PSPLIT_I_GRAPH_NAME, "weights");
  const bool failed = head.failed || name.failed;
  bool good = !failed;
  for (size_t i = 0; i < skeleton->model_fields.n && good; i++) {
    const psplit_i_span *span = &skeleton->model_fields.items[i];
    if (span->field == PSPLIT_I_MODEL_GRAPH) continue;
    good =
      span->skeleton_bytes <= head.n - at &&
      memcmp(skeleton->bytes + span->skeleton_offset, head.bytes + at, span->skeleton_bytes) == 0;
    if (good) at += span->skeleton_bytes;
  }
  for (size_t i = 0; i < skeleton->graph_fields.n && good; i++) {
    const psplit_i_span *span = &skeleton->graph_fields.items[i];
    if (span->field != PSPLIT_I_GRAPH_INITIALIZER && span->field != PSPLIT_I_GRAPH_OUTPUT)
      good = has_bytes(p->stage, span, &name) && n_names++ == 0;
  }
  *out = good && at == head.n;
  psplit_i_text_fini(&head);
  psplit_i_text_fini(&name);
  return failed ? psplit_i_nomem(p->diag) : PSPLIT_OK;
}

/* --- in the manifest --- */

static bool is_dim(psplit_i_manifest_dim dim, psplit_i_emit_dim known) {
  if (known.value >= 0 || dim.value >= 0) return dim.value == known.value;
  return known.symbol && dim.param ? strcmp(known.symbol, dim.param) == 0
                                   : !known.symbol && !dim.param;
}

static bool is_type(const psplit_i_shapes *shapes, uint32_t value, const char *dtype,
                    const psplit_i_shape *shape) {
  const psplit_i_vtype *type = psplit_i_shapes_type(shapes, value);
  const char *name = psplit_i_dtype_name(type->elem);
  if (!name || strcmp(name, dtype) != 0 || shape->rank != type->rank) return false;
  for (int32_t a = 0; a < type->rank; a++)
    if (!is_dim(shape->dims[a], psplit_i_shapes_emit_dim(shapes, type->dims[a]))) return false;
  return true;
}

static bool is_stash_type(const psplit_i_proof *p, const psplit_i_stash_row *row) {
  const psplit_i_shapes *shapes = p->training->gradient->shapes;
  const uint32_t shape =
    psplit_i_training_ports_find(p->training, PSPLIT_I_SET_SHAPE, row->tensor, 0);
  const uint32_t value = psplit_i_graph_find_value(p->graph, row->tensor);
  if (shape == PSPLIT_NONE)
    return value != PSPLIT_NONE && is_type(shapes, value, row->dtype, &row->shape);
  return strcmp(row->dtype, "int64") == 0 && row->shape.rank == 1 &&
         row->shape.dims[0].value == psplit_i_shapes_type(shapes, shape)->rank;
}

/* The stage's weights are some of the manifest's, in the same order. */
static psplit_code check_order(const psplit_i_proof *p, uint32_t s) {
  const psplit_i_training_table *table = p->training->table;
  const psplit_i_training_parts *stage = &table->stages[s];
  uint32_t w = 0;
  for (uint32_t i = 0; i < stage->n_weights; i++, w++) {
    while (w < table->n_weights && strcmp(table->weights[w].name, stage->weights[i]) != 0) w++;
    if (w == table->n_weights)
      return PSPLIT_I_DIFFERS(p,
                              "stage %" PRIu32
                              ": the manifest lists weight \"%s\" twice, out of "
                              "order, or as one that is not trained",
                              s, stage->weights[i]);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_check_stated(const psplit_i_proof *p) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_training_table *table = p->training->table;
  for (uint32_t w = 0; w < table->n_weights; w++) {
    const psplit_i_trained_weight *row = &table->weights[w];
    const uint32_t value = psplit_i_graph_find_value(p->graph, row->name);
    if (!is_type(p->training->gradient->shapes, value, row->dtype, &row->shape))
      return PSPLIT_I_DIFFERS(p, "the manifest gives weight \"%s\" another type than the model",
                              row->name);
  }
  for (uint32_t i = 0; i < table->n_transfers; i++) /* no two are alike: see lookup.c */
    if (table->transfers[i].tag >= table->n_transfers)
      return PSPLIT_I_DIFFERS(p, "the manifest's transfer of \"%s\" back has tag %" PRIu64,
                              table->transfers[i].tensor, table->transfers[i].tag);
  for (uint32_t s = 0; s < p->manifest.n_stages; s++) {
    PSPLIT_TRY(check_order(p, s));
    for (uint32_t i = 0; i < table->stages[s].n_stash; i++)
      if (!is_stash_type(p, &table->stages[s].stash[i]))
        return PSPLIT_I_DIFFERS(
          p,
          "stage %" PRIu32 ": the manifest gives \"%s\", to be kept, another type than the model",
          s, table->stages[s].stash[i].tensor);
  }
out:
  return code;
}

/* --- what is kept --- */

enum { RECOMPUTE_NONE, RECOMPUTE_HEAVY };

/* Whether a node is to be computed again, by the manifest's word. */
static bool is_again(const psplit_i_proof *p, const psplit_i_node *node) {
  const uint32_t how = p->training->table->recompute;
  if (how == RECOMPUTE_NONE ||
      (how == RECOMPUTE_HEAVY && psplit_i_op_is_heavy(node->domain, node->op_type)))
    return false;
  if (node->n_bodies || node->function != PSPLIT_NONE) return false;
  return !psplit_i_node_has(node, PSPLIT_I_OP_RANDOM) &&
         (!*node->domain || strcmp(node->domain, "com.microsoft") == 0);
}

/* What a stage receives it keeps in any case. */
static bool is_received(const psplit_i_proof *p, const char *port) {
  const uint32_t id = psplit_i_intern_find(&p->names, port);
  return id != PSPLIT_NONE && psplit_i_table_find(&p->rows, id, p->at, 0) != PSPLIT_NONE;
}

psplit_code psplit_i_check_recompute(const psplit_i_proof *p, bool again) {
  const psplit_i_training_parts *stage = &p->training->table->stages[p->at];
  char label[128];
  for (uint32_t n = 0; again && n < p->part->n_nodes; n++)
    if (!is_again(p, &p->part->nodes[n]))
      return PSPLIT_I_DIFFERS(p,
                              "%s: node %s is not to be computed again, by the manifest's "
                              "\"recompute\"",
                              stage->again.file,
                              psplit_i_node_label(p->part, n, label, sizeof label));
  for (uint32_t i = 0; !again && i < stage->n_stash; i++) {
    const psplit_i_stash_row *row = &stage->stash[i];
    const uint32_t value = psplit_i_graph_find_value(p->graph, row->tensor);
    const uint32_t producer = value == PSPLIT_NONE ? PSPLIT_NONE : p->graph->values[value].producer;
    if (producer != PSPLIT_NONE && !is_received(p, row->name) &&
        is_again(p, &p->graph->nodes[producer]))
      return PSPLIT_I_DIFFERS(
        p, "stage %" PRIu32 ": \"%s\" is kept, which the manifest's \"recompute\" computes again",
        p->at, row->tensor);
  }
  return PSPLIT_OK;
}
