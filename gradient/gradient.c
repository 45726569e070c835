/* Builds the backward graph of a model: the loss, the weights, differentiation, and the stash. */
#include "gradient.h"

#include <inttypes.h>
#include <stdlib.h>

#include "batch_norm.h"
#include "differentiate.h"
#include "loss.h"
#include "model.h"
#include "moved_constants.h"
#include "onnx_fields.h"
#include "opsets.h"
#include "parts.h"
#include "weights.h"

/* The loss as an output of the graph, unless it is one. */
static void add_output(const psplit_i_shapes *shapes, uint32_t value, psplit_i_text *fields) {
  const psplit_i_value *v = &psplit_i_shapes_graph(shapes)->values[value];
  if (!v->is_output)
    psplit_i_put_typed_value(fields, PSPLIT_I_GRAPH_OUTPUT, v->name, shapes,
                             psplit_i_shapes_type(shapes, value));
}

/* The value that --loss-output names, in the model as it is. */
static psplit_code check_loss_output(const psplit_i_shapes *shapes, const char *name,
                                     psplit_diag *diag, uint32_t *out) {
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  *out = psplit_i_graph_find_value(graph, name);
  if (*out == PSPLIT_NONE)
    return psplit_i_graph_fail_unknown(graph, NULL, name, diag,
                                       "the model has no value \"%s\" to take as its loss", name);
  if (graph->values[*out].producer == PSPLIT_NONE)
    return psplit_i_fail(
      diag, PSPLIT_USAGE,
      "the loss \"%s\" is an input or a weight of the model: name a value that a node computes",
      name);
  const psplit_i_vtype *type = psplit_i_shapes_type(shapes, *out);
  for (int32_t i = 0; i < type->rank; i++) {
    int64_t size;
    if (psplit_i_dim_is_const(psplit_i_shapes_dims(shapes), type->dims[i], &size) && size != 1)
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "the loss \"%s\" has more than one element: give one that is summed or "
                           "averaged, or a kind of loss",
                           name);
  }
  return PSPLIT_OK;
}

static uint32_t count_fields(const psplit_i_text *fields) {
  uint32_t n = 0;
  psplit_i_field field;
  if (!fields->n) return 0;
  const uint8_t *at = (const uint8_t *)fields->bytes, *end = at + fields->n;
  while (at < end && psplit_i_next_field(&at, end, &field)) n++;
  return n;
}

/* gradient->model: the file's model with the loss at its end, and all that is made of it. */
static psplit_code open_with_loss(psplit_gradient *gradient, const psplit_model *model,
                                  const psplit_training_options *options,
                                  const psplit_logger *logger, psplit_diag *diag) {
  psplit_code code;
  psplit_i_shapes *shapes = NULL;
  psplit_i_text fields = {0};
  psplit_i_node_edits edits = {0};
  psplit_i_skeleton skeleton = {0};
  const char *loss = options->loss_output;
  if (!options->loss == !loss)
    PSPLIT_FAIL(
      psplit_i_fail(diag, PSPLIT_USAGE, "training needs a loss or the output that is one"));
  PSPLIT_TRY(psplit_i_shapes_create(psplit_i_model_graph(model), NULL, 0, NULL, diag, &shapes));
  if (options->loss) {
    PSPLIT_TRY(
      psplit_i_loss_fields(shapes, options->loss, &gradient->arena, logger, diag, &fields, &loss));
  } else {
    uint32_t value;
    PSPLIT_TRY(check_loss_output(shapes, loss, diag, &value));
    add_output(shapes, value, &fields);
  }
  if (fields.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  psplit_i_say_inference_export(psplit_i_model_graph(model), options->batch_norm, logger);
  PSPLIT_TRY(psplit_i_batch_norm_edits(model, options->batch_norm, &gradient->arena, diag, &edits));
  PSPLIT_TRY(psplit_i_draw_edits(shapes, options->dropout, &gradient->arena, diag, &fields, &edits,
                                 &gradient->draws));
  psplit_i_edits_sort(&edits);
  gradient->n_added = count_fields(&fields);
  PSPLIT_TRY(
    psplit_i_skeleton_edit(model, edits.items, edits.n, fields.bytes, fields.n, diag, &skeleton));
  PSPLIT_TRY(psplit_i_model_rebuild(model, &skeleton, 0, diag, &gradient->model));
  PSPLIT_TRY(psplit_i_shapes_create(psplit_i_model_graph(gradient->model), NULL, 0, logger, diag,
                                    &gradient->shapes));
  gradient->loss = psplit_i_graph_find_value(psplit_i_model_graph(gradient->model), loss);
  PSPLIT_TRY(psplit_i_refuse_draws(gradient->shapes, gradient->loss, diag));
  if (options->dropout == PSPLIT_DROPOUT_AS_IS)
    PSPLIT_TRY(psplit_i_say_idle_dropouts(gradient->shapes, logger, diag));
out:
  psplit_i_vec_fini(&edits);
  psplit_i_text_fini(&fields);
  psplit_i_shapes_destroy(shapes);
  return code;
}

static bool is_input(const psplit_i_graph *graph, uint32_t value) {
  return graph->values[value].input != PSPLIT_NONE &&
         graph->values[value].initializer == PSPLIT_NONE;
}

static psplit_code find_input(const psplit_i_graph *graph, const char *name, psplit_diag *diag,
                              uint32_t *out) {
  *out = psplit_i_graph_find_value(graph, name);
  if (*out == PSPLIT_NONE || !is_input(graph, *out))
    return psplit_i_graph_fail_unknown(
      graph, is_input, name, diag, "a gradient of \"%s\" is requested, but no input has this name",
      name);
  return PSPLIT_OK;
}

/* Marks the constants among what is fed as weights are. */
static bool mark_constants(const psplit_i_graph *graph, const bool *trained, bool *out) {
  bool any = false;
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (trained[v] && graph->values[v].initializer == PSPLIT_NONE) out[v] = any = true;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    psplit_i_running found[2];
    const uint32_t n_found = psplit_i_batch_norm_running(graph, n, found);
    for (uint32_t i = 0; i < n_found; i++)
      if (graph->values[found[i].value].initializer == PSPLIT_NONE)
        out[found[i].value] = any = true;
  }
  return any;
}

/* The same values by the names that another graph has of them. */
static void mark_same(const psplit_i_graph *from, const bool *marked, const psplit_i_graph *to,
                      bool *out) {
  for (uint32_t v = 0; v < from->n_values; v++) {
    const uint32_t same =
      marked[v] ? psplit_i_graph_find_value(to, from->values[v].name) : PSPLIT_NONE;
    if (same != PSPLIT_NONE) out[same] = true;
  }
}

/* From here on a constant that is trained is an initializer. */
static psplit_code move_constants(psplit_gradient *gradient, psplit_diag *diag) {
  psplit_code code;
  const psplit_i_graph *before = psplit_i_model_graph(gradient->model);
  psplit_model *after = NULL;
  psplit_i_shapes *shapes = NULL;
  bool *wanted = PSPLIT_NEW(&gradient->arena, bool, before->n_values);
  if (!wanted) return psplit_i_nomem(diag);
  if (!mark_constants(before, gradient->is_trainable, wanted)) return PSPLIT_OK;
  PSPLIT_TRY(psplit_i_constants_move(gradient->model, wanted, diag, &after));
  const psplit_i_graph *graph = psplit_i_model_graph(after);
  PSPLIT_TRY(psplit_i_shapes_create(graph, NULL, 0, NULL, diag, &shapes));
  bool *trainable = PSPLIT_NEW(&gradient->arena, bool, graph->n_values);
  if (!trainable) PSPLIT_FAIL(psplit_i_nomem(diag));
  mark_same(before, gradient->is_trainable, graph, trainable);
  gradient->loss = psplit_i_graph_find_value(graph, before->values[gradient->loss].name);
  psplit_i_shapes_destroy(gradient->shapes);
  psplit_model_close(gradient->model);
  gradient->is_trainable = trainable;
  gradient->shapes = shapes;
  gradient->model = after;
  return PSPLIT_OK;
out:
  psplit_i_shapes_destroy(shapes);
  psplit_model_close(after);
  return code;
}

/* What trained nodes keep from micro-batch to micro-batch. */
static void add_states(psplit_gradient *gradient) {
  const psplit_i_graph *graph = psplit_i_model_graph(gradient->model);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    psplit_i_running found[2];
    const uint32_t n_found = psplit_i_batch_norm_running(graph, n, found);
    for (uint32_t i = 0; i < n_found; i++) {
      if (gradient->is_trainable[found[i].value]) continue;
      gradient->is_trainable[found[i].value] = true;
      gradient->trainables[gradient->n_trainables++] =
        (psplit_i_trainable){.value = found[i].value, .is_state = true, .next = found[i].next};
    }
  }
}

/* What gradients are wanted of: weights in the order of the file, then inputs; between them what is
 * fed as weights are. */
static psplit_code choose(psplit_gradient *gradient, const psplit_training_options *options,
                          const psplit_logger *logger, psplit_diag *diag) {
  psplit_code code;
  gradient->is_trainable =
    PSPLIT_NEW(&gradient->arena, bool, psplit_i_model_graph(gradient->model)->n_values);
  if (!gradient->is_trainable) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(
    psplit_i_weights_choose(gradient->shapes, options, logger, diag, gradient->is_trainable));
  PSPLIT_TRY(move_constants(gradient, diag));
  const psplit_i_graph *graph = psplit_i_model_graph(gradient->model);
  gradient->trainables = PSPLIT_NEW(&gradient->arena, psplit_i_trainable,
                                    graph->n_initializers + options->n_gradient_of);
  if (!gradient->trainables) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t i = 0; i < graph->n_initializers; i++)
    if (gradient->is_trainable[graph->initializers[i]])
      gradient->trainables[gradient->n_trainables++] =
        (psplit_i_trainable){.value = graph->initializers[i]};
  add_states(gradient);
  for (size_t i = 0; i < options->n_gradient_of; i++) {
    uint32_t value;
    PSPLIT_TRY(find_input(graph, options->gradient_of[i], diag, &value));
    if (gradient->is_trainable[value]) continue;
    gradient->is_trainable[value] = true;
    gradient->trainables[gradient->n_trainables++] =
      (psplit_i_trainable){.value = value, .is_input = true};
  }
  bool any = false;
  for (uint32_t i = 0; i < gradient->n_trainables; i++) any |= !gradient->trainables[i].is_state;
  if (!any && options->n_freeze)
    PSPLIT_FAIL(
      psplit_i_fail(diag, PSPLIT_USAGE, "there is nothing to train: all weights are frozen"));
  if (!any) PSPLIT_FAIL(psplit_i_weights_fail_none(gradient->shapes, diag));
out:
  return code;
}

psplit_i_source psplit_i_gradient_source(const psplit_gradient *gradient, uint32_t value) {
  const psplit_i_graph *graph = psplit_i_model_graph(gradient->model);
  const psplit_i_value *v = &graph->values[value];
  if (gradient->is_trainable[value]) return PSPLIT_FROM_INPUT;
  if (v->input != PSPLIT_NONE &&
      (v->initializer == PSPLIT_NONE || psplit_i_model_ir_version(gradient->model) >= 4))
    return PSPLIT_FROM_INPUT;
  if (v->initializer != PSPLIT_NONE || v->sparse_initializer != PSPLIT_NONE)
    return PSPLIT_FROM_COPY;
  if (v->producer != PSPLIT_NONE && psplit_i_node_is(&graph->nodes[v->producer], "Constant"))
    return PSPLIT_FROM_COPY;
  return PSPLIT_FROM_STASH;
}

/* Drops what no gradient needs, lists what is stashed, and names the rest. */
static psplit_code settle(psplit_gradient *gradient, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_i_backward *b = &gradient->b;
  size_t n_outputs = 0;
  for (uint32_t i = 0; i < gradient->n_trainables; i++)
    n_outputs += gradient->trainables[i].n_parts;
  psplit_i_ref *outputs = psplit_i_arena_array(&gradient->arena, n_outputs, sizeof *outputs);
  if (!outputs || b->failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  n_outputs = 0;
  for (uint32_t i = 0; i < gradient->n_trainables; i++)
    for (uint32_t p = 0; p < gradient->trainables[i].n_parts; p++)
      outputs[n_outputs++] = gradient->trainables[i].parts[p].gradient;
  psplit_i_backward_sweep(b, outputs, n_outputs);
  for (psplit_i_ref r = 0; r < b->values.n && !b->failed; r++) {
    psplit_i_bvalue *value = &b->values.items[r];
    if (!value->alive) continue;
    const bool stashed = value->origin == PSPLIT_ORIGIN_SHAPE ||
                         (value->origin == PSPLIT_ORIGIN_FORWARD &&
                          psplit_i_gradient_source(gradient, value->index) == PSPLIT_FROM_STASH);
    if (stashed && !psplit_i_vec_push(&gradient->stashed, r)) b->failed = true;
    if (value->name) continue;
    psplit_i_text text = {0};
    psplit_i_text_addf(&text, value->origin == PSPLIT_ORIGIN_CONSTANT ? "c%" PRIu32 : "g%" PRIu32,
                       r);
    value->name = psplit_i_backward_name(b, psplit_i_backward_text(b, &text));
    psplit_i_text_fini(&text);
  }
  gradient->twins = psplit_i_arena_array(&gradient->arena, b->nodes.n, sizeof *gradient->twins);
  if (b->failed || !gradient->twins) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (size_t n = 0; n < b->nodes.n; n++)
    if (b->nodes.items[n].alive)
      gradient->twins[gradient->n_backward_nodes++] = b->nodes.items[n].twin;
out:
  return code;
}

static psplit_code differentiate(psplit_gradient *gradient, const psplit_training_options *options,
                                 const psplit_logger *logger, psplit_diag *diag) {
  psplit_code code;
  const psplit_i_graph *graph = psplit_i_model_graph(gradient->model);
  const uint32_t n = gradient->n_trainables;
  uint32_t *values = psplit_i_arena_array(&gradient->arena, n, sizeof *values), n_wanted = 0;
  psplit_i_ref *gradients = psplit_i_arena_array(&gradient->arena, n, sizeof *gradients);
  psplit_i_ref *sums = psplit_i_arena_array(&gradient->arena, n, sizeof *sums);
  if (!values || !gradients || !sums) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n; i++)
    if (!gradient->trainables[i].is_state) values[n_wanted++] = gradient->trainables[i].value;
  PSPLIT_TRY(psplit_i_backward_init(&gradient->b, graph, diag));
  gradient->loss_gradient = psplit_i_backward_received(
    &gradient->b, "loss.grad", psplit_i_shapes_type(gradient->shapes, gradient->loss)->elem);
  if (gradient->loss_gradient == PSPLIT_NONE) PSPLIT_FAIL(psplit_i_nomem(diag));
  gradient->b.values.items[gradient->loss_gradient].index = gradient->loss;
  if (options->accumulate) PSPLIT_TRY(psplit_i_parts_begin(gradient, diag));
  const psplit_i_differentiated loss = {gradient->loss, gradient->loss_gradient};
  PSPLIT_TRY(psplit_i_differentiate(gradient->shapes, loss, values, n_wanted, &gradient->b, diag,
                                    gradients));
  n_wanted = 0;
  for (uint32_t i = 0; i < n; i++)
    sums[i] = gradient->trainables[i].is_state ? PSPLIT_NONE : gradients[n_wanted++];
  psplit_i_parts_make(gradient, sums, options->accumulate);
  if (gradient->b.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  const uint32_t reached = psplit_i_parts_say_missing(gradient, logger);
  if (!reached)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE,
                              "the loss \"%s\" depends on nothing that is trained",
                              graph->values[gradient->loss].name));
  PSPLIT_TRY(settle(gradient, diag));
out:
  return code;
}

psplit_code psplit_gradient_create(const psplit_model *model,
                                   const psplit_training_options *options,
                                   const psplit_logger *logger, psplit_diag *diag,
                                   psplit_gradient **out_gradient) {
  psplit_code code;
  psplit_gradient *gradient = calloc(1, sizeof *gradient);
  if (!gradient) return psplit_i_nomem(diag);
  psplit_i_arena_init(&gradient->arena, 0);
  PSPLIT_TRY(psplit_i_check_operators(model, diag));
  PSPLIT_TRY(open_with_loss(gradient, model, options, logger, diag));
  PSPLIT_TRY(choose(gradient, options, logger, diag));
  PSPLIT_TRY(differentiate(gradient, options, logger, diag));
  *out_gradient = gradient;
  return PSPLIT_OK;
out:
  psplit_gradient_destroy(gradient);
  return code;
}

void psplit_gradient_destroy(psplit_gradient *gradient) {
  if (!gradient) return;
  psplit_i_backward_fini(&gradient->b);
  psplit_i_vec_fini(&gradient->stashed);
  psplit_i_vec_fini(&gradient->draws);
  psplit_i_shapes_destroy(gradient->shapes);
  psplit_model_close(gradient->model);
  psplit_i_arena_fini(&gradient->arena);
  free(gradient);
}

uint32_t psplit_gradient_n_trainables(const psplit_gradient *gradient) {
  return gradient->n_trainables;
}

psplit_trainable psplit_gradient_trainable(const psplit_gradient *gradient, uint32_t index) {
  const psplit_i_trainable *t = &gradient->trainables[index];
  const psplit_i_graph *graph = gradient->b.forward;
  const uint32_t at = graph->values[t->value].initializer;
  const int64_t n = at < PSPLIT_NONE ? psplit_i_graph_initializer(graph, at).n_elements : 0;
  return (psplit_trainable){.name = graph->values[t->value].name,
                            .n_elements = (uint64_t)n,
                            .gradient = t->n_parts ? t->parts[0].names.gradient : NULL,
                            .before = t->n_parts ? t->parts[0].names.before : NULL,
                            .is_input = t->is_input,
                            .more = t->more,
                            .n_more = t->n_parts ? t->n_parts - 1 : 0,
                            .next = t->is_state ? graph->values[t->next].name : NULL};
}

const char *psplit_gradient_loss(const psplit_gradient *gradient) {
  return gradient->b.forward->values[gradient->loss].name;
}

const char *psplit_gradient_loss_gradient(const psplit_gradient *gradient) {
  return gradient->b.values.items[gradient->loss_gradient].name;
}

uint32_t psplit_gradient_n_stashed(const psplit_gradient *gradient) {
  return (uint32_t)gradient->stashed.n;
}

const char *psplit_gradient_stashed(const psplit_gradient *gradient, uint32_t index) {
  return gradient->b.values.items[gradient->stashed.items[index]].name;
}

uint32_t psplit_gradient_n_masks(const psplit_gradient *gradient) {
  return (uint32_t)gradient->draws.n;
}

psplit_mask psplit_gradient_mask(const psplit_gradient *gradient, uint32_t index) {
  const psplit_i_draw *draw = &gradient->draws.items[index];
  return (psplit_mask){
    .name = draw->input, .node = draw->node, .kind = draw->kind, .ratio = draw->ratio};
}

uint32_t psplit_gradient_n_forward_nodes(const psplit_gradient *gradient) {
  return gradient->b.forward->n_nodes;
}

uint32_t psplit_gradient_n_backward_nodes(const psplit_gradient *gradient) {
  return gradient->n_backward_nodes;
}

uint32_t psplit_gradient_twin(const psplit_gradient *gradient, uint32_t backward_node) {
  return gradient->twins[backward_node];
}
