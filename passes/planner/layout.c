#include "layout.h"

#include <string.h>

#include "operator.h"

enum { FLOAT = 1, BLOCK = 8, IMAGE_RANK = 4 };

/* Of bits that say which sources are before a node. Without them the first source of a run, as it
 * is met, counts alone; and of very many only so many: less is charged then. */
static const size_t MOST_BYTES = (size_t)1 << 27;
enum { MOST_SOURCES = 64 };

bool psplit_i_layouts_counts(const psplit_i_layouts *layouts, uint32_t node) {
  return psplit_i_node_runs(layouts->planner->node_flags[node]);
}

/* Whether a value can be blocked: an image of floats with a multiple of the block's channels. */
static bool suits(const psplit_planner *planner, uint32_t value) {
  const psplit_i_vtype *type = psplit_i_shapes_type(planner->shapes, value);
  int64_t channels;
  return type->kind == PSPLIT_TYPE_TENSOR && type->elem == FLOAT && type->rank == IMAGE_RANK &&
         psplit_i_dim_is_const(psplit_i_shapes_dims(planner->shapes), type->dims[1], &channels) &&
         channels > 0 && channels % BLOCK == 0;
}

static uint32_t maker_of(const psplit_i_layouts *l, uint32_t value) {
  return l->planner->graph->values[value].producer;
}

static uint32_t only_reader(const psplit_i_layouts *l, uint32_t value) {
  const psplit_i_graph *graph = l->planner->graph;
  const uint32_t first = graph->consumer_off[value];
  if (graph->consumer_off[value + 1] - first != 1 || graph->values[value].is_output)
    return PSPLIT_NONE;
  return graph->consumers[first];
}

/* A product of a tensor and its activation, as x * Sigmoid(x), is one kernel, which is plain. */
static bool gates_its_input(const psplit_i_layouts *l, const psplit_i_node *node) {
  const uint32_t reader = node->n_inputs == 1 ? only_reader(l, node->outputs[0]) : PSPLIT_NONE;
  if (reader == PSPLIT_NONE) return false;
  const psplit_i_node *product = &l->planner->graph->nodes[reader];
  if (!psplit_i_node_has(product, PSPLIT_I_OP_COMMUTATIVE) ||
      psplit_i_node_has(product, PSPLIT_I_OP_KERNEL_TAIL))
    return false;
  PSPLIT_FOR_EACH_READ(product, value)
    if (value == node->inputs[0]) return true;
  return false;
}

/* Whether all that a node which keeps blocks reads is in blocks, and of the result's size where it
 * does not join. */
static bool may_keep(const psplit_i_layouts *l, uint32_t n) {
  const psplit_i_node *node = &l->planner->graph->nodes[n];
  const bool joins = l->planner->node_class[n] == PSPLIT_CLASS_MOVE;
  const uint64_t bytes = psplit_i_planner_value_bytes(l->planner, node->outputs[0], NULL);
  bool any = false;
  if (gates_its_input(l, node)) return false;
  PSPLIT_FOR_EACH_READ(node, value) {
    if (psplit_i_planner_is_constant(l->planner, value)) continue;
    const uint32_t maker = maker_of(l, value);
    if (maker == PSPLIT_NONE || !l->blocked[maker]) return false;
    if (!joins && psplit_i_planner_value_bytes(l->planner, value, NULL) != bytes) return false;
    any = true;
  }
  return any;
}

/* What a profile has seen counts; else what operators and shapes let expect. */
static bool works_blocked(const psplit_i_layouts *l, uint32_t n) {
  const psplit_i_node *node = &l->planner->graph->nodes[n];
  if (!psplit_i_layouts_counts(l, n) || !node->n_outputs || node->outputs[0] == PSPLIT_NONE)
    return false;
  if (!suits(l->planner, node->outputs[0])) return false;
  if (l->planner->node_layout[n] == PSPLIT_I_LAYOUT_PLAIN) return false;
  if (psplit_i_node_has(node, PSPLIT_I_OP_BLOCKED)) return true;
  return psplit_i_node_has(node, PSPLIT_I_OP_KEEPS_BLOCKS) && may_keep(l, n);
}

/* Whether a kernel also does what follows it: convolutions sums and activations, normalisations on
 * blocks (which are convolutions) and sums activations. */
static bool takes_tail(const psplit_i_layouts *l, uint32_t n, bool sum) {
  const psplit_op_class is = l->planner->node_class[n];
  if (is == PSPLIT_CLASS_CONV || is == PSPLIT_CLASS_DEPTHWISE) return true;
  return !sum &&
         (is == PSPLIT_CLASS_NORM || (l->inside[n] && l->planner->graph->nodes[n].n_inputs > 1));
}

static bool is_inside(const psplit_i_layouts *l, uint32_t n) {
  const psplit_i_node *node = &l->planner->graph->nodes[n];
  if (!psplit_i_node_has(node, PSPLIT_I_OP_KERNEL_TAIL)) return false;
  PSPLIT_FOR_EACH_READ(node, value) {
    const uint32_t maker = maker_of(l, value);
    if (maker != PSPLIT_NONE && l->blocked[maker] && only_reader(l, value) == n &&
        takes_tail(l, maker, node->n_inputs > 1))
      return true;
  }
  return false;
}

static bool keeps(const psplit_i_layouts *l, uint32_t n) {
  return l->blocked[n] && !psplit_i_node_has(&l->planner->graph->nodes[n], PSPLIT_I_OP_BLOCKED);
}

/* --- what a node's blocks hang on --- */

/* Which sources are before which nodes, as bits. */
typedef struct ancestry {
  uint32_t *number; /* [n_nodes] of a source, or PSPLIT_NONE */
  size_t n_words;   /* of a node; 0: not known */
  uint64_t *before; /* [n_nodes * n_words] */
} ancestry;

static bool is_before(const ancestry *a, uint32_t source, uint32_t node) {
  const uint32_t bit = a->number[source];
  return a->n_words && source != node &&
         (a->before[node * a->n_words + bit / 64] >> (bit % 64) & 1);
}

/* Numbers the nodes that bring into blocks what some other node keeps there. */
static uint32_t number_sources(const psplit_i_layouts *l, uint32_t *number) {
  const psplit_i_graph *graph = l->planner->graph;
  uint32_t n_sources = 0;
  memset(number, 0xff, graph->n_nodes * sizeof *number);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    if (!keeps(l, n)) continue;
    PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) {
      const uint32_t maker = maker_of(l, value);
      if (maker != PSPLIT_NONE && l->blocked[maker] && !keeps(l, maker) &&
          number[maker] == PSPLIT_NONE)
        number[maker] = n_sources++;
    }
  }
  return n_sources;
}

static psplit_code find_ancestry(const psplit_i_layouts *l, psplit_i_arena *arena, ancestry *out,
                                 psplit_diag *diag) {
  const psplit_i_graph *graph = l->planner->graph;
  *out = (ancestry){.number = PSPLIT_NEW(arena, uint32_t, graph->n_nodes)};
  if (!out->number) return psplit_i_nomem(diag);
  const size_t n_words = ((size_t)number_sources(l, out->number) + 63) / 64;
  if (n_words > MOST_BYTES / 8 / ((size_t)graph->n_nodes + 1)) return PSPLIT_OK;
  out->n_words = n_words;
  out->before = PSPLIT_NEW(arena, uint64_t, n_words * graph->n_nodes);
  if (!out->before) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < graph->n_nodes && n_words; i++) {
    const uint32_t n = graph->topo[i];
    uint64_t *own = &out->before[n * n_words];
    PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) {
      const uint32_t maker = maker_of(l, value);
      if (maker == PSPLIT_NONE) continue;
      for (size_t w = 0; w < n_words; w++) own[w] |= out->before[maker * n_words + w];
      if (out->number[maker] != PSPLIT_NONE)
        own[out->number[maker] / 64] |= UINT64_C(1) << (out->number[maker] % 64);
    }
  }
  return PSPLIT_OK;
}

/* One more source of the node whose list begins at `first`; only the earliest stay. */
static bool add_source(psplit_i_layouts *l, const ancestry *a, uint32_t first, uint32_t source) {
  size_t kept = first;
  if (l->sources.n - first >= (a->n_words ? MOST_SOURCES : 1)) return true;
  for (size_t i = first; i < l->sources.n; i++) {
    const uint32_t other = l->sources.items[i];
    if (other == source || is_before(a, other, source)) return true; /* nothing went before */
    if (!is_before(a, source, other)) l->sources.items[kept++] = other;
  }
  l->sources.n = kept;
  return psplit_i_vec_push(&l->sources, source);
}

/* Lists by node, made in topological order, so `at` says where each begins and ends. */
static psplit_code find_sources(psplit_i_layouts *l, const ancestry *a, psplit_i_arena *arena,
                                psplit_diag *diag) {
  const psplit_i_graph *graph = l->planner->graph;
  uint32_t *begin = PSPLIT_NEW(arena, uint32_t, graph->n_nodes);
  uint32_t *end = PSPLIT_NEW(arena, uint32_t, graph->n_nodes);
  if (!begin || !end) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i], first = (uint32_t)l->sources.n;
    begin[n] = end[n] = first;
    if (!keeps(l, n)) continue;
    PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) {
      const uint32_t maker = maker_of(l, value);
      if (maker == PSPLIT_NONE || !l->blocked[maker]) continue;
      if (!keeps(l, maker) && !add_source(l, a, first, maker)) return psplit_i_nomem(diag);
      for (uint32_t s = begin[maker]; s < end[maker]; s++)
        if (!add_source(l, a, first, l->sources.items[s])) return psplit_i_nomem(diag);
    }
    end[n] = (uint32_t)l->sources.n;
  }
  l->source_begin = begin;
  l->source_end = end;
  return PSPLIT_OK;
}

psplit_code psplit_i_layouts_find(const psplit_planner *planner, psplit_i_arena *arena,
                                  psplit_diag *diag, psplit_i_layouts *out) {
  const psplit_i_graph *graph = planner->graph;
  ancestry a;
  *out = (psplit_i_layouts){.planner = planner,
                            .position = PSPLIT_NEW(arena, uint32_t, graph->n_nodes),
                            .blocked = PSPLIT_NEW(arena, uint8_t, graph->n_nodes),
                            .inside = PSPLIT_NEW(arena, uint8_t, graph->n_nodes)};
  if (!out->position || !out->blocked || !out->inside) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    out->position[n] = i;
    out->blocked[n] = works_blocked(out, n);
    out->inside[n] = out->blocked[n] && is_inside(out, n);
  }
  const psplit_code code = find_ancestry(out, arena, &a, diag);
  return code == PSPLIT_OK ? find_sources(out, &a, arena, diag) : code;
}

void psplit_i_layouts_fini(psplit_i_layouts *layouts) { psplit_i_vec_fini(&layouts->sources); }
