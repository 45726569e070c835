/* The portfolio: which solver runs when, and what is reported. */
#include <stdlib.h>

#include "partition.h"

psplit_code psplit_partition_solve(const psplit_problem *problem,
                                   const psplit_partition_options *options, psplit_diag *diag,
                                   psplit_solution **out_solution) {
  psplit_code code = psplit_i_problem_validate(problem, diag);
  if (code != PSPLIT_OK) return code;
  psplit_core core;
  uint32_t *stage = NULL;
  PSPLIT_TRY(psplit_i_core_init(&core, problem, NULL, diag));
  stage = calloc(problem->n_nodes, sizeof *stage);
  if (!stage) {
    code = psplit_i_nomem(diag);
    goto out;
  }
  for (uint32_t v = 0; v < problem->n_nodes; v++)
    stage[v] = (uint32_t)((uint64_t)core.item_of_node[v] * core.n_stages / core.n);
  PSPLIT_TRY(psplit_partition_check(problem, options, stage, NULL, NULL, NULL, diag, out_solution));
out:
  free(stage);
  psplit_i_core_fini(&core);
  return code;
}
