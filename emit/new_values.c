/* The model with other values of some initializers: all other bytes are the file's. A Constant node
 * whose value is another becomes an initializer. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "emit.h"
#include "fields.h"
#include "wire.h"

static void add_raw(psplit_i_rope *out, psplit_i_arena *arena, const psplit_weight_value *value) {
  psplit_i_rope data = {0};
  psplit_i_rope_view(&data, value->data, (size_t)value->n_bytes);
  psplit_i_rope_message(out, arena, PSPLIT_I_TENSOR_RAW_DATA, &data);
  psplit_i_rope_fini(&data);
}

/* An initializer with the value in place of its data, in whichever field that was. */
static psplit_code add_tensor(const psplit_model *model, const psplit_i_span *span,
                              const psplit_weight_value *value, psplit_i_arena *arena,
                              psplit_diag *diag, psplit_i_rope *graph) {
  const uint8_t *at = model->skeleton.bytes + span->skeleton_offset;
  psplit_i_rope tensor = {0};
  psplit_i_field whole, field;
  bool added = false, lost = !psplit_i_next_field(&at, at + span->skeleton_bytes, &whole);
  for (at = whole.content; !lost && at < whole.end;) {
    lost = !psplit_i_next_field(&at, whole.end, &field);
    if (lost) break;
    const bool data = psplit_i_is_tensor_data(field.number);
    if (data && !added) add_raw(&tensor, arena, value);
    added |= data;
    if (!data) psplit_i_rope_view(&tensor, field.start, (size_t)(field.end - field.start));
  }
  if (!added) add_raw(&tensor, arena, value);
  if (!lost) psplit_i_rope_message(graph, arena, PSPLIT_I_GRAPH_INITIALIZER, &tensor);
  psplit_i_rope_fini(&tensor);
  return lost ? psplit_i_fail(diag, PSPLIT_INTERNAL, "a tensor changed since it was scanned")
              : PSPLIT_OK;
}

static psplit_code check_value(const psplit_model *model, const Onnx__TensorProto *tensor,
                               const psplit_weight_value *value, psplit_diag *diag) {
  bool same = tensor->data_type == value->data_type && tensor->n_dims == value->n_dims;
  for (uint32_t d = 0; same && d < value->n_dims; d++) same = tensor->dims[d] == value->dims[d];
  if (!same)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "the new value of %s has another type or shape than in %s", value->name,
                         model->path);
  /* Of a tensor that was checked when it was read: this does not overflow. */
  uint64_t bits = psplit_i_dtype_bits(value->data_type);
  for (uint32_t d = 0; d < value->n_dims; d++) bits *= (uint64_t)value->dims[d];
  if (!psplit_i_dtype_bits(value->data_type) || (bits + 7) / 8 != value->n_bytes)
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "the new value of %s has %" PRIu64
                         " bytes, which are not those of its shape",
                         value->name, value->n_bytes);
  return PSPLIT_OK;
}

/* The main graph's fields; *out_used counts values that were put in. */
static psplit_code add_graph(const psplit_model *model, const psplit_i_intern *names,
                             const psplit_weight_value *values, psplit_i_arena *arena,
                             psplit_diag *diag, psplit_i_rope *graph, size_t *out_used) {
  size_t next = 0;
  for (size_t i = 0; i < model->skeleton.graph_fields.n; i++) {
    const psplit_i_span *span = &model->skeleton.graph_fields.items[i];
    const Onnx__TensorProto *tensor =
      span->field == PSPLIT_I_GRAPH_INITIALIZER ? model->proto->graph->initializer[next++] : NULL;
    const uint32_t id =
      tensor && tensor->name ? psplit_i_intern_find(names, tensor->name) : PSPLIT_NONE;
    if (id == PSPLIT_NONE) {
      psplit_i_rope_span(graph, model, span);
      continue;
    }
    psplit_code code = check_value(model, tensor, &values[id], diag);
    if (code == PSPLIT_OK) code = add_tensor(model, span, &values[id], arena, diag, graph);
    if (code != PSPLIT_OK) return code;
    ++*out_used;
  }
  return PSPLIT_OK;
}

/* Whether a body has an initializer of that name. Depth is bounded by the scan. */
static bool is_inside(const psplit_i_graph *graph, const char *name) {
  bool found = false;
  for (uint32_t n = 0; n < graph->n_nodes && !found; n++)
    for (uint32_t b = 0; b < graph->nodes[n].n_bodies && !found; b++) {
      const psplit_i_graph *body = graph->nodes[n].bodies[b];
      const uint32_t value = psplit_i_graph_find_value(body, name);
      found = (value != PSPLIT_NONE && body->values[value].initializer != PSPLIT_NONE) ||
              is_inside(body, name);
    }
  return found;
}

static psplit_code name_values(const psplit_model *model, const psplit_weight_value *values,
                               size_t n, psplit_i_intern *names, psplit_diag *diag) {
  psplit_i_intern own;
  psplit_code code = PSPLIT_OK;
  psplit_i_intern_init(&own);
  const Onnx__GraphProto *graph = model->proto->graph;
  for (size_t i = 0; i < graph->n_initializer; i++)
    if (graph->initializer[i]->name &&
        psplit_i_intern_add(&own, graph->initializer[i]->name) == PSPLIT_NONE)
      PSPLIT_FAIL(psplit_i_nomem(diag));
  for (size_t i = 0; i < n; i++) {
    const uint32_t id = psplit_i_intern_add(names, values[i].name);
    if (id == PSPLIT_NONE) PSPLIT_FAIL(psplit_i_nomem(diag));
    if (id != i)
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE, "two new values of %s", values[i].name));
    if (psplit_i_intern_find(&own, values[i].name) == PSPLIT_NONE)
      PSPLIT_FAIL(psplit_i_fail(
        diag, PSPLIT_INVALID,
        is_inside(psplit_i_model_graph(model), values[i].name)
          ? "%s has initializer %s in a body: give the model with the same Ifs inlined, which is "
            "the stage of a split with them in one stage"
          : "%s has no initializer %s: the weights are another model's",
        model->path, values[i].name));
  }
out:
  psplit_i_intern_fini(&own);
  return code;
}

/* All values are those of initializers. */
static psplit_code write_values(const psplit_model *model, const psplit_weight_value *values,
                                size_t n_values, const char *path,
                                const psplit_emit_options *options, psplit_diag *diag) {
  psplit_code code;
  psplit_i_arena arena;
  psplit_i_intern names;
  psplit_i_rope graph = {0}, out = {0};
  size_t n_used = 0;
  psplit_i_arena_init(&arena, 0);
  psplit_i_intern_init(&names);
  if (model->inlined.n)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                              "a model with an If inlined is only written in stages"));
  PSPLIT_TRY(name_values(model, values, n_values, &names, diag));
  PSPLIT_TRY(add_graph(model, &names, values, &arena, diag, &graph, &n_used));
  if (n_used != n_values)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INTERNAL, "a weight has no place in %s", model->path));
  for (size_t i = 0; i < model->skeleton.model_fields.n; i++) {
    const psplit_i_span *span = &model->skeleton.model_fields.items[i];
    if (span->field == PSPLIT_I_MODEL_GRAPH)
      psplit_i_rope_message(&out, &arena, PSPLIT_I_MODEL_GRAPH, &graph);
    else
      psplit_i_rope_span(&out, model, span);
  }
  if (graph.failed || out.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (out.bytes > INT_MAX)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_LIMIT,
                              "%s would have %" PRIu64
                              " bytes with its new weights inside; no runtime reads over 2 GiB",
                              path, out.bytes));
  PSPLIT_TRY(psplit_i_model_file_write(model, &out, path, options, diag));
out:
  psplit_i_rope_fini(&out);
  psplit_i_rope_fini(&graph);
  psplit_i_intern_fini(&names);
  psplit_i_arena_fini(&arena);
  return code;
}

psplit_code psplit_emit_new_values(const psplit_model *model, const psplit_weight_value *values,
                                   size_t n_values, const char *path,
                                   const psplit_emit_options *options, psplit_diag *diag) {
  psplit_model *moved = NULL;
  const char **names = calloc(n_values + 1, sizeof *names);
  if (!names) return psplit_i_nomem(diag);
  for (size_t i = 0; i < n_values; i++) names[i] = values[i].name;
  psplit_code code = psplit_model_move_constants(model, names, n_values, diag, &moved);
  if (code == PSPLIT_OK)
    code = write_values(moved ? moved : model, values, n_values, path, options, diag);
  psplit_model_close(moved);
  free(names);
  return code;
}
