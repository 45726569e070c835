/* Assigns nodes to two devices by minimum cut, without regard to order (Stone, "Multiprocessor
 * scheduling with the aid of network flow algorithms", IEEE TSE 3(1), 1977). */
#ifndef PSPLIT_PASSES_CUT_DEVICES_H
#define PSPLIT_PASSES_CUT_DEVICES_H

#include <psplit/partition.h>

#include "base.h"

/* The objective: the weighted time of each device, and the tensors between them. */
typedef struct psplit_i_device_cut {
  uint32_t class_a, class_b; /* columns of the problem's times */
  uint32_t weight_a, weight_b;
  uint32_t crossing; /* factor of the times of tensors, at both ends */
} psplit_i_device_cut;

/* Sets out_b[n_nodes] to 1 for nodes on device b and to 0 for those on a, such that the weighted
 * sum of times and transfers is minimal. The minimum is *out_value (may be NULL). Nodes that
 * neither device runs are on a. *out_found is false if the problem permits no such cut. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cut_devices(const psplit_problem *problem,
                                                 const psplit_i_device_cut *what, psplit_diag *diag,
                                                 uint8_t *out_b, bool *out_found,
                                                 int64_t *out_value);

#endif
