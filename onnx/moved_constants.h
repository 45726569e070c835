/* Constant nodes as initializers: what a graph holds as a node that computes nothing is held as a
 * tensor of the graph instead, and is a weight like any other. */
#ifndef PSPLIT_ONNX_MOVED_CONSTANTS_H
#define PSPLIT_ONNX_MOVED_CONSTANTS_H

#include "graph.h"

/* Whether `value` is a dense tensor of floating-point numbers that a Constant node of the main
 * graph makes, and could as well be an initializer: it is not an output of the model, and
 * initializers need not be inputs (since IR version 4). */
bool psplit_i_constant_is_movable(const psplit_i_graph *graph, uint32_t value);

/* The model of the same file with initializers of the same names in place of the Constant nodes
 * that make wanted[n_values], each of which is movable. Errors: as for psplit_model_open. */
PSPLIT_MUST_USE psplit_code psplit_i_constants_move(const psplit_model *model, const bool *wanted,
                                                    psplit_diag *diag, psplit_model **out_model);

#endif
