#include "activity.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "diag.h"

struct psplit_activity {
  atomic_int unit;
  atomic_uint_least64_t done, all;
};

psplit_code psplit_activity_create(psplit_diag *diag, psplit_activity **out_activity) {
  psplit_activity *activity = calloc(1, sizeof *activity);
  if (!activity) return psplit_i_nomem(diag);
  *out_activity = activity;
  return PSPLIT_OK;
}

void psplit_activity_destroy(psplit_activity *activity) { free(activity); }

psplit_activity_unit psplit_activity_get(const psplit_activity *activity, uint64_t *out_done,
                                         uint64_t *out_all) {
  *out_done = atomic_load_explicit(&activity->done, memory_order_relaxed);
  *out_all = atomic_load_explicit(&activity->all, memory_order_relaxed);
  return (psplit_activity_unit)atomic_load_explicit(&activity->unit, memory_order_relaxed);
}

void psplit_activity_reset(psplit_activity *activity) {
  psplit_i_activity_begin(activity, PSPLIT_ACTIVITY_NONE, 0);
}

void psplit_i_activity_begin(psplit_activity *activity, psplit_activity_unit unit, uint64_t all) {
  if (!activity) return;
  atomic_store_explicit(&activity->done, 0, memory_order_relaxed);
  atomic_store_explicit(&activity->all, all, memory_order_relaxed);
  atomic_store_explicit(&activity->unit, (int)unit, memory_order_relaxed);
}

void psplit_i_activity_add(psplit_activity *activity, uint64_t n) {
  if (activity) atomic_fetch_add_explicit(&activity->done, n, memory_order_relaxed);
}

void psplit_i_activity_set(psplit_activity *activity, uint64_t done) {
  if (activity) atomic_store_explicit(&activity->done, done, memory_order_relaxed);
}
