/* Proofs by cases that no contiguous split has all loads within a limit. */
#ifndef PSPLIT_PARTITION_CASE_PROOF_H
#define PSPLIT_PARTITION_CASE_PROOF_H

#include "budget.h"
#include "cells.h"

typedef struct psplit_i_case_request {
  int64_t limit;
  bool no_empty_stages;
  bool count_receivers; /* point to point: a tensor with several readers is sent to each */
  /* With messages by shared memory and no empty stages: what stages pass on counts (bypasses.c). */
  bool any_route;
  uint32_t most_cells;
  psplit_i_budget *budget;
} psplit_i_case_request;

/* Divides cells until no chain of stages within the limit leads through them; *out_proved: there is
 * none, and cells->tree is the proof. It is not proved where there is such a split, where the limit
 * on cells or the budget was reached, or the devices have too many states. *out_split: a chain of
 * whole downsets was found, so more cells do not help. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_case_proof(psplit_i_cells *cells,
                                                const psplit_i_case_request *request,
                                                bool *out_proved, bool *out_split);

#endif
