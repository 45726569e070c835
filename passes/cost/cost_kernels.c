/* Which nodes a kernel stands for.
 *
 * A kernel that ONNX Runtime made by fusing does what several nodes do, and its row should have all
 * of them. Where the optimised model is at hand that is exact: a value that both models have stands
 * for the same tensor, so a kernel does what lies between the values it reads and those it makes.
 * Names of kernels give some of these values and nodes too; with names alone, the rest is found
 * from how the graph hangs together:
 *   1. outputs and names give nodes to kernels, and the activations behind these;
 *   2. a fused kernel also gets the nodes before its own that no kernel has, back to those that one
 *      has;
 *   3. a kernel without a node gets the nodes that nobody has and whose turn it was: all that they
 *      read was made before it ran, and nothing that reads them had run yet;
 *   4. what is left goes to the kernel that makes its input: activations, biases, views;
 *   5. kernels without nodes, which reorder or cast, count as part of the one that reads them, else
 *      of the one before. */
#include <stdlib.h>
#include <string.h>

#include "cost_match.h"
#include "operator.h"

/* Kernels that only bring a tensor into another layout or place. */
static bool is_helper(const char *op) { return op && psplit_i_kernel_has(op, PSPLIT_I_OP_LAYOUT); }

/* --- 1. names and outputs --- */

/* What the optimised model says that kernel r makes. */
static uint32_t find_by_outputs(psplit_i_matcher *m, uint32_t r) {
  uint32_t found = PSPLIT_NONE;
  for (uint32_t o = 0; m->optimized && o < m->optimized->nodes[r].n_outputs; o++) {
    const uint32_t v = m->optimized->nodes[r].outputs[o];
    const uint32_t node =
      v == PSPLIT_NONE ? PSPLIT_NONE : psplit_i_maker_of(m->graph, m->optimized->values[v].name);
    if (psplit_i_own(m, node, r))
      found = node;
    else if (node != PSPLIT_NONE && m->owner[node] != r)
      m->same_as[r] = m->owner[node]; /* another layout of what that one made */
  }
  if (found != PSPLIT_NONE) m->same_as[r] = r;
  return found;
}

static psplit_code find_kernel(psplit_i_matcher *m, uint32_t r) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_cost_row *row = psplit_i_row_of(m, r);
  uint32_t found = find_by_outputs(m, r);
  if (found == PSPLIT_NONE && m->same_as[r] == r) {
    psplit_i_kernel_name name;
    PSPLIT_TRY(psplit_i_kernel_name_read(&m->names, row->label, row->op, m->diag, &name));
    if (psplit_i_own(m, name.node, r))
      found = name.node;
    else if (name.node != PSPLIT_NONE)
      m->same_as[r] = m->owner[name.node];
    m->goes_on[r] = found != PSPLIT_NONE && name.goes_on;
  }
  m->anchor[r] = found;
  m->is_fused[r] = found != PSPLIT_NONE && (m->optimized || !row->op ||
                                            strcmp(m->graph->nodes[found].op_type, row->op) != 0);
out:
  return code;
}

/* What kernels do behind the node of their name, each read by the next alone. */
static void claim_chain(psplit_i_matcher *m, uint32_t r) {
  const psplit_i_graph *graph = m->graph;
  for (uint32_t n = m->anchor[r], next; graph->nodes[n].n_outputs == 1; n = next) {
    const uint32_t v = graph->nodes[n].outputs[0];
    if (v == PSPLIT_NONE || graph->consumer_off[v + 1] - graph->consumer_off[v] != 1) break;
    next = graph->consumers[graph->consumer_off[v]];
    if (!psplit_i_node_has(&graph->nodes[next], PSPLIT_I_OP_KERNEL_TAIL) ||
        !psplit_i_own(m, next, r))
      break;
  }
}

/* --- 2. back from what is known --- */

static void claim_backwards(psplit_i_matcher *m, uint32_t row, uint32_t from) {
  uint32_t depth = 0;
  m->stack[depth++] = from;
  while (depth) {
    const psplit_i_node *node = &m->graph->nodes[m->stack[--depth]];
    PSPLIT_FOR_EACH_READ(node, value) {
      const uint32_t p = m->graph->values[value].producer;
      if (p != PSPLIT_NONE && !m->is_free[p] && psplit_i_own(m, p, row)) m->stack[depth++] = p;
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

/* Meets a neighbour of a component: one more member, or a kernel on its rim. */
static void meet(psplit_i_matcher *m, uint32_t node, uint32_t id, uint32_t *of, bool before,
                 component *c, uint32_t *depth) {
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

static psplit_code find_components(psplit_i_matcher *m, uint32_t *of, component_list *out) {
  const psplit_i_graph *graph = m->graph;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t first = graph->topo[i];
    if (m->owner[first] != PSPLIT_NONE || of[first] != PSPLIT_NONE || m->is_free[first]) continue;
    component c = {.first = first, .needed = PSPLIT_NONE, .row = PSPLIT_NONE};
    const uint32_t id = (uint32_t)out->n;
    uint32_t depth = 0;
    of[first] = id;
    m->stack[depth++] = first;
    while (depth) {
      const psplit_i_node *node = &graph->nodes[m->stack[--depth]];
      PSPLIT_FOR_EACH_READ(node, value) {
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

static psplit_code take_turns(psplit_i_matcher *m) {
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
  if (!q.waiting || !q.stack) PSPLIT_FAIL(psplit_i_nomem(m->diag));
  for (uint32_t c = 0; c < q.n; c++) q.waiting[c] = &components.items[c];
  if (q.n) qsort(q.waiting, q.n, sizeof *q.waiting, by_ready);
  for (uint32_t r = 0; r < m->n_rows; r++) {
    if (m->anchor[r] != PSPLIT_NONE || m->same_as[r] != r || is_helper(psplit_i_row_of(m, r)->op))
      continue;
    component *turn = whose_turn(&q, r);
    if (!turn) continue;
    turn->row = r;
    m->anchor[r] = turn->first;
  }
  for (uint32_t n = 0; n < m->graph->n_nodes; n++)
    if (of[n] < components.n) psplit_i_own(m, n, components.items[of[n]].row);
out:
  psplit_i_vec_fini(&components);
  return code;
}

/* --- 4. the rest, by what it reads --- */

static void claim_forwards(psplit_i_matcher *m) {
  for (uint32_t i = 0; i < m->graph->n_nodes; i++) {
    const uint32_t n = m->graph->topo[i];
    uint32_t last = PSPLIT_NONE;
    if (m->owner[n] != PSPLIT_NONE || m->is_free[n]) continue;
    PSPLIT_FOR_EACH_READ(&m->graph->nodes[n], value) {
      const uint32_t p = m->graph->values[value].producer;
      const uint32_t row = p == PSPLIT_NONE ? PSPLIT_NONE : m->owner[p];
      if (row != PSPLIT_NONE && (last == PSPLIT_NONE || row > last)) last = row;
    }
    if (last != PSPLIT_NONE) psplit_i_own(m, n, last);
  }
}

/* --- 5. kernels without nodes --- */

/* The first kernel that reads what row r makes, by the optimised model. */
static uint32_t reader_of(const psplit_i_matcher *m, uint32_t r) {
  const psplit_i_graph *graph = m->optimized;
  uint32_t first = PSPLIT_NONE;
  for (uint32_t o = 0; graph && o < graph->nodes[r].n_outputs; o++) {
    const uint32_t v = graph->nodes[r].outputs[o];
    if (v == PSPLIT_NONE) continue;
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++)
      if (graph->consumers[c] > r && graph->consumers[c] < first) first = graph->consumers[c];
  }
  return first;
}

static void place_helpers(psplit_i_matcher *m) {
  uint32_t last = PSPLIT_NONE;
  for (uint32_t r = m->n_rows; r-- > 0;) { /* readers run later: they have their place by now */
    if (m->anchor[r] != PSPLIT_NONE || m->same_as[r] != r) {
      last = m->same_as[r];
      continue;
    }
    const uint32_t reader = reader_of(m, r);
    if (reader != PSPLIT_NONE)
      m->same_as[r] = m->same_as[reader];
    else if (last != PSPLIT_NONE && psplit_i_row_of(m, r)->op &&
             psplit_i_kernel_has(psplit_i_row_of(m, r)->op, PSPLIT_I_OP_FOR_NEXT))
      m->same_as[r] = last;
  }
  last = PSPLIT_NONE;
  for (uint32_t r = 0; r < m->n_rows; r++) {
    const bool placed = m->anchor[r] != PSPLIT_NONE || m->same_as[r] != r;
    if (placed)
      last = m->same_as[r];
    else if (last != PSPLIT_NONE)
      m->same_as[r] = last;
  }
}

/* --- all of it --- */

psplit_code psplit_i_match_kernels(psplit_i_matcher *m) {
  psplit_code code = PSPLIT_OK;
  const bool profile = m->table->format == PSPLIT_I_COSTS_PROFILE;
  bool any = false;
  for (uint32_t r = 0; r < m->n_rows; r++)
    if (!is_helper(psplit_i_row_of(m, r)->op)) PSPLIT_TRY(find_kernel(m, r));
  /* Of two that a sum could belong to, the one that ran last had both its terms. */
  for (uint32_t r = m->n_rows; profile && r-- > 0;)
    if (m->goes_on[r]) claim_chain(m, r);
  /* What a value is called in another layout belongs to who made it, where that is known by now. */
  for (uint32_t r = 0; r < m->n_rows; r++)
    if (is_helper(psplit_i_row_of(m, r)->op)) PSPLIT_TRY(find_kernel(m, r));
  for (uint32_t r = 0; r < m->n_rows; r++) any |= m->anchor[r] != PSPLIT_NONE;
  if (profile && any) {
    for (uint32_t r = 0; r < m->n_rows; r++)
      if (m->anchor[r] != PSPLIT_NONE && m->is_fused[r]) claim_backwards(m, r, m->anchor[r]);
    if (!m->optimized) PSPLIT_TRY(take_turns(m));
    claim_forwards(m);
    place_helpers(m);
  }
out:
  return code;
}
