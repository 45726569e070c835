/* Inputs and outputs that a stage's forward file has for training alone: trained weights come in,
 * and values that the stage's backward pass needs (the stash) go out. Also the file that computes
 * again those that are not kept. */
#include <stdlib.h>
#include <string.h>

#include "onnx_fields.h"
#include "training.h"

/* Of one stage; arrays are cleared from stage to stage. */
typedef struct ports {
  psplit_i_layout *layout;
  psplit_diag *diag;
  uint32_t stage;
  bool *made;        /* [n_values] by a node of the stage */
  const char **port; /* [n_values] its name among the file's inputs, or its outputs; or NULL */
  bool *wanted;      /* [n_values] the backward pass reads it, ... */
  bool *shaped;      /* ... or its shape */
  psplit_i_fates fates;
  uint32_t *trainable; /* [n_values] or PSPLIT_NONE; the same for all stages */
  bool *takes;         /* [n_trainables] */
} ports;

typedef PSPLIT_VEC(uint32_t) numbers;

/* A list as long as the layout. */
static psplit_code keep_numbers(ports *r, const numbers *list, const uint32_t **out,
                                uint32_t *out_n) {
  uint32_t *own = psplit_i_arena_array(&r->layout->arena, list->n, sizeof *own);
  if (!own) return psplit_i_nomem(r->diag);
  if (list->n) memcpy(own, list->items, list->n * sizeof *own);
  *out = own;
  *out_n = (uint32_t)list->n;
  return PSPLIT_OK;
}

static void clear(ports *r) {
  const size_t n_values = r->layout->forward->graph->n_values;
  memset(r->made, 0, n_values * sizeof *r->made);
  memset(r->port, 0, n_values * sizeof *r->port);
  memset(r->wanted, 0, n_values * sizeof *r->wanted);
  memset(r->shaped, 0, n_values * sizeof *r->shaped);
  memset(r->fates.value, 0, n_values);
  memset(r->fates.again, 0, r->layout->forward->graph->n_nodes);
  memset(r->takes, 0, r->layout->training->gradient->n_trainables * sizeof *r->takes);
}

static void mark_stage(ports *r) {
  const psplit_i_split *split = r->layout->forward;
  const psplit_i_stage *stage = &split->stages[r->stage];
  for (uint32_t i = 0; i < stage->n_nodes; i++) {
    const psplit_i_node *node = &split->graph->nodes[stage->nodes[i]];
    for (uint32_t o = 0; o < node->n_outputs; o++)
      if (node->outputs[o] != PSPLIT_NONE) r->made[node->outputs[o]] = true;
    PSPLIT_FOR_EACH_READ(node, value)
      if (r->trainable[value] != PSPLIT_NONE) r->takes[r->trainable[value]] = true;
  }
  for (uint32_t o = stage->n_outputs; o-- > 0;)
    r->port[stage->outputs[o].value] = stage->outputs[o].name;
  for (uint32_t i = 0; i < stage->n_inputs; i++)
    r->port[stage->inputs[i].value] = stage->inputs[i].name;
}

static psplit_code has(const ports *r, uint32_t value) {
  if (r->made[value] || r->port[value]) return PSPLIT_OK;
  return psplit_i_fail(r->diag, PSPLIT_INTERNAL,
                       "the backward pass of stage %u reads \"%s\", which the stage does not have",
                       r->stage, r->layout->forward->graph->values[value].name);
}

/* What a half of the backward pass reads, in the order of its inputs: shapes, which are kept, to
 * the stash; values to `wanted`. What the other half reads, too, is there once. */
static psplit_code list_wanted(ports *r, const psplit_i_stage *backward, psplit_i_stash *stash,
                               uint32_t *io_n, numbers *wanted) {
  psplit_code code = PSPLIT_OK;
  psplit_i_layout *layout = r->layout;
  const psplit_gradient *gradient = layout->training->gradient;
  for (uint32_t i = 0; i < backward->n_inputs; i++) {
    if (!backward->inputs[i].model) continue;
    const psplit_i_feeding feed = layout->training->feeds[backward->inputs[i].value];
    if (feed.kind != PSPLIT_FEED_STASH) continue;
    const psplit_i_bvalue *entry = &gradient->b.values.items[gradient->stashed.items[feed.index]];
    PSPLIT_TRY(has(r, entry->index));
    if (entry->origin == PSPLIT_ORIGIN_SHAPE) {
      if (r->shaped[entry->index]) continue;
      r->shaped[entry->index] = true;
      stash[(*io_n)++] = (psplit_i_stash){.value = entry->index,
                                          .is_shape = true,
                                          .tensor = entry->name,
                                          .name = entry->name,
                                          .added = true};
    } else if (!r->wanted[entry->index]) {
      r->wanted[entry->index] = true;
      if (!psplit_i_vec_push(wanted, entry->index)) PSPLIT_FAIL(psplit_i_nomem(r->diag));
    }
  }
out:
  return code;
}

/* Kept values to the stash, those that are made again and wanted to the stage's list. */
static psplit_code sort_values(ports *r, psplit_i_stash *stash, uint32_t *io_n) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = r->layout->forward->graph;
  psplit_i_training_stage *stage = &r->layout->stages[r->stage];
  numbers again = {0};
  for (uint32_t v = 0; v < graph->n_values; v++) {
    if (r->fates.value[v] == PSPLIT_FATE_KEPT)
      stash[(*io_n)++] = (psplit_i_stash){.value = v,
                                          .tensor = graph->values[v].name,
                                          .name = r->port[v] ? r->port[v] : graph->values[v].name,
                                          .added = !r->port[v]};
    else if (r->fates.value[v] == PSPLIT_FATE_AGAIN && r->wanted[v] &&
             !psplit_i_vec_push(&again, v))
      PSPLIT_FAIL(psplit_i_nomem(r->diag));
  }
  PSPLIT_TRY(keep_numbers(r, &again, &stage->again, &stage->n_again));
out:
  psplit_i_vec_fini(&again);
  return code;
}

/* The file that computes again as a stage of layout->again, and what it reads of elsewhere. */
static psplit_code list_again(ports *r) {
  psplit_code code = PSPLIT_OK;
  psplit_i_layout *layout = r->layout;
  const psplit_i_graph *graph = layout->forward->graph;
  psplit_i_training_stage *stage = &layout->stages[r->stage];
  psplit_i_stage *again = &layout->again.stages[r->stage + 1];
  const psplit_gradient *gradient = layout->training->gradient;
  psplit_i_port *inputs = PSPLIT_NEW(&layout->arena, psplit_i_port, graph->n_inputs);
  bool *reads = PSPLIT_NEW(&layout->arena, bool, graph->n_values);
  numbers nodes = {0}, stash = {0}, weights = {0};
  if (!inputs || !reads) return psplit_i_nomem(r->diag);
  for (uint32_t t = 0; t < graph->n_nodes; t++) {
    const uint32_t n = graph->topo[t];
    if (!r->fates.again[n]) continue;
    if (!psplit_i_vec_push(&nodes, n)) PSPLIT_FAIL(psplit_i_nomem(r->diag));
    PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) reads[value] = true;
  }
  PSPLIT_TRY(keep_numbers(r, &nodes, &again->nodes, &again->n_nodes));
  for (uint32_t v = 0; v < graph->n_values; v++) {
    if (!reads[v]) continue;
    uint32_t trainable = r->trainable[v];
    /* A state is not moved again: its first value does, as nothing reads the next one. */
    if (trainable != PSPLIT_NONE && gradient->trainables[trainable].is_state)
      trainable = PSPLIT_NONE;
    if ((r->fates.value[v] == PSPLIT_FATE_KEPT && !psplit_i_vec_push(&stash, v)) ||
        (trainable != PSPLIT_NONE && !psplit_i_vec_push(&weights, trainable)))
      PSPLIT_FAIL(psplit_i_nomem(r->diag));
  }
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    const uint32_t v = graph->inputs[i];
    if (!reads[v] || r->trainable[v] != PSPLIT_NONE) continue;
    inputs[again->n_inputs++] =
      (psplit_i_port){.value = v, .name = graph->values[v].name, .model = true, .position = i};
  }
  again->inputs = inputs;
  PSPLIT_TRY(keep_numbers(r, &stash, &stage->again_stash, &stage->n_again_stash));
  PSPLIT_TRY(keep_numbers(r, &weights, &stage->again_weights, &stage->n_again_weights));
out:
  psplit_i_vec_fini(&nodes);
  psplit_i_vec_fini(&stash);
  psplit_i_vec_fini(&weights);
  return code;
}

static psplit_code list_stash(ports *r) {
  psplit_code code = PSPLIT_OK;
  psplit_i_layout *layout = r->layout;
  psplit_i_training_stage *stage = &layout->stages[r->stage];
  const size_t most = layout->forward->graph->n_values + layout->backward.graph->n_inputs;
  psplit_i_stash *stash = calloc(most + 1, sizeof *stash);
  numbers wanted = {0};
  uint32_t n = 0;
  if (!stash) return psplit_i_nomem(r->diag);
  for (int h = 0; h < PSPLIT_N_HALVES; h++) {
    const psplit_i_stage *backward = psplit_i_backward_of(layout, r->stage, h);
    if (backward) PSPLIT_TRY(list_wanted(r, backward, stash, &n, &wanted));
  }
  PSPLIT_TRY(psplit_i_fates_settle(&r->fates, wanted.items, wanted.n, r->diag));
  PSPLIT_TRY(sort_values(r, stash, &n));
  psplit_i_stash *own = psplit_i_arena_array(&layout->arena, n, sizeof *own);
  if (!own) PSPLIT_FAIL(psplit_i_nomem(r->diag));
  if (n) memcpy(own, stash, n * sizeof *own);
  stage->stash = own;
  stage->n_stash = n;
  if (stage->n_again) PSPLIT_TRY(list_again(r));
out:
  free(stash);
  psplit_i_vec_fini(&wanted);
  return code;
}

/* Weights that stageI.onnx takes; the first stage that takes one owns it, unless another updates
 * it. */
static psplit_code list_weights(ports *r) {
  psplit_i_layout *layout = r->layout;
  psplit_i_training_stage *stage = &layout->stages[r->stage];
  const uint32_t n = layout->training->gradient->n_trainables;
  uint32_t *weights = psplit_i_arena_array(&layout->arena, n, sizeof *weights);
  if (!weights) return psplit_i_nomem(r->diag);
  for (uint32_t t = 0; t < n; t++) {
    if (!r->takes[t]) continue;
    weights[stage->n_weights++] = t;
    if (layout->owner[t] == PSPLIT_NONE) layout->owner[t] = r->stage;
  }
  stage->weights = weights;
  return PSPLIT_OK;
}

/* States whose next value the stage makes; it may be an output already. */
static psplit_code list_states(ports *r) {
  psplit_i_layout *layout = r->layout;
  psplit_i_training_stage *stage = &layout->stages[r->stage];
  const psplit_gradient *gradient = layout->training->gradient;
  uint32_t *states = psplit_i_arena_array(&layout->arena, gradient->n_trainables, sizeof *states);
  if (!states) return psplit_i_nomem(r->diag);
  for (uint32_t t = 0; t < gradient->n_trainables; t++) {
    const psplit_i_trainable *one = &gradient->trainables[t];
    if (!one->is_state || !r->made[one->next]) continue;
    layout->next[t] =
      r->port[one->next] ? r->port[one->next] : layout->forward->graph->values[one->next].name;
    if (!r->port[one->next]) states[stage->n_states++] = t;
  }
  stage->states = states;
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

psplit_code psplit_i_layout_training_ports(psplit_i_layout *layout, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_gradient *gradient = layout->training->gradient;
  const psplit_i_graph *graph = layout->forward->graph;
  const size_t n_values = graph->n_values;
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  ports r = {.layout = layout,
             .diag = diag,
             .made = PSPLIT_NEW(&scratch, bool, n_values),
             .port = PSPLIT_NEW(&scratch, const char *, n_values),
             .wanted = PSPLIT_NEW(&scratch, bool, n_values),
             .shaped = PSPLIT_NEW(&scratch, bool, n_values),
             .fates = {.graph = graph,
                       .how = layout->training->recompute,
                       .value = PSPLIT_NEW(&scratch, uint8_t, n_values),
                       .again = PSPLIT_NEW(&scratch, uint8_t, graph->n_nodes)},
             .trainable = psplit_i_arena_array(&scratch, n_values, sizeof *r.trainable),
             .takes = PSPLIT_NEW(&scratch, bool, gradient->n_trainables)};
  if (!r.made || !r.port || !r.wanted || !r.shaped || !r.fates.value || !r.fates.again ||
      !r.trainable || !r.takes)
    PSPLIT_FAIL(psplit_i_nomem(diag));
  r.fates.made = r.made;
  memset(r.trainable, 0xff, n_values * sizeof *r.trainable);
  for (uint32_t t = 0; t < gradient->n_trainables; t++)
    if (!gradient->trainables[t].is_input) r.trainable[gradient->trainables[t].value] = t;
  for (r.stage = 0; r.stage < layout->forward->plan->n_stages; r.stage++) {
    clear(&r);
    mark_stage(&r);
    PSPLIT_TRY(list_stash(&r));
    PSPLIT_TRY(list_weights(&r));
    PSPLIT_TRY(list_states(&r));
  }
  PSPLIT_TRY(list_owned(layout, diag));
out:
  psplit_i_arena_fini(&scratch);
  return code;
}

/* --- as fields of the files --- */

static void put_weight(const psplit_gradient *gradient, uint32_t trainable, uint8_t *declared,
                       psplit_i_stage_extra *out) {
  const uint32_t v = gradient->trainables[trainable].value;
  declared[v] = 1;
  psplit_i_put_typed_value(&out->ports, PSPLIT_I_GRAPH_INPUT, gradient->b.forward->values[v].name,
                           gradient->shapes, psplit_i_shapes_type(gradient->shapes, v));
}

psplit_code psplit_i_stage_training_ports(const psplit_i_layout *layout, uint32_t s,
                                          psplit_i_arena *arena, psplit_diag *diag,
                                          psplit_i_stage_extra *out) {
  psplit_code code = PSPLIT_OK;
  const psplit_gradient *gradient = layout->training->gradient;
  const psplit_i_graph *graph = gradient->b.forward;
  const psplit_i_training_stage *stage = &layout->stages[s];
  uint8_t *declared = PSPLIT_NEW(arena, uint8_t, graph->n_values);
  if (!declared) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < stage->n_weights; i++) /* unless the model lists it */
    if (graph->values[gradient->trainables[stage->weights[i]].value].input == PSPLIT_NONE)
      put_weight(gradient, stage->weights[i], declared, out);
  for (uint32_t i = 0; i < stage->n_states; i++) {
    const uint32_t next = gradient->trainables[stage->states[i]].next;
    declared[next] = 1;
    PSPLIT_TRY(
      psplit_i_gradient_put_port(gradient, PSPLIT_I_GRAPH_OUTPUT, next, diag, &out->ports));
  }
  for (uint32_t i = 0; i < stage->n_stash; i++) {
    const psplit_i_stash *entry = &stage->stash[i];
    if (!entry->added) continue;
    if (entry->is_shape) {
      psplit_i_gradient_put_shape(gradient, entry->value, entry->name, &out->nodes, &out->ports);
      continue;
    }
    declared[entry->value] = 1;
    PSPLIT_TRY(
      psplit_i_gradient_put_port(gradient, PSPLIT_I_GRAPH_OUTPUT, entry->value, diag, &out->ports));
  }
  out->declared = declared;
out:
  return code;
}

psplit_code psplit_i_again_training_ports(const psplit_i_layout *layout, uint32_t s,
                                          psplit_i_arena *arena, psplit_diag *diag,
                                          psplit_i_stage_extra *out) {
  psplit_code code = PSPLIT_OK;
  const psplit_gradient *gradient = layout->training->gradient;
  const psplit_i_training_stage *stage = &layout->stages[s];
  uint8_t *declared = PSPLIT_NEW(arena, uint8_t, gradient->b.forward->n_values);
  if (!declared) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < stage->n_again_weights; i++)
    put_weight(gradient, stage->again_weights[i], declared, out);
  for (uint32_t i = 0; i < stage->n_again_stash; i++) {
    declared[stage->again_stash[i]] = 1;
    PSPLIT_TRY(psplit_i_gradient_put_port(gradient, PSPLIT_I_GRAPH_INPUT, stage->again_stash[i],
                                          diag, &out->ports));
  }
  for (uint32_t i = 0; i < stage->n_again; i++) {
    declared[stage->again[i]] = 1;
    PSPLIT_TRY(psplit_i_gradient_put_port(gradient, PSPLIT_I_GRAPH_OUTPUT, stage->again[i], diag,
                                          &out->ports));
  }
  out->declared = declared;
out:
  return code;
}
