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

/* Sets a flag of our own, which other threads look at: an int that is written plainly would race
 * with them. */
static inline void psplit_i_cancel(volatile int *flag) {
  atomic_store_explicit((atomic_int *)(uintptr_t)flag, 1, memory_order_relaxed);
}

/* For who has seen the flag set: it is not looked at again, as it may be cleared meanwhile. */
PSPLIT_MUST_USE static inline psplit_code psplit_i_interrupted(psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_CANCELLED, "interrupted");
}

PSPLIT_MUST_USE static inline psplit_code psplit_i_go_on(const volatile int *cancel,
                                                         psplit_diag *diag) {
  return psplit_i_cancelled(cancel) ? psplit_i_interrupted(diag) : PSPLIT_OK;
}

#endif
