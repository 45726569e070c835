/* Nodes between two devices by minimum cut, in whatever order they stand (Stone, "Multiprocessor
 * scheduling with the aid of network flow algorithms", IEEE TSE 3(1), 1977). */
#ifndef PSPLIT_PASSES_CUT_DEVICES_H
#define PSPLIT_PASSES_CUT_DEVICES_H

#include <psplit/partition.h>

#include "base.h"

/* What counts: the time of each device, weighted, and what is sent between them. */
typedef struct psplit_i_device_cut {
  uint32_t class_a, class_b; /* columns of the problem's times */
  uint32_t weight_a, weight_b;
  uint32_t crossing; /* times what a tensor takes, at both ends */
} psplit_i_device_cut;

/* Sets out_b[n_nodes]: 1 for nodes on b, 0 for those on a, with the least sum of weight times time,
 * sent tensors included, which is *out_value (may be NULL). Nodes that neither runs are on a.
 * *out_found: false where the problem leaves no such cut. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cut_devices(const psplit_problem *problem,
                                                 const psplit_i_device_cut *what, psplit_diag *diag,
                                                 uint8_t *out_b, bool *out_found,
                                                 int64_t *out_value);

#endif
