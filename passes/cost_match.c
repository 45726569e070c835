/* From rows to nodes.
 *
 * A kernel that ONNX Runtime made by fusing does what several nodes do, and its row should have all
 * of them. Where the optimised model is at hand that is exact: a value that both models have stands
 * for the same tensor, so a kernel does what lies between the values it reads and those it makes.
 * Names of kernels give some of these values and nodes too; with names alone, the rest is found from
 * how the graph hangs together:
 *   1. outputs and names give nodes to kernels, and the activations behind these;
 *   2. a fused kernel also gets the nodes before its own that no kernel has, back to those that one has;
 *   3. a kernel without a node gets the nodes that nobody has and whose turn it was: all that they read
 *      was made before it ran, and nothing that reads them had run yet;
 *   4. what is left goes to the kernel that makes its input: activations, biases, views;
 *   5. kernels without nodes, which reorder or cast, count as part of the one that reads them, else of
 *      the one before. */
#include <stdlib.h>
#include <string.h>

#include "cost_table.h"
#include "scope.h"

typedef struct matcher {
  const psplit_cost_table *table;
  const psplit_graph *graph, *optimized;
  psplit_arena *arena;
  psplit_diag *diag;
  psplit_i_cost_names names;
  uint32_t n_rows;
  uint32_t *owner;     /* [n_nodes] row, or PSPLIT_NONE */
  uint32_t *anchor;    /* [n_rows] the node its name or outputs gave, or PSPLIT_NONE */
  uint32_t *same_as;   /* [n_rows] the row it counts as part of; itself */
  uint8_t *is_fused;   /* [n_rows] it does more than its anchor */
  uint8_t *goes_on;    /* [n_rows] it may do more behind its anchor */
  uint8_t *is_free;    /* [n_nodes] a function of constants: in no kernel */
  uint32_t *stack;     /* [n_nodes] */
} matcher;

/* Every value that node `n` reads. */
#define FOR_EACH_READ(node, value)                                              \
  for (uint32_t read_ = 0, value;                                               \
       read_ < (node)->n_inputs + (node)->n_captures &&                         \
       (value = read_ < (node)->n_inputs ? (node)->inputs[read_]                \
                                         : (node)->captures[read_ - (node)->n_inputs], \
        true);                                                                  \
       read_++)                                                                 \
    if (value != PSPLIT_NONE)

static const psplit_i_cost_row *row_of(const matcher *m, uint32_t r) {
  return &m->table->rows.items[r];
}

static void find_free(matcher *m) {
  for (uint32_t i = 0; i < m->graph->n_nodes; i++) {
    const uint32_t n = m->graph->topo[i];
    const psplit_node *node = &m->graph->nodes[n];
    bool is_free = true;
    FOR_EACH_READ(node, value) {
      const psplit_value *v = &m->graph->values[value];
      is_free &= v->producer != PSPLIT_NONE ? m->is_free[v->producer]
                                            : v->initializer != PSPLIT_NONE;
    }
    m->is_free[n] = is_free;
  }
}

/* --- 1. names and outputs --- */

static uint32_t maker_of(const psplit_graph *graph, const char *value) {
  const uint32_t v = psplit_i_graph_find_value(graph, value);
  return v == PSPLIT_NONE ? PSPLIT_NONE : graph->values[v].producer;
}

static bool own(matcher *m, uint32_t node, uint32_t row) {
  if (node == PSPLIT_NONE || row == PSPLIT_NONE || m->owner[node] != PSPLIT_NONE) return false;
  m->owner[node] = row;
  return true;
}

/* What the optimised model says that kernel r makes. */
static uint32_t find_by_outputs(matcher *m, uint32_t r) {
  uint32_t found = PSPLIT_NONE;
  for (uint32_t o = 0; m->optimized && o < m->optimized->nodes[r].n_outputs; o++) {
    const uint32_t v = m->optimized->nodes[r].outputs[o];
    const uint32_t node =
      v == PSPLIT_NONE ? PSPLIT_NONE : maker_of(m->graph, m->optimized->values[v].name);
    if (own(m, node, r))
      found = node;
    else if (node != PSPLIT_NONE && m->owner[node] != r)
      m->same_as[r] = m->owner[node]; /* another layout of what that one made */
  }
  if (found != PSPLIT_NONE) m->same_as[r] = r;
  return found;
}

static void find_kernel(matcher *m, uint32_t r) {
  const psplit_i_cost_row *row = row_of(m, r);
  uint32_t found = find_by_outputs(m, r);
  if (found == PSPLIT_NONE && m->same_as[r] == r) {
    const psplit_i_kernel_name name = psplit_i_kernel_name_read(&m->names, row->label, row->op);
    if (own(m, name.node, r))
      found = name.node;
    else if (name.node != PSPLIT_NONE)
      m->same_as[r] = m->owner[name.node];
    m->goes_on[r] = found != PSPLIT_NONE && name.goes_on;
  }
  m->anchor[r] = found;
  m->is_fused[r] = found != PSPLIT_NONE &&
                   (m->optimized || !row->op || strcmp(m->graph->nodes[found].op_type, row->op) != 0);
}

/* What kernels do behind the node of their name: a sum, an activation, each read by the next alone. */
static bool can_end_a_kernel(const char *op) {
  static const char *const ops[] = {"Add",  "Sum",       "Relu", "LeakyRelu", "Clip",
                                    "Tanh", "Sigmoid",   "Elu",  "HardSigmoid",
                                    "Selu", "Softplus",  "Softsign", "ThresholdedRelu"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (strcmp(op, ops[i]) == 0) return true;
  return false;
}

static void claim_chain(matcher *m, uint32_t r) {
  const psplit_graph *graph = m->graph;
  for (uint32_t n = m->anchor[r], next; graph->nodes[n].n_outputs == 1; n = next) {
    const uint32_t v = graph->nodes[n].outputs[0];
    if (v == PSPLIT_NONE || graph->consumer_off[v + 1] - graph->consumer_off[v] != 1) break;
    next = graph->consumers[graph->consumer_off[v]];
    if (!can_end_a_kernel(graph->nodes[next].op_type) || !own(m, next, r)) break;
  }
}

/* --- 2. back from what is known --- */

static void claim_backwards(matcher *m, uint32_t row, uint32_t from) {
  uint32_t depth = 0;
  m->stack[depth++] = from;
  while (depth) {
    const psplit_node *node = &m->graph->nodes[m->stack[--depth]];
    FOR_EACH_READ(node, value) {
      const uint32_t p = m->graph->values[value].producer;
      if (p != PSPLIT_NONE && !m->is_free[p] && own(m, p, row)) m->stack[depth++] = p;
    }
  }
}

/* --- 3. kernels whose name says nothing --- */

/* Nodes that no kernel has, as far as they hang together. */
typedef struct component {
  uint32_t first;  /* node */
  uint32_t ready;  /* 1 + the last row that makes what it reads; 0: none does */
  uint32_t needed; /* the first row that reads what it makes; PSPLIT_NONE: none does */
  uint32_t row;    /* that took it, or PSPLIT_NONE */
} component;

typedef PSPLIT_VEC(component) component_list;

static bool is_helper(const char *op) {
  static const char *const ops[] = {"ReorderInput", "ReorderOutput", "MemcpyFromHost",
                                    "MemcpyToHost"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (strcmp(op, ops[i]) == 0) return true;
  return false;
}

/* Meets a neighbour of a component: one more member, or a kernel on its rim. */
static void meet(matcher *m, uint32_t node, uint32_t id, uint32_t *of, bool before, component *c,
                 uint32_t *depth) {
  if (m->is_free[node]) return;
  if (m->owner[node] == PSPLIT_NONE) {
    if (of[node] != PSPLIT_NONE) return;
    of[node] = id;
    m->stack[(*depth)++] = node;
  } else if (before) {
    if (m->owner[node] + 1 > c->ready) c->ready = m->owner[node] + 1;
  } else if (m->owner[node] < c->needed) {
    c->needed = m->owner[node];
  }
}

static psplit_code find_components(matcher *m, uint32_t *of, component_list *out) {
  const psplit_graph *graph = m->graph;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t first = graph->topo[i];
    if (m->owner[first] != PSPLIT_NONE || of[first] != PSPLIT_NONE || m->is_free[first]) continue;
    component c = {.first = first, .needed = PSPLIT_NONE, .row = PSPLIT_NONE};
    const uint32_t id = (uint32_t)out->n;
    uint32_t depth = 0;
    of[first] = id;
    m->stack[depth++] = first;
    while (depth) {
      const psplit_node *node = &graph->nodes[m->stack[--depth]];
      FOR_EACH_READ(node, value) {
        const uint32_t p = graph->values[value].producer;
        if (p != PSPLIT_NONE) meet(m, p, id, of, true, &c, &depth);
      }
      for (uint32_t o = 0; o < node->n_outputs; o++) {
        const uint32_t v = node->outputs[o];
        if (v == PSPLIT_NONE) continue;
        for (uint32_t k = graph->consumer_off[v]; k < graph->consumer_off[v + 1]; k++)
          meet(m, graph->consumers[k], id, of, false, &c, &depth);
      }
    }
    if (!psplit_i_vec_push(out, c)) return psplit_i_nomem(m->diag);
  }
  return PSPLIT_OK;
}

static int by_ready(const void *a, const void *b) {
  const component *x = *(component *const *)a, *y = *(component *const *)b;
  if (x->ready != y->ready) return x->ready < y->ready ? -1 : 1;
  return x->first < y->first ? 1 : -1; /* of equal ones the first in the file is taken first */
}

/* Components by when they became ready; those that are, and not taken yet, lie on a stack. */
typedef struct queue {
  component **waiting;
  uint32_t n, next;
  uint32_t *stack, depth;
} queue;

/* The component whose turn it was when row r ran: the one that became ready last. NULL: none. */
static component *whose_turn(queue *q, uint32_t r) {
  while (q->next < q->n && q->waiting[q->next]->ready <= r) q->stack[q->depth++] = q->next++;
  while (q->depth) {
    component *last = q->waiting[q->stack[--q->depth]];
    if (last->needed > r) return last;
  }
  return NULL;
}

static psplit_code take_turns(matcher *m) {
  psplit_code code;
  component_list components = {0};
  queue q = {0};
  uint32_t *of = psplit_i_arena_array(m->arena, m->graph->n_nodes, sizeof *of);
  if (!of) return psplit_i_nomem(m->diag);
  memset(of, 0xff, m->graph->n_nodes * sizeof *of);
  PSPLIT_TRY(find_components(m, of, &components));
  q.n = (uint32_t)components.n;
  q.waiting = psplit_i_arena_array(m->arena, q.n, sizeof *q.waiting);
  q.stack = psplit_i_arena_array(m->arena, q.n, sizeof *q.stack);
  if (!q.waiting || !q.stack) PSPLIT_TRY(psplit_i_nomem(m->diag));
  for (uint32_t c = 0; c < q.n; c++) q.waiting[c] = &components.items[c];
  if (q.n) qsort(q.waiting, q.n, sizeof *q.waiting, by_ready);
  for (uint32_t r = 0; r < m->n_rows; r++) {
    if (m->anchor[r] != PSPLIT_NONE || m->same_as[r] != r || is_helper(row_of(m, r)->op)) continue;
    component *turn = whose_turn(&q, r);
    if (!turn) continue;
    turn->row = r;
    m->anchor[r] = turn->first;
  }
  for (uint32_t n = 0; n < m->graph->n_nodes; n++)
    if (of[n] != PSPLIT_NONE) own(m, n, components.items[of[n]].row);
out:
  psplit_i_vec_fini(&components);
  return code;
}

/* --- 4. the rest, by what it reads --- */

static void claim_forwards(matcher *m) {
  for (uint32_t i = 0; i < m->graph->n_nodes; i++) {
    const uint32_t n = m->graph->topo[i];
    uint32_t last = PSPLIT_NONE;
    if (m->owner[n] != PSPLIT_NONE || m->is_free[n]) continue;
    FOR_EACH_READ(&m->graph->nodes[n], value) {
      const uint32_t p = m->graph->values[value].producer;
      const uint32_t row = p == PSPLIT_NONE ? PSPLIT_NONE : m->owner[p];
      if (row != PSPLIT_NONE && (last == PSPLIT_NONE || row > last)) last = row;
    }
    if (last != PSPLIT_NONE) own(m, n, last);
  }
}

/* --- 5. kernels without nodes --- */

/* The first kernel that reads what row r makes, by the optimised model. */
static uint32_t reader_of(const matcher *m, uint32_t r) {
  const psplit_graph *graph = m->optimized;
  uint32_t first = PSPLIT_NONE;
  for (uint32_t o = 0; graph && o < graph->nodes[r].n_outputs; o++) {
    const uint32_t v = graph->nodes[r].outputs[o];
    if (v == PSPLIT_NONE) continue;
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++)
      if (graph->consumers[c] > r && graph->consumers[c] < first) first = graph->consumers[c];
  }
  return first;
}

static void place_helpers(matcher *m) {
  uint32_t last = PSPLIT_NONE;
  for (uint32_t r = m->n_rows; r-- > 0;) { /* readers run later: they have their place by now */
    if (m->anchor[r] != PSPLIT_NONE || m->same_as[r] != r) {
      last = m->same_as[r];
      continue;
    }
    const uint32_t reader = reader_of(m, r);
    if (reader != PSPLIT_NONE)
      m->same_as[r] = m->same_as[reader];
    else if (last != PSPLIT_NONE && row_of(m, r)->op && strcmp(row_of(m, r)->op, "ReorderInput") == 0)
      m->same_as[r] = last;
  }
  last = PSPLIT_NONE;
  for (uint32_t r = 0; r < m->n_rows; r++) {
    const bool placed = m->anchor[r] != PSPLIT_NONE || m->same_as[r] != r;
    if (!placed && last != PSPLIT_NONE) m->same_as[r] = last;
    last = m->same_as[r];
  }
}

static uint32_t final_row(const matcher *m, uint32_t r) {
  for (uint32_t steps = 0; m->same_as[r] != r && steps < m->n_rows; steps++) r = m->same_as[r];
  return r;
}

/* --- the map --- */

/* Rows with nodes, and those without that are missed: a kernel that takes no workspace is not. */
static void count_rows(const matcher *m, psplit_i_cost_map *out) {
  for (uint32_t r = 0; r < m->n_rows; r++) {
    const psplit_i_cost_row *row = row_of(m, r);
    if (out->off[r] != out->off[r + 1]) {
      out->n_matched++;
    } else if (m->table->format != PSPLIT_I_COSTS_MEMORY || row->workspace_bytes) {
      if (!out->n_unmatched++) out->unmatched = row->label;
    }
  }
}

static psplit_code write_map(matcher *m, psplit_i_cost_map *out) {
  const size_t n_rows = m->n_rows;
  uint32_t *owned_off = PSPLIT_NEW(m->arena, uint32_t, n_rows + 2);
  uint32_t *owned = psplit_i_arena_array(m->arena, m->graph->n_nodes, sizeof *owned);
  uint64_t n_pairs = 0;
  out->off = PSPLIT_NEW(m->arena, uint32_t, n_rows + 1);
  if (!owned_off || !owned || !out->off) return psplit_i_nomem(m->diag);
  for (uint32_t n = 0; n < m->graph->n_nodes; n++)
    if (m->owner[n] != PSPLIT_NONE) owned_off[m->owner[n] + 2]++;
  for (uint32_t r = 0; r < n_rows; r++) owned_off[r + 2] += owned_off[r + 1];
  for (uint32_t n = 0; n < m->graph->n_nodes; n++)
    if (m->owner[n] != PSPLIT_NONE) owned[owned_off[m->owner[n] + 1]++] = n;
  for (uint32_t r = 0; r < n_rows; r++) {
    const uint32_t f = final_row(m, r);
    n_pairs += owned_off[f + 1] - owned_off[f];
    if (n_pairs >= PSPLIT_NONE)
      return psplit_i_fail(m->diag, PSPLIT_LIMIT, "the rows speak of too many nodes");
    out->off[r + 1] = (uint32_t)n_pairs;
  }
  out->node = psplit_i_arena_array(m->arena, (size_t)n_pairs, sizeof *out->node);
  if (!out->node) return psplit_i_nomem(m->diag);
  for (uint32_t r = 0; r < n_rows; r++) {
    const uint32_t f = final_row(m, r);
    if (owned_off[f + 1] > owned_off[f])
      memcpy(out->node + out->off[r], owned + owned_off[f],
             (owned_off[f + 1] - owned_off[f]) * sizeof *owned);
  }
  return PSPLIT_OK;
}

static psplit_code match_kernels(matcher *m, psplit_i_cost_map *out) {
  psplit_code code;
  const bool profile = m->table->format == PSPLIT_I_COSTS_PROFILE;
  bool any = false;
  for (uint32_t r = 0; r < m->n_rows; r++) {
    find_kernel(m, r);
    any |= m->anchor[r] != PSPLIT_NONE;
  }
  if (profile && any) {
    /* Of two that a sum could belong to, the one that ran last had both its terms. */
    for (uint32_t r = m->n_rows; r-- > 0;)
      if (m->goes_on[r]) claim_chain(m, r);
    for (uint32_t r = 0; r < m->n_rows; r++)
      if (m->anchor[r] != PSPLIT_NONE && m->is_fused[r]) claim_backwards(m, r, m->anchor[r]);
    if (!m->optimized) PSPLIT_TRY(take_turns(m));
    claim_forwards(m);
    place_helpers(m);
  }
  code = write_map(m, out);
out:
  return code;
}

/* --- rows that name nodes, modules --- */

typedef PSPLIT_VEC(uint32_t) id_list;

static psplit_code match_names(matcher *m, psplit_i_cost_map *out) {
  psplit_code code = PSPLIT_OK;
  id_list nodes = {0};
  out->off = PSPLIT_NEW(m->arena, uint32_t, (size_t)m->n_rows + 1);
  if (!out->off) return psplit_i_nomem(m->diag);
  for (uint32_t r = 0; r < m->n_rows; r++) {
    const psplit_i_cost_row *row = row_of(m, r);
    for (uint32_t i = 0; i < row->n_nodes; i++)
      for (uint32_t n = psplit_i_cost_names_node(&m->names, row->nodes[i]); n != PSPLIT_NONE;
           n = m->names.next[n])
        if (!psplit_i_vec_push(&nodes, n)) PSPLIT_TRY(psplit_i_nomem(m->diag));
    for (uint32_t i = 0; i < row->n_values; i++) {
      const uint32_t n = maker_of(m->graph, row->values[i]);
      if (n != PSPLIT_NONE && !psplit_i_vec_push(&nodes, n)) PSPLIT_TRY(psplit_i_nomem(m->diag));
    }
    if (nodes.n >= PSPLIT_NONE)
      PSPLIT_TRY(psplit_i_fail(m->diag, PSPLIT_LIMIT, "the rows speak of too many nodes"));
    out->off[r + 1] = (uint32_t)nodes.n;
  }
  out->node = psplit_i_arena_array(m->arena, nodes.n, sizeof *out->node);
  if (!out->node) PSPLIT_TRY(psplit_i_nomem(m->diag));
  if (nodes.n) memcpy(out->node, nodes.items, nodes.n * sizeof *out->node);
out:
  psplit_i_vec_fini(&nodes);
  return code;
}

/* Olive's modules are PyTorch's: a node belongs to the module that its name lies in, or the nearest
 * one around it that has a row. */
static psplit_code match_modules(matcher *m, psplit_i_cost_map *out) {
  psplit_code code = PSPLIT_OK;
  psplit_intern modules;
  psplit_i_intern_init(&modules);
  uint32_t *row_of_module = psplit_i_arena_array(m->arena, m->n_rows, sizeof *row_of_module);
  if (!row_of_module) PSPLIT_TRY(psplit_i_nomem(m->diag));
  for (uint32_t r = 0; r < m->n_rows; r++) {
    const uint32_t id = psplit_i_intern_add(&modules, row_of(m, r)->label);
    if (id == PSPLIT_NONE) PSPLIT_TRY(psplit_i_nomem(m->diag));
    row_of_module[id] = r;
  }
  for (uint32_t n = 0; n < m->graph->n_nodes; n++) {
    const char *name = m->graph->nodes[n].name, *slash = strrchr(name, '/');
    char *scope =
      slash ? psplit_i_scope_dotted(name, (size_t)(slash - name), m->arena) : NULL;
    for (char *dot = scope; dot && m->owner[n] == PSPLIT_NONE;) {
      const uint32_t id = psplit_i_intern_find(&modules, scope);
      if (id != PSPLIT_NONE) own(m, n, row_of_module[id]);
      if ((dot = strrchr(scope, '.'))) *dot = '\0';
    }
  }
  code = write_map(m, out);
out:
  psplit_i_intern_fini(&modules);
  return code;
}

psplit_code psplit_i_cost_match(const psplit_cost_table *table, const psplit_graph *graph,
                                const psplit_graph *optimized, psplit_arena *arena,
                                psplit_diag *diag, psplit_i_cost_map *out) {
  psplit_code code;
  const size_t n_rows = table->rows.n, n_nodes = graph->n_nodes;
  matcher m = {.table = table, .graph = graph, .optimized = optimized, .arena = arena, .diag = diag};
  *out = (psplit_i_cost_map){0};
  if (n_rows >= PSPLIT_NONE / 2)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "%zu rows are too many", n_rows);
  m.n_rows = (uint32_t)n_rows;
  PSPLIT_TRY(psplit_i_cost_names_init(&m.names, graph, arena, diag));
  m.owner = psplit_i_arena_array(arena, n_nodes, sizeof *m.owner);
  m.stack = psplit_i_arena_array(arena, n_nodes + 1, sizeof *m.stack);
  m.is_free = PSPLIT_NEW(arena, uint8_t, n_nodes);
  m.anchor = psplit_i_arena_array(arena, n_rows, sizeof *m.anchor);
  m.same_as = psplit_i_arena_array(arena, n_rows, sizeof *m.same_as);
  m.is_fused = PSPLIT_NEW(arena, uint8_t, n_rows);
  m.goes_on = PSPLIT_NEW(arena, uint8_t, n_rows);
  if (!m.owner || !m.stack || !m.is_free || !m.anchor || !m.same_as || !m.is_fused || !m.goes_on)
    PSPLIT_TRY(psplit_i_nomem(diag));
  memset(m.owner, 0xff, n_nodes * sizeof *m.owner);
  memset(m.anchor, 0xff, n_rows * sizeof *m.anchor);
  for (uint32_t r = 0; r < n_rows; r++) m.same_as[r] = r;
  find_free(&m);
  switch (table->format) {
    case PSPLIT_I_COSTS_OWN: code = match_names(&m, out); break;
    case PSPLIT_I_COSTS_OLIVE: code = match_modules(&m, out); break;
    default: code = match_kernels(&m, out); break;
  }
  if (code == PSPLIT_OK) count_rows(&m, out);
out:
  psplit_i_cost_names_fini(&m.names);
  return code;
}
