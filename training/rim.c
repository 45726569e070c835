/* What a stage's forward file gives and takes besides what it does in a split that only computes:
 * trained weights come in, and what the backward pass of the stage reads goes out. */
#include <stdlib.h>
#include <string.h>

#include "onnx_fields.h"
#include "training.h"

/* Marks of a stage, told apart by 1 + its number. */
typedef struct rim {
  psplit_i_layout *layout;
  psplit_diag *diag;
  uint32_t *made, *received, *given; /* [n_values] */
  uint32_t *port;                    /* [n_values] of its inputs or outputs where marked */
  uint32_t *trainable;               /* [n_values] or PSPLIT_NONE */
  uint32_t *takes;                   /* [n_trainables] marks too */
} rim;

/* The forward value behind an entry of the stash. */
static const psplit_i_bvalue *stashed(const psplit_gradient *gradient, uint32_t index) {
  return &gradient->b.values.items[gradient->stashed.items[index]];
}

static void mark_stage(rim *r, uint32_t s) {
  const psplit_i_split *split = r->layout->forward;
  const psplit_i_stage *stage = &split->stages[s];
  for (uint32_t i = 0; i < stage->n_nodes; i++) {
    const psplit_i_node *node = &split->graph->nodes[stage->nodes[i]];
    for (uint32_t o = 0; o < node->n_outputs; o++)
      if (node->outputs[o] != PSPLIT_NONE) r->made[node->outputs[o]] = s + 1;
    PSPLIT_FOR_EACH_READ(node, value)
      if (r->trainable[value] != PSPLIT_NONE) r->takes[r->trainable[value]] = s + 1;
  }
  for (uint32_t i = 0; i < stage->n_inputs; i++) {
    r->received[stage->inputs[i].value] = s + 1;
    r->port[stage->inputs[i].value] = i;
  }
  for (uint32_t o = stage->n_outputs; o-- > 0;) {
    const uint32_t value = stage->outputs[o].value;
    r->given[value] = s + 1;
    if (r->received[value] != s + 1) r->port[value] = o;
  }
}

/* Where stage `s` has an entry of the stash. */
static psplit_code find_entry(const rim *r, uint32_t s, uint32_t index, psplit_i_stash *out) {
  const psplit_i_split *split = r->layout->forward;
  const psplit_i_stage *stage = &split->stages[s];
  const psplit_i_bvalue *entry = stashed(r->layout->training->gradient, index);
  const uint32_t v = entry->index;
  *out = (psplit_i_stash){.index = index, .name = entry->name, .added = true};
  if (r->made[v] != s + 1 && r->received[v] != s + 1)
    return psplit_i_fail(
      r->diag, PSPLIT_INTERNAL,
      "the backward pass of stage %u reads \"%s\", which the stage does not have", s,
      split->graph->values[v].name);
  if (entry->origin == PSPLIT_ORIGIN_SHAPE) return PSPLIT_OK;
  if (r->received[v] == s + 1)
    *out = (psplit_i_stash){.index = index, .name = stage->inputs[r->port[v]].name};
  else if (r->given[v] == s + 1)
    *out = (psplit_i_stash){.index = index, .name = stage->outputs[r->port[v]].name};
  return PSPLIT_OK;
}

/* What the backward pass of stage `s` reads, in the order of its inputs. */
static psplit_code list_stash(rim *r, uint32_t s) {
  psplit_code code = PSPLIT_OK;
  psplit_i_layout *layout = r->layout;
  psplit_i_training_stage *stage = &layout->stages[s];
  if (stage->backward == PSPLIT_NONE) return PSPLIT_OK;
  const psplit_i_stage *backward = &layout->backward.stages[stage->backward];
  psplit_i_stash *stash = PSPLIT_NEW(&layout->arena, psplit_i_stash, backward->n_inputs);
  if (!stash) return psplit_i_nomem(r->diag);
  for (uint32_t i = 0; i < backward->n_inputs; i++) {
    const psplit_i_port *port = &backward->inputs[i];
    if (!port->model) continue;
    const psplit_i_feeding feed = layout->training->feeds[port->value];
    if (feed.kind != PSPLIT_FEED_STASH) continue;
    PSPLIT_TRY(find_entry(r, s, feed.index, &stash[stage->n_stash]));
    stage->n_stash++;
  }
  stage->stash = stash;
out:
  return code;
}

/* Weights that stageI.onnx takes, and those whose first values it holds. */
static psplit_code list_weights(rim *r, uint32_t s) {
  psplit_i_layout *layout = r->layout;
  psplit_i_training_stage *stage = &layout->stages[s];
  const uint32_t n = layout->training->gradient->n_trainables;
  uint32_t *weights = psplit_i_arena_array(&layout->arena, n, sizeof *weights);
  if (!weights) return psplit_i_nomem(r->diag);
  for (uint32_t t = 0; t < n; t++) {
    if (r->takes[t] != s + 1) continue;
    weights[stage->n_weights++] = t;
    if (layout->owner[t] == PSPLIT_NONE) layout->owner[t] = s;
  }
  stage->weights = weights;
  return PSPLIT_OK;
}

static psplit_code list_owned(psplit_i_layout *layout, psplit_diag *diag) {
  const uint32_t n = layout->training->gradient->n_trainables;
  for (uint32_t s = 0; s < layout->forward->plan->n_stages; s++) {
    uint32_t *owned = psplit_i_arena_array(&layout->arena, n, sizeof *owned);
    if (!owned) return psplit_i_nomem(diag);
    for (uint32_t t = 0; t < n; t++)
      if (layout->owner[t] == s) owned[layout->stages[s].n_owned++] = t;
    layout->stages[s].owned = owned;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_layout_rims(psplit_i_layout *layout, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_gradient *gradient = layout->training->gradient;
  const size_t n_values = layout->forward->graph->n_values;
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  rim r = {.layout = layout,
           .diag = diag,
           .made = PSPLIT_NEW(&scratch, uint32_t, n_values),
           .received = PSPLIT_NEW(&scratch, uint32_t, n_values),
           .given = PSPLIT_NEW(&scratch, uint32_t, n_values),
           .port = PSPLIT_NEW(&scratch, uint32_t, n_values),
           .trainable = psplit_i_arena_array(&scratch, n_values, sizeof *r.trainable),
           .takes = PSPLIT_NEW(&scratch, uint32_t, gradient->n_trainables)};
  if (!r.made || !r.received || !r.given || !r.port || !r.trainable || !r.takes)
    PSPLIT_TRY(psplit_i_nomem(diag));
  memset(r.trainable, 0xff, n_values * sizeof *r.trainable);
  for (uint32_t t = 0; t < gradient->n_trainables; t++)
    if (!gradient->trainables[t].is_input) r.trainable[gradient->trainables[t].value] = t;
  for (uint32_t s = 0; s < layout->forward->plan->n_stages; s++) {
    mark_stage(&r, s);
    PSPLIT_TRY(list_stash(&r, s));
    PSPLIT_TRY(list_weights(&r, s));
  }
  PSPLIT_TRY(list_owned(layout, diag));
out:
  psplit_i_arena_fini(&scratch);
  return code;
}

/* --- as fields of the file --- */

psplit_code psplit_i_stage_rim(const psplit_i_layout *layout, uint32_t s, psplit_i_arena *arena,
                               psplit_diag *diag, psplit_i_stage_extra *out) {
  psplit_code code = PSPLIT_OK;
  const psplit_gradient *gradient = layout->training->gradient;
  const psplit_i_graph *graph = gradient->b.forward;
  const psplit_i_training_stage *stage = &layout->stages[s];
  uint8_t *declared = PSPLIT_NEW(arena, uint8_t, graph->n_values);
  if (!declared) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < stage->n_weights; i++) {
    const uint32_t v = gradient->trainables[stage->weights[i]].value;
    if (graph->values[v].input != PSPLIT_NONE) continue; /* the model lists it */
    declared[v] = 1;
    psplit_i_put_typed_value(&out->ports, PSPLIT_GRAPH_INPUT, graph->values[v].name,
                             gradient->shapes, psplit_i_shapes_type(gradient->shapes, v));
  }
  for (uint32_t i = 0; i < stage->n_stash; i++) {
    const psplit_i_bvalue *value = stashed(gradient, stage->stash[i].index);
    if (!stage->stash[i].added) continue;
    if (value->origin != PSPLIT_ORIGIN_SHAPE) declared[value->index] = 1;
    PSPLIT_TRY(psplit_i_gradient_put_stashed(gradient, stage->stash[i].index, diag, &out->nodes,
                                             &out->ports));
  }
  out->declared = declared;
out:
  return code;
}
