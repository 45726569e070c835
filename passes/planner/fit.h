/* Cuts that fit into memory, whatever their speed. */
#ifndef PSPLIT_PASSES_FIT_H
#define PSPLIT_PASSES_FIT_H

#include "planner.h"

typedef struct psplit_i_fit {
  uint32_t n_stages;  /* that hold the model, each as full as it can be; 0: no number was found */
  uint32_t n_skipped; /* devices in front of them that cannot hold the next group */
  /* Where none was found: a group that alone needs more than the largest device has. */
  uint32_t blocking_node, blocking_value; /* a member, and the largest tensor at its peak */
  uint64_t blocking_bytes;
} psplit_i_fit;

/* Fills devices in their order (the last stands for all beyond it) with groups in topological
 * order, as many to a stage as its memory holds; cuts only where values can be sent. When n_stages
 * are enough, and no device was skipped, group_stage[n_groups] gets the cut of that order into
 * n_stages that fits with the least largest load, and *out_cut is true. group[n_nodes] numbers
 * groups in a topological order of the quotient graph; group_stage NULL: only counts. Pins are not
 * looked at. O(K n log n) for the first fit of n nodes, O(n^2) and more for the cut, of at most a
 * few hundred places. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_fit_memory(psplit_planner *planner, const uint32_t *group,
                                                uint32_t n_groups, uint32_t *group_stage,
                                                psplit_i_fit *out, bool *out_cut,
                                                psplit_diag *diag);

#endif
