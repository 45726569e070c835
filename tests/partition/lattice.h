/* The least bottleneck of contiguous splits by dynamic programming over downsets, for graphs that
 * are too large to enumerate. Written from docs/partitioning/problem.md alone: it shares no code
 * with the library, nor its ideas of what may be left out. */
#ifndef PSPLIT_TEST_LATTICE_H
#define PSPLIT_TEST_LATTICE_H

#include <psplit/partition.h>

typedef enum lattice_answer {
  LATTICE_BEST,       /* *out_best is the optimum */
  LATTICE_NONE,       /* no split has every load <= limit */
  LATTICE_NOT_FOR_IT, /* not this problem: see lattice.c */
  LATTICE_TOO_LARGE   /* more downsets or states than asked for */
} lattice_answer;

/* Contiguous throughput, one chunk, no copies. `limit`: no larger optimum is of interest. Up to 64
 * nodes. O(states * downsets * pins). */
lattice_answer lattice_best(const psplit_problem *problem, bool nonempty, int64_t limit,
                            uint32_t most_downsets, uint32_t most_states, int64_t *out_best);

#endif
