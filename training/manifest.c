/* The object "training" of pipeline.json: docs/training.md says what it means,
 * docs/manifest.schema.json its form. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json_put.h"
#include "training.h"

/* One row on one line. */
static void open_row(psplit_i_json *json) {
  psplit_i_json_open(json, '{');
  json->compact = true;
}

static void close_row(psplit_i_json *json) {
  psplit_i_json_close(json, '}');
  json->compact = false;
}

static void key_file(psplit_i_json *json, const psplit_i_layout *layout, uint32_t stage,
                     const char *what) {
  char name[PSPLIT_I_FILE_NAME];
  psplit_i_stage_name_of(layout->forward, stage, what, name);
  psplit_i_json_put_string(json, "file", name);
}

/* "dtype" and "shape" by inference. */
static void write_type(psplit_i_json *json, const psplit_i_shapes *shapes,
                       const psplit_i_vtype *type) {
  psplit_i_json_put_string(json, "dtype", psplit_i_dtype_name(type->elem));
  psplit_i_json_key(json, "shape");
  if (type->rank < 0) {
    psplit_i_json_null(json);
    return;
  }
  psplit_i_json_open(json, '[');
  for (int32_t a = 0; a < type->rank; a++) {
    const psplit_i_emit_dim dim = psplit_i_shapes_emit_dim(shapes, type->dims[a]);
    if (dim.value >= 0)
      psplit_i_json_int(json, dim.value);
    else if (dim.symbol)
      psplit_i_json_string(json, dim.symbol);
    else
      psplit_i_json_null(json);
  }
  psplit_i_json_close(json, ']');
}

static const char *trainable_name(const psplit_i_layout *layout, uint32_t trainable) {
  return psplit_gradient_trainable(layout->training->gradient, trainable).name;
}

/* --- what is trained --- */

static void write_loss(const psplit_i_layout *layout, psplit_i_json *json) {
  const psplit_gradient *gradient = layout->training->gradient;
  const psplit_plan *plan = layout->forward->plan;
  const uint32_t producer = gradient->b.forward->values[gradient->loss].producer;
  psplit_i_json_key(json, "loss");
  open_row(json);
  psplit_i_json_put_string(json, "tensor", psplit_gradient_loss(gradient));
  psplit_i_json_put_uint(json, "stage", producer == PSPLIT_NONE ? 0 : plan->node_stage[producer]);
  psplit_i_json_put_string(json, "gradient", psplit_gradient_loss_gradient(gradient));
  close_row(json);
}

/* What the model was differentiated by, besides its weights. */
static void write_options(const psplit_training *training, psplit_i_json *json) {
  static const char *const dropouts[] = {[PSPLIT_DROPOUT_AS_IS] = "as-is",
                                         [PSPLIT_DROPOUT_TRAIN] = "train",
                                         [PSPLIT_DROPOUT_FROZEN] = "frozen"};
  static const char *const norms[] = {[PSPLIT_BATCH_NORM_AS_IS] = "as-is",
                                      [PSPLIT_BATCH_NORM_TRAIN] = "train",
                                      [PSPLIT_BATCH_NORM_FROZEN] = "frozen"};
  psplit_i_json_key(json, "options");
  open_row(json);
  psplit_i_json_put_string(json, "loss", training->loss);
  psplit_i_json_put_string(json, "loss_output", training->loss_output);
  psplit_i_json_put_string(json, "batch_norm", norms[training->batch_norm]);
  psplit_i_json_put_string(json, "dropout", dropouts[training->dropout]);
  close_row(json);
}

/* The rest of a gradient that comes in parts. */
static void write_more(const psplit_trainable *weight, psplit_i_json *json) {
  psplit_i_json_put_open(json, "more", '[');
  for (uint32_t i = 0; i < weight->n_more; i++) {
    psplit_i_json_open(json, '{');
    psplit_i_json_put_string(json, "gradient", weight->more[i].gradient);
    psplit_i_json_put_string(json, "before", weight->more[i].before);
    psplit_i_json_close(json, '}');
  }
  psplit_i_json_close(json, ']');
}

static void write_weights(const psplit_i_layout *layout, psplit_i_json *json) {
  const psplit_gradient *gradient = layout->training->gradient;
  psplit_i_json_put_open(json, "weights", '[');
  for (uint32_t t = 0; t < gradient->n_trainables; t++) {
    const psplit_trainable one = psplit_gradient_trainable(gradient, t);
    if (one.is_input) continue;
    open_row(json);
    psplit_i_json_put_string(json, "name", one.name);
    write_type(json, gradient->shapes,
               psplit_i_shapes_type(gradient->shapes, gradient->trainables[t].value));
    psplit_i_json_put_open(json, "stages", '[');
    for (uint32_t s = 0; s < layout->forward->plan->n_stages; s++)
      if (layout->takes[s * (size_t)gradient->n_trainables + t]) psplit_i_json_uint(json, s);
    psplit_i_json_close(json, ']');
    psplit_i_json_key(json, "owner");
    if (layout->owner[t] == PSPLIT_NONE)
      psplit_i_json_null(json);
    else
      psplit_i_json_uint(json, layout->owner[t]);
    psplit_i_json_put_string(json, "gradient", one.gradient);
    psplit_i_json_put_string(json, "before", one.before);
    if (one.n_more) write_more(&one, json);
    if (layout->next[t]) psplit_i_json_put_string(json, "next", layout->next[t]);
    close_row(json);
  }
  psplit_i_json_close(json, ']');
}

static void write_input_gradients(const psplit_i_layout *layout, psplit_i_json *json) {
  const psplit_gradient *gradient = layout->training->gradient;
  bool any = false;
  for (uint32_t t = 0; t < gradient->n_trainables; t++) any |= gradient->trainables[t].is_input;
  if (!any) return;
  psplit_i_json_put_open(json, "input_gradients", '[');
  for (uint32_t t = 0; t < gradient->n_trainables; t++) {
    const psplit_trainable one = psplit_gradient_trainable(gradient, t);
    if (!one.is_input) continue;
    open_row(json);
    psplit_i_json_put_string(json, "name", one.name);
    psplit_i_json_put_string(json, "gradient", one.gradient);
    close_row(json);
  }
  psplit_i_json_close(json, ']');
}

/* --- what is drawn --- */

/* A number, a symbol, or products whose sum it is: psplit_i_draw_edits has seen that it is one. */
static void write_size(psplit_i_json *json, const psplit_i_shapes *shapes, psplit_dim size) {
  psplit_i_dim_product terms[PSPLIT_DIM_MOST_TERMS];
  const psplit_i_emit_dim plain = psplit_i_shapes_emit_dim(shapes, size);
  uint32_t n;
  if (plain.value >= 0) {
    psplit_i_json_int(json, plain.value);
  } else if (plain.symbol) {
    psplit_i_json_string(json, plain.symbol);
  } else if (psplit_i_dim_products(psplit_i_shapes_dims(shapes), size, terms, &n)) {
    psplit_i_json_open(json, '[');
    for (uint32_t t = 0; t < n; t++) {
      psplit_i_json_open(json, '[');
      if (terms[t].factor != 1 || !terms[t].n_symbols) psplit_i_json_int(json, terms[t].factor);
      for (uint32_t i = 0; i < terms[t].n_symbols; i++)
        psplit_i_json_string(json, terms[t].symbols[i]);
      psplit_i_json_close(json, ']');
    }
    psplit_i_json_close(json, ']');
  } else {
    psplit_i_json_null(json);
  }
}

static void write_masks(const psplit_i_layout *layout, psplit_i_json *json) {
  static const char *const kinds[] = {[PSPLIT_DRAW_KEEP] = "keep",
                                      [PSPLIT_DRAW_UNIFORM] = "uniform",
                                      [PSPLIT_DRAW_NORMAL] = "normal"};
  const psplit_gradient *gradient = layout->training->gradient;
  const psplit_i_graph *graph = gradient->b.forward;
  psplit_i_json_put_open(json, "masks", '[');
  for (uint32_t i = 0; i < gradient->draws.n; i++) {
    const psplit_i_draw *draw = &gradient->draws.items[i];
    const uint32_t value = psplit_i_graph_find_value(graph, draw->input);
    const psplit_i_vtype *type =
      psplit_i_shapes_type(gradient->shapes, psplit_i_graph_find_value(graph, draw->like));
    open_row(json);
    psplit_i_json_put_uint(json, "number", i);
    psplit_i_json_put_string(json, "name", draw->input);
    psplit_i_json_put_string(json, "tensor", draw->input);
    psplit_i_json_put_uint(
      json, "stage",
      layout->forward->plan->node_stage[graph->consumers[graph->consumer_off[value]]]);
    psplit_i_json_put_string(json, "node", draw->node);
    psplit_i_json_put_string(json, "kind", kinds[draw->kind]);
    if (draw->kind == PSPLIT_DRAW_KEEP) {
      psplit_i_json_put_double(json, "ratio", draw->ratio);
    }
    psplit_i_json_put_string(json, "dtype", draw->kind == PSPLIT_DRAW_KEEP ? "bool" : "float32");
    psplit_i_json_put_open(json, "shape", '[');
    for (int32_t a = 0; a < type->rank; a++) write_size(json, gradient->shapes, type->dims[a]);
    psplit_i_json_close(json, ']');
    close_row(json);
  }
  psplit_i_json_close(json, ']');
}

/* --- a stage --- */

static void write_stash(const psplit_i_layout *layout, const psplit_i_training_stage *stage,
                        psplit_i_json *json) {
  const psplit_gradient *gradient = layout->training->gradient;
  psplit_i_json_put_open(json, "stash", '[');
  for (uint32_t i = 0; i < stage->n_stash; i++) {
    const psplit_i_stash *entry = &stage->stash[i];
    const psplit_i_vtype *type = psplit_i_shapes_type(gradient->shapes, entry->value);
    open_row(json);
    psplit_i_json_put_string(json, "name", entry->name);
    psplit_i_json_put_string(json, "tensor", entry->tensor);
    if (entry->is_shape) {
      psplit_i_json_put_string(json, "dtype", "int64");
      psplit_i_json_put_open(json, "shape", '[');
      psplit_i_json_int(json, type->rank);
      psplit_i_json_close(json, ']');
    } else {
      write_type(json, gradient->shapes, type);
    }
    close_row(json);
  }
  psplit_i_json_close(json, ']');
}

/* --- what is computed again --- */

static void write_input(psplit_i_json *json, const char *name, const char *from) {
  open_row(json);
  psplit_i_json_put_string(json, "name", name);
  psplit_i_json_put_string(json, "from", from);
  close_row(json);
}

static bool has_default(const psplit_i_value *value) {
  return value->initializer != PSPLIT_NONE || value->sparse_initializer != PSPLIT_NONE;
}

/* Inputs of the model that a file has a default for; before IR version 4 none can be fed. */
static void write_optional_again(const psplit_i_layout *layout, const psplit_i_stage *again,
                                 psplit_i_json *json) {
  const psplit_i_value *values = layout->forward->graph->values;
  bool any = false;
  if (psplit_i_model_ir_version(layout->forward->model) < 4) return;
  for (uint32_t i = 0; i < again->n_inputs; i++) {
    if (!has_default(&values[again->inputs[i].value])) continue;
    if (!any) psplit_i_json_put_open(json, "optional_inputs", '[');
    any = true;
    write_input(json, again->inputs[i].name, "model");
  }
  if (any) psplit_i_json_close(json, ']');
}

static void write_again(const psplit_i_layout *layout, uint32_t s, psplit_i_json *json) {
  const psplit_i_training_stage *stage = &layout->stages[s];
  const psplit_i_stage *again = &layout->again.stages[s + 1];
  const psplit_i_value *values = layout->forward->graph->values;
  psplit_i_json_key(json, "again");
  if (!stage->n_again) {
    psplit_i_json_null(json);
    return;
  }
  psplit_i_json_open(json, '{');
  key_file(json, layout, s, "again");
  psplit_i_json_put_uint(json, "nodes", again->n_nodes);
  psplit_i_json_put_open(json, "inputs", '[');
  for (uint32_t i = 0; i < again->n_inputs; i++)
    if (!has_default(&values[again->inputs[i].value]))
      write_input(json, again->inputs[i].name, "model");
  for (uint32_t i = 0; i < stage->n_again_weights; i++)
    write_input(json, trainable_name(layout, stage->again_weights[i]), "weights");
  for (uint32_t i = 0; i < stage->n_again_stash; i++)
    write_input(json, values[stage->again_stash[i]].name, "stash");
  psplit_i_json_close(json, ']');
  write_optional_again(layout, again, json);
  psplit_i_json_put_open(json, "outputs", '[');
  for (uint32_t i = 0; i < stage->n_again; i++) {
    open_row(json);
    psplit_i_json_put_string(json, "name", values[stage->again[i]].name);
    psplit_i_json_put_open(json, "to", '[');
    psplit_i_json_string(json, "backward");
    psplit_i_json_close(json, ']');
    close_row(json);
  }
  psplit_i_json_close(json, ']');
  psplit_i_json_close(json, '}');
}

static int compare_numbers(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

/* Whether an input of a stage's backward pass comes from what is computed again. */
static bool comes_again(const psplit_i_layout *layout, uint32_t s, psplit_i_feeding feed) {
  const psplit_gradient *gradient = layout->training->gradient;
  const psplit_i_training_stage *stage = &layout->stages[s];
  if (feed.kind != PSPLIT_FEED_STASH || !stage->n_again) return false;
  const psplit_i_bvalue *value = &gradient->b.values.items[gradient->stashed.items[feed.index]];
  return value->origin != PSPLIT_ORIGIN_SHAPE &&
         bsearch(&value->index, stage->again, stage->n_again, sizeof value->index, compare_numbers);
}

static void write_backward_input(const psplit_i_layout *layout, uint32_t s,
                                 const psplit_i_port *port, psplit_i_json *json) {
  static const char *const feeds[] = {[PSPLIT_FEED_DATA] = "model",
                                      [PSPLIT_FEED_LOSS] = "loss",
                                      [PSPLIT_FEED_WEIGHT] = "weights",
                                      [PSPLIT_FEED_BEFORE] = "before",
                                      [PSPLIT_FEED_STASH] = "stash"};
  const psplit_i_feeding feed = layout->training->feeds[port->value];
  open_row(json);
  psplit_i_json_put_string(json, "name", port->name);
  if (port->model)
    psplit_i_json_put_string(json, "from",
                             comes_again(layout, s, feed) ? "again" : feeds[feed.kind]);
  else
    psplit_i_json_put_uint(json, "from",
                           layout->stage_of[layout->plan.transfers[port->transfer].from]);
  close_row(json);
}

static bool any_default(const psplit_i_layout *layout, const psplit_i_stage *backward) {
  const psplit_i_value *values = layout->backward.graph->values;
  for (uint32_t i = 0; i < backward->n_inputs; i++)
    if (has_default(&values[backward->inputs[i].value])) return true;
  return false;
}

static void write_backward_inputs(const psplit_i_layout *layout, uint32_t s,
                                  const psplit_i_stage *backward, bool optional,
                                  psplit_i_json *json) {
  const psplit_i_value *values = layout->backward.graph->values;
  for (uint32_t i = 0; i < backward->n_inputs; i++)
    if (has_default(&values[backward->inputs[i].value]) == optional)
      write_backward_input(layout, s, &backward->inputs[i], json);
}

/* Whether transfer t of the plan goes where the one before it does: to both halves of a stage. */
static bool goes_along(const psplit_i_layout *layout, uint32_t t) {
  const psplit_plan_transfer *one = &layout->plan.transfers[t];
  return t && one[-1].value == one->value && one[-1].from == one->from &&
         layout->stage_of[one[-1].to] == layout->stage_of[one->to];
}

static void write_backward_output(const psplit_i_layout *layout, const psplit_i_port *port,
                                  psplit_i_json *json) {
  open_row(json);
  psplit_i_json_put_string(json, "name", port->name);
  psplit_i_json_put_open(json, "to", '[');
  for (uint32_t t = port->transfer; t < port->transfer + port->n_transfers; t++)
    if (!goes_along(layout, t))
      psplit_i_json_uint(json, layout->stage_of[layout->plan.transfers[t].to]);
  if (port->model) {
    const uint32_t trainable = layout->training->output_trainable[port->value];
    psplit_i_json_string(
      json, layout->training->gradient->trainables[trainable].is_input ? "model" : "update");
  }
  psplit_i_json_close(json, ']');
  close_row(json);
}

static void write_backward(const psplit_i_layout *layout, uint32_t s, int half,
                           psplit_i_json *json) {
  const psplit_i_stage *backward = psplit_i_backward_of(layout, s, half);
  psplit_i_json_key(json, psplit_i_half_names[half]);
  if (!backward) {
    psplit_i_json_null(json);
    return;
  }
  psplit_i_json_open(json, '{');
  key_file(json, layout, s, psplit_i_half_names[half]);
  psplit_i_json_put_uint(json, "nodes", backward->n_nodes);
  psplit_i_json_put_open(json, "inputs", '[');
  write_backward_inputs(layout, s, backward, false, json);
  psplit_i_json_close(json, ']');
  if (any_default(layout, backward)) {
    psplit_i_json_put_open(json, "optional_inputs", '[');
    write_backward_inputs(layout, s, backward, true, json);
    psplit_i_json_close(json, ']');
  }
  psplit_i_json_put_open(json, "outputs", '[');
  for (uint32_t o = 0; o < backward->n_outputs; o++)
    write_backward_output(layout, &backward->outputs[o], json);
  psplit_i_json_close(json, ']');
  psplit_i_json_close(json, '}');
}

static void write_update(const psplit_i_layout *layout, uint32_t s, psplit_i_json *json) {
  const psplit_i_training_stage *stage = &layout->stages[s];
  const psplit_i_update_ports *ports = &stage->update_ports;
  psplit_i_json_key(json, "update");
  if (!stage->update.n) {
    psplit_i_json_null(json);
    return;
  }
  psplit_i_json_open(json, '{');
  key_file(json, layout, s, "update");
  psplit_i_json_put_string(json, "lr", ports->lr);
  psplit_i_json_put_string(json, "scale", ports->scale);
  if (ports->step) psplit_i_json_put_string(json, "step", ports->step);
  psplit_i_json_put_open(json, "kept", '[');
  for (size_t i = 0; i < ports->kept.n; i++) {
    const psplit_i_kept *kept = &ports->kept.items[i];
    open_row(json);
    psplit_i_json_put_string(json, "name", kept->name);
    psplit_i_json_put_string(json, "new", kept->new_name);
    psplit_i_json_put_string(json, "weight", trainable_name(layout, kept->trainable));
    psplit_i_json_put_bool(json, "state", kept->is_state);
    close_row(json);
  }
  psplit_i_json_close(json, ']');
  psplit_i_json_close(json, '}');
}

static void write_names(const psplit_i_layout *layout, const char *key, const uint32_t *trainables,
                        uint32_t n, psplit_i_json *json) {
  psplit_i_json_put_open(json, key, '[');
  for (uint32_t i = 0; i < n; i++)
    psplit_i_json_string(json, trainable_name(layout, trainables[i]));
  psplit_i_json_close(json, ']');
}

/* As planned; `times` NULL: the plan did not count them. */
static void write_stage(const psplit_i_layout *layout, uint32_t s,
                        const psplit_training_stage *times, psplit_i_json *json) {
  const psplit_i_training_stage *stage = &layout->stages[s];
  const bool apart = layout->training->weight_gradients == PSPLIT_WEIGHT_GRADIENTS_APART;
  psplit_i_json_open(json, '{');
  psplit_i_json_put_uint(json, "index", s);
  if (times) {
    psplit_i_json_put_int(json, "forward_ns", times->forward_ns);
    psplit_i_json_put_int(json, "again_ns", times->again_ns);
    psplit_i_json_put_int(json, "backward_ns", times->backward_ns);
    if (apart) psplit_i_json_put_int(json, "weight_gradients_ns", times->weight_gradients_ns);
    psplit_i_json_put_uint(json, "stash_bytes", times->stash_bytes);
  }
  write_names(layout, "weights", stage->weights, stage->n_weights, json);
  psplit_i_json_key(json, "first_weights");
  if (layout->training->weights == PSPLIT_WEIGHTS_INPUT && stage->n_owned) {
    open_row(json);
    key_file(json, layout, s, "weights");
    close_row(json);
  } else {
    psplit_i_json_null(json);
  }
  write_stash(layout, stage, json);
  write_again(layout, s, json);
  write_backward(layout, s, PSPLIT_HALF_BACKWARD, json);
  if (apart) write_backward(layout, s, PSPLIT_HALF_WEIGHTS, json);
  write_update(layout, s, json);
  psplit_i_json_close(json, '}');
}

static void write_stages(const psplit_i_layout *layout, psplit_i_json *json) {
  const psplit_plan *plan = layout->forward->plan;
  psplit_diag not_counted = {0};
  psplit_training_stage *times = calloc(plan->n_stages, sizeof *times);
  const psplit_code code =
    times ? psplit_training_stages(layout->training, plan, &not_counted, times) : PSPLIT_NOMEM;
  const bool counted = code == PSPLIT_OK;
  if (code == PSPLIT_NOMEM) json->out->failed = true; /* whatever else: times are left out */
  psplit_i_json_put_open(json, "stages", '[');
  for (uint32_t s = 0; s < plan->n_stages; s++)
    write_stage(layout, s, counted ? &times[s] : NULL, json);
  psplit_i_json_close(json, ']');
  free(times);
}

static void write_transfers(const psplit_i_layout *layout, psplit_i_json *json) {
  uint32_t tag = 0;
  psplit_i_json_put_open(json, "transfers", '[');
  for (uint32_t t = 0; t < layout->plan.n_transfers; t++) {
    const psplit_plan_transfer *transfer = &layout->plan.transfers[t];
    if (goes_along(layout, t)) continue;
    open_row(json);
    psplit_i_json_put_uint(json, "tag", tag++);
    psplit_i_json_put_string(json, "tensor", transfer->tensor);
    psplit_i_json_put_uint(json, "from", layout->stage_of[transfer->from]);
    psplit_i_json_put_uint(json, "to", layout->stage_of[transfer->to]);
    psplit_i_manifest_type(json, &layout->backward.types[t]);
    close_row(json);
  }
  psplit_i_json_close(json, ']');
}

static int compare_copies(const void *a, const void *b) {
  const psplit_plan_copy *x = a, *y = b;
  return x->node != y->node ? (x->node < y->node ? -1 : 1)
                            : (x->stage > y->stage) - (x->stage < y->stage);
}

/* Stages that have a copy in this half. */
static void write_also(const psplit_i_layout *layout, const psplit_plan_copy *copies, uint32_t n,
                       int half, psplit_i_json *json) {
  psplit_i_json_put_open(json, half == PSPLIT_HALF_WEIGHTS ? "also_weight_gradients" : "also", '[');
  for (uint32_t c = 0; c < n; c++)
    if (layout->half_of[copies[c].stage] == half)
      psplit_i_json_uint(json, layout->stage_of[copies[c].stage]);
  psplit_i_json_close(json, ']');
}

/* Constants of the backward pass that stand in several stages, as the table of the forward one. */
static void write_duplicates(const psplit_i_layout *layout, psplit_i_json *json) {
  const psplit_plan *plan = &layout->plan;
  const bool apart = layout->training->weight_gradients == PSPLIT_WEIGHT_GRADIENTS_APART;
  const psplit_i_graph *graph = psplit_i_model_graph(layout->training->backward);
  psplit_plan_copy *copies = malloc((plan->n_copies + (size_t)1) * sizeof *copies);
  if (!copies) json->out->failed = true;
  if (!copies || !plan->n_copies) goto out;
  memcpy(copies, plan->copies, plan->n_copies * sizeof *copies);
  qsort(copies, plan->n_copies, sizeof *copies, compare_copies);
  psplit_i_json_put_open(json, "duplicates", '[');
  for (uint32_t c = 0; c < plan->n_copies;) {
    const uint32_t n = copies[c].node;
    uint32_t end = c;
    while (end < plan->n_copies && copies[end].node == n) end++;
    open_row(json);
    psplit_i_json_put_uint(json, "index", n);
    psplit_i_json_put_string(json, "node", graph->nodes[n].name);
    psplit_i_json_put_uint(json, "stage", layout->stage_of[plan->node_stage[n]]);
    if (layout->half_of[plan->node_stage[n]] == PSPLIT_HALF_WEIGHTS)
      psplit_i_json_put_string(json, "file", psplit_i_half_names[PSPLIT_HALF_WEIGHTS]);
    for (int h = 0; h < PSPLIT_N_HALVES; h++)
      if (h == PSPLIT_HALF_BACKWARD || apart) write_also(layout, copies + c, end - c, h, json);
    close_row(json);
    c = end;
  }
  psplit_i_json_close(json, ']');
out:
  free(copies);
}

void psplit_i_training_json(const psplit_i_layout *layout, psplit_i_json *json) {
  static const char *const recomputes[] = {[PSPLIT_RECOMPUTE_AUTO] = "auto",
                                           [PSPLIT_RECOMPUTE_NONE] = "none",
                                           [PSPLIT_RECOMPUTE_HEAVY] = "heavy",
                                           [PSPLIT_RECOMPUTE_ALL] = "all"};
  const psplit_training *training = layout->training;
  psplit_i_json_put_open(json, "training", '{');
  write_options(training, json);
  write_loss(layout, json);
  psplit_i_json_put_string(json, "weight_form",
                           training->weights == PSPLIT_WEIGHTS_INPUT ? "input" : "default");
  psplit_i_json_put_string(json, "optimizer", training->optimizer);
  psplit_i_json_put_string(json, "recompute", recomputes[training->recompute]);
  write_weights(layout, json);
  write_masks(layout, json);
  write_input_gradients(layout, json);
  write_stages(layout, json);
  write_transfers(layout, json);
  write_duplicates(layout, json);
  psplit_i_json_close(json, '}');
}
