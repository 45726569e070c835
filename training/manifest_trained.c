#include <inttypes.h>

#include "manifest_inside.h"

void psplit_i_open_row(psplit_i_json *json) {
  psplit_i_json_open(json, '{');
  json->compact = true;
}

void psplit_i_close_row(psplit_i_json *json) {
  psplit_i_json_close(json, '}');
  json->compact = false;
}

void psplit_i_key_file(psplit_i_json *json, const psplit_i_layout *layout, uint32_t stage,
                       const char *what) {
  char name[PSPLIT_I_FILE_NAME];
  psplit_i_stage_name_of(layout->forward, stage, what, name);
  psplit_i_json_put_string(json, "file", name);
}

void psplit_i_write_type(psplit_i_json *json, const psplit_i_shapes *shapes,
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

const char *psplit_i_trainable_name(const psplit_i_layout *layout, uint32_t trainable) {
  return psplit_gradient_trainable(layout->training->gradient, trainable).name;
}

void psplit_i_write_loss(const psplit_i_layout *layout, psplit_i_json *json) {
  const psplit_gradient *gradient = layout->training->gradient;
  const psplit_plan *plan = layout->forward->plan;
  const uint32_t producer = gradient->b.forward->values[gradient->loss].producer;
  psplit_i_json_key(json, "loss");
  psplit_i_open_row(json);
  psplit_i_json_put_string(json, "tensor", psplit_gradient_loss(gradient));
  psplit_i_json_put_uint(json, "stage", producer == PSPLIT_NONE ? 0 : plan->node_stage[producer]);
  psplit_i_json_put_string(json, "gradient", psplit_gradient_loss_gradient(gradient));
  psplit_i_close_row(json);
}

/* What the model was differentiated by, besides its weights. */
void psplit_i_write_options(const psplit_training *training, psplit_i_json *json) {
  static const char *const dropouts[] = {[PSPLIT_DROPOUT_AS_IS] = "as-is",
                                         [PSPLIT_DROPOUT_TRAIN] = "train",
                                         [PSPLIT_DROPOUT_FROZEN] = "frozen"};
  static const char *const norms[] = {[PSPLIT_BATCH_NORM_AS_IS] = "as-is",
                                      [PSPLIT_BATCH_NORM_TRAIN] = "train",
                                      [PSPLIT_BATCH_NORM_FROZEN] = "frozen"};
  psplit_i_json_key(json, "options");
  psplit_i_open_row(json);
  psplit_i_json_put_string(json, "loss", training->loss);
  psplit_i_json_put_string(json, "loss_output", training->loss_output);
  psplit_i_json_put_string(json, "batch_norm", norms[training->batch_norm]);
  psplit_i_json_put_string(json, "dropout", dropouts[training->dropout]);
  psplit_i_close_row(json);
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

void psplit_i_write_weights(const psplit_i_layout *layout, psplit_i_json *json) {
  const psplit_gradient *gradient = layout->training->gradient;
  psplit_i_json_put_open(json, "weights", '[');
  for (uint32_t t = 0; t < gradient->n_trainables; t++) {
    const psplit_trainable one = psplit_gradient_trainable(gradient, t);
    if (one.is_input) continue;
    psplit_i_open_row(json);
    psplit_i_json_put_string(json, "name", one.name);
    psplit_i_write_type(json, gradient->shapes,
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
    psplit_i_close_row(json);
  }
  psplit_i_json_close(json, ']');
}

void psplit_i_write_input_gradients(const psplit_i_layout *layout, psplit_i_json *json) {
  const psplit_gradient *gradient = layout->training->gradient;
  bool any = false;
  for (uint32_t t = 0; t < gradient->n_trainables; t++) any |= gradient->trainables[t].is_input;
  if (!any) return;
  psplit_i_json_put_open(json, "input_gradients", '[');
  for (uint32_t t = 0; t < gradient->n_trainables; t++) {
    const psplit_trainable one = psplit_gradient_trainable(gradient, t);
    if (!one.is_input) continue;
    psplit_i_open_row(json);
    psplit_i_json_put_string(json, "name", one.name);
    psplit_i_json_put_string(json, "gradient", one.gradient);
    psplit_i_close_row(json);
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

void psplit_i_write_masks(const psplit_i_layout *layout, psplit_i_json *json) {
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
    psplit_i_open_row(json);
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
    psplit_i_close_row(json);
  }
  psplit_i_json_close(json, ']');
}
