/* How many threads a parallel region gets. */
#ifndef PSPLIT_BASE_TEAM_H
#define PSPLIT_BASE_TEAM_H

#include <stdint.h>

/* The number of OpenMP threads for a region: `asked`, or for 0 what OpenMP would take itself
 * (OMP_NUM_THREADS, or the processors this process may run on). At least 1.
 *
 * To be called before the first region and the first omp_ call: LLVM's OpenMP runtime keeps a
 * record of each process in shared memory, named by process id, and never checks its length. A
 * process killed between making the record and giving it a length leaves an empty one, and a later
 * process with the same id dies of SIGBUS in its first region. This takes such a record away. */
int psplit_i_team_size(uint32_t asked);

#endif
