/* Operators that work on each axis by itself, linearly: applied to unit vectors they tell their
 * matrix, and the gradient is the product with it. */
#ifndef PSPLIT_GRADIENT_SEPARABLE_H
#define PSPLIT_GRADIENT_SEPARABLE_H

#include "rule.h"

/* Applies the operator along one axis of x to `units` [1, size, size, 1]: unit vectors as channels,
 * their elements on axis 2. The result is [1, size, size of y, 1]. */
typedef psplit_i_ref (*psplit_i_axis_fn)(psplit_i_at *at, psplit_i_ref units, int32_t axis,
                                         void *data);

/* The gradient g [..., y size, ...] of an operator's output along `axis` to that of its input 0. */
psplit_i_ref psplit_i_separable(psplit_i_at *at, psplit_i_ref g, int32_t axis, int32_t rank,
                                psplit_i_axis_fn apply, void *data);

#endif
