/* Keeps state in one stage: the nodes that read it and those that write it. */
#ifndef PSPLIT_PASSES_KEEP_STATE_H
#define PSPLIT_PASSES_KEEP_STATE_H

#include "planner.h"

/* Resolves the names of options.states. Errors: USAGE (no such output or input, a value in two
 * pairs), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_take_states(psplit_planner *planner,
                                                         psplit_diag *diag);

/* Finds planner->states, and puts the nodes that read or write a state into one class of
 * planner->state_class. Needs SHAPES. Errors: USAGE (a named pair whose types contradict each
 * other), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_find_states(psplit_planner *planner,
                                                         psplit_diag *diag);

/* Removes the pairs that the caller did not name. Returns false if there are none. */
bool psplit_i_planner_part_states(psplit_planner *planner);

/* Whether stage[n_nodes] keeps each class in one stage. O(nodes + classes);
 * scratch[n_state_classes]. */
bool psplit_i_states_are_kept(const psplit_planner *planner, const uint32_t *stage,
                              uint32_t *scratch);

/* Whether the value is the input of a state, which a second stage must not read. */
bool psplit_i_planner_reads_state(const psplit_planner *planner, uint32_t node);

#endif
