/* A lower bound over all splits and all routes of their tensors: stages may pass on what others
 * made. */
#ifndef PSPLIT_PARTITION_ANY_ROUTE_H
#define PSPLIT_PARTITION_ANY_ROUTE_H

#include <psplit/partition.h>

/* Measures the split with the best routes that are known: *out_ns. stage[n_nodes]. Errors: any. */
typedef psplit_code (*psplit_i_measure)(void *with, const uint32_t *stage, psplit_diag *diag,
                                        int64_t *out_ns);

/* Where the optimum over all splits and routes lies. */
typedef struct psplit_i_optimum_range {
  int64_t bound_ns; /* a lower bound */
  int64_t value_ns; /* of the best split known */
} psplit_i_optimum_range;

/* `problem` has shared communication and messages; options->require_nonempty is set. Narrows
 * *io_range: raises the bound to at most the value, and lowers the value to what `measure` returns
 * for the splits that are found. Keeps to options->time_limit_s, and adds its work to *io_n_ops
 * (may be NULL). Limits are decided one after the other, the one below the value first. Does
 * nothing if psplit_i_exact_counts_bypasses() is false. Errors: NOMEM, and those of `measure`. */
PSPLIT_MUST_USE psplit_code psplit_i_bound_any_route(const psplit_problem *problem,
                                                     const psplit_partition_options *options,
                                                     psplit_i_measure measure, void *with,
                                                     psplit_i_optimum_range *io_range,
                                                     uint64_t *io_n_ops, psplit_diag *diag);

/* A cheap version: work and messages alone, without a search; up to any value. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_bound_any_route_at_once(
  const psplit_problem *problem, const psplit_partition_options *options, int64_t *io_bound_ns,
  psplit_diag *diag);

#endif
