/* A split of the planner that is laid aside while another is looked for. */
#ifndef PSPLIT_PASSES_LAID_ASIDE_H
#define PSPLIT_PASSES_LAID_ASIDE_H

#include "planner.h"

typedef struct psplit_i_laid_aside {
  uint32_t *stage;
  psplit_solution *solution; /* whoever has it laid aside takes it back or destroys it */
  psplit_plan_copy *copies;
  size_t n_copies;
  psplit_plan *plan;
} psplit_i_laid_aside;

/* Takes the solution from the planner; the arrays live in its arena. False when out of memory: then
 * the planner is as it was. */
bool psplit_i_lay_aside(psplit_planner *planner, psplit_i_laid_aside *out);
/* Instead of the planner's solution, which is destroyed. False when out of memory: then the
 * planner has the solution without its copies. */
bool psplit_i_take_back(psplit_planner *planner, const psplit_i_laid_aside *from);

#endif
