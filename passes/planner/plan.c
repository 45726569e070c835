/* From stages and copies to the plan that users see: loads, bottleneck, latency, and the parts of
 * plan.h. Computed from the graph alone, so that it tells what will be emitted whatever the solver
 * counted. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "methods.h"
#include "working_point.h"

/* Transfers stand by sending stage. */
static psplit_code charge_transfers(psplit_planner *planner, psplit_plan_stage *stages,
                                    const psplit_plan_transfer *transfers, uint32_t n,
                                    psplit_diag *diag) {
  psplit_i_pairs_met met;
  if (!psplit_i_pairs_begin(planner, &met)) return psplit_i_nomem(diag);
  for (uint32_t t = 0; t < n; t++) {
    const int64_t ns = psplit_i_pairs_transfer_ns(&met, &transfers[t], transfers[t].bytes);
    psplit_i_add_ns(&stages[transfers[t].from].send_ns, ns);
    psplit_i_add_ns(&stages[transfers[t].to].recv_ns, ns);
    if (!planner->options.training) continue;
    const int64_t back_ns = psplit_i_planner_returning_ns(ns);
    psplit_i_add_ns(&stages[transfers[t].from].backward_load_ns, back_ns);
    psplit_i_add_ns(&stages[transfers[t].to].backward_load_ns, back_ns);
  }
  return PSPLIT_OK;
}

static bool holds(const psplit_planner *planner, uint32_t stage, uint32_t node) {
  return planner->stage[node] == stage || psplit_i_planner_is_copied(planner, node, stage);
}

static void add_layout(psplit_plan_stage *stage, int64_t ns) {
  psplit_i_add_ns(&stage->layout_ns, ns);
  psplit_i_add_ns(&stage->compute_ns, ns);
}

/* As nets of the bare problem are charged. Copies of readers read what copies of their makers left,
 * or are in no run. */
static psplit_code charge_layouts(psplit_planner *planner, psplit_plan_stage *stages,
                                  psplit_diag *diag) {
  psplit_code code;
  psplit_i_layout_prices prices;
  PSPLIT_TRY(psplit_i_layout_prices_find(planner, &planner->scratch, diag, &prices));
  uint32_t *met = PSPLIT_NEW(&planner->scratch, uint32_t, planner->options.n_stages);
  if (!met) return psplit_i_nomem(diag);
  for (uint32_t p = 0; p < prices.n; p++) {
    const int64_t *recv_ns = &prices.recv_ns[(size_t)p * planner->n_classes];
    const int64_t *send_ns = &prices.send_ns[(size_t)p * planner->n_classes];
    const uint32_t from = planner->stage[prices.maker[p]];
    for (uint32_t r = prices.off[p]; r < prices.off[p + 1]; r++) {
      const uint32_t to = planner->stage[prices.reader[r]];
      if (met[to] == p + 1 || holds(planner, to, prices.maker[p])) continue;
      met[to] = p + 1;
      add_layout(&stages[to], recv_ns[planner->device_class[to]]);
      add_layout(&stages[from], send_ns[planner->device_class[from]]);
    }
  }
out:
  return code;
}

/* Groups by owning stage; a group lies in one stage whole. */
static psplit_code count_supernodes(psplit_planner *planner, psplit_plan *plan,
                                    psplit_plan_stage *stages, psplit_diag *diag) {
  plan->n_supernodes = planner->grouping.n_groups;
  uint32_t *group = psplit_i_arena_array(&planner->scratch, planner->graph->n_nodes, sizeof *group);
  uint8_t *counted = PSPLIT_NEW(&planner->scratch, uint8_t, planner->graph->n_nodes);
  if (!group || !counted) return psplit_i_nomem(diag);
  psplit_i_grouping_number(&planner->grouping, group);
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++) {
    if (group[n] == PSPLIT_NONE || counted[group[n]]) continue;
    counted[group[n]] = 1;
    stages[planner->stage[n]].n_supernodes++;
  }
  return PSPLIT_OK;
}

/* What a device does for a micro-batch. */
typedef struct device_work {
  int64_t compute_ns, recv_ns, send_ns;
  bool any;
} device_work;

/* What the device with most to do does for a micro-batch. */
static psplit_code set_bottleneck(psplit_planner *planner, psplit_plan *plan, psplit_diag *diag) {
  const uint32_t n_devices = psplit_devices_count(planner->devices);
  device_work *works = PSPLIT_NEW(&planner->scratch, device_work, n_devices);
  if (!works) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const psplit_plan_stage *stage = &plan->stages[s];
    device_work *work = &works[stage->device_id];
    plan->n_devices += !work->any && stage->load_ns > 0;
    work->any |= stage->load_ns > 0;
    psplit_i_add_ns(&work->compute_ns, stage->compute_ns);
    psplit_i_add_ns(&work->recv_ns, stage->recv_ns);
    psplit_i_add_ns(&work->send_ns, stage->send_ns);
    const int64_t ns = planner->segmented ? psplit_i_planner_load_ns(planner, work->compute_ns,
                                                                     work->recv_ns, work->send_ns)
                                          : stage->turn_ns;
    if (ns > plan->bottleneck_ns) plan->bottleneck_ns = ns;
  }
  if (planner->segmented) return PSPLIT_OK;
  plan->n_devices = 0;
  for (uint32_t s = 0; s < plan->n_stages; s++) plan->n_devices += plan->stages[s].n_replicas;
  return PSPLIT_OK;
}

/* Of a step in which all micro-batches run forward before any runs backward. */
static void set_fill_drain(psplit_plan *plan) {
  int64_t backward_ns = 0;
  if (!plan->trains) return;
  for (uint32_t s = 0; s < plan->n_stages; s++)
    if (plan->stages[s].backward_load_ns > backward_ns)
      backward_ns = plan->stages[s].backward_load_ns;
  plan->fill_drain_ns = psplit_i_sat_add_i64(psplit_i_plan_forward_ns(plan), backward_ns);
}

static void set_value(const psplit_planner *planner, psplit_plan *plan) {
  switch (planner->options.objective) {
    case PSPLIT_LATENCY:
      plan->objective = "latency";
      plan->value_ns = plan->latency_ns;
      break;
    case PSPLIT_FILL_DRAIN:
      plan->objective = "fill-drain";
      plan->value_ns = plan->fill_drain_ns;
      break;
    default: plan->objective = "throughput"; plan->value_ns = plan->bottleneck_ns;
  }
}

/* Of one micro-batch, which is there before it is computed, and sent behind that. */
static int64_t one_after_the_other(const psplit_plan_stage *stage) {
  return psplit_i_sat_add_i64(stage->compute_ns,
                              psplit_i_sat_add_i64(stage->recv_ns, stage->send_ns));
}

/* Transfers stand by sending stage, and go to later ones. */
static psplit_code set_latency(psplit_planner *planner, psplit_plan *plan, psplit_diag *diag) {
  const uint32_t n_devices = psplit_devices_count(planner->devices);
  int64_t *ready_ns = PSPLIT_NEW(&planner->scratch, int64_t, plan->n_stages);
  int64_t *free_ns = PSPLIT_NEW(&planner->scratch, int64_t, n_devices);
  if (!ready_ns || !free_ns) return psplit_i_nomem(diag);
  for (uint32_t s = 0, t = 0; s < plan->n_stages; s++) {
    int64_t *busy_ns = &free_ns[plan->stages[s].device_id];
    const int64_t begin_ns = *busy_ns > ready_ns[s] ? *busy_ns : ready_ns[s];
    const int64_t end_ns = psplit_i_sat_add_i64(begin_ns, one_after_the_other(&plan->stages[s]));
    *busy_ns = end_ns;
    for (; t < plan->n_transfers && plan->transfers[t].from == s; t++)
      if (end_ns > ready_ns[plan->transfers[t].to]) ready_ns[plan->transfers[t].to] = end_ns;
    if (end_ns > plan->latency_ns) plan->latency_ns = end_ns;
  }
  return PSPLIT_OK;
}

/* A stage that reads the value; one that is not `home` before others. */
static uint32_t reader_of(const psplit_planner *planner, uint32_t value, uint32_t home) {
  const psplit_i_graph *graph = planner->graph;
  uint32_t reader = PSPLIT_NONE;
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
    const uint32_t node = graph->consumers[c], stage = planner->stage[node];
    if (reader == PSPLIT_NONE || reader == home) reader = stage;
    for (uint32_t s = 0; s < planner->options.n_stages && reader == home; s++)
      if (psplit_i_planner_is_copied(planner, node, s)) reader = s;
  }
  return reader;
}

static psplit_code list_states(psplit_planner *planner, psplit_plan *plan, psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  const uint32_t n = planner->states.n;
  psplit_plan_state *states = psplit_i_arena_array(&planner->arena, n, sizeof *states);
  if (!states) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n; i++) {
    const psplit_i_state *from = &planner->states.items[i];
    const uint32_t maker = graph->values[from->output].producer;
    psplit_plan_state *to = &states[i];
    *to = (psplit_plan_state){.output = graph->values[from->output].name,
                              .input = graph->values[from->input].name,
                              .shared_buffer = from->shared,
                              .named = from->named};
    to->writer = maker == PSPLIT_NONE ? PSPLIT_NONE : planner->stage[maker];
    to->reader = reader_of(planner, from->input, to->writer);
    to->bytes = psplit_i_planner_value_bytes(planner, from->input, &to->bytes_known);
  }
  plan->n_states = n;
  plan->states = states;
  return PSPLIT_OK;
}

/* A copy of n items of `size` bytes that lives as long as the planner; NULL and arena.failed where
 * there is no memory. */
static void *keep(psplit_planner *planner, const void *items, size_t n, size_t size) {
  void *kept = psplit_i_arena_array(&planner->arena, n, size);
  if (kept && n) memcpy(kept, items, n * size);
  return kept;
}

/* What the planner knows already. */
static void describe(const psplit_planner *planner, psplit_plan *plan) {
  const psplit_solution *solution = planner->solution;
  const char *none = psplit_i_method_name(PSPLIT_I_N_METHODS);
  plan->best_ns = planner->best_ns;
  plan->best_transfers = planner->best_transfers;
  plan->best_proved = planner->best_proved;
  plan->best_proof_scope = planner->best_proof_scope;
  plan->trains = planner->options.training != NULL;
  plan->overlap = planner->options.overlap;
  plan->latency_per_pair = planner->options.message_latency == PSPLIT_LATENCY_PER_PAIR;
  plan->solver = solution ? solution->solver : none;
  plan->bound = solution ? solution->bound : none;
  plan->cost_source = planner->cost_source;
  plan->measured_frac = planner->measured_frac;
  plan->n_unknown_nodes = psplit_i_costs_n_unknown(planner->costs);
  plan->n_nodes = planner->graph->n_nodes;
  for (uint32_t n = 0; n < plan->n_nodes; n++) {
    plan->n_dead_nodes += (planner->node_flags[n] & PSPLIT_I_NODE_DEAD) != 0;
    psplit_i_add_ns(&plan->total_compute_ns,
                    planner->node_ns[(size_t)planner->device_class[0] * plan->n_nodes + n]);
  }
}

static void sum_loads(const psplit_planner *planner, uint32_t n_stages, psplit_plan_stage *stages) {
  for (uint32_t s = 0; s < n_stages; s++) {
    stages[s].load_ns =
      psplit_i_planner_load_ns(planner, stages[s].compute_ns, stages[s].recv_ns, stages[s].send_ns);
    psplit_i_add_ns(&stages[s].backward_load_ns, stages[s].backward_ns);
    const int64_t n = stages[s].n_replicas;
    stages[s].turn_ns = stages[s].load_ns / n + (stages[s].load_ns % n > 0);
  }
}

psplit_code psplit_i_plan_make(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code;
  const uint32_t n_stages = planner->options.n_stages;
  psplit_i_transfers found = {0};
  psplit_i_bound_of bound_of;
  psplit_plan *plan = PSPLIT_NEW(&planner->arena, psplit_plan, 1);
  psplit_plan_stage *stages = PSPLIT_NEW(&planner->arena, psplit_plan_stage, n_stages);
  if (!plan || !stages) return psplit_i_nomem(diag);
  PSPLIT_TRY(psplit_i_plan_stages(planner, stages, &found, diag));
  psplit_plan_transfer *transfers = keep(planner, found.items, found.n, sizeof *transfers);
  plan->copies = keep(planner, planner->copies.items, planner->copies.n, sizeof *plan->copies);
  plan->node_stage =
    keep(planner, planner->stage, planner->graph->n_nodes, sizeof *plan->node_stage);
  if (planner->arena.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  plan->n_stages = n_stages;
  plan->stages = stages;
  plan->n_copies = (uint32_t)planner->copies.n;
  plan->n_transfers = (uint32_t)found.n;
  plan->transfers = transfers;
  PSPLIT_TRY(charge_transfers(planner, stages, transfers, plan->n_transfers, diag));
  PSPLIT_TRY(charge_layouts(planner, stages, diag));
  PSPLIT_TRY(count_supernodes(planner, plan, stages, diag));
  PSPLIT_TRY(list_states(planner, plan, diag));
  describe(planner, plan);
  sum_loads(planner, n_stages, stages);
  PSPLIT_TRY(set_bottleneck(planner, plan, diag));
  PSPLIT_TRY(set_latency(planner, plan, diag));
  set_fill_drain(plan);
  set_value(planner, plan);
  PSPLIT_TRY(psplit_i_plan_phases(planner, plan, diag));
  PSPLIT_TRY(psplit_i_plan_bound(planner, plan, diag, &bound_of));
  PSPLIT_TRY(psplit_i_plan_headline(planner, plan, diag));
  PSPLIT_TRY(psplit_i_plan_proof_scope(planner, plan, bound_of, diag));
  planner->plan = plan;
out:
  psplit_i_vec_fini(&found);
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

psplit_code psplit_plan_schedule(const psplit_plan *plan, uint32_t n_micro_batches,
                                 psplit_diag *diag, psplit_schedule **out_schedule) {
  int64_t *load_ns = malloc(((size_t)plan->n_stages + 1) * sizeof *load_ns);
  if (!load_ns) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < plan->n_stages; s++) load_ns[s] = plan->stages[s].turn_ns;
  const psplit_schedule_input input = {.kind = PSPLIT_SCHEDULE_STREAM,
                                       .n_stages = plan->n_stages,
                                       .n_chunks = 1,
                                       .n_micro_batches = n_micro_batches,
                                       .forward_ns = load_ns};
  const psplit_code code = psplit_schedule_simulate(&input, diag, out_schedule);
  free(load_ns);
  return code;
}
