/* Advice on inlining Ifs that contain most of a model. */
#ifndef PSPLIT_ONNX_INLINE_HINT_H
#define PSPLIT_ONNX_INLINE_HINT_H

#include "graph.h"

/* The If of the main graph with the most nodes in its branches, if these are more than the graph's
 * own; otherwise PSPLIT_NONE. O(nodes). */
uint32_t psplit_i_largest_if(const psplit_i_graph *graph);
/* Advice on inlining a node of the main graph, pointing into the graph; unchanged if it is no If,
 * or there is none. False when out of memory. */
bool psplit_i_inline_hint(const psplit_i_graph *graph, uint32_t node, psplit_i_advice *out);

#endif
