/* What cuts cost besides sending: layouts.
 *
 * ONNX Runtime on a CPU computes convolutions in a blocked layout, and what follows them (sums,
 * activations, joins) too, as long as all that it reads is blocked. A tensor that crosses is plain.
 * So in the stage that receives it, a sum of it and a blocked tensor is plain, and no longer part
 * of a convolution's kernel; each convolution behind brings its input into blocks and its result
 * back, until the residual run ends. Counted in bytes moved, over the memory bandwidth of the
 * device: those of the stages less those of the whole model. */
#include <string.h>

#include "cost_table.h"
#include "devices_inside.h"
#include "operator.h"
#include "planner.h"

enum { FLOAT = 1, BLOCK = 8, IMAGE_RANK = 4 };

typedef struct layout {
  const psplit_planner *planner;
  const uint32_t *stage_of; /* [n_nodes] NULL: all in one */
  uint8_t *blocked;         /* [n_values] as its maker leaves it */
  uint64_t *bytes;          /* [n_stages] moved, for layouts and by kernels that were one */
} layout;

static bool counts(const layout *l, uint32_t n) {
  return !(l->planner->node_flags[n] & (PSPLIT_I_NODE_DEAD | PSPLIT_I_NODE_FREE));
}

/* Whether a value can be blocked at all: an image of floats with whole blocks of channels. */
static bool suits(const layout *l, uint32_t value) {
  const psplit_i_vtype *type = psplit_i_shapes_type(l->planner->shapes, value);
  int64_t channels;
  return type->kind == PSPLIT_TYPE_TENSOR && type->elem == FLOAT && type->rank == IMAGE_RANK &&
         psplit_i_dim_is_const(psplit_i_shapes_dims(l->planner->shapes), type->dims[1],
                               &channels) &&
         channels > 0 && channels % BLOCK == 0;
}

static bool is_blocked(const layout *l, uint32_t value, uint32_t reader) {
  const uint32_t producer = l->planner->graph->values[value].producer;
  if (!l->blocked[value]) return false;
  return !l->stage_of || l->stage_of[producer] == l->stage_of[reader];
}

/* Whether the node's kernel works on blocks. */
static bool works_blocked(const layout *l, uint32_t n) {
  const psplit_i_node *node = &l->planner->graph->nodes[n];
  if (!node->n_outputs || node->outputs[0] == PSPLIT_NONE || !suits(l, node->outputs[0]))
    return false;
  if (psplit_i_node_has(node, PSPLIT_I_OP_BLOCKED)) return true;
  if (!psplit_i_node_has(node, PSPLIT_I_OP_KEEPS_BLOCKS)) return false;
  bool any = false;
  PSPLIT_FOR_EACH_READ(node, value) {
    if (psplit_i_planner_is_constant(l->planner, value)) continue;
    if (!is_blocked(l, value, n)) return false;
    any = true;
  }
  return any;
}

static uint64_t bytes_of(const layout *l, uint32_t value) {
  return psplit_i_planner_value_bytes(l->planner, value, NULL);
}

static void add(layout *l, uint32_t n, uint64_t bytes) {
  uint64_t *sum = &l->bytes[l->stage_of ? l->stage_of[n] : 0];
  *sum = psplit_i_sat_add_u64(*sum, bytes);
}

/* Bytes of one node: what it reads in another layout than it works in, and what it moves itself
 * where it is no part of a convolution's kernel. */
static void count(layout *l, uint32_t n) {
  const psplit_i_node *node = &l->planner->graph->nodes[n];
  const bool inside = works_blocked(l, n);
  const bool follows = psplit_i_node_has(node, PSPLIT_I_OP_KEEPS_BLOCKS);
  uint64_t own = 0;
  PSPLIT_FOR_EACH_READ(node, value) {
    if (psplit_i_planner_is_constant(l->planner, value) || !suits(l, value)) continue;
    if (is_blocked(l, value, n) != inside) add(l, n, psplit_i_sat_mul_u64(2, bytes_of(l, value)));
    own = psplit_i_sat_add_u64(own, bytes_of(l, value));
  }
  for (uint32_t o = 0; o < node->n_outputs; o++)
    if (node->outputs[o] != PSPLIT_NONE && inside) l->blocked[node->outputs[o]] = 1;
  if (follows && !inside && suits(l, node->outputs[0]) &&
      psplit_i_node_has(node, PSPLIT_I_OP_KERNEL_TAIL))
    add(l, n, psplit_i_sat_add_u64(own, bytes_of(l, node->outputs[0])));
}

static void count_all(layout *l) {
  const psplit_i_graph *graph = l->planner->graph;
  memset(l->blocked, 0, graph->n_values);
  for (uint32_t i = 0; i < graph->n_nodes; i++)
    if (counts(l, graph->topo[i])) count(l, graph->topo[i]);
  /* What leaves is brought back. */
  for (uint32_t v = 0; v < graph->n_values; v++) {
    if (!l->blocked[v]) continue;
    const uint32_t from = graph->values[v].producer;
    bool leaves = graph->values[v].is_output;
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1] && l->stage_of; c++)
      leaves |= l->stage_of[graph->consumers[c]] != l->stage_of[from];
    if (leaves) add(l, from, psplit_i_sat_mul_u64(2, bytes_of(l, v)));
  }
}

/* Where costs were measured without blocked layouts, stages run without them too. */
static bool has_blocks(const psplit_planner *planner, uint32_t stage) {
  for (size_t c = 0; c < planner->options.n_costs; c++)
    if (planner->options.costs[c]->unblocked) return false;
  return planner->devices->devices[stage].model.keeps_copies;
}

psplit_code psplit_i_layout_costs(psplit_planner *planner, const uint32_t *node_stage,
                                  psplit_diag *diag, int64_t *out_ns) {
  const uint32_t n_stages = planner->options.n_stages;
  psplit_i_arena *scratch = &planner->scratch;
  layout l = {.planner = planner,
              .stage_of = node_stage,
              .blocked = PSPLIT_NEW(scratch, uint8_t, planner->graph->n_values),
              .bytes = PSPLIT_NEW(scratch, uint64_t, n_stages)};
  layout whole = l; /* its nodes' bytes, by the stages that they are in */
  uint64_t *without = PSPLIT_NEW(scratch, uint64_t, n_stages);
  if (!l.blocked || !l.bytes || !without) return psplit_i_nomem(diag);
  count_all(&l);
  whole.bytes = without;
  whole.stage_of = NULL;
  count_all(&whole); /* in without[0] */
  uint64_t with = 0;
  for (uint32_t s = 0; s < n_stages; s++) with = psplit_i_sat_add_u64(with, l.bytes[s]);
  /* What the whole model moves for layouts is shared as the stages move it. */
  for (uint32_t s = 0; s < n_stages; s++) {
    const psplit_i_device_model *model = &planner->devices->devices[s].model;
    const double more = with > without[0] ? (double)(with - without[0]) / (double)with : 0;
    out_ns[s] = has_blocks(planner, s)
                  ? (int64_t)(1e9 * more * (double)l.bytes[s] / model->memory_bandwidth)
                  : 0;
  }
  return PSPLIT_OK;
}
