/* Splits a model into equal slices of its topological order and emits it: what the emitter is
 * tested with on real models, whatever the planner would say.
 *   slice_emit MODEL K DIR [io|sendrecv] [auto|inline|external|reference] [force]
 * Constants are copied to where they are read; everything else that crosses is sent. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <psplit/emit.h>

#include "../../tools/exit_status.h"
#include "base.h"
#include "graph.h"

typedef struct plan_parts {
  const psplit_i_graph *graph;
  uint32_t n_stages;
  uint32_t *node_stage;
  PSPLIT_VEC(psplit_plan_copy) copies;
  PSPLIT_VEC(psplit_plan_transfer) transfers;
} plan_parts;

static int compare_copies(const void *x, const void *y) {
  const psplit_plan_copy *a = x, *b = y;
  if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
  return a->node < b->node ? -1 : a->node > b->node;
}

static int compare_transfers(const void *x, const void *y) {
  const psplit_plan_transfer *a = x, *b = y;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  if (a->value != b->value) return a->value < b->value ? -1 : 1;
  return a->to < b->to ? -1 : a->to > b->to;
}

static bool is_constant(const psplit_i_graph *graph, uint32_t node) {
  return psplit_i_node_is(&graph->nodes[node], "Constant");
}

/* Each (value, reading stage) pair once: `seen` is indexed by stage. */
static void cut_value(plan_parts *p, uint32_t v, bool *seen) {
  const psplit_i_graph *graph = p->graph;
  const uint32_t producer = graph->values[v].producer;
  memset(seen, 0, p->n_stages);
  seen[p->node_stage[producer]] = true;
  for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++) {
    const uint32_t stage = p->node_stage[graph->consumers[c]];
    if (seen[stage]) continue;
    seen[stage] = true;
    if (is_constant(graph, producer)) {
      const psplit_plan_copy copy = {.node = producer, .stage = stage};
      if (!psplit_i_vec_push(&p->copies, copy)) abort();
    } else {
      const psplit_plan_transfer transfer = {
        .value = v, .tensor = graph->values[v].name, .from = p->node_stage[producer], .to = stage};
      if (!psplit_i_vec_push(&p->transfers, transfer)) abort();
    }
  }
}

static uint32_t first_reader(const plan_parts *p, uint32_t node) {
  const psplit_i_graph *graph = p->graph;
  const uint32_t v = graph->nodes[node].outputs[0];
  uint32_t first = PSPLIT_NONE;
  for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++)
    if (p->node_stage[graph->consumers[c]] < first) first = p->node_stage[graph->consumers[c]];
  return first == PSPLIT_NONE ? p->node_stage[node] : first;
}

static void make_plan(plan_parts *p) {
  const psplit_i_graph *graph = p->graph;
  p->node_stage = calloc((size_t)graph->n_nodes + 1, sizeof *p->node_stage);
  bool *seen = calloc(p->n_stages, sizeof *seen);
  if (!p->node_stage || !seen) abort();
  uint64_t n_sliced = 0, at = 0; /* nodes but constants */
  for (uint32_t n = 0; n < graph->n_nodes; n++) n_sliced += !is_constant(graph, n);
  for (uint32_t i = 0; i < graph->n_nodes; i++)
    if (!is_constant(graph, graph->topo[i]))
      p->node_stage[graph->topo[i]] = (uint32_t)(at++ * p->n_stages / n_sliced);
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (is_constant(graph, n)) p->node_stage[n] = first_reader(p, n);
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (graph->values[v].producer != PSPLIT_NONE) cut_value(p, v, seen);
  free(seen);
  if (p->copies.n) qsort(p->copies.items, p->copies.n, sizeof *p->copies.items, compare_copies);
  if (p->transfers.n)
    qsort(p->transfers.items, p->transfers.n, sizeof *p->transfers.items, compare_transfers);
}

static psplit_code emit(const psplit_model *model, plan_parts *p, const char *directory,
                        const psplit_emit_options *options, psplit_diag *diag) {
  psplit_plan_stage *stages = calloc(p->n_stages, sizeof *stages);
  if (!stages) abort();
  for (uint32_t s = 0; s < p->n_stages; s++) stages[s].device = "cpu";
  for (uint32_t n = 0; n < p->graph->n_nodes; n++) stages[p->node_stage[n]].n_nodes++;
  for (size_t c = 0; c < p->copies.n; c++) {
    stages[p->copies.items[c].stage].n_nodes++;
    stages[p->copies.items[c].stage].n_duplicated++;
  }
  const psplit_plan plan = {.n_nodes = p->graph->n_nodes,
                            .node_stage = p->node_stage,
                            .n_stages = p->n_stages,
                            .stages = stages,
                            .n_copies = (uint32_t)p->copies.n,
                            .copies = p->copies.items,
                            .n_transfers = (uint32_t)p->transfers.n,
                            .transfers = p->transfers.items,
                            .objective = "throughput",
                            .solver = "slices",
                            .device_order = "given",
                            .bound = "none",
                            .cost_source = "given"};
  const psplit_code code = psplit_emit(model, &plan, directory, options, diag);
  free(stages);
  return code;
}

static int position(const char *word, const char *const *words, int n) {
  for (int i = 0; i < n; i++)
    if (strcmp(word, words[i]) == 0) return i;
  fprintf(stderr, "error: \"%s\"?\n", word);
  exit(2);
}

int main(int argc, char **argv) {
  static const char *const boundaries[] = {"sendrecv", "io"};
  static const char *const weights[] = {"auto", "inline", "external", "reference"};
  if (argc < 4) return 2;
  psplit_diag diag = {0};
  psplit_model *model;
  psplit_code code = psplit_model_open(argv[1], NULL, &diag, &model);
  if (code != PSPLIT_OK) {
    fprintf(stderr, "error: %s\n", diag.message);
    return cli_exit_status(code);
  }
  psplit_emit_options options = {.struct_size = sizeof options};
  if (argc > 4) options.boundary = (psplit_boundary)position(argv[4], boundaries, 2);
  if (argc > 5) options.weights = (psplit_weights)position(argv[5], weights, 4);
  options.replace = argc > 6;
  plan_parts parts = {.graph = psplit_i_model_graph(model),
                      .n_stages = (uint32_t)strtoul(argv[2], NULL, 10)};
  make_plan(&parts);
  code = emit(model, &parts, argv[3], &options, &diag);
  if (code != PSPLIT_OK) fprintf(stderr, "error: %s\n", diag.message);
  free(parts.node_stage);
  psplit_i_vec_fini(&parts.copies);
  psplit_i_vec_fini(&parts.transfers);
  psplit_model_close(model);
  return cli_exit_status(code);
}
