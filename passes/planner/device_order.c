/* Assigns devices to stages. */
#include "devices_inside.h"
#include "links.h"
#include "planner.h"

psplit_code psplit_i_planner_find_routes(psplit_planner *planner, psplit_diag *diag) {
  enum { TYPICAL_BYTES = 1 << 20 };
  const uint32_t n = planner->options.n_stages;
  planner->next_hop = NULL;
  planner->passes_on = false;
  if (psplit_i_all_linked(planner, false)) return PSPLIT_OK;
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

/* Classes of the devices as they stand; the first device of a class stands for it. */
static void move_classes(psplit_planner *planner, uint32_t n) {
  planner->n_classed = 0;
  while (planner->n_classed < n && planner->device_id[planner->n_classed] < planner->n_candidates)
    planner->n_classed++;
  for (uint32_t d = planner->n_classed; d-- > 0;) {
    planner->device_class[d] = planner->given_class[planner->device_id[d]];
    planner->class_device[planner->device_class[d]] = d;
  }
}

psplit_code psplit_i_planner_order_devices(psplit_planner *planner, const uint32_t *order,
                                           uint32_t n, psplit_diag *diag) {
  psplit_code code;
  const psplit_devices *given = given_devices(planner);
  const uint32_t n_given = psplit_devices_count(given), n_first = order ? n : 0;
  planner->order_chosen = planner->segmented = false;
  planner->n_replicas = NULL;
  if (!order && !planner->ordered) return PSPLIT_OK;
  psplit_i_arena_reset(&planner->scratch);
  const size_t n_most = (size_t)n_first + n_given;
  uint8_t *used = psplit_i_arena_zeroed(&planner->scratch, n_given, sizeof *used);
  uint32_t *device_id = psplit_i_arena_array(&planner->arena, n_most, sizeof *device_id);
  uint32_t *device_class = psplit_i_arena_zeroed(&planner->arena, n_most, sizeof *device_class);
  if (!used || !device_id || !device_class) return psplit_i_nomem(diag);
  uint32_t at = 0;
  for (; at < n_first; at++) {
    device_id[at] = order[at];
    used[order[at]] = 1;
  }
  for (uint32_t d = 0; d < n_given; d++)
    if (!used[d]) device_id[at++] = d;
  psplit_devices *ordered = psplit_i_devices_pick(given, device_id, at);
  if (!ordered) return psplit_i_nomem(diag);
  psplit_devices_destroy(planner->ordered);
  planner->devices = planner->ordered = ordered;
  planner->device_id = device_id;
  planner->device_class = device_class;
  planner->options.n_stages = order ? n : planner->n_asked;
  move_classes(planner, at);
  PSPLIT_TRY(psplit_i_planner_find_routes(planner, diag));
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}
