/* What copies leave without a use. */
#ifndef PSPLIT_PASSES_COPIES_IDLE_H
#define PSPLIT_PASSES_COPIES_IDLE_H

#include "planner.h"

/* A node that was copied to every stage that reads it would stand in its own without a use. It
 * moves to the first of them if `moving` (*out_moved is set, and else left); where it cannot, as
 * supernodes stay whole, that copy goes, and its result is sent, or stays if it cannot be sent. So
 * do copies that nothing reads any more. Takes planner->scratch. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_copies_drop_idle(psplit_planner *planner, bool moving,
                                                      bool *out_moved, psplit_diag *diag);

/* *out: some stage of the plan has live nodes, but neither sends anything nor makes an output of
 * the model: what nodes would send cannot be sent where it is used now. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_copies_leave_idle(psplit_planner *planner, bool *out,
                                                       psplit_diag *diag);

#endif
