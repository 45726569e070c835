/* psplit_partition_solve, and how much work it did. */
#ifndef PSPLIT_PARTITION_SOLVE_H
#define PSPLIT_PARTITION_SOLVE_H

#include <psplit/partition.h>

/* The same; adds the operations that were charged (budget.h) to *io_n_ops, whether there is a split
 * or not; NULL: not asked. Errors: as psplit_partition_solve. */
PSPLIT_MUST_USE psplit_code psplit_i_partition_solve(const psplit_problem *problem,
                                                     const psplit_partition_options *given,
                                                     psplit_diag *diag, uint64_t *io_n_ops,
                                                     psplit_solution **out_solution);

/* psplit_partition_reduce; adds the operations that were charged to *io_n_ops. */
PSPLIT_MUST_USE psplit_code psplit_i_partition_reduce(const psplit_problem *problem,
                                                      const psplit_partition_options *given,
                                                      int64_t limit_ns, psplit_diag *diag,
                                                      uint64_t *io_n_ops, uint32_t *out_class,
                                                      uint32_t *out_n_classes);

#endif
