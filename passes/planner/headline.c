/* What the first lines of a report may claim: the speed-up over one device, the device order that
 * the proof is for, and the sizes that were assumed. Where much of the time, or a tensor that
 * crosses, depends on what only a run can tell, no speed-up is claimed, and the report says what
 * would have to be measured. */
#include <inttypes.h>

#include "cost_table.h"
#include "devices_inside.h"
#include "liveness.h"
#include "planner.h"

/* Part of the time that may be unknown. */
static const double MOST_UNKNOWN = 0.05;

static psplit_code keep_text(psplit_planner *planner, psplit_i_text *text, psplit_diag *diag,
                             const char **out) {
  *out = NULL;
  if (!text->failed && text->n)
    *out = psplit_i_arena_strndup(&planner->arena, text->bytes, text->n);
  const bool failed = text->failed || (text->n && !*out);
  psplit_i_text_fini(text);
  return failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}

/* Dimension `index` of those without a name, as "x[0]"; false past the last. */
static bool axis_name(const psplit_planner *planner, uint32_t index, psplit_i_text *out) {
  uint32_t value;
  int32_t axis;
  if (!psplit_i_costs_missing_axis(planner->costs, index, &value, &axis)) return false;
  psplit_i_text_addf(out, "%s[%" PRId32 "]", planner->graph->values[value].name, axis);
  return true;
}

static psplit_code name_assumptions(psplit_planner *planner, psplit_plan *plan, psplit_diag *diag) {
  enum { SHOWN = 6 };
  psplit_code code = PSPLIT_OK;
  psplit_i_text all = {0};
  uint32_t n_symbols = 0, n_axes = 0, value;
  int32_t axis;
  while (psplit_i_costs_missing(planner->costs, n_symbols)) n_symbols++;
  while (psplit_i_costs_missing_axis(planner->costs, n_axes, &value, &axis)) n_axes++;
  plan->n_assumed = n_symbols + n_axes;
  plan->assumed_value = planner->assumed_size;
  const char **names = PSPLIT_NEW(&planner->arena, const char *, plan->n_assumed);
  if (!names) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < plan->n_assumed; i++) {
    psplit_i_text name = {0};
    if (i < n_symbols)
      psplit_i_text_puts(&name, psplit_i_costs_missing(planner->costs, i));
    else
      axis_name(planner, i - n_symbols, &name);
    PSPLIT_TRY(keep_text(planner, &name, diag, &names[i]));
    if (!names[i]) names[i] = ""; /* a symbol of no letters */
    if (i < SHOWN)
      psplit_i_text_addf(&all, "%s%.80s = %" PRId64, i ? ", " : "", names[i], plan->assumed_value);
  }
  if (plan->n_assumed > SHOWN) psplit_i_text_puts(&all, ", ...");
  plan->assumed_names = names;
  return keep_text(planner, &all, diag, &plan->assumed);
out:
  psplit_i_text_fini(&all);
  return code;
}

/* Nodes whose time only a run can tell: how much of all they take, and may take. */
static psplit_code weigh_nodes(psplit_planner *planner, psplit_plan *plan, psplit_diag *diag) {
  psplit_plan_data *data = &plan->data;
  const uint32_t n_nodes = planner->graph->n_nodes;
  uint8_t *marks = PSPLIT_NEW(&planner->arena, uint8_t, n_nodes);
  if (!marks) return psplit_i_nomem(diag);
  double total = 0, counted = 0, plenty = 0;
  int64_t most_ns = -1;
  for (uint32_t n = 0; n < n_nodes; n++) {
    total += (double)planner->node_ns[n];
    if (planner->node_data[n] == PSPLIT_I_DATA_NONE) continue;
    const int64_t ns = planner->node_plenty_ns[n];
    const bool heavy = planner->node_data[n] == PSPLIT_I_DATA_HEAVY;
    if (!heavy && !ns) continue; /* a view */
    marks[n] = 1;
    data->n_nodes++;
    data->matters |= heavy;
    counted += (double)planner->node_ns[n];
    plenty += (double)(ns > planner->node_ns[n] ? ns : planner->node_ns[n]);
    if (ns <= most_ns) continue;
    most_ns = ns;
    data->heaviest = n;
  }
  data->node = marks;
  data->time_frac = total > 0 ? counted / total : 0;
  const double total_plenty = total - counted + plenty;
  data->plenty_frac = total_plenty > 0 ? plenty / total_plenty : 0;
  if (data->plenty_frac > MOST_UNKNOWN) data->matters = true;
  return PSPLIT_OK;
}

static void weigh_transfers(psplit_plan *plan) {
  psplit_plan_data *data = &plan->data;
  for (uint32_t t = 0; t < plan->n_transfers; t++) {
    if (!plan->transfers[t].data_dependent) continue;
    data->n_transfers++;
    if (data->largest == PSPLIT_NONE ||
        plan->transfers[t].bytes > plan->transfers[data->largest].bytes)
      data->largest = t;
  }
  data->matters |= data->n_transfers > 0;
}

/* The fastest device for the whole model, of those that hold it. *out_bytes: what it needs besides
 * the workspace of a device. */
static psplit_code find_single(psplit_planner *planner, psplit_plan *plan, uint64_t *out_bytes,
                               psplit_diag *diag) {
  psplit_i_liveness liveness;
  psplit_i_stage_memory memory;
  const psplit_code code = psplit_i_liveness_init(&liveness, planner, &planner->scratch, diag);
  if (code != PSPLIT_OK) return code;
  psplit_i_liveness_measure(&liveness, planner->graph->topo, planner->graph->n_nodes, NULL, 0,
                            &memory);
  memory.n_sequences = 1; /* one after the other */
  *out_bytes = psplit_i_sat_add_u64(memory.weight_bytes, memory.activation_bytes);
  *out_bytes = psplit_i_sat_add_u64(*out_bytes, memory.state_bytes);
  const uint32_t n_devices = psplit_devices_count(planner->devices);
  for (uint32_t d = 0; d < n_devices; d++) {
    if (psplit_i_stage_need(planner, d, &memory) > psplit_devices_memory_bytes(planner->devices, d))
      continue;
    if (d && psplit_i_devices_same(planner->devices, d - 1, d) && plan->single_device) continue;
    if (!psplit_i_planner_runs_all(planner, d)) continue;
    const int64_t ns = psplit_i_planner_total_ns(planner, d);
    if (plan->single_device && ns >= plan->single_device_ns) continue;
    plan->single_device = psplit_devices_name(planner->devices, d);
    plan->single_device_ns = ns;
  }
  return PSPLIT_OK;
}

static const char *plural(uint32_t n) { return n == 1 ? "" : "s"; }

/* Why nothing is promised, and what would measure it. */
static void say_unknown(const psplit_planner *planner, const psplit_plan *plan,
                        psplit_i_text *out) {
  const psplit_plan_data *data = &plan->data;
  char label[128];
  psplit_i_text_puts(out, "no speed-up is stated: ");
  if (data->n_nodes) {
    psplit_i_text_addf(out, "%.1f %% of the time as counted", 100 * data->time_frac);
    if (data->plenty_frac >= data->time_frac + 0.001)
      psplit_i_text_addf(out, ", %.1f %% if a run finds 1000 times as much",
                         100 * data->plenty_frac);
    psplit_i_text_addf(out, " (%" PRIu32 " node%s, most of all \"%.160s\")", data->n_nodes,
                       plural(data->n_nodes),
                       psplit_i_node_label(planner->graph, data->heaviest, label, sizeof label));
  }
  if (data->n_nodes && data->n_transfers) psplit_i_text_puts(out, " and ");
  if (data->n_transfers)
    psplit_i_text_addf(out, "the size of %" PRIu32 " crossing tensor%s (such as \"%.160s\")",
                       data->n_transfers, plural(data->n_transfers),
                       plan->transfers[data->largest].tensor);
  psplit_i_text_addf(out, " depend%s on what only a run can tell",
                     data->n_nodes && data->n_transfers ? "" : "s");
}

/* Sizes that nobody gave, but the run that the costs are of. */
static void say_measured_sizes(const psplit_planner *planner, psplit_i_text *out) {
  enum { SHOWN = 6 };
  const psplit_planner_options *options = &planner->options;
  const size_t n = options->n_dims - planner->n_own_dims;
  if (!n && !planner->seen_in) return;
  psplit_i_text_puts(out, " of a run with ");
  for (size_t i = 0; i < n && i < SHOWN; i++) {
    const psplit_dim_value *dim = &options->dims[planner->n_own_dims + i];
    psplit_i_text_addf(out, "%s%.80s = %" PRId64, i ? ", " : "", dim->name, dim->value);
  }
  if (n > SHOWN) psplit_i_text_puts(out, ", ...");
  if (planner->seen_in)
    psplit_i_text_addf(out, "%ssizes of %zu values that it has seen", n ? ", and " : "",
                       planner->seen_in->values.n);
}

static psplit_code say(psplit_planner *planner, psplit_plan *plan, uint64_t model_bytes,
                       psplit_diag *diag) {
  psplit_i_text line = {0};
  char bytes[PSPLIT_I_UNIT_BYTES];
  const bool told = plan->speed_up >= 0;
  if (plan->value_ns <= 0) return PSPLIT_OK;
  plan->headline_hint = PSPLIT_HINT_NONE;
  if (plan->data.matters) {
    plan->headline_hint = !plan->data.n_transfers ? PSPLIT_HINT_MEASURE_NODES
                          : !plan->data.n_nodes   ? PSPLIT_HINT_MEASURE_PIPELINE
                                                  : PSPLIT_HINT_MEASURE_BOTH;
    say_unknown(planner, plan, &line);
  } else if (!plan->single_device) {
    psplit_i_text_puts(&line, "no speed-up over one device: none can hold the whole model (");
    psplit_i_text_puts(&line, psplit_i_in_bytes(model_bytes, bytes));
    psplit_i_text_puts(&line, planner->node_refused ? ") and supports all of it" : ")");
  } else if (psplit_i_devices_all_same(planner->devices)) {
    psplit_i_text_addf(&line, "expected speed-up over one device %.2fx of %" PRIu32, plan->speed_up,
                       plan->n_devices);
  } else {
    psplit_i_text_addf(&line,
                       "expected speed-up over %.80s, the best single device, %.2fx of %" PRIu32,
                       plan->single_device, plan->speed_up, plan->n_devices);
  }
  if (told && plan->speed_up < 1) psplit_i_text_puts(&line, ", slower than that one alone");
  if (plan->assumed && told) psplit_i_text_addf(&line, " for %s (assumed)", plan->assumed);
  if (told && plan->layout_ns > 0)
    psplit_i_text_addf(&line, ", %.3g ms for layouts that cuts change",
                       (double)plan->layout_ns / 1e6);
  psplit_i_text_addf(&line, "%s costs %s", told ? "," : ";", plan->cost_source);
  if (plan->measured_frac > 0 && plan->measured_frac < 1)
    psplit_i_text_addf(&line, " for %.1f %% of the time", 100 * plan->measured_frac);
  say_measured_sizes(planner, &line);
  if (plan->assumed && !told) psplit_i_text_addf(&line, ", with %s (assumed)", plan->assumed);
  return keep_text(planner, &line, diag, &plan->headline);
}

/* What layouts take of what the objective makes small. Layouts are forward: of fill-drain they are
 * in that part of a load. */
static int64_t layout_part(const psplit_planner *planner, const psplit_plan *plan) {
  const bool apart = planner->options.objective == PSPLIT_FILL_DRAIN;
  const int64_t most_ns = apart ? psplit_i_plan_forward_ns(plan) : plan->bottleneck_ns;
  int64_t all_ns = 0, slowest_ns = 0;
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const psplit_plan_stage *stage = &plan->stages[s];
    const int64_t ns = apart ? psplit_i_stage_forward_ns(stage) : stage->load_ns;
    all_ns = psplit_i_sat_add_i64(all_ns, stage->layout_ns);
    if (ns == most_ns && !slowest_ns) slowest_ns = stage->layout_ns;
  }
  return planner->options.objective == PSPLIT_LATENCY ? all_ns : slowest_ns;
}

psplit_code psplit_i_plan_headline(psplit_planner *planner, psplit_plan *plan, psplit_diag *diag) {
  psplit_code code;
  uint64_t model_bytes;
  const int64_t value_ns = plan->value_ns;
  plan->data = (psplit_plan_data){.heaviest = PSPLIT_NONE, .largest = PSPLIT_NONE};
  const bool chosen = planner->order_chosen || planner->segmented;
  plan->device_order = psplit_i_devices_alike(planner->devices) ? "alike"
                       : chosen                                 ? "chosen"
                                                                : "given";
  PSPLIT_TRY(name_assumptions(planner, plan, diag));
  PSPLIT_TRY(weigh_nodes(planner, plan, diag));
  weigh_transfers(plan);
  PSPLIT_TRY(find_single(planner, plan, &model_bytes, diag));
  plan->layout_ns = layout_part(planner, plan);
  plan->proved_optimal &= !plan->data.matters;
  plan->speed_up = plan->data.matters || !plan->single_device ? -1
                   : value_ns > 0 ? (double)plan->single_device_ns / (double)value_ns
                                  : 1;
  PSPLIT_TRY(say(planner, plan, model_bytes, diag));
out:
  return code;
}
