#include "counting.h"

#include <string.h>

#include "devices_inside.h"
#include "layout.h"
#include "liveness.h"

typedef struct counter {
  const psplit_planner *planner;
  const psplit_snapshot_node *nodes;
  uint32_t n_groups;
  psplit_i_arena *arena;
  psplit_diag *diag;
  psplit_snapshot_counting *out;
} counter;

/* Loads of these hang on more than a stage for each supernode. */
static const char *why_not(const psplit_planner *planner) {
  if (planner->options.training) return "a plan for training";
  if (planner->segmented) return "devices with several parts of the model";
  if (planner->n_replicas) return "stages with several devices";
  if (planner->prefill) return "two kinds of steps";
  return NULL;
}

static psplit_code count_groups(counter *c) {
  const psplit_planner *planner = c->planner;
  const size_t n_nodes = planner->graph->n_nodes, n = c->n_groups;
  int64_t *ns = PSPLIT_NEW(c->arena, int64_t, planner->n_classes * n);
  uint8_t *refused = PSPLIT_NEW(c->arena, uint8_t, planner->n_classes * n);
  uint32_t *pin = psplit_i_arena_array(c->arena, n, sizeof *pin);
  uint32_t *together = psplit_i_arena_array(c->arena, n, sizeof *together);
  uint32_t *state = psplit_i_arena_array(c->arena, n, sizeof *state);
  if (c->arena->failed) return psplit_i_nomem(c->diag);
  for (size_t g = 0; g < n; g++) pin[g] = together[g] = state[g] = PSPLIT_NONE;
  for (size_t i = 0; i < n_nodes; i++) {
    const uint32_t g = c->nodes[i].group;
    if (g == PSPLIT_NONE) continue;
    for (size_t k = 0; k < planner->n_classes; k++) {
      ns[k * n + g] = psplit_i_sat_add_i64(ns[k * n + g], planner->node_ns[k * n_nodes + i]);
      refused[k * n + g] |= planner->node_refused && planner->node_refused[k * n_nodes + i];
    }
    if (planner->pin[i] != PSPLIT_NONE) pin[g] = planner->pin[i];
    if (planner->together[i] != PSPLIT_NONE) together[g] = planner->together[i];
    if (planner->state_class[i] != PSPLIT_NONE) state[g] = planner->state_class[i];
  }
  c->out->group_ns = ns;
  c->out->group_refused = refused;
  c->out->group_pin = pin;
  c->out->group_together = together;
  c->out->group_state = state;
  c->out->coarsened = planner->grouping.assigned;
  return PSPLIT_OK;
}

/* Those that are given: ways that save messages are another split's others. */
static psplit_code count_ways(counter *c) {
  const psplit_planner *planner = c->planner;
  const size_t n = planner->options.n_stages;
  if (!planner->next_hop || planner->passes_on) return PSPLIT_OK;
  uint32_t *next = psplit_i_arena_array(c->arena, n * n, sizeof *next);
  if (!next) return psplit_i_nomem(c->diag);
  memcpy(next, planner->next_hop, n * n * sizeof *next);
  c->out->next_hop = next;
  return PSPLIT_OK;
}

static psplit_code count_links(counter *c) {
  const psplit_planner *planner = c->planner;
  const uint32_t n = planner->options.n_stages;
  int64_t *latency = PSPLIT_NEW(c->arena, int64_t, (size_t)n * n);
  double *rate = PSPLIT_NEW(c->arena, double, (size_t)n *n);
  uint32_t *classes = PSPLIT_NEW(c->arena, uint32_t, n);
  uint64_t *workspace = PSPLIT_NEW(c->arena, uint64_t, n);
  uint8_t *copies = PSPLIT_NEW(c->arena, uint8_t, n);
  if (c->arena->failed) return psplit_i_nomem(c->diag);
  for (uint32_t from = 0; from < n; from++) {
    classes[from] = planner->device_class[from];
    workspace[from] = psplit_devices_workspace_bytes(planner->devices, from);
    copies[from] = planner->devices->devices[from].model.keeps_copies;
    for (uint32_t to = 0; to < n; to++) {
      const psplit_device_link link = psplit_devices_link(planner->devices, from, to);
      latency[(size_t)from * n + to] = link.latency_ns;
      rate[(size_t)from * n + to] = link.bytes_per_second;
    }
  }
  c->out->stage_class = classes;
  c->out->stage_workspace_bytes = workspace;
  c->out->stage_keeps_copies = copies;
  c->out->link_latency_ns = latency;
  c->out->link_bytes_per_second = rate;
  c->out->may_pass_on = psplit_i_planner_may_pass_on(planner);
  c->out->slack_frac = planner->options.slack_frac > 0 ? planner->options.slack_frac : 0;
  return count_ways(c);
}

/* Prices of which a supernode has both ends do not matter. */
static psplit_code count_prices(counter *c) {
  psplit_i_layout_prices prices;
  const psplit_code code = psplit_i_layout_prices_find(c->planner, c->arena, c->diag, &prices);
  if (code != PSPLIT_OK) return code;
  for (uint32_t p = 0; p < prices.n; p++) prices.maker[p] = c->nodes[prices.maker[p]].group;
  for (uint32_t r = 0; prices.n && r < prices.off[prices.n]; r++)
    prices.reader[r] = c->nodes[prices.reader[r]].group;
  c->out->n_prices = prices.n;
  c->out->price_maker = prices.maker;
  c->out->price_off = prices.off;
  c->out->price_reader = prices.reader;
  c->out->price_recv_ns = prices.recv_ns;
  c->out->price_send_ns = prices.send_ns;
  return PSPLIT_OK;
}

static psplit_code count_values(counter *c) {
  const psplit_planner *planner = c->planner;
  const uint32_t n = planner->graph->n_values;
  uint8_t *copies = PSPLIT_NEW(c->arena, uint8_t, n);
  uint8_t *unsendable = PSPLIT_NEW(c->arena, uint8_t, n);
  uint32_t *percent = PSPLIT_NEW(c->arena, uint32_t, 4 * PSPLIT_I_N_COPIES);
  if (c->arena->failed) return psplit_i_nomem(c->diag);
  for (uint32_t v = 0; v < n; v++) {
    if (psplit_i_planner_is_constant(planner, v))
      copies[v] = (uint8_t)psplit_i_copies_of(planner, v);
    else
      unsendable[v] =
        (planner->uncuttable && planner->uncuttable[v]) || !psplit_i_planner_sendable(planner, v);
  }
  for (uint32_t k = 0; k < 4 * PSPLIT_I_N_COPIES; k++)
    percent[k] = psplit_i_copies_percent((psplit_i_copies)(k / 4), k % 2, k / 2 % 2);
  c->out->value_copies = copies;
  c->out->unsendable = unsendable;
  c->out->n_copies_percent = 4 * PSPLIT_I_N_COPIES;
  c->out->copies_percent = percent;
  return PSPLIT_OK;
}

static psplit_code count_nodes(counter *c) {
  const psplit_planner *planner = c->planner;
  const psplit_i_graph *graph = planner->graph;
  const uint32_t n = graph->n_nodes;
  uint32_t *nodes = PSPLIT_NEW(c->arena, uint32_t, n);
  uint8_t *bodies = PSPLIT_NEW(c->arena, uint8_t, n);
  uint64_t *bytes = PSPLIT_NEW(c->arena, uint64_t, n);
  uint64_t *copies = PSPLIT_NEW(c->arena, uint64_t, n);
  uint64_t *workspace = PSPLIT_NEW(c->arena, uint64_t, n);
  if (c->arena->failed) return psplit_i_nomem(c->diag);
  for (uint32_t i = 0; i < n; i++) {
    nodes[i] = psplit_i_count_nodes(&graph->nodes[i]);
    bodies[i] = graph->nodes[i].n_bodies > 0;
    bytes[i] = psplit_i_node_inner_bytes(graph, i);
    copies[i] = psplit_i_inner_copies(graph, i);
    if (planner->node_workspace_bytes) workspace[i] = planner->node_workspace_bytes[i];
  }
  c->out->node_nodes = nodes;
  c->out->node_has_bodies = bodies;
  c->out->node_bytes = bytes;
  c->out->node_copies_bytes = copies;
  c->out->node_workspace_bytes = workspace;
  return PSPLIT_OK;
}

static void count_rules(counter *c) {
  const psplit_planner_options *options = &c->planner->options;
  const bool one = options->objective == PSPLIT_LATENCY;
  c->out->queue_depth = options->queue_depth;
  c->out->n_sequences = options->n_sequences ? options->n_sequences : one ? 1 : options->n_stages;
  c->out->inline_weights = options->inline_weights;
  c->out->body_percent = PSPLIT_I_BODY_PERCENT;
  c->out->arena_percent = PSPLIT_I_ARENA_PERCENT;
  c->out->outside_bytes = PSPLIT_I_OUTSIDE_BYTES;
  c->out->session_bytes = PSPLIT_I_SESSION_BYTES;
  c->out->operator_bytes = PSPLIT_I_NODE_BYTES;
}

psplit_code psplit_i_counting_make(const psplit_planner *planner, const psplit_snapshot_node *nodes,
                                   uint32_t n_groups, psplit_i_arena *arena, psplit_diag *diag,
                                   const psplit_snapshot_counting **out) {
  psplit_code code = PSPLIT_OK;
  counter c = {planner, nodes, n_groups,
               arena,   diag,  PSPLIT_NEW(arena, psplit_snapshot_counting, 1)};
  if (!c.out) return psplit_i_nomem(diag);
  c.out->refused = why_not(planner);
  *out = c.out;
  if (c.out->refused) return PSPLIT_OK;
  c.out->n_classes = planner->n_classes;
  PSPLIT_TRY(count_groups(&c));
  PSPLIT_TRY(count_links(&c));
  PSPLIT_TRY(count_prices(&c));
  PSPLIT_TRY(count_values(&c));
  PSPLIT_TRY(count_nodes(&c));
  count_rules(&c);
out:
  return code;
}
