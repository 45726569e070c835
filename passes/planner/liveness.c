/* Peak memory of a stage, by liveness of its values. */
#include "liveness.h"

#include "devices_inside.h"

#define FOR_EACH_MADE(node, value)                                                   \
  for (uint32_t made_ = 0, value;                                                    \
       made_ < (node)->n_outputs && (value = (node)->outputs[made_], true); made_++) \
    if (value != PSPLIT_NONE)

psplit_code psplit_i_liveness_init(psplit_i_liveness *l, const psplit_planner *planner,
                                   psplit_i_arena *arena, psplit_diag *diag) {
  const size_t n_values = planner->graph->n_values;
  *l = (psplit_i_liveness){.planner = planner,
                           .made = PSPLIT_NEW(arena, uint32_t, n_values),
                           .seen = PSPLIT_NEW(arena, uint32_t, n_values),
                           .last_use = PSPLIT_NEW(arena, uint32_t, n_values)};
  return l->made && l->seen && l->last_use ? PSPLIT_OK : psplit_i_nomem(diag);
}

static void add(uint64_t *sum, uint64_t bytes) { *sum = psplit_i_sat_add_u64(*sum, bytes); }

static uint64_t bytes_of(const psplit_i_liveness *l, uint32_t value) {
  return psplit_i_planner_is_constant(l->planner, value)
           ? psplit_i_planner_weight_bytes(l->planner, value)
           : psplit_i_planner_value_bytes(l->planner, value, NULL);
}

/* Whether the value is held between runs, and so is no activation: the input of a state, and the
 * output where both are one buffer. */
static bool is_held(const psplit_i_liveness *l, uint32_t value) {
  const uint32_t pair = l->planner->states.of[value];
  if (!pair) return false;
  const psplit_i_state *state = &l->planner->states.items[pair - 1];
  return value == state->input || state->shared;
}

static uint64_t activation_bytes(const psplit_i_liveness *l, uint32_t value) {
  return is_held(l, value) ? 0 : psplit_i_planner_value_bytes(l->planner, value, NULL);
}

/* Of a value that the stage reads or makes, once: what it adds to the state. One buffer counts
 * where it is read, and where it is only made. */
static uint64_t state_bytes(const psplit_i_liveness *l, uint32_t value) {
  if (!is_held(l, value)) return 0;
  const psplit_i_state *state = &l->planner->states.items[l->planner->states.of[value] - 1];
  const bool counted = value == state->output && l->seen[state->input] == l->stamp;
  return counted ? 0 : psplit_i_planner_value_bytes(l->planner, value, NULL);
}

/* To train: what the value adds to the stash of a stage that has it. */
static uint64_t stashed_bytes(const psplit_i_liveness *l, uint32_t value) {
  const psplit_planner_training *training = l->planner->options.training;
  return training && training->stashed[value]
           ? psplit_i_planner_value_bytes(l->planner, value, NULL)
           : 0;
}

/* The larger of two values, either of which may be none. */
static uint32_t larger(const psplit_i_liveness *l, uint32_t a, uint32_t b) {
  if (a == PSPLIT_NONE || b == PSPLIT_NONE) return a == PSPLIT_NONE ? b : a;
  return bytes_of(l, b) > bytes_of(l, a) ? b : a;
}

static uint64_t part_of(uint64_t bytes, uint64_t percent) {
  return psplit_i_sat_mul_u64(bytes, percent) / 100;
}

static bool is_conv(const psplit_planner *planner, uint32_t node) {
  const psplit_op_class op_class = planner->node_class[node];
  return op_class == PSPLIT_CLASS_CONV || op_class == PSPLIT_CLASS_DEPTHWISE;
}

psplit_i_copies psplit_i_copies_of(const psplit_planner *planner, uint32_t value) {
  enum { FLOAT = 1, FLOAT16 = 10, DOUBLE = 11 };
  const uint32_t producer = planner->graph->values[value].producer;
  const int32_t elem = psplit_i_shapes_type(planner->shapes, value)->elem;
  if (producer != PSPLIT_NONE && planner->node_class[producer] != PSPLIT_CLASS_CONSTANT)
    return PSPLIT_I_COPIES_COMPUTED;
  if (elem == FLOAT16) return PSPLIT_I_COPIES_HALF;
  if (elem != FLOAT && elem != DOUBLE) return PSPLIT_I_COPIES_OTHER;
  return producer == PSPLIT_NONE ? PSPLIT_I_COPIES_FLOAT : PSPLIT_I_COPIES_FLOAT_NODE;
}

unsigned psplit_i_copies_percent(psplit_i_copies copies, bool conv, bool outside) {
  switch (copies) {
    case PSPLIT_I_COPIES_COMPUTED: return 15; /* while it loads */
    case PSPLIT_I_COPIES_HALF: return 410;
    case PSPLIT_I_COPIES_OTHER: return 30;
    case PSPLIT_I_COPIES_FLOAT:
      if (outside) return conv ? 75 : 3;
      return conv ? 205 : 65;
    case PSPLIT_I_COPIES_FLOAT_NODE: /* those in Constant nodes stay where they are */
    case PSPLIT_I_N_COPIES: break;
  }
  return conv ? 205 : 65;
}

/* What ONNX Runtime on a CPU holds of a weight besides the weight, at the most: a copy of that in
 * the file while it loads, unless it is `outside`, then the one that its kernel reads (blocked for
 * convolutions, packed for products). Half floats become floats first. Measured:
 * docs/costs/memory.md. */
static uint64_t copies_of(const psplit_i_liveness *l, uint32_t value, uint32_t reader,
                          bool outside) {
  const psplit_planner *planner = l->planner;
  const uint64_t bytes = psplit_i_planner_weight_bytes(planner, value);
  if (planner->graph->nodes[reader].n_bodies) return part_of(bytes, PSPLIT_I_BODY_PERCENT);
  return part_of(bytes, psplit_i_copies_percent(psplit_i_copies_of(planner, value),
                                                is_conv(planner, reader), outside));
}

/* Of a weight, what is not taken where its bytes are mapped: that in the file, but for what kernels
 * read as it is. Small ones are read with the structure. Measured: docs/costs/memory.md. */
static uint64_t mapped_of(const psplit_i_liveness *l, uint32_t value, uint32_t reader) {
  enum { CONV_PERCENT = 85, PERCENT = 60, SMALL_BYTES = 1024 };
  const psplit_planner *planner = l->planner;
  if (planner->graph->values[value].producer != PSPLIT_NONE ||
      psplit_i_model_has_external_data(planner->model))
    return 0;
  const uint64_t bytes = psplit_i_planner_weight_bytes(planner, value);
  if (bytes <= SMALL_BYTES) return 0;
  return part_of(bytes, is_conv(planner, reader) ? CONV_PERCENT : PERCENT);
}

uint32_t psplit_i_count_nodes(const psplit_i_node *node) {
  uint32_t n = 1;
  for (uint32_t b = 0; b < node->n_bodies; b++)
    for (uint32_t i = 0; i < node->bodies[b]->n_nodes; i++)
      n += psplit_i_count_nodes(&node->bodies[b]->nodes[i]);
  return n;
}

uint64_t psplit_i_inner_copies(const psplit_i_graph *graph, uint32_t node) {
  const uint64_t inner = psplit_i_node_inner_bytes(graph, node);
  const uint64_t tables = graph->nodes[node].table_bytes;
  const uint64_t rest = inner > tables ? inner - tables : 0;
  return psplit_i_sat_add_u64(part_of(rest, PSPLIT_I_BODY_PERCENT),
                              part_of(tables, PSPLIT_I_TABLE_PERCENT));
}

/* Weights in the node itself and in its bodies. */
static void count_inner(const psplit_i_liveness *l, uint32_t node, psplit_i_stage_memory *out) {
  const psplit_i_graph *graph = l->planner->graph;
  const uint64_t inner = psplit_i_node_inner_bytes(graph, node);
  if (!inner) return;
  const uint64_t copies = psplit_i_inner_copies(graph, node);
  add(&out->weight_bytes, inner);
  add(&out->copies_bytes, copies);
  add(&out->outside_copies_bytes, copies);
}

/* A weight, by the first node that reads it. */
static void count_weight(const psplit_i_liveness *l, uint32_t value, uint32_t reader,
                         psplit_i_stage_memory *out) {
  const uint64_t bytes = psplit_i_planner_weight_bytes(l->planner, value);
  add(&out->weight_bytes, bytes);
  if (is_conv(l->planner, reader) && bytes > out->largest_kernel_bytes)
    out->largest_kernel_bytes = bytes;
  add(&out->copies_bytes, copies_of(l, value, reader, false));
  add(&out->outside_copies_bytes, copies_of(l, value, reader, true));
  add(&out->mapped_bytes, mapped_of(l, value, reader));
  out->largest_value = larger(l, out->largest_value, value);
}

/* A value that is made elsewhere: an input of the model, or what another stage sends. */
static void count_entering(const psplit_i_liveness *l, uint32_t value, uint64_t *live,
                           psplit_i_stage_memory *out) {
  if (l->planner->graph->values[value].producer == PSPLIT_NONE) {
    add(live, activation_bytes(l, value));
    add(&out->state_bytes, state_bytes(l, value));
    return;
  }
  const uint64_t bytes = bytes_of(l, value);
  add(live, bytes);
  add(&out->received_bytes, bytes);
  add(&out->stashed_bytes, stashed_bytes(l, value));
  out->n_received++;
}

/* What is sent lives to the end; what is passed on unread comes in for that. */
static void count_sent(psplit_i_liveness *l, const uint32_t *sent, uint32_t n_sent, uint64_t *live,
                       psplit_i_stage_memory *out) {
  for (uint32_t i = 0; i < n_sent; i++) {
    if (i && sent[i] == sent[i - 1]) continue;
    const uint64_t bytes = psplit_i_planner_value_bytes(l->planner, sent[i], NULL);
    add(&out->sent_bytes, bytes);
    out->n_sent++;
    if (l->made[sent[i]] != l->stamp && l->seen[sent[i]] != l->stamp) {
      l->seen[sent[i]] = l->stamp;
      add(live, bytes);
      add(&out->received_bytes, bytes);
      out->n_received++;
    }
    l->last_use[sent[i]] = UINT32_MAX;
  }
}

/* Last uses, weights, and the bytes that are live before the first node. */
static uint64_t find_uses(psplit_i_liveness *l, const uint32_t *nodes, uint32_t n,
                          const uint32_t *sent, uint32_t n_sent, psplit_i_stage_memory *out) {
  const psplit_i_graph *graph = l->planner->graph;
  uint64_t live = 0;
  l->stamp++;
  for (uint32_t p = 0; p < n; p++)
    FOR_EACH_MADE(&graph->nodes[nodes[p]], value) {
      l->made[value] = l->stamp;
      l->last_use[value] = p;
      add(&out->stashed_bytes, stashed_bytes(l, value));
    }
  for (uint32_t p = 0; p < n; p++) {
    const psplit_i_node *node = &graph->nodes[nodes[p]];
    out->n_nodes += psplit_i_count_nodes(node);
    count_inner(l, nodes[p], out);
    PSPLIT_FOR_EACH_READ(node, value) {
      l->last_use[value] = p;
      if (l->seen[value] == l->stamp) continue;
      l->seen[value] = l->stamp;
      if (psplit_i_planner_is_constant(l->planner, value))
        count_weight(l, value, nodes[p], out);
      else if (l->made[value] != l->stamp)
        count_entering(l, value, &live, out);
    }
  }
  for (uint32_t p = 0; p < n && l->planner->states.n; p++)
    FOR_EACH_MADE(&graph->nodes[nodes[p]], value) add(&out->state_bytes, state_bytes(l, value));
  count_sent(l, sent, n_sent, &live, out);
  return live;
}

/* Bytes of activations that die with the node at position p: what it was the last to read, and what
 * it makes for nobody. */
static uint64_t dying(psplit_i_liveness *l, uint32_t node_id, uint32_t p) {
  const psplit_i_node *node = &l->planner->graph->nodes[node_id];
  uint64_t bytes = 0;
  l->stamp++; /* a value counts once, however often the node reads it */
  PSPLIT_FOR_EACH_READ(node, value) {
    if (l->last_use[value] != p || l->seen[value] == l->stamp) continue;
    l->seen[value] = l->stamp;
    if (!l->planner->graph->values[value].is_output &&
        !psplit_i_planner_is_constant(l->planner, value))
      add(&bytes, activation_bytes(l, value));
  }
  FOR_EACH_MADE(node, value)
    if (l->last_use[value] == p && !l->planner->graph->values[value].is_output &&
        !psplit_i_planner_is_constant(l->planner, value))
      add(&bytes, activation_bytes(l, value));
  return bytes;
}

/* The largest tensor at the peak. */
static void find_largest(const psplit_i_liveness *l, psplit_i_stage_memory *out) {
  if (out->peak_node == PSPLIT_NONE) return;
  const psplit_i_node *peak = &l->planner->graph->nodes[out->peak_node];
  PSPLIT_FOR_EACH_READ(peak, value) out->largest_value = larger(l, out->largest_value, value);
  FOR_EACH_MADE(peak, value) out->largest_value = larger(l, out->largest_value, value);
}

void psplit_i_liveness_measure(psplit_i_liveness *l, const uint32_t *nodes, uint32_t n,
                               const uint32_t *sent, uint32_t n_sent, psplit_i_stage_memory *out) {
  const psplit_planner_options *options = &l->planner->options;
  const bool one = options->objective == PSPLIT_LATENCY;
  const uint32_t n_sequences = one ? 1 : options->n_stages;
  *out = (psplit_i_stage_memory){
    .n_sequences = options->n_sequences ? options->n_sequences : n_sequences,
    .peak_node = PSPLIT_NONE,
    .largest_value = PSPLIT_NONE};
  uint64_t live = find_uses(l, nodes, n, sent, n_sent, out);
  out->activation_bytes = live;
  for (uint32_t p = 0; p < n; p++) {
    FOR_EACH_MADE(&l->planner->graph->nodes[nodes[p]], value)
      if (!psplit_i_planner_is_constant(l->planner, value)) add(&live, activation_bytes(l, value));
    uint64_t running = live;
    if (l->planner->node_workspace_bytes) add(&running, l->planner->node_workspace_bytes[nodes[p]]);
    if (running > out->activation_bytes || out->peak_node == PSPLIT_NONE) out->peak_node = nodes[p];
    if (running > out->activation_bytes) out->activation_bytes = running;
    const uint64_t freed = dying(l, nodes[p], p);
    live = live == UINT64_MAX ? live : live - freed; /* a saturated sum stays so */
  }
  find_largest(l, out);
}

/* What is live while the node runs, wherever its inputs come from. */
static uint64_t running_bytes(psplit_i_liveness *l, uint32_t node_id) {
  const psplit_i_node *node = &l->planner->graph->nodes[node_id];
  uint64_t bytes = 0;
  if (l->planner->node_workspace_bytes) bytes = l->planner->node_workspace_bytes[node_id];
  l->stamp++;
  PSPLIT_FOR_EACH_READ(node, value) {
    if (l->seen[value] == l->stamp || psplit_i_planner_is_constant(l->planner, value)) continue;
    l->seen[value] = l->stamp;
    add(&bytes, activation_bytes(l, value));
  }
  FOR_EACH_MADE(node, value)
    if (!psplit_i_planner_is_constant(l->planner, value)) add(&bytes, activation_bytes(l, value));
  return bytes;
}

void psplit_i_liveness_least(psplit_i_liveness *l, const uint32_t *nodes, uint32_t n,
                             psplit_i_stage_memory *out) {
  const psplit_i_graph *graph = l->planner->graph;
  *out = (psplit_i_stage_memory){.peak_node = PSPLIT_NONE, .largest_value = PSPLIT_NONE};
  l->stamp++;
  for (uint32_t p = 0; p < n; p++) {
    out->n_nodes += psplit_i_count_nodes(&graph->nodes[nodes[p]]);
    add(&out->weight_bytes, psplit_i_node_inner_bytes(graph, nodes[p]));
    PSPLIT_FOR_EACH_READ(&graph->nodes[nodes[p]], value) {
      if (l->seen[value] == l->stamp || !psplit_i_planner_is_constant(l->planner, value)) continue;
      l->seen[value] = l->stamp;
      add(&out->weight_bytes, psplit_i_planner_weight_bytes(l->planner, value));
    }
  }
  for (uint32_t p = 0; p < n; p++) {
    const uint64_t bytes = running_bytes(l, nodes[p]);
    if (bytes > out->activation_bytes || !p) out->peak_node = nodes[p];
    if (bytes > out->activation_bytes) out->activation_bytes = bytes;
  }
  find_largest(l, out);
}

uint64_t psplit_i_stage_buffers(const psplit_planner *planner,
                                const psplit_i_stage_memory *memory) {
  return psplit_i_sat_mul_u64(psplit_i_sat_add_u64(memory->received_bytes, memory->sent_bytes),
                              planner->options.queue_depth);
}

uint64_t psplit_i_stage_stash(const psplit_planner *planner, uint32_t stage,
                              const psplit_i_stage_memory *memory) {
  return psplit_i_sat_mul_u64(memory->stashed_bytes,
                              psplit_i_planner_in_flight(&planner->options, stage));
}

/* Whether a stage's weights stand in a file of their own unless somebody says otherwise. */
static bool are_outside(const psplit_planner *planner, const psplit_i_stage_memory *memory) {
  return memory->weight_bytes > PSPLIT_I_OUTSIDE_BYTES && !planner->options.inline_weights;
}

uint64_t psplit_i_stage_workspace(const psplit_planner *planner, uint32_t device,
                                  const psplit_i_stage_memory *memory) {
  uint64_t bytes = psplit_devices_workspace_bytes(planner->devices, device);
  if (!planner->devices->devices[device].model.keeps_copies) return bytes;
  add(&bytes, are_outside(planner, memory) ? memory->outside_copies_bytes : memory->copies_bytes);
  add(&bytes, memory->largest_kernel_bytes); /* while it is brought into another layout */
  add(&bytes, part_of(memory->activation_bytes, PSPLIT_I_ARENA_PERCENT));
  add(&bytes, PSPLIT_I_SESSION_BYTES + (uint64_t)PSPLIT_I_NODE_BYTES * memory->n_nodes);
  return bytes;
}

uint64_t psplit_i_stage_state(const psplit_i_stage_memory *memory) {
  return psplit_i_sat_mul_u64(memory->state_bytes, memory->n_sequences);
}

uint64_t psplit_i_stage_mapped(const psplit_planner *planner, uint32_t device,
                               const psplit_i_stage_memory *memory) {
  const bool copies = planner->devices->devices[device].model.keeps_copies;
  return copies && !are_outside(planner, memory) ? memory->mapped_bytes : 0;
}

uint64_t psplit_i_stage_need(const psplit_planner *planner, uint32_t device,
                             const psplit_i_stage_memory *memory) {
  uint64_t need = psplit_i_sat_add_u64(memory->weight_bytes, memory->activation_bytes);
  add(&need, psplit_i_stage_state(memory));
  add(&need, psplit_i_stage_stash(planner, device, memory));
  add(&need, psplit_i_stage_buffers(planner, memory));
  add(&need, psplit_i_stage_workspace(planner, device, memory));
  return need;
}
