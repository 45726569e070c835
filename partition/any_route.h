/* A lower bound over all splits and all routes of their tensors: stages may pass on what others
 * made. */
#ifndef PSPLIT_PARTITION_ANY_ROUTE_H
#define PSPLIT_PARTITION_ANY_ROUTE_H

#include <psplit/partition.h>

/* Measures the split with the best routes that are known: *out_ns. stage[n_nodes]. Errors: any. */
typedef psplit_code (*psplit_i_measure)(void *with, const uint32_t *stage, psplit_diag *diag,
                                        int64_t *out_ns);

/* `problem` is by shared memory, with messages; options->require_nonempty. Raises *io_bound_ns, a
 * lower bound over all routes, to at most *io_value_ns, and lowers that to what `measure` says of
 * splits that are found meanwhile. Within options->time_limit_s; adds its work to *io_n_ops, or
 * NULL. Limits are decided one after the other, the one below the value first. Without effect where
 * psplit_i_exact_counts_bypasses() says no. Errors: NOMEM, and those of `measure`. */
PSPLIT_MUST_USE psplit_code psplit_i_bound_any_route(const psplit_problem *problem,
                                                     const psplit_partition_options *options,
                                                     psplit_i_measure measure, void *with,
                                                     int64_t *io_bound_ns, int64_t *io_value_ns,
                                                     uint64_t *io_n_ops, psplit_diag *diag);

/* A cheap version: work and messages alone, without a search; up to any value. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_bound_any_route_at_once(
  const psplit_problem *problem, const psplit_partition_options *options, int64_t *io_bound_ns,
  psplit_diag *diag);

#endif
