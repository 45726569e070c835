/* What the pass `partition` requests of the solver. */
#ifndef PSPLIT_PASSES_REQUEST_H
#define PSPLIT_PASSES_REQUEST_H

#include "builder.h"
#include "tied_weights.h"

typedef struct psplit_i_request {
  const char *solver;  /* "auto": as in the planner's options */
  double gap_frac;     /* stop at this relative gap */
  double time_limit_s; /* < 0: as in the planner's options */
  const psplit_i_tied_weights *ties;
  const uint8_t *joined; /* [ties->weights.n] the weight's users share a stage */
  bool quick;            /* only find out whether there is a split */
} psplit_i_request;

/* Whether users of any tied weight must share a stage. */
bool psplit_i_request_joins_any(const psplit_i_request *r);
/* The solver: the request's, else the planner's, else "auto". */
const char *psplit_i_request_solver(const psplit_planner *planner, const psplit_i_request *r);

/* The options of the solver, with `share` of the time limit of the request or, if it has none, of
 * the plan's remaining limit. */
psplit_partition_options psplit_i_request_options(const psplit_planner *planner,
                                                  const psplit_i_request *r, double share);
/* Runs psplit_partition_solve(), and charges the plan's budget unless the request has its own
 * limit. Adds the work to *io_n_ops, unless NULL. */
PSPLIT_MUST_USE psplit_code psplit_i_request_run(psplit_planner *planner, const psplit_i_request *r,
                                                 const psplit_problem *problem,
                                                 const psplit_partition_options *options,
                                                 psplit_diag *diag, uint64_t *io_n_ops,
                                                 psplit_solution **out_solution);

/* Solves the planner's problem on devices of memory_bytes[n_stages] (UINT64_MAX: no limit), which
 * counts weights only, in `share` of the time limit. Assigns every node its stage, and sets the
 * planner's solution. Errors: INFEASIBLE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_request_solve(psplit_planner *planner,
                                                   const psplit_i_request *r,
                                                   const uint64_t *memory_bytes, double share,
                                                   psplit_diag *diag);

/* Replicates stages if options.max_replicas permits. Errors: UNSUPPORTED (what replicas do not
 * support), INFEASIBLE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_place_replicas(psplit_planner *planner,
                                                    const psplit_i_request *request,
                                                    psplit_diag *diag);

/* One run of the solver. */
typedef struct psplit_i_solver_run {
  const uint64_t *memory_bytes; /* [n_stages] UINT64_MAX: no limit */
  bool any_order; /* devices may stand in any order, and tensors take the time of the best link */
  /* Instead of the problem that lacks layout prices, a relaxation that counts them. */
  bool with_layouts;
  double share; /* of the time limit, for the problem and for the relaxation */
} psplit_i_solver_run;

/* Runs the solver once, and adds its work to *io_n_ops. The caller owns *out_solution; the planner
 * keeps only a record. *out_lacks_layouts: the problem does not count layout prices, but one
 * with_layouts does. Errors: those of psplit_partition_solve. */
PSPLIT_MUST_USE psplit_code psplit_i_request_try(psplit_planner *planner, const psplit_i_request *r,
                                                 const psplit_i_solver_run *run, psplit_diag *diag,
                                                 uint64_t *io_n_ops, bool *out_lacks_layouts,
                                                 psplit_solution **out_solution);

/* The bottleneck of a solution's plan on the devices as the planner has them, with everything
 * counted. Assigns every node its stage, and resets planner->scratch. Errors: NOMEM, and those of
 * psplit_i_plan_make. */
PSPLIT_MUST_USE psplit_code psplit_i_request_plan_ns(psplit_planner *planner,
                                                     const psplit_solution *solution,
                                                     psplit_diag *diag, int64_t *out_ns);

/* If the order of devices is free, assigns the best devices to the stages, in the best order that
 * is found: see psplit_device_order. Resets planner->scratch. Errors: NOMEM, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_choose_devices(psplit_planner *planner,
                                                    const psplit_i_request *r, psplit_diag *diag);

/* Assigns several stages (segments) to a device where that pays, at most options.max_segments. The
 * plan is the best of: the solver's free placement and chunks, minimum cuts between two devices,
 * each device alone, and every node on the device where it is fastest or on a preferred device that
 * runs it. So it is never worse than a single device, or than one device that takes all it can run.
 * Makes the plan. Errors: UNSUPPORTED (pins, missing links, training, tied weights together),
 * INFEASIBLE, NOMEM, CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_place_segments(psplit_planner *planner,
                                                    const psplit_i_request *r, psplit_diag *diag);

/* Solves within the memory of the devices. The solver limits weights only, and the rest of a
 * stage's memory is known once it is cut. While a stage does not fit, its device offers the solver
 * that much less. The bound of the first round, which offered everything, holds for every split;
 * those of later rounds do not. Makes the plan. Errors: INFEASIBLE (what does not fit where, and
 * what would), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_solve_within_memory(psplit_planner *planner,
                                                         const psplit_i_request *r, double share,
                                                         psplit_diag *diag);

/* psplit_i_solve_within_memory and, where the order of devices was chosen between links that
 * differ, the same in the order that was listed: the faster of the two plans. The planner's bounds
 * for orders hold for it. Errors: those of psplit_i_solve_within_memory. */
PSPLIT_MUST_USE psplit_code psplit_i_solve_in_orders(psplit_planner *planner,
                                                     const psplit_i_request *r, double share,
                                                     psplit_diag *diag);

#endif
