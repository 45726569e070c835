#include "quotient.h"

/* Predecessor lists from successor lists. */
static bool transpose(psplit_i_quotient *q, psplit_i_arena *arena) {
  const uint32_t n_edges = q->succ_off[q->n];
  q->pred_off = PSPLIT_NEW(arena, uint32_t, (size_t)q->n + 2);
  q->pred = psplit_i_arena_array(arena, n_edges, sizeof *q->pred);
  q->pred_bytes = psplit_i_arena_array(arena, n_edges, sizeof *q->pred_bytes);
  if (!q->pred_off || !q->pred || !q->pred_bytes) return false;
  for (uint32_t e = 0; e < n_edges; e++) q->pred_off[q->succ[e] + 2]++;
  for (uint32_t g = 0; g < q->n; g++) q->pred_off[g + 2] += q->pred_off[g + 1];
  for (uint32_t g = 0; g < q->n; g++)
    for (uint32_t e = q->succ_off[g]; e < q->succ_off[g + 1]; e++) {
      const uint32_t at = q->pred_off[q->succ[e] + 1]++;
      q->pred[at] = g;
      q->pred_bytes[at] = q->succ_bytes[e];
    }
  return true;
}

/* Topological order and levels; false for a cycle. */
static bool sort(psplit_i_quotient *q, psplit_i_arena *arena) {
  q->order = psplit_i_arena_array(arena, q->n, sizeof *q->order);
  q->level = PSPLIT_NEW(arena, uint32_t, q->n);
  uint32_t *waiting = psplit_i_arena_array(arena, q->n, sizeof *waiting);
  if (!q->order || !q->level || !waiting) return false;
  uint32_t n_ready = 0;
  for (uint32_t g = 0; g < q->n; g++) {
    waiting[g] = q->pred_off[g + 1] - q->pred_off[g];
    if (!waiting[g]) q->order[n_ready++] = g;
  }
  for (uint32_t done = 0; done < n_ready; done++) {
    const uint32_t g = q->order[done];
    for (uint32_t e = q->succ_off[g]; e < q->succ_off[g + 1]; e++) {
      const uint32_t to = q->succ[e];
      if (q->level[to] < q->level[g] + 1) q->level[to] = q->level[g] + 1;
      if (--waiting[to] == 0) q->order[n_ready++] = to;
    }
  }
  return n_ready == q->n;
}

/* Groups by label: off[n_labels + 1] into items, ascending. PSPLIT_NONE labels are left out. */
static bool by_label(const uint32_t *label, uint32_t n, uint32_t n_labels, psplit_i_arena *arena,
                     uint32_t **out_off, uint32_t **out_items) {
  uint32_t *off = PSPLIT_NEW(arena, uint32_t, (size_t)n_labels + 2);
  uint32_t *items = psplit_i_arena_array(arena, n, sizeof *items);
  if (!off || !items) return false;
  for (uint32_t i = 0; i < n; i++)
    if (label[i] != PSPLIT_NONE) off[label[i] + 2]++;
  for (uint32_t l = 0; l < n_labels; l++) off[l + 2] += off[l + 1];
  for (uint32_t i = 0; i < n; i++)
    if (label[i] != PSPLIT_NONE) items[off[label[i] + 1]++] = i;
  *out_off = off;
  *out_items = items;
  return true;
}

static bool start(psplit_i_quotient *q, uint32_t n, size_t max_edges, psplit_i_arena *arena) {
  *q = (psplit_i_quotient){.n = n};
  q->ns = PSPLIT_NEW(arena, int64_t, n);
  q->pin = psplit_i_arena_array(arena, n, sizeof *q->pin);
  q->succ_off = PSPLIT_NEW(arena, uint32_t, (size_t)n + 1);
  q->succ = psplit_i_arena_array(arena, max_edges, sizeof *q->succ);
  q->succ_bytes = psplit_i_arena_array(arena, max_edges, sizeof *q->succ_bytes);
  if (!q->ns || !q->pin || !q->succ_off || !q->succ || !q->succ_bytes) return false;
  for (uint32_t g = 0; g < n; g++) q->pin[g] = PSPLIT_NONE;
  return true;
}

/* Adds `bytes` to the edge from the group being filled to `to`, which `slot` finds in the row. */
static void add_edge(psplit_i_quotient *q, uint32_t row_start, uint32_t *io_end, uint32_t *slot,
                     uint32_t to, uint64_t bytes) {
  if (slot[to] < row_start || slot[to] >= *io_end || q->succ[slot[to]] != to) {
    slot[to] = *io_end;
    q->succ[*io_end] = to;
    q->succ_bytes[(*io_end)++] = 0;
  }
  q->succ_bytes[slot[to]] = psplit_i_sat_add_u64(q->succ_bytes[slot[to]], bytes);
}

bool psplit_i_quotient_make(const psplit_planner *planner, const uint32_t *group,
                            psplit_i_arena *arena, psplit_i_quotient *out) {
  const psplit_i_graph *graph = planner->graph;
  const uint32_t n = planner->grouping.n_groups;
  uint32_t *off, *members;
  uint32_t *slot = PSPLIT_NEW(arena, uint32_t, n);
  if (!slot || !by_label(group, graph->n_nodes, n, arena, &off, &members) ||
      !start(out, n, graph->consumer_off[graph->n_values], arena))
    return false;
  uint32_t end = 0;
  for (uint32_t g = 0; g < n; g++) {
    const uint32_t row = end;
    for (uint32_t m = off[g]; m < off[g + 1]; m++) {
      const psplit_i_node *node = &graph->nodes[members[m]];
      out->ns[g] = psplit_i_sat_add_i64(out->ns[g], planner->node_ns[members[m]]);
      if (planner->apart[members[m]] != PSPLIT_NONE) out->pin[g] = planner->apart[members[m]];
      for (uint32_t o = 0; o < node->n_outputs; o++) {
        const uint32_t value = node->outputs[o];
        if (value == PSPLIT_NONE) continue;
        const uint64_t bytes = psplit_i_planner_value_bytes(planner, value, NULL);
        for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++)
          if (group[graph->consumers[c]] != g)
            add_edge(out, row, &end, slot, group[graph->consumers[c]], bytes);
      }
    }
    out->succ_off[g + 1] = end;
  }
  return transpose(out, arena) && sort(out, arena);
}

bool psplit_i_quotient_contract(const psplit_i_quotient *fine, const uint32_t *label,
                                uint32_t n_labels, psplit_i_arena *arena, psplit_i_quotient *out) {
  uint32_t *off, *members;
  uint32_t *slot = PSPLIT_NEW(arena, uint32_t, n_labels);
  if (!slot || !by_label(label, fine->n, n_labels, arena, &off, &members) ||
      !start(out, n_labels, fine->succ_off[fine->n], arena))
    return false;
  uint32_t end = 0;
  for (uint32_t g = 0; g < n_labels; g++) {
    const uint32_t row = end;
    for (uint32_t m = off[g]; m < off[g + 1]; m++) {
      const uint32_t member = members[m];
      out->ns[g] = psplit_i_sat_add_i64(out->ns[g], fine->ns[member]);
      if (fine->pin[member] != PSPLIT_NONE) out->pin[g] = fine->pin[member];
      for (uint32_t e = fine->succ_off[member]; e < fine->succ_off[member + 1]; e++)
        if (label[fine->succ[e]] != g)
          add_edge(out, row, &end, slot, label[fine->succ[e]], fine->succ_bytes[e]);
    }
    out->succ_off[g + 1] = end;
  }
  return transpose(out, arena) && sort(out, arena);
}
