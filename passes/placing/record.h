/* Records what the solver was asked and what it answered, for certificates. */
#ifndef PSPLIT_PASSES_RECORD_H
#define PSPLIT_PASSES_RECORD_H

#include "planner.h"

/* Adds a bare problem, the options it was solved with and the solution to the planner's records, if
 * its options ask for that. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_record(psplit_planner *planner, const psplit_problem *problem,
                                            const psplit_partition_options *options,
                                            const psplit_solution *solution, psplit_diag *diag);

/* Drops all records but the first n. */
void psplit_i_record_forget(psplit_planner *planner, size_t n);

/* Raises the bound of the last record, with these options, to one that holds for all routes. Its
 * split becomes `stage`, with routes `ways` [n_stages^2], which live in the planner's arena. */
void psplit_i_record_any_route(psplit_planner *planner, const psplit_partition_options *options,
                               int64_t bound_ns, const uint32_t *stage, const uint32_t *ways);

#endif
