#include "copies_idle.h"

#include <assert.h>
#include <stdlib.h>

static bool stage_holds(const psplit_planner *planner, const uint32_t *copy_off,
                        const uint32_t *copy_at, uint32_t stage, uint32_t node) {
  if (planner->stage[node] == stage) return true;
  for (uint32_t c = copy_off[node]; c < copy_off[node + 1]; c++)
    if (planner->copies.items[copy_at[c]].stage == stage &&
        planner->copies.items[copy_at[c]].node == node)
      return true;
  return false;
}

/* Whether the node's own stage still has a use for it: a live reader, a receiver, an output. */
static bool used_at_home(const psplit_planner *planner, const uint32_t *copy_off,
                         const uint32_t *copy_at, uint32_t node) {
  const psplit_i_graph *graph = planner->graph;
  const uint32_t home = planner->stage[node];
  for (uint32_t o = 0; o < graph->nodes[node].n_outputs; o++) {
    const uint32_t value = graph->nodes[node].outputs[o];
    if (value == PSPLIT_NONE) continue;
    if (graph->values[value].is_output) return true;
    for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
      const uint32_t reader = graph->consumers[c];
      if (planner->node_flags[reader] & PSPLIT_I_NODE_DEAD) continue;
      if (stage_holds(planner, copy_off, copy_at, home, reader) ||
          !stage_holds(planner, copy_off, copy_at, planner->stage[reader], node))
        return true;
      for (uint32_t k = copy_off[reader]; k < copy_off[reader + 1]; k++) {
        const psplit_plan_copy *copy = &planner->copies.items[copy_at[k]];
        if (copy->node == reader && !stage_holds(planner, copy_off, copy_at, copy->stage, node))
          return true;
      }
    }
  }
  return false;
}

/* Copies of the node that nothing in their stage reads any more, as what reads it stands by now. */
static void drop_unread(psplit_planner *planner, const uint32_t *copy_off, const uint32_t *copy_at,
                        uint32_t node) {
  const psplit_i_graph *graph = planner->graph;
  for (uint32_t k = copy_off[node]; k < copy_off[node + 1]; k++) {
    psplit_plan_copy *copy = &planner->copies.items[copy_at[k]];
    bool read = false;
    for (uint32_t o = 0; o < graph->nodes[node].n_outputs && !read; o++) {
      const uint32_t value = graph->nodes[node].outputs[o];
      for (uint32_t c = value == PSPLIT_NONE ? 0 : graph->consumer_off[value];
           value != PSPLIT_NONE && c < graph->consumer_off[value + 1] && !read; c++)
        read = stage_holds(planner, copy_off, copy_at, copy->stage, graph->consumers[c]);
    }
    if (!read) copy->node = PSPLIT_NONE;
  }
}

/* Whether a stage that does not have the value's node can get it from there. */
static bool can_get(const psplit_planner *planner, uint32_t value, uint32_t stage) {
  const uint32_t home = planner->stage[planner->graph->values[value].producer];
  return home < stage && psplit_i_planner_sendable(planner, value) &&
         psplit_i_planner_transfer_ns(
           planner, home, stage, psplit_i_planner_sent_bytes(planner, value, NULL)) < INT64_MAX;
}

/* What all moves keep: whatever a stage uses is made there, by a node of its own or by a copy, or
 * in an earlier stage that can send it. Here of what the node reads in its own stage, and of what
 * its readers, dead ones and copies as well, have of it in theirs. */
static bool is_in_time(const psplit_planner *planner, const uint32_t *copy_off,
                       const uint32_t *copy_at, uint32_t node) {
  const psplit_i_graph *graph = planner->graph;
  const uint32_t home = planner->stage[node];
  PSPLIT_FOR_EACH_READ(&graph->nodes[node], value) {
    const uint32_t producer = graph->values[value].producer;
    if (producer != PSPLIT_NONE && !stage_holds(planner, copy_off, copy_at, home, producer) &&
        !can_get(planner, value, home))
      return false;
  }
  for (uint32_t o = 0; o < graph->nodes[node].n_outputs; o++) {
    const uint32_t value = graph->nodes[node].outputs[o];
    if (value == PSPLIT_NONE) continue;
    for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
      const uint32_t reader = graph->consumers[c];
      if (!stage_holds(planner, copy_off, copy_at, planner->stage[reader], node) &&
          !can_get(planner, value, planner->stage[reader]))
        return false;
      for (uint32_t k = copy_off[reader]; k < copy_off[reader + 1]; k++) {
        const psplit_plan_copy *copy = &planner->copies.items[copy_at[k]];
        if (copy->node == reader && !stage_holds(planner, copy_off, copy_at, copy->stage, node) &&
            !can_get(planner, value, copy->stage))
          return false;
      }
    }
  }
  return true;
}

/* Whether the node gives its stage work: bounds are of splits that have such nodes in all. */
static bool is_live(const psplit_planner *planner, uint32_t node) {
  return psplit_i_node_runs(planner->node_flags[node]);
}

/* Whether the node may leave its stage: it is a supernode by itself, nothing holds it there, and
 * neither constants nor a stage without a live node would stay behind. */
static bool may_leave(const psplit_planner *planner, const uint32_t *n_live, uint32_t node) {
  const psplit_i_graph *graph = planner->graph;
  if (planner->grouping.next[node] != node ||
      n_live[planner->stage[node]] <= is_live(planner, node) ||
      planner->together[node] != PSPLIT_NONE || planner->options.training ||
      planner->state_class[node] != PSPLIT_NONE)
    return false;
  PSPLIT_FOR_EACH_READ(&graph->nodes[node], value) {
    const uint32_t producer = graph->values[value].producer;
    if (producer != PSPLIT_NONE && (planner->node_flags[producer] & PSPLIT_I_NODE_FREE))
      return false;
  }
  return true;
}

/* Moves the node to a stage where it has a copy that went, unless something would be used before it
 * is made then: what is dead may read it where it is. */
static bool move_to(psplit_planner *planner, const uint32_t *copy_off, const uint32_t *copy_at,
                    uint32_t node, uint32_t stage) {
  const uint32_t home = planner->stage[node];
  planner->stage[node] = stage;
  if (is_in_time(planner, copy_off, copy_at, node)) return true;
  planner->stage[node] = home;
  return false;
}

/* NULL: it has none, or all of them went. */
static psplit_plan_copy *first_copy(const psplit_planner *planner, const uint32_t *copy_off,
                                    const uint32_t *copy_at, uint32_t node) {
  for (uint32_t k = copy_off[node]; k < copy_off[node + 1]; k++)
    if (planner->copies.items[copy_at[k]].node == node) return &planner->copies.items[copy_at[k]];
  return NULL;
}

/* The first of the node's copies that can get its result goes. */
static void send_one(psplit_planner *planner, const uint32_t *copy_off, const uint32_t *copy_at,
                     uint32_t node) {
  for (uint32_t k = copy_off[node]; k < copy_off[node + 1]; k++) {
    psplit_plan_copy *copy = &planner->copies.items[copy_at[k]];
    if (copy->node != node) continue;
    copy->node = PSPLIT_NONE;
    if (is_in_time(planner, copy_off, copy_at, node)) return;
    copy->node = node;
  }
}

psplit_code psplit_i_copies_drop_idle(psplit_planner *planner, bool moving, bool *out_moved,
                                      psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  uint32_t *n_live = PSPLIT_NEW(&planner->scratch, uint32_t, planner->options.n_stages);
  const size_t n_copies = planner->copies.n;
  uint32_t *off = PSPLIT_NEW(&planner->scratch, uint32_t, (size_t)graph->n_nodes + 2);
  uint32_t *at = psplit_i_arena_array(&planner->scratch, n_copies, sizeof *at);
  if (!n_live || !off || !at) return psplit_i_nomem(diag);
  for (uint32_t n = 0; n < graph->n_nodes; n++) n_live[planner->stage[n]] += is_live(planner, n);
  for (size_t c = 0; c < n_copies; c++) off[planner->copies.items[c].node + 2]++;
  for (uint32_t n = 0; n < graph->n_nodes; n++) off[n + 2] += off[n + 1];
  for (uint32_t c = 0; c < n_copies; c++) at[off[planner->copies.items[c].node + 1]++] = c;
  for (uint32_t i = graph->n_nodes; i-- > 0;) {
    const uint32_t n = graph->topo[i];
    drop_unread(planner, off, at, n);
    if (planner->node_flags[n] & PSPLIT_I_NODE_FREE) continue;
    psplit_plan_copy *first = first_copy(planner, off, at, n);
    if (!first || used_at_home(planner, off, at, n)) continue;
    if (moving && may_leave(planner, n_live, n)) {
      const uint32_t home = planner->stage[n];
      first->node = PSPLIT_NONE;
      if (move_to(planner, off, at, n, first->stage)) {
        n_live[home] -= is_live(planner, n);
        n_live[first->stage] += is_live(planner, n);
        *out_moved = true;
        continue;
      }
      first->node = n;
    }
    send_one(planner, off, at, n);
    assert(is_in_time(planner, off, at, n));
  }
  size_t kept = 0;
  for (size_t c = 0; c < n_copies; c++)
    if (planner->copies.items[c].node != PSPLIT_NONE)
      planner->copies.items[kept++] = planner->copies.items[c];
  planner->copies.n = kept;
  return PSPLIT_OK;
}

psplit_code psplit_i_copies_leave_idle(psplit_planner *planner, bool *out, psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  const psplit_plan *plan = planner->plan;
  *out = false;
  bool *used = calloc((size_t)plan->n_stages + 1, sizeof *used);
  if (!used) return psplit_i_nomem(diag);
  for (uint32_t t = 0; t < plan->n_transfers; t++) used[plan->transfers[t].from] = true;
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (graph->values[v].is_output && graph->values[v].producer != PSPLIT_NONE)
      used[planner->stage[graph->values[v].producer]] = true;
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    *out |= is_live(planner, n) && !used[planner->stage[n]];
  free(used);
  return PSPLIT_OK;
}
