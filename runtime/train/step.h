/* A training step: its pieces, the agreement of all devices, and the update of the weights. */
#ifndef PSPLIT_RUNTIME_TRAIN_STEP_H
#define PSPLIT_RUNTIME_TRAIN_STEP_H

#include "work.h"

/* *out_stop: this was the last one. Errors: those of pieces; INVALID (not finite). */
PSPLIT_MUST_USE psplit_code psplit_i_run_step(psplit_i_work *work, psplit_diag *diag,
                                              bool *out_stop);

#endif
