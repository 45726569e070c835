/* Evaluation: the loss of data that is not trained on. */
#ifndef PSPLIT_RUNTIME_TRAIN_EVALUATION_H
#define PSPLIT_RUNTIME_TRAIN_EVALUATION_H

#include "work.h"

/* The mean loss over the samples of the evaluation data, each once; work->given_up, and no loss,
 * where any device gave it up. All devices at once. Errors: those of data and of ONNX Runtime. */
PSPLIT_MUST_USE psplit_code psplit_i_evaluate(psplit_i_work *work, psplit_diag *diag, double *out);

#endif
