/* Nodes that the planner's options name: pins to stages, and nodes that share one. */
#ifndef PSPLIT_PASSES_PLANNER_PINS_H
#define PSPLIT_PASSES_PLANNER_PINS_H

#include "planner.h"

/* Sets `pin` of the nodes that the options pin, one by one or as a text. O(n log n + pins log n),
 * for patterns with wildcards O(n) each. Errors: USAGE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_take_pins(psplit_planner *planner, psplit_diag *diag);
/* Sets `together` and `n_together`. Errors: USAGE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_planner_keep_together(psplit_planner *planner,
                                                           psplit_diag *diag);

#endif
