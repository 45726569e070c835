/* Local search on ties: less communication, then smaller stage numbers, at the same bottleneck. */
#ifndef PSPLIT_PARTITION_TIE_DESCENT_H
#define PSPLIT_PARTITION_TIE_DESCENT_H

#include "assignment.h"

typedef struct psplit_lower_options {
  const uint32_t *order;  /* [n] items by their smallest node */
  uint32_t most_together; /* items that move at once, >= 1 */
  bool keep_full;         /* no stage becomes empty */
  uint64_t max_steps;     /* pins and edges looked at */
} psplit_lower_options;

/* Moves items of a valid split over its cuts while less is sent, or as much and the stages, read in
 * `order`, become lexicographically smaller; no load rises above cut->value. Does nothing where
 * tensors are passed on or stages have copies. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_lower(const psplit_core *core, const psplit_machine *machine,
                                           const psplit_lower_options *options, psplit_cut *cut);

#endif
