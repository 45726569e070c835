/* Proof of what differs between a model and the one that is trained. */
#ifndef PSPLIT_VERIFY_TRAINING_MASKS_H
#define PSPLIT_VERIFY_TRAINING_MASKS_H

#include <psplit/gradient.h>

#include "verify.h"

/* That gradient->model is `before` but for what docs/training.md says of it: nodes of batch
 * normalisation that are told to train or not, random operators that read masks, and what is added
 * at the end for the loss; and that the manifest lists these masks. Shares nothing with what makes
 * the edits but the rounding of numbers. Errors: MISMATCH, IO, NOMEM. O(bytes of the structure). */
PSPLIT_MUST_USE psplit_code psplit_i_check_masks(const psplit_i_proof *p,
                                                 const psplit_model *before,
                                                 const psplit_gradient *gradient,
                                                 const psplit_i_training_table *table);

#endif
