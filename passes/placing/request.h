/* What the pass `partition` asks of the solver. */
#ifndef PSPLIT_PASSES_REQUEST_H
#define PSPLIT_PASSES_REQUEST_H

#include "builder.h"
#include "tied_weights.h"

typedef struct psplit_i_request {
  const char *solver;  /* "auto": what the planner's options say */
  double gap_frac;     /* stop at this relative gap */
  double time_limit_s; /* < 0: as the planner's options say */
  const psplit_i_tied_weights *ties;
  const uint8_t *joined; /* [ties->weights.n] the weight's users share a stage */
  bool quick;            /* is there a split at all? */
} psplit_i_request;

bool psplit_i_request_joins_any(const psplit_i_request *r);

/* Solves the planner's problem on devices of memory_bytes[n_stages] (UINT64_MAX: no limit), which
 * hold weights alone, in `share` of the time limit; gives every node its stage, and the planner its
 * solution. Errors: INFEASIBLE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_request_solve(psplit_planner *planner,
                                                   const psplit_i_request *r,
                                                   const uint64_t *memory_bytes, double share,
                                                   psplit_diag *diag);

/* The solver limits weights alone; a stage's other memory is known once it is cut. While a stage
 * does not fit, its device offers the solver that much less. The bound of the first round, which
 * offered everything, holds for every split; those of later rounds do not. Makes the plan.
 * Errors: INFEASIBLE (what does not fit where, and what would), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_solve_within_memory(psplit_planner *planner,
                                                         const psplit_i_request *r, double share,
                                                         psplit_diag *diag);

#endif
