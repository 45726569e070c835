/* Converting Constant nodes to initializers, so that they are weights like any other. */
#ifndef PSPLIT_ONNX_MOVED_CONSTANTS_H
#define PSPLIT_ONNX_MOVED_CONSTANTS_H

#include "graph.h"

/* Whether `value` is a dense floating-point tensor of a Constant node of the main graph that could
 * be an initializer: not an output of the model, and in IR version 4 or later, where initializers
 * need not be inputs. */
bool psplit_i_constant_is_movable(const psplit_i_graph *graph, uint32_t value);

/* The model of the same file with initializers of the same names in place of the Constant nodes of
 * wanted[n_values], all movable. Errors: as for psplit_model_open. */
PSPLIT_MUST_USE psplit_code psplit_i_constants_move(const psplit_model *model, const bool *wanted,
                                                    psplit_diag *diag, psplit_model **out_model);

#endif
