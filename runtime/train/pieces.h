/* The pieces of a step: one stage, one micro-batch, one direction. */
#ifndef PSPLIT_RUNTIME_TRAIN_PIECES_H
#define PSPLIT_RUNTIME_TRAIN_PIECES_H

#include "work.h"

/* What becomes of a failure of ONNX Runtime: none, where it was stopped for a step, or evaluation,
 * that is given up. */
PSPLIT_MUST_USE psplit_code psplit_i_heed(psplit_i_work *work, psplit_code code, psplit_diag *diag);
PSPLIT_MUST_USE psplit_code psplit_i_run_slot(psplit_i_work *work, const psplit_schedule_slot *slot,
                                              psplit_diag *diag);
/* A piece is over, and its results are on their way: notes when, in the timeline and in sums. */
void psplit_i_add_event(psplit_i_work *work, psplit_i_event *event);

#endif
