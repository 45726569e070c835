/* Certificates for plans: requests that only the planner makes. */
#ifndef PSPLIT_PARTITION_CERTIFICATE_H
#define PSPLIT_PARTITION_CERTIFICATE_H

#include <psplit/partition.h>

/* As psplit_certificate_make(). `ways` [n_stages^2] (may be NULL; base/route.h): by them the
 * tensors of the split go, and solution->lower_bound_ns is that of any_route.h, of the same problem
 * and options. */
PSPLIT_MUST_USE psplit_code psplit_i_certificate_make(const psplit_problem *problem,
                                                      const psplit_partition_options *options,
                                                      const psplit_solution *solution,
                                                      const uint32_t *ways, psplit_diag *diag,
                                                      char **out_text, size_t *out_n,
                                                      int64_t *out_bound_ns);

#endif
