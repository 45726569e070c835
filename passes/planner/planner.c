#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner.h"
#include "placement.h"

void psplit_unit_options_init(psplit_unit_options *options) {
  *options = (psplit_unit_options){
    .n_stages = 1, .queue_depth = 2, .time_limit_s = 10, .limit_by_work = true, .seed = 1};
}

/* "PATTERN=STAGE" for every matching node. The pattern may itself hold '=': the last one counts. */
static psplit_code apply_pin(psplit_unit *unit, const char *pin, psplit_diag *diag) {
  const char *equals = strrchr(pin, '=');
  uint64_t stage;
  if (!equals || equals == pin || !psplit_i_parse_u64(equals + 1, &stage))
    return psplit_i_fail(diag, PSPLIT_USAGE, "--pin %s: it takes PATTERN=STAGE", pin);
  if (stage >= unit->options.n_stages)
    return psplit_i_fail(diag, PSPLIT_USAGE, "--pin %s: stages are 0 to %" PRIu32, pin,
                         unit->options.n_stages - 1);
  char *pattern = psplit_i_arena_strndup(&unit->arena, pin, (size_t)(equals - pin));
  if (!pattern) return psplit_i_nomem(diag);
  bool any = false;
  for (uint32_t n = 0; n < unit->graph->n_nodes; n++) {
    const psplit_node *node = &unit->graph->nodes[n];
    if (!*node->name || !psplit_i_glob_match(pattern, node->name)) continue;
    any = true;
    if (unit->pin[n] != PSPLIT_NONE && unit->pin[n] != stage)
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "--pin %s: node %s is pinned to stage %" PRIu32 " already", pin,
                           node->name, unit->pin[n]);
    unit->pin[n] = (uint32_t)stage;
  }
  if (!any) return psplit_i_fail(diag, PSPLIT_USAGE, "--pin %s matches no node", pin);
  return PSPLIT_OK;
}

/* Nodes that match share a class; a node of an earlier class brings that class along. */
static psplit_code apply_together(psplit_unit *unit, const char *pattern, uint32_t class_id,
                                  psplit_diag *diag) {
  bool any = false;
  for (uint32_t n = 0; n < unit->graph->n_nodes; n++) {
    const psplit_node *node = &unit->graph->nodes[n];
    if (!*node->name || !psplit_i_glob_match(pattern, node->name)) continue;
    any = true;
    const uint32_t old = unit->together[n];
    if (old == PSPLIT_NONE) {
      unit->together[n] = class_id;
    } else if (old != class_id) {
      for (uint32_t m = 0; m < unit->graph->n_nodes; m++)
        if (unit->together[m] == old) unit->together[m] = class_id;
    }
  }
  if (!any) return psplit_i_fail(diag, PSPLIT_USAGE, "--keep-together %s matches no node", pattern);
  return PSPLIT_OK;
}

/* Stages that the model's own annotations give, where no --pin does. */
static psplit_code apply_annotations(psplit_unit *unit, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const uint32_t n_nodes = unit->graph->n_nodes;
  uint32_t n_pinned = 0;
  bool any;
  if (unit->options.ignore_annotations) return PSPLIT_OK;
  uint32_t *stage = psplit_i_arena_array(&unit->scratch, n_nodes, sizeof *stage);
  if (!stage) return psplit_i_nomem(diag);
  PSPLIT_TRY(psplit_i_placement_read(unit->graph, unit->options.configuration, diag, stage, &any));
  for (uint32_t n = 0; any && n < n_nodes; n++) {
    char label[128];
    if (stage[n] == PSPLIT_NONE || unit->pin[n] != PSPLIT_NONE) continue;
    if (stage[n] >= unit->options.n_stages)
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "the model annotates node %s with stage %" PRIu32 "; ask for %" PRIu32
                           " stages or more, or --ignore-annotations",
                           psplit_i_node_label(unit->graph, n, label, sizeof label), stage[n],
                           stage[n] + 1);
    unit->pin[n] = stage[n];
    n_pinned++;
  }
  if (n_pinned)
    psplit_i_say(unit->options.sink, PSPLIT_NOTE,
                 "the model's annotations pin %" PRIu32 " nodes to stages", n_pinned);
out:
  psplit_i_arena_reset(&unit->scratch);
  return code;
}

/* Ways between stages whose devices have no link; NULL where all have one. */
static psplit_code find_ways(psplit_unit *unit, psplit_diag *diag) {
  enum { TYPICAL_BYTES = 1 << 20 };
  const uint32_t n = unit->options.n_stages;
  bool all = true;
  for (uint32_t i = 0; i < n && all; i++)
    for (uint32_t j = i + 1; j < n && all; j++)
      all = psplit_devices_link(unit->devices, i, j).bytes_per_second > 0;
  if (all) return PSPLIT_OK;
  const size_t n_pairs = (size_t)n * n;
  int64_t *link_ns = psplit_i_arena_array(&unit->scratch, n_pairs, sizeof *link_ns);
  int64_t *scratch = psplit_i_arena_array(&unit->scratch, 2 * (size_t)n, sizeof *scratch);
  unit->next_hop = psplit_i_arena_array(&unit->arena, n_pairs, sizeof *unit->next_hop);
  if (!link_ns || !scratch || !unit->next_hop) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n; j++)
      link_ns[(size_t)i * n + j] =
        psplit_devices_link(unit->devices, i, j).bytes_per_second > 0
          ? psplit_devices_transfer_ns(unit->devices, i, j, TYPICAL_BYTES)
          : -1;
  psplit_i_route_table(n, link_ns, scratch, unit->next_hop);
  psplit_i_arena_reset(&unit->scratch);
  return PSPLIT_OK;
}

/* More stages than nodes is refused before anything is sized by their number. */
static psplit_code check_enough_nodes(const psplit_unit *unit, psplit_diag *diag) {
  const uint32_t n_stages = unit->options.n_stages;
  const uint32_t n_nodes = unit->graph->n_nodes;
  const uint32_t largest = psplit_i_largest_if(unit->graph);
  const psplit_node *only = n_nodes == 1 ? &unit->graph->nodes[0] : NULL;
  if (n_stages <= (n_nodes ? n_nodes : 1)) return PSPLIT_OK;
  psplit_text why = {0};
  char label[128];
  psplit_i_text_addf(&why, "%" PRIu32 " stages cannot all have work: ", n_stages);
  if (only && only->n_bodies)
    psplit_i_text_addf(&why, "the whole model is one %s node", only->op_type);
  else
    psplit_i_text_addf(&why, "the model has %" PRIu32 " node%s", n_nodes, n_nodes == 1 ? "" : "s");
  if (largest != PSPLIT_NONE) {
    psplit_i_text_addf(&why, ", and no cut goes through the branches of If %s",
                       psplit_i_node_label(unit->graph, largest, label, sizeof label));
    psplit_i_inline_hint(unit->graph, largest, &why);
  } else {
    psplit_i_text_puts(&why, only && only->n_bodies ? ", and no cut goes through a node's bodies"
                                                    : "; ask for fewer stages");
  }
  const psplit_code code =
    why.failed ? psplit_i_nomem(diag) : psplit_i_fail(diag, PSPLIT_INFEASIBLE, "%s", why.bytes);
  psplit_i_text_fini(&why);
  return code;
}

psplit_code psplit_unit_create(const psplit_model *model, const psplit_unit_options *options,
                               psplit_diag *diag, psplit_unit **out_unit) {
  psplit_code code = PSPLIT_OK;
  if (options->n_stages < 1)
    return psplit_i_fail(diag, PSPLIT_USAGE, "at least one stage is needed");
  if (options->devices && psplit_devices_count(options->devices) < options->n_stages)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "%" PRIu32 " stages need as many devices; the devices file has %" PRIu32,
                         options->n_stages, psplit_devices_count(options->devices));
  code = psplit_model_check_dims(model, options->dims, options->n_dims, diag);
  if (code != PSPLIT_OK) return code;
  psplit_unit *unit = calloc(1, sizeof *unit);
  if (!unit) return psplit_i_nomem(diag);
  psplit_i_arena_init(&unit->arena, 0);
  psplit_i_arena_init(&unit->scratch, 0);
  unit->model = model;
  unit->graph = psplit_i_model_graph(model);
  unit->options = *options;
  const uint32_t n_nodes = unit->graph->n_nodes;
  PSPLIT_TRY(check_enough_nodes(unit, diag));
  unit->pin = psplit_i_arena_array(&unit->arena, n_nodes, sizeof *unit->pin);
  unit->together = psplit_i_arena_array(&unit->arena, n_nodes, sizeof *unit->together);
  unit->uncuttable = PSPLIT_NEW(&unit->arena, uint8_t, unit->graph->n_values);
  unit->stage = PSPLIT_NEW(&unit->arena, uint32_t, n_nodes);
  unit->node_class = PSPLIT_NEW(&unit->arena, psplit_op_class, n_nodes);
  unit->node_flags = PSPLIT_NEW(&unit->arena, uint8_t, n_nodes);
  unit->class_device = PSPLIT_NEW(&unit->arena, uint32_t, options->n_stages);
  unit->device_class = PSPLIT_NEW(&unit->arena, uint32_t, options->n_stages);
  if (!unit->pin || !unit->together || !unit->uncuttable || !unit->stage || !unit->node_class ||
      !unit->node_flags || !unit->class_device || !unit->device_class)
    PSPLIT_TRY(psplit_i_nomem(diag));
  for (uint32_t n = 0; n < n_nodes; n++) unit->pin[n] = unit->together[n] = PSPLIT_NONE;
  for (size_t i = 0; i < options->n_pins; i++) PSPLIT_TRY(apply_pin(unit, options->pins[i], diag));
  PSPLIT_TRY(apply_annotations(unit, diag));
  for (size_t i = 0; i < options->n_keep_together; i++)
    PSPLIT_TRY(apply_together(unit, options->keep_together[i], (uint32_t)i, diag));
  unit->n_together = (uint32_t)options->n_keep_together;
  unit->devices = options->devices;
  if (!unit->devices) {
    PSPLIT_TRY(psplit_devices_preset("cpu", options->n_stages, diag, &unit->own_devices));
    unit->devices = unit->own_devices;
  }
  PSPLIT_TRY(find_ways(unit, diag));
  *out_unit = unit;
  return PSPLIT_OK;
out:
  psplit_unit_destroy(unit);
  return code;
}

void psplit_unit_destroy(psplit_unit *unit) {
  if (!unit) return;
  psplit_i_costs_destroy(unit->costs);
  psplit_i_shapes_destroy(unit->shapes);
  psplit_solution_destroy(unit->solution);
  psplit_devices_destroy(unit->own_devices);
  psplit_i_vec_fini(&unit->copies);
  psplit_i_vec_fini(&unit->notes);
  psplit_i_arena_fini(&unit->scratch);
  psplit_i_arena_fini(&unit->arena);
  free(unit);
}

const psplit_plan *psplit_unit_plan(const psplit_unit *unit) { return unit->plan; }

void psplit_unit_node_ns(const psplit_unit *unit, uint32_t device, int64_t *out_ns) {
  const size_t n = unit->graph->n_nodes;
  if (!n) return;
  if (unit->facts & PSPLIT_I_FACT_COSTS)
    memcpy(out_ns, unit->node_ns + unit->device_class[device] * n, n * sizeof *out_ns);
  else
    memset(out_ns, 0, n * sizeof *out_ns);
}

int64_t psplit_i_unit_transfer_ns(const psplit_unit *unit, uint32_t from, uint32_t to,
                                  uint64_t bytes) {
  if (!unit->next_hop) return psplit_devices_transfer_ns(unit->devices, from, to, bytes);
  int64_t ns = 0;
  while (from != to) {
    const uint32_t next = unit->next_hop[(size_t)from * unit->options.n_stages + to];
    if (next == PSPLIT_NONE) return INT64_MAX;
    ns = psplit_i_sat_add_i64(ns, psplit_devices_transfer_ns(unit->devices, from, next, bytes));
    from = next;
  }
  return ns;
}

bool psplit_i_unit_sendable(const psplit_unit *unit, uint32_t value) {
  const psplit_vtype *type = psplit_i_shapes_type(unit->shapes, value);
  return type->kind == PSPLIT_TYPE_TENSOR && type->elem != 0;
}

uint64_t psplit_i_unit_value_bytes(const psplit_unit *unit, uint32_t value, bool *out_known) {
  uint64_t bytes = 0;
  bool assumed = false;
  const bool told = psplit_i_costs_value_bytes(unit->costs, value, &bytes, &assumed);
  if (out_known) *out_known = told && !assumed;
  return told ? bytes : 0;
}

bool psplit_i_unit_value_data(const psplit_unit *unit, uint32_t value) {
  return psplit_i_costs_value_data(unit->costs, value);
}

bool psplit_i_unit_is_constant(const psplit_unit *unit, uint32_t value) {
  return psplit_i_value_is_constant(unit->graph, unit->node_flags, value);
}

uint64_t psplit_i_unit_weight_bytes(const psplit_unit *unit, uint32_t value) {
  const psplit_value *v = &unit->graph->values[value];
  if (v->producer == PSPLIT_NONE && v->initializer != PSPLIT_NONE)
    return psplit_i_graph_initializer(unit->graph, v->initializer).data_bytes;
  return psplit_i_unit_value_bytes(unit, value, NULL);
}

static int compare_copies(const void *a, const void *b) {
  const psplit_plan_copy *x = a, *y = b;
  if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

void psplit_i_copies_sort(psplit_unit *unit) {
  if (unit->copies.n)
    qsort(unit->copies.items, unit->copies.n, sizeof *unit->copies.items, compare_copies);
}
