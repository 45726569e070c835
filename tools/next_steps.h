/* What to do with a split that was just written, for who reads a terminal. */
#ifndef PSPLIT_TOOLS_NEXT_STEPS_H
#define PSPLIT_TOOLS_NEXT_STEPS_H

#include "split.h"

/* Commands to copy: proving and running. On a terminal alone, and where it shows names as they are.
 */
void print_next_steps(const split_request *request, const psplit_plan *plan);

#endif
