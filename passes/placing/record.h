/* Keeps what the solver was asked and what it answered, for certificates. */
#ifndef PSPLIT_PASSES_RECORD_H
#define PSPLIT_PASSES_RECORD_H

#include "planner.h"

/* Adds a bare problem, the options it was solved with and the solution to the planner's records,
 * where its options ask for that. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_record(psplit_planner *planner, const psplit_problem *problem,
                                            const psplit_partition_options *options,
                                            const psplit_solution *solution, psplit_diag *diag);

#endif
