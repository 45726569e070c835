/* Time limit for the current step of a cancelled run. */
#ifndef PSPLIT_RUNTIME_TRAIN_PATIENCE_H
#define PSPLIT_RUNTIME_TRAIN_PATIENCE_H

#include "device.h"

typedef struct psplit_i_patience {
  int64_t since_ns; /* when the flag was seen; 0: not yet */
} psplit_i_patience;

/* By who watches the devices of this process, again and again. A step that has not ended
 * PSPLIT_I_PATIENT_MS after the flag was set is given up between two nodes; where that does not
 * help within as long again, it fails and names what hangs. A checkpoint that is being written is
 * waited for. Errors: CANCELLED. */
enum { PSPLIT_I_PATIENT_MS = 200 };
PSPLIT_MUST_USE psplit_code psplit_i_patience_check(psplit_i_patience *patience,
                                                    const volatile int *cancel,
                                                    psplit_i_device *devices, uint32_t n_devices,
                                                    psplit_diag *diag);
/* How long a device that was told to stop may take for it, ns: nobody waits who has cancelled. */
static inline int64_t psplit_i_leave_ns(const psplit_diag *diag) {
  return diag->code == PSPLIT_CANCELLED ? 100000000 : PSPLIT_I_STOP_S * (int64_t)1000000000;
}

#endif
