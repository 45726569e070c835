/* Which stage runs on which device. */
#include "devices_inside.h"
#include "planner.h"

psplit_code psplit_i_planner_find_ways(psplit_planner *planner, psplit_diag *diag) {
  enum { TYPICAL_BYTES = 1 << 20 };
  const uint32_t n = planner->options.n_stages;
  bool all = true;
  planner->next_hop = NULL;
  for (uint32_t i = 0; i < n && all; i++)
    for (uint32_t j = i + 1; j < n && all; j++)
      all = psplit_devices_link(planner->devices, i, j).bytes_per_second > 0;
  if (all) return PSPLIT_OK;
  const size_t n_pairs = (size_t)n * n;
  int64_t *link_ns = psplit_i_arena_array(&planner->scratch, n_pairs, sizeof *link_ns);
  int64_t *scratch = psplit_i_arena_array(&planner->scratch, 2 * (size_t)n, sizeof *scratch);
  planner->next_hop = psplit_i_arena_array(&planner->arena, n_pairs, sizeof *planner->next_hop);
  if (!link_ns || !scratch || !planner->next_hop) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n; j++)
      link_ns[(size_t)i * n + j] =
        psplit_devices_link(planner->devices, i, j).bytes_per_second > 0
          ? psplit_devices_transfer_ns(planner->devices, i, j, TYPICAL_BYTES)
          : -1;
  psplit_i_route_table(n, link_ns, scratch, planner->next_hop);
  psplit_i_arena_reset(&planner->scratch);
  return PSPLIT_OK;
}

static const psplit_devices *given_devices(const psplit_planner *planner) {
  return planner->own_devices ? planner->own_devices : planner->options.devices;
}

/* Classes by device as `device_id` says; the first device of a class stands for it. */
static psplit_code move_classes(psplit_planner *planner, const uint32_t *old_id,
                                psplit_diag *diag) {
  const uint32_t n = planner->n_candidates;
  uint32_t *of_given = psplit_i_arena_array(&planner->scratch, n, sizeof *of_given);
  if (!of_given) return psplit_i_nomem(diag);
  for (uint32_t d = 0; d < n; d++) of_given[old_id[d]] = planner->device_class[d];
  for (uint32_t d = n; d-- > 0;) {
    planner->device_class[d] = of_given[planner->device_id[d]];
    planner->class_device[planner->device_class[d]] = d;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_planner_order_devices(psplit_planner *planner, const uint32_t *order,
                                           psplit_diag *diag) {
  psplit_code code;
  const psplit_devices *given = given_devices(planner);
  const uint32_t n = psplit_devices_count(given), n_first = order ? planner->options.n_stages : 0;
  planner->order_chosen = false;
  if (!order && !planner->ordered) return PSPLIT_OK;
  psplit_i_arena_reset(&planner->scratch);
  uint32_t *old_id = psplit_i_arena_array(&planner->scratch, n, sizeof *old_id);
  uint8_t *used = psplit_i_arena_zeroed(&planner->scratch, n, sizeof *used);
  if (!old_id || !used) return psplit_i_nomem(diag);
  uint32_t at = 0;
  for (uint32_t d = 0; d < n; d++) old_id[d] = planner->device_id[d];
  for (; at < n_first; at++) {
    planner->device_id[at] = order[at];
    used[order[at]] = 1;
  }
  for (uint32_t d = 0; d < n; d++)
    if (!used[d]) planner->device_id[at++] = d;
  psplit_devices *ordered = psplit_i_devices_reorder(given, planner->device_id);
  if (!ordered) return psplit_i_nomem(diag);
  psplit_devices_destroy(planner->ordered);
  planner->devices = planner->ordered = ordered;
  PSPLIT_TRY(move_classes(planner, old_id, diag));
  PSPLIT_TRY(psplit_i_planner_find_ways(planner, diag));
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}
