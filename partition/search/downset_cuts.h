/* Finds downsets with few and cheap nets across, where stages may end. */
#ifndef PSPLIT_PARTITION_DOWNSET_CUTS_H
#define PSPLIT_PARTITION_DOWNSET_CUTS_H

#include "downsets.h"

/* What lies before and behind each cluster, itself included, in min_time. */
typedef struct psplit_i_depths {
  int64_t *before, *behind; /* [n] */
} psplit_i_depths;

/* Adds downsets of about 1, 2 ... parts of n_parts of all work (in min_time). Of those between the
 * clusters that all downsets of that work hold and those that none holds, some on the lower convex
 * hull of what crosses over their work, on both sides of it: each is a minimum cut. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_downset_cuts_whole(const psplit_i_instance *instance,
                                                        const psplit_i_automaton *automaton,
                                                        const psplit_i_depths *depths,
                                                        uint32_t n_parts, psplit_i_budget *budget,
                                                        psplit_i_downsets *io_set);

/* The same in windows of a topological order, each a part of `stage` (in min_time) long: adds
 * downsets on the hull that hold all that is before the window and nothing behind it. */
PSPLIT_MUST_USE psplit_code psplit_i_downset_cuts_near(const psplit_i_instance *instance,
                                                       const psplit_i_automaton *automaton,
                                                       const uint32_t *order, int64_t stage,
                                                       psplit_i_budget *budget,
                                                       psplit_i_downsets *io_set);

#endif
