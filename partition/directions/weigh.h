/* The problem in which forward and backward times are multiplied by a weight each. */
#ifndef PSPLIT_PARTITION_DIRECTIONS_WEIGH_H
#define PSPLIT_PARTITION_DIRECTIONS_WEIGH_H

#include "problem.h"

/* The same problem in which what is forward takes `forward` times as long, and what is backward
 * `backward` times: a node as it says, a net as its producer. No load of a split is then above
 * forward * f + backward * b, where f and b are the split's largest loads of each direction.
 * Without links between pairs. Arrays are the arena's. O(nodes + nets). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_weigh(const psplit_problem *problem, int64_t forward,
                                           int64_t backward, psplit_i_arena *arena,
                                           psplit_problem *out_problem);

#endif
