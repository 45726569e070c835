/* Which stage has which backward node. A node stands in the stage of its twin, except where it adds
 * what comes from earlier stages as well: such a sum stands in the first of them, so that gradients
 * only go from later stages to earlier ones while the order of the sums is that of the model,
 * whatever the plan.
 *
 * Where gradients of weights are apart, a stage's first half is what other stages need, or who
 * asked for gradients of inputs; the second is what nothing but updates is made of. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "training.h"

uint32_t psplit_i_first_twin(const psplit_training *training) {
  return psplit_i_model_graph(training->backward)->n_nodes -
         psplit_gradient_n_backward_nodes(training->gradient);
}

/* Whether somebody waits for a value: another stage, a node that is waited for, or the caller. */
static bool is_awaited(const psplit_training *training, const uint32_t *stage, const uint8_t *half,
                       uint32_t value, uint32_t own_stage) {
  const psplit_i_graph *graph = psplit_i_model_graph(training->backward);
  if (graph->values[value].is_output &&
      training->gradient->trainables[training->output_trainable[value]].is_input)
    return true;
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
    const uint32_t reader = graph->consumers[c];
    if (stage[reader] != own_stage || half[reader] == PSPLIT_HALF_BACKWARD) return true;
  }
  return false;
}

/* From the last node to the first, so that readers of a node are known before it. */
static void place_halves(const psplit_training *training, const uint32_t *stage, uint8_t *half) {
  const psplit_i_graph *graph = psplit_i_model_graph(training->backward);
  const uint32_t n_constants = psplit_i_first_twin(training);
  memset(half, PSPLIT_HALF_BACKWARD, graph->n_nodes * sizeof *half);
  if (training->weight_gradients == PSPLIT_WEIGHT_GRADIENTS_TOGETHER) return;
  for (uint32_t i = graph->n_nodes; i-- > 0;) {
    const uint32_t n = graph->topo[i];
    bool awaited = false;
    if (n < n_constants) continue;
    for (uint32_t o = 0; o < graph->nodes[n].n_outputs && !awaited; o++)
      awaited = graph->nodes[n].outputs[o] != PSPLIT_NONE &&
                is_awaited(training, stage, half, graph->nodes[n].outputs[o], stage[n]);
    if (!awaited) half[n] = PSPLIT_HALF_WEIGHTS;
  }
}

/* A constant stands with the first reader in the last stage that has one. */
static void place_constant(const psplit_i_graph *graph, uint32_t n, uint32_t *stage,
                           uint8_t *half) {
  const uint32_t value = graph->nodes[n].outputs[0];
  stage[n] = 0;
  half[n] = PSPLIT_HALF_BACKWARD;
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
    const uint32_t reader = graph->consumers[c];
    if (c == graph->consumer_off[value] || stage[reader] > stage[n] ||
        (stage[reader] == stage[n] && half[reader] < half[n]))
      half[n] = half[reader];
    if (stage[reader] > stage[n]) stage[n] = stage[reader];
  }
}

void psplit_i_place_backward(const psplit_training *training, const psplit_plan *plan,
                             uint32_t *stage, uint8_t *half) {
  const psplit_gradient *gradient = training->gradient;
  const psplit_i_graph *graph = psplit_i_model_graph(training->backward);
  const uint32_t n_constants = psplit_i_first_twin(training);
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    if (n < n_constants) continue;
    const uint32_t twin = psplit_gradient_twin(gradient, n - n_constants);
    stage[n] = twin == PSPLIT_NONE ? plan->n_stages - 1 : plan->node_stage[twin];
    PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) {
      const uint32_t producer = graph->values[value].producer;
      if (producer != PSPLIT_NONE && producer >= n_constants && stage[producer] < stage[n])
        stage[n] = stage[producer];
    }
  }
  place_halves(training, stage, half);
  for (uint32_t n = 0; n < n_constants; n++) place_constant(graph, n, stage, half);
}

/* Numbers the stages that have backward nodes, half by half in the order in which they may run. */
static psplit_code number_stages(psplit_i_layout *layout, uint32_t *node_stage, const uint8_t *half,
                                 psplit_diag *diag, psplit_plan_stage **out_stages) {
  const psplit_plan *forward = layout->forward->plan;
  psplit_plan *plan = &layout->plan;
  const size_t most = (size_t)forward->n_stages * PSPLIT_N_HALVES;
  psplit_plan_stage *stages = PSPLIT_NEW(&layout->arena, psplit_plan_stage, most);
  layout->stage_of = psplit_i_arena_array(&layout->arena, most, sizeof(uint32_t));
  layout->half_of = PSPLIT_NEW(&layout->arena, uint8_t, most);
  if (!stages || !layout->stage_of || !layout->half_of) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < forward->n_stages; s++)
    for (int h = 0; h < PSPLIT_N_HALVES; h++) layout->stages[s].backward[h] = PSPLIT_NONE;
  for (uint32_t n = 0; n < plan->n_nodes; n++) layout->stages[node_stage[n]].backward[half[n]] = 0;
  for (uint32_t s = forward->n_stages; s-- > 0;)
    for (int h = 0; h < PSPLIT_N_HALVES; h++) {
      if (layout->stages[s].backward[h] == PSPLIT_NONE) continue;
      layout->stages[s].backward[h] = plan->n_stages;
      layout->stage_of[plan->n_stages] = s;
      layout->half_of[plan->n_stages] = (uint8_t)h;
      stages[plan->n_stages++].device = forward->stages[s].device;
    }
  for (uint32_t n = 0; n < plan->n_nodes; n++) {
    node_stage[n] = layout->stages[node_stage[n]].backward[half[n]];
    stages[node_stage[n]].n_nodes++;
  }
  plan->node_stage = node_stage;
  plan->stages = *out_stages = stages;
  return PSPLIT_OK;
}

/* What crosses, or is copied, from one stage to another. */
typedef struct crossing {
  uint32_t value, from, to;
} crossing;

typedef PSPLIT_VEC(crossing) crossings;

static int compare(const void *a, const void *b) {
  const crossing *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

static bool find_crossings(const psplit_plan *plan, const psplit_i_graph *graph, crossings *out) {
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const uint32_t producer = graph->values[v].producer;
    if (producer == PSPLIT_NONE) continue;
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++) {
      const crossing one = {v, plan->node_stage[producer], plan->node_stage[graph->consumers[c]]};
      if (one.from != one.to && !psplit_i_vec_push(out, one)) return false;
    }
  }
  if (out->n) qsort(out->items, out->n, sizeof *out->items, compare);
  size_t n = 0;
  for (size_t i = 0; i < out->n; i++)
    if (n == 0 || compare(&out->items[n - 1], &out->items[i]) != 0) out->items[n++] = out->items[i];
  out->n = n;
  return true;
}

static int compare_copies(const void *a, const void *b) {
  const psplit_plan_copy *x = a, *y = b;
  if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

/* Constants are copied where they are read, and everything else is sent. */
static psplit_code settle_crossings(psplit_i_layout *layout, psplit_plan_stage *stages,
                                    psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = psplit_i_model_graph(layout->training->backward);
  const uint32_t n_constants = psplit_i_first_twin(layout->training);
  psplit_plan *plan = &layout->plan;
  crossings all = {0};
  if (!find_crossings(plan, graph, &all)) PSPLIT_FAIL(psplit_i_nomem(diag));
  psplit_plan_transfer *transfers = PSPLIT_NEW(&layout->arena, psplit_plan_transfer, all.n);
  psplit_plan_copy *copies = PSPLIT_NEW(&layout->arena, psplit_plan_copy, all.n);
  if (!transfers || !copies) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (size_t i = 0; i < all.n; i++) {
    const crossing *one = &all.items[i];
    if (graph->values[one->value].producer < n_constants) {
      copies[plan->n_copies++] = (psplit_plan_copy){graph->values[one->value].producer, one->to};
      stages[one->to].n_nodes++;
      stages[one->to].n_duplicated++;
    } else {
      transfers[plan->n_transfers++] =
        (psplit_plan_transfer){.value = one->value,
                               .tensor = graph->values[one->value].name,
                               .from = one->from,
                               .to = one->to};
    }
  }
  if (plan->n_copies) qsort(copies, plan->n_copies, sizeof *copies, compare_copies);
  plan->transfers = transfers;
  plan->copies = copies;
out:
  psplit_i_vec_fini(&all);
  return code;
}

static psplit_code split_backward(psplit_i_layout *layout, psplit_diag *diag) {
  psplit_code code;
  const psplit_model *model = layout->training->backward;
  psplit_emit_options options;
  psplit_emit_options_init(&options);
  options.boundary = PSPLIT_BOUNDARY_IO;
  layout->plan.n_nodes = psplit_i_model_graph(model)->n_nodes;
  uint32_t *stage = psplit_i_arena_array(&layout->arena, layout->plan.n_nodes, sizeof *stage);
  uint8_t *half = PSPLIT_NEW(&layout->arena, uint8_t, layout->plan.n_nodes);
  psplit_plan_stage *stages = NULL;
  if (!stage || !half) return psplit_i_nomem(diag);
  psplit_i_place_backward(layout->training, layout->forward->plan, stage, half);
  PSPLIT_TRY(number_stages(layout, stage, half, diag, &stages));
  PSPLIT_TRY(settle_crossings(layout, stages, diag));
  PSPLIT_TRY(psplit_i_split_init(&layout->backward, model, &layout->plan, &options, diag));
  layout->has_split = true;
out:
  return code;
}

/* The first stage in which some of a weight's gradient arises updates it. */
static void choose_owners(psplit_i_layout *layout) {
  const psplit_training *training = layout->training;
  for (uint32_t b = 0; b < layout->plan.n_stages; b++) {
    const psplit_i_stage *backward = &layout->backward.stages[b];
    for (uint32_t o = 0; o < backward->n_outputs; o++) {
      const uint32_t t = training->output_trainable[backward->outputs[o].value];
      if (backward->outputs[o].model && !training->gradient->trainables[t].is_input)
        layout->owner[t] = layout->stage_of[b];
    }
  }
}

static psplit_code make_updates(psplit_i_layout *layout, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_training *training = layout->training;
  const uint32_t n = training->gradient->n_trainables;
  choose_owners(layout);
  for (uint32_t s = 0; s < layout->forward->plan->n_stages; s++) {
    psplit_i_training_stage *stage = &layout->stages[s];
    uint32_t n_updated = 0, *updated = psplit_i_arena_array(&layout->arena, n, sizeof *updated);
    if (!updated) PSPLIT_FAIL(psplit_i_nomem(diag));
    for (uint32_t t = 0; t < n; t++)
      if (layout->owner[t] == s) updated[n_updated++] = t;
    const psplit_i_update_request request = {training->gradient, training->optimizer, updated,
                                             n_updated};
    if (training->optimizer && n_updated)
      PSPLIT_TRY(psplit_i_gradient_update(&request, &layout->arena, diag, &stage->update,
                                          &stage->update_ports));
  }
out:
  return code;
}

static psplit_code add_again_rim(void *user, uint32_t stage, psplit_i_arena *arena,
                                 psplit_diag *diag, psplit_i_stage_extra *out) {
  return psplit_i_again_training_ports(user, stage - 1, arena, diag, out);
}

/* A split of the forward model without what is sent: its stages are filled in with the stash. What
 * goes with stage 0 of a split, initializers that nothing reads, stays in an empty one. */
static psplit_code begin_again(psplit_i_layout *layout, psplit_diag *diag) {
  const psplit_i_split *forward = layout->forward;
  layout->again_extra = (psplit_i_emit_extra){
    .user = layout, .left_out = layout->training->moved, .stage = add_again_rim};
  layout->again = (psplit_i_split){
    .model = forward->model,
    .graph = forward->graph,
    .plan = forward->plan,
    .extra = &layout->again_extra,
    .boundary = PSPLIT_BOUNDARY_IO,
    .info_values = forward->info_values,
    .stages = PSPLIT_NEW(&layout->arena, psplit_i_stage, (size_t)forward->plan->n_stages + 1)};
  return layout->again.stages ? PSPLIT_OK : psplit_i_nomem(diag);
}

/* Which stages read which weights. */
static psplit_code mark_takes(psplit_i_layout *layout, psplit_diag *diag) {
  const psplit_training *training = layout->training;
  const size_t n = training->gradient->n_trainables;
  layout->takes = PSPLIT_NEW(&layout->arena, bool, n * layout->n_stages);
  if (!layout->takes) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < layout->n_stages; s++) {
    const psplit_i_training_stage *stage = &layout->stages[s];
    for (uint32_t i = 0; i < stage->n_weights; i++) layout->takes[s * n + stage->weights[i]] = true;
  }
  for (uint32_t b = 0; b < layout->plan.n_stages; b++) {
    const psplit_i_stage *backward = &layout->backward.stages[b];
    for (uint32_t i = 0; i < backward->n_inputs; i++) {
      const psplit_i_feeding feed = training->feeds[backward->inputs[i].value];
      if (backward->inputs[i].model && feed.kind == PSPLIT_FEED_WEIGHT)
        layout->takes[layout->stage_of[b] * n + feed.index] = true;
    }
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_layout_init(psplit_i_layout *layout, const psplit_training *training,
                                 const psplit_i_split *forward, psplit_diag *diag) {
  psplit_code code;
  *layout = (psplit_i_layout){
    .training = training, .forward = forward, .n_stages = forward->plan->n_stages};
  psplit_i_arena_init(&layout->arena, 0);
  const uint32_t n_trainables = training->gradient->n_trainables;
  layout->stages = PSPLIT_NEW(&layout->arena, psplit_i_training_stage, forward->plan->n_stages);
  layout->owner = psplit_i_arena_array(&layout->arena, n_trainables, sizeof *layout->owner);
  layout->next = PSPLIT_NEW(&layout->arena, const char *, n_trainables);
  if (!layout->stages || !layout->owner || !layout->next) return psplit_i_nomem(diag);
  memset(layout->owner, 0xff, n_trainables * sizeof *layout->owner);
  PSPLIT_TRY(split_backward(layout, diag));
  PSPLIT_TRY(make_updates(layout, diag));
  PSPLIT_TRY(begin_again(layout, diag));
  PSPLIT_TRY(psplit_i_layout_training_ports(layout, diag));
  PSPLIT_TRY(mark_takes(layout, diag));
out:
  return code;
}

void psplit_i_layout_fini(psplit_i_layout *layout) {
  for (uint32_t s = 0; layout->stages && s < layout->n_stages; s++) {
    psplit_i_text_fini(&layout->stages[s].update);
    psplit_i_update_ports_fini(&layout->stages[s].update_ports);
  }
  if (layout->has_split) psplit_i_split_fini(&layout->backward);
  psplit_i_arena_fini(&layout->arena);
}
