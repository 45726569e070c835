/* needs: costs, live, groups  keeps: everything but stages  breaks: nothing
 *
 * Groups what runtimes run as one kernel, so that no cut falls inside: a heavy operator with its
 * bias, normalisation, activation and residual sum; an operator with the Dequantize- and
 * QuantizeLinear nodes around it. A cut inside such a group costs speed and, with optimisation on,
 * equality in the last bit. Nodes are grouped, never rewritten. */
#include <string.h>

#include "passes.h"

enum { MAX_MEMBERS = 64, MAX_REGION = 12 };

/* A group being grown, by node. */
typedef struct cluster {
  psplit_unit *unit;
  uint32_t nodes[MAX_MEMBERS];
  uint32_t n;
} cluster;

static bool contains(const cluster *c, uint32_t node) {
  for (uint32_t i = 0; i < c->n; i++)
    if (c->nodes[i] == node) return true;
  return false;
}

static bool named_one_of(const psplit_node *node, const char *const *names) {
  if (*node->domain && strcmp(node->domain, "com.microsoft") != 0) return false;
  for (; *names; names++)
    if (strcmp(node->op_type, *names) == 0) return true;
  return false;
}

/* Operators that runtimes fuse into. */
static bool is_anchor(const psplit_node *node) {
  static const char *const anchors[] = {
    "Conv",         "ConvTranspose", "Gemm",       "MatMul",        "FusedMatMul", "ConvInteger",
    "MatMulInteger", "QLinearConv",  "QLinearMatMul", "MatMulNBits", NULL};
  return named_one_of(node, anchors);
}

/* One tensor in, one of the same shape out, element by element. */
static bool is_activation(const psplit_node *node) {
  static const char *const activations[] = {
    "Relu",   "LeakyRelu", "Sigmoid", "Tanh", "Clip",     "Elu",  "Selu", "HardSigmoid",
    "HardSwish", "Softplus", "Gelu",  "FastGelu", "QuickGelu", "PRelu", "Mish", "Celu",
    "Erf",    "ThresholdedRelu", "Swish", NULL};
  return named_one_of(node, activations);
}

static bool is_arithmetic(const psplit_node *node) {
  static const char *const arithmetic[] = {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", NULL};
  return named_one_of(node, arithmetic);
}

static bool is_constant(const psplit_unit *unit, uint32_t value) {
  if (value == PSPLIT_NONE) return true;
  const psplit_value *v = &unit->graph->values[value];
  if (v->producer != PSPLIT_NONE) return unit->node_flags[v->producer] & PSPLIT_I_NODE_FREE;
  return v->initializer != PSPLIT_NONE;
}

static bool reads_only(const cluster *c, const uint32_t *extra, uint32_t n_extra,
                       const psplit_node *node) {
  if (node->n_captures) return false;
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    const uint32_t value = node->inputs[i];
    if (is_constant(c->unit, value)) continue;
    const uint32_t producer = c->unit->graph->values[value].producer;
    if (producer == PSPLIT_NONE) return false;
    bool inside = contains(c, producer);
    for (uint32_t e = 0; e < n_extra && !inside; e++) inside = extra[e] == producer;
    if (!inside) return false;
  }
  return true;
}

/* The only value that leaves the cluster (and `extra`), or PSPLIT_NONE if several do or none. */
static uint32_t only_exit(const cluster *c, const uint32_t *extra, uint32_t n_extra) {
  const psplit_graph *graph = c->unit->graph;
  uint32_t exit_value = PSPLIT_NONE;
  for (uint32_t i = 0; i < c->n + n_extra; i++) {
    const uint32_t member = i < c->n ? c->nodes[i] : extra[i - c->n];
    const psplit_node *node = &graph->nodes[member];
    for (uint32_t o = 0; o < node->n_outputs; o++) {
      const uint32_t value = node->outputs[o];
      if (value == PSPLIT_NONE) continue;
      bool leaves = graph->values[value].is_output;
      for (uint32_t k = graph->consumer_off[value]; k < graph->consumer_off[value + 1] && !leaves;
           k++) {
        const uint32_t reader = graph->consumers[k];
        leaves = !contains(c, reader);
        for (uint32_t e = 0; e < n_extra && leaves; e++) leaves = extra[e] != reader;
      }
      if (!leaves) continue;
      if (exit_value != PSPLIT_NONE) return PSPLIT_NONE;
      exit_value = value;
    }
  }
  return exit_value;
}

/* Extends by a region of element-wise nodes that reads the cluster alone and has one exit: the
 * decomposed forms of Gelu, SiLU, HardSwish, Mish. */
static bool absorb_region(cluster *c, uint32_t value) {
  const psplit_graph *graph = c->unit->graph;
  uint32_t region[MAX_REGION];
  uint32_t n = 0;
  for (bool grew = true; grew && n < MAX_REGION;) {
    grew = false;
    /* Readers of the cluster's exit and of the region's own results. */
    for (uint32_t r = 0; r <= n && !grew; r++) {
      const uint32_t from =
        r == 0 ? value : graph->nodes[region[r - 1]].n_outputs == 1
                           ? graph->nodes[region[r - 1]].outputs[0] : PSPLIT_NONE;
      if (from == PSPLIT_NONE) continue;
      for (uint32_t k = graph->consumer_off[from]; k < graph->consumer_off[from + 1]; k++) {
        const uint32_t reader = graph->consumers[k];
        const psplit_node *node = &graph->nodes[reader];
        bool known = contains(c, reader);
        for (uint32_t e = 0; e < n && !known; e++) known = region[e] == reader;
        if (known || !(is_activation(node) || is_arithmetic(node)) ||
            !reads_only(c, region, n, node))
          continue;
        region[n++] = reader;
        grew = true;
        break;
      }
    }
    if (n && only_exit(c, region, n) != PSPLIT_NONE && c->n + n <= MAX_MEMBERS) {
      memcpy(c->nodes + c->n, region, n * sizeof *region);
      c->n += n;
      return true;
    }
  }
  return false;
}

/* Takes in the operator that follows, if it is one that runtimes fuse; `residuals` is how many sums
 * with a tensor from elsewhere may still join. */
static bool absorb_next(cluster *c, unsigned *residuals) {
  const psplit_graph *graph = c->unit->graph;
  const uint32_t value = only_exit(c, NULL, 0);
  if (value == PSPLIT_NONE || graph->values[value].is_output) return false;
  const uint32_t first = graph->consumer_off[value], last = graph->consumer_off[value + 1];
  if (last - first > 1) return absorb_region(c, value);
  if (last == first || c->n == MAX_MEMBERS) return false;
  const uint32_t reader = graph->consumers[first];
  const psplit_node *node = &graph->nodes[reader];
  const bool normalises = psplit_i_node_is(node, "BatchNormalization");
  const bool residual = psplit_i_node_is(node, "Add") && *residuals > 0;
  if (!(normalises || is_activation(node) || is_arithmetic(node))) return false;
  if (!reads_only(c, NULL, 0, node)) {
    if (!residual) return false;
    --*residuals;
  }
  c->nodes[c->n++] = reader;
  return true;
}

static bool merge(cluster *c) { return psplit_i_group_merge(&c->unit->grouping, c->nodes, c->n); }

static void fuse_from(psplit_unit *unit, uint32_t anchor) {
  cluster c = {.unit = unit, .nodes = {anchor}, .n = 1};
  unsigned residuals = 1;
  uint32_t good = 1;
  /* Grow as far as the pattern goes, but keep the longest prefix that stays convex. */
  while (absorb_next(&c, &residuals))
    if (merge(&c)) good = c.n;
    else break;
  c.n = good;
}

/* A quantised operator: DequantizeLinear in front of it that serves it alone, QuantizeLinear behind
 * the value it makes. What crosses a cut is then the quantised tensor. */
static void fuse_quantised(psplit_unit *unit, uint32_t node) {
  const psplit_graph *graph = unit->graph;
  const psplit_node *data = &graph->nodes[node];
  if (psplit_i_node_is(data, "QuantizeLinear")) {
    const uint32_t producer =
      data->n_inputs && data->inputs[0] != PSPLIT_NONE ? graph->values[data->inputs[0]].producer
                                                       : PSPLIT_NONE;
    if (producer != PSPLIT_NONE && !(unit->node_flags[producer] & PSPLIT_I_NODE_FREE))
      psplit_i_group_merge(&unit->grouping, (const uint32_t[]){producer, node}, 2);
  } else if (psplit_i_node_is(data, "DequantizeLinear") && data->n_outputs == 1 &&
             data->outputs[0] != PSPLIT_NONE) {
    const uint32_t value = data->outputs[0];
    if (graph->consumer_off[value + 1] - graph->consumer_off[value] == 1)
      psplit_i_group_merge(
        &unit->grouping,
        (const uint32_t[]){node, graph->consumers[graph->consumer_off[value]]}, 2);
  }
}

static psplit_code run(psplit_unit *unit, const psplit_i_option_value *values, psplit_diag *diag) {
  (void)diag;
  (void)values;
  const psplit_graph *graph = unit->graph;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    if (unit->node_flags[n] & (PSPLIT_I_NODE_FREE | PSPLIT_I_NODE_DEAD)) continue;
    if (is_anchor(&graph->nodes[n])) fuse_from(unit, n);
    fuse_quantised(unit, n);
  }
  return PSPLIT_OK;
}

const psplit_i_pass psplit_i_pass_fuse = {
  .name = "fuse",
  .help = "group operators that runtimes run as one kernel",
  .needs = PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_GROUPS,
  .keeps = ~(unsigned)PSPLIT_I_FACT_STAGES,
  .run = run,
};
