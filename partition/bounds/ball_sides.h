/* Capacities for packing balls: how much of the cost of a pair of clusters, or of all pairs of a
 * small net together, balls may use up. */
#ifndef PSPLIT_PARTITION_BALL_SIDES_H
#define PSPLIT_PARTITION_BALL_SIDES_H

#include "balls.h"

/* Limits, each of some pairs that may be apart together: of a pair alone, or of all pairs between
 * two sides of a small net. Whatever fills none of them is no more than is paid, however clusters
 * are divided. */
typedef struct psplit_i_ball_sides {
  uint32_t n;         /* limits */
  uint32_t *pair_off; /* [n + 1] */
  uint32_t *pair;     /* [pair_off[n]] of a limit */
  double *pair_fills; /* [pair_off[n]] how full 1 at the pair makes it */
  uint32_t *off, *of; /* [n_pairs + 1], [off[n_pairs]] limits of a pair */
  double *fills;      /* [off[n_pairs]] the same by pair */
} psplit_i_ball_sides;

/* Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_ball_sides_make(const psplit_i_pairs *pairs,
                                                     const psplit_i_ball_graph *graph,
                                                     psplit_i_arena *arena,
                                                     psplit_i_ball_sides *out);

#endif
