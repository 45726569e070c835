/* What a split takes in truth where links differ between pairs of devices: each transfer counts
 * over the link between its two stages, as in the plan. */
#ifndef PSPLIT_PASSES_PAIRS_H
#define PSPLIT_PASSES_PAIRS_H

#include "builder.h"

typedef struct psplit_i_pairs {
  const psplit_planner *planner;
  const psplit_problem *problem; /* of the planner; its own times of transfers do not count */
  int64_t *load_ns, *ready_ns;   /* [n_stages] */
  uint32_t *wants, *held;        /* [n_stages] net that the stage reads, or has */
  psplit_i_hop *hops;            /* [n_stages] */
  uint8_t *arcs;                 /* [n_stages^2] for latency; else NULL */
  int64_t sum_ns;                /* of the loads that were counted last */
} psplit_i_pairs;

/* Arrays live in `arena`. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_init(const psplit_planner *planner,
                                                const psplit_problem *problem,
                                                psplit_i_arena *arena, psplit_diag *diag,
                                                psplit_i_pairs *out);

/* The objective of a split that keeps the order of stages; INT64_MAX where a tensor has no way.
 * stage[problem->n_nodes]. O(pins + n_stages), and n_stages^2 for latency and where stages pass
 * tensors on. */
int64_t psplit_i_pairs_value_ns(psplit_i_pairs *pairs, const uint32_t *stage);

/* Improves a split that meets the problem's demands by moves of single nodes, and of whole stages
 * to other devices: while its value falls, or its loads add up to less. Stops at `enough_ns`, after
 * about `max_steps` pins, and where no move helps. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_improve(psplit_i_pairs *pairs,
                                                   const psplit_partition_options *options,
                                                   int64_t enough_ns, uint64_t max_steps,
                                                   psplit_diag *diag, uint32_t *inout_stage);

#endif
