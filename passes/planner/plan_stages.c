/* Fills in the stages of a plan: nodes, transfers, memory. */
#include <stdlib.h>

#include "liveness.h"
#include "plan.h"

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

/* What each stage's nodes take, and how many of them are copies. */
static void sum_nodes(const psplit_planner *planner, const stage_nodes *l,
                      psplit_plan_stage *stages) {
  const size_t n_nodes = planner->graph->n_nodes;
  for (uint32_t s = 0; s < planner->options.n_stages; s++)
    for (uint32_t p = l->off[s]; p < l->off[s + 1]; p++) {
      const size_t cell = planner->device_class[s] * n_nodes + l->node[p];
      psplit_i_add_ns(&stages[s].compute_ns, planner->node_ns[cell]);
      psplit_i_add_ns(&stages[s].backward_ns, psplit_i_planner_backward_ns(planner, cell));
      stages[s].n_duplicated += planner->stage[l->node[p]] != s;
    }
}

psplit_code psplit_i_plan_stages(psplit_planner *planner, psplit_plan_stage *stages,
                                 psplit_i_transfers *out_transfers, psplit_diag *diag) {
  psplit_code code;
  stage_count w = {.planner = planner};
  psplit_i_arena *scratch = &planner->scratch;
  stage_nodes l;
  w.held = PSPLIT_NEW(scratch, uint32_t, planner->graph->n_values);
  if (!w.held) return psplit_i_nomem(diag);
  PSPLIT_TRY(lay_out(planner, scratch, diag, &l));
  for (uint32_t s = 0; s < planner->options.n_stages; s++) {
    stages[s].device = psplit_devices_name(planner->devices, s);
    stages[s].device_id = planner->device_id[s];
    stages[s].n_replicas = planner->n_replicas ? planner->n_replicas[s] : 1;
    if (planner->options.training)
      stages[s].n_in_flight = psplit_i_planner_in_flight(&planner->options, s);
    if (planner->n_replicas) stages[s].replica_devices = planner->replica_devices[s];
    stages[s].n_nodes = l.off[s + 1] - l.off[s];
    PSPLIT_TRY(find_transfers(&w, &l, s, diag));
  }
  share_on_devices(planner, &w.transfers);
  PSPLIT_TRY(psplit_i_relay_transfers(planner, &w.transfers, diag));
  if (w.transfers.n)
    qsort(w.transfers.items, w.transfers.n, sizeof *w.transfers.items, compare_transfers);
  PSPLIT_TRY(measure_memory(&w, planner, &l, stages, scratch, diag));
  if (planner->prefill) PSPLIT_TRY(measure_memory(&w, planner->prefill, &l, stages, scratch, diag));
  sum_nodes(planner, &l, stages);
  *out_transfers = w.transfers;
  return PSPLIT_OK;
out:
  psplit_i_vec_fini(&w.transfers);
  return code;
}
