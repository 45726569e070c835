/* Which way tensors go between stages: straight, or by way of others to save messages. */
#ifndef PSPLIT_PASSES_MESSAGE_ROUTES_H
#define PSPLIT_PASSES_MESSAGE_ROUTES_H

#include "planner.h"

/* What a split takes with its routes: the slowest stage, and the sum over stages. */
typedef struct psplit_i_route_cost {
  int64_t slowest_ns, sum_ns;
} psplit_i_route_cost;

/* The slowest stage decides, then the sum. */
static inline bool psplit_i_route_cost_is_less(psplit_i_route_cost a, psplit_i_route_cost b) {
  return a.slowest_ns != b.slowest_ns ? a.slowest_ns < b.slowest_ns : a.sum_ns < b.sum_ns;
}

/* Routes between stages, [n_stages^2] in the planner's arena as planner->next_hop has them; NULL
 * when out of memory. */
uint32_t *psplit_i_routes_new(psplit_planner *planner);

/* The best routes found for the planner's plan, in which all stages send to each other, and what
 * the plan takes with these. Resets planner->scratch. O(n_stages^4 + n_stages^2 * transfers), with
 * an end to both. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_routes_find(psplit_planner *planner, psplit_diag *diag,
                                                 uint32_t *out_next, psplit_i_route_cost *out_cost);

/* The split (`stage`, [n_nodes]) as the planner's plan, whose tensors go as `next` says (NULL:
 * straight), and of which no bound is told yet. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_routes_adopt(psplit_planner *planner, const uint32_t *stage,
                                                  uint32_t *next, psplit_diag *diag);

/* Takes back that stages pass tensors on by choice: all send to each other. */
void psplit_i_pass_nothing_on(psplit_planner *planner);

#endif
