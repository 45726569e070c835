/* Consumers of values, topological sorting of nodes, and detection of cycles. */
#include <stdlib.h>
#include <string.h>

#include "graph_order.h"

/* Counting sort by value, nodes ascending. `last[v]` is 1 + the last node seen. */
psplit_code psplit_i_graph_index_consumers(psplit_i_graph *graph, psplit_i_arena *arena,
                                           psplit_diag *diag) {
  const size_t n_values = graph->n_values;
  graph->consumer_off = PSPLIT_NEW(arena, uint32_t, n_values + 1);
  uint32_t *last = calloc(n_values + 1, sizeof *last);
  if (!graph->consumer_off || !last) {
    free(last);
    return psplit_i_nomem(diag);
  }
  uint32_t *count = graph->consumer_off + 1;
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) {
      if (last[value] == n + 1) continue;
      last[value] = n + 1;
      count[value]++;
    }
  for (size_t v = 0; v < n_values; v++) count[v] += graph->consumer_off[v];
  graph->consumers = psplit_i_arena_array(arena, graph->consumer_off[n_values], sizeof(uint32_t));
  if (!graph->consumers) {
    free(last);
    return psplit_i_nomem(diag);
  }
  memset(last, 0, (n_values + 1) * sizeof *last);
  uint32_t *fill = malloc((n_values + 1) * sizeof *fill);
  if (!fill) {
    free(last);
    return psplit_i_nomem(diag);
  }
  memcpy(fill, graph->consumer_off, (n_values + 1) * sizeof *fill);
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) {
      if (last[value] == n + 1) continue;
      last[value] = n + 1;
      graph->consumers[fill[value]++] = n;
    }
  free(fill);
  free(last);
  return PSPLIT_OK;
}

static void heap_push(uint32_t *heap, uint32_t *n, uint32_t node) {
  uint32_t at = (*n)++;
  for (; at && heap[(at - 1) / 2] > node; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = node;
}

static uint32_t heap_pop(uint32_t *heap, uint32_t *n) {
  const uint32_t top = heap[0], moved = heap[--*n];
  uint32_t at = 0;
  for (uint32_t child; (child = 2 * at + 1) < *n; at = child) {
    if (child + 1 < *n && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= moved) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
  return top;
}

/* A node that `node` waits for; one that is waiting always has one. */
static uint32_t awaited(const psplit_i_graph *graph, const uint32_t *waiting, uint32_t node) {
  PSPLIT_FOR_EACH_READ(&graph->nodes[node], value) {
    const uint32_t producer = graph->values[value].producer;
    if (producer != PSPLIT_NONE && waiting[producer]) return producer;
  }
  return PSPLIT_NONE;
}

/* Names one cycle among the nodes that no order could place (`waiting` > 0): following what each
 * waits for ends in one. Overwrites `waiting`. */
static psplit_code report_cycle(const psplit_i_graph *graph, uint32_t *waiting, psplit_diag *diag) {
  enum { MOST_SHOWN = 8 };
  const uint32_t PASSED = UINT32_MAX;
  uint32_t node = 0;
  while (!waiting[node]) node++;
  while (waiting[node] != PASSED) {
    waiting[node] = PASSED;
    node = awaited(graph, waiting, node);
  }
  psplit_i_text path = {0};
  char label[128];
  uint32_t at = node, shown = 0;
  do {
    if (shown++ < MOST_SHOWN)
      psplit_i_text_addf(&path, "%s <- ", psplit_i_node_label(graph, at, label, sizeof label));
    else if (shown == MOST_SHOWN + 1)
      psplit_i_text_puts(&path, "... <- ");
    at = awaited(graph, waiting, at);
  } while (at != node);
  const psplit_code code = psplit_i_fail(diag, PSPLIT_INVALID, "the nodes form a cycle: %s%s",
                                         path.bytes ? path.bytes : "",
                                         psplit_i_node_label(graph, node, label, sizeof label));
  psplit_i_text_fini(&path);
  return code;
}

static bool is_sorted(const psplit_i_graph *graph) {
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) {
      const uint32_t producer = graph->values[value].producer;
      if (producer != PSPLIT_NONE && producer >= n) return false;
    }
  return true;
}

/* Kahn's algorithm, the earliest node of the file first: a sorted file, which almost all are, keeps
 * its order and needs no more than the look that tells. */
psplit_code psplit_i_graph_sort(psplit_i_graph *graph, psplit_i_arena *arena, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const size_t n_nodes = graph->n_nodes;
  graph->topo = psplit_i_arena_array(arena, n_nodes, sizeof *graph->topo);
  if (!graph->topo) return psplit_i_nomem(diag);
  if (is_sorted(graph)) {
    for (uint32_t n = 0; n < n_nodes; n++) graph->topo[n] = n;
    return PSPLIT_OK;
  }
  uint32_t *waiting = calloc(n_nodes + 1, sizeof *waiting); /* distinct values not yet there */
  uint32_t *ready = calloc(n_nodes + 1, sizeof *ready);
  if (!waiting || !ready) {
    code = psplit_i_nomem(diag);
    goto out;
  }
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (graph->values[v].producer != PSPLIT_NONE)
      for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++)
        waiting[graph->consumers[c]]++;
  uint32_t n_ready = 0, n_placed = 0;
  for (uint32_t n = 0; n < n_nodes; n++)
    if (!waiting[n]) heap_push(ready, &n_ready, n);
  while (n_ready) {
    const uint32_t n = heap_pop(ready, &n_ready);
    graph->topo[n_placed++] = n;
    for (uint32_t o = 0; o < graph->nodes[n].n_outputs; o++) {
      const uint32_t v = graph->nodes[n].outputs[o];
      if (v == PSPLIT_NONE) continue;
      for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++)
        if (--waiting[graph->consumers[c]] == 0) heap_push(ready, &n_ready, graph->consumers[c]);
    }
  }
  if (n_placed < n_nodes) code = report_cycle(graph, waiting, diag);
out:
  free(ready);
  free(waiting);
  return code;
}

/* --- calls of functions --- */

/* Appends the functions that a graph calls, its bodies included. Depth is bounded by the scan. */
static bool collect_calls(const psplit_i_graph *graph, psplit_i_text *calls) {
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_i_node *node = &graph->nodes[n];
    if (node->function != PSPLIT_NONE)
      psplit_i_text_add(calls, &node->function, sizeof node->function);
    for (uint32_t i = 0; i < node->n_bodies; i++)
      if (!collect_calls(node->bodies[i], calls)) return false;
  }
  return !calls->failed;
}

/* Kahn's algorithm over the call graph. */
psplit_code psplit_i_refuse_recursion(const psplit_model *model, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const size_t n = model->proto->n_functions;
  if (!n) return PSPLIT_OK;
  psplit_i_text *calls = calloc(n, sizeof *calls);
  uint32_t *n_callers = calloc(n, sizeof *n_callers);
  uint32_t *ready = malloc(n * sizeof *ready);
  if (!calls || !n_callers || !ready) code = psplit_i_nomem(diag);
  for (size_t f = 0; f < n && code == PSPLIT_OK; f++)
    if (!collect_calls(model->functions[f], &calls[f])) code = psplit_i_nomem(diag);
  if (code != PSPLIT_OK) goto out;
  for (size_t f = 0; f < n; f++)
    for (size_t c = 0; c < calls[f].n / sizeof(uint32_t); c++) {
      uint32_t callee;
      memcpy(&callee, calls[f].bytes + c * sizeof callee, sizeof callee);
      n_callers[callee]++;
    }
  size_t n_ready = 0, n_done = 0;
  for (uint32_t f = 0; f < n; f++)
    if (!n_callers[f]) ready[n_ready++] = f;
  while (n_done < n_ready) {
    const uint32_t f = ready[n_done++];
    for (size_t c = 0; c < calls[f].n / sizeof(uint32_t); c++) {
      uint32_t callee;
      memcpy(&callee, calls[f].bytes + c * sizeof callee, sizeof callee);
      if (--n_callers[callee] == 0) ready[n_ready++] = callee;
    }
  }
  for (uint32_t f = 0; f < n && code == PSPLIT_OK; f++)
    if (n_callers[f])
      code = psplit_i_fail(diag, PSPLIT_INVALID, "function \"%s\" calls itself in a circle",
                           model->functions[f]->name);
out:
  for (size_t f = 0; calls && f < n; f++) psplit_i_text_fini(&calls[f]);
  free(calls);
  free(n_callers);
  free(ready);
  return code;
}
