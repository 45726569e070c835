/* The forward model with its stash, and the backward model. */
#include "fields.h"
#include "gradient.h"
#include "model_pieces.h"
#include "write.h"

/* The graph's field of a ModelProto, and what is around it. */
static void put_graph_head(psplit_i_text *out, uint64_t graph_bytes) {
  psplit_i_wire_tag(out, PSPLIT_I_MODEL_GRAPH, PSPLIT_I_WIRE_BYTES);
  psplit_i_wire_varint(out, graph_bytes);
}

static psplit_code need_type(const psplit_gradient *gradient, uint32_t value, psplit_diag *diag) {
  if (psplit_i_shapes_type(gradient->shapes, value)->elem) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                       "the element type of \"%s\", which the backward pass reads, is not known: "
                       "declare it in the model's value_info",
                       gradient->b.forward->values[value].name);
}

/* ---- forward ---- */

/* Trained weights become inputs: what an initializer says is their default then. */
static void put_weight_inputs(const psplit_gradient *gradient, psplit_i_text *out) {
  const psplit_i_graph *graph = gradient->b.forward;
  for (uint32_t i = 0; i < gradient->n_trainables; i++) {
    const uint32_t v = gradient->trainables[i].value;
    if (graph->values[v].input == PSPLIT_NONE)
      psplit_i_put_typed_value(out, PSPLIT_I_GRAPH_INPUT, graph->values[v].name, gradient->shapes,
                               psplit_i_shapes_type(gradient->shapes, v));
  }
}

psplit_code psplit_i_gradient_put_port(const psplit_gradient *gradient, uint32_t field,
                                       uint32_t value, psplit_diag *diag, psplit_i_text *ports) {
  const psplit_code code = need_type(gradient, value, diag);
  if (code == PSPLIT_OK)
    psplit_i_put_typed_value(ports, field, gradient->b.forward->values[value].name,
                             gradient->shapes, psplit_i_shapes_type(gradient->shapes, value));
  return code;
}

void psplit_i_gradient_put_shape(const psplit_gradient *gradient, uint32_t value, const char *name,
                                 psplit_i_text *nodes, psplit_i_text *ports) {
  const char *const inputs[] = {gradient->b.forward->values[value].name, NULL};
  const char *const outputs[] = {name, NULL};
  const psplit_i_emit_dim rank = {.value = psplit_i_shapes_type(gradient->shapes, value)->rank};
  psplit_i_put_node(nodes, "Shape", name, inputs, outputs, NULL);
  psplit_i_put_value(ports, PSPLIT_I_GRAPH_OUTPUT, name, PSPLIT_ELEM_INT64, 1, &rank);
}

static psplit_code put_stash(const psplit_gradient *gradient, psplit_i_text *out,
                             psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_backward *b = &gradient->b;
  for (uint32_t i = 0; i < gradient->stashed.n; i++) {
    const psplit_i_bvalue *value = &b->values.items[gradient->stashed.items[i]];
    if (value->origin == PSPLIT_ORIGIN_SHAPE)
      psplit_i_gradient_put_shape(gradient, value->index, value->name, out, out);
    else if (!b->forward->values[value->index].is_output)
      PSPLIT_TRY(
        psplit_i_gradient_put_port(gradient, PSPLIT_I_GRAPH_OUTPUT, value->index, diag, out));
  }
out:
  return code;
}

/* What states become, as outputs. */
static psplit_code put_next_states(const psplit_gradient *gradient, psplit_i_text *out,
                                   psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < gradient->n_trainables; i++) {
    const psplit_i_trainable *t = &gradient->trainables[i];
    if (t->is_state && !gradient->b.forward->values[t->next].is_output)
      PSPLIT_TRY(psplit_i_gradient_put_port(gradient, PSPLIT_I_GRAPH_OUTPUT, t->next, diag, out));
  }
out:
  return code;
}

/* Whether a field of the graph is the initializer of a weight that becomes a plain input. */
static bool left_out(const psplit_gradient *gradient, psplit_weight_form weights, size_t field,
                     uint32_t *io_initializer) {
  if (gradient->model->skeleton.graph_fields.items[field].field != PSPLIT_I_GRAPH_INITIALIZER)
    return false;
  const uint32_t value = gradient->b.forward->initializers[(*io_initializer)++];
  return weights == PSPLIT_WEIGHTS_INPUT && gradient->is_trainable[value];
}

psplit_code psplit_gradient_write_forward(const psplit_gradient *gradient,
                                          psplit_weight_form weights, const char *path,
                                          psplit_diag *diag) {
  psplit_code code;
  const psplit_model *model = gradient->model;
  psplit_i_pieces graph = {0}, whole = {0};
  psplit_i_text added = {0}, head = {0};
  uint32_t initializer = 0;
  for (size_t i = 0; i < model->skeleton.graph_fields.n; i++)
    if (!left_out(gradient, weights, i, &initializer))
      psplit_i_pieces_span(&graph, model, &model->skeleton.graph_fields.items[i]);
  put_weight_inputs(gradient, &added);
  PSPLIT_TRY(put_next_states(gradient, &added, diag));
  PSPLIT_TRY(put_stash(gradient, &added, diag));
  psplit_i_pieces_text(&graph, &added);
  put_graph_head(&head, graph.bytes);
  for (size_t i = 0; i < model->skeleton.model_fields.n; i++) {
    const psplit_i_span *span = &model->skeleton.model_fields.items[i];
    if (span->field == PSPLIT_I_MODEL_GRAPH) {
      psplit_i_pieces_text(&whole, &head);
      psplit_i_pieces_all(&whole, &graph);
    } else {
      psplit_i_pieces_span(&whole, model, span);
    }
  }
  PSPLIT_TRY(psplit_i_pieces_write(&whole, model, path, diag));
out:
  psplit_i_text_fini(&added);
  psplit_i_text_fini(&head);
  psplit_i_pieces_fini(&graph);
  psplit_i_pieces_fini(&whole);
  return code;
}

/* ---- backward ---- */

/* An input of the forward model whose default counts where none is fed, forward as back. */
static bool has_default(const psplit_gradient *gradient, uint32_t value) {
  const psplit_i_value *v = &gradient->b.forward->values[value];
  return !gradient->is_trainable[value] &&
         (v->initializer != PSPLIT_NONE || v->sparse_initializer != PSPLIT_NONE);
}

/* Inputs with their defaults, and constants of the forward model that are copied. */
static psplit_code put_sources(const psplit_gradient *gradient, psplit_i_text *inputs,
                               psplit_i_pieces *copies, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_backward *b = &gradient->b;
  const psplit_model *model = gradient->model;
  for (size_t r = 0; r < b->values.n; r++) {
    const psplit_i_bvalue *value = &b->values.items[r];
    if (!value->alive) continue;
    if (value->origin == PSPLIT_ORIGIN_RECEIVED) {
      psplit_i_put_typed_value(inputs, PSPLIT_I_GRAPH_INPUT, value->name, gradient->shapes,
                               psplit_i_shapes_type(gradient->shapes, value->index));
    } else if (value->origin == PSPLIT_ORIGIN_SHAPE) {
      const psplit_i_emit_dim rank = {.value =
                                        psplit_i_shapes_type(gradient->shapes, value->index)->rank};
      psplit_i_put_value(inputs, PSPLIT_I_GRAPH_INPUT, value->name, PSPLIT_ELEM_INT64, 1, &rank);
    } else if (value->origin == PSPLIT_ORIGIN_FORWARD) {
      const psplit_i_value *v = &b->forward->values[value->index];
      if (psplit_i_gradient_source(gradient, value->index) != PSPLIT_FROM_COPY) {
        PSPLIT_TRY(need_type(gradient, value->index, diag));
        psplit_i_put_typed_value(inputs, PSPLIT_I_GRAPH_INPUT, value->name, gradient->shapes,
                                 psplit_i_shapes_type(gradient->shapes, value->index));
        if (!has_default(gradient, value->index)) continue;
      }
      const uint32_t span = v->initializer != PSPLIT_NONE ? model->initializer_spans[v->initializer]
                            : v->sparse_initializer != PSPLIT_NONE
                              ? model->sparse_spans[v->sparse_initializer]
                              : model->node_spans[v->producer];
      psplit_i_pieces_span(copies, model, &model->skeleton.graph_fields.items[span]);
    }
  }
out:
  return code;
}

static void put_gradients(const psplit_gradient *gradient, psplit_i_text *out) {
  for (uint32_t i = 0; i < gradient->n_trainables; i++) {
    const psplit_i_trainable *t = &gradient->trainables[i];
    for (uint32_t p = 0; p < t->n_parts; p++)
      psplit_i_put_typed_value(out, PSPLIT_I_GRAPH_OUTPUT, t->parts[p].names.gradient,
                               gradient->shapes, psplit_i_shapes_type(gradient->shapes, t->value));
  }
}

/* To `file`, or where that is NULL to `path`. */
static psplit_code write_backward(const psplit_gradient *gradient, FILE *file, const char *path,
                                  psplit_diag *diag) {
  psplit_code code;
  psplit_i_pieces graph = {0}, whole = {0};
  psplit_i_text inputs = {0}, nodes = {0}, head = {0};
  PSPLIT_TRY(put_sources(gradient, &inputs, &graph, diag));
  psplit_i_put_nodes(&gradient->b, &nodes);
  psplit_i_put_string(&nodes, PSPLIT_I_GRAPH_NAME, "backward");
  psplit_i_put_constants(&gradient->b, &nodes);
  put_gradients(gradient, &inputs);
  psplit_i_pieces_text(&graph, &nodes);
  psplit_i_pieces_text(&graph, &inputs);
  psplit_i_put_model_head(&head);
  put_graph_head(&head, graph.bytes);
  psplit_i_pieces_text(&whole, &head);
  psplit_i_pieces_all(&whole, &graph);
  PSPLIT_TRY(file ? psplit_i_pieces_put(&whole, gradient->model, file, path, diag)
                  : psplit_i_pieces_write(&whole, gradient->model, path, diag));
out:
  psplit_i_text_fini(&inputs);
  psplit_i_text_fini(&nodes);
  psplit_i_text_fini(&head);
  psplit_i_pieces_fini(&graph);
  psplit_i_pieces_fini(&whole);
  return code;
}

psplit_code psplit_gradient_write_backward(const psplit_gradient *gradient, const char *path,
                                           psplit_diag *diag) {
  return write_backward(gradient, NULL, path, diag);
}

psplit_code psplit_i_gradient_put_backward(const psplit_gradient *gradient, FILE *file,
                                           const char *name, psplit_diag *diag) {
  return write_backward(gradient, file, name, diag);
}

/* ---- first values ---- */

psplit_code psplit_gradient_write_weights(const psplit_gradient *gradient, const char *path,
                                          psplit_diag *diag) {
  psplit_code code;
  const psplit_model *model = gradient->model;
  psplit_i_pieces graph = {0}, whole = {0};
  psplit_i_text fields = {0}, head = {0};
  psplit_i_put_string(&fields, PSPLIT_I_GRAPH_NAME, "weights");
  for (uint32_t i = 0; i < gradient->n_trainables; i++) {
    const uint32_t v = gradient->trainables[i].value;
    const uint32_t initializer = gradient->b.forward->values[v].initializer;
    if (initializer == PSPLIT_NONE) continue;
    psplit_i_pieces_span(
      &graph, model, &model->skeleton.graph_fields.items[model->initializer_spans[initializer]]);
    psplit_i_put_typed_value(&fields, PSPLIT_I_GRAPH_OUTPUT, gradient->b.forward->values[v].name,
                             gradient->shapes, psplit_i_shapes_type(gradient->shapes, v));
  }
  psplit_i_pieces_text(&graph, &fields);
  psplit_i_put_model_head(&head);
  put_graph_head(&head, graph.bytes);
  psplit_i_pieces_text(&whole, &head);
  psplit_i_pieces_all(&whole, &graph);
  PSPLIT_TRY(psplit_i_pieces_write(&whole, model, path, diag));
out:
  psplit_i_text_fini(&fields);
  psplit_i_text_fini(&head);
  psplit_i_pieces_fini(&graph);
  psplit_i_pieces_fini(&whole);
  return code;
}
