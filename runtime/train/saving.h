/* Saving a stage's weights and states to a checkpoint, and restoring them. */
#ifndef PSPLIT_RUNTIME_TRAIN_SAVING_H
#define PSPLIT_RUNTIME_TRAIN_SAVING_H

#include "checkpoint.h"
#include "learner.h"

/* Writes what `learner` owns into the directory `hidden` of a checkpoint in the making. Errors:
 * those of psplit_i_checkpoint_write_stage. */
PSPLIT_MUST_USE psplit_code psplit_i_save_stage(const psplit_i_learner *learner, const char *hidden,
                                                psplit_diag *diag, uint64_t *out_bytes);
/* Takes the place of the first weights and states. Errors: IO, MISMATCH, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_load_stage(psplit_i_learner *learner,
                                                const psplit_i_checkpoint *checkpoint,
                                                psplit_diag *diag);

#endif
