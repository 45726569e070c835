/* needs: costs, live, stages  keeps: everything  breaks: nothing
 *
 * Computes a node again in a stage that receives its result, where that is cheaper than sending: a
 * DequantizeLinear behind an int8 tensor, a Cast, a mask made from the model's inputs. Decided by
 * cost alone, for repeatable nodes only, and only while no stage it touches gets slower than the
 * slowest is. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "passes.h"

typedef struct state {
  psplit_unit *unit;
  psplit_diag *diag;
  int64_t *load_ns;     /* [n_stages] */
  uint32_t *held;       /* [n_nodes] stamp: the node is in the stage at hand */
  uint32_t *received;   /* [n_values] stamp: the stage at hand gets the value */
  uint32_t stamp;
} state;

static int64_t send_cost(const psplit_unit *unit, uint32_t from, uint32_t to, uint32_t value) {
  return psplit_devices_transfer_ns(unit->devices, from, to,
                                    psplit_i_unit_value_bytes(unit, value, NULL));
}

/* What it costs the stage to receive the node's results, all of them: a copy makes each local. */
static int64_t received_ns(const state *s, uint32_t node, uint32_t stage) {
  const psplit_node *data = &s->unit->graph->nodes[node];
  int64_t sum = 0;
  for (uint32_t o = 0; o < data->n_outputs; o++)
    if (data->outputs[o] != PSPLIT_NONE && s->received[data->outputs[o]] == s->stamp)
      sum = psplit_i_sat_add_i64(sum,
                                 send_cost(s->unit, s->unit->stage[node], stage, data->outputs[o]));
  return sum;
}

static psplit_code add_copy(state *s, uint32_t node, uint32_t stage) {
  s->held[node] = s->stamp;
  return psplit_i_vec_push(&s->unit->copies, ((psplit_plan_copy){node, stage}))
           ? PSPLIT_OK
           : psplit_i_nomem(s->diag);
}

/* Copies of the constants that a copied node reads. */
static psplit_code add_free_producers(state *s, uint32_t node, uint32_t stage) {
  psplit_code code = PSPLIT_OK;
  const psplit_graph *graph = s->unit->graph;
  PSPLIT_VEC(uint32_t) open = {0};
  if (!psplit_i_vec_push(&open, node)) PSPLIT_TRY(psplit_i_nomem(s->diag));
  while (open.n) {
    const psplit_node *data = &graph->nodes[open.items[--open.n]];
    for (uint32_t i = 0; i < data->n_inputs; i++) {
      const uint32_t producer =
        data->inputs[i] == PSPLIT_NONE ? PSPLIT_NONE : graph->values[data->inputs[i]].producer;
      if (producer == PSPLIT_NONE || s->held[producer] == s->stamp ||
          !(s->unit->node_flags[producer] & PSPLIT_I_NODE_FREE))
        continue;
      PSPLIT_TRY(add_copy(s, producer, stage));
      if (!psplit_i_vec_push(&open, producer)) PSPLIT_TRY(psplit_i_nomem(s->diag));
    }
  }
out:
  psplit_i_vec_fini(&open);
  return code;
}

/* Adds a copy of `node` to `stage` if that pays. */
static psplit_code consider(state *s, uint32_t node, uint32_t stage, int64_t bottleneck_ns) {
  psplit_code code;
  psplit_unit *unit = s->unit;
  const psplit_graph *graph = unit->graph;
  const psplit_node *data = &graph->nodes[node];
  const int64_t saved_ns = received_ns(s, node, stage);
  int64_t added_ns = unit->node_ns[(size_t)unit->device_class[stage] * graph->n_nodes + node];
  uint32_t fetched = PSPLIT_NONE; /* at most one new tensor is fetched for it */
  for (uint32_t r = 0; r < data->n_inputs + data->n_captures; r++) {
    const uint32_t value =
      r < data->n_inputs ? data->inputs[r] : data->captures[r - data->n_inputs];
    const uint32_t producer = value == PSPLIT_NONE ? PSPLIT_NONE : graph->values[value].producer;
    if (producer == PSPLIT_NONE || s->held[producer] == s->stamp ||
        s->received[value] == s->stamp || value == fetched)
      continue;
    if (unit->node_flags[producer] & PSPLIT_I_NODE_FREE) continue; /* comes along */
    if (fetched != PSPLIT_NONE || !psplit_i_unit_sendable(unit, value)) return PSPLIT_OK;
    fetched = value;
    added_ns = psplit_i_sat_add_i64(added_ns, send_cost(unit, unit->stage[producer], stage, value));
  }
  if (added_ns >= saved_ns) return PSPLIT_OK;
  if (fetched != PSPLIT_NONE) {
    const uint32_t from = unit->stage[graph->values[fetched].producer];
    const int64_t send_ns = send_cost(unit, from, stage, fetched);
    if (from != unit->stage[node] && s->load_ns[from] + send_ns > bottleneck_ns) return PSPLIT_OK;
    s->load_ns[from] += send_ns;
    s->received[fetched] = s->stamp;
  }
  s->load_ns[unit->stage[node]] -= saved_ns;
  s->load_ns[stage] += added_ns - saved_ns;
  for (uint32_t o = 0; o < data->n_outputs; o++)
    if (data->outputs[o] != PSPLIT_NONE) s->received[data->outputs[o]] = 0;
  PSPLIT_TRY(add_copy(s, node, stage));
  PSPLIT_TRY(add_free_producers(s, node, stage));
out:
  return code;
}

/* One stage: its received tensors from the last made to the first, so that a chain of copies is
 * followed back as long as each link pays. */
static psplit_code replicate_into(state *s, uint32_t stage, int64_t bottleneck_ns) {
  psplit_code code = PSPLIT_OK;
  psplit_unit *unit = s->unit;
  const psplit_graph *graph = unit->graph;
  const psplit_plan *plan = unit->plan;
  s->stamp++;
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (unit->stage[n] == stage) s->held[n] = s->stamp;
  for (size_t c = 0; c < unit->copies.n; c++)
    if (unit->copies.items[c].stage == stage) s->held[unit->copies.items[c].node] = s->stamp;
  bool any = false;
  for (uint32_t t = 0; t < plan->n_transfers; t++)
    if (plan->transfers[t].to == stage) {
      s->received[plan->transfers[t].value] = s->stamp;
      any = true;
    }
  for (uint32_t i = any ? graph->n_nodes : 0; i-- > 0;) {
    const uint32_t n = graph->topo[i];
    if (s->held[n] == s->stamp || !(unit->node_flags[n] & PSPLIT_I_NODE_REPEATABLE) ||
        graph->nodes[n].n_bodies || unit->pin[n] != PSPLIT_NONE || !received_ns(s, n, stage))
      continue;
    PSPLIT_TRY(consider(s, n, stage, bottleneck_ns));
  }
out:
  return code;
}

static psplit_code run(psplit_unit *unit, const psplit_i_option_value *values, psplit_diag *diag) {
  (void)values;
  psplit_code code = PSPLIT_OK;
  PSPLIT_TRY(psplit_i_plan_make(unit, diag));
  const psplit_plan *plan = unit->plan;
  const psplit_graph *graph = unit->graph;
  state s = {.unit = unit, .diag = diag};
  s.load_ns = PSPLIT_NEW(&unit->scratch, int64_t, plan->n_stages);
  s.held = PSPLIT_NEW(&unit->scratch, uint32_t, graph->n_nodes);
  s.received = PSPLIT_NEW(&unit->scratch, uint32_t, graph->n_values);
  if (!s.load_ns || !s.held || !s.received) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < plan->n_stages; i++) s.load_ns[i] = plan->stages[i].load_ns;
  for (uint32_t i = 1; i < plan->n_stages; i++)
    PSPLIT_TRY(replicate_into(&s, i, plan->bottleneck_ns));
  psplit_i_copies_sort(unit);
out:
  return code;
}

const psplit_i_pass psplit_i_pass_replicate = {
  .name = "replicate",
  .help = "compute a node again where that is cheaper than receiving its result",
  .needs = PSPLIT_I_FACT_SHAPES | PSPLIT_I_FACT_COSTS | PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_STAGES,
  .keeps = ~0u,
  .run = run,
};
