/* Proofs by cases that no contiguous split has all loads within a limit. */
#ifndef PSPLIT_PARTITION_CASE_PROOF_H
#define PSPLIT_PARTITION_CASE_PROOF_H

#include "budget.h"
#include "cells.h"

typedef struct psplit_i_case_request {
  int64_t limit;
  bool no_empty_stages;
  bool count_receivers; /* point to point: a tensor is sent once to each stage that reads it */
  /* Shared communication with messages, without empty stages: tensors that stages pass on are
   * counted (bypasses.c). */
  bool any_route;
  uint32_t most_cells;
  psplit_i_budget *budget;
} psplit_i_case_request;

/* Divides cells until no chain of stages within the limit leads through them. If *out_proved, there
 * is no such chain, and cells->tree is the proof. Otherwise there is such a split, the limit on
 * cells or the budget was reached, or the devices have too many states. *out_split: a chain of
 * single downsets was found, so more cells would not help. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_case_proof(psplit_i_cells *cells,
                                                const psplit_i_case_request *request,
                                                bool *out_proved, bool *out_split);

#endif
