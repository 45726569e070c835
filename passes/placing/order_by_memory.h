/* Assigns stages to devices that differ only in memory. */
#ifndef PSPLIT_PASSES_ORDER_BY_MEMORY_H
#define PSPLIT_PASSES_ORDER_BY_MEMORY_H

#include "planner.h"

/* Whether the plan fits the devices in their current order. If not, with `reorder` and an order
 * that is free to choose, out_order[n_stages] gets for each stage a device with enough memory, as
 * positions in the given order, in the planner's arena. *out_order is NULL if there is no such
 * assignment, or none was looked for. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_fit_by_memory(psplit_planner *planner, bool reorder,
                                                   bool *out_fits, uint32_t **out_order,
                                                   psplit_diag *diag);
/* The n_stages devices with the most memory, in the given order. Ties prefer faster devices, then
 * names. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_roomiest_devices(psplit_planner *planner, psplit_diag *diag,
                                                      uint32_t **out);
/* Assigns these devices, which are an equally good choice, to the stages. The plan must be made
 * again. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_choose_order(psplit_planner *planner, const uint32_t *order,
                                                  psplit_diag *diag);

#endif
