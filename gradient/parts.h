/* The gradient of a weight in parts: what nodes far from each other give to it is summed over
 * micro-batches for each by itself, and added up once, by the update. */
#ifndef PSPLIT_GRADIENT_PARTS_H
#define PSPLIT_GRADIENT_PARTS_H

#include "gradient.h"

/* Marks the weights among the trainables in b->apart, so that differentiation keeps contributions
 * apart. NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_parts_begin(psplit_gradient *gradient, psplit_diag *diag);
/* From b->contributions, and of other trainables from sums[n_trainables], the parts with their
 * names; with `accumulate` those of weights are added to what they were before. Sets b->failed when
 * out of memory. O(contributions log contributions). */
void psplit_i_parts_make(psplit_gradient *gradient, const psplit_i_ref *sums, bool accumulate);
/* Warns once of trainables without a gradient; returns how many have one. O(trainables). */
uint32_t psplit_i_parts_say_missing(const psplit_gradient *gradient, const psplit_logger *logger);

#endif
