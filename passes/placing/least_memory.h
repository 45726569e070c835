/* What stages need at least, before any search: memory that is too small for every split. */
#ifndef PSPLIT_PASSES_LEAST_MEMORY_H
#define PSPLIT_PASSES_LEAST_MEMORY_H

#include "planner.h"

typedef struct psplit_i_least_memory {
  bool too_little;  /* no split of these supernodes fits */
  uint32_t device;  /* that cannot hold even the supernode that needs least there, */
  uint64_t n_bytes; /* which is so much; PSPLIT_NONE, 0: each holds one by itself */
  /* Of a supernode that none of the devices can hold, and what it needs on the one where it needs
   * least; PSPLIT_NONE, 0: each fits one. */
  uint32_t node;
  uint64_t node_bytes;
} psplit_i_least_memory;

/* Of the first n_devices devices, n_stages get a stage each, with a supernode at least: there is no
 * such split if fewer than n_stages hold any supernode, if some supernode fits none of them, or if
 * all weights are more than what activations and runtimes leave of all memory. With too_little
 * false there may be none all the same. Ends planner->scratch. O(nodes + reads), and
 * O(supernodes n_devices) at most. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_least_memory_find(psplit_planner *planner, uint32_t n_devices,
                                                       psplit_i_least_memory *out,
                                                       psplit_diag *diag);

#endif
