/* Checkpoints of a run, and the run that goes on from one. */
#ifndef PSPLIT_RUNTIME_TRAIN_GOING_ON_H
#define PSPLIT_RUNTIME_TRAIN_GOING_ON_H

#include "work.h"

/* All devices at once: writes a checkpoint of the steps done. Errors: IO, LIMIT, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_save(psplit_i_work *work, psplit_diag *diag);
/* Weights and states of the one that is given, in place of the first ones. */
PSPLIT_MUST_USE psplit_code psplit_i_load(psplit_i_work *work, psplit_diag *diag);
/* Where the run goes on: a number of steps means the same only for the same batches. USAGE where
 * they are others. */
PSPLIT_MUST_USE psplit_code psplit_i_find_place(psplit_i_work *work, psplit_diag *diag);

#endif
