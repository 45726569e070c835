/* Certificates for plans: requests that only the planner makes. */
#ifndef PSPLIT_PARTITION_CERTIFICATE_H
#define PSPLIT_PARTITION_CERTIFICATE_H

#include <psplit/partition.h>

#include "text.h"

/* As psplit_certificate_make(). `ways` [n_stages^2] (may be NULL) is a route table (base/route.h)
 * by which the tensors of the split go; then solution->lower_bound_ns is that of any_route.h, for
 * the same problem and options. The caller owns *out_text. */
PSPLIT_MUST_USE psplit_code psplit_i_certificate_make(const psplit_problem *problem,
                                                      const psplit_partition_options *options,
                                                      const psplit_solution *solution,
                                                      const uint32_t *ways, psplit_diag *diag,
                                                      psplit_i_text *out_text,
                                                      int64_t *out_bound_ns);

#endif
