/* Independent checks of what passes leave behind. Shares nothing with grouping.c or the solvers. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* The graph of groups. */
typedef struct quotient {
  const psplit_planner *planner;
  uint32_t n_groups;
  uint32_t *group;                /* [n_nodes] NONE: a free node */
  uint32_t *member_off, *members; /* nodes by group */
  uint32_t *n_waiting;            /* [n_groups] edges from groups not yet placed */
  uint32_t *ready;                /* [n_groups] groups that are placed, or can be */
} quotient;

static psplit_code list_members(quotient *q, psplit_diag *diag) {
  const uint32_t n = q->planner->graph->n_nodes;
  psplit_i_grouping_number(&q->planner->grouping, q->group);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t g = q->group[i];
    const bool is_free = q->planner->node_flags[i] & PSPLIT_I_NODE_FREE;
    if ((g == PSPLIT_NONE) != is_free || (!is_free && g >= n))
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "node %" PRIu32 " has no group", i);
    if (is_free) continue;
    if (g >= q->n_groups) q->n_groups = g + 1;
    q->member_off[g + 1]++;
  }
  for (uint32_t g = 0; g < q->n_groups; g++) q->member_off[g + 1] += q->member_off[g];
  uint32_t *fill = q->ready; /* borrowed before any group is ready */
  memcpy(fill, q->member_off, q->n_groups * sizeof *fill);
  for (uint32_t i = 0; i < n; i++)
    if (q->group[i] != PSPLIT_NONE) q->members[fill[q->group[i]]++] = i;
  return PSPLIT_OK;
}

static bool count_edge(void *user, uint32_t from, uint32_t to, uint32_t value) {
  (void)value;
  const quotient *q = user;
  if (q->group[to] == PSPLIT_NONE) return false; /* a free node may read constants only */
  if (q->group[from] != q->group[to]) q->n_waiting[q->group[to]]++;
  return true;
}

/* Those who read from group `placed` wait for one edge less each time; returns how many groups are
 * ready then. */
static uint32_t release_readers(quotient *q, uint32_t placed, uint32_t n_ready) {
  const psplit_i_graph *graph = q->planner->graph;
  for (uint32_t m = q->member_off[placed]; m < q->member_off[placed + 1]; m++) {
    const psplit_i_node *node = &graph->nodes[q->members[m]];
    for (uint32_t o = 0; o < node->n_outputs; o++) {
      const uint32_t value = node->outputs[o];
      if (value == PSPLIT_NONE) continue;
      for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
        const uint32_t to = q->group[graph->consumers[c]];
        if (to != placed && --q->n_waiting[to] == 0) q->ready[n_ready++] = to;
      }
    }
  }
  return n_ready;
}

/* Kahn's algorithm: a group that is never placed lies on a cycle. */
static psplit_code find_cycle(quotient *q, psplit_diag *diag) {
  uint32_t n_ready = 0;
  if (!for_each_edge(q->planner, count_edge, q))
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "a node marked as constant reads one that is not");
  for (uint32_t g = 0; g < q->n_groups; g++)
    if (!q->n_waiting[g]) q->ready[n_ready++] = g;
  for (uint32_t n_done = 0; n_done < n_ready; n_done++)
    n_ready = release_readers(q, q->ready[n_done], n_ready);
  for (uint32_t g = 0; g < q->n_groups; g++)
    if (q->n_waiting[g]) {
      char label[128];
      return psplit_i_fail(
        diag, PSPLIT_INTERNAL, "the group of node %s lies on a cycle of groups: not convex",
        psplit_i_node_label(q->planner->graph, q->members[q->member_off[g]], label, sizeof label));
    }
  return PSPLIT_OK;
}

psplit_code psplit_i_check_groups(const psplit_planner *planner, psplit_diag *diag) {
  const size_t n = planner->graph->n_nodes;
  psplit_code code;
  quotient q = {.planner = planner,
                .group = malloc((n + 1) * sizeof *q.group),
                .member_off = calloc(n + 2, sizeof *q.member_off),
                .members = malloc((n + 1) * sizeof *q.members),
                .n_waiting = calloc(n + 1, sizeof *q.n_waiting),
                .ready = malloc((n + 1) * sizeof *q.ready)};
  if (!q.group || !q.member_off || !q.members || !q.n_waiting || !q.ready)
    PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(list_members(&q, diag));
  PSPLIT_TRY(find_cycle(&q, diag));
out:
  free(q.ready);
  free(q.n_waiting);
  free(q.members);
  free(q.member_off);
  free(q.group);
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

/* What a node in `stage` reads must be there, or come from an earlier stage, which gives[] it then,
 * and be sendable. */
static psplit_code check_reads(const psplit_planner *planner, uint32_t node, uint32_t stage,
                               bool *gives, psplit_diag *diag) {
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
    gives[planner->stage[from]] = true;
  }
  return PSPLIT_OK;
}

/* Runtimes refuse a model without outputs: a stage with live nodes sends something, or makes an
 * output of the model. */
static psplit_code check_uses(const psplit_planner *planner, bool *gives, psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (graph->values[v].is_output && graph->values[v].producer != PSPLIT_NONE)
      gives[planner->stage[graph->values[v].producer]] = true;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    char label[128];
    if ((planner->facts & PSPLIT_I_FACT_LIVE) && psplit_i_node_runs(planner->node_flags[n]) &&
        !gives[planner->stage[n]])
      return psplit_i_fail(diag, PSPLIT_INTERNAL,
                           "stage %" PRIu32 ", of node %s, would send nothing", planner->stage[n],
                           psplit_i_node_label(graph, n, label, sizeof label));
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_check_stages(const psplit_planner *planner, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  bool *gives = calloc((size_t)planner->options.n_stages + 1, sizeof *gives);
  if (!gives) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < planner->graph->n_nodes; i++) {
    char label[128];
    if (planner->stage[i] >= planner->options.n_stages)
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INTERNAL, "node %s has no stage",
                                psplit_i_node_label(planner->graph, i, label, sizeof label)));
    if (planner->pin[i] != PSPLIT_NONE && planner->pin[i] != planner->stage[i] &&
        !(planner->node_flags[i] & PSPLIT_I_NODE_FREE))
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INTERNAL, "node %s left the stage it is pinned to",
                                psplit_i_node_label(planner->graph, i, label, sizeof label)));
    if (psplit_i_planner_refuses(planner, planner->stage[i], i))
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INTERNAL,
                                "node %s is on a device that does not support it",
                                psplit_i_node_label(planner->graph, i, label, sizeof label)));
    PSPLIT_TRY(check_reads(planner, i, planner->stage[i], gives, diag));
  }
  for (size_t c = 0; c < planner->copies.n; c++)
    PSPLIT_TRY(check_reads(planner, planner->copies.items[c].node, planner->copies.items[c].stage,
                           gives, diag));
  PSPLIT_TRY(check_uses(planner, gives, diag));
out:
  free(gives);
  return code;
}
