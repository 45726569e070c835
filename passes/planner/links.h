/* The kinds of links between a planner's devices, as the partitioner is told of them. */
#ifndef PSPLIT_PASSES_LINKS_H
#define PSPLIT_PASSES_LINKS_H

#include "planner.h"

/* Links that are equal are of one kind; only those count over which a split may send. */
typedef struct psplit_i_links {
  uint32_t n;               /* kinds; 0: there are no two stages with a link */
  psplit_device_link *link; /* [n] by latency, of equal ones the widest first */
  uint32_t *of_pair;        /* [n_stages^2] from-major; 0 where no split sends */
} psplit_i_links;

/* Arrays live in `arena`. both_ways: a split may send to earlier stages too, as it does where the
 * order of devices is open. O(n_stages^2 log n_stages). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_links_find(const psplit_planner *planner, bool both_ways,
                                                psplit_i_arena *arena, psplit_diag *diag,
                                                psplit_i_links *out);

#endif
