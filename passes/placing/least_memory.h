/* A lower bound on the memory of stages, before any search: detects memory that is too small for
 * every split. */
#ifndef PSPLIT_PASSES_LEAST_MEMORY_H
#define PSPLIT_PASSES_LEAST_MEMORY_H

#include "planner.h"

typedef struct psplit_i_least_memory {
  bool too_little; /* no split of these supernodes fits */
  uint32_t device; /* a device that cannot hold even the supernode that needs least on it */
  /* what that supernode needs; PSPLIT_NONE, 0: every device holds at least one supernode */
  uint64_t n_bytes;
  /* A supernode that fits no device: the node at its peak, the largest tensor there, and the least
   * that it needs on any of them; PSPLIT_NONE, 0: every supernode fits some device. */
  uint32_t node, value;
  uint64_t node_bytes;
} psplit_i_least_memory;

/* Checks whether n_stages of the first n_devices devices can each hold at least one supernode.
 * There is no split if fewer devices than that hold any supernode, if some supernode fits no
 * device, or if the weights exceed the memory that activations and runtimes leave. If too_little is
 * false, there may still be no split. Resets planner->scratch. O(nodes + reads), and O(supernodes
 * n_devices) at most. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_least_memory_find(psplit_planner *planner, uint32_t n_devices,
                                                       psplit_i_least_memory *out,
                                                       psplit_diag *diag);

#endif
