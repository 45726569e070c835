/* Routes of tensors between stages: direct, or relayed by other stages to save messages. */
#ifndef PSPLIT_PASSES_MESSAGE_ROUTES_H
#define PSPLIT_PASSES_MESSAGE_ROUTES_H

#include "planner.h"

/* The cost of a split with its routes: the slowest stage, and the sum over stages. */
typedef struct psplit_i_route_cost {
  int64_t slowest_ns, sum_ns;
} psplit_i_route_cost;

/* Compares by the slowest stage, and then by the sum. */
static inline bool psplit_i_route_cost_is_less(psplit_i_route_cost a, psplit_i_route_cost b) {
  return a.slowest_ns != b.slowest_ns ? a.slowest_ns < b.slowest_ns : a.sum_ns < b.sum_ns;
}

/* Routes between stages, [n_stages^2] in the planner's arena, in the form of planner->next_hop.
 * NULL when out of memory. */
uint32_t *psplit_i_routes_new(psplit_planner *planner);

/* Finds good routes for the planner's plan, in which all stages are linked directly, and the cost
 * of the plan with them. Resets planner->scratch. O(n_stages^4 + n_stages^2 * transfers), with a
 * limit on both. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_routes_find(psplit_planner *planner, psplit_diag *diag,
                                                 uint32_t *out_next, psplit_i_route_cost *out_cost);

/* Makes the split `stage` [n_nodes] the planner's plan, with routes `next` (NULL: direct) and no
 * bound. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_routes_adopt(psplit_planner *planner, const uint32_t *stage,
                                                  uint32_t *next, psplit_diag *diag);

/* Removes chosen routes, so that all stages are linked directly again. */
void psplit_i_pass_nothing_on(psplit_planner *planner);

#endif
