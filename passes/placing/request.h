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

/* Whether users of any tied weight are to share a stage. */
bool psplit_i_request_joins_any(const psplit_i_request *r);
/* Which solver: the request's, else the planner's, else "auto". */
const char *psplit_i_request_solver(const psplit_planner *planner, const psplit_i_request *r);

/* How it is to be solved, in `share` of the time limit: of the request's own, or of the plan's, or
 * what that has left. */
psplit_partition_options psplit_i_request_options(const psplit_planner *planner,
                                                  const psplit_i_request *r, double share);
/* psplit_partition_solve; charges the plan's budget unless the request has its own limit. Adds the
 * work to *io_n_ops, or NULL. */
PSPLIT_MUST_USE psplit_code psplit_i_request_run(psplit_planner *planner, const psplit_i_request *r,
                                                 const psplit_problem *problem,
                                                 const psplit_partition_options *options,
                                                 psplit_diag *diag, uint64_t *io_n_ops,
                                                 psplit_solution **out_solution);

/* Solves the planner's problem on devices of memory_bytes[n_stages] (UINT64_MAX: no limit), which
 * hold weights alone, in `share` of the time limit; gives every node its stage, and the planner its
 * solution. Errors: INFEASIBLE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_request_solve(psplit_planner *planner,
                                                   const psplit_i_request *r,
                                                   const uint64_t *memory_bytes, double share,
                                                   psplit_diag *diag);

/* Several devices for a stage, where options.max_replicas allows them. Errors: UNSUPPORTED (what
 * replicas do not go with), INFEASIBLE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_place_replicas(psplit_planner *planner,
                                                    const psplit_i_request *request,
                                                    psplit_diag *diag);

/* One run of the solver in `share` of the time limit, on the devices as they stand or, any_order,
 * in any order: there tensors take what they take over the best link. Adds its work to *io_n_ops.
 * *out_solution is the caller's; the planner keeps nothing but a record. Errors: those of
 * psplit_partition_solve. */
PSPLIT_MUST_USE psplit_code psplit_i_request_try(psplit_planner *planner, const psplit_i_request *r,
                                                 const uint64_t *memory_bytes, bool any_order,
                                                 double share, psplit_diag *diag,
                                                 uint64_t *io_n_ops,
                                                 psplit_solution **out_solution);

/* Where the order of devices is free, puts the best devices, in the best order that is found, under
 * the stages: see psplit_device_order. Ends planner->scratch. Errors: NOMEM, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_choose_devices(psplit_planner *planner,
                                                    const psplit_i_request *r, psplit_diag *diag);

/* Gives devices several stages where that pays, options.max_segments at most: the plan is the best
 * of what the solver finds for free placement and chunks, minimum cuts between two devices, each
 * device alone, and every node where it is fastest, or where a device that is preferred runs it. So
 * it is never worse than one device, or than what takes all that it can. Makes the plan. Errors:
 * UNSUPPORTED (pins, missing links, training, tied weights together), INFEASIBLE, NOMEM, CANCELLED.
 */
PSPLIT_MUST_USE psplit_code psplit_i_place_segments(psplit_planner *planner,
                                                    const psplit_i_request *r, psplit_diag *diag);

/* The solver limits weights alone; a stage's other memory is known once it is cut. While a stage
 * does not fit, its device offers the solver that much less. The bound of the first round, which
 * offered everything, holds for every split; those of later rounds do not. Makes the plan.
 * Errors: INFEASIBLE (what does not fit where, and what would), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_solve_within_memory(psplit_planner *planner,
                                                         const psplit_i_request *r, double share,
                                                         psplit_diag *diag);

#endif
