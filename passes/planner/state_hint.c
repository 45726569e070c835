/* Hints for the case that a state holds the work together: all nodes between those that read it and
 * those that write it share a stage. */

#include "planner.h"

enum { BEHIND = 1, BEFORE = 2 };

typedef struct hint {
  const psplit_planner *planner;
  int64_t *until;   /* [n_nodes + 1] time of the first nodes in topological order */
  uint8_t *reaches; /* [n_nodes] BEHIND or BEFORE a member, or being one */
} hint;

static bool is_member(const hint *h, uint32_t node, uint32_t class_id) {
  return h->planner->state_class[node] == class_id;
}

/* Time from the first member in topological order to the last: no less than between members. */
static int64_t span_ns(const hint *h, const uint32_t *first, const uint32_t *last, uint32_t c) {
  return first[c] == PSPLIT_NONE ? 0 : h->until[last[c] + 1] - h->until[first[c]];
}

/* Marks consumers of marked nodes, or nodes whose consumers are. */
static void spread(const hint *h, uint32_t node, uint8_t mark) {
  const psplit_i_graph *graph = h->planner->graph;
  for (uint32_t o = 0; o < graph->nodes[node].n_outputs; o++) {
    const uint32_t v = graph->nodes[node].outputs[o];
    if (v == PSPLIT_NONE) continue;
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++) {
      uint8_t *other = &h->reaches[graph->consumers[c]], *own = &h->reaches[node];
      if (mark == BEHIND) *other |= *own & BEHIND;
      if (mark == BEFORE) *own |= *other & BEFORE;
    }
  }
}

/* Time of the members and of all that lies between two of them; *out_most: of one node, which no
 * split parts anyway. */
static int64_t between_ns(const hint *h, uint32_t class_id, int64_t *out_most) {
  const psplit_i_graph *graph = h->planner->graph;
  int64_t sum = 0;
  *out_most = 0;
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    h->reaches[n] = is_member(h, n, class_id) ? BEHIND | BEFORE : 0;
  for (uint32_t i = 0; i < graph->n_nodes; i++) spread(h, graph->topo[i], BEHIND);
  for (uint32_t i = graph->n_nodes; i-- > 0;) spread(h, graph->topo[i], BEFORE);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    if (h->reaches[n] != (BEHIND | BEFORE)) continue;
    const int64_t ns = h->planner->node_ns[n];
    sum = psplit_i_sat_add_i64(sum, ns);
    if (ns > *out_most) *out_most = ns;
  }
  return sum;
}

psplit_code psplit_i_say_heavy_state(psplit_planner *planner, psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  const uint32_t n_states = planner->n_state_classes;
  if (planner->options.n_stages < 2 || !n_states || planner->options.no_states) return PSPLIT_OK;
  hint h = {.planner = planner,
            .until = PSPLIT_NEW(&planner->scratch, int64_t, graph->n_nodes + 1),
            .reaches = PSPLIT_NEW(&planner->scratch, uint8_t, graph->n_nodes)};
  uint32_t *first = PSPLIT_NEW(&planner->scratch, uint32_t, n_states);
  uint32_t *last = PSPLIT_NEW(&planner->scratch, uint32_t, n_states);
  if (!h.until || !h.reaches || !first || !last) return psplit_i_nomem(diag);
  for (uint32_t c = 0; c < n_states; c++) first[c] = PSPLIT_NONE;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i], c = planner->state_class[n];
    h.until[i + 1] = psplit_i_sat_add_i64(h.until[i], planner->node_ns[n]);
    if (c == PSPLIT_NONE) continue;
    if (first[c] == PSPLIT_NONE) first[c] = i;
    last[c] = i;
  }
  const int64_t total_ns = h.until[graph->n_nodes];
  for (uint32_t c = 0; c < n_states; c++) {
    if (planner->states.items[c].named || span_ns(&h, first, last, c) <= total_ns / 2) continue;
    int64_t most;
    const int64_t ns = between_ns(&h, c, &most);
    if (ns - most <= total_ns / 2) continue;
    psplit_i_say(
      planner->options.logger, PSPLIT_NOTE,
      "%.0f %% of the work lies between the readers of the state %.120s and its writer, which "
      "share a stage: \"State in a plan\" in docs/generating.md says how to separate them",
      100 * (double)ns / (double)total_ns, graph->values[planner->states.items[c].input].name);
    break;
  }
  return PSPLIT_OK;
}
