/* Ifs that hold the work of a model, and how to be rid of them. */
#ifndef PSPLIT_ONNX_INLINE_HINT_H
#define PSPLIT_ONNX_INLINE_HINT_H

#include "graph.h"

/* The If of the main graph whose branches hold the most nodes, if these are more than the graph's
 * own; PSPLIT_NONE without one. O(nodes). */
uint32_t psplit_i_largest_if(const psplit_i_graph *graph);
/* How an If of the main graph can be taken for a branch that runs, as advice that points into the
 * graph; left as it is where that cannot be said. False when out of memory. */
bool psplit_i_inline_hint(const psplit_i_graph *graph, uint32_t node, psplit_i_advice *out);

#endif
