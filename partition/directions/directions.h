/* Splits for fill-drain (GPipe's schedule): all micro-batches run forward, then all backward, so
 * that a step takes the slowest forward load and the slowest backward load, of whatever stages. */
#ifndef PSPLIT_PARTITION_DIRECTIONS_DIRECTIONS_H
#define PSPLIT_PARTITION_DIRECTIONS_DIRECTIONS_H

#include "result.h"

/* A split of a problem for throughput: out_stage[nodes], out_entry[stages] of its devices, and what
 * no such split is below. Errors: those of a solver. */
typedef psplit_code (*psplit_i_directions_split)(const psplit_problem *problem,
                                                 const psplit_partition_options *options,
                                                 psplit_diag *diag, uint32_t *out_stage,
                                                 uint32_t *out_entry, int64_t *out_bound);

/* The split of request->problem with the least sum of the largest forward and the largest backward
 * load that is found, and a bound: splits for throughput with weights on the two directions, their
 * orders divided by two limits, then all downsets (two_limits.h), then all splits of few clusters.
 * Errors: UNSUPPORTED (no node is backward), and those of `split`. */
PSPLIT_MUST_USE psplit_code psplit_i_directions_place(const psplit_i_solver_request *request,
                                                      psplit_i_directions_split split,
                                                      psplit_i_result *out_result);

#endif
