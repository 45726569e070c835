/* The kinds of links between a planner's devices, as the partitioner gets them. */
#ifndef PSPLIT_PASSES_LINKS_H
#define PSPLIT_PASSES_LINKS_H

#include "planner.h"

/* Equal links are of one kind. Only links over which a split may send are counted. */
typedef struct psplit_i_links {
  uint32_t n;               /* number of kinds; 0: no two stages are linked */
  psplit_device_link *link; /* [n] sorted by latency, then by decreasing bandwidth */
  uint32_t *of_pair;        /* [n_stages^2] from-major; 0 for pairs over which no split sends */
} psplit_i_links;

/* Arrays live in `arena`. both_ways: a split may send to earlier stages too, as it does where the
 * order of devices is open. O(n_stages^2 log n_stages). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_links_find(const psplit_planner *planner, bool both_ways,
                                                psplit_i_arena *arena, psplit_diag *diag,
                                                psplit_i_links *out);

/* Whether there is a link from the device of each stage to those of all later ones, and if
 * both_ways, of all others. O(n_stages^2) */
bool psplit_i_all_linked(const psplit_planner *planner, bool both_ways);

#endif
