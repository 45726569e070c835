/* Names that nodes share: ONNX allows them, ONNX Runtime does not. */
#include <inttypes.h>
#include <stdio.h>

#include "intern.h"
#include "planner.h"

typedef struct shared {
  uint32_t n_names; /* of nodes that have the name of one before them in the same graph */
  const char *name; /* the first of them */
} shared;

static psplit_code count(const psplit_i_graph *graph, psplit_diag *diag, shared *io) {
  psplit_code code = PSPLIT_OK;
  psplit_i_intern names;
  psplit_i_intern_init(&names);
  for (uint32_t n = 0; n < graph->n_nodes && code == PSPLIT_OK; n++) {
    const psplit_i_node *node = &graph->nodes[n];
    if (node->name[0]) {
      const uint32_t n_before = names.n;
      if (psplit_i_intern_add(&names, node->name) == PSPLIT_NONE)
        code = psplit_i_nomem(diag);
      else if (names.n == n_before && io->n_names++ == 0)
        io->name = node->name;
    }
    for (uint32_t b = 0; b < node->n_bodies && code == PSPLIT_OK; b++)
      code = count(node->bodies[b], diag, io);
  }
  psplit_i_intern_fini(&names);
  return code;
}

psplit_code psplit_i_say_shared_names(const psplit_planner *planner, psplit_diag *diag) {
  shared s = {0};
  const psplit_code code = count(planner->graph, diag, &s);
  if (code != PSPLIT_OK || s.n_names == 0) return code;
  char more[64] = "";
  if (s.n_names > 1) snprintf(more, sizeof more, ", and %" PRIu32 " more share one", s.n_names - 1);
  psplit_i_say(planner->options.logger, PSPLIT_WARNING,
               "two nodes of one graph are called \"%s\"%s: ONNX Runtime loads neither the model "
               "nor a stage with such nodes",
               s.name, more);
  return PSPLIT_OK;
}
