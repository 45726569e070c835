/* Nodes that run once, when a session is opened: runtimes fold what follows from constants and from
 * sizes that the file itself fixes. Unlike free ones they read the data that they measure, so they
 * stay with it. */
#include <string.h>

#include "operator.h"
#include "planner.h"

/* Whether a node asks for sizes that are all fixed. */
static bool measures_fixed(const psplit_i_shapes *open, const psplit_i_node *node) {
  if (!psplit_i_node_has(node, PSPLIT_I_OP_FIXED)) return false;
  if (!node->n_inputs || node->inputs[0] == PSPLIT_NONE) return false;
  const psplit_i_vtype *type = psplit_i_shapes_type(open, node->inputs[0]);
  bool fixed = type->kind == PSPLIT_TYPE_TENSOR && type->rank >= 0;
  for (int32_t axis = 0; fixed && axis < type->rank; axis++)
    fixed = psplit_i_dim_is_const(psplit_i_shapes_dims(open), type->dims[axis], &(int64_t){0});
  return fixed;
}

/* Flags of nodes in which all that is folded is free. */
static void fold(const psplit_planner *planner, const psplit_i_shapes *open, uint8_t *flags) {
  const psplit_i_graph *graph = planner->graph;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    const psplit_i_node *node = &graph->nodes[n];
    if (!psplit_i_node_runs(flags[n]) || !(flags[n] & PSPLIT_I_NODE_REPEATABLE)) continue;
    if (measures_fixed(open, node) || psplit_i_node_reads_constants(graph, flags, node))
      flags[n] |= PSPLIT_I_NODE_FREE;
  }
}

static bool measures_any(const psplit_planner *planner) {
  const psplit_i_graph *graph = planner->graph;
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (psplit_i_node_runs(planner->node_flags[n]) &&
        psplit_i_node_has(&graph->nodes[n], PSPLIT_I_OP_FIXED))
      return true;
  return false;
}

psplit_code psplit_i_planner_find_folded(psplit_planner *planner, psplit_diag *diag) {
  const uint32_t n_nodes = planner->graph->n_nodes;
  const psplit_planner_options *options = &planner->options;
  psplit_i_shapes *open = NULL;
  planner->node_folded = NULL;
  if (!measures_any(planner)) return PSPLIT_OK;
  uint8_t *flags = psplit_i_arena_array(&planner->arena, n_nodes, sizeof *flags);
  if (!flags) return psplit_i_nomem(diag);
  memcpy(flags, planner->node_flags, n_nodes);
  /* Sizes that the caller gave are for times alone: a session does not know them. */
  if (options->n_dims || options->n_shapes || planner->seen_in) {
    const psplit_code code = psplit_i_shapes_create(planner->graph, NULL, 0, NULL, diag, &open);
    if (code != PSPLIT_OK) return code;
  }
  fold(planner, open ? open : planner->shapes, flags);
  psplit_i_shapes_destroy(open);
  for (uint32_t n = 0; n < n_nodes; n++)
    flags[n] = psplit_i_node_runs(planner->node_flags[n]) && !psplit_i_node_runs(flags[n]);
  planner->node_folded = flags;
  return PSPLIT_OK;
}
