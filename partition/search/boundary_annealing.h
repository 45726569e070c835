/* Annealing of ordered stages: items move over the boundaries. */
#ifndef PSPLIT_PARTITION_BOUNDARY_ANNEALING_H
#define PSPLIT_PARTITION_BOUNDARY_ANNEALING_H

#include "result.h"

/* The same for contiguous throughput without memory limits, replicas and relays, in time that does
 * not depend on the number of stages. Improves *cut's stages and value. Errors: NOMEM, LIMIT (not
 * for this problem). */
PSPLIT_MUST_USE psplit_code psplit_i_shift(const psplit_core *core, const psplit_machine *machine,
                                           const psplit_job *job, uint64_t salt, uint64_t n_steps,
                                           psplit_cut *cut);

#endif
