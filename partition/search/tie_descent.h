/* Local search on ties: less communication, then smaller stage numbers, at the same bottleneck. */
#ifndef PSPLIT_PARTITION_TIE_DESCENT_H
#define PSPLIT_PARTITION_TIE_DESCENT_H

#include "assignment.h"

typedef struct psplit_i_tie_descent_options {
  const uint32_t *order;  /* [n] clusters by their smallest node */
  uint32_t most_together; /* clusters that move at once, >= 1 */
  bool keep_full;         /* no stage becomes empty */
  uint64_t max_steps;     /* pins and edges looked at */
} psplit_i_tie_descent_options;

/* Moves clusters of a valid split over its boundaries while less is sent, or as much and the
 * stages, read in `order`, become lexicographically smaller; no load rises above assignment->value.
 * Does nothing where tensors are passed on or stages have copies. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_descend_ties(const psplit_i_instance *instance,
                                                  const psplit_i_automaton *automaton,
                                                  const psplit_i_tie_descent_options *options,
                                                  psplit_i_assignment *assignment);

#endif
