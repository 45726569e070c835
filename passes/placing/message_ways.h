/* Which way tensors go between stages: straight, or by way of others to save messages. */
#ifndef PSPLIT_PASSES_MESSAGE_WAYS_H
#define PSPLIT_PASSES_MESSAGE_WAYS_H

#include "planner.h"

/* What a split takes: the slowest stage, then all. */
typedef struct psplit_i_toll {
  int64_t slowest_ns, sum_ns;
} psplit_i_toll;

/* The slowest stage decides, then the sum. */
static inline bool psplit_i_toll_is_less(psplit_i_toll a, psplit_i_toll b) {
  return a.slowest_ns != b.slowest_ns ? a.slowest_ns < b.slowest_ns : a.sum_ns < b.sum_ns;
}

/* Ways between stages, [n_stages^2] in the planner's arena as planner->next_hop has them; NULL when
 * out of memory. */
uint32_t *psplit_i_ways_new(psplit_planner *planner);

/* The best ways that are found for the planner's plan, in which all send to each other, and what it
 * takes by these. Resets planner->scratch. O(n_stages^4 + n_stages^2 * transfers), with an end to
 * both. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_ways_find(psplit_planner *planner, psplit_diag *diag,
                                               uint32_t *out_next, psplit_i_toll *out_toll);

/* The split (`stage`, [n_nodes]) as the planner's plan, whose tensors go as `next` says (NULL:
 * straight), and of which no bound is told yet. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_ways_adopt(psplit_planner *planner, const uint32_t *stage,
                                                uint32_t *next, psplit_diag *diag);

/* Takes back that stages pass tensors on by choice: all send to each other. */
void psplit_i_pass_nothing_on(psplit_planner *planner);

#endif
