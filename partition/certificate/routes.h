/* Routes of a split whose stages pass tensors on, as lines of a certificate. The checker does not
 * search for routes, but follows these. */
#ifndef PSPLIT_PARTITION_CERTIFICATE_ROUTES_H
#define PSPLIT_PARTITION_CERTIFICATE_ROUTES_H

#include <psplit/partition.h>

#include "base.h"
#include "text.h"

/* Appends a line for each tensor that is passed on. *out_value_ns: time of the slowest stage with
 * these routes, including messages. next_hop[n_stages^2] is a table of stages as in base/route.h; p
 * has message times. Temporary memory is from `arena`. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_write_routes(const psplit_problem *p, const psplit_solution *s,
                                                  const uint32_t *next_hop, psplit_i_arena *arena,
                                                  psplit_i_text *out, int64_t *out_value_ns);

#endif
