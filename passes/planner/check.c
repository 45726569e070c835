/* Independent checks of what passes leave behind. Shares nothing with grouping.c or the solvers. */
#include <inttypes.h>
#include <stdlib.h>

#include "planner.h"

/* Calls for every edge of the operator graph between nodes that are not free:
 * visit(user, from, to, value); stops at the first false. */
static bool for_each_edge(const psplit_planner *planner,
                          bool (*visit)(void *user, uint32_t from, uint32_t to, uint32_t value),
                          void *user) {
  const psplit_i_graph *graph = planner->graph;
  for (uint32_t value = 0; value < graph->n_values; value++) {
    const uint32_t from = graph->values[value].producer;
    if (from == PSPLIT_NONE || (planner->node_flags[from] & PSPLIT_I_NODE_FREE)) continue;
    for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++)
      if (!visit(user, from, graph->consumers[c], value)) return false;
  }
  return true;
}

typedef struct quotient {
  const uint32_t *group;
  uint32_t *n_waiting; /* [n_groups] edges from groups not yet placed */
} quotient;

static bool count_edge(void *user, uint32_t from, uint32_t to, uint32_t value) {
  (void)value;
  const quotient *q = user;
  if (q->group[to] == PSPLIT_NONE) return false; /* a free node may read constants only */
  if (q->group[from] != q->group[to]) q->n_waiting[q->group[to]]++;
  return true;
}

psplit_code psplit_i_check_groups(const psplit_planner *planner, psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  const size_t n = graph->n_nodes;
  psplit_code code = PSPLIT_OK;
  uint32_t *group = malloc((n + 1) * sizeof *group);
  uint32_t *first = calloc(n + 2, sizeof *first);
  uint32_t *members = malloc((n + 1) * sizeof *members);
  uint32_t *n_waiting = calloc(n + 1, sizeof *n_waiting);
  uint32_t *ready = malloc((n + 1) * sizeof *ready);
  if (!group || !first || !members || !n_waiting || !ready) {
    code = psplit_i_nomem(diag);
    goto out;
  }
  psplit_i_grouping_number(&planner->grouping, group);
  uint32_t n_groups = 0;
  for (uint32_t i = 0; i < n; i++) {
    const bool is_free = planner->node_flags[i] & PSPLIT_I_NODE_FREE;
    if ((group[i] == PSPLIT_NONE) != is_free || (!is_free && group[i] >= n)) {
      code = psplit_i_fail(diag, PSPLIT_INTERNAL, "node %" PRIu32 " has no group", i);
      goto out;
    }
    if (is_free) continue;
    if (group[i] >= n_groups) n_groups = group[i] + 1;
    first[group[i] + 1]++;
  }
  for (uint32_t g = 0; g < n_groups; g++) first[g + 1] += first[g];
  uint32_t *fill = n_waiting; /* borrowed before it counts */
  for (uint32_t i = 0; i < n; i++)
    if (group[i] != PSPLIT_NONE) members[first[group[i]] + fill[group[i]]++] = i;
  for (uint32_t g = 0; g < n_groups; g++) n_waiting[g] = 0;

  quotient q = {.group = group, .n_waiting = n_waiting};
  if (!for_each_edge(planner, count_edge, &q)) {
    code = psplit_i_fail(diag, PSPLIT_INTERNAL, "a node marked as constant reads one that is not");
    goto out;
  }
  uint32_t n_ready = 0, n_done = 0;
  for (uint32_t g = 0; g < n_groups; g++)
    if (!n_waiting[g]) ready[n_ready++] = g;
  while (n_done < n_ready) {
    const uint32_t g = ready[n_done++];
    for (uint32_t m = first[g]; m < first[g + 1]; m++) {
      const psplit_i_node *node = &graph->nodes[members[m]];
      for (uint32_t o = 0; o < node->n_outputs; o++) {
        const uint32_t value = node->outputs[o];
        if (value == PSPLIT_NONE) continue;
        for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
          const uint32_t to = group[graph->consumers[c]];
          if (to != g && --n_waiting[to] == 0) ready[n_ready++] = to;
        }
      }
    }
  }
  for (uint32_t g = 0; g < n_groups && code == PSPLIT_OK; g++)
    if (n_waiting[g]) {
      char label[128];
      code = psplit_i_fail(diag, PSPLIT_INTERNAL,
                           "the group of node %s lies on a cycle of groups: not convex",
                           psplit_i_node_label(graph, members[first[g]], label, sizeof label));
    }
out:
  free(ready);
  free(n_waiting);
  free(members);
  free(first);
  free(group);
  return code;
}

/* Whether the stage holds `node` itself or a copy of it. */
static bool holds(const psplit_planner *planner, uint32_t stage, uint32_t node) {
  if (planner->stage[node] == stage) return true;
  size_t low = 0, high = planner->copies.n;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const psplit_plan_copy copy = planner->copies.items[middle];
    if (copy.stage < stage || (copy.stage == stage && copy.node < node))
      low = middle + 1;
    else
      high = middle;
  }
  return low < planner->copies.n && planner->copies.items[low].stage == stage &&
         planner->copies.items[low].node == node;
}

/* What a node in `stage` reads must be there, or come from an earlier stage and be sendable. */
static psplit_code check_reads(const psplit_planner *planner, uint32_t node, uint32_t stage,
                               psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  const psplit_i_node *data = &graph->nodes[node];
  char a[128], b[128];
  for (uint32_t r = 0; r < data->n_inputs + data->n_captures; r++) {
    const uint32_t value =
      r < data->n_inputs ? data->inputs[r] : data->captures[r - data->n_inputs];
    const uint32_t from = value == PSPLIT_NONE ? PSPLIT_NONE : graph->values[value].producer;
    if (from == PSPLIT_NONE || holds(planner, stage, from)) continue;
    if (planner->stage[from] > stage)
      return psplit_i_fail(diag, PSPLIT_INTERNAL,
                           "\"%s\" would go from stage %" PRIu32 " (%s) back to %" PRIu32 " (%s)",
                           graph->values[value].name, planner->stage[from],
                           psplit_i_node_label(graph, from, a, sizeof a), stage,
                           psplit_i_node_label(graph, node, b, sizeof b));
    if (!psplit_i_planner_sendable(planner, value))
      return psplit_i_fail(diag, PSPLIT_INTERNAL,
                           "\"%s\" crosses stages, but its type cannot be sent",
                           graph->values[value].name);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_check_stages(const psplit_planner *planner, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < planner->graph->n_nodes; i++) {
    char label[128];
    if (planner->stage[i] >= planner->options.n_stages)
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "node %s has no stage",
                           psplit_i_node_label(planner->graph, i, label, sizeof label));
    if (planner->pin[i] != PSPLIT_NONE && planner->pin[i] != planner->stage[i] &&
        !(planner->node_flags[i] & PSPLIT_I_NODE_FREE))
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "node %s left the stage it is pinned to",
                           psplit_i_node_label(planner->graph, i, label, sizeof label));
    if (psplit_i_planner_refuses(planner, planner->stage[i], i))
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "node %s is on a device that does not support it",
                           psplit_i_node_label(planner->graph, i, label, sizeof label));
    PSPLIT_TRY(check_reads(planner, i, planner->stage[i], diag));
  }
  for (size_t c = 0; c < planner->copies.n; c++)
    PSPLIT_TRY(
      check_reads(planner, planner->copies.items[c].node, planner->copies.items[c].stage, diag));
out:
  return code;
}
