/* How many threads a parallel region gets, and how these share a loop. */
#ifndef PSPLIT_BASE_TEAM_H
#define PSPLIT_BASE_TEAM_H

#include <stddef.h>
#include <stdint.h>

/* The number of OpenMP threads for a region: `asked`, or for 0 what OpenMP would take itself
 * (OMP_NUM_THREADS, or the processors this process may run on). At least 1; no more where the
 * runtime must not be asked, so no region may have more threads than this says. */
int psplit_i_team_size(uint32_t asked);

/* Calls work(with, i, thread) for begin <= i < end, on up to n_threads threads; `thread` is below
 * n_threads, and each i is for the thread that asks next. One thread is the caller itself, without
 * OpenMP: its runtime asks for memory as it begins and at every region, loop, critical section and
 * lock, and ends the process where there is none. Locks within are mutexes of POSIX. */
void psplit_i_team_for(int n_threads, size_t begin, size_t end,
                       void (*work)(void *with, size_t i, int thread), void *with);

#endif
