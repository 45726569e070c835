/* Makes splits in which no stage is empty from splits in which some may be. */
#ifndef PSPLIT_PARTITION_FILL_STAGES_H
#define PSPLIT_PARTITION_FILL_STAGES_H

#include "result.h"

/* Whether each stage of the result holds a node that is not auxiliary. False, too, when out of
 * memory. */
bool psplit_i_all_stages_used(const psplit_i_solver_request *request,
                              const psplit_i_result *result);

/* Divides the nodes, in the order of the result's stages, anew, with something in every stage;
 * *out_value (ns) is INF where that takes more than `limit`, or longer than the budget. `take`: the
 * result becomes that split. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_fill_stages(const psplit_i_solver_request *strict,
                                                 int64_t limit, bool take, psplit_i_result *result,
                                                 int64_t *out_value);

#endif
