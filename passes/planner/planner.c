#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices_inside.h"
#include "inline_hint.h"
#include "keep_state.h"
#include "pins.h"
#include "placement.h"
#include "planner.h"
#include "working_point.h"

static const psplit_planner_options DEFAULTS = {.struct_size = sizeof DEFAULTS,
                                                .n_stages = 1,
                                                .queue_depth = 2,
                                                .time_limit_s = 25,
                                                .limit_by_work = true,
                                                .seed = 1,
                                                .n_micro_batches = 8};

void psplit_planner_options_defaults(psplit_planner_options *options, size_t struct_size) {
  psplit_planner_options defaults = DEFAULTS;
  psplit_i_options_defaults(options, struct_size, &defaults, sizeof defaults);
}

/* Stages that the model's own annotations give, where no --pin does. */
static psplit_code apply_annotations(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const uint32_t n_nodes = planner->graph->n_nodes;
  uint32_t n_pinned = 0;
  bool any;
  if (planner->options.ignore_annotations) return PSPLIT_OK;
  uint32_t *stage = psplit_i_arena_array(&planner->scratch, n_nodes, sizeof *stage);
  if (!stage) return psplit_i_nomem(diag);
  PSPLIT_TRY(
    psplit_i_placement_read(planner->graph, planner->options.configuration, diag, stage, &any));
  for (uint32_t n = 0; any && n < n_nodes; n++) {
    char label[128];
    if (stage[n] == PSPLIT_NONE || planner->pin[n] != PSPLIT_NONE) continue;
    if (stage[n] >= planner->options.n_stages) {
      char enough[16];
      snprintf(enough, sizeof enough, "%" PRIu32, stage[n] + 1);
      return psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS_WITH(MORE_STAGES, enough),
                                 "the model annotates node %s with stage %" PRIu32,
                                 psplit_i_node_label(planner->graph, n, label, sizeof label),
                                 stage[n]);
    }
    planner->pin[n] = stage[n];
    n_pinned++;
  }
  if (n_pinned)
    psplit_i_say(planner->options.logger, PSPLIT_NOTE,
                 "the model's annotations pin %" PRIu32 " node%s to stages", n_pinned,
                 n_pinned == 1 ? "" : "s");
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

/* Stages that there is work for, a node each; with replicas devices, several for a stage. */
static uint64_t most_stages(const psplit_planner *planner) {
  const uint64_t n_nodes = planner->graph->n_nodes ? planner->graph->n_nodes : 1;
  const uint32_t n_replicas = planner->options.max_replicas;
  if (n_replicas < 2) return n_nodes;
  return n_nodes * (n_replicas < PSPLIT_MOST_REPLICAS ? n_replicas : PSPLIT_MOST_REPLICAS);
}

/* More stages than nodes is refused before anything is sized by their number. */
static psplit_code check_enough_nodes(const psplit_planner *planner, psplit_diag *diag) {
  const uint32_t n_stages = planner->options.n_stages;
  const uint32_t n_nodes = planner->graph->n_nodes;
  const uint32_t largest = psplit_i_largest_if(planner->graph);
  const psplit_i_node *only = n_nodes == 1 ? &planner->graph->nodes[0] : NULL;
  if (n_stages <= most_stages(planner)) return PSPLIT_OK;
  psplit_i_text why = {0};
  psplit_i_advice advice = {0};
  char label[128];
  psplit_i_text_addf(&why, "%" PRIu32 " stages cannot all have work: ", n_stages);
  if (!n_nodes)
    psplit_i_text_puts(&why, "the model has no nodes, so there is nothing to split");
  else if (only && only->n_bodies)
    psplit_i_text_addf(&why, "the whole model is one %s node", only->op_type);
  else
    psplit_i_text_addf(&why, "the model has %" PRIu32 " node%s", n_nodes, n_nodes == 1 ? "" : "s");
  if (largest != PSPLIT_NONE) {
    psplit_i_text_addf(&why, ", and no cut goes through the branches of If %s",
                       psplit_i_node_label(planner->graph, largest, label, sizeof label));
    why.failed |= !psplit_i_inline_hint(planner->graph, largest, &advice);
  } else if (only && only->n_bodies) {
    psplit_i_text_puts(&why, ", and no cut goes through a node's bodies");
  } else if (n_nodes) {
    advice = PSPLIT_I_HELPS(FEWER_STAGES);
  }
  const psplit_code code =
    why.failed ? psplit_i_nomem(diag)
               : psplit_i_fail_about(diag, PSPLIT_INFEASIBLE, advice, "%s", why.bytes);
  psplit_i_text_fini(&why);
  return code;
}

static bool any_pin(const psplit_planner *planner) {
  uint32_t n = 0;
  while (n < planner->graph->n_nodes && planner->pin[n] == PSPLIT_NONE) n++;
  return n < planner->graph->n_nodes;
}

/* As the devices were given; whether another order may be chosen. Pins name stages, which are
 * devices then. */
static psplit_code begin_order(psplit_planner *planner, psplit_diag *diag) {
  const psplit_planner_options *options = &planner->options;
  const uint32_t n_devices = psplit_devices_count(planner->devices);
  planner->order_is_free = options->device_order == PSPLIT_DEVICE_ORDER_CHOSEN && n_devices > 1 &&
                           !planner->own_devices && !any_pin(planner) &&
                           !psplit_i_devices_alike(planner->devices);
  /* Times to train are those of the stages' devices alone. */
  planner->n_candidates =
    planner->order_is_free && !options->training ? n_devices : options->n_stages;
  planner->device_id = PSPLIT_NEW(&planner->arena, uint32_t, n_devices);
  planner->n_asked = options->n_stages;
  planner->n_classed = planner->n_candidates;
  planner->class_device = PSPLIT_NEW(&planner->arena, uint32_t, planner->n_candidates);
  planner->device_class = PSPLIT_NEW(&planner->arena, uint32_t, planner->n_candidates);
  planner->given_class = PSPLIT_NEW(&planner->arena, uint32_t, planner->n_candidates);
  if (planner->arena.failed) return psplit_i_nomem(diag);
  for (uint32_t d = 0; d < n_devices; d++) planner->device_id[d] = d;
  return psplit_i_planner_find_routes(planner, diag);
}

/* One micro-batch is received, computed and sent in that order, whatever a device does besides; and
 * a step of training counts what crosses on its way there and back by itself. */
static psplit_code check_overlap(const psplit_planner_options *options, psplit_diag *diag) {
  const char *what = options->objective == PSPLIT_LATENCY ? "latency, which it does not shorten"
                     : options->training                  ? "training"
                                                          : NULL;
  if (!options->overlap || !what) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                       "sending while a stage computes (overlap) cannot be combined with %s", what);
}

/* Forward and backward loads are of one kind of steps, and nobody proves a sum of two maxima to
 * others. Segments and replicas do not train at all. */
static psplit_code check_objective(const psplit_planner_options *options, psplit_diag *diag) {
  const char *what = options->prefill   ? "two kinds of steps"
                     : options->certify ? "a certificate"
                                        : NULL;
  if (options->objective == PSPLIT_CALL_LATENCY)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "call latency is for partition problems, not for models");
  if (options->objective != PSPLIT_FILL_DRAIN) return PSPLIT_OK;
  if (!options->training)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "fill-drain needs a backward pass, and this plan does not train; use "
                         "throughput for a forward pass");
  if (!what) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "fill-drain cannot be combined with %s", what);
}

psplit_code psplit_planner_create(const psplit_model *model, const psplit_planner_options *given,
                                  psplit_diag *diag, psplit_planner **out_planner) {
  psplit_planner_options taken = DEFAULTS;
  const psplit_planner_options *options = &taken;
  psplit_code code = PSPLIT_I_TAKE_OPTIONS(psplit_planner_options, given, &taken, diag);
  if (code != PSPLIT_OK) return code;
  if (options->n_stages < 1)
    return psplit_i_fail(diag, PSPLIT_USAGE, "at least one stage is needed");
  if (!(options->slack_frac >= 0 && options->slack_frac <= 1))
    return psplit_i_fail(diag, PSPLIT_USAGE, "the slack must be between 0 and 1");
  code = check_overlap(options, diag);
  if (code == PSPLIT_OK) code = check_objective(options, diag);
  if (code != PSPLIT_OK) return code;
  if (options->devices && psplit_devices_count(options->devices) < options->n_stages)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "%" PRIu32 " stages need as many devices; the devices file has %" PRIu32,
                         options->n_stages, psplit_devices_count(options->devices));
  code = psplit_model_check_dims(model, options->dims, options->n_dims, diag);
  if (code != PSPLIT_OK) return code;
  psplit_planner *planner = calloc(1, sizeof *planner);
  if (!planner) return psplit_i_nomem(diag);
  psplit_i_arena_init(&planner->arena, 0);
  psplit_i_arena_init(&planner->scratch, 0);
  planner->model = model;
  planner->graph = psplit_i_model_graph(model);
  planner->options = *options;
  const uint32_t n_nodes = planner->graph->n_nodes;
  PSPLIT_TRY(check_enough_nodes(planner, diag));
  PSPLIT_TRY(psplit_i_planner_take_states(planner, diag));
  PSPLIT_TRY(psplit_i_planner_take_shapes(planner, diag));
  PSPLIT_TRY(psplit_i_planner_take_point(planner, diag));
  PSPLIT_TRY(psplit_i_planner_take_sizes(planner, diag));
  planner->pin = psplit_i_arena_array(&planner->arena, n_nodes, sizeof *planner->pin);
  planner->together = psplit_i_arena_array(&planner->arena, n_nodes, sizeof *planner->together);
  planner->state_class =
    psplit_i_arena_array(&planner->arena, n_nodes, sizeof *planner->state_class);
  planner->uncuttable = PSPLIT_NEW(&planner->arena, uint8_t, planner->graph->n_values);
  planner->stage = PSPLIT_NEW(&planner->arena, uint32_t, n_nodes);
  planner->node_class = PSPLIT_NEW(&planner->arena, psplit_op_class, n_nodes);
  planner->node_flags = PSPLIT_NEW(&planner->arena, uint8_t, n_nodes);
  if (planner->arena.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t n = 0; n < n_nodes; n++)
    planner->pin[n] = planner->together[n] = planner->state_class[n] = PSPLIT_NONE;
  PSPLIT_TRY(psplit_i_planner_take_pins(planner, diag));
  PSPLIT_TRY(apply_annotations(planner, diag));
  planner->apart = planner->pin;
  PSPLIT_TRY(psplit_i_planner_keep_together(planner, diag));
  planner->devices = options->devices;
  if (!planner->devices) {
    PSPLIT_TRY(psplit_devices_preset("cpu", options->n_stages, diag, &planner->own_devices));
    planner->devices = planner->own_devices;
  }
  PSPLIT_TRY(begin_order(planner, diag));
  *out_planner = planner;
  return PSPLIT_OK;
out:
  psplit_planner_destroy(planner);
  return code;
}

void psplit_planner_destroy(psplit_planner *planner) {
  if (!planner) return;
  psplit_planner_destroy(planner->prefill);
  psplit_i_costs_destroy(planner->costs);
  psplit_i_shapes_destroy(planner->shapes);
  psplit_solution_destroy(planner->solution);
  psplit_devices_destroy(planner->ordered);
  psplit_devices_destroy(planner->own_devices);
  for (size_t i = 0; i < planner->solved.n; i++) {
    free(planner->solved.items[i].problem);
    psplit_solution_destroy(planner->solved.items[i].solution);
  }
  psplit_i_vec_fini(&planner->solved);
  psplit_i_vec_fini(&planner->copies);
  psplit_i_vec_fini(&planner->notes);
  psplit_i_arena_fini(&planner->scratch);
  psplit_i_arena_fini(&planner->arena);
  free(planner);
}

const psplit_plan *psplit_planner_plan(const psplit_planner *planner) { return planner->plan; }

void psplit_planner_node_ns(const psplit_planner *planner, uint32_t device, int64_t *out_ns) {
  const size_t n = planner->graph->n_nodes;
  if (!n) return;
  memset(out_ns, 0, n * sizeof *out_ns);
  for (uint32_t d = 0; planner->facts & PSPLIT_I_FACT_COSTS && d < planner->n_classed; d++)
    if (planner->device_id[d] == device)
      memcpy(out_ns, planner->node_ns + planner->device_class[d] * n, n * sizeof *out_ns);
}

int64_t psplit_i_planner_transfer_ns(const psplit_planner *planner, uint32_t from, uint32_t to,
                                     uint64_t bytes) {
  if (!planner->next_hop) return psplit_devices_transfer_ns(planner->devices, from, to, bytes);
  int64_t ns = 0;
  while (from != to) {
    const uint32_t next = planner->next_hop[(size_t)from * planner->options.n_stages + to];
    if (next == PSPLIT_NONE) return INT64_MAX;
    ns = psplit_i_sat_add_i64(ns, psplit_devices_transfer_ns(planner->devices, from, next, bytes));
    from = next;
  }
  return ns;
}

bool psplit_i_pairs_begin(psplit_planner *planner, psplit_i_pairs_met *out) {
  *out = (psplit_i_pairs_met){planner,
                              PSPLIT_NEW(&planner->scratch, uint32_t, planner->options.n_stages)};
  return out->by != NULL;
}

int64_t psplit_i_pairs_transfer_ns(psplit_i_pairs_met *met, const psplit_plan_transfer *transfer,
                                   uint64_t bytes) {
  const psplit_devices *devices = met->planner->devices;
  const uint32_t from = transfer->from, to = transfer->to;
  const int64_t ns = psplit_devices_transfer_ns(devices, from, to, bytes);
  const bool first = met->by[to] != from + 1;
  met->by[to] = from + 1;
  if (first || met->planner->options.message_latency != PSPLIT_LATENCY_PER_PAIR) return ns;
  return ns - psplit_devices_transfer_ns(devices, from, to, 0);
}

bool psplit_i_planner_sendable(const psplit_planner *planner, uint32_t value) {
  const psplit_i_vtype *type = psplit_i_shapes_type(planner->shapes, value);
  return type->kind == PSPLIT_TYPE_TENSOR && type->elem != 0;
}

uint64_t psplit_i_planner_value_bytes(const psplit_planner *planner, uint32_t value,
                                      bool *out_known) {
  uint64_t bytes = 0;
  bool assumed = false;
  const bool told = psplit_i_costs_value_bytes(planner->costs, value, &bytes, &assumed);
  if (out_known) *out_known = told && !assumed;
  return told ? bytes : 0;
}

uint64_t psplit_i_planner_sent_bytes(const psplit_planner *planner, uint32_t value,
                                     bool *out_known) {
  const uint64_t own = psplit_i_planner_value_bytes(planner, value, out_known);
  if (!planner->prefill) return own;
  const uint64_t other = psplit_i_planner_value_bytes(planner->prefill, value, NULL);
  const double mean = psplit_i_mean_over_steps(planner, (double)own, (double)other);
  return mean < 1e18 ? (uint64_t)(mean + 0.5) : UINT64_MAX;
}

bool psplit_i_planner_value_data(const psplit_planner *planner, uint32_t value) {
  return psplit_i_costs_value_data(planner->costs, value);
}

bool psplit_i_planner_is_constant(const psplit_planner *planner, uint32_t value) {
  return psplit_i_value_is_constant(planner->graph, planner->node_flags, value);
}

uint64_t psplit_i_planner_weight_bytes(const psplit_planner *planner, uint32_t value) {
  const psplit_planner_training *training = planner->options.training;
  const psplit_i_value *v = &planner->graph->values[value];
  if (v->producer != PSPLIT_NONE || v->initializer == PSPLIT_NONE)
    return psplit_i_planner_value_bytes(planner, value, NULL);
  return psplit_i_sat_mul_u64(psplit_i_graph_initializer(planner->graph, v->initializer).data_bytes,
                              training ? training->weight_copies[value] + UINT64_C(1) : 1);
}

static int compare_copies(const void *a, const void *b) {
  const psplit_plan_copy *x = a, *y = b;
  if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

void psplit_i_copies_sort(psplit_planner *planner) {
  if (planner->copies.n)
    qsort(planner->copies.items, planner->copies.n, sizeof *planner->copies.items, compare_copies);
}

bool psplit_i_copies_take_time(const psplit_planner *planner) {
  for (size_t c = 0; c < planner->copies.n; c++)
    if (!(planner->node_flags[planner->copies.items[c].node] & PSPLIT_I_NODE_FREE)) return true;
  return false;
}

bool psplit_i_planner_is_copied(const psplit_planner *planner, uint32_t node, uint32_t stage) {
  size_t low = 0;
  for (size_t high = planner->copies.n; low < high;) {
    const size_t middle = low + (high - low) / 2;
    const psplit_plan_copy *copy = &planner->copies.items[middle];
    if (copy->stage < stage || (copy->stage == stage && copy->node < node))
      low = middle + 1;
    else
      high = middle;
  }
  return low < planner->copies.n && planner->copies.items[low].stage == stage &&
         planner->copies.items[low].node == node;
}
