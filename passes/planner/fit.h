/* Cuts that fit into memory, regardless of their speed. */
#ifndef PSPLIT_PASSES_FIT_H
#define PSPLIT_PASSES_FIT_H

#include "planner.h"

typedef struct psplit_i_fit {
  /* number of stages that hold the model if each is as full as possible; 0: not found */
  uint32_t n_stages;
  uint32_t n_skipped; /* number of devices in front of these that cannot hold the next group */
  /* If not found: a group that fits no stage of its own, and none with the groups behind it. One of
   * its nodes, its largest tensor at the peak, and what it needs in a stage of its own;
   * PSPLIT_NONE: not known. */
  uint32_t blocking_node, blocking_value;
  uint64_t blocking_bytes;
} psplit_i_fit;

/* Fills devices in their order (the last one stands for all beyond it) with groups in topological
 * order, each up to its memory; cuts only where values can be sent. If n_stages suffice and no
 * device was skipped, group_stage[n_groups] becomes the cut of that order into n_stages that fits
 * and has the least largest load, of those with work in each stage, and *out_cut is true.
 * group[n_nodes] numbers groups in a topological order of the quotient graph. group_stage NULL:
 * only counts. Pins are ignored. O(K n log n) to fill devices with n nodes; O(n^2) or more for the
 * cut, of at most a few hundred places. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_fit_memory(psplit_planner *planner, const uint32_t *group,
                                                uint32_t n_groups, uint32_t *group_stage,
                                                psplit_i_fit *out, bool *out_cut,
                                                psplit_diag *diag);

/* A number of stages that fit on as many devices like `device`: out->n_stages stages, as many as
 * their own number assumes (sequences in flight take memory in each of them), all with work, and
 * the stages of group_stage[n_groups]. Pins, links and other devices are ignored. 0: none was
 * found; then *out_n_assumed is the number of stages for which a group, if any, is too large.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_fit_alike(psplit_planner *planner, const uint32_t *group,
                                               uint32_t n_groups, uint32_t device,
                                               uint32_t *group_stage, psplit_i_fit *out,
                                               uint32_t *out_n_assumed, psplit_diag *diag);

#endif
