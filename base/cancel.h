/* Ending a call early: the caller's flag (psplit/base.h). */
#ifndef PSPLIT_BASE_CANCEL_H
#define PSPLIT_BASE_CANCEL_H

#include <psplit/base.h>

#include "compat.h"
#include "diag.h"

/* From any thread. */
static inline bool psplit_i_cancelled(const volatile int *cancel) {
  return cancel && atomic_load_explicit(psplit_i_flag(cancel), memory_order_relaxed);
}

/* Sets an internal flag that other threads poll; a plain store would be a data race. */
static inline void psplit_i_cancel(volatile int *flag) {
  atomic_store_explicit((atomic_int *)(uintptr_t)flag, 1, memory_order_relaxed);
}

/* For callers that have seen the flag set: it is not read again, since it may have been cleared. */
PSPLIT_MUST_USE static inline psplit_code psplit_i_interrupted(psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_CANCELLED, "interrupted");
}

PSPLIT_MUST_USE static inline psplit_code psplit_i_go_on(const volatile int *cancel,
                                                         psplit_diag *diag) {
  return psplit_i_cancelled(cancel) ? psplit_i_interrupted(diag) : PSPLIT_OK;
}

#endif
