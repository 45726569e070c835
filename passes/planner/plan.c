/* From stages and copies to the plan that users see: transfers, loads, memory. Computed from the
 * graph alone, so that it tells what will be emitted whatever the solver counted. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "liveness.h"
#include "methods.h"
#include "planner.h"
#include "proof_scope.h"
#include "working_point.h"

/* Nodes by stage, copies included, in topological order. */
typedef struct stage_nodes {
  uint32_t *off;  /* [n_stages + 1] */
  uint32_t *node; /* [off[n_stages]] */
} stage_nodes;

static psplit_code lay_out(const psplit_planner *planner, psplit_i_arena *arena, psplit_diag *diag,
                           stage_nodes *out) {
  const uint32_t n_stages = planner->options.n_stages;
  const uint32_t n_nodes = planner->graph->n_nodes;
  const size_t n_copies = planner->copies.n;
  out->off = PSPLIT_NEW(arena, uint32_t, (size_t)n_stages + 2);
  out->node = psplit_i_arena_array(arena, n_nodes + n_copies, sizeof *out->node);
  /* copies by node: counting sort, so that the loop in topological order finds a node's copies */
  uint32_t *copy_off = PSPLIT_NEW(arena, uint32_t, (size_t)n_nodes + 2);
  uint32_t *copy_stage = psplit_i_arena_array(arena, n_copies, sizeof *copy_stage);
  if (!out->off || !out->node || !copy_off || !copy_stage) return psplit_i_nomem(diag);
  for (size_t c = 0; c < n_copies; c++) copy_off[planner->copies.items[c].node + 2]++;
  for (uint32_t n = 0; n < n_nodes; n++) copy_off[n + 2] += copy_off[n + 1];
  for (size_t c = 0; c < n_copies; c++)
    copy_stage[copy_off[planner->copies.items[c].node + 1]++] = planner->copies.items[c].stage;
  for (uint32_t n = 0; n < n_nodes; n++) out->off[planner->stage[n] + 2]++;
  for (size_t c = 0; c < n_copies; c++) out->off[copy_stage[c] + 2]++;
  for (uint32_t s = 0; s < n_stages; s++) out->off[s + 2] += out->off[s + 1];
  for (uint32_t i = 0; i < n_nodes; i++) {
    const uint32_t n = planner->graph->topo[i];
    out->node[out->off[planner->stage[n] + 1]++] = n;
    for (uint32_t c = copy_off[n]; c < copy_off[n + 1]; c++)
      out->node[out->off[copy_stage[c] + 1]++] = n;
  }
  return PSPLIT_OK;
}

/* What is counted of one stage; arrays are reused from stage to stage, told apart by `stamp`. */
typedef struct stage_count {
  const psplit_planner *planner;
  uint32_t stamp;
  uint32_t *held; /* [n_values] stamp: made or received here */
  psplit_i_transfers transfers;
} stage_count;

static psplit_code record_transfer(stage_count *w, uint32_t value, uint32_t to, psplit_diag *diag) {
  const psplit_i_graph *graph = w->planner->graph;
  const uint32_t producer = graph->values[value].producer;
  psplit_plan_transfer transfer = {.value = value,
                                   .tensor = graph->values[value].name,
                                   .from = w->planner->stage[producer],
                                   .to = to};
  transfer.bytes = psplit_i_planner_sent_bytes(w->planner, value, &transfer.bytes_known);
  transfer.data_dependent = psplit_i_planner_value_data(w->planner, value);
  if (transfer.from >= to)
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "\"%s\" is needed before it is made",
                         transfer.tensor);
  return psplit_i_vec_push(&w->transfers, transfer) ? PSPLIT_OK : psplit_i_nomem(diag);
}

/* What the stage receives. */
static psplit_code find_transfers(stage_count *w, const stage_nodes *l, uint32_t stage,
                                  psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_graph *graph = w->planner->graph;
  w->stamp++;
  for (uint32_t p = l->off[stage]; p < l->off[stage + 1]; p++) {
    const psplit_i_node *node = &graph->nodes[l->node[p]];
    PSPLIT_FOR_EACH_READ(node, value) {
      if (w->held[value] == w->stamp || graph->values[value].producer == PSPLIT_NONE) continue;
      PSPLIT_TRY(record_transfer(w, value, stage, diag));
      w->held[value] = w->stamp;
    }
    for (uint32_t o = 0; o < node->n_outputs; o++)
      if (node->outputs[o] != PSPLIT_NONE) w->held[node->outputs[o]] = w->stamp;
  }
out:
  return code;
}

/* A device that has several stages gets a tensor once: the first of them hands it to the others. */
static void share_on_devices(const psplit_planner *planner, psplit_i_transfers *io) {
  if (!planner->segmented || !io->n) return;
  psplit_i_sort_by_value(io->items, io->n);
  for (size_t t = 0, first = 0; t < io->n; t++) {
    psplit_plan_transfer *transfer = &io->items[t];
    if (io->items[first].value != transfer->value) first = t;
    const uint32_t device = planner->device_id[transfer->to];
    if (planner->device_id[transfer->from] == device) continue;
    for (size_t k = first; k < t; k++)
      if (planner->device_id[io->items[k].to] == device) {
        transfer->from = io->items[k].to;
        break;
      }
  }
}

/* Memory of every stage with the sizes that `planner` has, which is the split's own or that of
 * prefill: what is larger counts. The transfers are in their order. */
static psplit_code measure_memory(stage_count *w, const psplit_planner *planner,
                                  const stage_nodes *l, psplit_plan_stage *stages,
                                  psplit_i_arena *scratch, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const psplit_plan_transfer *transfers = w->transfers.items;
  const uint32_t n_transfers = (uint32_t)w->transfers.n;
  psplit_i_liveness liveness;
  uint32_t *sent = psplit_i_arena_array(scratch, n_transfers, sizeof *sent);
  if (!sent) return psplit_i_nomem(diag);
  for (uint32_t t = 0; t < n_transfers; t++) sent[t] = transfers[t].value;
  PSPLIT_TRY(psplit_i_liveness_init(&liveness, planner, scratch, diag));
  for (uint32_t s = 0, t = 0; s < w->planner->options.n_stages; s++) {
    psplit_i_stage_memory memory;
    const uint32_t first = t;
    while (t < n_transfers && transfers[t].from == s) t++;
    psplit_i_liveness_measure(&liveness, &l->node[l->off[s]], l->off[s + 1] - l->off[s],
                              &sent[first], t - first, &memory);
    /* While one sequence is in its prefill, others are far on. */
    const uint64_t own = psplit_i_stage_state(&memory), held = stages[s].state_bytes;
    memory.state_bytes = 0;
    const uint64_t need =
      psplit_i_sat_add_u64(psplit_i_stage_need(planner, s, &memory), own > held ? own : held);
    if (planner != w->planner && need <= stages[s].memory_bytes) continue;
    stages[s].weight_bytes = memory.weight_bytes;
    stages[s].peak_activation_bytes = memory.activation_bytes;
    stages[s].buffer_bytes = psplit_i_stage_buffers(planner, &memory);
    stages[s].workspace_bytes = psplit_i_stage_workspace(planner, s, &memory);
    stages[s].state_bytes = own > held ? own : held;
    stages[s].mapped_bytes = psplit_i_stage_mapped(planner, s, &memory);
    stages[s].stash_bytes = psplit_i_stage_stash(planner, s, &memory);
    stages[s].memory_bytes = need;
  }
out:
  return code;
}

static int compare_transfers(const void *a, const void *b) {
  const psplit_plan_transfer *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

static void add_ns(int64_t *sum, int64_t ns) { *sum = psplit_i_sat_add_i64(*sum, ns); }

/* Transfers stand by sending stage. */
static psplit_code charge_transfers(psplit_planner *planner, psplit_plan_stage *stages,
                                    const psplit_plan_transfer *transfers, uint32_t n,
                                    psplit_diag *diag) {
  psplit_i_pairs_met met;
  if (!psplit_i_pairs_begin(planner, &met)) return psplit_i_nomem(diag);
  for (uint32_t t = 0; t < n; t++) {
    const int64_t ns = psplit_i_pairs_transfer_ns(&met, &transfers[t], transfers[t].bytes);
    add_ns(&stages[transfers[t].from].send_ns, ns);
    add_ns(&stages[transfers[t].to].recv_ns, ns);
  }
  return PSPLIT_OK;
}

static bool holds(const psplit_planner *planner, uint32_t stage, uint32_t node) {
  return planner->stage[node] == stage || psplit_i_planner_is_copied(planner, node, stage);
}

static void add_layout(psplit_plan_stage *stage, int64_t ns) {
  add_ns(&stage->layout_ns, ns);
  add_ns(&stage->compute_ns, ns);
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
    add_ns(&work->compute_ns, stage->compute_ns);
    add_ns(&work->recv_ns, stage->recv_ns);
    add_ns(&work->send_ns, stage->send_ns);
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

/* Time of a node on the device that is fastest at it. */
static int64_t least_ns(const psplit_planner *planner, size_t node) {
  int64_t least = INT64_MAX;
  for (size_t c = 0; c < planner->n_classes; c++) {
    const size_t at = c * planner->graph->n_nodes + node;
    if (planner->node_refused && planner->node_refused[at]) continue;
    if (planner->node_ns[at] < least) least = planner->node_ns[at];
  }
  return least;
}

/* Some stage does its share of all work, and one does the heaviest node. */
static int64_t share_of_work(const psplit_planner *planner) {
  int64_t total_ns = 0, heaviest_ns = 0;
  for (size_t n = 0; n < planner->graph->n_nodes; n++) {
    const int64_t ns = least_ns(planner, n);
    add_ns(&total_ns, ns);
    if (ns > heaviest_ns) heaviest_ns = ns;
  }
  const int64_t share_ns = total_ns / planner->options.n_stages;
  return share_ns > heaviest_ns ? share_ns : heaviest_ns;
}

/* Nodes that wait for each other do so wherever they are computed. */
static psplit_code critical_path(psplit_planner *planner, psplit_diag *diag, int64_t *out_ns) {
  const psplit_i_graph *graph = planner->graph;
  int64_t *ready_ns = PSPLIT_NEW(&planner->scratch, int64_t, graph->n_values);
  if (!ready_ns) return psplit_i_nomem(diag);
  *out_ns = 0;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const psplit_i_node *node = &graph->nodes[graph->topo[i]];
    int64_t end_ns = 0;
    PSPLIT_FOR_EACH_READ(node, value)
      if (ready_ns[value] > end_ns) end_ns = ready_ns[value];
    add_ns(&end_ns, least_ns(planner, graph->topo[i]));
    for (uint32_t o = 0; o < node->n_outputs; o++)
      if (node->outputs[o] != PSPLIT_NONE) ready_ns[node->outputs[o]] = end_ns;
    if (end_ns > *out_ns) *out_ns = end_ns;
  }
  return PSPLIT_OK;
}

/* Is a node that takes time computed in several stages? */
static bool has_copies(const psplit_planner *planner) {
  for (size_t c = 0; c < planner->copies.n; c++)
    if (!(planner->node_flags[planner->copies.items[c].node] & PSPLIT_I_NODE_FREE)) return true;
  return false;
}

/* The solver's is for nodes that stand anywhere, which no segments are below. */
static psplit_code bound_segments(psplit_planner *planner, psplit_plan *plan,
                                  psplit_i_bound_of *out_of, psplit_diag *diag) {
  const int64_t value_ns = psplit_i_plan_value_ns(planner, plan);
  plan->solver = planner->segments_solver;
  plan->lower_bound_ns = planner->segments_bound_ns;
  plan->bound = planner->segments_bound;
  if (planner->options.objective == PSPLIT_LATENCY) {
    int64_t path_ns;
    const psplit_code code = critical_path(planner, diag, &path_ns);
    if (code != PSPLIT_OK) return code;
    if (path_ns > plan->lower_bound_ns) {
      plan->lower_bound_ns = path_ns;
      plan->bound = psplit_i_method_name(PSPLIT_I_BOUND_CRITICAL_PATH);
      *out_of = PSPLIT_I_BOUND_OF_ANY_PLAN;
    }
  }
  if (plan->lower_bound_ns > value_ns)
    return psplit_i_fail(diag, PSPLIT_INTERNAL,
                         "the bound %" PRId64 " ns (%s) is above the plan's %" PRId64
                         " ns (%s); please report the model and the options",
                         plan->lower_bound_ns, plan->bound, value_ns, plan->solver);
  plan->proved_optimal = plan->lower_bound_ns == value_ns;
  if (value_ns > 0) plan->gap_frac = (double)(value_ns - plan->lower_bound_ns) / (double)value_ns;
  return PSPLIT_OK;
}

/* What holds for all orders of devices: no order is below the first bound, and none but the chosen
 * one, which the solver's bound is for, below the second. */
static void for_all_orders(const psplit_planner *planner, psplit_plan *plan, int64_t value_ns) {
  if (planner->other_orders_bound_ns < plan->lower_bound_ns)
    plan->lower_bound_ns = planner->other_orders_bound_ns;
  if (planner->any_order_bound_ns >= plan->lower_bound_ns) {
    plan->lower_bound_ns = planner->any_order_bound_ns;
    plan->bound = planner->any_order_bound;
  }
  plan->proved_optimal = plan->lower_bound_ns == value_ns;
}

/* The solver's bound is for splits that compute each node once. A plan with copies takes the bound
 * for splits with copies, if that was asked for; one whose copies get below the solver's falls back
 * on what holds for any split. A bound that is above the plan then is a bug, and must not look like
 * a proof. */
static psplit_code set_bound(psplit_planner *planner, psplit_plan *plan, psplit_i_bound_of *out_of,
                             psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const int64_t value_ns = psplit_i_plan_value_ns(planner, plan);
  *out_of = PSPLIT_I_BOUND_OF_SOLVER;
  if (planner->segmented) return bound_segments(planner, plan, out_of, diag);
  if (!planner->solution) return PSPLIT_OK;
  plan->lower_bound_ns = planner->solution->lower_bound_ns;
  plan->proved_optimal =
    planner->solution->proved_optimal && value_ns == planner->solution->objective_ns;
  if (planner->order_chosen) for_all_orders(planner, plan, value_ns);
  const bool asked = planner->copies_bound_ns > 0; /* with copies */
  if ((asked || value_ns < plan->lower_bound_ns) && has_copies(planner)) {
    if (planner->options.objective == PSPLIT_LATENCY) {
      PSPLIT_TRY(critical_path(planner, diag, &plan->lower_bound_ns));
      plan->bound = psplit_i_method_name(PSPLIT_I_BOUND_CRITICAL_PATH);
    } else {
      plan->lower_bound_ns = share_of_work(planner);
      plan->bound = psplit_i_method_name(PSPLIT_I_BOUND_SHARE_OF_WORK);
    }
    *out_of = PSPLIT_I_BOUND_OF_ANY_PLAN;
    if (planner->copies_bound_ns > plan->lower_bound_ns) {
      plan->lower_bound_ns = planner->copies_bound_ns;
      plan->bound = psplit_i_method_name(PSPLIT_I_BOUND_FREE_COPIES);
      *out_of = PSPLIT_I_BOUND_OF_COPIES;
    }
    plan->proved_optimal = plan->lower_bound_ns >= value_ns;
  }
  if (plan->lower_bound_ns > value_ns)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INTERNAL,
                              "the bound %" PRId64 " ns (%s) is above the plan's %" PRId64
                              " ns (%s); please report the model and the options",
                              plan->lower_bound_ns, plan->bound, value_ns, plan->solver));
  if (value_ns > 0) plan->gap_frac = (double)(value_ns - plan->lower_bound_ns) / (double)value_ns;
out:
  return code;
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

/* What each stage's nodes take, and how many of them are copies. */
static void sum_nodes(const psplit_planner *planner, const stage_nodes *l,
                      psplit_plan_stage *stages) {
  const size_t n_nodes = planner->graph->n_nodes;
  for (uint32_t s = 0; s < planner->options.n_stages; s++)
    for (uint32_t p = l->off[s]; p < l->off[s + 1]; p++) {
      const size_t cell = planner->device_class[s] * n_nodes + l->node[p];
      add_ns(&stages[s].compute_ns, planner->node_ns[cell]);
      if (planner->node_more_ns) add_ns(&stages[s].backward_ns, planner->node_more_ns[cell]);
      stages[s].n_duplicated += planner->stage[l->node[p]] != s;
    }
}

/* Nodes, devices, transfers and memory of stages. */
static psplit_code fill_stages(psplit_planner *planner, stage_count *w, psplit_plan_stage *stages,
                               psplit_diag *diag) {
  psplit_code code;
  psplit_i_arena *scratch = &planner->scratch;
  stage_nodes l;
  w->held = PSPLIT_NEW(scratch, uint32_t, planner->graph->n_values);
  if (!w->held) return psplit_i_nomem(diag);
  PSPLIT_TRY(lay_out(planner, scratch, diag, &l));
  for (uint32_t s = 0; s < planner->options.n_stages; s++) {
    stages[s].device = psplit_devices_name(planner->devices, s);
    stages[s].device_id = planner->device_id[s];
    stages[s].n_replicas = planner->n_replicas ? planner->n_replicas[s] : 1;
    if (planner->n_replicas) stages[s].replica_devices = planner->replica_devices[s];
    stages[s].n_nodes = l.off[s + 1] - l.off[s];
    PSPLIT_TRY(find_transfers(w, &l, s, diag));
  }
  share_on_devices(planner, &w->transfers);
  PSPLIT_TRY(psplit_i_relay_transfers(planner, &w->transfers, diag));
  if (w->transfers.n)
    qsort(w->transfers.items, w->transfers.n, sizeof *w->transfers.items, compare_transfers);
  PSPLIT_TRY(measure_memory(w, planner, &l, stages, scratch, diag));
  if (planner->prefill) PSPLIT_TRY(measure_memory(w, planner->prefill, &l, stages, scratch, diag));
  sum_nodes(planner, &l, stages);
out:
  return code;
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
  plan->objective = planner->options.objective == PSPLIT_LATENCY ? "latency" : "throughput";
  plan->solver = solution ? solution->solver : none;
  plan->bound = solution ? solution->bound : none;
  plan->cost_source = planner->cost_source;
  plan->measured_frac = planner->measured_frac;
  plan->n_unknown_nodes = psplit_i_costs_n_unknown(planner->costs);
  plan->n_nodes = planner->graph->n_nodes;
  for (uint32_t n = 0; n < plan->n_nodes; n++) {
    plan->n_dead_nodes += (planner->node_flags[n] & PSPLIT_I_NODE_DEAD) != 0;
    add_ns(&plan->total_compute_ns,
           planner->node_ns[(size_t)planner->device_class[0] * plan->n_nodes + n]);
  }
}

static void sum_loads(const psplit_planner *planner, uint32_t n_stages, psplit_plan_stage *stages) {
  for (uint32_t s = 0; s < n_stages; s++) {
    stages[s].load_ns =
      psplit_i_planner_load_ns(planner, stages[s].compute_ns, stages[s].recv_ns, stages[s].send_ns);
    const int64_t n = stages[s].n_replicas;
    stages[s].turn_ns = stages[s].load_ns / n + (stages[s].load_ns % n > 0);
  }
}

psplit_code psplit_i_plan_make(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code;
  const uint32_t n_stages = planner->options.n_stages;
  stage_count w = {.planner = planner};
  psplit_i_bound_of bound_of;
  psplit_plan *plan = PSPLIT_NEW(&planner->arena, psplit_plan, 1);
  psplit_plan_stage *stages = PSPLIT_NEW(&planner->arena, psplit_plan_stage, n_stages);
  if (!plan || !stages) return psplit_i_nomem(diag);
  PSPLIT_TRY(fill_stages(planner, &w, stages, diag));
  psplit_plan_transfer *transfers =
    keep(planner, w.transfers.items, w.transfers.n, sizeof *transfers);
  plan->copies = keep(planner, planner->copies.items, planner->copies.n, sizeof *plan->copies);
  plan->node_stage =
    keep(planner, planner->stage, planner->graph->n_nodes, sizeof *plan->node_stage);
  if (planner->arena.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  plan->n_stages = n_stages;
  plan->stages = stages;
  plan->n_copies = (uint32_t)planner->copies.n;
  plan->n_transfers = (uint32_t)w.transfers.n;
  plan->transfers = transfers;
  PSPLIT_TRY(charge_transfers(planner, stages, transfers, plan->n_transfers, diag));
  PSPLIT_TRY(charge_layouts(planner, stages, diag));
  PSPLIT_TRY(count_supernodes(planner, plan, stages, diag));
  PSPLIT_TRY(list_states(planner, plan, diag));
  describe(planner, plan);
  sum_loads(planner, n_stages, stages);
  PSPLIT_TRY(set_bottleneck(planner, plan, diag));
  PSPLIT_TRY(set_latency(planner, plan, diag));
  PSPLIT_TRY(psplit_i_plan_phases(planner, plan, diag));
  PSPLIT_TRY(set_bound(planner, plan, &bound_of, diag));
  PSPLIT_TRY(psplit_i_plan_headline(planner, plan, diag));
  PSPLIT_TRY(psplit_i_plan_proof_scope(planner, plan, bound_of, diag));
  planner->plan = plan;
out:
  psplit_i_vec_fini(&w.transfers);
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
