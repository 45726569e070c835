/* Assigns the stage that needs most memory to the device that has most, and so on. If a stage does
 * not fit then, it fits in no other order. */
#include "order_by_memory.h"

#include <stdlib.h>
#include <string.h>

#include "builder.h"

/* A stage with its demand, or a device with its capacity. */
typedef struct seat {
  uint64_t bytes;
  int64_t ns;       /* time of the whole model on the device */
  const char *name; /* breaks ties, so that the order in the file does not matter */
  uint32_t at;
} seat;

static int compare_seats(const void *a, const void *b) {
  const seat *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
  const int by_name = strcmp(x->name, y->name);
  return by_name ? by_name : x->at < y->at ? -1 : 1;
}

/* The devices available to stages, sorted by memory, then by speed. NULL when out of memory. */
static seat *sorted_devices(psplit_planner *planner) {
  const uint32_t n = planner->n_candidates;
  seat *devices = psplit_i_arena_array(&planner->scratch, n, sizeof *devices);
  for (uint32_t d = 0; devices && d < n; d++)
    devices[d] =
      (seat){psplit_devices_memory_bytes(planner->devices, d),
             psplit_i_planner_total_ns(planner, d), psplit_devices_name(planner->devices, d), d};
  if (devices) qsort(devices, n, sizeof *devices, compare_seats);
  return devices;
}

/* A device with enough memory for each stage of the plan; NULL: there is no such order. */
static psplit_code find_order(psplit_planner *planner, psplit_diag *diag, uint32_t **out) {
  const uint32_t n = planner->options.n_stages;
  seat *stages = psplit_i_arena_array(&planner->scratch, n, sizeof *stages);
  const seat *devices = sorted_devices(planner);
  uint32_t *order = psplit_i_arena_array(&planner->arena, n, sizeof *order);
  *out = NULL;
  if (!stages || !devices || !order) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < n; s++)
    stages[s] = (seat){planner->plan->stages[s].memory_bytes, 0, "", s};
  qsort(stages, n, sizeof *stages, compare_seats);
  bool fits = true;
  for (uint32_t k = 0; k < n; k++) {
    fits &= stages[k].bytes <= devices[k].bytes;
    order[stages[k].at] = planner->device_id[devices[k].at];
  }
  if (fits) *out = order;
  psplit_i_arena_reset(&planner->scratch);
  return PSPLIT_OK;
}

psplit_code psplit_i_fit_by_memory(psplit_planner *planner, bool reorder, bool *out_fits,
                                   uint32_t **out_order, psplit_diag *diag) {
  *out_order = NULL;
  *out_fits = psplit_i_plan_fits(planner);
  if (*out_fits || !reorder || !planner->order_chosen) return PSPLIT_OK;
  return find_order(planner, diag, out_order);
}

psplit_code psplit_i_roomiest_devices(psplit_planner *planner, psplit_diag *diag, uint32_t **out) {
  const uint32_t n = planner->options.n_stages, n_devices = planner->n_candidates;
  const seat *devices = sorted_devices(planner);
  uint8_t *taken = psplit_i_arena_zeroed(&planner->scratch, n_devices, sizeof *taken);
  uint32_t *order = psplit_i_arena_array(&planner->arena, n, sizeof *order);
  if (!devices || !taken || !order) return psplit_i_nomem(diag);
  for (uint32_t k = 0; k < n; k++) taken[devices[k].at] = 1;
  for (uint32_t d = 0, k = 0; d < n_devices; d++)
    if (taken[d]) order[k++] = planner->device_id[d];
  *out = order;
  psplit_i_arena_reset(&planner->scratch);
  return PSPLIT_OK;
}

psplit_code psplit_i_choose_order(psplit_planner *planner, const uint32_t *order,
                                  psplit_diag *diag) {
  const psplit_code code =
    psplit_i_planner_order_devices(planner, order, planner->options.n_stages, diag);
  planner->order_chosen = true;
  return code;
}
