/* Orders of a graph's nodes and of a model's functions, for building the index. */
#ifndef PSPLIT_ONNX_GRAPH_ORDER_H
#define PSPLIT_ONNX_GRAPH_ORDER_H

#include "model.h"

/* Fills consumer_off and consumers, in `arena`. O(reads). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_graph_index_consumers(psplit_i_graph *graph,
                                                           psplit_i_arena *arena,
                                                           psplit_diag *diag);
/* Fills topo, in `arena`, from the consumers. O(reads log nodes). Errors: INVALID, which names a
 * cycle; NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_graph_sort(psplit_i_graph *graph, psplit_i_arena *arena,
                                                psplit_diag *diag);
/* Errors: INVALID if functions are recursive; NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_refuse_recursion(const psplit_model *model, psplit_diag *diag);

#endif
