/* Which device takes which stage, where devices differ in memory alone. */
#ifndef PSPLIT_PASSES_ORDER_BY_MEMORY_H
#define PSPLIT_PASSES_ORDER_BY_MEMORY_H

#include "planner.h"

/* A device for each stage of the planner's plan that has room for it, by its position in the order
 * that was given: order[n_stages] in the planner's arena; *out is NULL where there is none. The
 * order of devices is a chosen one. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_order_by_memory(psplit_planner *planner, psplit_diag *diag,
                                                     uint32_t **out);
/* Whether the plan fits the devices as they stand; else, with `reorder` and where their order is a
 * chosen one, *out_order as above, or NULL. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_fit_by_memory(psplit_planner *planner, bool reorder,
                                                   bool *out_fits, uint32_t **out_order,
                                                   psplit_diag *diag);
/* The devices with the most memory, as many as there are stages, in the order that was given; of
 * equal ones the fastest, then those that are first by name. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_roomiest_devices(psplit_planner *planner, psplit_diag *diag,
                                                      uint32_t **out);
/* Puts stages on these devices, which are as good a choice as those chosen so far. The plan is to
 * be made again. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_choose_order(psplit_planner *planner, const uint32_t *order,
                                                  psplit_diag *diag);

#endif
