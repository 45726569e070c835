#include <inttypes.h>
#include <stdlib.h>

#include "manifest_inside.h"

static void write_stash(const psplit_i_layout *layout, const psplit_i_training_stage *stage,
                        psplit_i_json *json) {
  const psplit_gradient *gradient = layout->training->gradient;
  psplit_i_json_put_open(json, "stash", '[');
  for (uint32_t i = 0; i < stage->n_stash; i++) {
    const psplit_i_stash *entry = &stage->stash[i];
    const psplit_i_vtype *type = psplit_i_shapes_type(gradient->shapes, entry->value);
    psplit_i_open_row(json);
    psplit_i_json_put_string(json, "name", entry->name);
    psplit_i_json_put_string(json, "tensor", entry->tensor);
    if (entry->is_shape) {
      psplit_i_json_put_string(json, "dtype", "int64");
      psplit_i_json_put_open(json, "shape", '[');
      psplit_i_json_int(json, type->rank);
      psplit_i_json_close(json, ']');
    } else {
      psplit_i_write_type(json, gradient->shapes, type);
    }
    psplit_i_close_row(json);
  }
  psplit_i_json_close(json, ']');
}

/* --- what is computed again --- */

static void write_input(psplit_i_json *json, const char *name, const char *from) {
  psplit_i_open_row(json);
  psplit_i_json_put_string(json, "name", name);
  psplit_i_json_put_string(json, "from", from);
  psplit_i_close_row(json);
}

/* Inputs of the model that a file has a default for; before IR version 4 none can be fed. */
static void write_optional_again(const psplit_i_layout *layout, const psplit_i_stage *again,
                                 psplit_i_json *json) {
  const psplit_i_value *values = layout->forward->graph->values;
  bool any = false;
  if (psplit_i_model_ir_version(layout->forward->model) < 4) return;
  for (uint32_t i = 0; i < again->n_inputs; i++) {
    if (!psplit_i_has_initializer(&values[again->inputs[i].value])) continue;
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
  psplit_i_key_file(json, layout, s, "again");
  psplit_i_json_put_uint(json, "nodes", again->n_nodes);
  psplit_i_json_put_open(json, "inputs", '[');
  for (uint32_t i = 0; i < again->n_inputs; i++)
    if (!psplit_i_has_initializer(&values[again->inputs[i].value]))
      write_input(json, again->inputs[i].name, "model");
  for (uint32_t i = 0; i < stage->n_again_weights; i++)
    write_input(json, psplit_i_trainable_name(layout, stage->again_weights[i]), "weights");
  for (uint32_t i = 0; i < stage->n_again_stash; i++)
    write_input(json, values[stage->again_stash[i]].name, "stash");
  psplit_i_json_close(json, ']');
  write_optional_again(layout, again, json);
  psplit_i_json_put_open(json, "outputs", '[');
  for (uint32_t i = 0; i < stage->n_again; i++) {
    psplit_i_open_row(json);
    psplit_i_json_put_string(json, "name", values[stage->again[i]].name);
    psplit_i_json_put_open(json, "to", '[');
    psplit_i_json_string(json, "backward");
    psplit_i_json_close(json, ']');
    psplit_i_close_row(json);
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
  psplit_i_open_row(json);
  psplit_i_json_put_string(json, "name", port->name);
  if (port->model)
    psplit_i_json_put_string(json, "from",
                             comes_again(layout, s, feed) ? "again" : feeds[feed.kind]);
  else
    psplit_i_json_put_uint(json, "from",
                           layout->stage_of[layout->plan.transfers[port->transfer].from]);
  psplit_i_close_row(json);
}

static bool any_default(const psplit_i_layout *layout, const psplit_i_stage *backward) {
  const psplit_i_value *values = layout->backward.graph->values;
  for (uint32_t i = 0; i < backward->n_inputs; i++)
    if (psplit_i_has_initializer(&values[backward->inputs[i].value])) return true;
  return false;
}

static void write_backward_inputs(const psplit_i_layout *layout, uint32_t s,
                                  const psplit_i_stage *backward, bool optional,
                                  psplit_i_json *json) {
  const psplit_i_value *values = layout->backward.graph->values;
  for (uint32_t i = 0; i < backward->n_inputs; i++)
    if (psplit_i_has_initializer(&values[backward->inputs[i].value]) == optional)
      write_backward_input(layout, s, &backward->inputs[i], json);
}

bool psplit_i_goes_along(const psplit_i_layout *layout, uint32_t t) {
  const psplit_plan_transfer *one = &layout->plan.transfers[t];
  return t && one[-1].value == one->value && one[-1].from == one->from &&
         layout->stage_of[one[-1].to] == layout->stage_of[one->to];
}

static void write_backward_output(const psplit_i_layout *layout, const psplit_i_port *port,
                                  psplit_i_json *json) {
  psplit_i_open_row(json);
  psplit_i_json_put_string(json, "name", port->name);
  psplit_i_json_put_open(json, "to", '[');
  for (uint32_t t = port->transfer; t < port->transfer + port->n_transfers; t++)
    if (!psplit_i_goes_along(layout, t))
      psplit_i_json_uint(json, layout->stage_of[layout->plan.transfers[t].to]);
  if (port->model) {
    const uint32_t trainable = layout->training->output_trainable[port->value];
    psplit_i_json_string(
      json, layout->training->gradient->trainables[trainable].is_input ? "model" : "update");
  }
  psplit_i_json_close(json, ']');
  psplit_i_close_row(json);
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
  psplit_i_key_file(json, layout, s, psplit_i_half_names[half]);
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
  psplit_i_key_file(json, layout, s, "update");
  psplit_i_json_put_string(json, "lr", ports->lr);
  psplit_i_json_put_string(json, "scale", ports->scale);
  if (ports->step) psplit_i_json_put_string(json, "step", ports->step);
  psplit_i_json_put_open(json, "kept", '[');
  for (size_t i = 0; i < ports->kept.n; i++) {
    const psplit_i_kept *kept = &ports->kept.items[i];
    psplit_i_open_row(json);
    psplit_i_json_put_string(json, "name", kept->name);
    psplit_i_json_put_string(json, "new", kept->new_name);
    psplit_i_json_put_string(json, "weight", psplit_i_trainable_name(layout, kept->trainable));
    psplit_i_json_put_bool(json, "state", kept->is_state);
    psplit_i_close_row(json);
  }
  psplit_i_json_close(json, ']');
  psplit_i_json_close(json, '}');
}

static void write_names(const psplit_i_layout *layout, const char *key, const uint32_t *trainables,
                        uint32_t n, psplit_i_json *json) {
  psplit_i_json_put_open(json, key, '[');
  for (uint32_t i = 0; i < n; i++)
    psplit_i_json_string(json, psplit_i_trainable_name(layout, trainables[i]));
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
    psplit_i_open_row(json);
    psplit_i_key_file(json, layout, s, "weights");
    psplit_i_close_row(json);
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

void psplit_i_write_training_stages(const psplit_i_layout *layout, psplit_i_json *json) {
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
