/* Writes checkpoints during a run, and resumes a run from one. */
#ifndef PSPLIT_RUNTIME_TRAIN_RESUMING_H
#define PSPLIT_RUNTIME_TRAIN_RESUMING_H

#include "work.h"

/* All devices at once: writes a checkpoint of the steps done. Errors: IO, LIMIT, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_save(psplit_i_work *work, psplit_diag *diag);
/* Weights and optimizer states from the checkpoint that is given, in place of the initial ones. */
PSPLIT_MUST_USE psplit_code psplit_i_load(psplit_i_work *work, psplit_diag *diag);
/* Where the run goes on: a number of steps means the same only for the same batches. USAGE where
 * they are others. */
PSPLIT_MUST_USE psplit_code psplit_i_find_place(psplit_i_work *work, psplit_diag *diag);

#endif
