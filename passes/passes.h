/* passes: one file each, named in passes.def. What they work on is the planner, what runs them the
 * pass manager; each stands in a room of its own below or beside. */
#ifndef PSPLIT_PASSES_PASSES_INTERNAL_H
#define PSPLIT_PASSES_PASSES_INTERNAL_H

#include "pass.h"

/* The built-in passes, in the order of passes.def. */
extern const psplit_i_pass *const psplit_i_passes[];
extern const size_t psplit_i_n_passes;

#endif
