/* Bounds on latency that need no more than a look. */
#include "bounds.h"

/* No latency is below the longest path of least times. */
psplit_code psplit_i_bound_critical_path(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                         int64_t *inout_bound) {
  const psplit_i_instance *instance = query->instance;
  (void)budget; /* as cheap as reading the instance */
  int64_t *end = PSPLIT_NEW(query->request->arena, int64_t, instance->n);
  if (!end) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < instance->n; i++) {
    for (uint32_t k = instance->pred_off[i]; k < instance->pred_off[i + 1]; k++)
      if (end[instance->pred[k]] > end[i]) end[i] = end[instance->pred[k]];
    end[i] += query->automaton->min_time[i];
    if (end[i] > *inout_bound) *inout_bound = end[i];
  }
  return PSPLIT_OK;
}

/* Nor below the least bottleneck: a stage's load is a part of the time. */
psplit_code psplit_i_bound_throughput(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                      int64_t *inout_bound) {
  (void)budget;
  if (query->throughput_bound > *inout_bound) *inout_bound = query->throughput_bound;
  return PSPLIT_OK;
}
