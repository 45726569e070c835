/* Advice for models with most of their work inside an If: branches are not analysed, but a known
 * branch can be inlined. */
#include "inline_hint.h"

static bool is_only_if_named(const psplit_i_graph *graph, uint32_t node, const char *name) {
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (n != node && psplit_i_node_is(&graph->nodes[n], "If") &&
        psplit_i_node_is_called(graph, &graph->nodes[n], name))
      return false;
  return true;
}

/* A name by which --inline-if finds this If and no other; NULL: there is none. */
static const char *name_of(const psplit_i_graph *graph, uint32_t node) {
  const psplit_i_node *if_node = &graph->nodes[node];
  if (*if_node->name && is_only_if_named(graph, node, if_node->name)) return if_node->name;
  for (uint32_t o = 0; o < if_node->n_outputs; o++) {
    const uint32_t v = if_node->outputs[o];
    if (v != PSPLIT_NONE && is_only_if_named(graph, node, graph->values[v].name))
      return graph->values[v].name;
  }
  return NULL;
}

bool psplit_i_inline_hint(const psplit_i_graph *graph, uint32_t node, psplit_i_advice *out) {
  const bool is_if = psplit_i_node_is(&graph->nodes[node], "If");
  const char *name = is_if ? name_of(graph, node) : NULL;
  bool known, taken;
  psplit_diag unsaid = {0};
  if (!name) return true;
  if (psplit_i_if_condition(graph, node, &unsaid, &known, &taken) != PSPLIT_OK) return false;
  out->hint = known ? PSPLIT_HINT_INLINE_KNOWN : PSPLIT_HINT_INLINE_ASSUMED;
  out->arguments[0] = name;
  if (known) out->arguments[1] = taken ? "then" : "else";
  return true;
}

/* Nodes of a body and of those inside it. Depth is bounded by the scan. */
static uint64_t count_inside(const psplit_i_graph *body) {
  uint64_t n = body->n_nodes;
  for (uint32_t i = 0; i < body->n_nodes; i++)
    for (uint32_t b = 0; b < body->nodes[i].n_bodies; b++)
      n += count_inside(body->nodes[i].bodies[b]);
  return n;
}

uint32_t psplit_i_largest_if(const psplit_i_graph *graph) {
  uint32_t largest = PSPLIT_NONE;
  uint64_t most = 0;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_i_node *node = &graph->nodes[n];
    uint64_t inside = 0;
    if (!psplit_i_node_is(node, "If")) continue;
    for (uint32_t b = 0; b < node->n_bodies; b++) inside += count_inside(node->bodies[b]);
    if (inside > most) {
      most = inside;
      largest = n;
    }
  }
  return most > graph->n_nodes ? largest : PSPLIT_NONE;
}
