#include "patience.h"

#include "cancel.h"
#include "queue.h"

static psplit_code fail_naming(const psplit_i_device *devices, uint32_t n_devices,
                               psplit_diag *diag) {
  const char *late = NULL;
  for (uint32_t d = 0; d < n_devices && !late; d++) late = atomic_load(&devices[d].watch.file);
  return psplit_i_fail(diag, PSPLIT_CANCELLED,
                       "interrupted; the step under way was left, as %s did not end within "
                       "%.1g s",
                       late ? late : "other devices", 2e-3 * PSPLIT_I_PATIENT_MS);
}

psplit_code psplit_i_patience_check(psplit_i_patience *p, const volatile int *cancel,
                                    psplit_i_device *devices, uint32_t n_devices,
                                    psplit_diag *diag) {
  static const int64_t MS = 1000000;
  bool finishes = false;
  if (!psplit_i_cancelled(cancel)) return PSPLIT_OK;
  for (uint32_t d = 0; d < n_devices; d++) finishes |= atomic_load(&devices[d].watch.finishes);
  if (finishes || !p->since_ns) p->since_ns = psplit_i_now_ns();
  const int64_t ms = (psplit_i_now_ns() - p->since_ns) / MS;
  if (ms >= 2 * PSPLIT_I_PATIENT_MS) return fail_naming(devices, n_devices, diag);
  for (uint32_t d = 0; d < n_devices && ms >= PSPLIT_I_PATIENT_MS; d++)
    psplit_i_watch_give_up(&devices[d].watch);
  return PSPLIT_OK;
}
