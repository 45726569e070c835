/* Device entries that no solver needs to tell apart become one: the work of every solver grows with
 * the number of entries. */
#include <string.h>

#include "partition.h"

bool psplit_i_entries_alike(const psplit_device *a, const psplit_device *b) {
  return a->class_id == b->class_id && a->memory_bytes == b->memory_bytes &&
         a->free_comm == b->free_comm;
}

psplit_code psplit_i_devices_merge(const psplit_problem *problem,
                                   const psplit_partition_options *options, psplit_arena *arena,
                                   psplit_problem *out_problem, uint32_t *out_merged) {
  *out_problem = *problem;
  for (uint32_t d = 0; d < problem->n_devices; d++) out_merged[d] = d;
  if (options->max_replicas > 1) return PSPLIT_OK; /* copies stay within an entry */
  psplit_device *devices = PSPLIT_NEW(arena, psplit_device, problem->n_devices);
  if (!devices) return PSPLIT_NOMEM;
  uint32_t n = 0;
  for (uint32_t d = 0; d < problem->n_devices; d++) {
    const psplit_device *device = &problem->devices[d];
    if (device->count == 0) { /* stands between nobody */
      out_merged[d] = PSPLIT_NONE;
      continue;
    }
    uint32_t with = n;
    for (uint32_t k = problem->any_device_order || n == 0 ? 0 : n - 1; k < n && with == n; k++)
      if (psplit_i_entries_alike(&devices[k], device)) with = k;
    out_merged[d] = with;
    if (with == n)
      devices[n++] = *device;
    else
      devices[with].count += device->count;
  }
  if (n == 0) { /* no devices at all: the validator has said so */
    *out_problem = *problem;
    return PSPLIT_OK;
  }
  out_problem->devices = devices;
  out_problem->n_devices = n;
  return PSPLIT_OK;
}

psplit_code psplit_i_devices_tell_apart(const psplit_problem *problem, const uint32_t *merged,
                                        const uint32_t *stage, psplit_arena *arena,
                                        uint32_t *inout_device) {
  const uint32_t n_stages = psplit_problem_n_stages(problem);
  uint32_t *left = PSPLIT_NEW(arena, uint32_t, problem->n_devices);
  bool *holds = PSPLIT_NEW(arena, bool, n_stages);
  if (!left || !holds) return PSPLIT_NOMEM;
  for (uint32_t d = 0; d < problem->n_devices; d++) left[d] = problem->devices[d].count;
  for (uint32_t v = 0; v < problem->n_nodes; v++) holds[stage[v]] = true;
  for (int pass = 0; pass < 2; pass++) /* empty stages get what is left */
    for (uint32_t s = 0; s < n_stages; s++) {
      if (holds[s] != (pass == 0)) continue;
      uint32_t d = 0;
      while (d < problem->n_devices &&
             (left[d] == 0 || (pass == 0 && merged[d] != inout_device[s])))
        d++;
      if (d == problem->n_devices) return PSPLIT_INTERNAL;
      left[d]--;
      inout_device[s] = d;
    }
  return PSPLIT_OK;
}
