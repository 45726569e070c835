/* Opens a model and prints what the index holds, one line of counts, for tests or a first look.
 *   open_model MODEL [names]   `names` adds a line for each node in topological order. */
#include <inttypes.h>
#include <stdio.h>

#include "../../tools/exit_status.h"
#include "graph.h"

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  psplit_diag diag = {0};
  psplit_model *model;
  const psplit_code code = psplit_model_open(argv[1], NULL, &diag, &model);
  if (code != PSPLIT_OK) {
    fprintf(stderr, "error: %s\n", diag.message);
    return cli_exit_status(code);
  }
  const psplit_i_graph *graph = psplit_i_model_graph(model);
  uint32_t n_captures = 0, n_bodies = 0;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    n_captures += graph->nodes[n].n_captures;
    n_bodies += graph->nodes[n].n_bodies;
  }
  printf(
    "ir %" PRId64 " nodes %" PRIu32 " values %" PRIu32 " initializers %" PRIu32 " inputs %" PRIu32
    " outputs %" PRIu32 " bodies %" PRIu32 " captures %" PRIu32 " functions %" PRIu32 "\n",
    psplit_i_model_ir_version(model), graph->n_nodes, graph->n_values, graph->n_initializers,
    graph->n_inputs, graph->n_outputs, n_bodies, n_captures, psplit_i_model_n_functions(model));
  for (uint32_t i = 0; argc > 2 && i < graph->n_nodes; i++) {
    char label[128];
    const psplit_i_node *node = &graph->nodes[graph->topo[i]];
    printf("%s %s\n", node->op_type,
           psplit_i_node_label(graph, graph->topo[i], label, sizeof label));
  }
  psplit_model_close(model);
  return 0;
}
