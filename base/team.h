/* Thread counts of parallel regions, and parallel loops. */
#ifndef PSPLIT_BASE_TEAM_H
#define PSPLIT_BASE_TEAM_H

#include <stddef.h>
#include <stdint.h>

/* Number of OpenMP threads for a region: `asked`, or for 0 OpenMP's default (OMP_NUM_THREADS, or
 * the available processors). At least 1; exactly 1 if the OpenMP runtime cannot be used, so regions
 * must not have more threads than this. */
int psplit_i_team_size(uint32_t asked);

/* Calls work(with, i, thread) for begin <= i < end, on up to n_threads threads with dynamic
 * scheduling; `thread` < n_threads. A single thread is the caller itself, without OpenMP: its
 * runtime allocates memory at startup and in every region, loop, critical section and lock, and
 * terminates the process if that fails. For the same reason, locks inside are POSIX mutexes. */
void psplit_i_team_for(int n_threads, size_t begin, size_t end,
                       void (*work)(void *with, size_t i, int thread), void *with);

#endif
