/* State in a plan: who reads it and who writes it share a stage. */
#ifndef PSPLIT_PASSES_KEEP_STATE_H
#define PSPLIT_PASSES_KEEP_STATE_H

#include "planner.h"

/* Takes options.states: names become values. Errors: USAGE (no such output or input, a value in two
 * pairs), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_take_states(psplit_planner *planner,
                                                         psplit_diag *diag);

/* Finds planner->states, and puts the nodes that read or write one into one class of
 * planner->state_class each. Needs SHAPES. Errors: USAGE (a named pair whose types contradict each
 * other), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_find_states(psplit_planner *planner,
                                                         psplit_diag *diag);

/* Lets go of pairs that nobody named; false where there are none. */
bool psplit_i_planner_part_states(psplit_planner *planner);

/* Whether stage[n_nodes] keeps each class on one stage. O(nodes + classes), scratch is the
 * caller's: [n_state_classes]. */
bool psplit_i_states_are_kept(const psplit_planner *planner, const uint32_t *stage,
                              uint32_t *scratch);

/* The input of a state: no second stage may read it. */
bool psplit_i_planner_reads_state(const psplit_planner *planner, uint32_t node);

#endif
