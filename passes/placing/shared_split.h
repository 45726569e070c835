/* Splits through shared memory: the relaxation of all relays. */
#ifndef PSPLIT_PASSES_SHARED_SPLIT_H
#define PSPLIT_PASSES_SHARED_SPLIT_H

#include "planner.h"
#include "tied_weights.h"

/* A split through shared memory, where each stage sends at most one message with everything it
 * sends, and receives at most one; or a better one that was found since, by the routes found for
 * it. The bound of the solution holds for all splits and all routes. */
typedef struct psplit_i_shared_split {
  psplit_solution *solution; /* NULL: none was found */
  uint32_t *stage;           /* [n_nodes]; all arrays are in the planner's arena */
  uint32_t *group_stage;     /* the same for the nodes of the bare problem */
  uint32_t *next;            /* [n_stages^2] routes */
  /* with these routes: the slowest stage, and the sum; INT64_MAX: none fits */
  int64_t slowest_ns, sum_ns;
  int64_t direct_ns; /* the slowest stage with direct messages */
  uint32_t n_groups; /* number of supernodes it was made for; 0: not solved yet */
  double left_frac;  /* share of the time of the split that is left for direct messages */
} psplit_i_shared_split;

/* Solves it for the planner's supernodes, and replaces the contents of `io`. The solution is NULL
 * if none is found, or if latency is not charged per message. The planner's plan is changed.
 * `joined` (with `ties`; else NULL): quickly finds a split that keeps these weights' users
 * together. Without it, any_route_bound_ns becomes its bound. Errors: NOMEM, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_shared_split_find(psplit_planner *planner,
                                                       const psplit_i_tied_weights *ties,
                                                       const uint8_t *joined,
                                                       psplit_i_shared_split *io,
                                                       psplit_diag *diag);
void psplit_i_shared_split_fini(psplit_i_shared_split *shared);

/* Whether the relative gap between the bound and the best split is at most `open`. */
bool psplit_i_shared_split_is_within(const psplit_i_shared_split *shared, double open);

#endif
