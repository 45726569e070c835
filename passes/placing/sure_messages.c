/* The cost of messages that stages pay in any case, even with copies.
 *
 * Let u and v be neighbours on a path. A stage with v but without u receives a message, or computes
 * u and all of its ancestors itself, and pays the lesser of the two. A stage with u but without v
 * sends a message if u has an *outlet*: a single supernode in which all paths from u to the model's
 * outputs end. Without sending, the stage would use u only if it held the outlet, and then it would
 * hold v, which lies in between. A stage holds consecutive nodes of a path, so it pays for at most
 * one pair on either side, and a net per pair counts nothing twice. The path is the longest by
 * computation time. */
#include "sure_messages.h"

#include <string.h>

#define MANY (PSPLIT_NONE - 1) /* several outlets */

typedef struct path {
  const psplit_i_builder *b;
  const psplit_i_graph *graph;
  const int64_t *compute_ns;
  uint32_t *outlet;  /* [n_nodes] supernode; MANY; PSPLIT_NONE: it reaches no output */
  uint32_t *next;    /* [n_nodes] successor on the longest path from the node, or PSPLIT_NONE */
  int64_t *ns;       /* [n_nodes] length of that path */
  uint32_t *waiting; /* [n_nodes] stack of nodes whose producers are still to be visited */
  bool *met;         /* [n_nodes] visited */
} path;

static bool counts(const path *p, uint32_t n) {
  return p->b->group[n] != PSPLIT_NONE && !(p->b->planner->node_flags[n] & PSPLIT_I_NODE_DEAD);
}

static uint32_t merged(uint32_t a, uint32_t b) {
  return a == PSPLIT_NONE || a == b ? b : b == PSPLIT_NONE ? a : MANY;
}

/* Updates the outlet and the path of node n from one of its readers. */
static void look_at_reader(path *p, uint32_t n, uint32_t reader) {
  if (!counts(p, reader)) return;
  p->outlet[n] = merged(p->outlet[n], p->outlet[reader]);
  if (p->next[n] != PSPLIT_NONE && p->ns[p->next[n]] >= p->ns[reader]) return;
  p->next[n] = reader;
}

/* Finds the longest path, from the last node to the first. Returns its first node, or
 * PSPLIT_NONE. */
static uint32_t find_path(path *p) {
  uint32_t first = PSPLIT_NONE;
  for (uint32_t i = p->graph->n_nodes; i-- > 0;) {
    const uint32_t n = p->graph->topo[i];
    const psplit_i_node *node = &p->graph->nodes[n];
    p->outlet[n] = p->next[n] = PSPLIT_NONE;
    if (!counts(p, n)) continue;
    for (uint32_t o = 0; o < node->n_outputs; o++) {
      const uint32_t value = node->outputs[o];
      if (value == PSPLIT_NONE) continue;
      if (p->graph->values[value].is_output) p->outlet[n] = merged(p->outlet[n], p->b->group[n]);
      for (uint32_t c = p->graph->consumer_off[value]; c < p->graph->consumer_off[value + 1]; c++)
        look_at_reader(p, n, p->graph->consumers[c]);
    }
    p->ns[n] =
      psplit_i_sat_add_i64(p->compute_ns[n], p->next[n] == PSPLIT_NONE ? 0 : p->ns[p->next[n]]);
    if (first == PSPLIT_NONE || p->ns[n] > p->ns[first]) first = n;
  }
  return first;
}

/* The time to compute the node and all of its ancestors, except nodes visited before. */
static int64_t compute_behind(path *p, uint32_t node) {
  int64_t ns = 0;
  uint32_t n_waiting = 0;
  if (p->met[node]) return 0;
  p->met[node] = true;
  p->waiting[n_waiting++] = node;
  while (n_waiting > 0) {
    const uint32_t n = p->waiting[--n_waiting];
    ns = psplit_i_sat_add_i64(ns, p->compute_ns[n]);
    PSPLIT_FOR_EACH_READ(&p->graph->nodes[n], value) {
      const uint32_t producer = p->graph->values[value].producer;
      if (producer == PSPLIT_NONE || p->met[producer] || !counts(p, producer)) continue;
      p->met[producer] = true;
      p->waiting[n_waiting++] = producer;
    }
  }
  return ns;
}

psplit_code psplit_i_add_sure_messages(psplit_i_builder *b, const psplit_i_copy_costs *costs,
                                       uint32_t kind, psplit_i_charges *io) {
  const uint32_t n_nodes = b->planner->graph->n_nodes;
  const int64_t in_ns = costs->kinds[kind].in.latency_ns;
  const int64_t out_ns = costs->kinds[kind].out.latency_ns;
  path p = {.b = b,
            .graph = b->planner->graph,
            .compute_ns = costs->compute_ns,
            .outlet = PSPLIT_NEW(b->arena, uint32_t, n_nodes),
            .next = PSPLIT_NEW(b->arena, uint32_t, n_nodes),
            .ns = PSPLIT_NEW(b->arena, int64_t, n_nodes),
            .waiting = PSPLIT_NEW(b->arena, uint32_t, n_nodes),
            .met = PSPLIT_NEW(b->arena, bool, n_nodes)};
  if (b->arena->failed) return psplit_i_nomem(b->diag);
  int64_t behind_ns = 0;
  for (uint32_t u = find_path(&p), v; u != PSPLIT_NONE; u = v) {
    v = p.next[u];
    behind_ns = psplit_i_sat_add_i64(behind_ns, compute_behind(&p, u));
    if (v == PSPLIT_NONE) break;
    const uint32_t end = io->off[io->n];
    io->producer[io->n] = u;
    io->reader[end] = v;
    io->kind[io->n] = kind;
    io->recv_ns[io->n] = behind_ns < in_ns ? behind_ns : in_ns;
    io->send_ns[io->n] = p.outlet[u] < MANY ? out_ns : 0;
    io->off[++io->n] = end + 1;
  }
  return PSPLIT_OK;
}
