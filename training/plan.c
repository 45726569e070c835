/* Plans that count the backward pass: its times from the cost pass over the backward model itself,
 * the stash, gradients and the optimizer's state as memory. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checked.h"
#include "training.h"

/* What one way of recomputing costs, as the planner wants it. */
typedef struct load {
  psplit_training *training;
  const psplit_planner_options *options;
  uint32_t n_nodes;
  uint8_t *stashed, *weight_copies;
  int64_t *node_ns;
} load;

/* --- times --- */

/* Times of a model's nodes on the device of each stage: out_ns[n_stages][nodes]. */
static psplit_code cost_nodes(const psplit_model *model, const psplit_planner_options *options,
                              psplit_diag *diag, int64_t *out_ns) {
  psplit_code code;
  psplit_planner *planner = NULL;
  const size_t n = psplit_i_model_graph(model)->n_nodes;
  PSPLIT_TRY(psplit_planner_create(model, options, diag, &planner));
  PSPLIT_TRY(psplit_planner_run(planner, "infer-shapes,cost", diag));
  for (uint32_t s = 0; s < options->n_stages; s++)
    psplit_planner_node_ns(planner, s, &out_ns[s * n]);
out:
  psplit_planner_destroy(planner);
  return code;
}

/* Options that only times hang on. */
static psplit_planner_options for_costs(const psplit_planner_options *options) {
  psplit_planner_options plain;
  psplit_planner_options_init(&plain);
  plain.n_stages = options->n_stages;
  plain.devices = options->devices;
  plain.dims = options->dims;
  plain.n_dims = options->n_dims;
  plain.ignore_annotations = true;
  plain.cancel = options->cancel;
  return plain;
}

/* The backward model has only those dimensions that it needs. */
static psplit_code dims_of(const psplit_model *model, const psplit_planner_options *options,
                           psplit_i_arena *arena, psplit_diag *diag, psplit_planner_options *io) {
  psplit_dim_value *dims = PSPLIT_NEW(arena, psplit_dim_value, options->n_dims);
  if (!dims) return psplit_i_nomem(diag);
  io->dims = dims;
  io->n_dims = 0;
  for (size_t i = 0; i < options->n_dims; i++) {
    psplit_diag unknown = {0};
    if (psplit_model_check_dims(model, &options->dims[i], 1, &unknown) == PSPLIT_OK)
      dims[io->n_dims++] = options->dims[i];
  }
  return PSPLIT_OK;
}

static double sum(const int64_t *ns, size_t n) {
  double total = 0;
  for (size_t i = 0; i < n; i++) total += (double)ns[i];
  return total;
}

/* Measured costs speak of the forward pass: the backward pass is as much longer than its roofline
 * as that is. */
static psplit_code scale_backward(psplit_training *training, const psplit_planner_options *options,
                                  psplit_diag *diag) {
  psplit_code code;
  psplit_i_times *times = &training->times;
  const psplit_planner_options plain = for_costs(options);
  const size_t n = psplit_i_model_graph(training->gradient->model)->n_nodes;
  int64_t *roofline = psplit_i_arena_array(&times->arena, n * options->n_stages, sizeof *roofline);
  if (!options->n_costs) return PSPLIT_OK;
  if (!roofline) return psplit_i_nomem(diag);
  PSPLIT_TRY(cost_nodes(training->gradient->model, &plain, diag, roofline));
  const double expected = sum(roofline, n), measured = sum(times->forward_ns, n);
  if (expected <= 0) return PSPLIT_OK;
  for (size_t i = 0; i < times->n_backward * options->n_stages; i++)
    times->backward_ns[i] = psplit_i_sat_i64((double)times->backward_ns[i] * (measured / expected));
out:
  return code;
}

static psplit_code take_times(psplit_training *training, const psplit_planner_options *options,
                              psplit_diag *diag) {
  psplit_code code;
  psplit_i_times *times = &training->times;
  const psplit_model *model = training->gradient->model;
  psplit_planner_options forward = for_costs(options), backward = forward;
  psplit_i_arena_reset(&times->arena);
  times->n_stages = options->n_stages;
  times->n_forward = psplit_i_model_graph(model)->n_nodes;
  times->n_backward = psplit_i_model_graph(training->backward)->n_nodes;
  times->forward_ns = psplit_i_arena_array(
    &times->arena, times->n_forward * (size_t)options->n_stages, sizeof(int64_t));
  times->backward_ns = psplit_i_arena_array(
    &times->arena, times->n_backward * (size_t)options->n_stages, sizeof(int64_t));
  times->again = PSPLIT_NEW(&times->arena, uint8_t, times->n_forward);
  if (!times->forward_ns || !times->backward_ns || !times->again) return psplit_i_nomem(diag);
  forward.costs = options->costs;
  forward.n_costs = options->n_costs;
  PSPLIT_TRY(dims_of(training->backward, options, &times->arena, diag, &backward));
  PSPLIT_TRY(cost_nodes(model, &forward, diag, times->forward_ns));
  PSPLIT_TRY(cost_nodes(training->backward, &backward, diag, times->backward_ns));
  PSPLIT_TRY(scale_backward(training, options, diag));
out:
  return code;
}

/* --- one way of recomputing --- */

/* What is kept and computed again if the model were one stage: near enough for a plan, since stages
 * besides keep only what they receive. */
static psplit_code settle(load *l, psplit_recompute how, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_gradient *gradient = l->training->gradient;
  const size_t n_stashed = gradient->stashed.n;
  uint32_t *wanted = malloc((n_stashed + 1) * sizeof *wanted);
  size_t n = 0;
  psplit_i_fates fates = {.graph = gradient->b.forward,
                          .how = how,
                          .value = l->stashed,
                          .again = l->training->times.again};
  if (!wanted) return psplit_i_nomem(diag);
  memset(fates.value, 0, fates.graph->n_values);
  memset(fates.again, 0, fates.graph->n_nodes);
  for (size_t i = 0; i < n_stashed; i++) {
    const psplit_i_bvalue *value = &gradient->b.values.items[gradient->stashed.items[i]];
    if (value->origin != PSPLIT_ORIGIN_SHAPE) wanted[n++] = value->index;
  }
  PSPLIT_TRY(psplit_i_fates_settle(&fates, wanted, n, diag));
  for (uint32_t v = 0; v < fates.graph->n_values; v++)
    l->stashed[v] = fates.value[v] == PSPLIT_FATE_KEPT;
out:
  free(wanted);
  return code;
}

/* Backward and again, by forward node. */
static void add_times(load *l) {
  const psplit_training *training = l->training;
  const psplit_i_times *times = &training->times;
  const uint32_t first = psplit_i_first_twin(training);
  for (uint32_t s = 0; s < times->n_stages; s++) {
    int64_t *ns = &l->node_ns[s * (size_t)l->n_nodes];
    const int64_t *forward = &times->forward_ns[s * (size_t)l->n_nodes];
    const int64_t *backward = &times->backward_ns[s * (size_t)times->n_backward];
    for (uint32_t n = 0; n < l->n_nodes; n++) ns[n] = times->again[n] ? forward[n] : 0;
    for (uint32_t n = first; n < times->n_backward; n++) {
      const uint32_t twin = psplit_gradient_twin(training->gradient, n - first);
      if (twin != PSPLIT_NONE) ns[twin] = psplit_i_sat_add_i64(ns[twin], backward[n]);
    }
  }
}

/* A weight that has a gradient, or PSPLIT_NONE. */
static uint32_t any_trained(const psplit_gradient *gradient) {
  uint32_t t = 0;
  while (t < gradient->n_trainables &&
         (gradient->trainables[t].is_input || !gradient->trainables[t].n_parts))
    t++;
  return t < gradient->n_trainables ? t : PSPLIT_NONE;
}

/* What is held of a weight besides itself: the parts of its gradient, all in the stage that adds
 * them, and the optimizer's state; of a state of the model its next value; and with a default the
 * session's own copy. */
static uint8_t copies_of(const psplit_i_trainable *weight, uint32_t n_optimizer_state,
                         bool has_default) {
  const uint32_t own = has_default ? 1 : 0;
  if (weight->is_state) return (uint8_t)(own + 1);
  return (uint8_t)(own + (weight->n_parts ? weight->n_parts + n_optimizer_state : 0));
}

static psplit_code count_copies(load *l, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_training *training = l->training;
  const psplit_gradient *gradient = training->gradient;
  psplit_i_update_ports ports = {0};
  psplit_i_text text = {0};
  const uint32_t one = any_trained(gradient);
  uint32_t n_state = 0;
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  if (training->optimizer && one != PSPLIT_NONE) {
    const psplit_i_update_request request = {gradient, training->optimizer, &one, 1};
    PSPLIT_TRY(psplit_i_gradient_update(&request, &scratch, diag, &text, &ports));
    for (size_t i = 0; i < ports.kept.n; i++) n_state += ports.kept.items[i].is_state;
  }
  for (uint32_t t = 0; t < gradient->n_trainables; t++) {
    const psplit_i_trainable *weight = &gradient->trainables[t];
    if (!weight->is_input)
      l->weight_copies[weight->value] =
        copies_of(weight, n_state, training->weights == PSPLIT_WEIGHTS_DEFAULT);
  }
out:
  psplit_i_update_ports_fini(&ports);
  psplit_i_text_fini(&text);
  psplit_i_arena_fini(&scratch);
  return code;
}

static psplit_code plan_with(load *l, psplit_recompute how, const char *pipeline, psplit_diag *diag,
                             psplit_planner **out_planner) {
  psplit_code code;
  psplit_planner *planner = NULL;
  psplit_planner_training more = {
    .node_ns = l->node_ns, .stashed = l->stashed, .weight_copies = l->weight_copies};
  psplit_planner_options options = *l->options;
  PSPLIT_TRY(settle(l, how, diag));
  add_times(l);
  l->training->times.load = more;
  options.training = &l->training->times.load;
  options.devices = l->training->times.devices;
  PSPLIT_TRY(psplit_planner_create(l->training->gradient->model, &options, diag, &planner));
  PSPLIT_TRY(psplit_planner_run(planner, pipeline, diag));
  *out_planner = planner;
  return PSPLIT_OK;
out:
  psplit_planner_destroy(planner);
  return code;
}

/* The devices of the plan, seen both ways; those of the caller or of ours. */
static psplit_code take_devices(psplit_training *training, psplit_planner_options *io,
                                psplit_diag *diag) {
  psplit_code code;
  psplit_i_times *times = &training->times;
  psplit_devices_destroy(times->devices);
  psplit_devices_destroy(times->own_devices);
  times->devices = times->own_devices = NULL;
  if (!io->devices) {
    PSPLIT_TRY(psplit_devices_preset("cpu", io->n_stages, diag, &times->own_devices));
    io->devices = times->own_devices;
  }
  PSPLIT_TRY(psplit_devices_round_trip(io->devices, diag, &times->devices));
out:
  return code;
}

psplit_code psplit_training_plan(psplit_training *training, const psplit_planner_options *options,
                                 const char *pipeline, psplit_diag *diag,
                                 psplit_planner **out_planner) {
  psplit_code code;
  const psplit_i_graph *graph = training->gradient->b.forward;
  psplit_planner_options taken;
  psplit_planner_options_init(&taken);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_planner_options, options, &taken, diag));
  PSPLIT_TRY(take_devices(training, &taken, diag));
  PSPLIT_TRY(take_times(training, &taken, diag));
  psplit_i_arena *arena = &training->times.arena;
  load l = {.training = training,
            .options = &taken,
            .n_nodes = graph->n_nodes,
            .stashed = PSPLIT_NEW(arena, uint8_t, graph->n_values),
            .weight_copies = PSPLIT_NEW(arena, uint8_t, graph->n_values),
            .node_ns = psplit_i_arena_array(arena, graph->n_nodes * (size_t)taken.n_stages,
                                            sizeof *l.node_ns)};
  if (!l.stashed || !l.weight_copies || !l.node_ns) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(count_copies(&l, diag));
  const bool choose = training->asked == PSPLIT_RECOMPUTE_AUTO;
  training->recompute = choose ? PSPLIT_RECOMPUTE_NONE : training->asked;
  for (;;) {
    psplit_diag why = {0};
    code = plan_with(&l, training->recompute, pipeline, &why, out_planner);
    if (code != PSPLIT_INFEASIBLE || !choose || training->recompute == PSPLIT_RECOMPUTE_ALL) {
      if (code != PSPLIT_OK) code = psplit_i_fail_as(diag, &why);
      break;
    }
    training->recompute++;
    psplit_i_say(taken.logger, PSPLIT_NOTE, "computing %s again: else %s",
                 training->recompute == PSPLIT_RECOMPUTE_HEAVY ? "what is cheap" : "everything",
                 why.message);
  }
out:
  return code;
}

void psplit_i_times_fini(psplit_i_times *times) {
  psplit_devices_destroy(times->devices);
  psplit_devices_destroy(times->own_devices);
  psplit_i_arena_fini(&times->arena);
}

/* --- what a plan is made of --- */

/* Micro-batches whose stash the plan counts. */
static uint32_t held(const psplit_plan *plan, uint32_t stage) {
  const uint32_t n = plan->stages[stage].n_in_flight;
  return n ? n : 1;
}

psplit_code psplit_training_stages(const psplit_training *training, const psplit_plan *plan,
                                   psplit_diag *diag, psplit_training_stage *out_stages) {
  const psplit_i_times *times = &training->times;
  if (times->n_stages != plan->n_stages || times->n_forward != plan->n_nodes)
    return psplit_i_fail(diag, PSPLIT_USAGE, "the plan was not made by psplit_training_plan");
  uint32_t *stage = malloc((times->n_backward + (size_t)1) * sizeof *stage);
  uint8_t *half = malloc(times->n_backward + (size_t)1);
  if (!stage || !half) {
    free(stage);
    free(half);
    return psplit_i_nomem(diag);
  }
  psplit_i_place_backward(training, plan, stage, half);
  for (uint32_t s = 0; s < plan->n_stages; s++)
    out_stages[s] =
      (psplit_training_stage){.forward_ns = plan->stages[s].layout_ns,
                              .stash_bytes = plan->stages[s].stash_bytes / held(plan, s)};
  for (uint32_t n = 0; n < plan->n_nodes; n++) {
    const uint32_t s = plan->node_stage[n];
    const int64_t ns = times->forward_ns[plan->stages[s].device_id * (size_t)plan->n_nodes + n];
    out_stages[s].forward_ns = psplit_i_sat_add_i64(out_stages[s].forward_ns, ns);
    if (times->again[n]) out_stages[s].again_ns = psplit_i_sat_add_i64(out_stages[s].again_ns, ns);
  }
  for (uint32_t c = 0; c < plan->n_copies; c++) {
    const uint32_t s = plan->copies[c].stage;
    out_stages[s].forward_ns = psplit_i_sat_add_i64(
      out_stages[s].forward_ns,
      times->forward_ns[plan->stages[s].device_id * (size_t)plan->n_nodes + plan->copies[c].node]);
  }
  for (uint32_t n = 0; n < times->n_backward; n++) {
    psplit_training_stage *out = &out_stages[stage[n]];
    const size_t row = plan->stages[stage[n]].device_id * (size_t)times->n_backward;
    const int64_t ns = times->backward_ns[row + n];
    out->backward_ns = psplit_i_sat_add_i64(out->backward_ns, ns);
    if (half[n] == PSPLIT_HALF_WEIGHTS)
      out->weight_gradients_ns = psplit_i_sat_add_i64(out->weight_gradients_ns, ns);
  }
  free(stage);
  free(half);
  return PSPLIT_OK;
}

psplit_code psplit_training_pieces(const psplit_training *training, const psplit_plan *plan,
                                   psplit_diag *diag, int64_t *out_forward_ns,
                                   int64_t *out_backward_ns, uint64_t *out_stash_bytes) {
  const size_t n = plan->n_stages;
  psplit_training_stage *stages = calloc(n, sizeof *stages);
  if (!stages) return psplit_i_nomem(diag);
  const psplit_code code = psplit_training_stages(training, plan, diag, stages);
  for (size_t s = 0; code == PSPLIT_OK && s < n; s++) {
    const int64_t crossing = psplit_i_sat_add_i64(plan->stages[s].recv_ns, plan->stages[s].send_ns);
    out_forward_ns[s] = psplit_i_sat_add_i64(stages[s].forward_ns, crossing / 2);
    out_backward_ns[s] = psplit_i_sat_add_i64(
      psplit_i_sat_add_i64(stages[s].again_ns, stages[s].backward_ns), crossing - crossing / 2);
    out_stash_bytes[s] = stages[s].stash_bytes;
  }
  free(stages);
  return code;
}

psplit_code psplit_training_schedule(const psplit_training *training, const psplit_plan *plan,
                                     psplit_schedule_kind kind, uint32_t n_micro_batches,
                                     psplit_diag *diag, psplit_schedule **out_schedule) {
  psplit_code code;
  const size_t n = plan->n_stages;
  const bool apart = kind == PSPLIT_SCHEDULE_ZERO_BUBBLE;
  int64_t *ns = calloc(3 * n, sizeof *ns);
  uint64_t *bytes = calloc(n, sizeof *bytes);
  psplit_training_stage *stages = calloc(n, sizeof *stages);
  if (!ns || !bytes || !stages) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (apart && training->weight_gradients != PSPLIT_WEIGHT_GRADIENTS_APART)
    PSPLIT_FAIL(psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS(WEIGHT_GRADIENTS),
                                    "backward passes make all gradients in one piece"));
  PSPLIT_TRY(psplit_training_pieces(training, plan, diag, ns, ns + n, bytes));
  PSPLIT_TRY(psplit_training_stages(training, plan, diag, stages));
  for (size_t s = 0; apart && s < n; s++) {
    ns[2 * n + s] = stages[s].weight_gradients_ns;
    ns[n + s] -= ns[2 * n + s];
  }
  const psplit_schedule_input input = {.kind = kind,
                                       .n_stages = plan->n_stages,
                                       .n_chunks = 1,
                                       .n_micro_batches = n_micro_batches,
                                       .forward_ns = ns,
                                       .backward_ns = ns + n,
                                       .activation_bytes = bytes,
                                       .weights_ns = apart ? ns + 2 * n : NULL};
  PSPLIT_TRY(psplit_schedule_simulate(&input, diag, out_schedule));
out:
  free(ns);
  free(bytes);
  free(stages);
  return code;
}
