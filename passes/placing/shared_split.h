/* The least that passing tensors on may lead to: a split through shared memory. */
#ifndef PSPLIT_PASSES_SHARED_SPLIT_H
#define PSPLIT_PASSES_SHARED_SPLIT_H

#include "planner.h"
#include "tied_weights.h"

/* The split through shared memory, where each stage sends one message at most, for all that it
 * sends, and receives one, or another one that was found since: the best over the ways that were
 * found for it. The solution's bound holds for all splits and all ways that tensors may go. */
typedef struct psplit_i_shared_split {
  psplit_solution *solution;  /* NULL: none was found */
  uint32_t *stage;            /* [n_nodes] in the planner's arena, as all here */
  uint32_t *group_stage;      /* the same of the bare problem's nodes */
  uint32_t *next;             /* [n_stages^2] ways */
  int64_t slowest_ns, sum_ns; /* over these: the slowest stage, and all; INT64_MAX: none fits */
  int64_t direct_ns;          /* the slowest stage where all is sent directly */
  uint32_t n_groups;          /* supernodes it is of; 0: not asked yet */
  double left_frac;           /* of the time of the split, for sending directly */
} psplit_i_shared_split;

/* Asks for it, of the planner's supernodes, in place of what `io` holds; the solution is NULL where
 * none is found, or messages have no latency of their own. The planner's plan is another one then.
 * `joined` (with `ties`; else NULL): of splits that keep these weights' users together, what is
 * soon found. Without, any_route_bound_ns becomes its bound. Errors: NOMEM, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_shared_split_find(psplit_planner *planner,
                                                       const psplit_i_tied_weights *ties,
                                                       const uint8_t *joined,
                                                       psplit_i_shared_split *io,
                                                       psplit_diag *diag);
void psplit_i_shared_split_fini(psplit_i_shared_split *shared);

/* Whether no more than the part `open` of the bound lies between it and what was found. */
bool psplit_i_shared_split_is_within(const psplit_i_shared_split *shared, double open);

#endif
