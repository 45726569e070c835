/* Which initializers are trained, and which constants as if they were some. */
#ifndef PSPLIT_GRADIENT_WEIGHTS_H
#define PSPLIT_GRADIENT_WEIGHTS_H

#include <psplit/gradient.h>

#include "shape.h"

/* Marks the values to train: initializers that match a pattern of options->train, or, without any,
 * floating-point initializers of rank 1 or more in a place where operators have parameters, also
 * behind Identity, Transpose, Reshape and the like; never those that match options->freeze. Where
 * no initializer is in such a place, constants of rank 1 or more that are movable
 * (moved_constants.h) count as initializers; else only those that options->train names. `logger` is
 * told how many are left out for their name alone, and, if anything is trained, what is left out as
 * it is read in the bodies of nodes or in functions of the model.
 * out_trained[n_values]
 * Errors: USAGE (a pattern that matches no such initializer), NOMEM. O(nodes + edges). */
PSPLIT_MUST_USE psplit_code psplit_i_weights_choose(const psplit_i_shapes *shapes,
                                                    const psplit_training_options *options,
                                                    const psplit_logger *logger, psplit_diag *diag,
                                                    bool *out_trained);

/* USAGE: that the model has nothing to train, and why: all that stands where operators have
 * parameters are results of Constant nodes that cannot be moved, or it is read in bodies, or
 * weights are quantised. O(initializers + nodes), and a few thousand looks at nodes for each. */
PSPLIT_MUST_USE psplit_code psplit_i_weights_fail_none(const psplit_i_shapes *shapes,
                                                       psplit_diag *diag);
/* What helps where gradients would have to go through the bodies of a node, to be put after that;
 * "" for an If, which can be inlined, and for a node without bodies. */
const char *psplit_i_without_bodies(const psplit_i_node *node);
/* Whether numbers are so short that only quantised models compute with them. */
bool psplit_i_is_quantised(int32_t elem);

#endif
