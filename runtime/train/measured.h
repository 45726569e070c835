/* Collects measurements of devices, and the digest of all weights, on device 0 at the end. */
#ifndef PSPLIT_RUNTIME_TRAIN_MEASURED_H
#define PSPLIT_RUNTIME_TRAIN_MEASURED_H

#include "work.h"

/* All devices at once. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_tell_measured(psplit_i_work *work, psplit_diag *diag);

#endif
