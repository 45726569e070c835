/* How many threads a parallel region gets. */
#ifndef PSPLIT_BASE_TEAM_H
#define PSPLIT_BASE_TEAM_H

#include <stdint.h>

/* The number of OpenMP threads for a region: `asked`, or for 0 what OpenMP would take itself
 * (OMP_NUM_THREADS, or the processors this process may run on). At least 1. */
int psplit_i_team_size(uint32_t asked);

#endif
